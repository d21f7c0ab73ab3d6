/// For tests: an engine in virtual time, with scripted agents.
#pragma once

#include "engine/engine.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace stint::engine {

using namespace std::chrono_literals;
using domain::Fence;
using domain::OnCrash;
using domain::RunState;

class PlainRunCodec final : public pool::RunCodec {
 public:
  [[nodiscard]] std::string write(const domain::RunInput& input) const override {
    std::string text = std::to_string(input.budget.tokens.value_or(0));
    if (input.priority) text += " priority " + std::to_string(*input.priority);
    for (const auto& each : input.budgets_above)
      text += " " + each.run + " " + std::to_string(each.budget.tokens.value_or(0));
    return text;
  }
  [[nodiscard]] Result<domain::RunInput> read_input(std::string_view text) const override {
    domain::RunInput input;
    std::istringstream words{std::string(text)};
    std::int64_t tokens = 0;
    words >> tokens;
    if (tokens > 0) input.budget.tokens = tokens;
    for (std::string run; words >> run >> tokens;) {
      if (run == "priority") {
        input.priority = static_cast<int>(tokens);
      } else {
        input.budgets_above.push_back({run, {.tokens = tokens}});
      }
    }
    return input;
  }
  [[nodiscard]] std::string write(const domain::RunMemo& memo) const override {
    return std::to_string(memo.usage.out) + (memo.resumes ? " resumes " : " anew ") + memo.conversation;
  }
  [[nodiscard]] Result<domain::RunMemo> read_memo(std::string_view text) const override {
    domain::RunMemo memo;
    memo.usage.out = std::stoll(std::string(text));
    memo.resumes = text.find(" resumes ") != std::string_view::npos;
    memo.conversation = text.substr(text.rfind(' ') + 1);
    return memo;
  }
  [[nodiscard]] std::string write_note(std::string_view text) const override { return std::string(text); }
  [[nodiscard]] std::string read_note(std::string_view data) const override { return std::string(data); }
  [[nodiscard]] std::string write_span(const domain::Span& span) const override { return span.name; }
};

/// A store that can refuse all writes, as on a full disk: reads and heartbeats still work.
class FullStore : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  bool full = false;

  Task<Result<>> drain(store::NodeNumber node) override { return full ? refuse<void>() : MemoryStore::drain(node); }
  Task<Result<>> leave(store::NodeNumber node) override { return full ? refuse<void>() : MemoryStore::leave(node); }
  Task<Result<std::vector<std::pair<std::string, RunState>>>> cancel(std::string id) override {
    return full ? refuse<std::vector<std::pair<std::string, RunState>>>() : MemoryStore::cancel(std::move(id));
  }
  Task<Result<std::vector<std::optional<RunState>>>> settle(store::NodeNumber node,
                                                            std::vector<store::Settlement> settlements) override {
    return full ? refuse<std::vector<std::optional<RunState>>>() : MemoryStore::settle(node, std::move(settlements));
  }
  Task<Result<bool>> mark(store::NodeNumber node, store::AttemptKey attempt, bool unsafe) override {
    return full ? refuse<bool>() : MemoryStore::mark(node, attempt, unsafe);
  }
  Task<Result<bool>> note(store::NodeNumber node, store::AttemptKey attempt, std::string cause,
                          std::string data) override {
    return full ? refuse<bool>() : MemoryStore::note(node, attempt, std::move(cause), std::move(data));
  }
  Task<Result<bool>> append_output(store::NodeNumber node, store::AttemptKey attempt, std::string text) override {
    return full ? refuse<bool>() : MemoryStore::append_output(node, attempt, std::move(text));
  }

 private:
  template <class T>
  static Task<Result<T>> refuse() {
    co_return fail(Error(Errc::exhausted, Retry::safe, "the disk is full"));
  }
};

/// What a scripted attempt does.
struct Script {
  Duration takes = 1s;
  Outcome outcome;
  bool tools = false;
  bool conversation_missing = false;        ///< the conversation to continue does not exist
  std::int64_t uses = 0;                    ///< tokens, halfway
  std::optional<Duration> answers_after{};  ///< absent: after `takes`
  std::optional<Error> does_not_begin{};
  std::vector<std::string> lines{};     ///< printed first, a second apart
  std::size_t says = 0;                 ///< bytes to print, as fast as it may
  std::size_t* said_at_once = nullptr;  ///< receives the most bytes printed without being held
};
using Decide = std::function<Script(const domain::WorkOrder&)>;

