/// Ends a tree of processes in steps: a polite signal, a grace period, then SIGKILL in rounds until none is left. The
/// owner reaps, and calls step() when next() is due. The ladder never gives up: a permit is freed only when all
/// processes are gone.
#pragma once

#include "os/process.hpp"
#include "stint/time.hpp"

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace stint::driver {

inline constexpr std::size_t kNamedMost = 5;  // processes that a message names

class Ladder {
 public:
  using Targets = std::function<std::vector<os::Process>()>;
  /// Calls `targets` in every round: a tree may grow while it is ended. `cgroup` may be empty.
  Ladder(Duration grace, std::string cgroup, Targets targets)
      : grace_(grace), cgroup_(std::move(cgroup)), targets_(std::move(targets)) {}

  /// Sends the first signal and starts the grace period. Once begun, only SIGKILL has an effect: it skips the grace.
  void begin(int signal, TimePoint now);
  /// Once begun: sends SIGTERM to what is left, and SIGKILL after `grace`, if that is sooner than planned.
  void hasten(Duration grace, TimePoint now);
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  [[nodiscard]] TimePoint next() const noexcept { return next_; }
  void step(TimePoint now);
  /// How many processes the first signal found.
  [[nodiscard]] std::size_t found() const noexcept { return found_; }

 private:
  Duration grace_;
  std::string cgroup_;
  Targets targets_;
  bool begun_ = false;
  TimePoint next_ = TimePoint::max();
  Duration pause_;
  std::size_t found_ = 0;
};

}  // namespace stint::driver
