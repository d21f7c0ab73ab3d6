#include "cli/printable.hpp"

#include "agent/text.hpp"

namespace stint::cli {
namespace {

/// Bytes of the character at the beginning; the text is UTF-8 up to there.
std::size_t size_of(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  return agent::utf8_error(text.substr(0, size)) || size > text.size() ? 0 : size;
}

bool is_harmful(std::string_view character) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (character.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;  // U+0080 to U+009F: controls of 8-bit terminals
  if (character.size() != 3 || byte(0) != 0xE2) return false;
  const bool line_or_bidi = byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE;  // U+2028 to U+202E
  const bool mark = byte(1) == 0x80 && (byte(2) == 0x8E || byte(2) == 0x8F);        // U+200E, U+200F
  const bool isolate = byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;       // U+2066 to U+2069
  return line_or_bidi || mark || isolate;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = size_of(text);
    const std::string_view character = text.substr(0, size);
    if (size == 1 && (text[0] == '\n' || text[0] == '\t')) {
      out += ' ';
    } else if (size == 0 || is_harmful(character)) {
      out += '?';
    } else {
      out += character;
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

}  // namespace stint::cli
