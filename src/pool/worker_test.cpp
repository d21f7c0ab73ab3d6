// Tests each step of a worker, from the claim to the settlement, with a scripted driver.
#include "pool/worker.hpp"

#include "pool/pool_world.hpp"
#include "stint/combinators.hpp"
#include "stint/worker_pool.hpp"

#include <algorithm>

namespace stint::pool {
namespace {

using domain::OnCrash;
using domain::RunState;

constexpr const char* kRun = "aaaaaaaaaaaa";

/// The body of an attempt.
using Body = std::function<Task<Result<std::unique_ptr<domain::WorkReport>>>(domain::WorkContext&)>;

class WorkerTest : public PoolWorld, protected domain::Driver, protected domain::AttemptPlanner {
 protected:
  WorkerTest() {
    body_ = [](domain::WorkContext&) { return succeed(); };
    EXPECT_TRUE(call_limits_.set("tools", 1));
    scope_.spawn(settler_.run());
    PoolOptions options;
    options.workers = 2;
    pool_.emplace([this](std::unique_ptr<Assignment> assignment,
                         JobContext& job) { return worker_.carry(std::move(assignment), job); },
                  options);
    pool_->start(scope_);
  }
  ~WorkerTest() override { stop(); }

  static std::unique_ptr<domain::WorkReport> report(OutcomeKind kind, std::string message = {}) {
    auto report = std::make_unique<domain::WorkReport>();
    report->outcome.kind = kind;
    report->outcome.message = std::move(message);
    return report;
  }
  static Task<Result<std::unique_ptr<domain::WorkReport>>> succeed() { co_return report(OutcomeKind::succeeded); }
  static void publish(domain::WorkContext& context, domain::WorkUpdate::Kind kind, std::string text) {
    domain::WorkUpdate update;
    update.kind = kind;
    update.text = std::move(text);
    context.publish(update);
  }

  /// Claims the next run and begins to carry it.
  void begin_to_carry(OnCrash on_crash = OnCrash::rerun) {
    auto assignment = std::make_unique<Assignment>();
    assignment->claim = claim();
    assignment->on_crash = on_crash;
    assignment->permits = std::move(permits_);
    assignment->carried = worker_.take(node_, assignment->claim);
    ASSERT_TRUE(pool_->submit_nowait(std::move(assignment)));
  }
  /// Waits until nothing is carried.
  void wait() {
    ASSERT_TRUE(sim_.run_until([&] { return worker_.carried().empty(); }));
  }
  store::Run carry(OnCrash on_crash = OnCrash::rerun) {
    begin_to_carry(on_crash);
    wait();
    return look(kRun);
  }

  Settler settler_{store_, health_, no_log_};
  events::Changes changes_;
  CallLimits call_limits_;
  Worker worker_{{store_, *this, this, run_codec_, system_, settler_, health_, changes_, call_limits_, no_log_}};
  std::optional<WorkerPool<std::unique_ptr<Assignment>>> pool_;
  Body body_;
  std::optional<Error> plan_fails_;
  Duration plan_takes_{};
  int plans_ = 0;        // begun
  std::string chooses_;  // as the id of a conversation
  std::vector<domain::WorkOrder> orders_;
  std::unique_ptr<domain::HeldPermits> permits_;

 private:
  class BodyWork final : public domain::Work {
   public:
    BodyWork(const Body& body, domain::WorkContext& context) : body_(body), context_(context) {}
    Task<Result<std::unique_ptr<domain::WorkReport>>> run() override {
      auto winner = co_await race(body_(context_), ended());
      if (winner.index() == 0) co_return std::move(std::get<0>(winner));
      co_return report(kind_, why_);
    }
    void end(OutcomeKind kind, std::string why) override {
      kind_ = kind;
      why_ = std::move(why);
      end_requested_ = true;
      end_.notify();
    }

