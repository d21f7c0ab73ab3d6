/// Lines of styled text with a known width, for pictures on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stint::cli {

enum class Style : std::uint8_t { plain, dim, bold, red, green, yellow, blue, magenta, cyan };

/// How many columns a text takes: control sequences none, every other character one.
[[nodiscard]] int width_of(std::string_view text) noexcept;

class Line {
 public:
  Line() = default;
  explicit Line(std::string text, Style style = Style::plain) { add(std::move(text), style); }

  Line& add(std::string text, Style style = Style::plain);
  Line& add(const Line& other);
  [[nodiscard]] int width() const noexcept;
  /// Cut to `columns`, the last of them an ellipsis if something was lost.
  [[nodiscard]] Line clipped(int columns, bool utf8) const;
  /// Clipped, or filled up with spaces: exactly `columns`.
  [[nodiscard]] Line padded(int columns, bool utf8) const;
  [[nodiscard]] std::string str(bool colour) const;

 private:
  struct Span {
    std::string text;
    Style style = Style::plain;
  };
  std::vector<Span> spans_;
};

/// `text` in lines of at most `columns`, broken at spaces; at most `lines_max` of them.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, int columns, int lines_max);

/// The same text without characters beyond ASCII, for terminals that can't show them.
[[nodiscard]] std::string to_ascii(std::string_view text);

}  // namespace stint::cli
