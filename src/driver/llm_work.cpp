// Invariants
// 1. A message is in the store before what follows from it: the model's calls before they are made, their results
//    before the model gets them.
// 2. A call of class `once` is made in the attempt in which the model asked for it, or never.
// 3. After `concluded_` nothing changes the outcome; before it, end() decides it.
#include "driver/llm_work.hpp"

#include "driver/dialect_support.hpp"
#include "model/message_codec.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stint::driver {
namespace {

using domain::SpanKind;
using Kind = domain::WorkUpdate::Kind;

constexpr std::size_t kCallShown = 200;  // bytes of a call, for people

Allowance allowance_of(const domain::Invocation& invocation) {
  Allowance allowance;
  if (invocation.tokens_max) allowance.tokens = *invocation.tokens_max;
  if (invocation.cost_micros_max) allowance.cost_micros = *invocation.cost_micros_max;
  return allowance;
}

}  // namespace

/// The stretch of one tool call: shown from its start on, also if the frame that holds it is destroyed.
class LlmWork::ToolSpan {
 public:
  ToolSpan(LlmWork& work, std::string id, const model::ToolCall& call)
      : work_(work), id_(std::move(id)), call_(one_line(call.name + " " + call.arguments, kCallShown)) {
    span_.kind = SpanKind::tool;
    span_.name = one_line(call.name, domain::Span::kNameMax);
    work_.open_tools_[id_] = this;
  }
  ~ToolSpan() {
    work_.open_tools_.erase(id_);
    if (!begun_) return;
    span_.length = work_.parts_.executor.now() - *begun_;
    work_.publish_span(std::move(span_));
  }
  ToolSpan(const ToolSpan&) = delete;
  ToolSpan& operator=(const ToolSpan&) = delete;

  void begin() {
    if (begun_) return;
    begun_ = work_.parts_.executor.now();
    work_.tools_used_ = true;
    work_.publish(Kind::tool, call_);
  }
  void set_result(const ToolResult& result) { span_.text = shortened(result.text, domain::Span::kTextMax); }

 private:
  LlmWork& work_;
  const std::string id_, call_;
  std::optional<TimePoint> begun_;
  domain::Span span_;
};

LlmWork::LlmWork(Parts parts, domain::WorkOrder order)
    : parts_(std::move(parts)),
      order_(std::move(order)),
      pieces_(parts_.mask, own_mask_),
      budget_(allowance_of(order_.spec.invocation)) {
  for (const std::string& secret : order_.spec.secrets) own_mask_.add(secret);
  own_mask_.add(order_.spec.endpoint.key);
  outcome_.conversation = order_.conversation.empty() ? conversation_of(order_) : order_.conversation;
  parts_.all.insert(this);
}

LlmWork::~LlmWork() { parts_.all.erase(this); }

std::string LlmWork::conversation_of(const domain::WorkOrder& order) {
  return order.new_conversation.empty() ? "llm:" + order.mark() : order.new_conversation;
}

Task<Result<std::unique_ptr<domain::WorkReport>>> LlmWork::run() {
  if (ended_) co_return fail(Errc::cancelled, why_ended_);
  if (order_.after_loss && parts_.survivors != nullptr) {
    STINT_CO_CHECK(co_await end_leftovers());
  }
  if (!order_.spec.note.empty()) publish(Kind::note, order_.spec.note);
  publish(Kind::conversation, outcome_.conversation);
  co_await race(carry(), until_ended());
  end_message();
  if (ended_ && !concluded_) {
    publish_span({.kind = SpanKind::ending, .name = {}, .length = parts_.executor.now() - ended_at_, .usage = {}});
  }
  co_return report();
}

void LlmWork::end(OutcomeKind kind, std::string why) {
  if (concluded_ || ended_) return;
  ended_ = kind;
  why_ended_ = std::move(why);
  ended_at_ = parts_.executor.now();
  changed_.notify();
}

