// The engine in virtual time, with agents that do what a test says. Faults at random are the simulation's business:
// tests/simulation.
#include "engine/engine.hpp"

#include "engine/local_fleet.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace stint::engine {
namespace {

using namespace std::chrono_literals;
using domain::OnCrash;
using domain::RunState;

class PlainScribe final : public pool::Scribe {
 public:
  [[nodiscard]] std::string write(const domain::RunInput&) const override { return "{}"; }
  [[nodiscard]] Result<domain::RunInput> read_input(std::string_view) const override { return domain::RunInput(); }
  [[nodiscard]] std::string write(const domain::RunMemo& memo) const override {
    return (memo.resumes ? "resumes " : "anew ") + memo.conversation;
  }
  [[nodiscard]] Result<domain::RunMemo> read_memo(std::string_view text) const override {
    domain::RunMemo memo;
    memo.resumes = text.starts_with("resumes ");
    memo.conversation = text.substr(text.find(' ') + 1);
    return memo;
  }
  [[nodiscard]] std::string write_note(std::string_view text) const override { return std::string(text); }
  [[nodiscard]] std::string read_note(std::string_view data) const override { return std::string(data); }
};

/// What an attempt of the test's agents does.
struct Script {
  Duration takes = 1s;
  Outcome outcome;
  bool tools = false;
};
using Decide = std::function<Script(const domain::WorkOrder&)>;

class ScriptedWork final : public domain::Work {
 public:
  ScriptedWork(Script script, Listener listener, int& alive)
      : script_(std::move(script)), listener_(std::move(listener)), alive_(alive) {}
  Task<Result<domain::WorkReport>> run() override {
    struct Alive {
      int& count;
      explicit Alive(int& counter) : count(counter) { ++count; }
      ~Alive() { --count; }
    };
    const Alive alive(alive_);
    if (!script_.outcome.conversation.empty()) {
      domain::WorkNews news;
      news.kind = domain::WorkNews::Kind::conversation;
      news.text = script_.outcome.conversation;
      listener_(news);
    }
    if (!ended_) co_await race(nap(), told());
    domain::WorkReport report;
    report.outcome = script_.outcome;
    report.tools_used = script_.tools;
    if (ended_) report.outcome.kind = *ended_;
    co_return report;
  }
  void end(OutcomeKind kind, std::string) override {
    if (!ended_) ended_ = kind;
    bell_.ring();
  }

 private:
  Task<> nap() { co_await sleep_for(script_.takes); }
  Task<> told() { co_await bell_.hear(bell_.rings()); }

  Script script_;
  Listener listener_;
  int& alive_;
  std::optional<OutcomeKind> ended_;
  Bell bell_;
};

class EngineTest : public testing::Test, protected domain::Driver, protected domain::Permits {
 protected:
  EngineTest() {
    decide_ = [](const domain::WorkOrder&) {
      Script script;
      script.outcome.kind = OutcomeKind::succeeded;
      return script;
    };
  }
  ~EngineTest() override {
    scope_.cancel();
    sim_.settle();
  }

  void add_agent(const std::string& name, OnCrash on_crash = OnCrash::resume, std::string account = {}) {
    AgentSpec spec;
    spec.agent.name = name;
    spec.entry.name = name;
    spec.entry.queued_max = 1000;
    spec.entry.attempts_max = 1000;
    spec.entry.limits.push_back({domain::agent_limit(name), 1});
    if (!account.empty()) spec.entry.limits.push_back({account, 1});
    spec.account = std::move(account);
    spec.on_crash = on_crash;
    book_[name] = std::move(spec);
  }
  void start(std::size_t workers = 10, const std::function<void(EngineOptions&)>& change = {}) {
    EngineOptions options;
    options.pool.workers = workers;
    if (change) change(options);
    engine_ = std::make_unique<Engine>(Engine::Parts{sim_, store_, *this, *this, scribe_, ambient_}, options, book_);
    auto carry = [this]() -> Task<> { ended_ = (co_await engine_->run()).has_value(); };
    scope_.spawn(carry());
    sim_.advance(10ms);
  }
  template <class T>
  T get(Task<Result<T>> task) {
    std::optional<Result<T>> answer;
    auto body = [&]() -> Task<> { answer.emplace(co_await std::move(task)); };
    scope_.spawn(body());
    EXPECT_TRUE(sim_.run_until([&] { return answer.has_value(); }));
    EXPECT_TRUE(*answer) << answer->error().describe();
    if constexpr (!std::is_void_v<T>) return std::move(**answer);
  }
  std::string submit(const std::string& agent) {
    store::NewRun run;
    run.id = domain_id();
    run.agent = agent;
    run.on_crash = book_[agent].on_crash;
    run.input = "{}";
    std::vector<store::NewRun> runs;
    runs.push_back(run);
    const auto accepted = get(store_.enqueue(std::move(runs)));
    EXPECT_TRUE(accepted.front());
    return run.id;
  }
  store::Run look(const std::string& id) { return *get(store_.find(id)); }
  std::size_t count(RunState state) {
    store::Filter filter;
    filter.states = {state};
    filter.most = 1000;
    return get(store_.list(filter)).size();
  }

