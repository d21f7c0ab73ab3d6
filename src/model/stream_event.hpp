/// What happens while a model answers, the same for every dialect.
#pragma once

#include "domain/usage.hpp"
#include "model/conversation.hpp"
#include "model/failure.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stint::model {

/// Why the model stopped.
enum class StopReason : std::uint8_t {
  end_turn,
  max_tokens,
  tool_use,        ///< it waits for the results of its calls
  refusal,         ///< the model declined
  pause_turn,      ///< the provider paused a long turn: send the message back to continue
  context_window,  ///< the conversation fills the model's window
  content_filter,  ///< the provider withheld the answer
  other,
};
[[nodiscard]] std::string_view to_string(StopReason reason) noexcept;

struct MessageStarted {
  std::string id, model;
  friend bool operator==(const MessageStarted&, const MessageStarted&) = default;
};
struct TextDelta {
  std::string text;
  friend bool operator==(const TextDelta&, const TextDelta&) = default;
};
struct ThinkingDelta {
  std::string text;
  friend bool operator==(const ThinkingDelta&, const ThinkingDelta&) = default;
};
/// `index` numbers the calls of one answer, from 0.
struct CallBegun {
  std::size_t index = 0;
  std::string id, name;
  friend bool operator==(const CallBegun&, const CallBegun&) = default;
};
struct CallArguments {
  std::size_t index = 0;
  std::string delta;
  friend bool operator==(const CallArguments&, const CallArguments&) = default;
};
struct CallComplete {
  std::size_t index = 0;
  ToolCall call;
  /// What the model wrote, if it is not one JSON object: the call must not be made, and `call.arguments` is `{}`.
  std::optional<std::string> malformed;
  friend bool operator==(const CallComplete&, const CallComplete&) = default;
};
/// Of this answer so far: each replaces the one before.
struct UsageSoFar {
  Usage usage;
  friend bool operator==(const UsageSoFar&, const UsageSoFar&) = default;
};
struct Stopped {
  StopReason reason = StopReason::other;
  std::string verbatim;  ///< the provider's word
  friend bool operator==(const Stopped&, const Stopped&) = default;
};
/// The last event of an answer that failed.
struct AnswerFailed {
  Failure failure;
  friend bool operator==(const AnswerFailed&, const AnswerFailed&) = default;
};
/// The last event of an answer that ended as its protocol says. An answer without it is not complete.
struct AnswerCompleted {
  friend bool operator==(const AnswerCompleted&, const AnswerCompleted&) = default;
};

using StreamEvent = std::variant<MessageStarted, TextDelta, ThinkingDelta, CallBegun, CallArguments, CallComplete,
                                 UsageSoFar, Stopped, AnswerFailed, AnswerCompleted>;

}  // namespace stint::model
