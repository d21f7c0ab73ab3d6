#include "store/search_text.hpp"

#include "store/brief_text.hpp"

#include <array>
#include <charconv>

namespace stint::store {
namespace {

constexpr std::array<std::string_view, 3> kSearched = {kBriefInput, "args", "prompt"};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

void append_code_point(std::string& out, unsigned code) {
  constexpr unsigned kSurrogates = 0xD800, kSurrogatesEnd = 0xE000;
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | code >> 6U);
    out += static_cast<char>(0x80U | (code & 0x3FU));
  } else if (code < kSurrogates || code >= kSurrogatesEnd) {
    out += static_cast<char>(0xE0U | code >> 12U);
    out += static_cast<char>(0x80U | (code >> 6U & 0x3FU));
    out += static_cast<char>(0x80U | (code & 0x3FU));
  }  // our writer escapes only control characters: half of a pair is left out
}

/// Appends the quoted text that begins at `at`, without its escapes. Returns the position after it.
std::size_t append_text(std::string_view json, std::size_t at, std::string& out) {
  for (++at; at < json.size(); ++at) {
    if (json[at] == '"') return at + 1;
    if (json[at] != '\\') {
      out += json[at];
      continue;
    }
    if (++at >= json.size()) break;
    if (json[at] != 'u') {
      out += json[at] == '"' || json[at] == '\\' || json[at] == '/' ? json[at] : ' ';
      continue;
    }
    unsigned code = 0;
    const std::string_view digits = json.substr(at + 1, 4);
    std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    append_code_point(out, code);
    at += digits.size();
  }
  return json.size();
}

/// Appends all texts of the value but the names of members, each after a line break.
void append_texts(std::string_view json, std::string& out) {
  for (std::size_t at = 0; at < json.size() && out.size() < 2 * kSearchTextMax;) {
    if (json[at] != '"') {
      ++at;
      continue;
    }
    std::string text;
    at = append_text(json, at, text);
    const std::size_t next = json.find_first_not_of(" \t\r\n", at);
    const bool is_name = next != std::string_view::npos && json[next] == ':';
    if (!is_name) out.append(1, '\n').append(fold_search(text));
  }
}

}  // namespace

std::string lower_ascii(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = lower(c);
  return lowered;
}

std::string fold_search(std::string_view text) {
  std::string folded(text);
  for (char& c : folded) c = is_control(c) ? ' ' : lower(c);
  return folded;
}

std::string search_text(std::string_view agent, std::string_view input) {
  std::string text = fold_search(agent);
  for (const std::string_view name : kSearched) append_texts(member_text(input, name), text);
  if (text.size() <= kSearchTextMax) return text;
  std::size_t end = kSearchTextMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text;
}

}  // namespace stint::store
