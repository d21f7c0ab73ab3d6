/// The trace id that connects work across processes and machines: W3C's `traceparent`. Pure.
#pragma once

#include "domain/system.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace stint::domain {

/// 32 hexadecimal digits, not all zero.
[[nodiscard]] std::string new_trace_id(const System& system);
/// The trace id of "00-<32 digits>-<16 digits>-<2 digits>"; none if the text is malformed or the id all zero.
[[nodiscard]] std::optional<std::string> trace_of(std::string_view traceparent);
/// The header for requests that an attempt makes. The span id is derived from `mark`.
[[nodiscard]] std::string traceparent(const std::string& trace, std::string_view mark);

}  // namespace stint::domain
