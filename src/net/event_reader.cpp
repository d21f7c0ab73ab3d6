#include "net/event_reader.hpp"

#include <algorithm>

namespace stint::net {

bool EventReader::feed(std::string_view bytes) {
  bool whole = false;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    line_ += part.substr(0, kLineKeptMax - std::min(kLineKeptMax, line_.size()));
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    if (end_line()) whole = true;
  }
  return whole;
}

bool EventReader::end_line() {
  if (line_.ends_with('\r')) line_.pop_back();
  const bool whole = line_.empty() && has_data_ && !is_beat_;
  if (line_.empty()) {
    last_id_ = id_;
    has_data_ = is_beat_ = false;
  } else if (line_ == "event: beat") {
    is_beat_ = true;
  } else if (line_.starts_with("id:")) {
    id_ = line_.substr(line_.starts_with("id: ") ? 4 : 3);
  } else if (line_.starts_with("data:")) {
    has_data_ = true;
  }
  line_.clear();
  return whole;
}

void EventReader::begin_anew() {
  line_.clear();
  id_ = last_id_;
  has_data_ = is_beat_ = false;
}

}  // namespace stint::net
