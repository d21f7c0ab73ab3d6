// Buckets against a provider's view: a list of all admissions, checked in every window.
#include "stint/rate_core.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace stint {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kRateStart{1000h};

struct Admission {
  TimePoint when;
  std::int64_t amount;
};

/// In every window at most the burst plus the refill is admitted, plus the debt of one request larger than the burst.
void check_windows(const std::vector<Admission>& admissions, std::int64_t limit, Duration burst) {
  const double per_ns = static_cast<double>(limit) / static_cast<double>(Duration(1min).count());
  const double held = std::max(1.0, per_ns * static_cast<double>(burst.count()));
  for (std::size_t first = 0; first < admissions.size(); ++first) {
    double sum = 0;
    for (std::size_t last = first; last < admissions.size(); ++last) {
      const double debt = std::max(0.0, static_cast<double>(admissions[last].amount) - held);
      sum += static_cast<double>(admissions[last].amount);
      const double flow = per_ns * static_cast<double>((admissions[last].when - admissions[first].when).count());
      RC_ASSERT(sum <= held + flow + debt + 1e-6 * sum);
    }
  }
}

RC_GTEST_PROP(RateBucketProperty, no_window_admits_more_than_burst_and_rate, ()) {
  const auto limit = *rc::gen::inRange<std::int64_t>(1, 5000);
  const Duration burst = std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(0, 60'000));
  RateBucket bucket(limit, burst);
  TimePoint now = kRateStart;
  std::vector<Admission> admissions;
  const int steps = *rc::gen::inRange(1, 40);
  for (int step = 0; step < steps; ++step) {
    const auto amount = *rc::gen::inRange<std::int64_t>(1, limit + 1);
    if (*rc::gen::arbitrary<bool>()) now += std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(0, 30'000));
    const TimePoint ready = std::max(now, bucket.ready_at(amount, now));
    if (ready > now) {  // as early as possible, but no earlier
      RateBucket copy = bucket;
      RC_ASSERT(copy.ready_at(amount, ready - 1ns) > ready - 1ns);
    }
    now = ready;
    RC_ASSERT(bucket.ready_at(amount, now) <= now);
    bucket.take(amount, now);
    admissions.push_back({now, amount});
  }
  check_windows(admissions, limit, burst);
}

/// A naive bucket: a level that is refilled step by step.
class Naive {
 public:
  Naive(std::int64_t limit, Duration burst) : rate_(static_cast<double>(limit) / 60e9) {
    most_ = std::max(1.0, rate_ * static_cast<double>(burst.count()));
    level_ = most_;
  }
  void pass(Duration time) { level_ = std::min(most_, level_ + rate_ * static_cast<double>(time.count())); }
  void take(std::int64_t amount) { level_ -= static_cast<double>(amount); }
  void lower_to(std::int64_t amount) { level_ = std::min(level_, static_cast<double>(amount)); }
  double level() const { return level_; }
  double most() const { return most_; }

 private:
  double rate_, most_ = 0, level_ = 0;
};

RC_GTEST_PROP(RateBucketProperty, takes_charges_and_reports_agree_with_a_level, ()) {
  const auto limit = *rc::gen::inRange<std::int64_t>(1, 100'000);
  const Duration burst = std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(0, 60'000));
  RateBucket bucket(limit, burst);
  Naive naive(limit, burst);
  TimePoint now = kRateStart;
  const int steps = *rc::gen::inRange(0, 60);
  for (int step = 0; step < steps; ++step) {
    const Duration time = std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(0, 20'000));
    now += time;
    naive.pass(time);
    const auto amount = *rc::gen::inRange<std::int64_t>(1, limit + 1);
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        bucket.charge(amount);
        (void)bucket.available(now);  // looks
        naive.take(amount);
        break;
      case 1:
        bucket.report({.remaining = amount}, now);
        naive.lower_to(amount);
        break;
      default: {
        const bool fits = naive.level() >= std::min(static_cast<double>(amount), naive.most());
        const bool close = std::abs(naive.level() - std::min(static_cast<double>(amount), naive.most())) < 1e-3;
        if (!close) RC_ASSERT((bucket.ready_at(amount, now) <= now) == fits);
        if (bucket.ready_at(amount, now) > now) break;
        bucket.take(amount, now);
        naive.take(amount);
        break;
      }
    }
  }
}

RC_GTEST_PROP(RateCoreProperty, giving_back_at_once_leaves_no_trace, ()) {
  RateCore rate({.requests_per_minute = *rc::gen::inRange<std::int64_t>(0, 100),
                 .tokens_per_minute = *rc::gen::inRange<std::int64_t>(0, 10'000)});
  TimePoint now = kRateStart;
  const int steps = *rc::gen::inRange(0, 30);
  for (int step = 0; step < steps; ++step) {
    now += std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(0, 5'000));
    if (*rc::gen::inRange(0, 8) == 0) rate.pause_until(now + 1s);
    const RateAmount amount{.requests = *rc::gen::inRange<std::int64_t>(0, 3),
                            .input_tokens = *rc::gen::inRange<std::int64_t>(0, 500),
                            .output_tokens = *rc::gen::inRange<std::int64_t>(0, 500)};
    const RateAmount probe{.requests = 2, .input_tokens = 300, .output_tokens = 300};
    const auto requests = rate.available(RateKind::requests, now);
    const auto tokens = rate.available(RateKind::tokens, now);
    const TimePoint ready = std::max(now, rate.ready_at(probe, now));
    if (!rate.take(amount, now)) continue;
    if (*rc::gen::arbitrary<bool>()) continue;  // kept
    rate.give_back(amount, now);
    RC_ASSERT(rate.available(RateKind::requests, now) == requests);
    RC_ASSERT(rate.available(RateKind::tokens, now) == tokens);
    RC_ASSERT(std::max(now, rate.ready_at(probe, now)) == ready);
  }
}

/// After a pause, at most 2ⁿ⁺¹ − 1 requests are admitted within n + 1 steps, whatever the buckets hold.
RC_GTEST_PROP(RateCoreProperty, the_ramp_at_most_doubles, ()) {
  const int steps = *rc::gen::inRange(0, 8);
  RateCore rate({.ramp_step = 1s, .ramp_steps = steps});
  const TimePoint paused_until = kRateStart + 5s;
  rate.pause_until(paused_until);
  TimePoint now = kRateStart;
  std::int64_t gone = 0;
  const int calls = *rc::gen::inRange(0, 100);
  for (int call = 0; call < calls; ++call) {
    if (*rc::gen::inRange(0, 4) == 0) now += std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(0, 2'000));
    if (!rate.take({}, now)) {
      now = rate.ready_at({}, now);
      RC_ASSERT(rate.take({}, now));
    }
    ++gone;
    RC_ASSERT(now >= paused_until);
    const auto step = (now - paused_until) / Duration(1s);
    if (step < steps) RC_ASSERT(gone <= (std::int64_t{2} << step) - 1);
  }
}

}  // namespace
}  // namespace stint
