/// One slot of a host limit: a file `<name>.<i>.lock`, held by flock(2), so that flock(1) and other tools take part.
///
/// The holder of a slot writes a record of its run into it, and erases the record when the work is proven gone. So a
/// free lock with a record means that all keepers were killed: the next process that locks the slot first ends all
/// processes with that mark. Erasing writes blanks: truncating the file takes the file system longer than the rest of
/// a hand-over. Files are never unlinked. Two processes keep a slot, `stint` and its warden: one open file, and
/// either may release it.
#pragma once

#include "os/fd.hpp"
#include "os/process.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace stint::os {

/// The content of a held slot, and of a ticket: one line of `key=value`, the label last.
struct SlotRecord {
  std::string run;     // the mark of the work: `<id>:<fence>`
  std::string cgroup;  // empty: none
  pid_t pid = 0;       // the process that took it
  std::uint64_t start = 0;
  std::uint32_t capacity = 0;  // N at the time it was taken
  std::uint32_t weight = 1;
  std::int64_t since_ms = 0;       // wall clock, for display
  std::uint64_t namespace_id = 0;  // of its pids: processes of another namespace cannot be checked
  std::optional<uid_t> user;       // its owner: marks of another user's processes cannot be read
  std::string boot;                // id of the boot; work of an earlier boot is gone
  std::string label;
};
inline constexpr std::size_t kSlotRecordMax = 512;
inline constexpr std::size_t kLabelMax = 80;

/// Printable, one line, bounded.
[[nodiscard]] std::string to_text(const SlotRecord& record, std::size_t most = kSlotRecordMax);
/// None if it is not Stint's: other tools may write anything.
[[nodiscard]] std::optional<SlotRecord> parse_slot_record(std::string_view text);
[[nodiscard]] std::optional<SlotRecord> read_slot_record(int fd);
/// The content of a slot: nothing, a record of Stint, or text of another program.
struct SlotContent {
  bool blank = true;
  std::optional<SlotRecord> record;
};
[[nodiscard]] SlotContent read_slot(int fd);
/// False if that failed (full disk); the slot is then blank. `blank`: read_slot() found it blank, so it needs no
/// truncation.
bool write_slot_record(int fd, const SlotRecord& record, bool blank = false) noexcept;

/// The pid namespace of this process.
[[nodiscard]] std::uint64_t pid_namespace();

[[nodiscard]] std::string boot_id();
/// Identifies the boot and the time namespace: processes with the same value may compare CLOCK_BOOTTIME and
/// CLOCK_MONOTONIC. Empty: the kernel does not provide it.
[[nodiscard]] std::string boot_clock_id();
/// Whether its processes are visible from here: not those of another container.
[[nodiscard]] bool can_see(const SlotRecord& record);

/// Inodes that are locked by flock(2), from the kernel's list: a look must not lock, as that would interfere.
[[nodiscard]] std::vector<std::uint64_t> flocked_inodes();
[[nodiscard]] std::uint64_t inode_of(int fd) noexcept;

/// Under the lock, and only when its work is gone.
void erase_slot_record(int fd) noexcept;

bool try_lock_slot(int fd) noexcept;
void unlock_slot(int fd) noexcept;

enum class LockState : std::uint8_t { missing, free, held };
/// Whether a process holds the lock of this file; does not keep the lock. Concurrent probes do not disturb each
/// other. Fails with Retry::safe if the lock cannot be checked (no descriptor, no permission), which says nothing
/// about the holder.
[[nodiscard]] Result<LockState> probe_lock(const std::string& path);
/// Erases the record, unlocks, then closes a fresh write descriptor to wake a waiter: an unlock alone wakes none, and
/// another process may still have the original descriptor. Ignores a slot that another process holds now.
void release_slot(int fd, std::string_view run) noexcept;
/// The same for a slot that no other process has open: closing its own descriptor wakes a waiter.
void release_slot(Fd slot, std::string_view run) noexcept;

enum class Swept : std::uint8_t {
  gone,    ///< its cgroup is empty and a walk found nothing; without a cgroup, two walks in a row
  ending,  ///< check again soon
  unseen,  ///< of another container, or of another user with processes that may belong to it: counts as alive
};
/// Whether its processes belong to another user: this process can neither read their marks nor end them.
[[nodiscard]] bool is_other_users(const SlotRecord& record) noexcept;
/// Whether a process of the record's run may be alive, by a scan of all processes. Read-only.
[[nodiscard]] bool may_be_alive(const SlotRecord& record, const Marks& marks);
/// One pass over the processes that an earlier run left: ends them with SIGKILL.
[[nodiscard]] Swept sweep(const SlotRecord& record);

}  // namespace stint::os
