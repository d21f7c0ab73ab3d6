/// Decodes a chunked body (RFC 9112, section 7.1), byte by byte, so that pieces may end anywhere. Strict, like
/// `HeadScan`. Extensions and trailers are checked for their form and discarded: no handler reads them, and a trailer
/// must never pass for a header.
///
/// Beast's parser can do this too, but asserts (here: ends the process) when a last chunk arrives in pieces of a
/// certain length, and parses a chunk's head again with every piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stint::net {

class ChunkDecoder {
 public:
  enum class State : std::uint8_t { more, end, bad, too_large };
  static constexpr std::size_t kLineBytesMax = 4 << 10;  ///< of a chunk's head, and of all trailers together

  explicit ChunkDecoder(std::uint64_t body_bytes_max = 0) noexcept : left_max_(body_bytes_max) {}
  /// Appends the content of the chunks to `body`, and returns the number of bytes consumed.
  std::size_t feed(std::string_view bytes, std::string& body);
  State state() const noexcept { return state_; }

 private:
  enum class At : std::uint8_t {
    size,
    space,
    extension,
    size_end,
    data,
    data_return,
    data_end,
    trailer_start,
    trailer_name,
    trailer_value,
    trailer_end,
    end,
  };
  bool step(unsigned char byte) noexcept;
  bool step_size(unsigned char byte) noexcept;
  bool step_trailer(unsigned char byte) noexcept;
  bool add_digit(unsigned char byte) noexcept;
  bool go(At at) noexcept {
    at_ = at;
    return true;
  }

  std::uint64_t left_max_;  // remaining bytes allowed for the body
  std::uint64_t size_ = 0;  // of this chunk, then its remaining bytes
  std::size_t line_bytes_ = 0;
  At at_ = At::size;
  State state_ = State::more;
  std::uint8_t digits_ = 0;
};

}  // namespace stint::net
