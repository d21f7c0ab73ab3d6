#include "cli/demo_text.hpp"

#include <algorithm>

namespace stint::cli {
namespace {

bool continues(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}  // within a UTF-8 character

/// The bytes of the first `columns` characters.
std::size_t bytes_of(std::string_view text, int columns) noexcept {
  std::size_t at = 0;
  while (at < text.size() && (columns > 0 || continues(text[at]))) {
    if (!continues(text[at])) --columns;
    ++at;
  }
  while (at < text.size() && continues(text[at])) ++at;
  return at;
}

std::string_view code(Style style) noexcept {
  switch (style) {
    case Style::plain: return "0";
    case Style::dim: return "2";
    case Style::bold: return "1";
    case Style::red: return "1;31";
    case Style::green: return "32";
    case Style::yellow: return "33";
    case Style::blue: return "34";
    case Style::magenta: return "35";
    case Style::cyan: return "36";
  }
  return "0";
}

}  // namespace

int width_of(std::string_view text) noexcept {
  int width = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\033') {
      while (at < text.size() && text[at] != 'm') ++at;
    } else if (!continues(text[at])) {
      ++width;
    }
  }
  return width;
}

Line& Line::add(std::string text, Style style) {
  if (!text.empty()) spans_.push_back({std::move(text), style});
  return *this;
}

Line& Line::add(const Line& other) {
  spans_.insert(spans_.end(), other.spans_.begin(), other.spans_.end());
  return *this;
}

int Line::width() const noexcept {
  int width = 0;
  for (const Span& span : spans_) width += width_of(span.text);
  return width;
}

Line Line::clipped(int columns, bool utf8) const {
  columns = std::max(columns, 0);
  if (width() <= columns) return *this;
  Line out;
  int left = columns - 1;  // one for the ellipsis
  for (const Span& span : spans_) {
    if (left <= 0) break;
    out.add(span.text.substr(0, bytes_of(span.text, left)), span.style);
    left -= std::min(left, width_of(span.text));
  }
  return columns > 0 ? out.add(utf8 ? "…" : "~", Style::dim) : out;
}

Line Line::padded(int columns, bool utf8) const {
  Line out = clipped(columns, utf8);
  return out.add(std::string(static_cast<std::size_t>(std::max(0, columns - out.width())), ' '));
}

std::string Line::str(bool colour) const {
  std::string out;
  for (const Span& span : spans_) {
    if (!colour || span.style == Style::plain) {
      out += span.text;
    } else {
      out.append("\033[").append(code(span.style)).append("m").append(span.text).append("\033[0m");
    }
  }
  return out;
}

std::vector<std::string> wrapped(std::string_view text, int columns, int lines_max) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
    if (!lines.back().empty() && width_of(lines.back()) + 1 + width_of(word) > columns) {
      if (static_cast<int>(lines.size()) == lines_max) {
        lines.back() += " ...";
        return lines;
      }
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::string to_ascii(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (static_cast<unsigned char>(text[at]) < 0x80U) {
      out += text[at];
    } else if (!continues(text[at])) {
      const std::string_view character = text.substr(at, bytes_of(text.substr(at), 1));
      out += character == "…" ? "..." : character == "×" ? "x" : character == "·" ? "-" : "?";
    }
  }
  return out;
}

}  // namespace stint::cli
