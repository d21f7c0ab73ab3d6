#include "wire/json.hpp"

#include "agent/text.hpp"

namespace stint::wire {

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

}  // namespace stint::wire
