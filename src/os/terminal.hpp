/// What a program must know of the terminal before it draws on it. Asked, never cached: a window changes its size.
#pragma once

#include "os/fd.hpp"

#include <array>
#include <cstddef>
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

/// The terminal of this process, read key by key and without an echo, as long as this lives. Ctrl-C stays a signal;
/// Ctrl-Z is off, since a stopped program could give nothing back.
class RawTerminal {
 public:
  /// None: there is no terminal.
  static std::optional<RawTerminal> open() noexcept;
  RawTerminal(RawTerminal&& other) noexcept;
  RawTerminal& operator=(RawTerminal&&) = delete;
  ~RawTerminal();

  /// A descriptor of its own, not blocking: what the shell has stays as it is. Once.
  [[nodiscard]] int release_input() noexcept { return input_.release(); }

 private:
  explicit RawTerminal(Fd input, Fd control) noexcept : input_(std::move(input)), control_(std::move(control)) {}
  bool begin() noexcept;
  Fd input_, control_;
  std::array<std::byte, 64> before_{};  // termios, which no header of ours shows
};

/// The variable's value; empty if it is not set.
[[nodiscard]] std::string environment(const char* name);

}  // namespace stint::os
