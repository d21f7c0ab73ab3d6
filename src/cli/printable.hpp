/// Text from files and programs, made safe for a terminal: no control characters, no escape sequences, nothing that
/// turns the reading direction round. What is taken out leaves a mark, so that nobody wonders.
#pragma once

#include <string>
#include <string_view>

namespace stint::cli {

/// Each control character, each invisible one and each byte that is no UTF-8 becomes `?`; line breaks and tabs become a
/// space. A joiner or a variation selector stays after what needs it: an emoji, a letter of Arabic or Indic scripts.
[[nodiscard]] std::string printable(std::string_view text);

/// The words of an agent or a program, as they come, made safe for a terminal: lines, tabs and (if it is wanted) colour
/// stay; every other control sequence, control character and invisible character is left out (joiners and selectors as
/// above), a carriage return begins a new line. What a
/// piece cuts in two is kept for the next one, up to `kHeldMax`.
class CleanText {
 public:
  static constexpr std::size_t kHeldMax = 64;  // a longer sequence of colours is none

  explicit CleanText(bool colour) noexcept : colour_(colour) {}
  [[nodiscard]] std::string add(std::string_view piece);
  /// What was held back, and the end of a colour that is still on.
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
