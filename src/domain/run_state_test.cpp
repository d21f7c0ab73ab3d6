#include "domain/run_state.hpp"

#include <gtest/gtest.h>

#include <set>

namespace stint::domain {
namespace {

SettleFacts facts(Settle settle) {
  SettleFacts facts;
  facts.settle = settle;
  facts.on_crash = OnCrash::rerun;
  return facts;
}

TEST(RunState, parses_its_own_names) {
  for (const RunState state : kRunStates) EXPECT_EQ(parse_run_state(to_string(state)), state);
  for (const Resolution resolution : kResolutions) EXPECT_EQ(parse_resolution(to_string(resolution)), resolution);
  for (const Hold hold : {Hold::none, Hold::session, Hold::delay, Hold::backoff, Hold::quota, Hold::person}) {
    EXPECT_EQ(parse_hold(to_string(hold)), hold);
  }
  for (const char* const name : {"", "Queued", "queued ", "unknown"}) EXPECT_FALSE(parse_run_state(name)) << name;
}

TEST(AfterSettle, success_wins_over_a_late_cancel) {
  SettleFacts late = facts(Settle::succeeded);
  late.stop = Stop::cancelled;
  late.unsafe = true;
  EXPECT_EQ(after_settle(late), RunState::succeeded);
}

TEST(AfterSettle, an_unknown_effect_outranks_a_cancel_and_a_retry) {
  for (const Settle settle : {Settle::retry, Settle::park, Settle::hand_back, Settle::cancelled, Settle::lost}) {
    for (const Stop stop : kStops) {
      SettleFacts unknown = facts(settle);
      unknown.stop = stop;
      unknown.unsafe = true;
      EXPECT_EQ(after_settle(unknown), RunState::in_doubt) << to_string(settle);
    }
  }
}

TEST(AfterSettle, a_stop_decides_the_end_state) {
  for (const Settle settle : {Settle::failed, Settle::retry, Settle::park, Settle::hand_back, Settle::lost}) {
    SettleFacts stopped = facts(settle);
    stopped.stop = Stop::expired;
    EXPECT_EQ(after_settle(stopped), RunState::expired) << to_string(settle);
    stopped.stop = Stop::cancelled;
    EXPECT_EQ(after_settle(stopped), RunState::cancelled) << to_string(settle);
  }
}

TEST(AfterSettle, attempts_and_losses_have_separate_bounds) {
  SettleFacts retry = facts(Settle::retry);
  retry.attempt = 2;
  EXPECT_EQ(after_settle(retry), RunState::queued);
  retry.attempt = 3;
  EXPECT_EQ(after_settle(retry), RunState::failed);
  SettleFacts lost = facts(Settle::lost);
  lost.attempt = 3;
  lost.lost = 1;
  EXPECT_EQ(after_settle(lost), RunState::queued) << "a lost node uses up no attempt";
  lost.lost = 2;
  EXPECT_EQ(after_settle(lost), RunState::failed);
  lost.on_crash = OnCrash::doubt;
  lost.lost = 0;
  EXPECT_EQ(after_settle(lost), RunState::in_doubt);
}

TEST(AfterSettle, a_run_without_time_for_another_attempt_expires_now) {
  for (const Settle settle : {Settle::retry, Settle::hand_back, Settle::lost}) {
    SettleFacts late = facts(settle);
    late.expires_first = true;
    EXPECT_EQ(after_settle(late), RunState::expired) << to_string(settle);
  }
  SettleFacts park = facts(Settle::park);
  park.expires_first = true;
  EXPECT_EQ(after_settle(park), RunState::parked) << "the budget's clock stops while parked";
  park.deadline_first = true;
  EXPECT_EQ(after_settle(park), RunState::expired) << "the deadline's does not";
}

TEST(Transitions, contain_every_settlement) {
  SettleFacts all;
  for (const Settle settle : kSettles) {
    for (const Stop stop : kStops) {
      for (unsigned bits = 0; bits < 64; ++bits) {
        all.settle = settle;
        all.stop = stop;
        all.unsafe = (bits & 1U) != 0;
        all.expires_first = (bits & 2U) != 0;
        all.deadline_first = (bits & 4U) != 0;
        all.attempt = (bits & 8U) != 0 ? 3 : 1;
        all.lost = (bits & 16U) != 0 ? 2 : 0;
        all.on_crash = (bits & 32U) != 0 ? OnCrash::doubt : OnCrash::rerun;
        EXPECT_TRUE(is_transition(to_string(settle), RunState::running, after_settle(all))) << to_string(settle);
      }
    }
  }
}

TEST(Transitions, never_leave_an_end_state) {
  const std::set<std::string_view> causes = {
      "promoted",  "woken",   "answered",      "limit_resumed",  "claimed",         "unsafe",    "safe",
      "cancelled", "expired", "resolved_done", "resolved_rerun", "cancel_asked",    "succeeded", "failed",
      "retry",     "park",    "hand_back",     "lost",           "resolved_discard"};
  for (const RunState from : kRunStates) {
    if (!is_finished(from)) continue;
    for (const RunState to : kRunStates) {
      for (const std::string_view cause : causes) EXPECT_FALSE(is_transition(cause, from, to)) << cause;
    }
  }
}

TEST(Rank, a_step_of_priority_is_ten_minutes_of_lead) {
  EXPECT_EQ(rank_ms(600'000, 1), rank_ms(0, 0));
  EXPECT_LT(rank_ms(599'999, 1), rank_ms(0, 0));
  EXPECT_GT(rank_ms(0, -1), rank_ms(599'999, 0));
}

}  // namespace
}  // namespace stint::domain
