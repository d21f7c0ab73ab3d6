#include "cli/printable.hpp"

#include "agent/text.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace stint::cli {
namespace {

/// Bytes of the first character; 0: it is not valid UTF-8.
std::size_t size_of(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  return agent::utf8_error(text.substr(0, size)) || size > text.size() ? 0 : size;
}

/// Decodes one complete UTF-8 sequence.
char32_t decoded(std::string_view character) noexcept {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  char32_t out = first & (0x7FU >> character.size());
  for (const char c : character.substr(1)) out = (out << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
  return out;
}

struct Range {
  char32_t first, last;
};
bool contains(std::span<const Range> ranges, char32_t c) noexcept {
  return std::ranges::any_of(ranges, [c](const Range& range) { return c >= range.first && c <= range.last; });
}

/// Controls, line separators, and Unicode's default-ignorable characters. A terminal shows nothing of them, and some
/// change the reading direction: two texts that look the same could differ, or one could hold hidden words.
constexpr std::array kHarmful{
    Range{0x0000, 0x001F},   Range{0x007F, 0x009F},    // controls; the second half is that of 8-bit terminals
    Range{0x00AD, 0x00AD},   Range{0x034F, 0x034F},    // soft hyphen, grapheme joiner
    Range{0x061C, 0x061C},   Range{0x115F, 0x1160},    // Arabic mark, Hangul fillers
    Range{0x17B4, 0x17B5},   Range{0x180B, 0x180F},    // Khmer vowels without a form, Mongolian selectors
    Range{0x200B, 0x200F},   Range{0x2028, 0x202E},    // zero width, marks; line separators, overrides
    Range{0x2060, 0x206F},   Range{0x3164, 0x3164},    // joiners, invisible operators, isolates; Hangul filler
    Range{0xFE00, 0xFE0F},   Range{0xFEFF, 0xFEFF},    // variation selectors, byte order mark
    Range{0xFFA0, 0xFFA0},   Range{0xFFF0, 0xFFFB},    // Hangul filler, annotations
    Range{0x1BCA0, 0x1BCA3}, Range{0x1D173, 0x1D17A},  // controls of shorthand and music
    Range{0xE0000, 0xE0FFF}};                          // tags, more variation selectors
/// Symbols that may be an emoji.
constexpr std::array kSymbols{Range{0x00A9, 0x00A9}, Range{0x00AE, 0x00AE},  Range{0x203C, 0x203C},
                              Range{0x2049, 0x2049}, Range{0x2122, 0x2122},  Range{0x2139, 0x2139},
                              Range{0x2190, 0x2BFF}, Range{0x3030, 0x3030},  Range{0x303D, 0x303D},
                              Range{0x3297, 0x3299}, Range{0x1F000, 0x1FAFF}};
/// Scripts whose spelling needs the joiners: Arabic and its kin, those of India, Myanmar and Khmer.
constexpr std::array kJoiningScripts{Range{0x0620, 0x08FF}, Range{0x0900, 0x0DFF}, Range{0x1000, 0x109F},
                                     Range{0x1780, 0x17D3}};
constexpr char32_t kNonJoiner = 0x200C, kJoiner = 0x200D, kTextStyle = 0xFE0E, kEmojiStyle = 0xFE0F;

/// Whether a terminal must not get the character. One joiner or selector may follow a symbol or letter that uses it, so
/// that emoji sequences and words of the scripts above stay whole.
bool is_harmful(char32_t c, char32_t previous) noexcept {
  if (!contains(kHarmful, c)) return false;
  const bool after_symbol = contains(kSymbols, previous);
  const bool after_letter = contains(kJoiningScripts, previous);
  switch (c) {
    case kTextStyle:
    case kEmojiStyle: return !after_symbol;
    case kJoiner: return !after_symbol && !after_letter && previous != kEmojiStyle;
    case kNonJoiner: return !after_letter;
    default: return true;
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  char32_t previous = 0;
  while (!text.empty()) {
    const std::size_t size = size_of(text);
    const std::string_view character = text.substr(0, size);
    const char32_t code = size == 0 ? 0 : decoded(character);
    if (size == 1 && (text[0] == '\n' || text[0] == '\t')) {
      out += ' ';
    } else if (is_harmful(code, previous)) {
      out += '?';
      previous = 0;
    } else {
      out += character;
      previous = code;
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

// ---- output of programs --------------------------------------------------------------------------------------------

namespace {

constexpr char kEscape = '\033', kBell = '\a';

bool is_final(char c) noexcept { return c >= 0x40 && c <= 0x7E; }

/// Bytes of a sequence that begins with ESC; 0: it is incomplete.
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
      if (text[i] == '\n') return i;  // unterminated: the program died, or hides text
    }
    return 0;
  }
  // Optional intermediate bytes, then one final byte.
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] < 0x20 || text[i] > 0x2F) return static_cast<unsigned char>(text[i]) < 0x30 ? i : i + 1;
  }
  return 0;
}

}  // namespace

std::size_t CleanText::take_escape(std::string_view text, bool last, std::string& out) {
  const std::size_t size = escape_size(text);
  if (size == 0 && !last && text.size() < kHeldMax) return 0;
  if (size == 0) return last ? text.size() : 2;  // too long to be a colour: the rest is shown as text
  const std::string_view sequence = text.substr(0, size);
  const bool colour = size >= 3 && sequence[1] == '[' && sequence.back() == 'm' &&
                      sequence.substr(2, size - 3).find_first_not_of("0123456789;:") == std::string_view::npos;
  if (colour && colour_) {
    out += sequence;
    coloured_ = sequence != "\033[m" && sequence != "\033[0m";
  }
  return size;
}

/// Returns how many bytes it consumed; 0: it needs more.
std::size_t CleanText::take(std::string_view text, bool last, std::string& out) {
  const bool after_return = std::exchange(after_return_, false);
  const char32_t previous = std::exchange(previous_, 0);
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
    if (!last && text.size() < wanted) {
      previous_ = previous;
      return 0;
    }
    out += '?';
    return 1;
  }
  const char32_t code = decoded(text.substr(0, size));
  if (is_harmful(code, previous)) return size;
  previous_ = code;
  out += text.substr(0, size);
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