void LlmWork::hold(bool held) {
  holds_ += held ? 1 : -1;
  changed_.notify();
}

std::optional<domain::WaitReason> LlmWork::waits_for() const {
  if (ends_leftovers_) return domain::WaitReason{.cause = domain::WaitCause::leftovers};
  return watch_.reason();
}

Task<> LlmWork::until_ended() {
  while (!ended_) co_await changed_.wait(changed_.count());
}

/// Ends what tools of a lost attempt left alive.
Task<Result<>> LlmWork::end_leftovers() {
  std::vector<domain::Survivors::Leftover> leftovers{{order_.run, domain::Fence{order_.fence.value - 1}}};
  ends_leftovers_ = true;
  const auto ending = co_await parts_.survivors->end(std::move(leftovers), [this] { return ended_.has_value(); });
  ends_leftovers_ = false;
  if (ended_) co_return fail(Errc::cancelled, why_ended_);
  if (ending.left.empty()) co_return Result<>();
  co_return fail(Error(Errc::exhausted, Retry::safe,
                       "processes of an earlier attempt did not end, even after SIGKILL: " + ending.left));
}

Task<> LlmWork::carry() {
  const Result<> carried = co_await attempt();
  if (carried || ended_) co_return;
  conclude(OutcomeKind::agent_error, one_line(carried.error().describe(), Outcome::kMessageMax));
}

Task<Result<>> LlmWork::attempt() {
  STINT_CO_CHECK(prepare());
  STINT_CO_CHECK(co_await recall());
  if (concluded_) co_return Result<>();
  if (order_.spec.tools.empty()) co_return co_await converse();
  co_return co_await with_tools();
}

Task<Result<>> LlmWork::with_tools() {
  tools_ = parts_.make_tools(tool_options());
  auto body = [this](Scope& scope) -> Task<Result<>> {
    scope.spawn(tools_->run());
    Result<> done = co_await tools_->open();
    for (const std::string& note : tools_->notes()) publish(Kind::note, note);
    if (done) done = co_await converse();
    tools_->close();
    co_return done;
  };
  co_return co_await with_scope(std::ref(body));
}

Result<> LlmWork::prepare() {
  const domain::ModelEndpoint& endpoint = order_.spec.endpoint;
  const std::optional<model::Dialect> dialect = model::parse_dialect(endpoint.dialect);
  if (!dialect) return fail(Errc::invalid, fmt::format("unknown dialect '{}'", one_line(endpoint.dialect, kCallShown)));
  dialect_ = *dialect;
  if (order_.spec.output.empty()) return {};
  auto schema = JsonSchema::parse(order_.spec.output);
  if (!schema) return fail(Errc::invalid, fmt::format("output{}", schema.error().what()));
  schema_ = *std::move(schema);
  return {};
}

/// Reads the conversation to continue, or begins one.
Task<Result<>> LlmWork::recall() {
  while (!order_.conversation.empty()) {
    STINT_CO_TRY(const auto page, co_await parts_.context.messages(static_cast<std::uint32_t>(messages_.size())));
    if (page.empty()) break;
    for (const std::string& body : page) {
      STINT_CO_TRY(model::Message message, model::read_message(body));
      messages_.push_back(std::move(message));
    }
  }
  recalled_ = messages_.size();
  if (!messages_.empty()) co_return Result<>();
  if (order_.conversation.empty()) co_return co_await keep(user_message(order_.spec.invocation.prompt));
  conversation_missing_ = order_.conversation_may_not_exist;
  conclude(OutcomeKind::agent_error, conversation_missing_
                                         ? "its conversation had not begun when its node was lost: it starts from the "
                                           "beginning"
                                         : "the store has no conversation to continue");
  co_return Result<>();
}

Task<Result<>> LlmWork::converse() {
  while (!concluded_ && !ended_) {
    switch (next_step(messages_)) {
      case NextStep::ask: STINT_CO_CHECK(co_await ask()); break;
      case NextStep::answer: STINT_CO_CHECK(co_await answer_calls()); break;
      case NextStep::finish: STINT_CO_CHECK(co_await finish()); break;
    }
  }
  co_return Result<>();
}

