#include "driver/ladder.hpp"

#include "os/cgroup.hpp"

#include <algorithm>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;

// Between two rounds of SIGKILL: a process that keeps forking is caught within milliseconds, and one in uninterruptible
// sleep does not cause a busy loop.
constexpr Duration kPauseLeast = 1ms;
constexpr Duration kPauseMost = 100ms;

}  // namespace

void Ladder::begin(int signal, TimePoint now) {
  if (begun_ && signal != SIGKILL) return;
  next_ = signal == SIGKILL ? now : now + grace_;
  pause_ = kPauseLeast;
  if (begun_) return;
  begun_ = true;
  const auto targets = targets_();
  found_ = targets.size();
  if (signal != SIGKILL) os::signal_all(targets, signal);
}

void Ladder::hasten(Duration grace, TimePoint now) {
  if (!begun_ || next_ <= now + grace) return;
  next_ = now + grace;
  os::signal_all(targets_(), SIGTERM);
}

void Ladder::step(TimePoint now) {
  if (!begun_ || now < next_) return;
  os::kill_cgroup(cgroup_);
  os::signal_all(targets_(), SIGKILL);
  next_ = now + pause_;
  pause_ = std::min(pause_ * 2, kPauseMost);
}

}  // namespace stint::driver
