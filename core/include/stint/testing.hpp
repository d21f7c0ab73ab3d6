/// The simulator: an executor with a virtual clock that runs ready work in an order drawn from a seed. One thread. Time
/// advances only when nothing is ready, and then jumps to the next timer: a test that waits an hour takes no time, and
/// a failing seed reproduces the failure.
#pragma once

#include "stint/executor.hpp"

#include <algorithm>
#include <deque>
#include <random>

namespace stint {

class Simulator final : public Executor {
 public:
  /// `Order::seeded` draws the next runnable at random; `Order::fifo` uses the reactor's order.
  enum class Order : std::uint8_t { seeded, fifo };

  explicit Simulator(std::uint64_t seed = 0, Order order = Order::seeded) : random_(seed), order_(order) {
    use_local_queue();
  }
  ~Simulator() {
    mark_closing();
    for (Runnable* const runnable : std::exchange(ready_, {})) runnable->dropped();
    drop_queued();
    abandon_all();
  }

  void wake() noexcept override {}
  TimePoint now() const noexcept override { return now_; }
  std::mt19937_64& random() noexcept { return random_; }

  /// True if something can run before the clock advances.
  [[nodiscard]] bool is_ready() {
    for (Runnable* runnable = local_head_; runnable != nullptr; runnable = runnable->next_queued) {
      ready_.push_back(runnable);
    }
    local_head_ = nullptr;
    local_tail_ = &local_head_;
    return !ready_.empty();
  }
  /// True if nothing is left to do: `step` would return false.
  [[nodiscard]] bool is_idle() { return !is_ready() && !next_timer(); }

  /// Runs one runnable or jumps the clock; false when nothing is left to do.
  bool step() {
    if (!is_ready()) {
      const auto next = next_timer();
      return next && advance_to(*next);
    }
    run_one();
    return true;
  }
  /// Runs everything that is ready or becomes ready, without advancing time.
  void run_ready() {
    while (is_ready()) run_one();
  }
  /// Runs everything, advancing the clock as needed, until nothing is left to do.
  void settle() {
    while (step()) {
    }
  }
  /// Advances the clock by `duration`, running due work in order.
  void advance(Duration duration) {
    const TimePoint until = now_ + duration;
    run_ready();
    for (auto next = next_timer(); next && *next <= until; next = next_timer()) {
      advance_to(*next);
      run_ready();
    }
    advance_to(until);
    run_ready();
  }
  /// False if nothing is left to run before `done`: some wait can never complete.
  template <class Done>
  [[nodiscard]] bool run_until(Done done) {
    while (!done()) {
      if (!step()) return false;
    }
    return true;
  }

 private:
  /// Called on the simulator's own thread only.
  [[nodiscard]] bool post_elsewhere(Runnable& runnable) noexcept override {
    if (closing()) {
      runnable.dropped();
    } else {
      ready_.push_back(&runnable);
    }
    return false;
  }
  void run_one() {
    if (order_ == Order::seeded) std::swap(ready_[random_() % ready_.size()], ready_.front());
    Runnable* const runnable = ready_.front();
    ready_.pop_front();
    const Running running(*this);
    runnable->run();
  }
  bool advance_to(TimePoint time) {
    now_ = std::max(now_, time);
    fire_due(now_);
    return true;
  }

  std::mt19937_64 random_;
  Order order_;
  TimePoint now_{};
  std::deque<Runnable*> ready_;
};

}  // namespace stint
