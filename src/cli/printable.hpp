/// Text from files and programs, made safe for a terminal: no control characters, no escape sequences, nothing that
/// turns the reading direction round. What is taken out leaves a mark, so that nobody wonders.
#pragma once

#include <string>
#include <string_view>

namespace stint::cli {

/// Each control character, each invisible one that moves text, and each byte that is no UTF-8 becomes `?`; line breaks
/// and tabs become a space.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace stint::cli