class ScriptedWork final : public domain::Work {
 public:
  ScriptedWork(Script script, domain::WorkContext& context, int& alive)
      : script_(std::move(script)), context_(context), alive_(alive) {}
  Task<Result<std::unique_ptr<domain::WorkReport>>> run() override {
    struct Alive {
      int& count;
      explicit Alive(int& counter) : count(counter) { ++count; }
      ~Alive() { --count; }
    };
    const Alive alive(alive_);
    if (!script_.outcome.conversation.empty()) {
      domain::WorkUpdate update;
      update.kind = domain::WorkUpdate::Kind::conversation;
      update.text = script_.outcome.conversation;
      context_.publish(update);
    }
    for (const std::string& line : script_.lines) {
      domain::WorkUpdate update;
      update.kind = domain::WorkUpdate::Kind::text;
      update.text = line;
      context_.publish(update);
      co_await sleep_for(1s);
    }
    co_await say_all();
    if (!ended_) co_await race(nap(script_.answers_after.value_or(script_.takes)), told());
    if (script_.uses > 0) {
      domain::WorkUpdate update;
      update.kind = domain::WorkUpdate::Kind::usage;
      update.usage.out = script_.uses;
      context_.publish(update);
      script_.outcome.usage.out = script_.uses;
      if (!ended_) co_await race(nap(script_.takes), told());
    }
    auto report = std::make_unique<domain::WorkReport>();
    report->outcome = script_.outcome;
    report->tools_used = script_.tools;
    report->conversation_missing = script_.conversation_missing;
    if (ended_) report->outcome.kind = *ended_;
    co_return report;
  }
  void end(OutcomeKind kind, std::string why) override {
    if (!ended_) script_.outcome.message = std::move(why);
    if (!ended_) ended_ = kind;
    notification_.notify();
  }
  void hold(bool held) override {
    holds_ += held ? 1 : -1;
    let_go_.notify();
  }

 private:
  Task<> say_all() {
    domain::WorkUpdate update;
    update.kind = domain::WorkUpdate::Kind::text;
    for (std::size_t said = 0, at_once = 0; said < script_.says;
         said += update.text.size(), at_once += update.text.size()) {
      if (holds_ > 0) at_once = 0;
      while (holds_ > 0 && !ended_) co_await race(let_go(), told());
      if (ended_) co_return;
      update.text.assign(std::min<std::size_t>(script_.says - said, 64 << 10), 'x');
      context_.publish(update);
      *script_.said_at_once = std::max(*script_.said_at_once, at_once + update.text.size());
    }
  }
  Task<> nap(Duration length) { co_await sleep_for(length); }
  // Both check again: a race begins its branches later.
  Task<> told() {
    while (!ended_) co_await notification_.wait(notification_.count());
  }
  Task<> let_go() {
    while (holds_ > 0) co_await let_go_.wait(let_go_.count());
  }

  Script script_;
  domain::WorkContext& context_;
  int& alive_;
  std::optional<OutcomeKind> ended_;
  Notification notification_, let_go_;
  int holds_ = 0;
};

/// A store that counts calls, and fails those that a test chooses.
class FaultyStore final : public FullStore {
 public:
  using FullStore::FullStore;

  Task<Result<std::vector<store::Claim>>> claim(store::NodeNumber node, std::string agent, std::uint32_t most,
                                                std::string only = {}, std::string waited = {}) override {
    if (++claims > kClaimsMax) co_await sleep_for(24h);  // an engine that spins fails instead of hanging
    auto answer = co_await MemoryStore::claim(node, std::move(agent), most, std::move(only), std::move(waited));
    if (claims_garbled > 0) {
      --claims_garbled;
      co_return fail(Errc::failed, "the answer can't be read");
    }
    if (claims_unanswered == 0) co_return answer;
    --claims_unanswered;
    owned_late = owned_takes;
    co_return fail(Error(Errc::unavailable, Retry::unknown, "the answer was lost"));
  }
  Task<Result<std::vector<store::Claim>>> owned(store::NodeNumber node) override {
    auto answer = co_await MemoryStore::owned(node);
    co_await sleep_for(std::exchange(owned_late, Duration::zero()));
    co_return answer;
  }
  Task<Result<>> configure(std::map<std::string, std::uint32_t> capacities, std::vector<std::string> agents) override {
    if (refuses_configure) co_return fail(Errc::failed, "not now");
    co_return co_await MemoryStore::configure(std::move(capacities), std::move(agents));
  }
  Task<Result<std::vector<std::optional<RunState>>>> settle(store::NodeNumber node,
                                                            std::vector<store::Settlement> settlements) override {
    if (asleep) co_return fail(Errc::closed, "the lease is over");
    for (const store::Settlement& each : settlements) {
      if (refuses && refuses(each.result + each.error)) co_return fail(Errc::failed, "no such text");
    }
    co_return co_await FullStore::settle(node, std::move(settlements));
  }
  Task<Result<bool>> mark(store::NodeNumber node, store::AttemptKey attempt, bool unsafe) override {
    if (asleep) co_return fail(Errc::closed, "the lease is over");
    if (refuses && refuses(unsafe ? "unsafe" : "safe")) co_return fail(Errc::failed, "no such mark");
    co_return co_await FullStore::mark(node, attempt, unsafe);
  }
  Task<Result<bool>> append_output(store::NodeNumber node, store::AttemptKey attempt, std::string text) override {
    if (asleep) co_return fail(Errc::closed, "the lease is over");
    if (refuses && refuses(text)) co_return fail(Errc::failed, "no such text");
    co_return co_await FullStore::append_output(node, attempt, std::move(text));
  }
  Task<Result<std::optional<store::Run>>> find(std::string id) override {
    ++finds;
    return MemoryStore::find(std::move(id));
  }

