#include "stint/rate_core.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace stint {

namespace {

constexpr Duration kMinute = std::chrono::minutes(1);
// Bounds external counts: a value off by magnitudes must not block the line forever.
constexpr Duration kDebtMax = std::chrono::hours(1);
constexpr Duration kRampStepMax = std::chrono::hours(1);
constexpr int kRampStepsMax = 32;  // 2³² admissions by then
// The latest end of a pause; leaves room for a ramp after it.
constexpr TimePoint kLatest = TimePoint::max() - kRampStepMax * kRampStepsMax;

std::int64_t configured(const RateLimits& limits, RateKind kind) noexcept {
  switch (kind) {
    case RateKind::requests: return limits.requests_per_minute;
    case RateKind::tokens: return limits.tokens_per_minute;
    case RateKind::input_tokens: return limits.input_tokens_per_minute;
    case RateKind::output_tokens: return limits.output_tokens_per_minute;
  }
  return 0;
}

/// `amount` × `numerator` / `denominator`, rounded up, at most `most`. None of them negative, the last not zero.
Duration scale(std::int64_t amount, std::int64_t numerator, std::int64_t denominator, Duration most) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{static_cast<std::uint64_t>(amount)} * static_cast<std::uint64_t>(numerator);
  const Wide divisor = static_cast<std::uint64_t>(denominator);
  const Wide quotient = (product + divisor - 1) / divisor;
  return quotient < static_cast<std::uint64_t>(most.count()) ? Duration(static_cast<Duration::rep>(quotient)) : most;
}

}  // namespace

std::string_view to_string(RateKind kind) noexcept {
  switch (kind) {
    case RateKind::requests: return "requests per minute";
    case RateKind::tokens: return "tokens per minute";
    case RateKind::input_tokens: return "input tokens per minute";
    case RateKind::output_tokens: return "output tokens per minute";
  }
  return "unknown";
}

std::int64_t RateAmount::of(RateKind kind) const noexcept {
  switch (kind) {
    case RateKind::requests: return requests;
    case RateKind::tokens: {
      std::int64_t sum = 0;
      return __builtin_add_overflow(input_tokens, output_tokens, &sum) ? INT64_MAX : sum;
    }
    case RateKind::input_tokens: return input_tokens;
    case RateKind::output_tokens: return output_tokens;
  }
  return 0;
}

// ---- One bucket ----------------------------------------------------------------------------------------------------

RateBucket::RateBucket(std::int64_t per_minute, Duration burst) noexcept
    : limit_(std::max(per_minute, std::int64_t{0})), burst_(std::clamp(burst, Duration::zero(), kMinute)) {}

/// How long `amount` takes to refill.
Duration RateBucket::cost(std::int64_t amount) const noexcept {
  return scale(std::max(amount, std::int64_t{0}), kMinute.count(), limit_, kDebtMax);
}

/// How far from full the bucket can be before it is empty. It always holds at least one unit.
Duration RateBucket::depth() const noexcept { return std::max(burst_, cost(1)); }

void RateBucket::look(TimePoint now) noexcept {
  if (owed_ == Duration::zero()) return;
  full_at_ = std::max(full_at_, now) + owed_;
  owed_ = Duration::zero();
}

TimePoint RateBucket::ready_at(std::int64_t amount, TimePoint now) noexcept {
  if (limit_ == 0 || amount <= 0) return TimePoint::min();
  look(now);
  if (full_at_ <= now) return TimePoint::min();
  return full_at_ - (depth() - std::min(cost(amount), depth()));
}

void RateBucket::take(std::int64_t amount, TimePoint now) noexcept {
  if (limit_ == 0 || amount <= 0) return;
  look(now);
  if (full_at_ <= now) last_full_ = now;
  full_at_ = std::max(full_at_, now) + cost(amount);
}

void RateBucket::charge(std::int64_t amount) noexcept {
  if (limit_ != 0) owed_ = std::min(owed_ + cost(amount), kDebtMax);
}

void RateBucket::give_back(std::int64_t amount, TimePoint taken_at) noexcept {
  if (limit_ != 0 && taken_at >= last_full_ && full_at_ != TimePoint::min()) full_at_ -= cost(amount);
}

void RateBucket::set_limit(std::int64_t per_minute, TimePoint now) noexcept {
  if (per_minute <= 0 || per_minute == limit_) return;
  look(now);
  if (limit_ != 0 && full_at_ > now) full_at_ = now + scale((full_at_ - now).count(), limit_, per_minute, kDebtMax);
  limit_ = per_minute;
}

void RateBucket::report(const RateReport& report, TimePoint now) noexcept {
  if (limit_ == 0 || !report.remaining || *report.remaining < 0) return;
  look(now);
  Duration until_full = depth() - cost(*report.remaining);
  // A reset beyond a minute's refill: a longer window is used up, and nothing is admitted before its last minute.
  if (*report.remaining == 0 && report.reset) until_full += std::clamp(*report.reset - kMinute, Duration(), kDebtMax);
  full_at_ = std::max(full_at_, now + until_full);
}

