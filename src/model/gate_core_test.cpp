#include "model/gate_core.hpp"

#include "model/upstream_test_support.hpp"

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using Change = GateCore::Change;

class GateCoreTest : public ::testing::Test {
 protected:
  static TimePoint at(Duration since) { return TimePoint(since); }
  Change fail_at(Duration since, const Failure& failure) { return fail_as(gate_.pass(), since, failure); }
  Change fail_as(GateCore::Pass pass, Duration since, const Failure& failure) {
    return gate_.ended(pass, gate_signal(failure), &failure, at(since), 0);
  }
  GateCore gate_{GatePolicy()};
};

TEST_F(GateCoreTest, throttle_closes_for_its_window_and_one_probe_goes_first) {
  EXPECT_EQ(fail_at(0s, throttled(10s)), Change::closed);
  EXPECT_FALSE(gate_.can_pass(at(9999ms)));
  EXPECT_EQ(gate_.opens_at(), at(10s));
  ASSERT_TRUE(gate_.can_pass(at(10s)));
  const GateCore::Pass probe = gate_.pass();
  EXPECT_TRUE(probe.probe);
  EXPECT_FALSE(gate_.can_pass(at(11s))) << "a second probe";
  EXPECT_EQ(gate_.accepted(probe), Change::opened);
  EXPECT_TRUE(gate_.can_pass(at(11s)));
}

TEST_F(GateCoreTest, failed_probe_closes_again_and_waits_longer_each_time) {
  Duration now = 0s;
  Duration last{};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fail_at(now, server_error()), i < 4 ? Change::none : Change::closed);
  for (int i = 0; i < 4; ++i) {
    const Duration wait = *gate_.opens_at() - at(now);
    EXPECT_GT(wait, last);
    last = wait;
    now += wait;
    EXPECT_EQ(fail_at(now, server_error()), Change::closed);
  }
}

TEST_F(GateCoreTest, probe_that_was_cancelled_lets_the_next_call_probe) {
  fail_at(0s, throttled(1s));
  const GateCore::Pass probe = gate_.pass();
  EXPECT_EQ(gate_.ended(probe, GateSignal::ignored, nullptr, at(1s), 0), Change::none);
  ASSERT_TRUE(gate_.can_pass(at(1s)));
  EXPECT_TRUE(gate_.pass().probe);
}

TEST_F(GateCoreTest, refused_request_of_a_probe_shows_that_the_provider_works) {
  fail_at(0s, throttled(1s));
  EXPECT_EQ(fail_at(1s, failure_of(FailureKind::invalid, 400)), Change::opened);
}

TEST_F(GateCoreTest, calls_that_fail_together_make_one_pause) {
  const GateCore::Pass first = gate_.pass();
  const GateCore::Pass second = gate_.pass();
  const Failure quota = failure_of(FailureKind::quota, 429);
  EXPECT_EQ(fail_as(first, 0s, quota), Change::closed);
  const auto until = gate_.opens_at();
  EXPECT_EQ(fail_as(second, 1s, quota), Change::none);
  EXPECT_EQ(gate_.opens_at(), until);
}

TEST_F(GateCoreTest, older_call_prolongs_a_pause_but_never_shortens_it) {
  const GateCore::Pass first = gate_.pass();
  const GateCore::Pass second = gate_.pass();
  fail_at(0s, throttled(10s));
  EXPECT_EQ(fail_as(first, 1s, throttled(2s)), Change::none);
  EXPECT_EQ(fail_as(second, 1s, throttled(20s)), Change::closed);
  EXPECT_EQ(gate_.opens_at(), at(21s));
}

TEST_F(GateCoreTest, older_call_that_is_accepted_does_not_open_the_gate) {
  const GateCore::Pass older = gate_.pass();
  fail_at(0s, throttled(10s));
  EXPECT_EQ(gate_.accepted(older), Change::none);
  EXPECT_FALSE(gate_.can_pass(at(1s)));
}

TEST_F(GateCoreTest, spend_limit_and_credential_wait_for_a_person) {
  for (const FailureKind kind : {FailureKind::spend_limit, FailureKind::auth}) {
    GateCore gate{GatePolicy()};
    const Failure failure = failure_of(kind, 400);
    EXPECT_EQ(gate.ended(gate.pass(), gate_signal(failure), &failure, at(0s), 0), Change::closed);
    EXPECT_TRUE(gate.refuses(at(1000h)));
    EXPECT_FALSE(gate.can_pass(at(1000h)));
    EXPECT_EQ(gate.opens_at(), std::nullopt);
    gate.resume(at(1000h));
    EXPECT_TRUE(gate.pass().probe);
  }
}

TEST_F(GateCoreTest, answers_in_between_are_no_outage) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(fail_at(0s, server_error()), Change::none);
    gate_.accepted(gate_.pass());
  }
}

TEST_F(GateCoreTest, callers_wait_for_short_pauses_only) {
  fail_at(0s, throttled(1min));
  EXPECT_FALSE(gate_.refuses(at(1s)));
  gate_.pause_until(at(1h), failure_of(FailureKind::quota, 0));
  EXPECT_TRUE(gate_.refuses(at(1s)));
  EXPECT_FALSE(gate_.refuses(at(55min)));
  GateCore quota{GatePolicy()};
  const Failure day = failure_of(FailureKind::quota, 429, 1min);
  quota.ended(quota.pass(), gate_signal(day), &day, at(0s), 0);
  EXPECT_TRUE(quota.refuses(at(1s))) << "the run is parked, however soon the quota comes back";
}

TEST_F(GateCoreTest, names_every_cause) {
  for (const PauseCause cause : kPauseCauses) EXPECT_NE(to_string(cause), "unknown");
}

}  // namespace
}  // namespace stint::model
