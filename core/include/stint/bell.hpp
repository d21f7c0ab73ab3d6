/// A bell: who waits for it is woken when it rings, all at once. It remembers how often it rang, so that a ring between
/// a look and a wait is not missed: `seen = bell.rings(); look(); co_await bell.hear(seen);`. Own thread only; must
/// outlive its listeners.
#pragma once

#include "stint/detail/intrusive_list.hpp"
#include "stint/task.hpp"

#include <cstdint>

namespace stint {

class Bell {
 public:
  void ring() noexcept;
  [[nodiscard]] std::uint64_t rings() const noexcept { return rings_; }
  /// Until it has rung more often than `seen` says.
  Task<> hear(std::uint64_t seen);
  /// The same, but no longer than that. How often it has rung.
  Task<std::uint64_t> hear(std::uint64_t seen, Duration most);

 private:
  class Listener : public Leaf, public detail::Link<Listener> {
   public:
    explicit Listener(Bell& bell) noexcept : bell_(bell) {}
    void await_suspend(std::coroutine_handle<>) noexcept { (void)begin(); }
    void await_resume() const noexcept {}

   protected:
    [[nodiscard]] bool begin() noexcept;
    void end() noexcept;
    virtual void let_go() noexcept {}  // of what else would wake it

   private:
    friend class Bell;
    void cancel() noexcept override;
    Bell& bell_;
  };
  class PatientListener final : public Listener, private Timer {
   public:
    PatientListener(Bell& bell, Duration most) noexcept : Listener(bell), most_(most) {}
    void await_suspend(std::coroutine_handle<>) noexcept;

   private:
    void let_go() noexcept override { executor().disarm(*this); }
    void fire() noexcept override;
    Duration most_;
  };

  std::uint64_t rings_ = 0;
  detail::List<Listener> listeners_;
};

}  // namespace stint
