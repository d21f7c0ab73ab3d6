/// One slot of a host limit: a file `<name>.<i>.lock`, held by flock(2), so that flock(1) and other tools take part.
///
/// Whoever holds a slot for a run writes a record into it and erases it when the work is proven gone. So a free lock
/// with a record in it means that all keepers were killed: whoever locks it next first ends what carries that mark.
/// Erasing writes blanks over it: to cut the file takes the file system longer than the whole rest of a hand-over.
/// Files are never unlinked. A slot is kept by two processes, `stint` and its warden: one open file, and either may
/// release it.
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

/// What is written into a held slot, and into a ticket: one line of `key=value`, the label last.
struct SlotRecord {
  std::string run;     // the mark of the work: `<id>:<fence>`
  std::string cgroup;  // empty: none
  pid_t pid = 0;       // who took it
  std::uint64_t start = 0;
  std::uint32_t capacity = 0;  // N as its taker counted
  std::uint32_t weight = 1;
  std::int64_t since_ms = 0;       // of the wall clock, for people
  std::uint64_t namespace_id = 0;  // of its pids: a foreign one can't be judged
  std::optional<uid_t> user;       // that owns it: the marks of another user's processes can't be read
  std::string boot;                // of the machine; what an earlier one ran is gone
  std::string label;
};
inline constexpr std::size_t kSlotRecordMax = 512;
inline constexpr std::size_t kLabelMax = 80;

/// Printable, one line, bounded.
[[nodiscard]] std::string to_text(const SlotRecord& record, std::size_t most = kSlotRecordMax);
/// Nothing if it is not ours: other tools may write what they like.
[[nodiscard]] std::optional<SlotRecord> parse_slot_record(std::string_view text);
[[nodiscard]] std::optional<SlotRecord> read_slot_record(int fd);
/// What is in a slot: nothing, a record of ours, or what somebody else wrote.
struct SlotContent {
  bool blank = true;
  std::optional<SlotRecord> record;
};
[[nodiscard]] SlotContent read_slot(int fd);
/// False if that failed (full disk), and the slot is blank then. `blank`: as read_slot() found it, nothing is to be
/// cut.
bool write_slot_record(int fd, const SlotRecord& record, bool blank = false) noexcept;

/// The one namespace of pids that this process can see.
[[nodiscard]] std::uint64_t pid_namespace();

[[nodiscard]] std::string boot_id();
/// Names the boot and the time namespace: processes for which it is the same may compare CLOCK_BOOTTIME and
/// CLOCK_MONOTONIC. Empty: the kernel does not tell.
[[nodiscard]] std::string boot_clock_id();
/// Whether its processes can be seen from here: not those of another container.
[[nodiscard]] bool can_see(const SlotRecord& record);

/// Inodes that somebody holds by flock(2), as the kernel lists them: looking must not lock, or it would get in the way.
[[nodiscard]] std::vector<std::uint64_t> flocked_inodes();
[[nodiscard]] std::uint64_t inode_of(int fd) noexcept;

/// Under the lock, and only when its work is gone.
void erase_slot_record(int fd) noexcept;

bool try_lock_slot(int fd) noexcept;
void unlock_slot(int fd) noexcept;

enum class LockState : std::uint8_t { missing, free, held };
/// Whether a process holds the lock of this file; does not keep it. Two probes at once do not disturb each other. Fails
/// with Retry::safe if the kernel does not tell: no descriptor is left, no permission. That says nothing about the
/// holder.
[[nodiscard]] Result<LockState> probe_lock(const std::string& path);
/// Erases the record, unlocks, then closes a fresh write descriptor, which is what wakes a waiter (an unlock alone
/// wakes nobody, and our own descriptor may live on in another process). Does nothing to a slot that is no longer ours.
void release_slot(int fd, std::string_view run) noexcept;
/// The same for a slot that no other process has: the close of its own descriptor wakes.
void release_slot(Fd slot, std::string_view run) noexcept;

enum class Swept : std::uint8_t {
  gone,    ///< its cgroup is empty and a walk found nothing; without a cgroup, two walks in a row
  ending,  ///< come back in a moment
  unseen,  ///< another container's, or another user's who has processes that may belong to it: it counts as alive
};
/// Whether its processes belong to a user whose processes this one can neither read the marks of nor end.
[[nodiscard]] bool is_anothers(const SlotRecord& record) noexcept;
/// Whether something of the run that a record names may be alive, by a scan of all processes. Looks only.
[[nodiscard]] bool may_be_alive(const SlotRecord& record, const Marks& marks);
/// One pass over what an earlier run left behind: ends it with SIGKILL.
[[nodiscard]] Swept sweep(const SlotRecord& record);

}  // namespace stint::os
