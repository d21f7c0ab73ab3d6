/// The id that ties together what belongs to one cause, over processes and machines: W3C's `traceparent`. Pure.
#pragma once

#include "domain/system.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace stint::domain {

/// 32 hexadecimal digits, not all zero.
[[nodiscard]] std::string new_trace_id(const System& system);
/// The trace of "00-<32 digits>-<16 digits>-<2 digits>"; nothing if it is none, or all zero.
[[nodiscard]] std::optional<std::string> trace_of(std::string_view traceparent);
/// For what an attempt asks of others. `mark` makes its span.
[[nodiscard]] std::string traceparent(const std::string& trace, std::string_view mark);

}  // namespace stint::domain
