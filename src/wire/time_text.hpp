/// Times as text, by RFC 3339: 2026-11-16T03:00:00.250Z.
#pragma once

#include "domain/system.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace stint::wire {

/// In UTC, to the millisecond.
[[nodiscard]] std::string time_text(WallTime at);
/// With any offset; digits beyond a millisecond are cut off. Nothing if it is not a time.
[[nodiscard]] std::optional<WallTime> parse_time(std::string_view text);

}  // namespace stint::wire
