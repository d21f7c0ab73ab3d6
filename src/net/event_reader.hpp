/// Server-sent events, for whoever wants to know that one came and where to go on after it, and asks for the rest
/// elsewhere. Pure; the bytes may be cut anywhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stint::net {

class EventReader {
 public:
  static constexpr std::size_t kLineKeptMax = 1024;  ///< of a line; what is beyond counts for nothing

  /// True: an event has become whole. A comment is none.
  [[nodiscard]] bool feed(std::string_view bytes);
  /// What `Last-Event-ID` is to say: the id of the last whole event that had one.
  [[nodiscard]] const std::string& last_id() const noexcept { return last_id_; }
  /// Another stream begins: what came of an event of the old one is forgotten, but not the id.
  void begin_anew();

 private:
  bool end_line();

  std::string line_;
  std::string id_, last_id_;
  bool has_data_ = false;
};

}  // namespace stint::net
