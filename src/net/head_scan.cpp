#include "net/head_scan.hpp"

#include "net/text.hpp"

namespace stint::net {

/// False for a byte that may not stand here.
bool HeadScan::step(unsigned char byte) noexcept {
  switch (at_) {
    case At::line_start:
      if (byte == '\r' && !first_line_) {
        at_ = At::last_carriage_return;
        return true;
      }
      if (byte == ' ' || byte == '\t') return false;  // a folded line
      at_ = At::line;
      return is_text(byte);
    case At::line:
      if (byte == '\r') {
        at_ = At::carriage_return;
        return true;
      }
      return is_text(byte);
    case At::carriage_return:
      at_ = At::line_start;
      first_line_ = false;
      return byte == '\n';
    case At::last_carriage_return:
      if (byte == '\n') state_ = State::end;
      return byte == '\n';
  }
  return false;
}

std::size_t HeadScan::feed(std::string_view bytes) noexcept {
  std::size_t used = 0;
  while (used < bytes.size() && state_ == State::more) {
    if (!step(static_cast<unsigned char>(bytes[used++]))) state_ = State::bad;
  }
  return used;
}

}  // namespace stint::net