  Simulator sim_{1};
  domain::Ambient ambient_{.wall_now =
                               [this] {
                                 return WallTime(1'700'000'000'000ms) +
                                        std::chrono::floor<std::chrono::milliseconds>(sim_.now().time_since_epoch());
                               },
                           .random = [this] { return sim_.random()(); }};
  store::MemoryStore store_{ambient_};
  PlainScribe scribe_;
  Book book_;
  Decide decide_;
  int alive_ = 0;
  std::map<std::string, std::uint32_t> begun_;
  std::optional<Semaphore> limit_;  // of the host, for all agents
  std::unique_ptr<Engine> engine_;
  bool ended_ = false;
  RootScope scope_{sim_};

 private:
  std::string domain_id() {
    std::string id = "aaaaaaaaaaaa";
    for (std::size_t i = 0, number = ++ids_; number > 0; number /= 26, ++i)
      id[i] = static_cast<char>('a' + number % 26);
    return id;
  }
  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::Work::Listener listener) override {
    ++begun_[order.run];
    return std::make_unique<ScriptedWork>(decide_(order), std::move(listener), alive_);
  }
  class Held final : public domain::HeldPermits {
   public:
    explicit Held(Permit permit) : permit_(std::move(permit)) {}
    Result<> assign(const std::string&, const std::string&) override { return {}; }
    void release() override { permit_.release(); }

   private:
    Permit permit_;
  };
  [[nodiscard]] bool needed(const std::string&) const override { return limit_.has_value(); }
  Task<Result<std::unique_ptr<domain::HeldPermits>>> acquire(std::string,
                                                             std::function<void(std::string)> waits) override {
    waits("in line");
    STINT_CO_TRY(Permit permit, co_await limit_->acquire());
    waits("");
    co_return std::unique_ptr<domain::HeldPermits>(std::make_unique<Held>(std::move(permit)));
  }

  std::size_t ids_ = 0;
};

TEST_F(EngineTest, a_run_goes_from_the_queue_to_its_end) {
  add_agent("a");
  start();
  const std::string id = submit("a");
  sim_.advance(2s);
  EXPECT_EQ(look(id).state, RunState::succeeded);
  EXPECT_EQ(begun_[id], 1U);
}

/// A limit of five hours, a minute without network, a logout: the whole account waits, one goes first, nobody fails.
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
    const bool out = sim_.now() < over || !person_came;
    if (!out || (order.conversation.empty() && sim_.now() < TimePoint(30s))) return script;
    ++at_most_after;
    script.takes = 1s;
    script.outcome.kind = GetParam();
    if (GetParam() == OutcomeKind::rate_limited) {
      script.outcome.resets_at = ambient_.wall_now() + std::chrono::ceil<std::chrono::milliseconds>(over - sim_.now());
    }
    return script;
  };
  start(10);
  std::vector<std::string> ids;
  for (int i = 0; i < 50; ++i) ids.push_back(submit("a"));
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

TEST_F(EngineTest, a_drain_lets_finish_then_hands_back_without_using_up_an_attempt) {
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

TEST_F(EngineTest, a_cancel_reaches_what_runs_and_what_waits) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}, .tools = false}; };
  start(1);
  const std::string running = submit("a"), queued = submit("a");
  sim_.advance(1s);
  (void)get(store_.cancel(queued));
  (void)get(store_.cancel(running));
  sim_.advance(2s);  // nobody told this process: the next beat does
  EXPECT_EQ(look(queued).state, RunState::cancelled);
  EXPECT_EQ(look(running).state, RunState::cancelled);
  EXPECT_EQ(alive_, 0);
  EXPECT_EQ(begun_.count(queued), 0U);
}

TEST_F(EngineTest, who_has_nothing_to_run_leaves_the_line) {
  add_agent("a", OnCrash::rerun);
  limit_.emplace("host", 1);
  std::optional<Permit> other;
  auto take = [&]() -> Task<> { other.emplace(*(co_await limit_->acquire())); };
  scope_.spawn(take());
  start();
  const std::string id = submit("a");
  sim_.advance(1s);
  EXPECT_EQ(engine_->waits().at("a"), "in line");
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

TEST_F(EngineTest, what_holds_it_up_begins_nothing_and_then_everything) {
  add_agent("a");
  start();
  engine_->hold_up("no memory");
  const std::string id = submit("a");
  sim_.advance(5s);
  EXPECT_EQ(look(id).state, RunState::queued);
  engine_->hold_up("");
  sim_.advance(2s);
  EXPECT_EQ(look(id).state, RunState::succeeded);
}

TEST_F(EngineTest, an_engine_for_one_run_takes_no_other) {
  add_agent("a");
  get(store_.define({book_["a"].entry}));
  const std::string other = submit("a"), wanted = submit("a");
  start(1, [&](EngineOptions& options) {
    options.only = wanted;
    options.only_agent = "a";
  });
  sim_.advance(5s);
  EXPECT_EQ(look(wanted).state, RunState::succeeded);
  EXPECT_EQ(look(other).state, RunState::queued);
}

TEST_F(EngineTest, agents_that_come_later_are_carried_after_a_reload) {
  add_agent("a");
  start();
  add_agent("b");
  get(engine_->reload(book_));
  const std::string id = submit("b");
  sim_.advance(2s);
  EXPECT_EQ(look(id).state, RunState::succeeded);
}

TEST_F(EngineTest, what_is_old_is_forgotten) {
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
