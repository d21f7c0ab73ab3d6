#include "scripted_llm.hpp"

#include "driver_under_test.hpp"
#include "stint/combinators.hpp"
#include "stint/testing.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace stint::conformance {

class ScriptedLlm::Conversation final : public domain::Work {
 public:
  Conversation(ScriptedLlm& driver, domain::WorkOrder order, domain::WorkContext& context, ModelScript script)
      : driver_(driver), order_(std::move(order)), context_(context), script_(std::move(script)) {}

  Task<Result<std::unique_ptr<domain::WorkReport>>> run() override {
    if (ended_) co_return fail(Errc::cancelled, why_);
    begun_ = true;
    const std::string& given = order_.conversation;
    if (!given.empty() && script_.empty()) co_return unknown_conversation();
    outcome_.conversation = !given.empty()                     ? given
                            : !order_.new_conversation.empty() ? order_.new_conversation
                                                               : "scripted:" + order_.mark();
    publish(domain::WorkUpdate::Kind::conversation, outcome_.conversation);
    // The messages that the model has said before: those turns are over, and are not taken again.
    std::size_t taken = 0;
    if (!given.empty()) {
      const Result<std::size_t> known = co_await count_messages();
      if (!known) fail_with(OutcomeKind::agent_error, known.error().describe());
      taken = known.value_or(script_.size());
    }
    for (; taken < script_.size(); ++taken) {
      if (!co_await take_turn(script_[taken])) break;
      const Result<> kept = co_await context_.keep_message(static_cast<std::uint32_t>(taken), outcome_.text);
      if (!kept && !ended_) fail_with(OutcomeKind::agent_error, kept.error().describe());
      if (!kept) break;
    }
    co_return report();
  }
  void end(OutcomeKind kind, std::string why) override {
    hurried_ = ended_.has_value();
    if (!ended_) {
      ended_ = kind;
      why_ = std::move(why);
    }
    changed_.notify();
  }
  void hold(bool held) override {
    holds_ += held ? 1 : -1;
    changed_.notify();
  }
  [[nodiscard]] bool is_ending() const override { return ended_.has_value(); }

 private:
  /// An open stream to the provider; a stop of the chain closes it.
  struct Stream {
    int& open;
    explicit Stream(int& count) : open(count) { ++open; }
    ~Stream() { --open; }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
  };

  Task<Result<std::size_t>> count_messages() {
    std::size_t found = 0;
    while (true) {
      STINT_CO_TRY(const auto page, co_await context_.messages(static_cast<std::uint32_t>(found)));
      if (page.empty()) co_return found;
      found += page.size();
    }
  }
  /// Returns false if it was the last turn.
  Task<bool> take_turn(const ModelTurn& turn) {
    const Result<Permit> permit = co_await context_.acquire("model", 1);
    if (!permit) {
      fail_with(OutcomeKind::agent_error, permit.error().describe());
      co_return false;
    }
    const TimePoint since = driver_.executor_.now();
    co_await stream(turn);
    add_usage(turn);
    publish_span({.kind = domain::SpanKind::model_call, .name = "scripted", .usage = turn.usage}, since);
    if (ended_ || turn.breaks || turn.refuses) {
      if (turn.refuses) fail_with(OutcomeKind::agent_error, "the model gave up");
      if (turn.breaks) fail_with(OutcomeKind::crashed, "the stream broke off");
      co_return false;
    }
    if (!turn.tool.empty()) co_await call_tool(turn);
    co_return !ended_ && !failed_;
  }
  Task<> stream(const ModelTurn& turn) {
    const Stream open(driver_.open_streams_);
    std::string reply;
    for (const std::string& piece : turn.pieces) {
      co_await wait(kPieceTime);
      while (holds_ > 0 && !ended_) co_await changed_.wait(changed_.count());
      if (ended_) break;
      reply += piece;
      for (std::size_t at = 0; at < piece.size(); at += domain::WorkUpdate::kTextMax) {
        publish(domain::WorkUpdate::Kind::text, piece.substr(at, domain::WorkUpdate::kTextMax));
      }
    }
    while (turn.hangs && !ended_) co_await changed_.wait(changed_.count());
    while (turn.ignores_end && ended_ && !hurried_) (void)co_await changed_.wait(changed_.count(), kCloseTime);
    ++streams_closed_;
    const std::size_t most = Outcome::kTextMax;
    outcome_.text = reply.size() > most ? reply.substr(reply.size() - most) : std::move(reply);
  }
  Task<> call_tool(const ModelTurn& turn) {
    if (turn.tool_denied) {
      outcome_.denials.push_back({turn.tool, turn.tool, "permissions: full"});
      co_return;
    }
    if (turn.tool_once) {
      const Result<> may_call = co_await context_.effects_unknown();
      if (!may_call) fail_with(OutcomeKind::agent_error, may_call.error().describe());
      if (!may_call) co_return;
    }
    tools_used_ = true;
    const TimePoint since = driver_.executor_.now();
    publish(domain::WorkUpdate::Kind::tool, turn.tool);
    co_await wait(kPieceTime);
    while (turn.tool_hangs && !ended_) co_await changed_.wait(changed_.count());
    publish_span({.kind = domain::SpanKind::tool, .name = turn.tool, .usage = {}}, since);
    // A call that was interrupted stays open: what it did is unknown. A mark that stays in the store does no harm here.
    if (turn.tool_once && !ended_) (void)co_await context_.effects_known();
  }
  /// Sleeps, at most until end() is called.
  Task<> wait(Duration length) {
    if (!ended_) (void)co_await changed_.wait(changed_.count(), length);
  }
  void publish(Kind kind, std::string text) {
    domain::WorkUpdate update;
    update.kind = kind;
    update.text = std::move(text);
    update.usage = outcome_.usage;
    context_.publish(update);
  }
  void publish_span(domain::Span span, TimePoint since) {
    span.length = driver_.executor_.now() - since;
    domain::WorkUpdate update;
    update.kind = domain::WorkUpdate::Kind::span;
    update.span = std::move(span);
    context_.publish(update);
  }
  void add_usage(const ModelTurn& turn) {
    outcome_.usage += turn.usage;
    publish(domain::WorkUpdate::Kind::usage, {});
  }
  void fail_with(OutcomeKind kind, std::string why) {
    outcome_.kind = kind;
    outcome_.message = std::move(why);
    failed_ = true;
  }
  Result<std::unique_ptr<domain::WorkReport>> unknown_conversation() {
    auto report = std::make_unique<domain::WorkReport>();
    report->outcome.kind = OutcomeKind::agent_error;
    report->outcome.message = "no such conversation";
    report->conversation_missing = order_.conversation_may_not_exist;
    return report;
  }
  Result<std::unique_ptr<domain::WorkReport>> report() {
    auto report = std::make_unique<domain::WorkReport>();
    if (ended_) {
      outcome_.kind = *ended_;
      outcome_.message = why_;
    } else if (!failed_) {
      outcome_.kind = OutcomeKind::succeeded;
    }
    report->outcome = std::move(outcome_);
    report->tools_used = tools_used_;
    report->streams_closed = streams_closed_;
    return report;
  }

