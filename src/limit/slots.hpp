/// The slot files of one limit, as one process sees them: which are held, and taking some. Only the leader of the
/// line calls take(). A taken slot carries the run's mark. A slot whose keepers all died is taken only after all
/// processes with its mark were ended. Not thread-safe.
#pragma once

#include "limit/host_limit.hpp"
#include "os/slot_file.hpp"
#include "os/watch.hpp"

#include <map>
#include <string>
#include <vector>

namespace stint::limit {

/// Slots held by this process. A warden inherits them: the lock lives until both have closed it or one has released
/// it. The destructor releases slots that were never entrusted to a warden. Entrusted slots it only closes: work may
/// still be alive, and the warden releases them when it is gone. A caller that knows that the work is gone calls
/// release().
class HostPermit {
 public:
  HostPermit() noexcept = default;
  HostPermit(HostPermit&&) noexcept = default;
  HostPermit& operator=(HostPermit&&) = delete;
  ~HostPermit() {
    if (!entrusted_) release();
  }

  /// Erases the records, unlocks, wakes the next waiter. May be repeated; ignores a slot that the warden has
  /// released.
  void release() noexcept;
  /// Takes over the slots of another permit of the same run.
  void merge(HostPermit&& other);
  /// Assigns the slots to that run; call it before its work begins.
  [[nodiscard]] Result<> assign(const std::string& run, const std::string& cgroup, const std::string& label);
  /// The descriptors, for a warden to inherit.
  [[nodiscard]] std::vector<int> entrust();
  [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }
  /// The number of a slot of that limit; nothing if it holds none.
  [[nodiscard]] std::optional<std::uint32_t> index_of(std::string_view limit) const noexcept;
  /// The limits of which it holds slots: each once, by name.
  [[nodiscard]] std::vector<std::string> limits() const;

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
  /// `marks`: the runs of which this process is a part, from its environment; it inherits what they hold.
  Slots(HostLimit limit, os::SlotRecord who, std::vector<std::string> marks);

  /// Reads N, creates and opens the slots below it, opens all others that exist. Adds the newly opened paths to
  /// `opened`. `thorough`: also if the directory seems unchanged.
  Result<> refresh(std::vector<std::string>& opened, bool thorough);
  /// Opens the existing slots read-only.
  void open_existing();
  struct Taken {
    bool all = false;
    bool swept = false;  // a dead run is being ended: check again soon
  };
  /// Takes what it may of the slots that refresh() found: slots held by others, at any index, plus its own never
  /// exceed N.
  Result<Taken> take();
  void drop() noexcept;  // releases what take() took
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
  HostPermit permit();

  /// The holders of slots, except this process. A lock without a record belongs to another tool.
  struct Holder {
    std::uint32_t index = 0;
    std::optional<os::SlotRecord> record;
    bool swept = false;     // all its keepers died, and its leftover processes are being ended
    bool unjudged = false;  // all its keepers died, and its leftover processes belong to another user
  };
  [[nodiscard]] std::vector<Holder> holders() const;

 private:
  struct Slot {
    os::Fd fd;
    bool mine = false;
    bool blank = false;  // state when it was locked
    bool stale = false;  // it contained the record of a run that is gone
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
  bool same_ = false;          // the directory is unchanged since it was listed
  bool has_capacity_ = false;  // a capacity file exists
};

}  // namespace stint::limit