   private:
    Task<> ended() {
      while (!end_requested_) co_await end_.wait(end_.count());
    }
    const Body& body_;
    domain::WorkContext& context_;
    OutcomeKind kind_ = OutcomeKind::cancelled;
    std::string why_;
    bool end_requested_ = false;
    Notification end_;
  };
  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::WorkContext& context) override {
    orders_.push_back(std::move(order));
    return std::make_unique<BodyWork>(body_, context);
  }
  [[nodiscard]] std::string choose_conversation(const domain::WorkOrder&) override { return chooses_; }
  Task<Result<domain::AttemptSpec>> plan(const domain::WorkOrder& order) override {
    ++plans_;
    if (plan_takes_ > Duration::zero()) co_await sleep_for(plan_takes_);
    if (plan_fails_) co_return fail(*plan_fails_);
    domain::AttemptSpec spec;
    spec.driver = "made-up";
    spec.invocation.prompt = "for " + order.run;
    co_return spec;
  }
};

TEST_F(WorkerTest, carries_a_run_from_its_claim_to_its_settlement) {
  submit(kRun);
  EXPECT_EQ(carry().state, RunState::succeeded);
  ASSERT_EQ(orders_.size(), 1U);
  EXPECT_EQ(orders_[0].spec.driver, "made-up") << "planned before it reached the driver";
  EXPECT_EQ(orders_[0].spec.invocation.prompt, std::string("for ") + kRun);
  EXPECT_EQ(worker_.counts().settled.at(RunState::succeeded), 1U);
}

TEST_F(WorkerTest, a_run_that_can_not_be_planned_does_not_reach_the_driver) {
  submit(kRun);
  plan_fails_ = Error(Errc::denied, "not here");
  const store::Run run = carry(OnCrash::resume);
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_NE(run.error.find("not here"), std::string::npos);
  EXPECT_TRUE(orders_.empty());
  EXPECT_TRUE(store_.marks.empty()) << "it can't have had effects";
}

TEST_F(WorkerTest, a_run_that_is_stopped_while_it_is_planned_does_not_begin) {
  submit(kRun);
  plan_takes_ = 1h;
  begin_to_carry();
  ASSERT_TRUE(sim_.run_until([&] { return plans_ == 1; }));
  worker_.find(kRun)->stop(Carried::Stop::handed_back, "the node drains");
  wait();
  EXPECT_TRUE(orders_.empty());
  EXPECT_EQ(look(kRun).state, RunState::queued);
}

TEST_F(WorkerTest, input_that_can_not_be_read_fails_the_run) {
  submit(kRun, OnCrash::rerun, "garbled");
  EXPECT_EQ(carry().state, RunState::failed);
  EXPECT_TRUE(orders_.empty());
}

TEST_F(WorkerTest, a_run_that_could_not_begin_for_lack_of_resources_is_parked) {
  submit(kRun);
  body_ = [](domain::WorkContext&) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    co_return fail(Error(Errc::exhausted, Retry::safe, "no descriptors"));
  };
  EXPECT_EQ(carry().state, RunState::parked);
}

TEST_F(WorkerTest, a_stop_reaches_the_work) {
  submit(kRun);
  body_ = [](domain::WorkContext&) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    co_await sleep_for(1h);
    co_return report(OutcomeKind::succeeded);
  };
  begin_to_carry();
  sim_.advance(1s);
  (void)get(store_.cancel(kRun));
  worker_.find(kRun)->stop(Carried::Stop::cancelled, "by test");
  wait();
  EXPECT_EQ(look(kRun).state, RunState::cancelled);
}

TEST_F(WorkerTest, a_run_that_was_stopped_before_its_work_does_not_begin) {
  submit(kRun);
  auto assignment = std::make_unique<Assignment>();
  assignment->claim = claim();
  assignment->carried = worker_.take(node_, assignment->claim);
  assignment->carried->stop(Carried::Stop::handed_back, "the node leaves");
  ASSERT_TRUE(pool_->submit_nowait(std::move(assignment)));
  wait();
  EXPECT_EQ(look(kRun).state, RunState::queued);
  EXPECT_TRUE(orders_.empty());
}

TEST_F(WorkerTest, releases_permits_after_the_work) {
  struct Held final : domain::HeldPermits {
    explicit Held(std::vector<std::string>& order) : story(order) {}
    Result<> assign(const std::string& mark, const std::string&) override {
      story.push_back("assigned to " + mark);
      return {};
    }
    void release() override { story.emplace_back("released"); }
    std::vector<std::string>& story;
  };
  std::vector<std::string> story;
  submit(kRun);
  permits_ = std::make_unique<Held>(story);
  body_ = [&](domain::WorkContext&) {
    story.emplace_back("works");
    return succeed();
  };
  (void)carry();
  EXPECT_EQ(story, (std::vector<std::string>{std::string("assigned to ") + kRun + ":1", "works", "released"}));
}

