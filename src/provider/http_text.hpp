/// The parts of HTTP/1.1 that the provider writes: heads of answers, chunks of streams. Pure text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::provider {

struct Head {
  int status = 200;
  std::string_view type = "application/json";
  std::optional<std::size_t> length = {};  ///< absent: the body is chunked
  bool keep_alive = true;
  std::vector<std::pair<std::string, std::string>> headers = {};
};
[[nodiscard]] std::string write_head(const Head& head);

/// Nothing for an empty piece: it would end the body.
[[nodiscard]] std::string chunk(std::string_view data);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace stint::provider
