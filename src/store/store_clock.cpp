#include "store/store_clock.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using std::chrono::milliseconds;

milliseconds to_whole(Duration duration) { return std::chrono::floor<milliseconds>(duration); }

}  // namespace

StoreClock::StoreClock(const domain::System& system, std::optional<Anchor> kept, std::optional<Seen> seen)
    : system_(&system) {
  const bool same_boot = kept && kept->boot == system.boot && kept->elapsed <= to_whole(system.elapsed_now()) &&
                         kept->awake <= to_whole(system.awake_now());
  if (same_boot) {
    anchor_ = std::move(kept);
  } else if (seen) {
    const milliseconds gone = std::max(system.wall_now() - seen->wall, milliseconds::zero());
    anchor_ = Anchor{.boot = system.boot,
                     .elapsed = to_whole(system.elapsed_now()),
                     .awake = to_whole(system.awake_now()),
                     .now = seen->now + gone,
                     .awake_now = seen->awake_now};
  } else {
    (void)anchor();
  }
  if (seen) ahead_ = seen->wall - seen->now;
}

const StoreClock::Anchor& StoreClock::anchor() const {
  if (!anchor_) {
    const WallTime wall = system_->wall_now();
    anchor_ = Anchor{.boot = system_->boot,
                     .elapsed = to_whole(system_->elapsed_now()),
                     .awake = to_whole(system_->awake_now()),
                     .now = wall,
                     .awake_now = AwakeTime(wall.time_since_epoch())};
    ahead_ = milliseconds::zero();
  }
  return *anchor_;
}

AwakeTime StoreClock::awake() const {
  const Anchor& from = anchor();
  return from.awake_now + (to_whole(system_->awake_now()) - from.awake);
}

std::chrono::milliseconds StoreClock::ahead() const {
  const milliseconds lead = wall() - now();
  if (!ahead_ || std::chrono::abs(lead - *ahead_) > kJump) ahead_ = lead;
  return *ahead_;
}

StoreClock::Seen StoreClock::look() const {
  const WallTime at = now();
  return {.wall = at + ahead(), .now = at, .awake_now = awake()};
}

bool StoreClock::is_stale(const Seen& seen) const {
  const Seen fresh = look();
  const milliseconds jumped = (fresh.wall - seen.wall) - (fresh.now - seen.now);
  return fresh.now - seen.now > kSeenEvery || std::chrono::abs(jumped) > kJump;
}

}  // namespace stint::store
