#include "playground/line_watch.hpp"

#include <algorithm>
#include <numeric>

namespace stint::playground {
namespace {

using Entry = LineWatch::Entry;

std::uint32_t units_of(const std::vector<Entry>& entries, const std::string& task) {
  const auto found = std::ranges::find(entries, task, &Entry::task);
  return found == entries.end() ? 0 : found->units;
}

bool has(const std::vector<Entry>& entries, const std::string& task) {
  return std::ranges::find(entries, task, &Entry::task) != entries.end();
}

std::uint32_t total(const std::vector<Entry>& entries) {
  return std::accumulate(entries.begin(), entries.end(), 0U,
                         [](std::uint32_t sum, const Entry& each) { return sum + each.units; });
}

void add(std::vector<Entry>& entries, std::string task, std::uint32_t units) {
  const auto found = std::ranges::find(entries, task, &Entry::task);
  if (found == entries.end()) {
    entries.push_back({std::move(task), units});
  } else {
    found->units += units;
  }
}

std::vector<Entry> holders_of(const Semaphore& semaphore) {
  std::vector<Entry> entries;
  for (const Semaphore::Holder& holder : semaphore.holders()) add(entries, holder.label, holder.units);
  return entries;
}

}  // namespace

LineWatch::LineWatch(const Semaphore& semaphore) : semaphore_(&semaphore), last_(list()) {
  available_ = semaphore.available();
}
LineWatch::LineWatch(const Mutex& mutex) : mutex_(&mutex), last_(list()) {}

const std::string& LineWatch::name() const noexcept {
  return semaphore_ != nullptr ? semaphore_->name() : mutex_->name();
}

LineWatch::Listing LineWatch::list() const {
  Listing listing;
  if (mutex_ != nullptr) {
    listing.capacity = 1;
    listing.closed = mutex_->closed();
    if (const auto holder = mutex_->holder()) listing.holders.push_back({holder->label, 1});
    for (const Mutex::Waiter& waiter : mutex_->waiters()) listing.line.push_back({waiter.label, 1});
    return listing;
  }
  listing.capacity = semaphore_->capacity();
  listing.closed = semaphore_->closed();
  listing.holders = holders_of(*semaphore_);
  for (const Semaphore::Waiter& waiter : semaphore_->waiters()) listing.line.push_back({waiter.label, waiter.units});
  const std::int64_t held = std::int64_t{listing.capacity} - semaphore_->available();
  listing.flying = static_cast<std::uint32_t>(held - std::int64_t{total(listing.holders)});
  return listing;
}

/// Spares the listing of a long line in which nothing happened. A task that returns units and takes others in the same
/// step changes the holders only; while a grant is in flight, its delivery does.
bool LineWatch::is_unchanged() const {
  if (semaphore_ == nullptr || !gone_.empty() || flies_) return false;
  if (semaphore_->waiting() != last_.line.size() || semaphore_->available() != available_) return false;
  if (semaphore_->capacity() != last_.capacity || semaphore_->closed() != last_.closed) return false;
  return holders_of(*semaphore_) == last_.holders;
}

void LineWatch::look(bool quiet, const Emit& emit) {
  if (is_unchanged()) return;
  Listing now = list();
  if (now.capacity != last_.capacity) emit(EventKind::resized, {}, now.capacity);
  if (now.closed && !last_.closed) emit(EventKind::closed, {}, 0);
  for (const Entry& each : last_.holders) {
    const std::uint32_t kept = units_of(now.holders, each.task);
    if (kept < each.units) emit(EventKind::released, each.task, each.units - kept);
  }
  settle_gone(now, emit);
  std::vector<Entry> vanished;
  for (const Entry& each : last_.line) {
    if (!has(now.line, each.task)) vanished.push_back(each);
  }
  if (mutex_ != nullptr) {
    judge_mutex(vanished, now, emit);
  } else {
    judge(std::move(vanished), now, emit);
  }
  for (const Entry& each : now.holders) {
    const std::uint32_t before = units_of(last_.holders, each.task);
    if (each.units > before) emit(EventKind::granted, each.task, each.units - before);
  }
  // After the grants: a task that got its units may wait for more in the same step.
  for (const Entry& each : now.line) {
    if (!has(last_.line, each.task)) emit(EventKind::waits, each.task, each.units);
  }
  if (quiet) {
    for (const Entry& each : gone_) emit(EventKind::left, each.task, each.units);
    gone_.clear();
  }
  flies_ = now.flying.value_or(0) != 0;
  last_ = std::move(now);
  if (semaphore_ != nullptr) available_ = semaphore_->available();
}

/// Tasks that left the line earlier: one that holds units now was granted them, one that waits again had given up.
void LineWatch::settle_gone(const Listing& now, const Emit& emit) {
  std::erase_if(gone_, [&](const Entry& gone) {
    if (units_of(now.holders, gone.task) > units_of(last_.holders, gone.task)) return true;
    if (!has(now.line, gone.task)) return false;
    emit(EventKind::left, gone.task, gone.units);
    return true;
  });
}

/// A waiter that gives up may let others pass that it held up: then one left, and the others were granted their units.
/// The one is found by its units: it needed more than were free, so no grant is as large. If other grants were in
/// flight before, one of them may have been returned to one that vanished now: that shows at the end of the moment.
void LineWatch::judge(std::vector<Entry> vanished, const Listing& now, const Emit& emit) {
  std::erase_if(vanished, [&](const Entry& each) {
    return units_of(now.holders, each.task) > units_of(last_.holders, each.task);
  });
  const bool sure = gone_.empty() && !flies_;
  const std::uint32_t given_up = total(vanished) - std::min(total(vanished), *now.flying);
  const auto leaver = std::ranges::find(vanished, given_up, &Entry::units);
  for (auto each = vanished.begin(); each != vanished.end(); ++each) {
    if (now.closed || (sure && (*now.flying == 0 || each == leaver))) {
      emit(EventKind::left, each->task, each->units);
    } else {
      gone_.push_back(*each);
    }
  }
}

/// A mutex does not show a grant in flight.
void LineWatch::judge_mutex(const std::vector<Entry>& vanished, const Listing& now, const Emit& emit) {
  const bool same_holder =
      !now.holders.empty() && !last_.holders.empty() && now.holders.front().task == last_.holders.front().task;
  for (const Entry& each : vanished) {
    if (has(now.holders, each.task)) continue;
    if (now.closed || same_holder) {
      emit(EventKind::left, each.task, each.units);
    } else {
      gone_.push_back(each);
    }
  }
}

}  // namespace stint::playground
