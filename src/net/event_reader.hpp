/// Counts server-sent events and tracks the id to resume after, for clients that read the data elsewhere. Pure; the
/// bytes may be cut anywhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stint::net {

class EventReader {
 public:
  static constexpr std::size_t kLineKeptMax = 1024;  ///< of a line; further bytes are ignored

  /// True: an event is complete. A comment is not an event, nor is a `beat`, by which a server shows that it is there.
  [[nodiscard]] bool feed(std::string_view bytes);
  /// The value for `Last-Event-ID`: the id of the last complete event that had one.
  [[nodiscard]] const std::string& last_id() const noexcept { return last_id_; }
  /// Starts another stream: discards an incomplete event of the old one, but keeps the id.
  void begin_anew();

 private:
  bool end_line();

  std::string line_;
  std::string id_, last_id_;
  bool has_data_ = false, is_beat_ = false;
};

}  // namespace stint::net
