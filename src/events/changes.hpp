/// Who follows a run, or the fleet, is woken when something may have changed; what it is, the store tells. Only the
/// answer of a run that succeeded is handed to who waits for its end. Followers keep nothing else here but their place
/// in a list, so a slow one costs nobody anything. One executor.
#pragma once

#include "stint/bell.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace stint::events {

class Changes {
 public:
  enum class Kind : std::uint8_t {
    on_its_way,  ///< it was submitted, claimed, has said something: who waits for its end need not look
    any,         ///< it may have ended
  };
  /// Something of that run has changed. Empty: of the fleet.
  void tell(std::string_view run, Kind kind = Kind::any);
  /// It has succeeded, and the store knows. Copied only if somebody waits for it.
  void tell_success(std::string_view run, const std::string& answer);
  /// Something has changed for everybody: whoever waits, for whatever, looks again.
  void tell_all();
  /// What came before this moment counts as seen by who waits with it.
  [[nodiscard]] std::uint64_t now() const noexcept { return told_; }
  /// Until something of the run changed since `seen`, and at most so long. Empty: of any run.
  Task<> wait(std::string run, std::uint64_t seen, Duration most);
  [[nodiscard]] std::size_t followers() const noexcept { return followers_; }

  class Place;
  class Ending;

 private:
  struct Followed {
    Bell bell, may_have_ended;
    std::shared_ptr<const std::string> answer;
    std::uint64_t told = 0;
    std::size_t followers = 0;
  };

  using Runs = std::map<std::string, Followed, std::less<>>;

  Followed* tell_followers(std::string_view run);

  std::uint64_t told_ = 0;
  std::size_t followers_ = 0;
  Bell any_;
  Runs runs_;
};

/// A place in the list of a run's followers.
class Changes::Place {
 public:
  Place(Changes& changes, std::string run);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 protected:
  friend class Changes;
  [[nodiscard]] Followed& followed() const noexcept { return run_->second; }

  Changes& changes_;
  Runs::iterator run_;  // the end: any
};

/// Who waits for the end of a run. Misses nothing from its making on.
class Changes::Ending : private Place {
 public:
  Ending(Changes& changes, std::string run)
      : Place(changes, std::move(run)), seen_(followed().may_have_ended.rings()) {}
  /// Until it may have ended, and at most so long. Its answer; null: it has none, or only the store knows.
  Task<std::shared_ptr<const std::string>> next(Duration most);

 private:
  std::uint64_t seen_;
};

}  // namespace stint::events
