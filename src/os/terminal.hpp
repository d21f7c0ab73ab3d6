/// What a program must know of the terminal before it draws on it. Asked, never cached: a window changes its size.
#pragma once

#include <optional>
#include <string>

namespace stint::os {

struct TerminalSize {
  int columns = 0;
  int rows = 0;

  friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};

/// Nothing if `descriptor` is no terminal. A terminal that does not tell its size (a serial line) counts as 80 × 24.
[[nodiscard]] std::optional<TerminalSize> terminal_size(int descriptor) noexcept;

/// The variable's value; empty if it is not set.
[[nodiscard]] std::string environment(const char* name);

}  // namespace stint::os