TEST_F(WorkerTest, permits_of_work_that_could_not_be_ended_stay_held) {
  struct Held final : domain::HeldPermits {
    explicit Held(bool& was_released) : released(was_released) {}
    Result<> assign(const std::string&, const std::string&) override { return {}; }
    void release() override { released = true; }
    bool& released;
  };
  bool released = false;
  submit(kRun);
  permits_ = std::make_unique<Held>(released);
  body_ = [](domain::WorkContext&) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    auto stuck = report(OutcomeKind::in_doubt, "some of its processes do not end");
    stuck->left = true;
    co_return stuck;
  };
  EXPECT_EQ(carry().state, RunState::in_doubt);
  EXPECT_FALSE(released);
}

TEST_F(WorkerTest, a_chosen_conversation_is_stored_before_the_work_begins) {
  submit(kRun, OnCrash::resume);
  chooses_ = "chosen-1";
  (void)carry(OnCrash::resume);
  ASSERT_EQ(orders_.size(), 1U);
  EXPECT_EQ(orders_[0].new_conversation, "chosen-1");
  EXPECT_TRUE(store_.marks.empty());
  EXPECT_EQ(notes(kRun), std::vector<std::string>{"chosen_conversation chosen-1"});
}

TEST_F(WorkerTest, without_a_chosen_conversation_effects_are_unknown_until_one_is_stored) {
  submit(kRun, OnCrash::resume);
  body_ = [this](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    EXPECT_EQ(store_.marks, std::vector<bool>{true});
    publish(context, domain::WorkUpdate::Kind::conversation, "named-1");
    co_await sleep_for(1s);
    EXPECT_EQ(store_.marks, (std::vector<bool>{true, false}));
    co_return report(OutcomeKind::succeeded);
  };
  EXPECT_EQ(carry(OnCrash::resume).state, RunState::succeeded);
}

TEST_F(WorkerTest, the_next_attempt_continues_the_conversation_of_a_lost_one) {
  submit(kRun, OnCrash::resume);
  store::Claim lost = claim();
  (void)get(store_.note(node_, lost.attempt_key(), std::string(kNoteConversation), "named-1"));
  store::Settlement settlement;
  settlement.attempt = lost.attempt_key();
  settlement.settle = domain::Settle::lost;
  std::vector<store::Settlement> settlements;
  settlements.push_back(std::move(settlement));
  (void)get(store_.settle(node_, std::move(settlements)));
  sim_.advance(1min);
  (void)get(store_.tick());
  node_ = get(store_.enrol("another"));
  (void)carry(OnCrash::resume);
  ASSERT_EQ(orders_.size(), 1U);
  EXPECT_EQ(orders_[0].conversation, "named-1");
  EXPECT_TRUE(orders_[0].after_loss);
}

TEST_F(WorkerTest, a_driver_keeps_its_conversation_in_the_store_whatever_its_size) {
  const std::string large(10 << 20, 'm');
  submit(kRun);
  body_ = [&](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    EXPECT_TRUE(co_await context.keep_message(0, "hello"));
    EXPECT_TRUE(co_await context.keep_message(1, large));
    EXPECT_EQ((co_await context.keep_message(3, "gap")).error(), Errc::invalid);
    const auto kept = co_await context.messages(1);
    EXPECT_TRUE(kept && *kept == std::vector{large});
    co_return report(OutcomeKind::succeeded);
  };
  EXPECT_EQ(carry().state, RunState::succeeded);
  EXPECT_EQ(get(store_.messages(kRun, 0, 1 << 10)), std::vector<std::string>{"hello"});
}

TEST_F(WorkerTest, a_message_waits_for_a_store_that_does_not_answer) {
  submit(kRun);
  body_ = [&](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    store_.messages_failing = 3;
    EXPECT_TRUE(co_await context.keep_message(0, "hello"));
    EXPECT_EQ(store_.messages_failing, 0);
    co_return report(OutcomeKind::succeeded);
  };
  EXPECT_EQ(carry().state, RunState::succeeded);
  EXPECT_EQ(get(store_.messages(kRun, 0, 1 << 10)), std::vector<std::string>{"hello"});
}

