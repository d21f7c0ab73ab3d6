/// An edge-triggered notification with a counter: notify() wakes every waiter. The counter closes the window between a
/// check and the wait: `seen = changed.count(); check(); co_await changed.wait(seen);` returns at once if notify() came
/// in between. Own thread only; must outlive its waiters.
#pragma once

#include "stint/detail/intrusive_list.hpp"
#include "stint/task.hpp"

#include <cstdint>

namespace stint {

class Notification {
 public:
  void notify() noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Waits until the counter exceeds `seen`.
  Task<> wait(std::uint64_t seen);
  /// The same for at most `most`. Returns the counter.
  Task<std::uint64_t> wait(std::uint64_t seen, Duration most);

 private:
  class Waiter : public Leaf, public detail::Link<Waiter> {
   public:
    explicit Waiter(Notification& notification) noexcept : notification_(notification) {}
    void await_suspend(std::coroutine_handle<>) noexcept { (void)begin(); }
    void await_resume() const noexcept {}

   protected:
    [[nodiscard]] bool begin() noexcept;
    void end() noexcept;
    virtual void disarm_timer() noexcept {}  // called when a notify or a cancel ends the wait

   private:
    friend class Notification;
    void cancel() noexcept override;
    Notification& notification_;
  };
  class TimedWaiter final : public Waiter, private Timer {
   public:
    TimedWaiter(Notification& notification, Duration most) noexcept : Waiter(notification), most_(most) {}
    void await_suspend(std::coroutine_handle<>) noexcept;

   private:
    void disarm_timer() noexcept override { executor().disarm(*this); }
    void fire() noexcept override;
    Duration most_;
  };

  std::uint64_t count_ = 0;
  detail::List<Waiter> waiters_;
};

}  // namespace stint
