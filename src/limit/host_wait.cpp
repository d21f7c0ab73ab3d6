// Invariants
// 1. Watch first, check second: a change after the check causes an event.
// 2. An event may precede the release of the lock (close by a killed holder): further checks follow every event.
// 3. A wait that is not first holds nothing, so that two waits that each hold a part cannot deadlock.
#include "limit/host_wait.hpp"

#include <algorithm>
#include <array>

namespace stint::limit {
namespace {

using std::chrono::milliseconds;

// After an event: check again soon, then poll slowly for safety. Without inotify only the poll remains.
constexpr std::array kRechecks = {milliseconds(1), milliseconds(5), milliseconds(20), milliseconds(1000)};
constexpr milliseconds kPollWithoutInotify{20};
constexpr milliseconds kPollSweeping{1};

}  // namespace

Result<HostWait> HostWait::open(const HostLimit& limit, const os::SlotRecord& who, std::vector<std::string> marks,
                                os::Watch& watch) {
  STINT_CHECK(check_name(limit.name));
  STINT_CHECK(make_directory(limit));
  STINT_TRY(Line line, Line::open(limit));
  os::SlotRecord ticket = who;
  ticket.cgroup.clear();  // line records are short, and a waiter has nothing to sweep
  ticket.boot.clear();
  ticket.user.reset();
  STINT_CHECK(line.join(ticket));
  return HostWait(limit, std::move(line), Slots(limit, who, std::move(marks)), watch);
}

HostWait::~HostWait() { slots_.drop(); }  // before it leaves the line

Result<bool> HostWait::step(TimePoint now, bool notified) {
  const bool slow = recheck_ + 1 >= kRechecks.size();
  recheck_ = notified ? 0 : std::min(recheck_ + 1, kRechecks.size() - 1);
  STINT_TRY(bool granted, attempt(slow && !notified));
  if (!granted && !std::exchange(tried_, true) && watch_->start()) {
    watching_ = watch_->add_close_write(limit_.line_path());
    STINT_TRY(granted, attempt(false));  // sees changes from before the watch
  }
  next_check_ = now + (sweeping_ ? kPollSweeping : watching_ ? kRechecks[recheck_] : kPollWithoutInotify);
  return granted;
}

Result<bool> HostWait::attempt(bool thorough) {
  sweeping_ = false;
  if (!line_.is_first(thorough)) {
    slots_.drop();
    return false;
  }
  if (!line_.try_lead()) return false;
  auto granted = lead(thorough);
  line_.stop_leading();
  return granted;
}

Result<bool> HostWait::lead(bool thorough) {
  STINT_CHECK(slots_.refresh(unwatched_, thorough));
  if (watching_) {
    for (const std::string& path : std::exchange(unwatched_, {})) watching_ = watch_->add_close(path) && watching_;
  }
  STINT_TRY(const Slots::Taken taken, slots_.take());
  sweeping_ = taken.swept;
  return taken.all;
}

HostPermit HostWait::permit() {
  HostPermit permit = slots_.permit();
  line_.leave();
  return permit;
}

std::vector<Slots::Holder> HostWait::holders() {
  std::vector<std::string> opened;
  if (!slots_.refresh(opened, false)) return {};
  unwatched_.insert(unwatched_.end(), opened.begin(), opened.end());
  return slots_.holders();
}

}  // namespace stint::limit
