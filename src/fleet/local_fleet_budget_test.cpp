// The budget of a run, over all its attempts and children.
#include "engine/engine_world.hpp"
#include "fleet/local_fleet.hpp"

namespace stint::fleet {
namespace {

using namespace engine;

TEST_F(EngineTest, ends_the_work_when_the_time_is_used_up) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start();
  const std::string id = submit("a", 5s);
  sim_.advance(4900ms);
  EXPECT_EQ(look(id).state, RunState::running);
  sim_.advance(200ms);
  EXPECT_EQ(look(id).state, RunState::expired) << "at once, not at the next heartbeat";
  EXPECT_EQ(alive_, 0);
  const store::Run run = look(id);
  EXPECT_GE(*run.finished_at - *run.started_at, 5s);
  EXPECT_LE(*run.finished_at - *run.started_at, 5s + 20ms) << "how far over it went";
}

TEST_F(EngineTest, attempts_and_the_waits_between_them_share_the_time_of_their_run) {
  add_agent("a", OnCrash::rerun);
  registry_["a"].budget.attempts = 100;
  decide_ = [](const domain::WorkOrder&) {
    Script script{.takes = 1s, .outcome = {}};
    script.outcome.kind = OutcomeKind::crashed;
    return script;
  };
  start();
  const std::string id = submit("a", 20s);
  sim_.advance(1min);
  const store::Run run = look(id);
  EXPECT_EQ(run.state, RunState::expired);
  EXPECT_GT(begun_[id], 1U);
  EXPECT_LE(*run.finished_at - run.created_at, 20s + 50ms) << "no attempt and no wait goes over it";
}

TEST_F(EngineTest, a_jump_of_the_wall_clock_ends_no_run_and_shortens_no_wait) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start();
  const std::string running = submit("a", 10min);
  store::NewRun later;
  later.id = "zzzzzzzzzzzz";
  later.agent = "a";
  later.delay = 5min;
  later.budget = 10min;
  later.input = "0";
  EXPECT_TRUE(get(store_.enqueue({later})).front());
  for (const Duration by : {Duration(24h), Duration(-48h), Duration(24h)}) {
    sim_.advance(90s);
    jumped_ += by;
  }
  sim_.advance(20s);
  EXPECT_EQ(look(running).state, RunState::running);
  EXPECT_EQ(look(later.id).hold, domain::Hold::delay);
  slept_ += 3min;  // counts for a delay, not for a budget
  sim_.advance(5s);
  EXPECT_EQ(look(later.id).state, RunState::running);
  sim_.advance(10min - 3 * 90s - 26s);
  EXPECT_EQ(look(running).state, RunState::running);
  sim_.advance(2s);
  EXPECT_EQ(look(running).state, RunState::expired);
}

TEST_F(EngineTest, durations_of_a_host_with_a_wrong_clock_hold) {
  add_agent("a", OnCrash::rerun, "account:x");
  for (const Duration skew : {Duration(-2min), Duration(2min)}) {
    const domain::System host{
        .wall_now = [this, skew] { return system_.wall_now() + std::chrono::floor<std::chrono::milliseconds>(skew); },
        .random = system_.random,
        .elapsed = system_.elapsed,
        .awake = system_.awake};
    get(store_.define({registry_["a"].entry}));
    LocalFleet fleet({sim_, store_, run_codec_, host, [this]() -> const AgentRegistry& { return registry_; }, nullptr},
                     {});
    get(fleet.pause("account:x", 1min));
    Submission submission;
    submission.agent = "a";
    submission.deadline = 1min;
    std::vector<Submission> submissions;
    submissions.push_back(std::move(submission));
    const auto accepted = get(fleet.submit(std::move(submissions))).front();
    ASSERT_TRUE(accepted);
    sim_.advance(59s);
    EXPECT_EQ(get(store_.tick()).expired, 0U);
    const auto before = get(store_.limits());
    EXPECT_TRUE(std::ranges::find(before, "account:x", &store::LimitState::name)->paused);
    sim_.advance(1s);
    EXPECT_EQ(get(store_.tick()).expired, 1U);
    const auto after = get(store_.limits());
    EXPECT_FALSE(std::ranges::find(after, "account:x", &store::LimitState::name)->paused);
  }
}

TEST_F(EngineTest, ends_the_work_when_the_tokens_are_used_up) {
  add_agent("a", OnCrash::rerun);
  registry_["a"].budget.tokens = 100;
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 10s, .outcome = {}, .uses = 101}; };
  start();
  const std::string id = submit("a");
  sim_.advance(11s);
  EXPECT_EQ(look(id).state, RunState::expired);
  EXPECT_NE(look(id).error.find("token budget"), std::string::npos) << look(id).error;
  EXPECT_EQ(look(id).tokens, 101);
  EXPECT_EQ(alive_, 0);
}

