#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace stint::agent {
namespace {

constexpr std::size_t kWordMax = 64;  // longer words are compared by their beginnings

template <class Text>
std::optional<std::string> closest_of(std::string_view word, std::span<const Text> candidates) {
  const std::size_t edits_max = std::max<std::size_t>(1, word.size() / 3);
  std::optional<std::string> best;
  std::size_t best_edits = edits_max + 1;
  for (const Text& candidate : candidates) {
    const std::size_t edits = edit_distance(word, candidate);
    if (edits >= best_edits) continue;
    best_edits = edits;
    best = std::string(candidate);
  }
  return best;
}

bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }

/// Length in bytes of the UTF-8 character that begins here; 0 if it is invalid.
std::size_t character_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned char second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;  // overlong; surrogate
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;  // overlong; beyond Unicode
  return size;
}

}  // namespace

std::optional<std::string> closest(std::string_view word, std::span<const std::string_view> candidates) {
  return closest_of(word, candidates);
}
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
  return closest_of(word, candidates);
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::optional<std::string> best = closest(word, candidates);
  return best ? fmt::format("did you mean '{}'?", *best) : std::string();
}
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::optional<std::string> best = closest(word, candidates);
  return best ? fmt::format("did you mean '{}'?", *best) : std::string();
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kWordMax);
  b = b.substr(0, kWordMax);
  using Row = std::array<std::size_t, kWordMax + 1>;
  Row before{}, last{}, row{};
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

std::string snake_case(std::string_view key) {
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (c == '-') {
      out += '_';
    } else if (is_upper(c)) {
      const bool after_lower = i > 0 && !is_upper(key[i - 1]) && key[i - 1] != '_' && key[i - 1] != '-';
      if (after_lower) out += '_';
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      out += c;
    }
  }
  return out;
}

std::optional<std::size_t> utf8_error(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    std::uint64_t eight = 0;  // most text is ASCII: eight characters at a time
    if (text.size() - at >= sizeof(eight)) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & 0x8080808080808080) == 0) {
        at += sizeof(eight);
        continue;
      }
    }
    const std::size_t size = character_size(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::nullopt;
}

std::string one_of(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    out += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::string excerpt(std::string_view text, std::size_t bytes_max) {
  std::string_view kept = text.substr(0, bytes_max);
  while (kept.size() < text.size() && !kept.empty() &&
         (static_cast<unsigned char>(text[kept.size()]) & 0xC0U) == 0x80U) {
    kept.remove_suffix(1);
  }
  std::string out(kept);
  std::ranges::replace_if(out, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return kept.size() < text.size() ? out + "…" : out;
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  std::size_t depth = 0;
  const auto add = [&](std::size_t end) {
    if (const std::string_view part = trimmed(text.substr(begin, end - begin)); !part.empty()) parts.emplace_back(part);
    begin = end + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && depth > 0) --depth;
    if (text[i] == ',' && depth == 0) add(i);
  }
  add(text.size());
  return parts;
}

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

int line_of(std::string_view text, std::size_t position) noexcept {
  return 1 + static_cast<int>(std::ranges::count(text.substr(0, position), '\n'));
}

}  // namespace stint::agent
