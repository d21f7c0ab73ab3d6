/// The state of the terminal for programs that draw on it. Read on each call, never cached: a window changes its
/// size.
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

/// None if `descriptor` is not a terminal. A terminal without a known size (a serial line) counts as 80 × 24.
[[nodiscard]] std::optional<TerminalSize> terminal_size(int descriptor) noexcept;

/// Reads the terminal of this process key by key and without echo, during its lifetime. Ctrl-C stays a signal; Ctrl-Z
/// is off, because a stopped program could not restore the terminal.
class RawTerminal {
 public:
  /// None: there is no terminal.
  static std::optional<RawTerminal> open() noexcept;
  RawTerminal(RawTerminal&& other) noexcept;
  RawTerminal& operator=(RawTerminal&&) = delete;
  ~RawTerminal();

  /// A separate non-blocking descriptor: the shell's is unchanged. Call it once.
  [[nodiscard]] int release_input() noexcept { return input_.release(); }

 private:
  explicit RawTerminal(Fd input, Fd control) noexcept : input_(std::move(input)), control_(std::move(control)) {}
  bool begin() noexcept;
  Fd input_, control_;
  std::array<std::byte, 64> before_{};  // termios, to keep its header out of this one
};

/// The variable's value; empty if it is not set.
[[nodiscard]] std::string environment(const char* name);

}  // namespace stint::os
