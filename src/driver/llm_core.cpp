#include "driver/llm_core.hpp"

#include "driver/dialect_support.hpp"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace stint::driver {
namespace {

using model::CallEnd;
using model::FailureKind;
using model::Message;
using model::StopReason;

constexpr std::size_t kCallShownMax = 200;  // bytes of a call in a denial
constexpr std::string_view kCorrection =
    "Your answer does not have the form that was asked for. Give the whole answer again, as JSON and nothing else:\n";

std::size_t size_of(const model::Block& block) {
  if (const auto* const text = std::get_if<model::TextBlock>(&block)) return text->text.size();
  if (const auto* const call = std::get_if<model::ToolCall>(&block)) return call->name.size() + call->arguments.size();
  if (const auto* const result = std::get_if<model::ToolResult>(&block)) return result->content.size();
  return std::get<model::OpaqueBlock>(block).json.size();
}

std::size_t size_of(std::span<const Message> messages) {
  std::size_t sum = 0;
  for (const Message& message : messages) {
    for (const model::Block& block : message.content) sum += size_of(block);
  }
  return sum;
}

std::string left_out(std::size_t bytes) {
  return fmt::format(
      "[the result, {} bytes, is left out: the conversation is long. Call the tool again if you need it]", bytes);
}

Outcome outcome_of(OutcomeKind kind, std::string message) {
  Outcome outcome;
  outcome.kind = kind;
  outcome.message = std::move(message);
  return outcome;
}

/// A stop that is not the model's own end of its turn.
std::optional<Outcome> bad_stop(const model::ModelAnswer& answer) {
  switch (answer.stop) {
    case StopReason::end_turn:
    case StopReason::tool_use: return std::nullopt;
    case StopReason::max_tokens:
      if (answer.output_lowered) return outcome_of(OutcomeKind::over_budget, "the budget ended within the answer");
      return outcome_of(OutcomeKind::agent_error, "the answer is longer than the model may write at once");
    case StopReason::refusal: return outcome_of(OutcomeKind::agent_error, "the model declined to answer");
    case StopReason::content_filter:
      return outcome_of(OutcomeKind::agent_error, "the provider withheld the answer: its content filter");
    case StopReason::context_window:
      return outcome_of(OutcomeKind::agent_error, "the conversation fills the model's window");
    case StopReason::pause_turn: return outcome_of(OutcomeKind::agent_error, "the provider paused the answer");
    case StopReason::other: break;
  }
  return outcome_of(OutcomeKind::agent_error, "the model stopped for an unknown reason");
}

OutcomeKind kind_of(const model::Failure& failure) {
  constexpr int kTooManyRequests = 429;
  switch (failure.kind) {
    case FailureKind::quota: return OutcomeKind::rate_limited;
    case FailureKind::retry:
      return failure.status == kTooManyRequests ? OutcomeKind::rate_limited : OutcomeKind::api_error;
    case FailureKind::auth: return OutcomeKind::not_logged_in;
    case FailureKind::context_too_long:
    case FailureKind::failed: return OutcomeKind::agent_error;
    case FailureKind::overload:
    case FailureKind::spend_limit:
    case FailureKind::denied:
    case FailureKind::invalid:
    case FailureKind::not_found:
    case FailureKind::ambiguous: break;
  }
  return OutcomeKind::api_error;
}

Outcome outcome_of(const model::Failure& failure, const std::optional<Error>& error) {
  Outcome outcome = outcome_of(kind_of(failure), error ? error->describe() : failure.message);
  outcome.message = one_line(outcome.message, Outcome::kMessageMax);
  if (failure.status != 0) outcome.http_status = failure.status;
  if (failure.kind == FailureKind::spend_limit) return outcome;  // no window: a person decides
  outcome.retry_after = failure.delay;
  const bool was_not_sent = failure.repeat == Retry::safe && !failure.after_output;
  outcome.unreachable = outcome.kind == OutcomeKind::api_error && failure.status == 0 && was_not_sent;
  return outcome;
}

}  // namespace

NextStep next_step(std::span<const Message> messages) {
  if (!model::unanswered_calls(messages).empty()) return NextStep::answer;
  if (messages.empty() || messages.back().role == model::Role::user) return NextStep::ask;
  return NextStep::finish;
}

std::string answer_text(const Message& answer, bool has_schema) {
  std::string text;
  for (const model::Block& block : answer.content) {
    const auto* const part = std::get_if<model::TextBlock>(&block);
    if (part == nullptr) continue;
    if (has_schema) text.clear();
    text += part->text;
  }
  return text;
}

