// Invariants:
// 1. Who holds `turn_` is the head of the line; only the head looks at the buckets, so nobody overtakes it.
// 2. At most one wait (`head_`) exists. It ends by its timer, by a cancel or by a change, whoever clears `head_` first
//    under the lock; that one queues it.
// 3. Every change that could shorten or lengthen the head's wait counts `version_` up under the lock. A wait begins
// only
//    under the version that it was computed from, so no change falls between look and wait.
// 4. A wait is queued at its executor under the lock and the executor woken after it: a dying executor, whose frames
// take
//    the lock, can't race with a change.
#include "stint/rate.hpp"

#include "stint/assert.hpp"

namespace stint {

/// The head waits for a moment, or for something to change.
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
  void await_resume() const noexcept {}  // the timer goes with this object, at the end of the expression

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
    if (withdraw()) complete();  // else a change has queued it
  }
  void fire() noexcept override { end(); }
  void cancel() noexcept override { end(); }

  RateLimiter& limiter_;
  const Look look_;
};

RateLimiter::RateLimiter(std::string name, const RateLimits& limits) : turn_(std::move(name), 1), core_(limits) {}

RateLimiter::~RateLimiter() { STINT_ASSERT(head_ == nullptr && "somebody still waits for this limit"); }

Task<Result<RateGrant>> RateLimiter::acquire(RateAmount estimate, Deadline deadline) {
  CancelToken& token = co_await current_token();
  STINT_CO_CHECK(check(estimate));  // what never fits need not line up to hear it
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
  change([&] { closed_ = true; });  // the head leaves, and with it, one after another, all who wait for its turn
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

TimePoint RateLimiter::gate() const noexcept {
  const std::lock_guard lock(mutex_);
  return core_.gate();
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
