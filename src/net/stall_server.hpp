/// Runs stall_server.py beside a test or a bench: a model provider that stalls on demand, and reports what it saw and
/// when.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace stint::net {

class StallServer {
 public:
  struct Event {
    std::chrono::steady_clock::time_point when;
    int connection = 0;
    int stream = 0;
    std::string what;  // with its arguments
  };

  StallServer();  // waits for its ports
  ~StallServer();
  StallServer(const StallServer&) = delete;
  StallServer& operator=(const StallServer&) = delete;

  std::uint16_t port(const std::string& name) const { return ports_.at(name); }
  std::string ca_file() const { return folder_ + "/ca.pem"; }
  /// All so far. Doesn't block.
  const std::vector<Event>& events();
  /// The number of those that begin so.
  std::size_t count(std::string_view what);
  const Event* last(std::string_view what);
  void forget() { events_.clear(); }

 private:
  bool read_some(bool wait);
  void take(std::string_view line);

  std::string folder_;
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string buffer_;
  std::map<std::string, std::uint16_t> ports_;
  std::vector<Event> events_;
};

}  // namespace stint::net