Message user_message(std::string text) {
  return {.role = model::Role::user, .content = {model::TextBlock{std::move(text)}}};
}

Message results_message(std::span<const model::ToolCall> calls, std::span<const ToolResult> results) {
  Message message{.role = model::Role::user, .content = {}};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    message.content.emplace_back(
        model::ToolResult{.call = calls[i].id, .content = results[i].text, .is_error = results[i].is_error});
  }
  return message;
}

ToolResult lost_result(std::string_view tool) {
  return {.text = fmt::format("The work was interrupted while {} was under way or before it began. Its outcome is "
                              "unknown, and it is not called again: it may have taken effect. Look first, if you can.",
                              one_line(tool, kCallShownMax)),
          .is_error = true,
          .state = ToolResult::State::unknown};
}

ToolResult malformed_result(std::string_view written) {
  return {.text = fmt::format("the arguments are not one JSON object; the tool was not run: {}",
                              one_line(written, kCallShownMax)),
          .is_error = true,
          .state = ToolResult::State::not_started};
}

bool is_permitted(domain::ToolClass tool_class, domain::Permissions permissions) noexcept {
  return permissions != domain::Permissions::read || tool_class == domain::ToolClass::read;
}

Denial denial_of(const model::ToolCall& call, std::optional<domain::ToolClass> tool_class) {
  return {.tool = one_line(call.name, kCallShownMax),
          .call = one_line(call.name + " " + call.arguments, kCallShownMax),
          .allow = tool_class ? std::string("permissions: edit")
                              : fmt::format("tools: [{{name: {}, command: […]}}]", one_line(call.name, kCallShownMax))};
}

Result<SentMessages> messages_to_send(std::span<const Message> messages, std::size_t bytes_max) {
  SentMessages sent{.messages = {messages.begin(), messages.end()}};
  std::size_t size = size_of(messages);
  if (size <= bytes_max) return sent;
  // How much is left out grows in steps, so that the next calls leave out the same.
  const std::size_t step = std::max<std::size_t>(1, bytes_max / 4);
  const std::size_t excess = size - bytes_max;
  const std::size_t wanted = (excess + step - 1) / step * step;
  for (std::size_t i = 0; i + 1 < sent.messages.size(); ++i) {
    for (model::Block& block : sent.messages[i].content) {
      auto* const result = std::get_if<model::ToolResult>(&block);
      if (result == nullptr || sent.bytes_left_out >= wanted) continue;
      std::string line = left_out(result->content.size());
      if (line.size() >= result->content.size()) continue;
      sent.bytes_left_out += result->content.size() - line.size();
      ++sent.results_left_out;
      result->content = std::move(line);
    }
  }
  if (size - sent.bytes_left_out <= bytes_max) return sent;
  return fail(Errc::exhausted,
              fmt::format("the conversation has {} bytes, and at most {} are sent: give the agent a smaller task, or "
                          "tools with shorter results",
                          size - sent.bytes_left_out, bytes_max));
}

std::string mismatch_of(const JsonSchema& schema, std::string_view answer) {
  boost::system::error_code error;
  const json::value value = json::parse(answer, error);
  if (error) return fmt::format("it is not JSON: {}", error.message());
  return describe(schema.check(value));
}

Message correction(std::string_view mismatch) { return user_message(std::string(kCorrection) + std::string(mismatch)); }

bool was_corrected(std::span<const Message> messages) {
  return std::ranges::any_of(messages, [](const Message& message) {
    return message.role == model::Role::user && answer_text(message, false).starts_with(kCorrection);
  });
}

std::optional<Outcome> bad_end(const model::ModelAnswer& answer) {
  switch (answer.end) {
    case CallEnd::completed: return bad_stop(answer);
    case CallEnd::cut: return outcome_of(OutcomeKind::over_budget, "the budget ended within an answer of the model");
    case CallEnd::broken:
    case CallEnd::failed: break;
  }
  return outcome_of(answer.failure.value_or(model::Failure()), answer.error);
}

Outcome unsent_call(const Error& error) {
  const std::string why = one_line(error.describe(), Outcome::kMessageMax);
  if (error == Errc::exhausted) return outcome_of(OutcomeKind::over_budget, why);
  return outcome_of(OutcomeKind::agent_error, why);
}

}  // namespace stint::driver
