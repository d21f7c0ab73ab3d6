#include "os/terminal.hpp"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace stint::os {

std::optional<TerminalSize> terminal_size(int descriptor) noexcept {
  if (isatty(descriptor) == 0) return std::nullopt;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return TerminalSize{80, 24};
  return TerminalSize{size.ws_col, size.ws_row};
}

std::optional<RawTerminal> RawTerminal::open() noexcept {
  Fd input(::open("/dev/tty", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  Fd control(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!input || !control) return std::nullopt;
  RawTerminal terminal(std::move(input), std::move(control));
  if (!terminal.begin()) return std::nullopt;
  return terminal;
}

RawTerminal::RawTerminal(RawTerminal&& other) noexcept
    : input_(std::move(other.input_)), control_(std::move(other.control_)), before_(other.before_) {}

RawTerminal::~RawTerminal() {
  if (!control_) return;
  termios mode{};
  std::memcpy(&mode, before_.data(), sizeof(mode));
  tcsetattr(control_.get(), TCSAFLUSH, &mode);  // drops unread input, which is not for the shell
}

bool RawTerminal::begin() noexcept {
  static_assert(sizeof(termios) <= sizeof(before_));
  termios mode{};
  if (tcgetattr(control_.get(), &mode) != 0) {
    control_.reset();
    return false;
  }
  std::memcpy(before_.data(), &mode, sizeof(mode));
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  mode.c_cc[VSUSP] = _POSIX_VDISABLE;
  return tcsetattr(control_.get(), TCSAFLUSH, &mode) == 0;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace stint::os