TEST_F(WorkerTest, a_stopped_run_keeps_no_more_messages) {
  submit(kRun);
  body_ = [&](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    EXPECT_TRUE(co_await context.keep_message(0, "hello"));
    worker_.carried().begin()->second->stop(Carried::Stop::cancelled, "by a test");
    const Result<> kept = co_await context.keep_message(1, "too late");
    EXPECT_EQ(kept.error(), Errc::cancelled);
    EXPECT_TRUE(kept.error().describe().contains("by a test")) << kept.error().describe();
    co_return report(OutcomeKind::cancelled);
  };
  (void)carry();
  EXPECT_EQ(get(store_.messages(kRun, 0, 1 << 10)), std::vector<std::string>{"hello"});
}

TEST_F(WorkerTest, a_driver_marks_effects_as_unknown_while_a_call_is_in_flight) {
  submit(kRun);
  body_ = [this](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    EXPECT_TRUE(co_await context.effects_unknown());
    EXPECT_EQ(store_.marks, std::vector<bool>{true}) << "marked before the call is made";
    EXPECT_TRUE(co_await context.effects_known());
    co_return report(OutcomeKind::succeeded);
  };
  EXPECT_EQ(carry().state, RunState::succeeded);
  EXPECT_EQ(store_.marks, (std::vector<bool>{true, false}));
}

TEST_F(WorkerTest, a_node_that_dies_during_a_marked_call_leaves_the_run_in_doubt) {
  submit(kRun, OnCrash::rerun);
  body_ = [](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    (void)co_await context.effects_unknown();
    co_await sleep_for(24h);
    co_return report(OutcomeKind::succeeded);
  };
  begin_to_carry();
  sim_.advance(5min);  // no heartbeat
  (void)get(store_.tick());
  EXPECT_EQ(look(kRun).state, RunState::in_doubt);
  worker_.find(kRun)->stop(Carried::Stop::fenced, "the lease has expired");
  wait();
  EXPECT_EQ(look(kRun).state, RunState::in_doubt);
}

TEST_F(WorkerTest, a_cancel_within_such_a_call_ends_in_doubt) {
  submit(kRun);
  body_ = [](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    EXPECT_TRUE(co_await context.effects_unknown());
    co_await sleep_for(1h);
    co_return report(OutcomeKind::succeeded);
  };
  begin_to_carry();
  sim_.advance(1s);
  (void)get(store_.cancel(kRun));
  worker_.find(kRun)->stop(Carried::Stop::cancelled, "by test");
  wait();
  const store::Run run = look(kRun);
  EXPECT_EQ(run.state, RunState::in_doubt);
  EXPECT_NE(run.error.find("by test"), std::string::npos) << run.error;
  EXPECT_EQ(store_.marks, std::vector<bool>{true}) << "the mark was never cleared";
}

TEST_F(WorkerTest, an_end_within_such_a_call_is_in_doubt_whatever_the_outcome) {
  for (const auto kind : {OutcomeKind::succeeded, OutcomeKind::agent_error, OutcomeKind::over_budget,
                          OutcomeKind::rate_limited, OutcomeKind::crashed}) {
    const std::string id = "aaaaaaaaaaa" + std::string(1, static_cast<char>('b' + static_cast<int>(kind)));
    submit(id);
    body_ = [kind](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
      EXPECT_TRUE(co_await context.effects_unknown());
      co_return report(kind, "ended by test");
    };
    begin_to_carry(OnCrash::rerun);
    wait();
    EXPECT_EQ(look(id).state, RunState::in_doubt) << to_string(kind);
  }
}

TEST_F(WorkerTest, a_failure_within_such_a_call_is_in_doubt) {
  submit(kRun);
  body_ = [](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    EXPECT_TRUE(co_await context.effects_unknown());
    co_return fail(Errc::unavailable, "after the call was made");
  };
  EXPECT_EQ(carry().state, RunState::in_doubt);
}

TEST_F(WorkerTest, a_hand_back_within_such_a_call_ends_in_doubt) {
  submit(kRun);
  body_ = [](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    EXPECT_TRUE(co_await context.effects_unknown());
    co_await sleep_for(1h);
    co_return report(OutcomeKind::succeeded);
  };
  begin_to_carry();
  sim_.advance(1s);
  worker_.find(kRun)->stop(Carried::Stop::handed_back, "the node leaves");
  wait();
  EXPECT_EQ(look(kRun).state, RunState::in_doubt);
}

