#include "net/chunk_decoder.hpp"

#include "net/text.hpp"

#include <algorithm>

namespace stint::net {
namespace {

constexpr std::uint8_t kDigitsMax = 15;  // 64 bits can't overflow

}  // namespace

bool ChunkDecoder::add_digit(unsigned char byte) noexcept {
  const int digit = hex_digit(static_cast<char>(byte));
  if (digit < 0 || ++digits_ > kDigitsMax) return false;
  size_ = size_ * 16 + static_cast<unsigned>(digit);
  return true;
}

bool ChunkDecoder::step_size(unsigned char byte) noexcept {
  switch (at_) {
    case At::size:
      if (add_digit(byte)) return true;
      if (digits_ == 0 || digits_ > kDigitsMax) return false;
      if (byte == '\r') return go(At::size_end);
      if (byte == ';') return go(At::extension);
      return (byte == ' ' || byte == '\t') && go(At::space);
    case At::space:
      if (byte == ';') return go(At::extension);
      return byte == ' ' || byte == '\t';
    case At::extension:
      if (byte == '\r') return go(At::size_end);
      return is_text(byte);
    default:  // size_end
      if (byte != '\n') return false;
      line_bytes_ = 0;
      if (size_ == 0) return go(At::trailer_start);
      if (size_ > left_max_) {
        state_ = State::too_large;
        return true;
      }
      left_max_ -= size_;
      return go(At::data);
  }
}

bool ChunkDecoder::step_trailer(unsigned char byte) noexcept {
  switch (at_) {
    case At::trailer_start:
      if (byte == '\r') return go(At::end);
      at_ = At::trailer_name;
      return is_token(byte);
    case At::trailer_name:
      if (byte == ':') return go(At::trailer_value);
      return is_token(byte);
    case At::trailer_value:
      if (byte == '\r') return go(At::trailer_end);
      return is_text(byte);
    case At::trailer_end: return byte == '\n' && go(At::trailer_start);
    default:  // end
      if (byte == '\n') state_ = State::end;
      return byte == '\n';
  }
}

bool ChunkDecoder::step(unsigned char byte) noexcept {
  if (at_ == At::data_return) return byte == '\r' && go(At::data_end);
  if (at_ == At::data_end) {
    digits_ = 0;
    size_ = 0;
    return byte == '\n' && go(At::size);
  }
  if (++line_bytes_ > kLineBytesMax) return false;
  return at_ < At::data ? step_size(byte) : step_trailer(byte);
}

std::size_t ChunkDecoder::feed(std::string_view bytes, std::string& body) {
  std::size_t used = 0;
  while (used < bytes.size() && state_ == State::more) {
    if (at_ == At::data) {
      const std::size_t count = std::min<std::uint64_t>(size_, bytes.size() - used);
      body.append(bytes, used, count);
      used += count;
      size_ -= count;
      if (size_ == 0) at_ = At::data_return;
    } else if (!step(static_cast<unsigned char>(bytes[used++]))) {
      state_ = State::bad;
    }
  }
  return used;
}

}  // namespace stint::net