TEST_F(EngineTest, attempts_share_the_tokens_of_their_run) {
  add_agent("a", OnCrash::rerun);
  registry_["a"].budget.tokens = 100;
  registry_["a"].budget.attempts = 10;
  decide_ = [](const domain::WorkOrder&) {
    Script script{.takes = 1s, .outcome = {}, .uses = 40};
    script.outcome.kind = OutcomeKind::crashed;
    return script;
  };
  start();
  const std::string id = submit("a");
  sim_.advance(5min);
  EXPECT_EQ(look(id).state, RunState::expired);
  EXPECT_EQ(begun_[id], 3U) << "the third goes over it";
  EXPECT_EQ(look(id).tokens, 120);
}

TEST_F(EngineTest, children_get_what_is_left_of_their_parents_budget) {
  add_agent("a", OnCrash::rerun);
  registry_["a"].budget.tokens = 100;
  decide_ = [](const domain::WorkOrder& order) {
    Script script{.takes = order.input.budget.tokens ? Duration(1s) : Duration(1h), .outcome = {}, .uses = 40};
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  start();
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const std::string parent = submit("a", 5h);
  sim_.advance(61min);
  const auto child = [&](std::optional<Duration> deadline) {
    Submission submission;
    submission.agent = "a";
    submission.parent = parent;
    submission.deadline = deadline;
    std::vector<Submission> submissions;
    submissions.push_back(std::move(submission));
    return get(fleet.submit(std::move(submissions))).front();
  };
  const auto first = child(10h);
  ASSERT_TRUE(first);
  EXPECT_TRUE(look(first->id).input.starts_with("60 ")) << "the parent has used 40";
  EXPECT_EQ(look(first->id).expires_at, look(parent).expires_at);
  sim_.advance(3s);
  EXPECT_EQ(look(first->id).state, RunState::succeeded);
  const auto second = child(1min);
  ASSERT_TRUE(second);
  EXPECT_TRUE(look(second->id).input.starts_with("20 "));
  EXPECT_LT(look(second->id).expires_at, look(parent).expires_at);
  sim_.advance(3s);
  EXPECT_EQ(look(second->id).state, RunState::expired) << "it would have used 40";
  EXPECT_LE(used(parent), 100 + 40) << "over it by what one attempt used between two reports";
  const auto third = child({});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), Errc::exhausted);
}

TEST_F(EngineTest, children_that_run_at_once_draw_on_one_budget) {
  add_agent("head", OnCrash::rerun);
  add_agent("child", OnCrash::rerun);
  registry_["head"].budget.tokens = 100;
  decide_ = [](const domain::WorkOrder& order) {
    Script script{.takes = order.agent == "head" ? Duration(1h) : Duration(5s), .outcome = {}};
    script.outcome.kind = OutcomeKind::succeeded;
    if (order.agent == "child") script.uses = 40;
    return script;
  };
  start();
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const auto below = [&](const std::string& parent) {
    Submission submission;
    submission.agent = "child";
    submission.parent = parent;
    std::vector<Submission> submissions;
    submissions.push_back(std::move(submission));
    return get(fleet.submit(std::move(submissions))).front();
  };
  const std::string head = submit("head"), other = submit("child");
  sim_.advance(1s);
  const auto first = below(head);
  sim_.advance(1s);
  const auto second = below(head), grandchild = below(first->id);
  ASSERT_TRUE(grandchild);
  sim_.advance(3900ms);
  EXPECT_EQ(look(head).state, RunState::running) << "one has used 40";
  sim_.advance(2s);  // the two others have used 40 each
  for (const std::string& id : {head, first->id, second->id, grandchild->id}) {
    EXPECT_EQ(look(id).state, RunState::expired) << look(id).error;
    EXPECT_NE(look(id).error.find("token budget"), std::string::npos) << look(id).error;
  }
  EXPECT_EQ(used(head), 120) << "over it by what one attempt used between two reports";
  sim_.advance(10s);
  EXPECT_EQ(look(other).state, RunState::succeeded) << "it belongs to another family";
  EXPECT_EQ(used(head), 120);
}

