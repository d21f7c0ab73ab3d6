/// The slot files of one limit, as one process sees them: who holds what, and taking some. Only the leader of the line
/// calls take(). What it takes carries the run's mark; a slot whose keepers all died is taken only after what carries
/// its mark was ended. Not thread-safe.
#pragma once

#include "limit/host_limit.hpp"
#include "os/slot_file.hpp"
#include "os/watch.hpp"

#include <map>
#include <string>
#include <vector>

namespace stint::limit {

/// Slots held by this process. A warden inherits them: the lock lives until both have closed it or one has released it.
/// The destructor releases what was never entrusted to a warden. What was, it only closes: work may still be alive, and
/// the warden releases when it is gone. Who knows that it is gone says release().
class HostPermit {
 public:
  HostPermit() noexcept = default;
  HostPermit(HostPermit&&) noexcept = default;
  HostPermit& operator=(HostPermit&&) = delete;
  ~HostPermit() {
    if (!entrusted_) release();
  }

  /// Erases the records, unlocks, wakes the next. May be repeated; does nothing to a slot that the warden has released.
  void release() noexcept;
  /// Takes over what another of the same run holds.
  void merge(HostPermit&& other);
  /// From here on they are that run's; before its work begins.
  [[nodiscard]] Result<> assign(const std::string& run, const std::string& cgroup, const std::string& label);
  /// The descriptors, for a warden to inherit.
  [[nodiscard]] std::vector<int> entrust();
  [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }
  /// The number of a slot of that limit; nothing if it holds none.
  [[nodiscard]] std::optional<std::uint32_t> index_of(std::string_view limit) const noexcept;

 private:
  friend class Slots;
  struct Held {
    os::Fd fd;
    std::string limit;
    std::uint32_t index = 0;
  };
  std::vector<Held> slots_;
  std::string run_;
  bool entrusted_ = false;
};

class Slots {
 public:
  /// `marks`: the runs that this process is a part of, from its environment; what they hold is not asked for again.
  Slots(HostLimit limit, os::SlotRecord who, std::vector<std::string> marks);

  /// Reads N, makes and opens the slots below it, opens all others that exist. Adds the paths that were not open before
  /// to `opened`. `thorough`: also looks for them if the directory seems unchanged.
  Result<> refresh(std::vector<std::string>& opened, bool thorough);
  /// Opens those that exist, for reading: to look.
  void open_existing();
  struct Taken {
    bool all = false;
    bool swept = false;  // something of a dead run is being ended: look again in a moment
  };
  /// Takes what it may of what refresh() found: slots held by others, at any index, plus ours never exceed N.
  Result<Taken> take();
  void drop() noexcept;  // gives back what take() holds
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
  HostPermit permit();

  /// Who holds slots, ourselves excepted. A lock without a record belongs to another tool.
  struct Holder {
    std::uint32_t index = 0;
    std::optional<os::SlotRecord> record;
    bool swept = false;     // all its keepers died, and what is left of it is being ended
    bool unjudged = false;  // all its keepers died, and what is left belongs to another user
  };
  [[nodiscard]] std::vector<Holder> holders() const;

 private:
  struct Slot {
    os::Fd fd;
    bool mine = false;
    bool blank = false;  // as we found it when we locked it
    bool stale = false;  // it had the record of a run that is gone
  };
  std::vector<std::uint32_t> existing() const;
  enum class Look : std::uint8_t { free, held, dying };
  Look lock(std::uint32_t index, Slot& slot);
  bool is_ours(const Slot& slot) const;
  Result<> check_agreed(const Slot& slot, const std::vector<std::uint32_t>& locked);
  Result<> check_agreed_before_making() const;
  Result<> check_same_number(const os::SlotRecord& record) const;
  bool is_named(std::uint32_t index, const Slot& slot) const;

  HostLimit limit_;
  os::SlotRecord who_;
  std::vector<std::string> marks_;
  std::map<std::uint32_t, Slot> slots_;
  std::uint32_t capacity_ = 0;
  os::DirectoryStamp stamp_;
  bool same_ = false;          // the directory, since it was looked through
  bool has_capacity_ = false;  // there is a file that says N
};

}  // namespace stint::limit
