/// Numbers in texts that the kernel or another Stint wrote.
#pragma once

#include <charconv>
#include <string_view>

namespace stint::os {

/// The number that the text begins with; 0 if there is none, or if it does not fit.
template <class Number>
[[nodiscard]] Number number(std::string_view text) noexcept {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace stint::os