std::int64_t RateBucket::available(TimePoint now) noexcept {
  if (limit_ == 0) return 0;
  look(now);
  const Duration free = depth() - (full_at_ > now ? full_at_ - now : Duration::zero());
  __extension__ using Wide = __int128;
  const Wide product = Wide{free.count()} * limit_;
  const Wide minute = kMinute.count();
  return static_cast<std::int64_t>(product >= 0 ? product / minute : -((-product + minute - 1) / minute));
}

// ---- All buckets, the pause and the ramp ---------------------------------------------------------------------------

RateCore::RateCore(const RateLimits& limits) noexcept : limits_(limits) {
  limits_.ramp_step = std::clamp(limits.ramp_step, Duration::zero(), kRampStepMax);
  limits_.ramp_steps = std::clamp(limits.ramp_steps, 0, kRampStepsMax);
  for (const RateKind kind : kRateKinds) bucket(kind) = RateBucket(configured(limits, kind), limits.burst);
}

Result<> RateCore::check(const RateAmount& amount) const {
  if (amount.requests < 0 || amount.input_tokens < 0 || amount.output_tokens < 0) {
    return fail(Errc::invalid, "a negative amount can't be admitted");
  }
  for (const RateKind kind : kRateKinds) {
    const std::int64_t limit = per_minute(kind);
    if (limit == 0 || amount.of(kind) <= limit) continue;
    return fail(Errc::invalid, std::to_string(amount.of(kind)) + " at once can never be admitted: the limit is " +
                                   std::to_string(limit) + " " + std::string(to_string(kind)));
  }
  return {};
}

/// One request at the end of the pause, two in the next step, four in the one after: the k-th waits ⌊log₂(k + 1)⌋
/// steps.
TimePoint RateCore::ramp_ready() const noexcept {
  if (paused_until_ == TimePoint::min()) return paused_until_;
  const int step = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(admitted_since_pause_) + 1)) - 1;
  return paused_until_ + std::min(step, limits_.ramp_steps) * limits_.ramp_step;
}

TimePoint RateCore::ready_at(const RateAmount& amount, TimePoint now) noexcept {
  TimePoint ready = ramp_ready();
  for (const RateKind kind : kRateKinds) ready = std::max(ready, bucket(kind).ready_at(amount.of(kind), now));
  return ready;
}

std::string_view RateCore::waits_for(const RateAmount& amount, TimePoint now) noexcept {
  const TimePoint ready = ready_at(amount, now);
  if (ready <= now) return {};
  if (paused_until_ == ready) return "the pause";
  if (ramp_ready() == ready) return "the ramp";
  for (const RateKind kind : kRateKinds) {
    if (bucket(kind).ready_at(amount.of(kind), now) == ready) return to_string(kind);
  }
  return {};
}

bool RateCore::take(const RateAmount& amount, TimePoint now) noexcept {
  if (ready_at(amount, now) > now) return false;
  for (const RateKind kind : kRateKinds) bucket(kind).take(amount.of(kind), now);
  admitted_since_pause_ = std::min<std::int64_t>(admitted_since_pause_ + amount.requests, std::int64_t{1} << 32);
  return true;
}

void RateCore::settle(const RateAmount& taken, const RateAmount& used, TimePoint taken_at) noexcept {
  const RateAmount counted{.requests = std::max(used.requests, std::int64_t{0}),
                           .input_tokens = std::max(used.input_tokens, std::int64_t{0}),
                           .output_tokens = std::max(used.output_tokens, std::int64_t{0})};
  for (const RateKind kind : kRateKinds) {
    const std::int64_t more = counted.of(kind) - taken.of(kind);
    if (more > 0) bucket(kind).charge(more);
    if (more < 0) bucket(kind).give_back(-more, taken_at);
  }
}

void RateCore::give_back(const RateAmount& taken, TimePoint taken_at) noexcept {
  for (const RateKind kind : kRateKinds) bucket(kind).give_back(taken.of(kind), taken_at);
  if (taken_at >= paused_until_)
    admitted_since_pause_ = std::max(admitted_since_pause_ - taken.requests, std::int64_t{0});
}

void RateCore::pause_until(TimePoint when) noexcept {
  if (when <= paused_until_) return;
  paused_until_ = std::min(when, kLatest);
  admitted_since_pause_ = 0;
}

void RateCore::correct(RateKind kind, const RateReport& report, TimePoint now) noexcept {
  if (report.limit && *report.limit <= 0) return;
  if (report.limit) {
    const std::int64_t own = configured(limits_, kind);
    if (bucket(kind).per_minute() == 0) bucket(kind) = RateBucket(*report.limit, limits_.burst);
    bucket(kind).set_limit(own > 0 ? std::min(own, *report.limit) : *report.limit, now);
  }
  bucket(kind).report(report, now);
}

}  // namespace stint
