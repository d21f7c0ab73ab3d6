// The fleet at one moment: what the store knows, completed by what only this process knows.
#include "engine/engine_world.hpp"
#include "fleet/host_views.hpp"
#include "fleet/local_fleet.hpp"

#include <fmt/format.h>

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

constexpr std::int64_t kOwnPid = 42;

LimitView host_limit(std::uint32_t capacity, std::int64_t held) {
  LimitView view;
  view.name = "gpu";
  view.home = "host";
  view.capacity = capacity;
  view.held = held;
  for (const std::int64_t pid : {std::int64_t{7}, kOwnPid, std::int64_t{8}, kOwnPid}) {
    domain::LimitEntry& entry = view.line.emplace_back();
    entry.pid = pid;
    ++view.waiting;
  }
  return view;
}

store::LimitState known_line(const std::vector<std::uint32_t>& weights, std::uint64_t waiting) {
  store::LimitState state;
  state.name = "gpu";
  state.waiting = waiting;
  for (const std::uint32_t weight : weights) {
    store::LimitWaiter& waiter = state.line.emplace_back();
    waiter.run = "run" + std::to_string(state.line.size());
    waiter.agent = "a";
    waiter.weight = weight;
    waiter.since = WallTime(5s);
  }
  return state;
}

std::string line_text(const LimitView& view) {
  std::string text = std::to_string(view.waiting) + ":";
  for (const domain::LimitEntry& each : view.line) {
    text += fmt::format(" {}.{}x{}", each.place.value_or(0), each.run.empty() ? std::to_string(*each.pid) : each.run,
                        each.weight);
  }
  return text;
}

TEST(HostViews, runs_stand_in_line_where_this_process_does) {
  LimitView view = host_limit(4, 4);
  put_runs_in_line(view, known_line({1, 2}, 120), kOwnPid);
  EXPECT_EQ(line_text(view), "122: 1.7x1 2.run1x1 3.run2x2 4.8x1") << "the others of this host, and all runs";
  EXPECT_EQ(view.line[1].since, WallTime(5s));
  EXPECT_FALSE(view.line[0].since) << "an unknown age stays unknown";
}

TEST(HostViews, runs_for_which_units_are_free_wait_for_a_worker) {
  LimitView view = host_limit(4, 1);
  put_runs_in_line(view, known_line({1, 2, 1}, 3), kOwnPid);
  EXPECT_EQ(line_text(view), "3: 1.7x1 2.run3x1 3.8x1");
  view = host_limit(4, 1);
  view.paused = true;
  put_runs_in_line(view, known_line({1}, 1), kOwnPid);
  EXPECT_EQ(line_text(view), "3: 1.7x1 2.run1x1 3.8x1") << "a pause holds all of them";
  view = host_limit(500, 0);
  put_runs_in_line(view, known_line({1, 2}, 100), kOwnPid);
  EXPECT_EQ(line_text(view), "2: 1.7x1 2.8x1") << "also those that are not listed";
  view = host_limit(4, 4);
  view.line[1].other_container = view.line[3].other_container = true;
  put_runs_in_line(view, known_line({}, 0), kOwnPid);
  EXPECT_EQ(view.line.size(), 4U) << "the same pid elsewhere is another process";
}

TEST_F(LookTest, the_line_of_a_host_limit_agrees_with_the_queue) {
  add_agent("a", OnCrash::rerun, "gpu");
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start(2);
  for (int i = 0; i < 7; ++i) submit("a");
  sim_.advance(1s);
  for (const std::int64_t held : {0, 1, 3, 4}) {
    LocalFleet::Options options;
    options.host_limits = [held]() -> Task<Result<std::vector<LimitView>>> {
      std::vector<LimitView> views;
      views.push_back(host_limit(4, held));
      views.back().line.clear();
      views.back().waiting = 0;
      co_return views;
    };
    LocalFleet fleet = this->fleet(std::move(options));
    const FleetView view = get(fleet.look());
    std::uint64_t in_queue = 0;
    for (const store::WaitGroup& group : view.queue.held) in_queue += group.limit == "gpu" ? group.runs : 0;
    EXPECT_GT(in_queue, 0U);
    const auto gpu = [](const std::vector<LimitView>& limits) {
      return *std::ranges::find(limits, "gpu", &LimitView::name);
    };
    EXPECT_EQ(gpu(view.limits).waiting, in_queue) << held;
    EXPECT_EQ(gpu(view.limits).line.size(), in_queue) << held;
    EXPECT_EQ(gpu(get(fleet.limits())).waiting, in_queue) << held;
    EXPECT_EQ(gpu(get(fleet.status()).limits).waiting, in_queue) << held;
    EXPECT_EQ(gpu(get(fleet.limits())).line, gpu(view.limits).line);
  }
}

TEST_F(LookTest, agents_that_can_not_run_are_named_and_bounded) {
  for (int i = 0; i < 60; ++i) add_agent(fmt::format("agent-{:02}", i), OnCrash::rerun);
  for (auto& [name, spec] : registry_) spec.refused = Error(Errc::denied, "it is not trusted");
  registry_.at("agent-00").refused.reset();
  registry_.at("agent-01").gone = true;
  LocalFleet fleet = this->fleet();
  const FleetView view = get(fleet.look());
  EXPECT_EQ(view.refused_agents_total, 58U);
  ASSERT_EQ(view.refused_agents.size(), kRefusedAgentsMax);
  EXPECT_EQ(view.refused_agents[0].name, "agent-02");
  EXPECT_EQ(view.refused_agents[0].why, "it is not trusted");
}

}  // namespace
}  // namespace stint::fleet