Task<Result<>> LlmWork::ask() {
  const int turns_max = order_.spec.invocation.turns_max.value_or(kTurnsMax);
  if (turns_ >= turns_max) {
    conclude(OutcomeKind::agent_error, fmt::format("it made {} model calls without an end", turns_));
    co_return Result<>();
  }
  ++turns_;
  STINT_CO_TRY(model::ModelRequest request, this->request());
  STINT_CO_TRY(model::CallTarget target, this->target());
  STINT_CO_TRY(const std::vector<Permit> permits, co_await take_call_permits());
  malformed_.clear();
  const model::CallOptions options{.budget = &budget_, .watch = &watch_};
  auto answer = co_await parts_.caller.call(std::move(request), std::move(target), options, *this);
  end_message();
  if (!answer) {
    conclude(unsent_call(answer.error()));
    co_return Result<>();
  }
  set_text(answer->text);
  if (auto bad = bad_end(*answer)) {
    conclude(*std::move(bad));
    co_return Result<>();
  }
  co_return co_await keep(std::move(answer->message));
}

Task<Result<std::vector<Permit>>> LlmWork::take_call_permits() {
  std::vector<Permit> permits;
  for (const domain::LimitRequest& limit : order_.spec.call_limits) {
    STINT_CO_TRY(Permit permit, co_await parts_.context.acquire(limit.name, limit.weight));
    permits.push_back(std::move(permit));
  }
  co_return permits;
}

Result<model::ModelRequest> LlmWork::request() {
  STINT_TRY(SentMessages sent, messages_to_send(messages_));
  if (sent.results_left_out != results_left_out_) {
    results_left_out_ = sent.results_left_out;
    publish(Kind::note, fmt::format("the conversation is long: the model no longer gets {} results of tools, {} bytes",
                                    sent.results_left_out, sent.bytes_left_out));
  }
  model::ModelRequest request;
  request.model = order_.spec.endpoint.model;
  request.compatible_server = order_.spec.endpoint.compatible_server;
  request.system = order_.spec.invocation.system_prompt;
  request.messages = std::move(sent.messages);
  if (schema_) request.output_schema = order_.spec.output;
  if (!tools_) return request;
  for (const ToolOffer& offer : tools_->offers()) {
    if (!is_permitted(offer.tool_class, order_.spec.invocation.permissions)) continue;
    request.tools.push_back(
        {.name = offer.name, .description = offer.description, .input_schema = json::serialize(offer.input)});
  }
  return request;
}

Result<model::CallTarget> LlmWork::target() {
  const domain::ModelEndpoint& endpoint = order_.spec.endpoint;
  model::UpstreamOptions options;
  options.cache_reads_count = endpoint.cache_reads_count;
  model::CallTarget target{.dialect = dialect_,
                           .endpoint = endpoint.url,
                           .key = model::Secret(endpoint.key),
                           .price = order_.spec.invocation.price};
  STINT_TRY(target.upstream,
            parts_.upstreams.at(
                {.provider = endpoint.provider, .account = endpoint.account, .model_class = endpoint.model}, options));
  // The engine holds back the runs of a paused account. It began this one, so a person has acted.
  const std::optional<model::Pause> pause = target.upstream->pause();
  if (turns_ == 1 && pause && !pause->until) parts_.upstreams.resume(endpoint.account);
  return target;
}

