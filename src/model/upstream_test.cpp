#include "model/upstream.hpp"

#include "model/upstream_test_support.hpp"

#include <memory>
#include <vector>

namespace stint::model {
namespace {

using namespace std::chrono_literals;

class UpstreamTest : public ::testing::Test {
 protected:
  ~UpstreamTest() override {
    held_.clear();
    world_.sim.settle();
  }
  void make(const UpstreamOptions& options) {
    upstream_ = std::make_unique<Upstream>(world_.sim, world_.system, test_key(), options,
                                           [this](const Upstream&, const Pause& pause) { pauses_.push_back(pause); });
    scope_ = std::make_unique<RootScope>(world_.sim, ScopeOptions{.cancel_on_error = false});
  }
  /// Admits one call and keeps its admission, or its error.
  void admit(CallEstimate estimate = {}, AdmitOptions options = {}) {
    scope_->spawn([this, estimate, options]() -> Task<> {
      Result<Admission> admission = co_await upstream_->admit(estimate, options);
      if (admission) {
        held_.push_back(std::move(*admission));
      } else {
        errors_.push_back(admission.error());
      }
    });
  }
  static UpstreamOptions with_concurrency(std::uint32_t limit) {
    UpstreamOptions options;
    options.concurrency.initial = limit;
    return options;
  }
  void expect_nothing_lost() const {
    const UpstreamCounts& counts = upstream_->counts();
    EXPECT_EQ(counts.started - counts.ended - upstream_->active(), 0U);
  }
  Deadline in(Duration duration) const { return Deadline(world_.sim.now() + duration); }

