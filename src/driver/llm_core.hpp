/// The rules of a conversation that Stint itself carries with a model: what comes next, what is sent of a long
/// conversation, what a dangling tool call becomes after a crash, whether an answer has the form that was asked for,
/// and what a failed call means for the run. Pure.
#pragma once

#include "domain/agent.hpp"
#include "domain/outcome.hpp"
#include "driver/json_schema.hpp"
#include "driver/tool_call.hpp"
#include "model/caller.hpp"
#include "model/conversation.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint::driver {

/// What a conversation needs next. Decided by its messages alone, so that an attempt that continues it goes on where
/// the one before it stopped.
enum class NextStep : std::uint8_t {
  ask,     ///< the model is called
  answer,  ///< the last message has calls without results
  finish,  ///< the last message is the answer
};
[[nodiscard]] NextStep next_step(std::span<const model::Message> messages);

/// The text of an answer: of one with an output schema the JSON alone.
[[nodiscard]] std::string answer_text(const model::Message& answer, bool has_schema);

[[nodiscard]] model::Message user_message(std::string text);
/// One message with a result for each call, in the order of the calls.
[[nodiscard]] model::Message results_message(std::span<const model::ToolCall> calls,
                                             std::span<const ToolResult> results);

/// For a call of an earlier attempt whose result was not stored, and that must not be made again.
[[nodiscard]] ToolResult lost_result(std::string_view tool);
/// For a call whose arguments are not one JSON object.
[[nodiscard]] ToolResult malformed_result(std::string_view written);

/// Whether an agent with these permissions may use a tool: with `read` only those that change nothing.
[[nodiscard]] bool is_permitted(domain::ToolClass tool_class, domain::Permissions permissions) noexcept;
/// A call of a tool that the model was not offered. `tool_class`: it exists, and the permissions forbid it.
[[nodiscard]] Denial denial_of(const model::ToolCall& call, std::optional<domain::ToolClass> tool_class);

/// The most that is sent of a conversation, about 200,000 tokens: above it providers refuse, or bill at a higher rate.
inline constexpr std::size_t kSentBytesMax = 800 << 10;

/// The part of a conversation that is sent. The rule: everything, up to `bytes_max`. Above it, results of tools are
/// replaced by a line that says so, the oldest first, until the whole is a quarter below the bound, so that the prefix
/// changes rarely and the provider's cache stays useful. Results of the last message, and what people and the model
/// said, are never left out. The store keeps everything.
struct SentMessages {
  std::vector<model::Message> messages;
  std::size_t results_left_out = 0;
  std::size_t bytes_left_out = 0;
};
/// Errc::exhausted: it is too long even so.
[[nodiscard]] Result<SentMessages> messages_to_send(std::span<const model::Message> messages,
                                                    std::size_t bytes_max = kSentBytesMax);

/// What is wrong with an answer; empty: it conforms.
[[nodiscard]] std::string mismatch_of(const JsonSchema& schema, std::string_view answer);
/// Asks the model once to correct its answer.
[[nodiscard]] model::Message correction(std::string_view mismatch);
/// Whether that was asked before.
[[nodiscard]] bool was_corrected(std::span<const model::Message> messages);

/// How an attempt ends after an answer that did not end well. None: it ended well.
[[nodiscard]] std::optional<Outcome> bad_end(const model::ModelAnswer& answer);
/// For a call that was not sent at all.
[[nodiscard]] Outcome unsent_call(const Error& error);

}  // namespace stint::driver
