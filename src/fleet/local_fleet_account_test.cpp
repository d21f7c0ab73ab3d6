// Accounts: which one a run uses, what a pause blocks, and how the pause ends.
#include "engine/engine_world.hpp"
#include "fleet/local_fleet.hpp"

#include <algorithm>

namespace stint::fleet {
namespace {

using namespace engine;

class AccountTest : public EngineTest {
 protected:
  AccountTest() {
    add_agent("a", OnCrash::resume, "account:x");
    AgentSpec& spec = registry_["a"];
    spec.driver_accounts = {{"claude", "account:x"}, {"gemini", "account:y"}};
    AccountVariant variant{.entry = spec.entry, .account = "account:y"};
    variant.entry.name = variant_name("a", "account:y");
    std::ranges::replace(variant.entry.limits, store::LimitUse{"account:x", 1}, store::LimitUse{"account:y", 1});
    spec.variants.emplace(variant.entry.name, variant);
    decide_ = [this](const domain::WorkOrder& order) {
      EXPECT_EQ(order.agent, "a") << "drivers know no variants";
      Script script;
      script.outcome.kind = logged_in_ ? OutcomeKind::succeeded : OutcomeKind::not_logged_in;
      script.outcome.message = "log in";
      return script;
    };
    start();
    fleet_.emplace(LocalFleet::Parts{sim_, store_, run_codec_, system_,
                                     [this]() -> const AgentRegistry& { return registry_; }, engine_.get()},
                   LocalFleet::Options());
  }
  std::string ask(const std::string& driver) {
    std::vector<Submission> submissions(1);
    submissions[0].agent = "a";
    submissions[0].driver = driver;
    return get(fleet_->submit(std::move(submissions))).front().value().id;
  }
  RunState state(const std::string& id) { return look(id).state; }
  bool paused(const std::string& limit) {
    const auto limits = get(store_.limits());
    const auto found = std::ranges::find(limits, limit, &store::LimitState::name);
    return found != limits.end() && found->paused;
  }

  bool logged_in_ = false;
  std::optional<LocalFleet> fleet_;
};

TEST_F(AccountTest, answering_a_run_ends_the_pause_of_its_account) {
  const std::string first = ask("");
  sim_.advance(5s);
  ASSERT_EQ(state(first), RunState::parked);
  ASSERT_TRUE(paused("account:x"));
  const std::string behind = ask("");
  sim_.advance(5s);
  const WhyView why = get(fleet_->why(behind));
  ASSERT_GE(why.reasons.size(), 1U);
  EXPECT_EQ(why.reasons[0].cause, domain::WaitCause::paused);
  EXPECT_EQ(why.reasons[0].limit, "account:x");
  EXPECT_EQ(why.reasons[0].behind, first) << "its failure paused the account";
  EXPECT_EQ(why.reasons[0].detail, "log in");
  logged_in_ = true;
  get(fleet_->answer(first));
  EXPECT_FALSE(paused("account:x"));
  sim_.advance(1min);
  EXPECT_EQ(state(first), RunState::succeeded);
  EXPECT_EQ(state(behind), RunState::succeeded);
}

TEST_F(AccountTest, answering_a_run_that_is_not_parked_names_the_paused_limit) {
  (void)ask("");
  sim_.advance(5s);
  const std::string behind = ask("");
  std::optional<Result<>> answered;
  auto body = [&]() -> Task<> { answered.emplace(co_await fleet_->answer(behind)); };
  scope_.spawn(body());
  ASSERT_TRUE(sim_.run_until([&] { return answered.has_value(); }));
  ASSERT_FALSE(*answered);
  EXPECT_TRUE(answered->error().describe().contains("`stint resume account:x`")) << answered->error().describe();
}

TEST_F(AccountTest, a_chosen_driver_selects_its_account) {
  const std::string other = ask("gemini");
  sim_.advance(5s);
  ASSERT_EQ(state(other), RunState::parked);
  EXPECT_TRUE(paused("account:y"));
  EXPECT_FALSE(paused("account:x"));
  logged_in_ = true;
  const std::string own = ask("claude"), held = ask("gemini");
  sim_.advance(5s);
  EXPECT_EQ(state(own), RunState::succeeded);
  EXPECT_EQ(state(held), RunState::queued);
  store::Filter filter;
  filter.agent = "a";
  const auto listed = get(fleet_->list(filter));
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[0].run.id, held) << "the newest first, whichever variant";
  for (const RunView& view : listed) EXPECT_EQ(view.run.agent, "a");
  const FleetHealth health = get(fleet_->health());
  ASSERT_EQ(health.queues.size(), 1U);
  EXPECT_EQ(health.queues[0].queued, 1U);
  get(fleet_->answer(other));
  sim_.advance(1min);
  EXPECT_EQ(state(held), RunState::succeeded);
}

TEST_F(AccountTest, an_account_that_only_a_lane_uses_can_be_paused_before_its_first_run) {
  logged_in_ = true;
  get(fleet_->pause("account:y", std::nullopt));
  const std::string other = ask("gemini"), own = ask("claude");
  sim_.advance(5s);
  EXPECT_EQ(state(other), RunState::queued);
  EXPECT_EQ(state(own), RunState::succeeded);
  get(fleet_->resume("account:y"));
  sim_.advance(1min);
  EXPECT_EQ(state(other), RunState::succeeded);
}

TEST_F(AccountTest, a_wait_for_what_a_run_of_a_lane_holds_is_refused) {
  registry_["a"].agent.max_concurrency = 1;
  get(store_.resize(domain::agent_limit("a"), 1));
  decide_ = [](const domain::WorkOrder&) {
    Script script;
    script.takes = 1h;
    return script;
  };
  const std::string above = ask("gemini");
  sim_.advance(5s);
  ASSERT_EQ(state(above), RunState::running);
  std::vector<Submission> submissions(1);
  submissions[0].agent = "a";
  submissions[0].parent = above;
  submissions[0].parent_waits = true;
  const auto answers = get(fleet_->submit(std::move(submissions)));
  ASSERT_FALSE(answers.front());
  EXPECT_EQ(answers.front().error(), Errc::conflict) << answers.front().error().describe();
}

}  // namespace
}  // namespace stint::fleet
