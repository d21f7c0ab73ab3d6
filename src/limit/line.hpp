/// The line of one limit: a file of tickets, `<name>.line`, readable with cat. A ticket's number is its position in the
/// file; it lives as long as its owner holds a byte-range (OFD) lock on that record, so a crashed waiter leaves at once
/// and nobody has to clean up. Order: a ticket that was written before another process began to join is ahead of it.
/// One Line per waiter, also inside one process: OFD locks belong to the open file. Not thread-safe.
#pragma once

#include "limit/host_limit.hpp"
#include "os/fd.hpp"
#include "os/slot_file.hpp"

#include <sys/types.h>
#include <vector>

namespace stint::limit {

class Line {
 public:
  static Result<Line> open(const HostLimit& limit);
  Line(Line&& other) noexcept : fd_(std::move(other.fd_)), position_(std::exchange(other.position_, 0)) {}
  Line& operator=(Line&&) = delete;
  ~Line() { leave(); }

  /// Takes the next ticket. Fails with `unavailable` while a process that does not run compacts the file: try again.
  Result<> join(const os::SlotRecord& who);
  /// Gives the ticket up and wakes the others, for good. The kernel does the same, but for compaction, at a crash.
  void leave() noexcept;
  [[nodiscard]] bool joined() const noexcept { return position_ != 0; }

  /// No living ticket is ahead. With `pass_frozen`, tickets of stopped processes (Ctrl-Z, SIGSTOP) do not count.
  [[nodiscard]] bool is_first(bool pass_frozen) const;
  [[nodiscard]] std::size_t ahead() const;
  /// Living tickets in order; at most `limit`.
  [[nodiscard]] std::vector<os::SlotRecord> tickets(std::size_t limit) const;

  /// Only the leader may count and take slots; at most one process leads, whatever the tickets say.
  bool try_lead() const noexcept;
  void stop_leading() const noexcept;

  /// Wakes everybody in the line. The bell is the close of a write descriptor, as at a crash; joining is silent.
  void notify() const noexcept;

 private:
  explicit Line(os::Fd fd) noexcept : fd_(std::move(fd)) {}
  bool lock(off_t from, off_t bytes, short type) const noexcept;
  bool is_locked(off_t from, off_t bytes) const noexcept;  // by others; own locks do not count
  /// Calls `visit(record)` for each record in [from, to) that others have locked, in order, until it says false. Halves
  /// the range instead of walking it: a line that somebody has blown up to gigabytes costs a few system calls.
  template <class Visit>
  bool each_locked(off_t from, off_t to, const Visit& visit) const;
  void compact() noexcept;
  std::optional<os::SlotRecord> read(off_t record) const;
  bool is_frozen(off_t record) const;
  off_t size() const noexcept;

  os::Fd fd_;
  off_t position_ = 0;  // 0: not in the line
};

}  // namespace stint::limit
