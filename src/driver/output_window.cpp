#include "driver/output_window.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::driver {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// The bytes of the UTF-8 character that the text begins with; 0: none.
std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues_character(text[i])) return 0;
  }
  if (bytes < 3) return bytes;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool no_character = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  return overlong || no_character ? 0 : bytes;
}

void append_utf8(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    out += bytes == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
}

}  // namespace

void OutputWindow::add(std::string_view piece) {
  const std::size_t first = std::min(piece.size(), head_max_ - head_.size());
  head_ += piece.substr(0, first);
  tail_ += piece.substr(first);
  if (tail_.size() <= 2 * tail_max_) return;
  dropped_ += tail_.size() - tail_max_;
  tail_.erase(0, tail_.size() - tail_max_);
}

std::string OutputWindow::text() const {
  std::string_view head = head_;
  std::string_view tail = tail_;
  std::uint64_t dropped = dropped_;
  if (tail.size() > tail_max_) {
    dropped += tail.size() - tail_max_;
    tail.remove_prefix(tail.size() - tail_max_);
  }
  if (dropped > 0) {
    std::size_t cut = head.size();
    while (cut > 0 && head.size() - cut < 3 && continues_character(head[cut - 1])) --cut;
    const bool is_cut = cut > 0 && static_cast<unsigned char>(head[cut - 1]) >= 0xC2;
    if (is_cut && character_bytes(head.substr(cut - 1)) == 0) {
      dropped += head.size() - (cut - 1);
      head = head.substr(0, cut - 1);
    }
    for (int i = 0; i < 3 && !tail.empty() && continues_character(tail.front()); ++i) {
      tail.remove_prefix(1);
      ++dropped;
    }
  }
  std::string out;
  append_utf8(head, out);
  if (dropped > 0) out += fmt::format("\n[{} bytes left out]\n", dropped);
  append_utf8(tail, out);
  return out;
}

std::string bounded_output(std::string_view text, std::size_t bytes_max) {
  OutputWindow window(bytes_max);
  window.add(text);
  return window.text();
}

}  // namespace stint::driver
