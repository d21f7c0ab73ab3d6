/// Wakes subscribers when a run, or the fleet, may have changed; they re-read the store, which alone has the state. A
/// subscriber is only an entry in a list here, so a slow one costs the others nothing. One executor.
#pragma once

#include "stint/notification.hpp"

#include <map>
#include <string>
#include <string_view>

namespace stint::events {

class Changes {
 public:
  enum class Kind : std::uint8_t {
    progress,  ///< submitted, claimed, printed: the run has not ended
    any,       ///< the run may have ended
  };
  /// Reports a change of that run. Empty: of the fleet.
  void notify(std::string_view run, Kind kind = Kind::any);
  /// Wakes every subscriber of every run.
  void notify_all();
  /// A cursor for wait(): changes before this moment count as seen.
  [[nodiscard]] std::uint64_t now() const noexcept { return notified_; }
  /// Waits until the run has changed since `seen`, at most `most`. Empty: any run. May return early.
  Task<> wait(std::string run, std::uint64_t seen, Duration most);
  [[nodiscard]] std::size_t subscribers() const noexcept { return subscribers_; }

  class Subscription;
  class EndSubscription;

 private:
  struct Subscribed {
    Notification changed, may_have_ended;
    std::uint64_t notified = 0;
    std::size_t subscribers = 0;
  };
  using Runs = std::map<std::string, Subscribed, std::less<>>;

  std::uint64_t notified_ = 0;
  std::size_t subscribers_ = 0;
  Notification any_;
  Runs runs_;
};

/// An entry in the list of a run's subscribers.
class Changes::Subscription {
 public:
  Subscription(Changes& changes, std::string run);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

 protected:
  friend class Changes;
  [[nodiscard]] Subscribed& subscribed() const noexcept { return run_->second; }

  Changes& changes_;
  Runs::iterator run_;  // end(): any run
};

/// Waits for the end of one run: `while (!has_ended()) co_await ending.next(most);`. From its construction on it misses
/// no change, even between a check and the next wait. Progress does not wake it.
class Changes::EndSubscription : private Subscription {
 public:
  EndSubscription(Changes& changes, std::string run)
      : Subscription(changes, std::move(run)), seen_(subscribed().may_have_ended.count()) {}
  /// Waits until the run may have ended, at most `most`.
  Task<> next(Duration most);

 private:
  std::uint64_t seen_;
};

}  // namespace stint::events
