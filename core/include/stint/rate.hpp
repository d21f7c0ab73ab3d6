/// `RateLimiter`: callers of one upstream wait their turn for requests and tokens per minute; see `stint/rate_core.hpp`
/// for the rule.
///
/// Strictly FIFO: a large call at the head delays small ones behind it. A call is admitted with an estimate and settled
/// with the truth. Who is cancelled or times out while waiting has used nothing. One refusal (`pause_until`) closes the
/// gate for everybody, instead of each learning alone; a ramp follows. Retries come through here again like any call.
/// Thread-safe; waiters resume on their own executor, never under the lock. Must outlive its waiters, its grants and
/// their executors' last wake-up: the destructor asserts that nobody waits.
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

  /// Waits until `estimate` may go. `Errc::invalid` if it never may; `Errc::timed_out`, at once and with the time it
  /// would take, if it can't before `deadline` or the scope's; `Errc::closed` after close().
  [[nodiscard]] Task<Result<RateGrant>> acquire(RateAmount estimate, Deadline deadline = {});
  /// Never barges: nothing while anybody waits.
  [[nodiscard]] std::optional<RateGrant> try_acquire(const RateAmount& estimate, TimePoint now) noexcept;

  /// Nobody is admitted before `when`: the upstream said so to one of us. Only ever extends.
  void pause_until(TimePoint when) noexcept;
  /// What the upstream says about its limit.
  void correct(RateKind kind, const RateReport& report, TimePoint now) noexcept;
  void close() noexcept;

  /// Those in line, with the one at its head.
  [[nodiscard]] std::size_t waiting() const noexcept;
  /// Units that could be had at once; negative: debt; nothing if no limit is known.
  [[nodiscard]] std::optional<std::int64_t> available(RateKind kind, TimePoint now) noexcept;
  /// Closed until then; in the past if it is open.
  [[nodiscard]] TimePoint gate() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return turn_.name(); }

 private:
  friend class RateGrant;
  class Change;
  struct Look {
    std::optional<TimePoint> wait_until;  // none: it was taken
    std::uint64_t version = 0;
  };
  Result<> check(const RateAmount& estimate) const;
  Result<Look> take_or_look(const RateAmount& estimate, TimePoint now, Deadline deadline);
  template <class Fn>
  void change(Fn fn) noexcept;
  void settle(const RateAmount& taken, const RateAmount& used, TimePoint taken_at) noexcept;
  void give_back(const RateAmount& taken, TimePoint taken_at) noexcept;

  Semaphore turn_;  // one unit: who holds it is the head of the line
  mutable std::mutex mutex_;
  RateCore core_;
  Change* head_ = nullptr;     // the head's wait, while it waits
  std::uint64_t version_ = 0;  // of everything that can make a wait shorter or longer
  bool closed_ = false;
};

/// An admitted call. Destroyed before `sent()` it returns everything, as if it had never been taken; after that, and
/// without `settle`, the estimate stands.
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

  /// The request is on its way: from here on the upstream counts it, whatever becomes of us.
  void sent() noexcept { sent_ = true; }
  /// What it really took, more or less. Ends the grant; the second call does nothing.
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
