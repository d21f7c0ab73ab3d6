#include "wire/json.hpp"

#include "agent/text.hpp"

#include <algorithm>

namespace stint::wire {
namespace {

bool needs_escape(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kPlain = "\b\t\n\f\r\"\\", kShort = "btnfr\"\\", kDigits = "0123456789abcdef";
  out += '\\';
  if (const std::size_t at = kPlain.find(c); at != std::string_view::npos) {
    out += kShort[at];
  } else {
    out += "u00";
    out += kDigits[static_cast<unsigned char>(c) / 16];
    out += kDigits[static_cast<unsigned char>(c) % 16];
  }
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (true) {
    const auto wrong = agent::utf8_error(text);
    out += text.substr(0, wrong.value_or(text.size()));
    if (!wrong) return out;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(*wrong + 1);
  }
}

void append_text(std::string& out, std::string_view text) {
  std::string repaired;
  if (agent::utf8_error(text)) {
    repaired = valid_utf8(text);
    text = repaired;
  }
  out += '"';
  while (true) {
    const auto special = std::ranges::find_if(text, needs_escape);
    out.append(text.begin(), special);
    if (special == text.end()) break;
    append_escaped(out, *special);
    text = std::string_view(special + 1, text.end());
  }
  out += '"';
}

}  // namespace stint::wire
