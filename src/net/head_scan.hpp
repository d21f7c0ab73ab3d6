/// Finds the end of a request's head in bytes that arrive in pieces, and rejects bytes that no head may contain. Visits
/// every byte once, however small the pieces are, so a slow sender costs no more than a quick one.
///
/// Stricter than the RFC demands where leniency lets two readers of one stream disagree about where a request ends
/// (request smuggling): lines end with CR LF only, no line is folded, no control characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stint::net {

class HeadScan {
 public:
  enum class State : std::uint8_t { more, end, bad };

  /// The number of bytes that belong to the head. After `end` and `bad` the scan is over until `reset`.
  std::size_t feed(std::string_view bytes) noexcept;
  State state() const noexcept { return state_; }
  /// True until the first line is complete.
  bool in_first_line() const noexcept { return first_line_; }
  void reset() noexcept { *this = HeadScan(); }

 private:
  enum class At : std::uint8_t { line_start, line, carriage_return, last_carriage_return };
  bool step(unsigned char byte) noexcept;

  At at_ = At::line_start;
  State state_ = State::more;
  bool first_line_ = true;
};

}  // namespace stint::net