  SimulatedSystem world_{1, Simulator::Order::fifo};
  std::vector<Pause> pauses_;
  std::unique_ptr<Upstream> upstream_;
  std::vector<Admission> held_;
  std::vector<Error> errors_;
  std::unique_ptr<RootScope> scope_;
};

TEST_F(UpstreamTest, admits_up_to_the_adaptive_limit_and_then_in_order) {
  make(with_concurrency(2));
  for (int i = 0; i < 5; ++i) admit();
  world_.sim.run_ready();
  ASSERT_EQ(held_.size(), 2U);
  EXPECT_EQ(upstream_->waiting(), 3U);
  held_.clear();
  world_.sim.run_ready();
  ASSERT_EQ(held_.size(), 2U);
  EXPECT_EQ(held_[0].turn(), 3U);
  EXPECT_EQ(held_[1].turn(), 4U);
  held_.clear();
  world_.sim.run_ready();
  held_.clear();
  expect_nothing_lost();
}

TEST_F(UpstreamTest, a_repeated_call_keeps_its_turn) {
  make(with_concurrency(1));
  for (int i = 0; i < 3; ++i) admit();
  world_.sim.run_ready();
  ASSERT_EQ(held_.size(), 1U);
  admit({}, {.turn = held_[0].turn()});
  world_.sim.run_ready();
  held_.clear();
  world_.sim.run_ready();
  ASSERT_EQ(held_.size(), 1U);
  EXPECT_EQ(held_[0].turn(), 1U);
  for (int i = 0; i < 3; ++i) {
    held_.clear();
    world_.sim.run_ready();
  }
}

TEST_F(UpstreamTest, a_throttle_holds_all_callers_then_one_probe_then_a_ramp) {
  make(with_concurrency(100));
  admit();
  world_.sim.run_ready();
  held_[0].failed(throttled(10s));
  held_.clear();
  for (int i = 0; i < 20; ++i) admit();
  world_.sim.advance(9990ms);
  EXPECT_TRUE(held_.empty());
  world_.sim.advance(20ms);
  ASSERT_EQ(held_.size(), 1U);
  EXPECT_TRUE(held_[0].is_probe());
  world_.sim.advance(10s);
  EXPECT_EQ(held_.size(), 1U) << "while the probe is under way";
  held_[0].accepted();
  world_.sim.run_ready();
  EXPECT_EQ(held_.size(), 2U);
  world_.sim.advance(1001ms);
  EXPECT_EQ(held_.size(), 4U);
  world_.sim.advance(1s);
  EXPECT_EQ(held_.size(), 8U);
  world_.sim.advance(1s);
  EXPECT_EQ(held_.size(), 16U);
  world_.sim.advance(1min);
  EXPECT_EQ(held_.size(), 20U);
  ASSERT_EQ(pauses_.size(), 1U);
  EXPECT_EQ(pauses_[0].cause, PauseCause::throttle);
}

TEST_F(UpstreamTest, what_can_not_fit_into_its_deadline_fails_now_with_the_last_error_and_the_delay) {
  make(with_concurrency(1));
  admit();
  world_.sim.run_ready();
  admit({}, {.deadline = in(5s)});
  world_.sim.run_ready();
  held_[0].failed(throttled(10s));
  world_.sim.run_ready();
  ASSERT_EQ(errors_.size(), 1U) << "one that waits";
  admit({}, {.deadline = in(5s)});
  world_.sim.run_ready();
  ASSERT_EQ(errors_.size(), 2U) << "one that comes";
  for (const Error& error : errors_) {
    EXPECT_NE(error.describe().find("429"), std::string::npos) << error.describe();
    EXPECT_EQ(error.retry_after(), 10s);
  }
  EXPECT_EQ(world_.since_begin(), 0s);
}

TEST_F(UpstreamTest, no_wait_outlasts_its_deadline) {
  make(with_concurrency(1));
  admit();
  admit({}, {.deadline = in(3s)});
  world_.sim.advance(2990ms);
  EXPECT_TRUE(errors_.empty());
  world_.sim.advance(20ms);
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_EQ(errors_[0], Errc::timed_out);
}

TEST_F(UpstreamTest, a_spend_limit_fails_all_callers_until_a_person_resumes) {
  make(with_concurrency(1));
  for (int i = 0; i < 3; ++i) admit();
  world_.sim.run_ready();
  held_[0].failed(failure_of(FailureKind::spend_limit, 429));
  held_.clear();
  world_.sim.run_ready();
  EXPECT_EQ(errors_.size(), 2U);
  ASSERT_TRUE(upstream_->pause().has_value());
  EXPECT_EQ(upstream_->pause()->failure.kind, FailureKind::spend_limit);
  EXPECT_FALSE(upstream_->pause()->until);
  upstream_->resume();
  admit();
  admit();
  world_.sim.run_ready();
  ASSERT_EQ(held_.size(), 1U);
  EXPECT_TRUE(held_[0].is_probe());
  held_[0].succeeded();
  world_.sim.advance(2s);
  EXPECT_EQ(held_.size(), 2U);
}

TEST_F(UpstreamTest, a_large_call_delays_those_behind_it) {
  UpstreamOptions options = with_concurrency(100);
  options.rates.input_tokens_per_minute = 6000;  // 1000 at once, then 100 a second
  make(options);
  admit({.input_tokens = 900});
  admit({.input_tokens = 600});
  admit({.input_tokens = 100});
  world_.sim.advance(4900ms);
  EXPECT_EQ(held_.size(), 1U);
  world_.sim.advance(200ms);
  EXPECT_EQ(held_.size(), 2U);
  world_.sim.advance(1s);
  EXPECT_EQ(held_.size(), 3U);
}

TEST_F(UpstreamTest, settling_and_refusals_return_tokens_but_not_the_request) {
  UpstreamOptions options = with_concurrency(100);
  options.rates.output_tokens_per_minute = 6000;
  options.rates.requests_per_minute = 60;
  make(options);
  admit({.output_tokens = 1000});
  world_.sim.run_ready();
  EXPECT_EQ(upstream_->available(RateKind::output_tokens), 0);
  held_[0].settle({.out = 100});
  EXPECT_EQ(upstream_->available(RateKind::output_tokens), 900);
  held_.clear();
  admit({.output_tokens = 900});
  world_.sim.run_ready();
  held_[0].failed(overloaded());
  EXPECT_EQ(upstream_->available(RateKind::output_tokens), 900);
  EXPECT_EQ(upstream_->available(RateKind::requests), 8);
  held_.clear();
  admit({.output_tokens = 900});
  world_.sim.run_ready();
  held_.clear();  // cancelled: the estimate stands
  EXPECT_EQ(upstream_->available(RateKind::output_tokens), 0);
  EXPECT_EQ(upstream_->available(RateKind::requests), 7);
}

TEST_F(UpstreamTest, headers_of_the_provider_fill_the_buckets_in) {
  make(with_concurrency(100));
  admit();
  world_.sim.run_ready();
  RateLimits limits;
  limits.requests = {.limit = 60, .remaining = 0, .reset = 10s};
  held_[0].report(limits);
  admit();
  world_.sim.advance(900ms);
  EXPECT_EQ(held_.size(), 1U);
  world_.sim.advance(200ms);
  EXPECT_EQ(held_.size(), 2U);
}

TEST_F(UpstreamTest, overload_lowers_the_limit_and_success_raises_it) {
  make(with_concurrency(10));
  for (int i = 0; i < 10; ++i) admit();
  world_.sim.run_ready();
  held_[0].failed(overloaded());
  EXPECT_EQ(upstream_->concurrency(), 7U);
  held_[1].failed(overloaded());
  EXPECT_EQ(upstream_->concurrency(), 7U) << "it began under the old limit";
  held_.clear();
  for (int i = 0; i < 7; ++i) admit();
  world_.sim.advance(1s);
  held_[0].succeeded();
  EXPECT_EQ(upstream_->concurrency(), 8U);
}

TEST_F(UpstreamTest, a_cancelled_head_wakes_those_it_blocked) {
  UpstreamOptions options = with_concurrency(10);
  options.rates.input_tokens_per_minute = 6000;
  make(options);
  admit({.input_tokens = 500});
  world_.sim.run_ready();
  RootScope other(world_.sim);
  other.spawn([this]() -> Task<> { (void)co_await upstream_->admit({.input_tokens = 1000}); });
  world_.sim.run_ready();
  admit({.input_tokens = 100});
  world_.sim.run_ready();
  EXPECT_EQ(held_.size(), 1U);
  other.cancel();
  world_.sim.run_ready();
  EXPECT_EQ(held_.size(), 2U);
}

TEST_F(UpstreamTest, a_call_that_is_stopped_just_as_it_is_admitted_costs_nothing) {
  UpstreamOptions options = with_concurrency(1);
  options.rates.tokens_per_minute = 600;
  make(options);
  admit();
  world_.sim.run_ready();
  RootScope other(world_.sim);
  other.spawn([this]() -> Task<> { (void)co_await upstream_->admit({.input_tokens = 100}); });
  world_.sim.run_ready();
  held_.clear();  // admits it
  EXPECT_EQ(upstream_->active(), 1U);
  other.cancel();
  world_.sim.run_ready();
  EXPECT_EQ(upstream_->active(), 0U);
  EXPECT_EQ(upstream_->available(RateKind::tokens), 100);
  expect_nothing_lost();
}

TEST_F(UpstreamTest, a_settlement_before_a_failure_admits_no_call) {
  UpstreamOptions options = with_concurrency(2);
  options.rates.tokens_per_minute = 600;
  make(options);
  admit({.input_tokens = 100});
  admit({.input_tokens = 100});
  world_.sim.run_ready();
  ASSERT_EQ(held_.size(), 1U);
  held_[0].settle({});
  held_[0].failed(throttled(10s));
  world_.sim.advance(9s);
  EXPECT_EQ(held_.size(), 1U);
}

TEST_F(UpstreamTest, a_wait_has_its_reason_as_fields) {
  UpstreamOptions options = with_concurrency(2);
  options.rates.requests_per_minute = 6;
  make(options);
  AdmitWatch first;
  AdmitWatch second;
  EXPECT_FALSE(first.reason());
  admit();
  admit({}, {.watch = &first});
  admit({}, {.watch = &second});
  world_.sim.run_ready();
  ASSERT_TRUE(first.reason() && second.reason());
  EXPECT_EQ(first.reason()->cause, domain::WaitCause::limit);
  EXPECT_EQ(first.reason()->limit, "account:anthropic/big: requests per minute");
  EXPECT_EQ(first.reason()->until, world_.system.wall_now() + 10s);
  EXPECT_EQ(first.reason()->ahead, 0U);
  EXPECT_EQ(second.reason()->ahead, 1U);
  held_[0].failed(throttled(30s));
  ASSERT_TRUE(first.reason());
  EXPECT_EQ(first.reason()->cause, domain::WaitCause::paused);
  EXPECT_EQ(first.reason()->limit, "account:anthropic");
  EXPECT_EQ(first.reason()->until, world_.system.wall_now() + 30s);
  held_.clear();
  world_.sim.advance(31s);
  EXPECT_FALSE(first.reason());
  ASSERT_TRUE(second.reason());
  EXPECT_EQ(second.reason()->cause, domain::WaitCause::probe);
  held_[0].succeeded();
  held_.clear();
  world_.sim.advance(1min);
  EXPECT_FALSE(second.reason());
}

TEST_F(UpstreamTest, an_estimate_above_a_minute_is_admitted_when_the_bucket_is_full) {
  UpstreamOptions options;
  options.rates.tokens_per_minute = 600;
  make(options);
  admit({.input_tokens = 1'000'000, .output_tokens = 8192});
  world_.sim.run_ready();
  EXPECT_EQ(held_.size(), 1U);
}

TEST_F(UpstreamTest, what_was_not_sent_costs_nothing) {
  UpstreamOptions options;
  options.rates.tokens_per_minute = 600;
  make(options);
  admit({.input_tokens = 100});
  world_.sim.run_ready();
  held_[0].not_sent();
  EXPECT_EQ(upstream_->available(RateKind::tokens), 100);
  expect_nothing_lost();
}

}  // namespace
}  // namespace stint::model
