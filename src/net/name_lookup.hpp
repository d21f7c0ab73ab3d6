/// Names of hosts → addresses, by the system's resolver on threads of its own.
///
/// The system's resolver can't be interrupted. So a waiter that is cancelled leaves at once and its lookup goes on
/// alone, bounded: one lookup per name whatever the number of waiters, `kThreadsMax` at a time, the others in FIFO
/// order. libcurl would start a thread per request. Used on the reactor's thread only; destroying it waits for nothing.
#pragma once

#include "stint/error.hpp"
#include "stint/notification.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stint {
class Reactor;
}

namespace stint::net {

using Addresses = std::vector<std::string>;  ///< numeric, in the order in which to try them

/// `Errc::unavailable` with `Retry::safe` if the name has no address or no name server answers.
using BlockingLookup = std::function<Result<Addresses>(const std::string& host)>;
[[nodiscard]] Result<Addresses> blocking_lookup(const std::string& host);

class NameLookup {
 public:
  static constexpr std::uint32_t kThreadsMax = 8;
  static constexpr std::size_t kNamesMax = 256;  // kept answers
  static constexpr Duration kKept = std::chrono::seconds(60);

  NameLookup(Reactor& reactor, BlockingLookup lookup);
  ~NameLookup();  // no waiter is left, unless the reactor is being destroyed
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  [[nodiscard]] Task<Result<Addresses>> find(std::string host);
  /// Lookups whose thread has not returned.
  [[nodiscard]] std::uint32_t running() const noexcept { return running_; }

 private:
  struct Name {
    std::optional<Result<Addresses>> answer;
    TimePoint answered_at;
    std::size_t waiters = 0;
    bool looking = false;  // queued, or on a thread
  };
  struct Link;

  bool has_fresh(const Name& name) const;
  void start(const std::string& host);
  void answered(const std::string& host, Result<Addresses> answer);
  void make_room();

  Reactor& reactor_;
  BlockingLookup lookup_;
  std::map<std::string, Name, std::less<>> names_;  // at most kNamesMax
  std::deque<std::string> queued_;                  // names for which no thread was free
  Notification changed_;                            // an answer has come
  std::uint32_t running_ = 0;
  std::shared_ptr<Link> link_;  // shared with the threads
};

}  // namespace stint::net