/// Answers the calls of the last message: all of them at once, results in the order of the calls.
Task<Result<>> LlmWork::answer_calls() {
  calls_ = model::unanswered_calls(messages_);
  std::vector<std::size_t> indices(calls_.size());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  const std::size_t lanes = indices.size();  // the tools have their own limit
  auto answer = [this](std::size_t index) { return answer_call(index); };
  STINT_CO_TRY(const std::vector<ToolResult> results, co_await map_bounded(std::move(indices), lanes, answer));
  if (mark_error_) co_return std::unexpected(*mark_error_);
  STINT_CO_CHECK(co_await keep(results_message(calls_, results)));
  if (!in_doubt_.empty()) conclude(OutcomeKind::in_doubt, in_doubt_);
  co_return Result<>();
}

Task<ToolResult> LlmWork::answer_call(std::size_t index) {
  const model::ToolCall& call = calls_[index];
  const bool is_recalled = messages_.size() <= recalled_;
  if (auto refused = refusal_of(call, is_recalled)) co_return *std::move(refused);
  // The same in every attempt: the number of the message that asks for it, and its place there.
  std::string id = fmt::format("{}-{}-{}", order_.run, messages_.size() - 1, index);
  ToolSpan span(*this, id, call);
  ToolResult result = co_await tools_->call(call.name, std::move(id), call.arguments);
  span.set_result(result);
  if (result.state == ToolResult::State::unknown && in_doubt_.empty()) {
    in_doubt_ = one_line(fmt::format("{}: {}", call.name, result.text), Outcome::kMessageMax);
  }
  co_return result;
}

/// Why the call is answered without being made.
std::optional<ToolResult> LlmWork::refusal_of(const model::ToolCall& call, bool is_recalled) {
  const auto written = malformed_.find(call.id);
  if (written != malformed_.end()) return malformed_result(written->second);
  std::optional<domain::ToolClass> tool_class;
  if (tools_) {
    const auto offer = std::ranges::find(tools_->offers(), call.name, &ToolOffer::name);
    if (offer != tools_->offers().end()) tool_class = offer->tool_class;
  }
  if (!tool_class || !is_permitted(*tool_class, order_.spec.invocation.permissions)) {
    Denial denial = denial_of(call, tool_class);
    ToolResult result{
        .text = fmt::format("{} may not be used; the agent's file would allow it with `{}`", denial.tool, denial.allow),
        .is_error = true,
        .state = ToolResult::State::not_started};
    if (outcome_.denials.size() < Outcome::kDenialsMax) outcome_.denials.push_back(std::move(denial));
    return result;
  }
  if (is_recalled && *tool_class == domain::ToolClass::once) return lost_result(call.name);
  return std::nullopt;
}

/// The last message is an answer: takes it, or asks once for a correction.
Task<Result<>> LlmWork::finish() {
  std::string text = answer_text(messages_.back(), schema_.has_value());
  const std::string mismatch = schema_ ? mismatch_of(*schema_, text) : std::string();
  if (!mismatch.empty() && !was_corrected(messages_)) co_return co_await keep(correction(mismatch));
  set_text(std::move(text));
  if (mismatch.empty()) {
    conclude(OutcomeKind::succeeded, {});
  } else {
    conclude(OutcomeKind::agent_error,
             one_line("the answer does not have the form that `output` asks for, also after a correction: " + mismatch,
                      Outcome::kMessageMax));
  }
  co_return Result<>();
}

Task<Result<>> LlmWork::keep(model::Message message) {
  STINT_CO_CHECK(
      co_await parts_.context.keep_message(static_cast<std::uint32_t>(messages_.size()), model::to_json(message)));
  messages_.push_back(std::move(message));
  co_return Result<>();
}

Task<Result<>> LlmWork::announce() {
  Result<> marked = co_await parts_.context.effects_unknown();
  if (!marked) mark_error_ = marked.error();
  co_return marked;
}

void LlmWork::begin_tool(const std::string& id) {
  const auto found = open_tools_.find(id);
  if (found != open_tools_.end()) found->second->begin();
}