  static constexpr std::uint64_t kClaimsMax = 10'000;
  std::uint64_t claims = 0, finds = 0;
  int claims_garbled = 0;     ///< claims that are done but answered with a final failure
  int claims_unanswered = 0;  ///< claims that are done but whose answer is lost
  Duration owned_takes{};     ///< delay of the next owned() after such a loss; it reads at once
  Duration owned_late{};
  bool refuses_configure = false;
  bool asleep = false;  ///< the process slept longer than its lease, and has sent no heartbeat yet
  std::function<bool(const std::string& text)> refuses;  ///< for good
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
    registry_[name] = std::move(spec);
  }
  void start(std::size_t workers = 10, const std::function<void(EngineOptions&)>& change = {}) {
    make_engine(workers, change);
    run_engine();
  }
  void make_engine(std::size_t workers, const std::function<void(EngineOptions&)>& change = {}) {
    EngineOptions options;
    options.pool.workers = workers;
    if (change) change(options);
    Engine::Parts parts{sim_, store_, *this, *this, run_codec_, system_, log_};
    parts.survivors = survivors_;
    engine_ = std::make_unique<Engine>(parts, options, registry_);
  }
  void run_engine() {
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
  std::string submit(const std::string& agent, std::optional<Duration> budget = {}) {
    store::NewRun run;
    run.budget = budget;
    run.id = domain_id();
    run.agent = agent;
    run.on_crash = registry_[agent].on_crash;
    run.input = "0";
    std::vector<store::NewRun> runs;
    runs.push_back(run);
    const auto accepted = get(store_.enqueue(std::move(runs)));
    EXPECT_TRUE(accepted.front());
    return run.id;
  }
  /// Tokens of a run and of all that draw on its budget.
  std::int64_t used(const std::string& head) { return get(store_.used({head})).front().used.tokens; }
  store::Run look(const std::string& id) { return *get(store_.find(id)); }
  std::size_t count(RunState state) {
    store::Filter filter;
    filter.states = {state};
    filter.most = 1000;
    return get(store_.list(filter)).size();
  }

  Simulator sim_{1};
  Duration jumped_{}, slept_{};  // the wall clock, and the machine
  domain::System system_{
      .wall_now =
          [this] {
            return WallTime(1'700'000'000'000ms) +
                   std::chrono::floor<std::chrono::milliseconds>(sim_.now().time_since_epoch() + slept_ + jumped_);
          },
      .random = [this] { return sim_.random()(); },
      .elapsed = [this] { return sim_.now().time_since_epoch() + slept_; },
      .awake = [this] { return sim_.now().time_since_epoch(); }};
  FaultyStore store_{system_};
  PlainRunCodec run_codec_;
  AgentRegistry registry_;
  Decide decide_;
  int alive_ = 0;
  std::map<std::string, std::uint32_t> begun_;
  bool chooses_ = false;            // ids of conversations
  std::optional<Semaphore> limit_;  // of the host, for all agents
  domain::Log* log_ = nullptr;
  domain::Survivors* survivors_ = nullptr;
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
  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::WorkContext& context) override {
    ++begun_[order.run];
    Script script = decide_(order);
    if (script.does_not_begin) return fail(*script.does_not_begin);
    return std::make_unique<ScriptedWork>(std::move(script), context, alive_);
  }
  [[nodiscard]] std::string choose_conversation(const domain::WorkOrder& order) override {
    return chooses_ ? "chosen:" + order.mark() : std::string();
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
  Task<Result<std::unique_ptr<domain::HeldPermits>>> acquire(
      std::string, std::function<void(const domain::WaitReason*)> waits) override {
    const domain::WaitReason in_line{.cause = domain::WaitCause::limit, .limit = "host", .ahead = 0};
    waits(&in_line);
    STINT_CO_TRY(Permit permit, co_await limit_->acquire());
    waits(nullptr);
    co_return std::unique_ptr<domain::HeldPermits>(std::make_unique<Held>(std::move(permit)));
  }

  std::size_t ids_ = 0;
};

}  // namespace stint::engine
