/// The protocols of model providers. A dialect turns a neutral request into the parts of an HTTP request, and the bytes
/// of the answer into events (answer_reader.hpp). Each protocol's names stand in its own files; this header is what
/// the rest of the program uses. Pure: no I/O, no clock.
#pragma once

#include "stint/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::model {

enum class Dialect : std::uint8_t {
  anthropic,  ///< Anthropic Messages
  chat,       ///< OpenAI Chat Completions; also vLLM, llama.cpp, Ollama and many gateways
  responses,  ///< OpenAI Responses
  gemini,     ///< Gemini streamGenerateContent
};
inline constexpr Dialect kDialects[] = {Dialect::anthropic, Dialect::chat, Dialect::responses, Dialect::gemini};
[[nodiscard]] std::string_view to_string(Dialect dialect) noexcept;
[[nodiscard]] std::optional<Dialect> parse_dialect(std::string_view name) noexcept;

using Headers = std::vector<std::pair<std::string, std::string>>;
/// The first header of that name; names ignore case.
[[nodiscard]] std::optional<std::string_view> header(const Headers& headers, std::string_view name) noexcept;

/// A POST. The key is not a part of it, so that it can be logged: `credential` gives that header.
struct HttpRequest {
  std::string path;  ///< with the query, below the upstream's base URL
  Headers headers;
  std::string body;
};

struct ModelRequest;
/// Always asks for a stream. `Errc::invalid`: the request can't be written, such as a schema that is not a JSON object.
[[nodiscard]] Result<HttpRequest> write_request(Dialect dialect, const ModelRequest& request);
/// The header that carries the key.
[[nodiscard]] std::pair<std::string, std::string> credential(Dialect dialect, std::string_view key);
/// Joins a base URL and a path. A version that both have, as in `http://localhost:11434/v1`, is not repeated.
[[nodiscard]] std::string request_url(std::string_view base, std::string_view path);

/// The dialect of a request that asks a model for an answer, by its path. None: another endpoint, such as one that
/// counts tokens.
[[nodiscard]] std::optional<Dialect> dialect_of_path(std::string_view path) noexcept;

}  // namespace stint::model
