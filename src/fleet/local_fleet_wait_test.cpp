// How an engine waits: for a limit that is paused or full, for a heavy request's turn, for an account that is probed.
#include "engine/engine_world.hpp"
#include "fleet/local_fleet.hpp"

namespace stint::fleet {
namespace {

using namespace engine;

/// `stint run`, with permits of the host and without: it polls the store rarely.
class OneRunWaits : public EngineTest, public testing::WithParamInterface<bool> {
 protected:
  void wait_behind(const std::function<void()>& block, const std::function<void()>& unblock) {
    add_agent("a", OnCrash::rerun);
    if (GetParam()) limit_.emplace("host", 4);
    (void)get(store_.define({registry_["a"].entry}));
    block();
    const std::string id = submit("a");
    start(1, [&](EngineOptions& options) {
      options.only = id;
      options.only_agent = "a";
    });
    sim_.advance(10s);
    EXPECT_EQ(look(id).state, RunState::queued);
    EXPECT_LT(store_.claims, 25U) << "in ten seconds";
    const std::uint64_t claims = store_.claims, finds = store_.finds;
    sim_.advance(1min);
    EXPECT_LT(store_.claims - claims, 70U) << "in a minute";
    EXPECT_LT(store_.finds - finds, 140U);
    unblock();
    sim_.advance(300ms);
    EXPECT_EQ(begun_[id], 1U) << "the store notified a change";
    sim_.advance(5s);
    EXPECT_EQ(look(id).state, RunState::succeeded);
  }
};
TEST_P(OneRunWaits, behind_a_paused_limit_does_not_spin) {
  wait_behind([&] { (void)get(store_.pause("agent:a", std::nullopt)); }, [&] { (void)get(store_.resume("agent:a")); });
}
TEST_P(OneRunWaits, behind_a_full_limit_does_not_spin) {
  (void)get(store_.resize("agent:a", 1));
  store::Claim holder;
  store::NodeNumber other{};
  const auto block = [&] {
    (void)submit("a");
    other = get(store_.enrol("other"));
    holder = get(store_.claim(other, "a", 1, "")).front();
    scope_.spawn([this, other]() -> Task<> {
      while (true) {
        co_await sleep_for(1s);
        (void)co_await store_.beat(other);
      }
    });
  };
  const auto unblock = [&] {
    store::Settlement end;
    end.attempt = holder.attempt_key();
    end.settle = domain::Settle::succeeded;
    (void)get(store_.settle(other, {end}));
  };
  wait_behind(block, unblock);
}
INSTANTIATE_TEST_SUITE_P(Permits, OneRunWaits, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "of_the_host" : "none"); });

/// A heavy request on a limit that lighter runs share and never leave free.
class Heavy : public EngineTest, public testing::WithParamInterface<bool> {};
TEST_P(Heavy, gets_its_turn_among_light_requests) {
  add_agent("light", OnCrash::rerun);
  add_agent("heavy", OnCrash::rerun);
  if (GetParam()) limit_.emplace("host", 20);
  registry_["light"].entry.limits.push_back({"gpu", 1});
  registry_["heavy"].entry.limits.push_back({"gpu", 3});
  std::size_t light = 0;
  decide_ = [&](const domain::WorkOrder& order) {
    light += order.agent == "light" ? 1 : 0;
    Script script{.takes = 1s + (light % 7) * 100ms, .outcome = {}};  // never all at once
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  (void)get(store_.resize("gpu", 4));
  start(8);
  for (int i = 0; i < 8; ++i) (void)submit("light");
  sim_.advance(2s);
  std::vector<std::string> heavy;
  for (int i = 0; i < 3; ++i) heavy.push_back(submit("heavy"));
  for (int i = 0; i < 600 && count(RunState::queued) > 0; ++i) {
    (void)submit("light");
    sim_.advance(100ms);
    if (std::ranges::all_of(heavy, [&](const std::string& id) { return look(id).state == RunState::succeeded; })) break;
  }
  for (const std::string& id : heavy) EXPECT_EQ(look(id).state, RunState::succeeded) << "within a minute";
  EXPECT_GT(light, 10U) << "and the light ones are served in between";
}
INSTANTIATE_TEST_SUITE_P(Permits, Heavy, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "of_the_host" : "none"); });

/// One rate limit, and runs that take hours: one run probes the account, more follow as soon as the provider answers.
TEST_F(EngineTest, an_account_opens_when_the_provider_answers_and_not_when_a_run_ends) {
  add_agent("a", OnCrash::resume, "account:x");
  int limited = 0;
  decide_ = [&](const domain::WorkOrder& order) {
    Script script{.takes = 2h, .outcome = {}, .uses = 100};
    script.answers_after = 30s;
    script.outcome.kind = OutcomeKind::succeeded;
    script.outcome.conversation = "c" + order.run;
    if (limited++ > 0) return script;
    script.takes = 1s;
    script.answers_after.reset();
    script.uses = 0;
    script.outcome.kind = OutcomeKind::rate_limited;
    script.outcome.retry_after = 10s;
    return script;
  };
  start(10);
  (void)submit("a");
  sim_.advance(2s);
  for (int i = 0; i < 8; ++i) (void)submit("a");
  sim_.advance(20s);
  EXPECT_EQ(count(RunState::running), 1U) << "the probe";
  sim_.advance(29s);
  EXPECT_GT(count(RunState::running), 1U) << "it was answered";
  sim_.advance(3min);
  EXPECT_EQ(count(RunState::running), 9U) << "long before the first has ended";
}

TEST_F(EngineTest, a_retry_keeps_the_priority_and_the_budgets_of_its_run) {
  add_agent("parent", OnCrash::rerun);
  add_agent("child", OnCrash::rerun);
  registry_["parent"].budget.tokens = 100;
  decide_ = [&](const domain::WorkOrder& order) {
    Script script{.takes = order.agent == "parent" ? Duration(1min) : Duration(1s), .outcome = {}, .uses = 30};
    script.outcome.kind = order.agent == "parent" ? OutcomeKind::succeeded : OutcomeKind::agent_error;
    return script;
  };
  start();
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const std::string parent = submit("parent");
  sim_.advance(1s);
  Submission submission;
  submission.agent = "child";
  submission.parent = parent;
  submission.priority = 5;
  std::vector<Submission> submissions;
  submissions.push_back(submission);
  const std::string child = get(fleet.submit(std::move(submissions))).front()->id;
  sim_.advance(10s);
  ASSERT_EQ(look(child).state, RunState::failed);
  const auto again = run_codec_.read_input(look(get(fleet.retry(child)).id).input);
  EXPECT_EQ(again->priority, 5);
  sim_.advance(10s);
  sim_.advance(10min);
  ASSERT_EQ(look(parent).state, RunState::succeeded);
  const auto later = run_codec_.read_input(look(get(fleet.retry(child)).id).input);
  EXPECT_EQ(later->priority, 5);
  ASSERT_EQ(later->budgets_above.size(), 1U) << "also when its parent has ended";
  EXPECT_EQ(later->budgets_above.front().run, parent);
  EXPECT_LE(later->budget.tokens.value_or(1000), 100 - 30 - 30 - 30) << "what the family has left";
}

}  // namespace
}  // namespace stint::fleet
