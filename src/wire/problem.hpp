/// A problem document (RFC 9457) as JSON: the body of every failed request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::wire {

struct ProblemText {
  std::string_view type, title;
  unsigned status = 0;
  std::string_view detail;
  std::string_view list{};                 ///< path of the API that lists what exists; empty: none
  std::optional<std::uint64_t> matched{};  ///< how many runs match, where another number was expected
};
[[nodiscard]] std::string to_json(const ProblemText& problem);

}  // namespace stint::wire
