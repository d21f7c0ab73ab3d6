/// The wait line of one limit: a file of tickets, `<name>.line`, readable with cat. A ticket's number is its position
/// in the file. It lives as long as its owner holds a byte-range (OFD) lock on that record, so a crashed waiter
/// leaves at once and no cleanup is needed. Order: a ticket that was written before another process began to join is
/// ahead of it. One Line per waiter, also inside one process: OFD locks belong to the open file. Not thread-safe.
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

  /// Takes the next ticket. Fails with `unavailable` while a stopped process compacts the file: try again.
  Result<> join(const os::SlotRecord& who);
  /// Gives the ticket up for good and wakes the others. At a crash the kernel does the same, except for compaction.
  void leave() noexcept;
  [[nodiscard]] bool joined() const noexcept { return position_ != 0; }

  /// Whether no living ticket is ahead. With `pass_frozen`, tickets of stopped processes (Ctrl-Z, SIGSTOP) do not
  /// count.
  [[nodiscard]] bool is_first(bool pass_frozen) const;
  [[nodiscard]] std::size_t ahead() const;
  /// Living tickets in order; at most `limit`.
  [[nodiscard]] std::vector<os::SlotRecord> tickets(std::size_t limit) const;

  /// Only the leader may count and take slots; at most one process leads, whatever the tickets are.
  bool try_lead() const noexcept;
  void stop_leading() const noexcept;

  /// Wakes all waiters in the line by closing a write descriptor, as a crash does; joining wakes none.
  void notify() const noexcept;

 private:
  explicit Line(os::Fd fd) noexcept : fd_(std::move(fd)) {}
  bool lock(off_t from, off_t bytes, short type) const noexcept;
  bool is_locked(off_t from, off_t bytes) const noexcept;  // by other open files; own locks do not count
  /// Calls `visit(record)` for each record in [from, to) that others have locked, in order, until it returns false.
  /// Bisects the range instead of scanning it: a line that another program has inflated to gigabytes costs a few
  /// system calls.
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
