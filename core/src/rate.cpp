// Invariants:
// 1. The holder of `turn_` is the head of the line; only the head reads the buckets, so no caller overtakes it.
// 2. At most one wait (`head_`) exists. It ends by its timer, a cancellation or a change; the one that clears `head_`
// under the lock queues it.
// 3. Every change that could shorten or lengthen the head's wait increments `version_` under the lock. A wait begins
// only under the version that it was computed from, so no change between computing and waiting is missed.
// 4. A wait is queued at its executor under the lock, and the executor is woken after the lock: an executor that is
// being destroyed, whose frames take the lock, can't race with a change.
#include "stint/rate.hpp"

#include "stint/assert.hpp"

namespace stint {

/// The head waits for a time point or for a change.
class RateLimiter::Change final : public Leaf, private Timer {
 public:
  Change(RateLimiter& limiter, const Look& look) noexcept : limiter_(limiter), look_(look) {}
  ~Change() { (void)withdraw(); }

  bool await_suspend(std::coroutine_handle<>) noexcept {
    if (!park()) return true;
    {
      const std::lock_guard lock(limiter_.mutex_);
      if (limiter_.version_ != look_.version) {
        unpark();
        return false;
      }
      STINT_ASSERT(limiter_.head_ == nullptr);
      limiter_.head_ = this;
    }
    executor().arm(*this, *look_.wait_until);
    return true;
  }
  void await_resume() const noexcept {}  // the timer is disarmed with this object, at the end of the expression

  /// Under the lock.
  void wake(Wakes& wakes) noexcept { wakes.post(executor(), *this); }

 private:
  bool withdraw() noexcept {
    const std::lock_guard lock(limiter_.mutex_);
    if (limiter_.head_ != this) return false;
    limiter_.head_ = nullptr;
    return true;
  }
  void end() noexcept {
    if (withdraw()) complete();  // otherwise a change has queued it
  }
  void fire() noexcept override { end(); }
  void cancel() noexcept override { end(); }

  RateLimiter& limiter_;
  const Look look_;
};

RateLimiter::RateLimiter(std::string name, const RateLimits& limits) : turn_(std::move(name), 1), core_(limits) {}

RateLimiter::~RateLimiter() { STINT_ASSERT(head_ == nullptr && "this rate limiter still has waiters"); }

Task<Result<RateGrant>> RateLimiter::acquire(RateAmount estimate, Deadline deadline) {
  CancelToken& token = co_await current_token();
  STINT_CO_CHECK(check(estimate));  // an impossible request is refused without waiting
  STINT_CO_TRY(const Permit turn, co_await turn_.acquire(AcquireOptions(), deadline));
  while (true) {
    const TimePoint now = token.executor().now();
    STINT_CO_TRY(const Look look, take_or_look(estimate, now, deadline.sooner(token.deadline())));
    if (!look.wait_until) co_return RateGrant(*this, estimate, now);
    co_await Change(*this, look);
  }
}

Result<> RateLimiter::check(const RateAmount& estimate) const {
  const std::lock_guard lock(mutex_);
  return core_.check(estimate);
}

Result<RateLimiter::Look> RateLimiter::take_or_look(const RateAmount& estimate, TimePoint now, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (closed_) return fail(Errc::closed, name() + " is closed");
  STINT_CHECK(core_.check(estimate));
  if (core_.take(estimate, now)) return Look();
  const TimePoint ready = core_.ready_at(estimate, now);
  if (!deadline.passed(ready)) return Look{.wait_until = ready, .version = version_};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(ready - now).count();
  std::string what = name() + " admits it in " + std::to_string(ms) + " ms only, after the deadline; it waits for ";
  what += core_.waits_for(estimate, now);
  return fail(Error(Errc::timed_out, Retry::safe, std::move(what)).after(ready - now));
}

std::optional<RateGrant> RateLimiter::try_acquire(const RateAmount& estimate, TimePoint now) noexcept {
  const auto turn = turn_.try_acquire();
  if (!turn) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (closed_ || !core_.check(estimate) || !core_.take(estimate, now)) return std::nullopt;
  return RateGrant(*this, estimate, now);
}

template <class Fn>
void RateLimiter::change(Fn fn) noexcept {
  Wakes wakes;
  const std::lock_guard lock(mutex_);
  fn();
  ++version_;
  if (head_ != nullptr) std::exchange(head_, nullptr)->wake(wakes);
}

void RateLimiter::pause_until(TimePoint when) noexcept {
  change([&] { core_.pause_until(when); });
}

void RateLimiter::correct(RateKind kind, const RateReport& report, TimePoint now) noexcept {
  change([&] { core_.correct(kind, report, now); });
}

void RateLimiter::settle(const RateAmount& taken, const RateAmount& used, TimePoint taken_at) noexcept {
  change([&] { core_.settle(taken, used, taken_at); });
}

void RateLimiter::give_back(const RateAmount& taken, TimePoint taken_at) noexcept {
  change([&] { core_.give_back(taken, taken_at); });
}

void RateLimiter::close() noexcept {
  change([&] { closed_ = true; });  // the head fails, and then each next head in turn
}

std::size_t RateLimiter::waiting() const noexcept {
  const std::lock_guard lock(mutex_);
  return turn_.waiting() + (head_ != nullptr ? 1 : 0);
}

std::optional<std::int64_t> RateLimiter::available(RateKind kind, TimePoint now) noexcept {
  const std::lock_guard lock(mutex_);
  if (core_.per_minute(kind) == 0) return std::nullopt;
  return core_.available(kind, now);
}

TimePoint RateLimiter::paused_until() const noexcept {
  const std::lock_guard lock(mutex_);
  return core_.paused_until();
}

RateGrant& RateGrant::operator=(RateGrant&& other) noexcept {
  RateGrant old(std::move(*this));
  limiter_ = std::exchange(other.limiter_, nullptr);
  estimate_ = other.estimate_;
  taken_at_ = other.taken_at_;
  sent_ = other.sent_;
  return *this;
}

void RateGrant::settle(const RateAmount& used) noexcept {
  if (limiter_ != nullptr) std::exchange(limiter_, nullptr)->settle(estimate_, used, taken_at_);
}

void RateGrant::give_back() noexcept {
  if (limiter_ != nullptr) std::exchange(limiter_, nullptr)->give_back(estimate_, taken_at_);
}

}  // namespace stint
