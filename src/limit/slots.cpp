// Invariants
// 1. A record is written after the lock and before any work starts.
// 2. A slot counts as held when it is locked, or when it has a record whose work could not be ended yet.
// 3. Probing opens and closes nothing: a close would be an event and wake all waiters (measured: 4 times fewer
//    grants).
#include "limit/slots.hpp"

#include "domain/agent.hpp"
#include "os/process.hpp"

#include <algorithm>
#include <dirent.h>
#include <optional>
#include <set>
#include <sys/stat.h>

namespace stint::limit {

void HostPermit::release() noexcept {
  for (Held& slot : slots_) {
    if (entrusted_) {
      os::release_slot(slot.fd.get(), run_);
    } else {
      os::release_slot(std::move(slot.fd), run_);
    }
  }
  slots_.clear();
}

void HostPermit::merge(HostPermit&& other) {
  for (Held& slot : other.slots_) slots_.push_back(std::move(slot));
  other.slots_.clear();
  run_ = other.run_;
}

Result<> HostPermit::assign(const std::string& run, const std::string& cgroup, const std::string& label) {
  for (const Held& slot : slots_) {
    std::optional<os::SlotRecord> record = os::read_slot_record(slot.fd.get());
    if (!record) return fail(Errc::failed, slot.limit + ": the record in this process's slot file is gone");
    record->run = run;
    record->cgroup = cgroup;
    record->label = label;
    if (!os::write_slot_record(slot.fd.get(), *record)) {
      return fail(Errc::failed,
                  slot.limit + ": cannot write the record in this process's slot file. Check whether the disk is full");
    }
  }
  run_ = run;
  return {};
}

std::vector<int> HostPermit::entrust() {
  entrusted_ = true;
  std::vector<int> result;
  for (const Held& slot : slots_) result.push_back(slot.fd.get());
  return result;
}

std::vector<std::string> HostPermit::limits() const {
  std::set<std::string> names;
  for (const Held& each : slots_) names.insert(each.limit);
  return {names.begin(), names.end()};
}

std::optional<std::uint32_t> HostPermit::index_of(std::string_view limit) const noexcept {
  const auto found = std::ranges::find(slots_, limit, &Held::limit);
  return found == slots_.end() ? std::nullopt : std::optional(found->index);
}

Slots::Slots(HostLimit limit, os::SlotRecord who, std::vector<std::string> marks)
    : limit_(std::move(limit)), who_(std::move(who)), marks_(std::move(marks)) {}

/// Slots that have a file, at any index.
std::vector<std::uint32_t> Slots::existing() const {
  std::vector<std::uint32_t> found;
  DIR* const directory = ::opendir(limit_.directory.c_str());
  if (directory == nullptr) return found;
  const std::string stem = limit_.stem();
  while (const dirent* const entry = ::readdir(directory)) {
    const int index = slot_index(entry->d_name, stem);
    if (index >= 0 && static_cast<std::uint32_t>(index) < domain::kPermitsMax) {
      found.push_back(static_cast<std::uint32_t>(index));
    }
  }
  ::closedir(directory);
  return found;
}

Result<> Slots::refresh(std::vector<std::string>& opened, bool thorough) {
  // Before reading anything: a later change is seen the next time.
  same_ = stamp_.is_same(limit_.directory, who_.since_ms) && !thorough;
  if (!same_ || has_capacity_) {
    const auto written = written_capacity(limit_);
    has_capacity_ = written.has_value();
    capacity_ = written.value_or(limit_.capacity);
  }
  const auto open_slot = [&](std::uint32_t index) -> Result<> {
    Slot& slot = slots_[index];
    if (slot.fd) return {};
    const std::string path = limit_.slot_path(index);
    STINT_TRY(slot.fd, os::open_shared_file(path, limit_.file_mode()));
    opened.push_back(path);
    return {};
  };
  const std::vector<std::uint32_t> present = same_ ? std::vector<std::uint32_t>() : existing();
  for (const std::uint32_t index : present) STINT_CHECK(open_slot(index));
  if (!present.empty()) STINT_CHECK(check_agreed_before_making());
  for (std::uint32_t i = 0; i < capacity_; ++i) STINT_CHECK(open_slot(i));
  return {};
}

/// A refused capacity creates no files: they would be taken for the limit's size.
Result<> Slots::check_agreed_before_making() const {
  if (!limit_.asked || has_capacity_) return {};
  bool makes = false;
  for (std::uint32_t i = 0; i < capacity_ && !makes; ++i) {
    const auto slot = slots_.find(i);
    makes = slot == slots_.end() || !slot->second.fd;
  }
  if (!makes) return {};
  for (const Holder& holder : holders()) {
    const bool ours = holder.record && std::ranges::find(marks_, holder.record->run) != marks_.end();
    if (holder.record && !ours) STINT_CHECK(check_same_number(*holder.record));
  }
  return {};
}

void Slots::open_existing() {
  for (const std::uint32_t index : existing()) {
    slots_[index].fd = os::open_to_look(limit_.slot_path(index));
  }
}

/// Whether a run of which this process is a part holds it.
bool Slots::is_ours(const Slot& slot) const {
  if (marks_.empty()) return false;
  const auto record = os::read_slot_record(slot.fd.get());
  return record && std::ranges::find(marks_, record->run) != marks_.end();
}

/// Whether it is still the file of that name: another program may have unlinked it.
bool Slots::is_named(std::uint32_t index, const Slot& slot) const {
  struct stat ours{}, named{};
  if (::fstat(slot.fd.get(), &ours) != 0 || ours.st_nlink == 0) return false;
  return same_ || (::stat(limit_.slot_path(index).c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
                   ours.st_dev == named.st_dev);
}

/// Locks a slot and makes sure that no process of an earlier run is alive in it.
Slots::Look Slots::lock(std::uint32_t index, Slot& slot) {
  if (!os::try_lock_slot(slot.fd.get())) return Look::held;
  if (!is_named(index, slot)) {  // a lock on it excludes no other process; the next refresh opens the new file
    slot.fd.reset();
    return Look::held;
  }
  const os::SlotContent content = os::read_slot(slot.fd.get());
  slot.blank = content.blank;
  slot.stale = content.record.has_value();
  const os::Swept swept = content.record ? os::sweep(*content.record) : os::Swept::gone;
  if (swept == os::Swept::gone) return Look::free;
  os::unlock_slot(slot.fd.get());
  return swept == os::Swept::ending ? Look::dying : Look::held;
}

/// One limit, one capacity: two commands with different capacities would both be wrong.
Result<> Slots::check_same_number(const os::SlotRecord& record) const {
  if (record.capacity == 0 || record.capacity == capacity_) return {};
  return fail(Errc::invalid, limit_.name + "=" + std::to_string(capacity_) + ", but " +
                                 (record.label.empty() ? "pid " + std::to_string(record.pid) : record.label) +
                                 " holds it as " + limit_.name + "=" + std::to_string(record.capacity) +
                                 ". Use the same capacity, or run `stint limits " + limit_.name + "=" +
                                 std::to_string(capacity_) + "` to change it for all");
}

Result<> Slots::check_agreed(const Slot& slot, const std::vector<std::uint32_t>& locked) {
  if (!limit_.asked || has_capacity_) return {};
  const auto record = os::read_slot_record(slot.fd.get());
  const Result<> agreed = record ? check_same_number(*record) : Result<>();
  if (agreed) return {};
  for (const std::uint32_t index : locked) os::unlock_slot(slots_.at(index).fd.get());
  return agreed;
}

Result<Slots::Taken> Slots::take() {
  if (who_.weight > capacity_) {
    return fail(Errc::invalid, limit_.name + ": weight " + std::to_string(who_.weight) +
                                   " is more than its capacity, " + std::to_string(capacity_));
  }
  Taken taken;
  std::uint32_t others = 0, mine = 0, inherited = 0;
  std::vector<std::uint32_t> fresh;
  for (auto& [index, slot] : slots_) {
    if (!slot.fd) continue;
    if (slot.mine) {
      ++mine;
      continue;
    }
    const Look look = lock(index, slot);
    if (look == Look::free) {
      fresh.push_back(index);
      continue;
    }
    ++others;
    taken.swept = taken.swept || look == Look::dying;
    if (look != Look::held || !slot.fd) continue;
    if (is_ours(slot)) {
      ++inherited;
    } else {
      STINT_CHECK(check_agreed(slot, fresh));
    }
  }
  const auto give_back = [&](std::uint32_t index) {
    const Slot& slot = slots_.at(index);
    if (slot.stale)
      os::erase_slot_record(slot.fd.get());  // its work is proven gone; above N no other process would do it
    os::unlock_slot(slot.fd.get());
  };
  if (inherited > 0) {  // a nested call of a run that holds this limit already
    std::ranges::for_each(fresh, give_back);
    taken.all = inherited >= who_.weight;
    if (taken.all) return taken;
    return fail(Errc::invalid, limit_.name + ": this run already holds " + std::to_string(inherited) +
                                   " of its units; a nested call cannot wait for " + std::to_string(who_.weight));
  }
  const std::uint32_t allowed = std::min(who_.weight, capacity_ > others ? capacity_ - others : 0);
  who_.capacity = capacity_;
  for (const std::uint32_t index : fresh) {
    Slot& slot = slots_.at(index);
    if (index >= capacity_ || mine >= allowed) {
      give_back(index);
      continue;
    }
    if (!os::write_slot_record(slot.fd.get(), who_, slot.blank)) {
      Error error = os::system_error("cannot write " + limit_.slot_path(index));
      give_back(index);
      return fail(std::move(error));
    }
    slot.mine = true;
    ++mine;
  }
  taken.all = mine == who_.weight;
  return taken;
}

void Slots::drop() noexcept {
  for (auto& [index, slot] : slots_) {
    if (std::exchange(slot.mine, false)) os::release_slot(slot.fd.get(), who_.run);
  }
}

HostPermit Slots::permit() {
  HostPermit permit;
  permit.run_ = who_.run;
  for (auto& [index, slot] : slots_) {
    if (std::exchange(slot.mine, false)) permit.slots_.push_back({std::move(slot.fd), limit_.name, index});
  }
  slots_.clear();
  return permit;
}

std::vector<Slots::Holder> Slots::holders() const {
  std::vector<Holder> found;
  const auto locked = os::flocked_inodes();
  std::optional<os::Marks> marks;  // a scan of all processes, made on demand
  for (const auto& [index, slot] : slots_) {
    if (slot.mine || !slot.fd) continue;
    const auto record = os::read_slot_record(slot.fd.get());
    const bool held = std::ranges::find(locked, os::inode_of(slot.fd.get())) != locked.end();
    if (!held && !record) continue;
    if (!held && !marks) marks = os::all_marked();
    // A record with a free lock belongs to keepers that were killed. If their work is gone as well, nothing is held.
    if (!held && !os::may_be_alive(*record, *marks)) continue;
    const bool theirs = !held && os::is_other_users(*record);
    found.push_back({index, record, !held && !theirs && os::can_see(*record), theirs});
  }
  return found;
}

}  // namespace stint::limit
