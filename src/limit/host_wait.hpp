/// The wait for the slots of one limit as a state machine: a ticket in the line, slots when it is first, inotify in
/// between. It never blocks; `HostLimits` drives it on the reactor. Destroying it leaves the line and releases its
/// slots. Not thread-safe; one per wait.
#pragma once

#include "limit/line.hpp"
#include "limit/slots.hpp"
#include "os/watch.hpp"
#include "stint/time.hpp"

#include <string>
#include <vector>

namespace stint::limit {

class HostWait {
 public:
  /// Joins the line; creates the limit's directory if it is missing. `watch` must outlive the wait.
  static Result<HostWait> open(const HostLimit& limit, const os::SlotRecord& who, std::vector<std::string> marks,
                               os::Watch& watch);
  HostWait(HostWait&&) noexcept = default;
  HostWait& operator=(HostWait&&) = delete;
  ~HostWait();

  /// True: granted, call permit(). Call it once at the start, then after an event (`notified`) or at next_check().
  Result<bool> step(TimePoint now, bool notified);
  [[nodiscard]] TimePoint next_check() const noexcept { return next_check_; }
  [[nodiscard]] bool watching() const noexcept { return watching_; }
  /// Also leaves the line, so that the next waiter can proceed.
  HostPermit permit();

  [[nodiscard]] std::size_t ahead() const { return line_.ahead(); }
  [[nodiscard]] std::vector<Slots::Holder> holders();
  [[nodiscard]] const HostLimit& limit() const noexcept { return limit_; }

 private:
  HostWait(HostLimit limit, Line line, Slots slots, os::Watch& watch)
      : limit_(std::move(limit)), line_(std::move(line)), slots_(std::move(slots)), watch_(&watch) {}
  Result<bool> attempt(bool thorough);
  Result<bool> lead(bool thorough);

  HostLimit limit_;
  Line line_;
  Slots slots_;
  os::Watch* watch_;
  bool tried_ = false, watching_ = false, sweeping_ = false;
  std::vector<std::string> unwatched_;  // slots that were opened before the watch existed
  std::size_t recheck_ = 0;             // index into kRechecks
  TimePoint next_check_{};
};

}  // namespace stint::limit
