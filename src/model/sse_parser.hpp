/// Server-sent events from the bytes of a body, cut anywhere. Pure; linear in the number of bytes, however they are
/// cut.
///
/// Accepts CRLF, LF and CR, comments, several `data` lines in one event, a byte order mark, and a body that ends
/// without the last blank line. `id` and `retry` are ignored: answers of models can't be resumed.
#pragma once

#include "stint/error.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace stint::model {

/// Valid during the call that passes it.
struct SseEvent {
  std::string_view name;  ///< empty: the stream gave none
  std::string_view data;  ///< never empty
};

class SseParser {
 public:
  /// Of one event and of one line: the last event of some protocols repeats the whole answer.
  static constexpr std::size_t kEventBytesMax = 8 << 20;
  using Sink = std::function<void(const SseEvent&)>;

  explicit SseParser(std::size_t event_bytes_max = kEventBytesMax) noexcept : event_bytes_max_(event_bytes_max) {}

  /// Passes each complete event to `sink`. Errc::full: an event or a line is too long; all later bytes are refused.
  Result<> feed(std::string_view bytes, const Sink& sink);
  /// The end of the body. Passes an event whose last line end is missing: a body may end without a blank line.
  Result<> finish(const Sink& sink);

 private:
  void end_line(std::string_view line, const Sink& sink);
  void read_field(std::string_view name, std::string_view value);
  void dispatch(const Sink& sink);
  [[nodiscard]] bool keep(std::string_view part);

  const std::size_t event_bytes_max_;
  std::string line_;  // the incomplete one
  std::string name_, data_;
  bool has_data_ = false;
  bool first_line_ = true;
  bool after_cr_ = false;  // an LF that follows belongs to the same line end
  bool full_ = false;
};

}  // namespace stint::model
