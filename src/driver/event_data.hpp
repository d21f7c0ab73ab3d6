/// The data of server-sent events, from bytes that may be cut anywhere. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stint::driver {

class EventData {
 public:
  explicit EventData(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Appends the data of each event that is complete. False: an event is larger than allowed.
  [[nodiscard]] bool feed(std::string_view bytes, std::vector<std::string>& events);

 private:
  void end_line(std::vector<std::string>& events);

  const std::size_t bytes_max_;
  std::string line_, data_;
  bool has_data_ = false;
  bool skips_newline_ = false;  // after a carriage return
};

}  // namespace stint::driver
