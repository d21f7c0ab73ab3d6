/// Wakes those who wait for work when there may be some. One executor.
#pragma once

#include "stint/detail/intrusive_list.hpp"
#include "stint/task.hpp"

#include <cstdint>

namespace stint::store {

class Bell {
 public:
  void ring() noexcept;
  [[nodiscard]] std::uint64_t rings() const noexcept { return rings_; }
  /// Until it has rung more often than `seen` says.
  Task<> hear(std::uint64_t seen);
  /// The same, but no longer than that. How often it has rung.
  Task<std::uint64_t> hear(std::uint64_t seen, Duration most);

 private:
  class Listener final : public Leaf, public stint::detail::Link<Listener> {
   public:
    explicit Listener(Bell& bell) noexcept : bell_(bell) {}
    void await_suspend(std::coroutine_handle<>) noexcept;
    void await_resume() const noexcept {}

   private:
    friend class Bell;
    void cancel() noexcept override;
    Bell& bell_;
  };

  std::uint64_t rings_ = 0;
  stint::detail::List<Listener> listeners_;
};

}  // namespace stint::store
