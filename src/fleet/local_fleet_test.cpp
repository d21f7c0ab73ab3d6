// LocalFleet over an engine in virtual time.
#include "fleet/local_fleet.hpp"

#include "engine/engine_world.hpp"

namespace stint::fleet {
namespace {

using namespace engine;

TEST_F(EngineTest, a_wait_for_a_run_that_is_handed_back_fails) {
  add_agent("long", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start(1);
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  std::vector<std::string> runs;
  for (int i = 0; i < 2; ++i) runs.push_back(submit("long"));
  std::map<std::string, Result<std::unique_ptr<RunView>>> answers;
  auto wait = [&](std::string id) -> Task<> { answers.emplace(id, co_await fleet.wait(id)); };
  for (const std::string& id : runs) scope_.spawn(wait(id));
  sim_.advance(1s);
  engine_->drain(10s);
  EXPECT_TRUE(get(fleet.health()).draining);
  sim_.advance(9s);
  EXPECT_TRUE(answers.empty());
  sim_.advance(1100ms);
  ASSERT_EQ(answers.size(), 2U) << "also the wait for a run that never began";
  for (const auto& [id, answer] : answers) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error(), Errc::unavailable);
    EXPECT_NE(answer.error().describe().find(id), std::string::npos);
  }
}

TEST_F(EngineTest, a_wait_ends_with_the_run_and_leaves_no_subscriber) {
  add_agent("good", OnCrash::rerun);
  add_agent("bad", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder& order) {
    Script script{.takes = order.agent == "good" ? Duration(1s) : Duration::zero(), .outcome = {}};
    script.outcome.kind = order.agent == "good" ? OutcomeKind::succeeded : OutcomeKind::agent_error;
    script.outcome.message = "broken";
    return script;
  };
  start(1);
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const std::string good = submit("good");
  std::optional<Result<std::unique_ptr<RunView>>> ended;
  TimePoint at;
  auto wait = [&]() -> Task<> {
    ended = co_await fleet.wait(good);
    at = sim_.now();
  };
  const TimePoint began = sim_.now();
  scope_.spawn(wait());
  sim_.advance(1min);
  ASSERT_TRUE(ended && *ended);
  EXPECT_EQ((**ended)->run.state, RunState::succeeded);
  EXPECT_LT(at - began, 1100ms) << "woken by the end, not by the next look";
  const auto failed = get(fleet.wait(submit("bad")));
  EXPECT_EQ(failed->run.state, RunState::failed);
  EXPECT_EQ(failed->run.error, "broken");
  EXPECT_EQ(get(fleet.wait(good))->run.state, RunState::succeeded) << "a run that has ended is read from the store";
  EXPECT_EQ(engine_->changes().subscribers(), 0U);
}

TEST_F(EngineTest, a_run_that_waits_for_a_limit_names_its_holders) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}, .tools = false}; };
  start();
  (void)get(store_.resize("agent:a", 2));
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const std::string first = submit("a"), second = submit("a");
  sim_.advance(90s);
  const std::string third = submit("a");
  const WhyView why = get(fleet.why(third));
  ASSERT_FALSE(why.reasons.empty());
  const domain::WaitReason& reason = why.reasons.front();
  EXPECT_EQ(reason.cause, domain::WaitCause::limit);
  EXPECT_EQ(reason.limit, "agent:a");
  EXPECT_EQ(reason.held, 2);
  EXPECT_EQ(reason.capacity, 2U);
  ASSERT_EQ(reason.holders.size(), 2U);
  EXPECT_EQ(reason.holders[0].run, first);
  EXPECT_EQ(reason.holders[1].run, second);
  EXPECT_EQ(reason.holders[0].agent, "a");
  EXPECT_EQ(system_.wall_now() - reason.holders[0].since.value(), 90s);
  const std::vector<LimitView> limits = get(fleet.limits());
  ASSERT_EQ(limits.size(), 1U);
  ASSERT_EQ(limits.front().holders.size(), 2U);
  const domain::LimitEntry& holder = limits.front().holders.front();
  EXPECT_EQ(holder.run, first);
  EXPECT_EQ(holder.agent, "a");
  EXPECT_EQ(system_.wall_now() - holder.since.value(), 90s);
  const FleetStatus status = get(fleet.status());
  EXPECT_EQ(status.limits.front().held, 2);
  EXPECT_TRUE(status.limits.front().holders.empty()) << "a status lists no runs";
  EXPECT_EQ(status.limits.front().waiting, 1U) << "but it counts those that wait";
  EXPECT_EQ(limits.front().waiting, 1U);
  EXPECT_EQ(reason.ahead, 0U);
  EXPECT_EQ(limits.front().home, "host");
}

TEST_F(EngineTest, call_limits_are_listed_and_resized) {
  add_agent("a");
  start(1, [](EngineOptions& options) { options.call_limits = {{"model", 2}}; });
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const auto permit = get(engine_->call_limits().acquire("model", 1));
  const std::vector<LimitView> limits = get(fleet.limits());
  const auto listed = std::ranges::find(limits, "model", &LimitView::name);
  ASSERT_NE(listed, limits.end());
  EXPECT_EQ(listed->home, "process");
  EXPECT_EQ(listed->capacity, 2U);
  EXPECT_EQ(listed->held, 1);
  get(fleet.resize_limit("model", 5));
  EXPECT_EQ(engine_->call_limits().find("model")->capacity, 5U);
}

TEST_F(EngineTest, a_run_kept_for_one_engine_is_taken_by_no_other_until_that_is_gone) {
  add_agent("a");
  const std::string id = "keptkeptkept";
  start(1, [&](EngineOptions& options) {
    options.only = id;
    options.only_agent = "a";
  });
  engine_->set_shortage(domain::Shortage());  // it is not to begin yet
  Engine rival({sim_, store_, *this, *this, run_codec_, system_}, EngineOptions(), registry_);
  auto carry = [&]() -> Task<> { (void)co_await rival.run(); };
  scope_.spawn(carry());
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  Submission submission;
  submission.id = id;
  submission.agent = "a";
  submission.kept = true;
  std::vector<Submission> submissions;
  submissions.push_back(std::move(submission));
  EXPECT_EQ(get(fleet.submit(std::move(submissions))).front()->id, id);
  sim_.advance(5min);
  EXPECT_EQ(look(id).state, RunState::queued);
  EXPECT_EQ(std::ranges::count_if(get(store_.nodes()), store::claims_any), 1) << "the rival";
  engine_->drain();
  sim_.advance(5s);
  EXPECT_EQ(look(id).state, RunState::succeeded) << "its keeper has left";
  rival.drain();
  sim_.advance(5s);
}

}  // namespace
}  // namespace stint::fleet
