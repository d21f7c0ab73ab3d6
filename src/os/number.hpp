/// Parses numbers in texts of the kernel or of another Stint.
#pragma once

#include <charconv>
#include <string_view>

namespace stint::os {

/// The number at the beginning of the text; 0 if there is none, or if it does not fit.
template <class Number>
[[nodiscard]] Number number(std::string_view text) noexcept {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace stint::os
