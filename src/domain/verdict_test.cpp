#include "domain/verdict.hpp"

#include <gtest/gtest.h>

namespace stint::domain {
namespace {

using namespace std::chrono_literals;

Outcome outcome(OutcomeKind kind) {
  Outcome outcome;
  outcome.kind = kind;
  outcome.message = "why";
  return outcome;
}
VerdictFacts facts(OnCrash on_crash = OnCrash::resume) {
  VerdictFacts facts;
  facts.on_crash = on_crash;
  return facts;
}

TEST(Verdict, a_final_outcome_ends_the_run) {
  EXPECT_EQ(judge(outcome(OutcomeKind::succeeded), facts()).settle, Settle::succeeded);
  EXPECT_EQ(judge(outcome(OutcomeKind::cancelled), facts()).settle, Settle::cancelled);
  EXPECT_EQ(judge(outcome(OutcomeKind::over_budget), facts()).settle, Settle::expired);
  for (const OutcomeKind kind :
       {OutcomeKind::agent_error, OutcomeKind::permission_denied, OutcomeKind::out_of_memory}) {
    EXPECT_EQ(judge(outcome(kind), facts()).settle, Settle::failed);
    EXPECT_FALSE(judge(outcome(kind), facts()).in_doubt);
  }
}

TEST(Verdict, names_the_rule_that_decided) {
  const auto rule_of = [](OutcomeKind kind, VerdictFacts known = facts(OnCrash::rerun)) {
    return judge(outcome(kind), known).rule;
  };
  EXPECT_EQ(rule_of(OutcomeKind::succeeded), VerdictRule::none);
  EXPECT_EQ(rule_of(OutcomeKind::cancelled), VerdictRule::cancelled);
  EXPECT_EQ(rule_of(OutcomeKind::over_budget), VerdictRule::budget);
  EXPECT_EQ(rule_of(OutcomeKind::agent_error), VerdictRule::permanent);
  EXPECT_EQ(rule_of(OutcomeKind::rate_limited), VerdictRule::quota);
  EXPECT_EQ(rule_of(OutcomeKind::not_logged_in), VerdictRule::login);
  EXPECT_EQ(rule_of(OutcomeKind::crashed), VerdictRule::transient);
  EXPECT_EQ(rule_of(OutcomeKind::crashed, facts(OnCrash::doubt)), VerdictRule::effects);
  EXPECT_EQ(rule_of(OutcomeKind::api_error), VerdictRule::transient);
  VerdictFacts last = facts(OnCrash::rerun);
  last.number = last.attempts_max;
  EXPECT_EQ(rule_of(OutcomeKind::crashed, last), VerdictRule::attempts);
  VerdictFacts used = facts(OnCrash::rerun);
  used.retries_used_up = true;
  EXPECT_EQ(rule_of(OutcomeKind::api_error, used), VerdictRule::retries);
  Outcome away = outcome(OutcomeKind::api_error);
  away.unreachable = true;
  EXPECT_EQ(judge(away, facts()).rule, VerdictRule::unreachable);
  EXPECT_EQ(judge_open_call(outcome(OutcomeKind::succeeded)).rule, VerdictRule::open_call);
  EXPECT_EQ(judge_starved(outcome(OutcomeKind::agent_error)).rule, VerdictRule::starved);
  EXPECT_EQ(judge_handed_back(outcome(OutcomeKind::cancelled), facts(OnCrash::rerun)).rule, VerdictRule::handed_back);
  for (const VerdictRule rule : kVerdictRules) EXPECT_EQ(parse_verdict_rule(to_string(rule)), rule);
}

TEST(Verdict, an_attempt_whose_end_was_not_seen_is_in_doubt) {
  EXPECT_TRUE(judge(outcome(OutcomeKind::in_doubt), facts(OnCrash::rerun)).in_doubt);
}

TEST(Verdict, an_end_within_a_call_that_must_not_be_repeated_is_in_doubt_whatever_the_outcome) {
  for (const OutcomeKind kind : {OutcomeKind::succeeded, OutcomeKind::cancelled, OutcomeKind::over_budget,
                                 OutcomeKind::rate_limited, OutcomeKind::agent_error, OutcomeKind::crashed}) {
    const Verdict verdict = judge_open_call(outcome(kind));
    EXPECT_TRUE(verdict.in_doubt);
    EXPECT_EQ(verdict.settle, Settle::retry) << "the store turns a retry with the effects mark into in doubt";
    EXPECT_EQ(verdict.why, "why; it ended during a call that must not be repeated");
  }
}

TEST(Verdict, on_crash_decides_after_a_crash) {
  Outcome crash = outcome(OutcomeKind::crashed);
  EXPECT_EQ(judge(crash, facts(OnCrash::rerun)).settle, Settle::retry);
  EXPECT_FALSE(judge(crash, facts(OnCrash::rerun)).in_doubt);
  EXPECT_TRUE(judge(crash, facts(OnCrash::doubt)).in_doubt);
  EXPECT_TRUE(judge(crash, facts(OnCrash::resume)).in_doubt) << "there is no conversation to continue";
  crash.conversation = "c";
  EXPECT_TRUE(judge(crash, facts(OnCrash::resume)).resumes);
  EXPECT_FALSE(judge(crash, facts(OnCrash::resume)).in_doubt);
  EXPECT_TRUE(judge(crash, facts(OnCrash::doubt)).in_doubt) << "a person decides";
}

TEST(Verdict, attempts_are_counted) {
  VerdictFacts last = facts(OnCrash::rerun);
  last.number = last.attempts_max = 2;
  const Verdict verdict = judge(outcome(OutcomeKind::crashed), last);
  EXPECT_EQ(verdict.settle, Settle::failed);
  EXPECT_EQ(verdict.why, "why; that was attempt 2 of 2");
}

TEST(Verdict, an_account_without_retries_left_is_paused_instead) {
  Outcome failing = outcome(OutcomeKind::api_error);
  failing.http_status = 529;
  VerdictFacts down = facts();
  down.number = down.attempts_max = 1;
  EXPECT_EQ(judge(failing, down).settle, Settle::failed);
  down.retries_used_up = true;
  EXPECT_EQ(judge(failing, down).settle, Settle::park) << "the next attempt is a probe, and uses up no attempt";
  EXPECT_TRUE(judge(failing, down).pauses_account);
  failing.retry_after = 90s;
  EXPECT_EQ(judge(failing, down).park_for, Duration(90s));
  failing.http_status = 400;
  EXPECT_EQ(judge(failing, down).settle, Settle::failed) << "that is not the provider's fault";
}

TEST(Verdict, a_rate_limit_parks_the_run_with_its_account_until_the_window_opens) {
  Outcome limited = outcome(OutcomeKind::rate_limited);
  limited.resets_at = WallTime(5h);
  VerdictFacts now = facts();
  now.wall_now = WallTime(1h);
  const Verdict verdict = judge(limited, now);
  EXPECT_EQ(verdict.settle, Settle::park);
  EXPECT_TRUE(verdict.pauses_account);
  EXPECT_EQ(verdict.park_for, 4h + 5s);
  limited.resets_at.reset();
  EXPECT_EQ(judge(limited, now).park_for, 60s);
  limited.retry_after = 7s;
  EXPECT_EQ(judge(limited, now).park_for, 7s);
}

TEST(Verdict, an_expired_login_waits_for_a_person_and_an_unreachable_provider_for_a_moment) {
  const Verdict login = judge(outcome(OutcomeKind::not_logged_in), facts());
  EXPECT_EQ(login.settle, Settle::park);
  EXPECT_FALSE(login.park_for);
  Outcome refused = outcome(OutcomeKind::api_error);
  refused.unreachable = true;
  const Verdict unreachable = judge(refused, facts());
  EXPECT_EQ(unreachable.settle, Settle::park);
  EXPECT_TRUE(unreachable.park_for);
  EXPECT_TRUE(unreachable.pauses_account);
}

TEST(Verdict, a_broken_connection_is_retried_and_pauses_nothing) {
  const Outcome broken = outcome(OutcomeKind::api_error);
  EXPECT_EQ(judge(broken, facts()).settle, Settle::retry);
  EXPECT_FALSE(judge(broken, facts()).pauses_account);
  VerdictFacts last = facts();
  last.number = last.attempts_max;
  EXPECT_EQ(judge(broken, last).settle, Settle::failed) << "like any other failure of the provider it uses up attempts";
  last.retries_used_up = true;
  EXPECT_EQ(judge(broken, last).settle, Settle::park) << "an outage: the account is probed";
}

TEST(Verdict, an_attempt_with_effects_continues_its_conversation_or_is_in_doubt) {
  for (const OutcomeKind kind : {OutcomeKind::rate_limited, OutcomeKind::not_logged_in, OutcomeKind::api_error}) {
    Outcome met = outcome(kind);
    VerdictFacts used = facts();
    used.tools_used = true;
    EXPECT_TRUE(judge(met, used).in_doubt);
    met.conversation = "c";
    EXPECT_TRUE(judge(met, used).resumes);
    EXPECT_FALSE(judge(met, used).in_doubt);
    used.tools_used = false;
    EXPECT_FALSE(judge(met, used).resumes) << "it had no effects: it may start from the beginning";
    used.tools_used = true;
    used.on_crash = OnCrash::rerun;
    met.conversation.clear();
    EXPECT_FALSE(judge(met, used).in_doubt);
  }
}

TEST(Verdict, only_some_statuses_of_a_provider_are_retried) {
  for (const int status : {500, 502, 529, 408}) {
    Outcome met = outcome(OutcomeKind::api_error);
    met.http_status = status;
    met.retry_after = 3s;
    const Verdict verdict = judge(met, facts());
    EXPECT_EQ(verdict.settle, Settle::retry) << status;
    EXPECT_EQ(verdict.retry_after, 3s);
  }
  for (const int status : {400, 401, 403, 404, 422}) {
    Outcome met = outcome(OutcomeKind::api_error);
    met.http_status = status;
    EXPECT_EQ(judge(met, facts()).settle, Settle::failed) << status;
  }
}

TEST(Verdict, a_run_handed_back_by_a_draining_node_uses_up_no_attempt) {
  Outcome ended = outcome(OutcomeKind::cancelled);
  EXPECT_EQ(judge_handed_back(ended, facts(OnCrash::rerun)).settle, Settle::hand_back);
  EXPECT_EQ(judge_handed_back(ended, facts(OnCrash::resume)).settle, Settle::hand_back) << "it had no effects";
  EXPECT_TRUE(judge_handed_back(ended, facts(OnCrash::doubt)).in_doubt);
  VerdictFacts used = facts(OnCrash::resume);
  used.tools_used = true;
  EXPECT_TRUE(judge_handed_back(ended, used).in_doubt);
  ended.conversation = "c";
  EXPECT_TRUE(judge_handed_back(ended, used).resumes);
  EXPECT_EQ(judge_handed_back(outcome(OutcomeKind::succeeded), used).settle, Settle::succeeded);
}

}  // namespace
}  // namespace stint::domain
