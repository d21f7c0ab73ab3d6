// The engine in virtual time. Random faults are tested in tests/simulation.
#include "engine/engine_world.hpp"

namespace stint::engine {
namespace {

TEST_F(EngineTest, carries_a_run_from_the_queue_to_its_end) {
  add_agent("a");
  start();
  const std::string id = submit("a");
  sim_.advance(2s);
  EXPECT_EQ(look(id).state, RunState::succeeded);
  EXPECT_EQ(begun_[id], 1U);
}

/// Captures warnings and errors.
class WarningsOnly final : public domain::Log {
 public:
  [[nodiscard]] bool is_enabled(domain::LogLevel level) const noexcept override {
    return level >= domain::LogLevel::warning;
  }
  void write(domain::LogLevel level, std::string_view what, std::vector<domain::LogField>) override {
    if (is_enabled(level)) {
      heard.emplace_back(what);
    } else {
      ++not_enabled;
    }
  }

  std::vector<std::string> heard;
  int not_enabled = 0;
};

TEST_F(EngineTest, fields_of_disabled_log_levels_are_not_gathered) {
  WarningsOnly log;
  log_ = &log;
  add_agent("a");
  registry_["a"].entry.attempts_max = 1;
  start();
  submit("a");
  sim_.advance(2s);
  EXPECT_EQ(log.not_enabled, 0);
  EXPECT_TRUE(log.heard.empty());
  decide_ = [](const domain::WorkOrder&) {
    Script script;
    script.outcome.kind = OutcomeKind::agent_error;
    return script;
  };
  submit("a");
  sim_.advance(2s);
  EXPECT_FALSE(log.heard.empty());
  scope_.cancel();
  sim_.settle();  // the engine ends before its log
}

/// A limit of five hours, a minute without network, a logout: the whole account waits, one run probes it, no run fails.
class Outage : public EngineTest, public testing::WithParamInterface<OutcomeKind> {};
TEST_P(Outage, costs_fifty_runs_nothing_but_time) {
  add_agent("a", OnCrash::resume, "account:x");
  const TimePoint over = sim_.now() + (GetParam() == OutcomeKind::rate_limited ? Duration(5h) : Duration(1min));
  std::size_t at_most_after = 0;
  bool person_came = GetParam() != OutcomeKind::not_logged_in;
  decide_ = [&](const domain::WorkOrder& order) {
    Script script;
    script.takes = 20s;
    script.outcome.kind = OutcomeKind::succeeded;
    script.outcome.conversation = "c" + order.run;
    script.tools = true;
    // These are between two attempts when the outage begins, and their budgets have begun.
    const bool crashes = order.attempt == 1 && sim_.now() > TimePoint(15s) && sim_.now() < TimePoint(30s);
    if (crashes) script.outcome.kind = OutcomeKind::crashed;
    const bool out = sim_.now() < over || !person_came;
    if (!out || (order.conversation.empty() && sim_.now() < TimePoint(30s))) return script;
    ++at_most_after;
    script.takes = 1s;
    script.outcome.kind = GetParam();
    if (GetParam() == OutcomeKind::rate_limited) {
      script.outcome.resets_at = system_.wall_now() + std::chrono::ceil<std::chrono::milliseconds>(over - sim_.now());
    }
    return script;
  };
  start(10);
  std::vector<std::string> ids;
  for (int i = 0; i < 50; ++i) ids.push_back(submit("a", 5min));
  sim_.advance(6h);
  if (!person_came) {
    EXPECT_LT(count(RunState::succeeded), 50U) << "it waits for a person";
    person_came = true;
    EXPECT_GT(get(store_.resume("account:x")), 0U);
    sim_.advance(1h);
  }
  EXPECT_EQ(count(RunState::succeeded), 50U);
  EXPECT_EQ(count(RunState::failed) + count(RunState::in_doubt) + count(RunState::expired), 0U);
  EXPECT_LT(at_most_after, 40U) << "most of them never went into the outage: the account was paused";
}
INSTANTIATE_TEST_SUITE_P(Kinds, Outage,
                         testing::Values(OutcomeKind::rate_limited, OutcomeKind::api_error, OutcomeKind::not_logged_in),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_F(EngineTest, a_provider_that_only_fails_is_probed_and_not_retried_by_every_run) {
  add_agent("a", OnCrash::resume, "account:x");
  registry_["a"].budget.attempts = 3;
  const TimePoint over = sim_.now() + 1h;
  std::size_t failures = 0;
  decide_ = [&](const domain::WorkOrder&) {
    Script script;
    script.outcome.kind = OutcomeKind::succeeded;
    if (sim_.now() < over) {
      ++failures;
      script.outcome.kind = OutcomeKind::api_error;
      script.outcome.http_status = 500;
    }
    return script;
  };
  start(10);
  for (int i = 0; i < 50; ++i) (void)submit("a");
  sim_.advance(59min);
  EXPECT_EQ(count(RunState::failed), 0U);
  const std::size_t probes = 59 * 60 / 15;  // one each time the account is probed
  EXPECT_LT(failures, 10 + 10 + 10 + probes) << "runs at the start, their retries, runs that began in between, probes";
  sim_.advance(2h);
  EXPECT_EQ(count(RunState::succeeded), 50U);
}

TEST_F(EngineTest, a_drain_lets_runs_finish_then_hands_back_without_using_up_an_attempt) {
  add_agent("long", OnCrash::rerun);
  add_agent("short", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder& order) {
    Script script;
    script.takes = order.agent == "long" ? Duration(1h) : Duration(5s);
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  start();
  const std::string slow = submit("long"), quick = submit("short");
  sim_.advance(1s);
  engine_->drain(10s);
  const std::string late = submit("short");
  sim_.advance(6s);
  EXPECT_EQ(engine_->phase(), Phase::finishing);
  EXPECT_EQ(look(quick).state, RunState::succeeded);
  EXPECT_EQ(look(late).state, RunState::queued) << "nothing new is begun";
  sim_.advance(10s);
  EXPECT_EQ(engine_->phase(), Phase::stopped);
  EXPECT_TRUE(ended_);
  EXPECT_EQ(look(slow).state, RunState::queued);
  EXPECT_EQ(look(slow).attempt, 0U);
  EXPECT_EQ(engine_->drained().handed_back, 1U);
  EXPECT_EQ(alive_, 0);
}

TEST_F(EngineTest, a_second_drain_request_does_not_hurry_the_first) {
  add_agent("long", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start();
  const std::string id = submit("long");
  sim_.advance(1s);
  engine_->drain(1min);
  sim_.advance(1s);
  engine_->drain();
  engine_->drain(10min);
  sim_.advance(30s);
  EXPECT_EQ(engine_->phase(), Phase::finishing);
  engine_->drain(5s);
  sim_.advance(4s);
  EXPECT_EQ(engine_->phase(), Phase::finishing);
  sim_.advance(2s);
  EXPECT_EQ(engine_->phase(), Phase::stopped) << "an earlier timeout counts";
  EXPECT_EQ(look(id).state, RunState::queued);
}

TEST_F(EngineTest, a_hurried_drain_does_not_wait) {
  add_agent("long", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start();
  submit("long");
  sim_.advance(1s);
  engine_->drain(1min);
  sim_.advance(1s);
  engine_->hurry();
  sim_.advance(1s);
  EXPECT_EQ(engine_->phase(), Phase::stopped);
}

TEST_F(EngineTest, a_cancel_reaches_what_runs_and_what_waits) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}, .tools = false}; };
  start(1);
  const std::string running = submit("a"), queued = submit("a");
  sim_.advance(1s);
  (void)get(store_.cancel(queued));
  (void)get(store_.cancel(running));
  sim_.advance(2s);  // the next heartbeat brings the cancel
  EXPECT_EQ(look(queued).state, RunState::cancelled);
  EXPECT_EQ(look(running).state, RunState::cancelled);
  EXPECT_EQ(alive_, 0);
  EXPECT_EQ(begun_.count(queued), 0U);
}

TEST_F(EngineTest, an_agent_with_nothing_to_run_leaves_the_line) {
  add_agent("a", OnCrash::rerun);
  limit_.emplace("host", 1);
  std::optional<Permit> other;
  auto take = [&]() -> Task<> { other.emplace(*(co_await limit_->acquire())); };
  scope_.spawn(take());
  start();
  const std::string id = submit("a");
  sim_.advance(1s);
  EXPECT_EQ(engine_->waits().at("a").limit, "host");
  EXPECT_EQ(limit_->waiting(), 1U);
  (void)get(store_.cancel(id));
  sim_.advance(2s);
  EXPECT_EQ(limit_->waiting(), 0U);
  other.reset();
  const std::string next = submit("a");
  sim_.advance(3s);
  EXPECT_EQ(look(next).state, RunState::succeeded);
  EXPECT_EQ(limit_->available(), 1);
}

TEST_F(EngineTest, no_run_begins_during_a_shortage) {
  add_agent("a");
  start();
  engine_->set_shortage(domain::Shortage{.kind = domain::Shortage::Kind::memory, .amount = 1, .bound = 2});
  const std::string id = submit("a");
  sim_.advance(5s);
  EXPECT_EQ(look(id).state, RunState::queued);
  engine_->set_shortage(std::nullopt);
  sim_.advance(2s);
  EXPECT_EQ(look(id).state, RunState::succeeded);
}

TEST_F(EngineTest, no_run_begins_when_the_cost_of_the_day_is_used_up_and_running_ones_continue) {
  add_agent("a");
  std::int64_t cost = 100;
  decide_ = [&](const domain::WorkOrder&) {
    Script script{.takes = 5s, .outcome = {}};
    script.outcome.kind = OutcomeKind::succeeded;
    script.outcome.usage.cost_micros = cost;
    return script;
  };
  start(10, [](EngineOptions& options) { options.cost_micros_per_day = 100; });
  const std::string first = submit("a");
  sim_.advance(3s);
  const std::string beside = submit("a");
  sim_.advance(4s);
  EXPECT_EQ(look(first).state, RunState::succeeded);
  ASSERT_TRUE(engine_->shortage()) << "all of it is used";
  EXPECT_EQ(*engine_->shortage(),
            (domain::Shortage{.kind = domain::Shortage::Kind::cost_per_day, .amount = 100, .bound = 100}));
  cost = 10;
  const std::string next = submit("a");
  sim_.advance(1min);
  EXPECT_EQ(look(beside).state, RunState::succeeded);
  EXPECT_EQ(look(next).state, RunState::queued);
  EXPECT_EQ(engine_->shortage()->amount, 200);
  engine_->set_cost_per_day(201);
  sim_.advance(6s);
  EXPECT_EQ(look(next).state, RunState::succeeded) << "there was something left";
  const std::string last = submit("a");
  sim_.advance(1min);
  EXPECT_EQ(look(last).state, RunState::queued);
  sim_.advance(24h);
  EXPECT_EQ(look(last).state, RunState::succeeded) << "another day";
  EXPECT_FALSE(engine_->shortage());
}

TEST_F(EngineTest, an_engine_for_one_run_obeys_the_cost_of_the_day) {
  add_agent("a");
  get(store_.define({registry_["a"].entry}));
  const std::string before = submit("a"), wanted = submit("a");
  const store::NodeNumber node = get(store_.enrol("test"));
  const std::vector<store::Claim> claims = get(store_.claim(node, "a", 1, before));
  ASSERT_EQ(claims.size(), 1U);
  get(store_.report(node, claims[0].attempt_key(), {.tokens = 0, .cost_micros = 7}));
  start(1, [&](EngineOptions& options) {
    options.only = wanted;
    options.only_agent = "a";
    options.cost_micros_per_day = 7;
  });
  sim_.advance(10s);
  EXPECT_EQ(begun_[wanted], 0U) << "not even at once";
  EXPECT_EQ(look(wanted).state, RunState::queued);
  EXPECT_EQ(engine_->shortage()->kind, domain::Shortage::Kind::cost_per_day);
  engine_->set_cost_per_day({});
  sim_.advance(3s);
  EXPECT_EQ(look(wanted).state, RunState::succeeded);
}

TEST_F(EngineTest, use_is_reported_for_the_day_also_by_a_run_without_a_budget) {
  add_agent("a");
  decide_ = [](const domain::WorkOrder&) {
    return Script{.takes = 1h, .outcome = {}, .uses = 50, .answers_after = 1s};
  };
  start(10, [](EngineOptions& options) { options.cost_micros_per_day = 1; });
  submit("a");
  sim_.advance(4s);
  EXPECT_EQ(used(std::string(store::kToday)), 50) << "it runs for an hour yet";
}

TEST_F(EngineTest, an_engine_for_one_run_claims_no_other) {
  add_agent("a");
  get(store_.define({registry_["a"].entry}));
  const std::string other = submit("a"), wanted = submit("a");
  start(1, [&](EngineOptions& options) {
    options.only = wanted;
    options.only_agent = "a";
  });
  sim_.advance(5s);
  EXPECT_EQ(look(wanted).state, RunState::succeeded);
  EXPECT_EQ(look(other).state, RunState::queued);
}

TEST_F(EngineTest, output_faster_than_the_store_is_held_and_nothing_is_lost) {
  constexpr std::size_t kSaid = (10 << 20) + 7;
  std::size_t at_once = 0;
  decide_ = [&](const domain::WorkOrder&) {
    Script script;
    script.outcome.kind = OutcomeKind::succeeded;
    script.says = kSaid;
    script.said_at_once = &at_once;
    return script;
  };
  add_agent("a");
  start();
  const std::string id = submit("a");
  sim_.advance(5s);
  EXPECT_EQ(look(id).state, RunState::succeeded);
  EXPECT_EQ(get(store_.output(id)).bytes, kSaid);
  EXPECT_EQ(at_once, std::size_t{1} << 20) << "the buffer for the store";
}

/// Processes of this host, by their marks.
class MarkedProcesses final : public domain::Survivors {
 public:
  std::vector<Leftover> marks;
  std::vector<std::string> ended, killed;
  bool hurried = false;
  std::string left;  // what does not end
  Task<Result<std::vector<Leftover>>> find() override { co_return marks; }
  Task<Ending> end(std::vector<Leftover> attempts, std::function<bool()> hurry) override {
    hurried = hurry();
    for (const Leftover& each : attempts) {
      ended.push_back(each.run + ":" + std::to_string(each.fence.value));
      if (!left.empty()) continue;
      std::erase_if(marks, [&](const Leftover& mark) { return mark.run == each.run && mark.fence <= each.fence; });
    }
    co_return Ending{static_cast<std::uint32_t>(attempts.size()), left};
  }
  Task<> kill(std::vector<Leftover> attempts) override {
    for (const Leftover& each : attempts) killed.push_back(each.run + ":" + std::to_string(each.fence.value));
    co_return;
  }
};

TEST_F(EngineTest, ends_processes_of_a_dead_node_and_none_of_a_living_one) {
  add_agent("a", OnCrash::doubt);
  get(store_.define({registry_["a"].entry}));
  const std::string lost = submit("a"), ours = submit("a");
  const auto dead = get(store_.enrol("dead"));
  EXPECT_EQ(get(store_.claim(dead, "a", 1, lost)).size(), 1U);
  MarkedProcesses processes;
  processes.marks = {{lost, Fence{1}}, {ours, Fence{1}}, {"of another store", Fence{1}}};
  survivors_ = &processes;
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start();
  sim_.advance(5s);
  EXPECT_EQ(look(ours).state, RunState::running);
  EXPECT_TRUE(processes.ended.empty()) << "its lease may still be renewed";
  sim_.advance(20s);
  EXPECT_EQ(look(lost).state, RunState::in_doubt);
  EXPECT_EQ(processes.ended, std::vector<std::string>{lost + ":1"});
}

TEST_F(EngineTest, processes_without_a_warden_are_ended_before_the_lease_expires) {
  add_agent("a", OnCrash::doubt);
  get(store_.define({registry_["a"].entry}));
  const std::string first = submit("a"), second = submit("a");
  const auto dead = get(store_.enrol("dead"));
  EXPECT_EQ(get(store_.claim(dead, "a", 2)).size(), 2U);
  MarkedProcesses processes;
  using Trace = domain::Survivors::Trace;
  processes.marks = {{first, Fence{1}, Trace::orphaned},
                     {second, Fence{1}, Trace::empty},
                     {"of another store", Fence{1}, Trace::orphaned}};
  survivors_ = &processes;
  start();
  sim_.advance(1s);
  ASSERT_EQ(processes.ended, std::vector<std::string>{first + ":1"}) << "at the start";
  EXPECT_TRUE(processes.hurried) << "another host may begin the next attempt soon";
  EXPECT_EQ(look(first).state, RunState::running) << "its lease has not expired";
  processes.marks.push_back({second, Fence{1}, Trace::orphaned});
  sim_.advance(5s);
  EXPECT_EQ(processes.ended.back(), second + ":1") << "and while it runs";
  EXPECT_EQ(look(second).state, RunState::running);
}

TEST_F(EngineTest, survivors_of_runs_that_other_nodes_rescued_are_found_by_a_periodic_scan) {
  add_agent("a", OnCrash::rerun);
  MarkedProcesses processes;
  survivors_ = &processes;
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start();
  const std::string id = submit("a");
  sim_.advance(2s);
  engine_->stop_here(id, pool::Carried::Stop::handed_back, "it goes to another host");
  sim_.advance(2s);
  EXPECT_EQ(look(id).fence, Fence{2});
  processes.marks = {{id, Fence{1}}, {id, Fence{2}}};
  sim_.advance(2min);
  EXPECT_EQ(processes.ended, std::vector<std::string>{id + ":1"});
}

TEST_F(EngineTest, runs_of_agents_added_by_a_reload_are_carried) {
  add_agent("a");
  start();
  add_agent("b");
  get(engine_->reload(registry_, {}));
  const std::string id = submit("b");
  sim_.advance(2s);
  EXPECT_EQ(look(id).state, RunState::succeeded);
}

TEST_F(EngineTest, a_reload_resizes_call_limits) {
  add_agent("a");
  start(10, [](EngineOptions& options) { options.call_limits = {{"model", 1}, {"tools", 2}}; });
  EXPECT_EQ(engine_->call_limits().find("model")->capacity, 1U);
  get(engine_->reload(registry_, {.of_calls = {{"model", 3}, {"new", 4}}}));
  EXPECT_EQ(engine_->call_limits().find("model")->capacity, 3U);
  EXPECT_EQ(engine_->call_limits().find("new")->capacity, 4U);
  EXPECT_EQ(engine_->call_limits().find("tools")->capacity, 2U) << "running attempts may still acquire it";
}

TEST_F(EngineTest, a_failed_reload_resizes_no_call_limit) {
  add_agent("a");
  start(10, [](EngineOptions& options) { options.call_limits = {{"model", 1}}; });
  store_.refuses_configure = true;
  auto reload = [this]() -> Task<> { EXPECT_FALSE(co_await engine_->reload(registry_, {.of_calls = {{"model", 3}}})); };
  scope_.spawn(reload());
  sim_.advance(1s);
  EXPECT_EQ(engine_->call_limits().find("model")->capacity, 1U);
}

TEST_F(EngineTest, old_runs_are_pruned) {
  add_agent("a");
  start(10, [](EngineOptions& options) { options.retention = 1h; });
  const std::string id = submit("a");
  sim_.advance(30min);
  EXPECT_EQ(look(id).state, RunState::succeeded);
  sim_.advance(2h);
  EXPECT_FALSE(get(store_.find(id)));
}

}  // namespace
}  // namespace stint::engine
