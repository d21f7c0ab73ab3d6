// The fleet at one moment: what the store knows, completed by what only this process knows.
#include "engine/engine_world.hpp"
#include "fleet/local_fleet.hpp"

namespace stint::fleet {
namespace {

using namespace engine;
using domain::WaitCause;

class LookTest : public EngineTest {
 protected:
  LocalFleet fleet(LocalFleet::Options options = {}) {
    return {{sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()},
            std::move(options)};
  }
};

TEST_F(LookTest, a_limit_of_the_host_holds_back_what_the_store_would_let_start) {
  add_agent("a", OnCrash::rerun, "gpu");
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start(1);
  for (int i = 0; i < 4; ++i) submit("a");
  sim_.advance(1s);
  LocalFleet plain = fleet();
  EXPECT_EQ(get(plain.look()).queue.startable, 3U) << "the store knows no capacity of it";
  LocalFleet::Options options;
  options.host_limits = []() -> Task<Result<std::vector<LimitView>>> {
    LimitView gpu;
    gpu.name = "gpu";
    gpu.home = "host";
    gpu.capacity = 2;
    gpu.held = 1;
    std::vector<LimitView> views;
    views.push_back(std::move(gpu));
    co_return views;
  };
  LocalFleet hosted = fleet(std::move(options));
  const FleetView view = get(hosted.look());
  EXPECT_EQ(view.queue.startable, 1U);
  ASSERT_EQ(view.queue.held.size(), 1U);
  EXPECT_EQ(view.queue.held[0].cause, WaitCause::limit);
  EXPECT_EQ(view.queue.held[0].runs, 2U);
  EXPECT_EQ(view.running.size(), 1U);
  EXPECT_TRUE(view.running[0].carried_by);
  EXPECT_EQ(view.pool->queue_size, 3U);
}

TEST_F(LookTest, status_has_the_same_sums) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) {
    Script script{.takes = 1s, .outcome = {}};
    script.outcome.kind = OutcomeKind::agent_error;
    script.outcome.message = "broken";
    return script;
  };
  start(1);
  for (int i = 0; i < 8; ++i) submit("a");
  sim_.advance(5500ms);
  LocalFleet fleet = this->fleet();
  const FleetView view = get(fleet.look());
  const FleetStatus status = get(fleet.status());
  EXPECT_EQ(view.stats.runs, status.stats.runs);
  EXPECT_EQ(view.stats.ready, status.stats.ready);
  EXPECT_EQ(view.failures.size(), view.stats.runs.at(RunState::failed));
  EXPECT_EQ(view.failures[0].run.error, "broken");
  EXPECT_EQ(status.phase, Phase::serving);
  EXPECT_TRUE(view.drain_in) << "five have ended";
  engine_->drain(1min);
  EXPECT_FALSE(get(fleet.look()).drain_in) << "no run begins any more";
}

TEST_F(LookTest, the_feed_tells_what_happens_to_the_pool_and_the_project) {
  add_agent("a", OnCrash::rerun);
  start(2);
  LocalFleet fleet = this->fleet();
  const std::string cursor = get(fleet.look()).cursor;
  get(fleet.scale({.workers = 5, .min = {}, .max = {}}));
  sim_.advance(10ms);
  get(engine_->reload(registry_, {}));
  get(fleet.drain({.timeout = 1s, .hurry = false}));
  sim_.advance(5s);
  std::vector<std::string> news;
  for (const store::Event& event : get(store_.feed(cursor, 100)).events) news.push_back(event.cause + " " + event.data);
  EXPECT_EQ(news, (std::vector<std::string>{R"(scaled {"workers":5})", R"(reloaded {"agents":1})",
                                            R"(draining {"phase":"finishing"})", R"(draining {"phase":"handing_back"})",
                                            R"(node_left {"label":"stint","lost":0})"}));
}

}  // namespace
}  // namespace stint::fleet
