/// A conversation with a model as values, independent of a provider's protocol: messages, tools, and one request.
///
/// What an assistant said is kept so that it can be sent back: text and tool calls in a neutral form, everything else
/// (thinking with its signature, tools that the provider runs) as an opaque block, which goes back word for word to
/// the dialect it came from and to no other.
#pragma once

#include "model/dialect.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stint::model {

struct TextBlock {
  std::string text;
  friend bool operator==(const TextBlock&, const TextBlock&) = default;
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  ///< JSON text, always one object
  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

struct ToolResult {
  std::string call;  ///< ToolCall::id
  std::string content;
  bool is_error = false;
  friend bool operator==(const ToolResult&, const ToolResult&) = default;
};

/// JSON text that only one dialect understands.
struct OpaqueBlock {
  Dialect dialect = Dialect::anthropic;
  std::string json;
  friend bool operator==(const OpaqueBlock&, const OpaqueBlock&) = default;
};

using Block = std::variant<TextBlock, ToolCall, ToolResult, OpaqueBlock>;

enum class Role : std::uint8_t { user, assistant };
[[nodiscard]] std::string_view to_string(Role role) noexcept;

struct Message {
  Role role = Role::user;
  std::vector<Block> content;
  friend bool operator==(const Message&, const Message&) = default;
};

struct ToolDefinition {
  std::string name;
  std::string description;
  std::string input_schema;  ///< a JSON Schema, as text
};

struct ModelRequest {
  std::string model;
  std::string system;
  std::vector<Message> messages;
  std::vector<ToolDefinition> tools;
  std::optional<std::uint32_t> output_tokens_max;  ///< none: kOutputTokensUsual where the protocol wants a number
  std::optional<std::string> output_schema;        ///< the answer is to be JSON of this JSON Schema
  bool parallel_calls = true;                      ///< the model may call several tools at once
  /// The prefix of the conversation is marked for the provider's cache, where a protocol asks for marks.
  bool cached = true;
  /// The upstream speaks the dialect but is not the vendor's own: newer names of parameters are avoided.
  bool compatible_server = false;
};
inline constexpr std::uint32_t kOutputTokensUsual = 8192;

/// The tool by which a model gives its answer where a protocol has no better way to a JSON Schema: its arguments are
/// the answer. Readers show such a call as text.
inline constexpr std::string_view kOutputTool = "stint_output";

/// Calls of the last assistant message without a result after it, in order. Providers refuse a conversation with such
/// calls: one that is continued after a crash gets a result with an error for each.
[[nodiscard]] std::vector<ToolCall> unanswered_calls(std::span<const Message> messages);

}  // namespace stint::model