  ScriptedLlm& driver_;
  const domain::WorkOrder order_;
  domain::WorkContext& context_;
  const ModelScript script_;
  Outcome outcome_;
  std::optional<OutcomeKind> ended_;
  std::string why_;
  bool begun_ = false, hurried_ = false, failed_ = false, tools_used_ = false;
  std::uint32_t streams_closed_ = 0;
  int holds_ = 0;
  Notification changed_;
};

Result<std::unique_ptr<domain::Work>> ScriptedLlm::begin(domain::WorkOrder order, domain::WorkContext& context) {
  ModelScript script = scripts_(order);
  return std::make_unique<Conversation>(*this, std::move(order), context, std::move(script));
}

std::string ScriptedLlm::choose_conversation(const domain::WorkOrder& order) { return "scripted:" + order.mark(); }

namespace {

ModelScript script_of(Scenario scenario) {
  const Usage usage{.fresh_in = 100, .out = 10};
  switch (scenario) {
    case Scenario::fails: return {{.pieces = {"I can't"}, .usage = usage, .refuses = true}};
    case Scenario::breaks_off: return {{.pieces = {"half of an"}, .usage = usage, .breaks = true}};
    case Scenario::hangs: return {{.pieces = {"hanging"}, .usage = usage, .hangs = true}};
    case Scenario::hangs_on: return {{.pieces = {"hanging"}, .usage = usage, .hangs = true, .ignores_end = true}};
    case Scenario::floods:
      return {{.pieces = std::vector<std::string>(48, std::string(kFloodBytes / 48 + 1, 'x')), .usage = usage}};
    case Scenario::uses_tool:
      return {{.pieces = {"I look."}, .usage = usage, .tool = "shell"}, {.pieces = {"all is well"}, .usage = usage}};
    case Scenario::hangs_in_tool:
      return {{.pieces = {"I look."}, .usage = usage, .tool = "deploy", .tool_hangs = true}};
    case Scenario::is_denied:
      return {{.pieces = {"I try."}, .usage = usage, .tool = "shell", .tool_denied = true},
              {.pieces = {"I may not"}, .usage = usage}};
    case Scenario::never_resumes: return {};
    case Scenario::answers: break;
  }
  return {{.pieces = {"all ", "is ", "well"}, .usage = usage}};
}

class ScriptedSubject final : public DriverUnderTest {
 public:
  [[nodiscard]] Abilities abilities() const override {
    return {.conversations = true,
            .chooses_conversation = true,
            .keeps_messages = true,
            .usage = true,
            .tools = true,
            .marks_effects = true,
            .tool_spans = true,
            .model_spans = true,
            .virtual_time = true};
  }
  [[nodiscard]] Executor& executor() override { return sim_; }
  [[nodiscard]] domain::Driver& driver() override { return driver_; }
  [[nodiscard]] domain::WorkOrder order(Scenario scenario) override {
    domain::WorkOrder order;
    order.run = "suite" + std::to_string(++orders_);
    order.fence = domain::Fence{1};
    order.agent = "suite";
    order.spec.driver = "llm";
    order.spec.invocation.prompt = "do it";
    scenarios_[order.run] = scenario;
    return order;
  }
  [[nodiscard]] bool run_until(const std::function<bool()>& done) override { return sim_.run_until(done); }
  [[nodiscard]] std::string leftovers() override {
    return driver_.open_streams() == 0 ? "" : std::to_string(driver_.open_streams()) + " open streams";
  }

 private:
  Simulator sim_{1};
  int orders_ = 0;
  std::map<std::string, Scenario> scenarios_;
  ScriptedLlm driver_{sim_, [this](const domain::WorkOrder& order) { return script_of(scenarios_.at(order.run)); }};
};

}  // namespace

std::unique_ptr<DriverUnderTest> make_scripted_llm() { return std::make_unique<ScriptedSubject>(); }

}  // namespace stint::conformance
