/// `RateLimiter`: callers of one upstream wait for requests and tokens per minute; see `stint/rate_core.hpp` for the
/// rule.
///
/// Strictly FIFO: a large call at the head delays small ones behind it. A call is admitted with an estimate and settled
/// with the actual usage. A caller that is cancelled or times out while waiting has used nothing. One refusal
/// (`pause_until`) pauses all callers, so that each need not find out alone; a ramp follows. Retries pass
/// through here like any call. Thread-safe; waiters resume on their own executor, never under the lock. Must outlive
/// its waiters, its grants and their executors' last wake-up: the destructor asserts that there are no waiters.
#pragma once

#include "stint/deadline.hpp"
#include "stint/rate_core.hpp"
#include "stint/semaphore.hpp"
#include "stint/task.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace stint {

class RateGrant;

class RateLimiter {
 public:
  RateLimiter(std::string name, const RateLimits& limits);
  ~RateLimiter();
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;

  /// Waits until `estimate` is admitted. `Errc::invalid` if it never can be; `Errc::timed_out`, at once and naming the
  /// required time, if it can't be before `deadline` or the scope's; `Errc::closed` after close().
  [[nodiscard]] Task<Result<RateGrant>> acquire(RateAmount estimate, Deadline deadline = {});
  /// Never barges: returns nothing while there are waiters.
  [[nodiscard]] std::optional<RateGrant> try_acquire(const RateAmount& estimate, TimePoint now) noexcept;

  /// Admits nothing before `when`, after a refusal by the upstream. Never shortens a pause.
  void pause_until(TimePoint when) noexcept;
  /// Applies the upstream's report about a limit.
  void correct(RateKind kind, const RateReport& report, TimePoint now) noexcept;
  void close() noexcept;

  /// Waiting callers, including the head of the line.
  [[nodiscard]] std::size_t waiting() const noexcept;
  /// Units available at once; negative: debt; empty without a known limit.
  [[nodiscard]] std::optional<std::int64_t> available(RateKind kind, TimePoint now) noexcept;
  /// The end of the current pause; in the past if there is none.
  [[nodiscard]] TimePoint paused_until() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return turn_.name(); }

 private:
  friend class RateGrant;
  class Change;
  struct Look {
    std::optional<TimePoint> wait_until;  // empty: admitted
    std::uint64_t version = 0;
  };
  Result<> check(const RateAmount& estimate) const;
  Result<Look> take_or_look(const RateAmount& estimate, TimePoint now, Deadline deadline);
  template <class Fn>
  void change(Fn fn) noexcept;
  void settle(const RateAmount& taken, const RateAmount& used, TimePoint taken_at) noexcept;
  void give_back(const RateAmount& taken, TimePoint taken_at) noexcept;

  Semaphore turn_;  // capacity 1: its holder is the head of the line
  mutable std::mutex mutex_;
  RateCore core_;
  Change* head_ = nullptr;     // the head's wait, while it waits
  std::uint64_t version_ = 0;  // incremented by everything that can change a wait
  bool closed_ = false;
};

/// An admitted call. Destroyed before `sent()` it returns everything; after that, without `settle`, the estimate
/// stands.
class [[nodiscard]] RateGrant {
 public:
  RateGrant(RateGrant&& other) noexcept
      : limiter_(std::exchange(other.limiter_, nullptr)),
        estimate_(other.estimate_),
        taken_at_(other.taken_at_),
        sent_(other.sent_) {}
  RateGrant& operator=(RateGrant&& other) noexcept;
  ~RateGrant() {
    if (limiter_ != nullptr && !sent_) give_back();
  }

  /// The request was sent: from here on the upstream counts it, whatever happens here.
  void sent() noexcept { sent_ = true; }
  /// Settles with the actual usage, more or less than the estimate. Ends the grant; a second call does nothing.
  void settle(const RateAmount& used) noexcept;
  void give_back() noexcept;
  [[nodiscard]] const RateAmount& estimate() const noexcept { return estimate_; }

 private:
  friend class RateLimiter;
  RateGrant(RateLimiter& limiter, const RateAmount& estimate, TimePoint taken_at) noexcept
      : limiter_(&limiter), estimate_(estimate), taken_at_(taken_at) {}

  RateLimiter* limiter_;
  RateAmount estimate_;
  TimePoint taken_at_;
  bool sent_ = false;
};

}  // namespace stint
