/// The few words of HTTP/1.1 that the provider says: heads of answers, chunks of streams. Pure text.
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
  std::optional<std::size_t> length = {};  ///< absent: the body comes in chunks
  bool keep_alive = true;
  std::vector<std::pair<std::string, std::string>> headers = {};
};
[[nodiscard]] std::string write_head(const Head& head);

/// An empty one would end the body, so it gives nothing.
[[nodiscard]] std::string chunk(std::string_view data);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace stint::provider
