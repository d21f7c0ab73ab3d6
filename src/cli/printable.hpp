/// Makes text from files and programs safe for a terminal: no control characters, no escape sequences, nothing that
/// changes the reading direction. A `?` marks what was removed.
#pragma once

#include <string>
#include <string_view>

namespace stint::cli {

/// Replaces each control character, each invisible one and each byte that is not UTF-8 by `?`, line breaks and tabs by
/// a space. A joiner or variation selector stays after a character that uses it: an emoji, a letter of Arabic or Indic
/// scripts.
[[nodiscard]] std::string printable(std::string_view text);

/// Makes streamed output of an agent safe for a terminal. Keeps lines, tabs and (if wanted) colour; removes every other
/// control sequence, control character and invisible character (joiners and selectors as above); a carriage return
/// starts a new line. A sequence cut by the end of a piece is held for the next piece, up to `kHeldMax` bytes.
class CleanText {
 public:
  static constexpr std::size_t kHeldMax = 64;  // no colour sequence is longer

  explicit CleanText(bool colour) noexcept : colour_(colour) {}
  [[nodiscard]] std::string add(std::string_view piece);
  /// Returns what was held back, and resets a colour that is still on.
  [[nodiscard]] std::string finish();

 private:
  std::size_t take(std::string_view text, bool last, std::string& out);
  std::size_t take_escape(std::string_view text, bool last, std::string& out);
  std::string run(const std::string& text, bool last);

  const bool colour_;
  std::string held_;
  bool coloured_ = false;
  bool after_return_ = false;
  char32_t previous_ = 0;  // the character before, if it was shown
};
[[nodiscard]] std::string clean_text(std::string_view text, bool colour);

}  // namespace stint::cli
