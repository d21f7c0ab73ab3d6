/// Who follows a run, or the fleet, is woken when something may have changed; what it is, the store tells. Followers
/// keep nothing here but their place in a list, so a slow one costs nobody anything. One executor.
#pragma once

#include "stint/bell.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace stint::events {

class Changes {
 public:
  /// Something of that run has changed. Empty: of the fleet.
  void tell(std::string_view run);
  /// What came before this moment counts as seen by who waits with it.
  [[nodiscard]] std::uint64_t now() const noexcept { return told_; }
  /// Until something of the run changed since `seen`, and at most so long. Empty: of any run.
  Task<> wait(std::string run, std::uint64_t seen, Duration most);
  [[nodiscard]] std::size_t followers() const noexcept { return followers_; }

 private:
  struct Followed {
    Bell bell;
    std::uint64_t told = 0;
    std::size_t followers = 0;
  };
  class Place;

  std::uint64_t told_ = 0;
  std::size_t followers_ = 0;
  Bell any_;
  std::map<std::string, Followed, std::less<>> runs_;
};

}  // namespace stint::events
