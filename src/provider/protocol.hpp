/// The protocols of the simulated provider, behind one interface: a request's JSON becomes an `Ask`; an
/// `Encoder` turns the parts of an answer into the bytes of a stream, or into one body. Each protocol is one file; its
/// names appear nowhere else. Pure: no socket, no clock.
#pragma once

#include "provider/reply.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::provider {

enum class Protocol : std::uint8_t { messages, chat, responses, gemini };
[[nodiscard]] std::string_view to_string(Protocol protocol) noexcept;

struct Ask {
  Protocol protocol = Protocol::messages;
  std::string model;
  std::string prompt;      ///< the last user message, without what a CLI puts around it
  std::uint32_t turn = 0;  ///< answers since then
  std::uint32_t input_tokens = 0;
  bool stream = false;
  bool wants_usage = true;  ///< in the stream
  /// Output tokens that the caller allows; none: unlimited.
  std::optional<std::uint32_t> output_max;
  /// For Messages: the caller keeps its conversation here, and `continues` names the answer that this request follows.
  bool threaded = false;
  std::string continues;
};

struct Tokens {
  std::uint32_t fresh = 0, cache_read = 0, cache_write = 0, output = 0;
};

/// Why an answer ended: it was complete, or its caller's bound cut it.
enum class Finish : std::uint8_t { complete, cut };

/// An error, to be written as the protocol's error body.
struct Failure {
  int status = 500;
  bool spend_limit = false;
  std::string message;  ///< empty: the usual one for the status
  std::string code;     ///< for Messages: the machine-readable reason; empty: none
};

/// Reads a request's body. `target` is the path: some protocols name the model there. `Errc::invalid` tells what is
/// wrong, for the answer 400.
[[nodiscard]] Result<Ask> read_ask(Protocol protocol, std::string_view target, std::string_view body);

/// One answer in one protocol. `begin`, then per block `open`, `piece`…, `close`, then `end`; or `whole` alone.
class Encoder {
 public:
  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  virtual ~Encoder() = default;

  [[nodiscard]] virtual std::string begin(const Tokens& tokens) = 0;
  [[nodiscard]] virtual std::string open(std::size_t index, const Block& block) = 0;
  [[nodiscard]] virtual std::string piece(std::size_t index, const Block& block, std::string_view text) = 0;
  [[nodiscard]] virtual std::string close(std::size_t index, const Block& block) = 0;
  [[nodiscard]] virtual std::string end(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) = 0;
  [[nodiscard]] virtual std::string whole(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) = 0;
  /// The protocol's error inside a stream.
  [[nodiscard]] virtual std::string error(const Failure& failure) = 0;
};
/// `serial` is the request's number; ids are derived from it.
[[nodiscard]] std::unique_ptr<Encoder> make_encoder(const Ask& ask, std::uint64_t serial);

[[nodiscard]] std::string error_body(Protocol protocol, const Failure& failure, std::uint64_t serial);
/// The vendor whose format a list of models has.
enum class ModelForm : std::uint8_t { anthropic, openai, gemini };
[[nodiscard]] std::string models_body(ModelForm form);
/// One model. Every name is valid, as in a request.
[[nodiscard]] std::string model_body(ModelForm form, std::string_view name);
/// The id that Messages gives to the answer of request `serial`.
[[nodiscard]] std::string message_id(std::uint64_t serial);
/// The answer to a request that only counts tokens.
[[nodiscard]] std::string count_body(Protocol protocol, std::uint32_t tokens);

/// An event of a stream, `name` may be empty.
[[nodiscard]] std::string sse(std::string_view name, std::string_view data);

}  // namespace stint::provider
