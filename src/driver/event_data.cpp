#include "driver/event_data.hpp"

#include <utility>

namespace stint::driver {

bool EventData::feed(std::string_view bytes, std::vector<std::string>& events) {
  for (const char c : bytes) {
    if (std::exchange(skips_newline_, false) && c == '\n') continue;
    if (c == '\n' || c == '\r') {
      skips_newline_ = c == '\r';
      end_line(events);
    } else {
      line_ += c;
    }
    if (line_.size() + data_.size() > bytes_max_) return false;
  }
  return true;
}

void EventData::end_line(std::vector<std::string>& events) {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    if (std::exchange(has_data_, false)) events.push_back(std::exchange(data_, {}));
    return;
  }
  std::string_view rest = line;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  if (!rest.starts_with("data")) return;
  rest.remove_prefix(4);
  if (!rest.empty() && !rest.starts_with(':')) return;
  if (!rest.empty()) rest.remove_prefix(rest.starts_with(": ") ? 2 : 1);
  if (std::exchange(has_data_, true)) data_ += '\n';
  data_ += rest;
}

}  // namespace stint::driver