TEST_F(WorkerTest, spans_are_recorded_with_their_usage) {
  submit(kRun);
  body_ = [](domain::WorkContext& context) {
    domain::WorkUpdate update;
    update.kind = domain::WorkUpdate::Kind::span;
    update.span = domain::Span{
        .kind = domain::SpanKind::model_call, .name = "opus", .length = 2s, .usage = {.fresh_in = 7, .out = 3}};
    context.publish(update);
    return succeed();
  };
  (void)carry();
  EXPECT_EQ(notes(kRun), std::vector<std::string>{"span model_call opus 10"});
}

TEST_F(WorkerTest, calls_wait_for_permits_of_the_process_and_the_wait_is_a_span) {
  submit(kRun);
  submit("bbbbbbbbbbbb");
  int at_once = 0, most = 0;
  body_ = [&](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    STINT_CO_TRY(const Permit permit, co_await context.acquire("tools", 1));
    most = std::max(most, ++at_once);
    co_await sleep_for(1s);
    --at_once;
    co_return report(OutcomeKind::succeeded);
  };
  begin_to_carry();
  begin_to_carry();
  wait();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(notes(kRun).size() + notes("bbbbbbbbbbbb").size(), 1U) << "one of them had to wait";
}

TEST_F(WorkerTest, a_call_that_waits_for_a_permit_has_a_reason) {
  submit(kRun);
  const Permit taken = get(call_limits_.acquire("tools", 1));
  body_ = [](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    STINT_CO_TRY(const Permit permit, co_await context.acquire("tools", 1));
    co_await sleep_for(1h);
    co_return report(OutcomeKind::succeeded);
  };
  begin_to_carry();
  sim_.advance(1s);
  const auto reason = worker_.find(kRun)->waits_for();
  ASSERT_TRUE(reason);
  EXPECT_EQ(*reason,
            (domain::WaitReason{.cause = domain::WaitCause::limit, .limit = "tools", .capacity = 1, .held = 1}));
  EXPECT_TRUE(call_limits_.set("tools", 2));
  sim_.advance(1s);
  EXPECT_FALSE(worker_.find(kRun)->waits_for()) << "it has its permit";
  worker_.find(kRun)->stop(Carried::Stop::cancelled, "by test");
  wait();
}

TEST_F(WorkerTest, a_stopped_wait_for_a_permit_leaves_no_reason) {
  submit(kRun);
  const Permit taken = get(call_limits_.acquire("tools", 1));
  body_ = [](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    const auto permit = co_await with_timeout(1s, context.acquire("tools", 1));
    EXPECT_FALSE(permit);
    co_await sleep_for(1h);
    co_return report(OutcomeKind::succeeded);
  };
  begin_to_carry();
  sim_.advance(5s);
  EXPECT_FALSE(worker_.find(kRun)->waits_for());
  worker_.find(kRun)->stop(Carried::Stop::cancelled, "by test");
  wait();
}

TEST_F(WorkerTest, acquire_fails_for_an_unknown_limit) {
  submit(kRun);
  body_ = [](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    const auto permit = co_await context.acquire("nowhere", 1);
    EXPECT_FALSE(permit);
    co_return report(OutcomeKind::agent_error, permit ? "" : permit.error().describe());
  };
  const store::Run run = carry();
  EXPECT_NE(run.error.find("nowhere"), std::string::npos);
}

TEST_F(WorkerTest, usage_above_the_budget_ends_the_work) {
  submit(kRun, OnCrash::rerun, "100");
  body_ = [](domain::WorkContext& context) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    domain::WorkUpdate update;
    update.kind = domain::WorkUpdate::Kind::usage;
    update.usage.out = 101;
    context.publish(update);
    co_await sleep_for(1h);
    co_return report(OutcomeKind::succeeded);
  };
  EXPECT_EQ(carry().state, RunState::expired);
}

TEST_F(WorkerTest, a_retry_waits_for_the_back_off_of_its_agent) {
  submit(kRun);
  body_ = [](domain::WorkContext&) -> Task<Result<std::unique_ptr<domain::WorkReport>>> {
    co_return report(OutcomeKind::api_error, "overloaded");
  };
  const store::Run run = carry();
  EXPECT_EQ(run.state, RunState::queued);
  EXPECT_EQ(run.hold, domain::Hold::backoff);
  ASSERT_TRUE(run.not_before);
  EXPECT_GT(*run.not_before, system_.wall_now()) << "jitter of at most a second: 500 ms, doubled";
  EXPECT_LE(*run.not_before, system_.wall_now() + std::chrono::seconds(1));
}

}  // namespace
}  // namespace stint::pool
