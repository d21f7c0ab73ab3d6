/// One line of a daemon's log, for programs (JSON) and for people (words, then name=value).
#pragma once

#include "domain/log.hpp"
#include "domain/system.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stint::wire {

struct LogLine {
  WallTime at{};
  domain::LogLevel level = domain::LogLevel::info;
  std::string_view what;
  const std::vector<domain::LogField>& fields;
};
[[nodiscard]] std::string to_json(const LogLine& line);
/// Without control characters that a terminal would obey.
[[nodiscard]] std::string to_text(const LogLine& line);

}  // namespace stint::wire
