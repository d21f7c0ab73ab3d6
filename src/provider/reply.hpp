/// What the simulated provider does with one request: the text, the tool calls, the pace, and the fault.
/// A reply is made of keys and values, the same in a script file and in a prompt's `@provider:` line
/// (docs/provider.md lists them). Pure values, independent of protocol and clock.
#pragma once

#include "stint/error.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::provider {

enum class Fault : std::uint8_t {
  none,
  status,        ///< answer `Reply::status` instead of the reply
  spend_limit,   ///< the answer of an account that has reached its spend limit
  hang,          ///< no answer at all, not even a header
  hang_stream,   ///< silence after `Reply::after` tokens; an answer that is not a stream never arrives
  half_stream,   ///< the body ends properly, but without the protocol's last event
  cut,           ///< the connection closes in the middle of an event
  reset,         ///< the connection is reset before any answer
  reset_stream,  ///< the same after `Reply::after` tokens
  malformed,     ///< an event that is invalid JSON; the stream continues after it
  error_event,   ///< the protocol's own error in the middle of a good stream: overloaded
};
[[nodiscard]] std::string_view to_string(Fault fault) noexcept;

struct ToolCall {
  std::string name;
  std::string input = "{}";  ///< JSON, an object
};

struct Reply {
  static constexpr std::size_t kTextMax = 1 << 20;
  static constexpr std::uint32_t kTokensMax = 100'000;  // the longest stream: more than any model's answer today
  static constexpr double kRateMax = 1e6;
  static constexpr Duration kDelayMax = std::chrono::hours(1);
  static constexpr std::size_t kToolsMax = 32;
  static constexpr std::size_t kInputMax = 64 << 10;  // of one tool call
  static constexpr std::size_t kHeadersMax = 16;

  std::optional<std::string> text;  ///< absent: a built-in text, unless there are tool calls
  std::string thinking;
  std::vector<ToolCall> tools;
  std::uint32_t tokens = 0;  ///< cut or repeat the text to this length; 0: as it is
  double rate = 0;           ///< tokens a second; 0: all at once
  Duration delay{};          ///< before the answer's header
  Duration first_token{};    ///< between the header and the first token
  Fault fault = Fault::none;
  int status = 0;                                 ///< of Fault::status
  std::string message;                            ///< of an error, instead of the usual one
  std::string retry_after;                        ///< a header, verbatim; empty: not sent
  std::uint32_t after = 3;                        ///< tokens before a fault in the stream
  std::uint32_t times = 0;                        ///< number of requests it applies to; 0: always
  std::uint32_t cache_read = 0, cache_write = 0;  ///< input tokens to report as such
  bool deaf = false;                              ///< keeps generating after the client has left, as some upstreams do
  std::vector<std::pair<std::string, std::string>> headers;  ///< further headers of the answer
};

/// Sets one key. `Errc::invalid` names the key, the value and what is allowed.
[[nodiscard]] Result<> set(Reply& reply, std::string_view key, std::string_view value);

/// A prompt line after `@provider:`: `delay=2s tokens=200 rate=40/s text="two words" input={"a": 1}`.
[[nodiscard]] Result<> apply_directive(Reply& reply, std::string_view line);

/// The directive lines of a prompt, in order: the n-th is for the n-th turn.
[[nodiscard]] std::vector<std::string_view> directives(std::string_view prompt);

/// The built-in text, if neither script nor prompt gives one: short, the same for the same prompt.
[[nodiscard]] std::string built_in_reply(std::string_view prompt);

/// Splits text into pieces that stand for tokens: a word with the space after it, long words in parts. Characters stay
/// whole.
[[nodiscard]] std::vector<std::string> split_tokens(std::string_view text);
/// Estimated number of tokens of a text, for input counts.
[[nodiscard]] std::uint32_t estimate_tokens(std::size_t bytes) noexcept;

/// One part of an answer, ready to be sent.
struct Block {
  enum class Kind : std::uint8_t { text, thinking, tool };
  Kind kind = Kind::text;
  std::string name;  ///< of a tool
  std::string id;    ///< of a tool call; distinct for every call of every request
  std::vector<std::string> pieces;

  [[nodiscard]] std::string whole() const;
};
/// The answer in its parts; `serial` is the request's number; ids are derived from it.
[[nodiscard]] std::vector<Block> make_blocks(const Reply& reply, std::string_view prompt, std::uint64_t serial);

}  // namespace stint::provider