TEST_F(EngineTest, a_family_of_more_than_a_page_draws_on_one_budget) {
  add_agent("head", OnCrash::rerun);
  add_agent("child", OnCrash::rerun);
  registry_["child"].entry.queued_max = 10'000;
  registry_["head"].budget.tokens = 4500;
  decide_ = [](const domain::WorkOrder& order) {
    Script script{.takes = order.agent == "head" ? Duration(10h) : Duration(500ms), .outcome = {}};
    script.outcome.kind = OutcomeKind::succeeded;
    if (order.agent == "child") script.uses = 4;
    return script;
  };
  constexpr std::size_t kWorkers = 50;
  start(kWorkers, [](EngineOptions& options) {
    options.retention = 5s;  // most of them are pruned before the budget is used up
    options.prune_every = 1s;
  });
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const std::string head = submit("head");
  sim_.advance(1s);
  std::vector<Submission> submissions(2000);
  for (Submission& submission : submissions) {
    submission.agent = "child";
    submission.parent = head;
  }
  const auto children = get(fleet.submit(std::move(submissions)));
  for (int i = 0; i < 100 && look(head).state == RunState::running; ++i) sim_.advance(1s);
  sim_.advance(1s);
  std::size_t begun = 0;
  for (const auto& child : children) begun += child && begun_[child->id] > 0 ? 1 : 0;
  EXPECT_EQ(look(head).state, RunState::expired) << begun << " of them began";
  EXPECT_LT(get(store_.stats()).runs[RunState::succeeded], 1000U) << "most were pruned";
  EXPECT_GT(used(head), 4500);
  EXPECT_LE(used(head), 4500 + 4 * static_cast<std::int64_t>(kWorkers));
  EXPECT_EQ(used(head), 4 * static_cast<std::int64_t>(begun)) << "none that began is left out";
}

TEST_F(EngineTest, processes_that_carry_one_family_draw_on_one_budget) {
  add_agent("head", OnCrash::rerun);
  add_agent("child", OnCrash::rerun);
  registry_["head"].budget.tokens = 100;
  decide_ = [](const domain::WorkOrder& order) {
    Script script{.takes = order.agent == "head" ? Duration(1h) : Duration(5s), .outcome = {}};
    script.outcome.kind = OutcomeKind::succeeded;
    if (order.agent == "child") script.uses = 30;
    return script;
  };
  start(3);
  EngineOptions options;
  options.pool.workers = 2;
  Engine other({sim_, store_, *this, *this, run_codec_, system_}, options, registry_);
  auto carry = [&]() -> Task<> { (void)co_await other.run(); };
  scope_.spawn(carry());
  sim_.advance(10ms);
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const std::string head = submit("head");
  sim_.advance(1s);
  std::vector<Submission> submissions(4);
  for (Submission& submission : submissions) {
    submission.agent = "child";
    submission.parent = head;
  }
  const auto children = get(fleet.submit(std::move(submissions)));
  sim_.advance(2s);
  EXPECT_EQ(count(RunState::running), 5U) << "two of them in each process";
  sim_.advance(5s);  // each has used 30, and was to end after five seconds more
  std::size_t expired = 0;
  for (const auto& child : children) expired += look(child->id).state == RunState::expired ? 1U : 0U;
  EXPECT_GE(expired, 1U) << "what the other process uses counts before it is settled";
  EXPECT_EQ(used(head), 120) << "over it by what one attempt used between two reports";
  scope_.cancel();
  sim_.settle();
}

TEST_F(EngineTest, no_attempt_begins_when_the_shared_budget_is_used_up) {
  add_agent("head", OnCrash::rerun);
  add_agent("child", OnCrash::rerun);
  registry_["head"].budget.tokens = 100;
  decide_ = [](const domain::WorkOrder& order) {
    Script script{.takes = order.agent == "head" ? Duration(1h) : Duration(5s), .outcome = {}};
    script.outcome.kind = OutcomeKind::succeeded;
    if (order.agent == "child") script.uses = 50;
    return script;
  };
  start(3);
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const std::string head = submit("head");
  sim_.advance(1s);
  std::vector<Submission> submissions(3);
  for (Submission& submission : submissions) {
    submission.agent = "child";
    submission.parent = head;
  }
  const auto children = get(fleet.submit(std::move(submissions)));
  sim_.advance(1min);  // two of them use 100 together, which is not too much; the third had no worker
  EXPECT_EQ(look(children[0]->id).state, RunState::succeeded);
  EXPECT_EQ(look(children[1]->id).state, RunState::succeeded);
  EXPECT_EQ(look(children[2]->id).state, RunState::expired);
  EXPECT_NE(look(children[2]->id).error.find("is used up"), std::string::npos) << look(children[2]->id).error;
  EXPECT_EQ(begun_[children[2]->id], 0U);
  EXPECT_EQ(look(head).state, RunState::running);
}

