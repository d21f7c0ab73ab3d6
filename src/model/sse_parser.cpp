#include "model/sse_parser.hpp"

#include <string>

namespace stint::model {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::unexpected<Error> too_long(std::size_t most) {
  return fail(Errc::full, "an event of the stream is longer than " + std::to_string(most) + " bytes");
}

}  // namespace

Result<> SseParser::feed(std::string_view bytes, const Sink& sink) {
  while (!full_ && !bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (end == std::string_view::npos) {
      if (!keep(part)) full_ = true;
      break;
    }
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (line_.empty() && part.size() <= event_bytes_max_) {
      end_line(part, sink);  // the usual case: a whole line, not copied
    } else if (keep(part)) {
      end_line(line_, sink);
      line_.clear();
    } else {
      full_ = true;
    }
  }
  if (full_) return too_long(event_bytes_max_);
  return {};
}

Result<> SseParser::finish(const Sink& sink) {
  if (full_) return too_long(event_bytes_max_);
  if (!line_.empty()) end_line(line_, sink);
  line_.clear();
  if (full_) return too_long(event_bytes_max_);
  dispatch(sink);
  return {};
}

bool SseParser::keep(std::string_view part) {
  if ((line_.empty() ? part : std::string_view(line_))
          .starts_with(':')) {  // a comment may have any length, and none of it matters
    line_ = ':';
    return true;
  }
  if (line_.size() + part.size() > event_bytes_max_) return false;
  line_ += part;
  return true;
}

void SseParser::end_line(std::string_view line, const Sink& sink) {
  if (first_line_ && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  first_line_ = false;
  if (line.empty()) return dispatch(sink);
  const std::size_t colon = line.find(':');
  if (colon == 0) return;
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  read_field(line.substr(0, colon), value);
}

void SseParser::read_field(std::string_view name, std::string_view value) {
  if (name == "event") {
    name_ = value;
  } else if (name == "data") {
    if (data_.size() + value.size() + 1 > event_bytes_max_) {
      full_ = true;
      return;
    }
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
}

void SseParser::dispatch(const Sink& sink) {
  if (!data_.empty()) sink({.name = name_, .data = data_});
  name_.clear();
  data_.clear();
  has_data_ = false;
}

}  // namespace stint::model
