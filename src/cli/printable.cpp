#include "cli/printable.hpp"

#include "agent/text.hpp"

#include <utility>

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
  const bool arabic_mark = character == "\xD8\x9C";                                                // U+061C
  const bool tag = character.size() == 4 && character.starts_with("\xF3\xA0") && byte(2) <= 0x81;  // U+E0000 to U+E007F
  if (arabic_mark || tag) return true;
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

// ---- the words of programs -----------------------------------------------------------------------------------------

namespace {

constexpr char kEscape = '\033', kBell = '\a';

bool is_final(char c) noexcept { return c >= 0x40 && c <= 0x7E; }

/// Bytes of a sequence that begins with ESC; 0: it is not whole.
std::size_t escape_size(std::string_view text) noexcept {
  if (text.size() < 2) return 0;
  if (text[1] == '[') {  // CSI: parameters, then one final byte
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (is_final(text[i])) return i + 1;
      if (static_cast<unsigned char>(text[i]) < 0x20 || static_cast<unsigned char>(text[i]) > 0x7E) return i;
    }
    return 0;
  }
  if (text[1] == ']' || text[1] == 'P' || text[1] == '_' || text[1] == '^' || text[1] == 'X') {  // a string, to its end
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (text[i] == kBell) return i + 1;
      if (text[i] == kEscape && i + 1 < text.size()) return text[i + 1] == '\\' ? i + 2 : i;
      if (text[i] == '\n') return i;  // it never ended: a program that died, or one that hides text
    }
    return 0;
  }
  // One more byte, or some that only announce it.
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] < 0x20 || text[i] > 0x2F) return static_cast<unsigned char>(text[i]) < 0x30 ? i : i + 1;
  }
  return 0;
}

}  // namespace

std::size_t CleanText::take_escape(std::string_view text, bool last, std::string& out) {
  const std::size_t size = escape_size(text);
  if (size == 0 && !last && text.size() < kHeldMax) return 0;
  if (size == 0) return last ? text.size() : 2;  // too long to be a colour: its rest is shown as text
  const std::string_view sequence = text.substr(0, size);
  const bool colour = size >= 3 && sequence[1] == '[' && sequence.back() == 'm' &&
                      sequence.substr(2, size - 3).find_first_not_of("0123456789;:") == std::string_view::npos;
  if (colour && colour_) {
    out += sequence;
    coloured_ = sequence != "\033[m" && sequence != "\033[0m";
  }
  return size;
}

/// How many bytes it has dealt with; 0: more have to come.
std::size_t CleanText::take(std::string_view text, bool last, std::string& out) {
  const bool after_return = std::exchange(after_return_, false);
  if (text[0] == kEscape) {
    if (after_return) out += '\n';
    return take_escape(text, last, out);
  }
  if (text[0] == '\r') {
    if (after_return) out += '\n';
    after_return_ = true;
    return 1;
  }
  if (after_return && text[0] != '\n') out += '\n';
  if (text[0] == '\n' || text[0] == '\t') {
    out += text[0];
    return 1;
  }
  const std::size_t size = size_of(text);
  if (size == 0) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    if (!last && text.size() < wanted) return 0;
    out += '?';
    return 1;
  }
  if (!is_harmful(text.substr(0, size))) out += text.substr(0, size);
  return size;
}

std::string CleanText::run(const std::string& text, bool last) {
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t size = take(rest, last, out);
    if (size == 0) break;
    rest.remove_prefix(size);
  }
  held_ = rest;
  return out;
}

std::string CleanText::add(std::string_view piece) { return run(std::exchange(held_, {}) + std::string(piece), false); }

std::string CleanText::finish() {
  std::string out = run(std::exchange(held_, {}), true);
  if (std::exchange(after_return_, false)) out += '\n';
  if (std::exchange(coloured_, false)) out += "\033[0m";
  return out;
}

std::string clean_text(std::string_view text, bool colour) {
  CleanText clean(colour);
  std::string out = clean.add(text);
  return out + clean.finish();
}

}  // namespace stint::cli