TEST_F(EngineTest, an_attempt_begins_with_what_is_left_of_the_tightest_budget) {
  add_agent("head", OnCrash::rerun);
  add_agent("child", OnCrash::rerun);
  registry_["head"].budget.tokens = 100;
  registry_["child"].budget.tokens = 70;
  std::optional<std::int64_t> left;
  decide_ = [&](const domain::WorkOrder& order) {
    if (order.agent == "child") left = order.left.tokens;
    Script script{.takes = 1min, .outcome = {}, .uses = order.agent == "head" ? 40 : 0, .answers_after = 5s};
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  start();
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const std::string head = submit("head");
  sim_.advance(1s);
  std::vector<Submission> submissions(1);
  submissions[0].agent = "child";
  submissions[0].parent = head;
  submissions[0].budget.tokens = 70;
  submissions[0].delay = 10s;
  ASSERT_TRUE(get(fleet.submit(std::move(submissions))).front());
  sim_.advance(15s);
  EXPECT_EQ(left, 60) << "its own is 70, but its parent has used 40 of 100 since it was submitted";
}

TEST_F(EngineTest, submissions_that_name_one_budget_share_it) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) {
    Script script{.takes = 5s, .outcome = {}, .uses = 40};
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  start(3);
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  const auto ask = [&](std::size_t count, const std::string& budget, std::optional<std::int64_t> tokens) {
    std::vector<Submission> submissions(count);
    for (Submission& submission : submissions) {
      submission.agent = "a";
      submission.one_budget = budget;
      submission.budget.tokens = tokens;
    }
    return get(fleet.submit(std::move(submissions)));
  };
  const std::string shared = "gggggggggggg";
  const auto lines = ask(6, shared, 100);
  const std::string stranger = submit("a");
  sim_.advance(20s);  // three use 40 each, which is too much
  for (const auto& line : lines) {
    ASSERT_TRUE(line);
    EXPECT_EQ(look(line->id).state, RunState::expired) << look(line->id).error;
    EXPECT_NE(look(line->id).error.find(shared), std::string::npos) << look(line->id).error;
  }
  std::size_t begun = 0;
  for (const auto& line : lines) begun += begun_[line->id];
  EXPECT_EQ(begun, 3U) << "for the others nothing was left";
  EXPECT_EQ(used(shared), 120) << "over it by what one attempt used between two reports";
  EXPECT_EQ(look(stranger).state, RunState::succeeded);
  const auto late = ask(1, shared, 100).front();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::exhausted);
  EXPECT_EQ(ask(1, "no id", 100).front().error().code(), Errc::invalid);
  EXPECT_EQ(ask(1, "hhhhhhhhhhhh", {}).front().error().code(), Errc::invalid) << "a budget of what?";
  EXPECT_EQ(ask(1, stranger, 100).front().error().code(), Errc::invalid) << "it is a run's";
  bool repeated = true;
  auto repeat = [&]() -> Task<> { repeated = (co_await fleet.retry(lines.front()->id)).has_value(); };
  scope_.spawn(repeat());
  sim_.advance(1s);
  EXPECT_FALSE(repeated) << "it would be paid from the same budget";
}

TEST_F(EngineTest, runs_that_share_a_budget_may_use_all_of_it) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) {
    Script script{.takes = 5s, .outcome = {}, .uses = 40};
    script.outcome.kind = OutcomeKind::succeeded;
    return script;
  };
  start(2);
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  std::vector<Submission> submissions(3);
  for (Submission& submission : submissions) {
    submission.agent = "a";
    submission.one_budget = "gggggggggggg";
    submission.budget.tokens = 80;
  }
  const auto lines = get(fleet.submit(std::move(submissions)));
  sim_.advance(1min);
  EXPECT_EQ(look(lines[0]->id).state, RunState::succeeded);
  EXPECT_EQ(look(lines[1]->id).state, RunState::succeeded);
  EXPECT_EQ(look(lines[2]->id).state, RunState::expired);
  EXPECT_EQ(begun_[lines[2]->id], 0U);
}

TEST_F(EngineTest, a_brief_shortage_of_the_host_uses_no_attempt) {
  add_agent("a", OnCrash::doubt);
  registry_["a"].budget.attempts = 1;
  int refused = 0;
  decide_ = [&](const domain::WorkOrder&) {
    Script script;
    script.outcome.kind = OutcomeKind::succeeded;
    if (refused++ < 5) script.does_not_begin = Error(Errc::exhausted, Retry::safe, "fork: no more processes");
    return script;
  };
  start();
  const std::string id = submit("a");
  sim_.advance(1s);
  EXPECT_EQ(look(id).state, RunState::parked);
  EXPECT_EQ(look(id).error, "fork: no more processes");
  sim_.advance(1min);
  EXPECT_EQ(look(id).state, RunState::succeeded);
  EXPECT_EQ(look(id).attempt, 1U);
}

TEST_F(EngineTest, a_run_that_can_never_begin_fails_at_once) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) {
    return Script{.outcome = {}, .does_not_begin = Error(Errc::invalid, "there is no such program")};
  };
  start();
  const std::string id = submit("a");
  sim_.advance(1s);
  EXPECT_EQ(look(id).state, RunState::failed);
  EXPECT_EQ(begun_[id], 1U);
}

}  // namespace
}  // namespace stint::fleet
