#include "net/head_scan.hpp"

#include "net/text.hpp"

#include <bit>
#include <cstring>

namespace stint::net {
namespace {

/// Counts the leading bytes that are neither control characters nor DEL, eight at a time. May count fewer near the end.
std::size_t plain_bytes(std::string_view text) noexcept {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = kOnes * 0x80;
  std::size_t at = 0;
  for (; text.size() - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data() + at, sizeof(eight));
    const std::uint64_t control = (eight - kOnes * ' ') & ~eight;
    const std::uint64_t other = eight ^ (kOnes * 0x7f);
    const std::uint64_t found = (control | ((other - kOnes) & ~other)) & kHighs;  // exact up to the first match
    if (found != 0) return at + static_cast<std::size_t>(std::countr_zero(found)) / 8;
  }
  return at;
}

}  // namespace

/// False for a byte that is not allowed here.
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
    if (at_ == At::line) used += plain_bytes(bytes.substr(used));
    if (used == bytes.size()) break;
    if (!step(static_cast<unsigned char>(bytes[used++]))) state_ = State::bad;
  }
  return used;
}

}  // namespace stint::net