ToolRunner::Options LlmWork::tool_options() {
  ToolRunner::Options options;
  options.tools = order_.spec.tools;
  options.run = order_.mark();
  options.directory = order_.spec.directory;
  options.environment = order_.spec.environment;
  options.effects_unknown = [this] { return announce(); };
  options.effects_known = [this] { return parts_.context.effects_known(); };
  options.on_start = [this](const std::string& id) { begin_tool(id); };
  options.on_ended = [this](std::uint32_t processes) { processes_ended_ += processes; };
  return options;
}

void LlmWork::on_event(const model::StreamEvent& event) {
  if (const auto* const delta = std::get_if<model::TextDelta>(&event)) {
    if (!delta->text.empty()) in_line_ = !delta->text.ends_with('\n');
    return publish_text(pieces_.add(delta->text));
  }
  if (const auto* const call = std::get_if<model::CallComplete>(&event)) {
    if (call->malformed) malformed_.emplace(call->call.id, shortened(*call->malformed, kCallShown));
  }
  publish(Kind::life, {});
}

void LlmWork::on_span(const domain::Span& span) noexcept {
  const bool is_call = span.kind == SpanKind::model_call;
  if (is_call && ended_) ++streams_closed_;
  if (is_call) outcome_.usage += span.usage;
  publish_span(span);
  if (is_call) publish(Kind::usage, {});
}

void LlmWork::conclude(Outcome outcome) {
  if (ended_) return;
  outcome.text = std::move(outcome_.text);
  outcome.usage = outcome_.usage;
  outcome.conversation = std::move(outcome_.conversation);
  outcome.denials = std::move(outcome_.denials);
  outcome_ = std::move(outcome);
  concluded_ = true;
}

void LlmWork::conclude(OutcomeKind kind, std::string why) {
  Outcome outcome;
  outcome.kind = kind;
  outcome.message = std::move(why);
  conclude(std::move(outcome));
}

void LlmWork::publish(Kind kind, std::string text) {
  domain::WorkUpdate update;
  update.kind = kind;
  if (kind != Kind::conversation) mask_secrets(text);
  update.text = std::move(text);
  update.usage = outcome_.usage;
  parts_.context.publish(update);
}

void LlmWork::publish_span(domain::Span span) {
  mask_secrets(span.name);
  mask_secrets(span.text);
  domain::WorkUpdate update;
  update.kind = Kind::span;
  update.span = std::move(span);
  parts_.context.publish(update);
}

/// `text` is masked.
void LlmWork::publish_text(std::string text) {
  if (parts_.on_output && !text.empty()) parts_.on_output(text);
  domain::WorkUpdate update;
  update.kind = text.empty() ? Kind::life : Kind::text;
  for (std::size_t at = 0; at == 0 || at < text.size(); at += domain::WorkUpdate::kTextMax) {
    update.text = text.substr(at, domain::WorkUpdate::kTextMax);
    parts_.context.publish(update);
  }
}

void LlmWork::end_message() {
  if (std::exchange(in_line_, false)) publish_text(pieces_.finish() + "\n");
}

void LlmWork::set_text(std::string text) {
  outcome_.text = text.size() > Outcome::kTextMax ? ending(text, Outcome::kTextMax) : std::move(text);
}

void LlmWork::mask_secrets(std::string& text) const {
  own_mask_.apply(text);
  parts_.mask.apply(text);
}

std::unique_ptr<domain::WorkReport> LlmWork::report() {
  auto report = std::make_unique<domain::WorkReport>();
  if (!concluded_) {
    outcome_.kind = ended_.value_or(OutcomeKind::crashed);
    outcome_.message = why_ended_;
    report->ending = parts_.executor.now() - ended_at_;
  }
  concluded_ = true;
  report->outcome = std::move(outcome_);
  mask_secrets(report->outcome.text);
  mask_secrets(report->outcome.message);
  for (Denial& denial : report->outcome.denials) mask_secrets(denial.call);
  report->tools_used = tools_used_;
  report->conversation_missing = conversation_missing_;
  report->processes_ended = processes_ended_;
  report->streams_closed = streams_closed_;
  return report;
}

}  // namespace stint::driver
