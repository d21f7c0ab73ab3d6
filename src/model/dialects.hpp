/// What each dialect consists of, for the files of this folder: one table row per protocol. The functions of a row
/// stand in the files that begin with the protocol's name.
#pragma once

#include "model/answer_builder.hpp"
#include "model/conversation.hpp"
#include "model/json.hpp"
#include "model/sse_parser.hpp"

#include <memory>
#include <string_view>

namespace stint::model {

/// Reads the events of one answer into a builder.
class EventReader {
 public:
  EventReader() = default;
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;
  virtual ~EventReader() = default;

  virtual void read(const SseEvent& event, AnswerBuilder& answer) = 0;
  /// The body has ended: a protocol without a terminator of its own decides here.
  virtual void finish(AnswerBuilder& /*answer*/) {}
  /// An answer in one piece, without a stream.
  virtual void read_whole(const json::value& body, AnswerBuilder& answer) = 0;
};

/// The words of rate limit headers: prefix, what is limited, and `limit`, `remaining` or `reset`, joined by hyphens.
struct RateNames {
  std::string_view prefix{}, requests{}, tokens{}, input_tokens{}, output_tokens{};  // empty: not reported
  bool what_first = true;                                                            // `requests-limit`
};

struct DialectParts {
  std::string_view name;
  std::string_view key_header, key_prefix;
  RateNames rates;
  Result<HttpRequest> (*write)(const ModelRequest& request);
  std::unique_ptr<EventReader> (*reader)();
  ErrorNote (*read_error)(const json::value& body);
  bool (*answers)(std::string_view path) noexcept;  ///< whether the path asks a model for an answer
};
[[nodiscard]] const DialectParts& parts_of(Dialect dialect) noexcept;

namespace anthropic {
Result<HttpRequest> write(const ModelRequest& request);
}
namespace chat {
Result<HttpRequest> write(const ModelRequest& request);
}
namespace responses {
Result<HttpRequest> write(const ModelRequest& request);
}
namespace gemini {
Result<HttpRequest> write(const ModelRequest& request);
}

extern const DialectParts kAnthropicParts, kChatParts, kResponsesParts, kGeminiParts;

/// A JSON Schema or arguments of a call, as text, for a request. `what` names it in the error.
[[nodiscard]] Result<json::object> required_object(std::string_view text, std::string_view what);
/// The arguments of a call, or an empty object.
[[nodiscard]] json::object arguments_of(const ToolCall& call);

}  // namespace stint::model
