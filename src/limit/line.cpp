// Layout: records of kRecord bytes. Record 0 is the header; its first byte is the leader's lock. Records from 1 on
// are tickets.
// Invariants
// 1. Lock, then write: a visible record was locked before. A locked blank record is a living ticket as well.
// 2. A joiner keeps a position only if, with the lock held, the file does not extend beyond it. So positions never
//    decrease.
// 3. Compaction removes records only under a lock on all of them: the line is empty then.
#include "limit/line.hpp"

#include "os/process.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::limit {
namespace {

constexpr off_t kRecord = 160;
constexpr off_t kLineBytesMax = 128 * kRecord;    // compaction is tried above this
constexpr off_t kLineBytesHard = off_t{1} << 40;  // no line of Stint comes near it; beyond it positions would overflow
constexpr int kClaimTries = 64;                   // positions tried before the file size is read again
constexpr std::size_t kAheadMax = 10'000;         // not counted further: only for display
constexpr int kOvertakenMax = 64;                 // consecutive joins that other processes overtook

std::string padded(std::string text) {
  text.resize(kRecord - 1, ' ');
  std::ranges::replace(text, '\n', ' ');
  return text + '\n';
}

}  // namespace

Result<Line> Line::open(const HostLimit& limit) {
  const std::string path = limit.line_path();
  STINT_TRY(os::Fd file, os::open_shared_file(path, limit.file_mode()));
  Line line(std::move(file));
  const std::string header = padded("stint line 1: one ticket per record, alive while its record is locked");
  if (line.size() < kRecord && ::pwrite(line.fd_.get(), header.data(), kRecord, 0) != kRecord) {
    return fail(os::system_error("cannot write " + path));
  }
  return line;
}

Result<> Line::join(const os::SlotRecord& who) {
  const std::string record = padded(os::to_text(who, kRecord));
  compact();
  if (size() > kLineBytesHard) {
    return fail(Errc::failed, "the file of the wait line has " + std::to_string(size()) +
                                  " bytes: another program wrote into it. Empty the file when no process waits");
  }
  for (int overtaken = 0; overtaken < kOvertakenMax; ++overtaken) {
    off_t position = std::max(kRecord, (size() + kRecord - 1) / kRecord * kRecord);
    const off_t last = position + kClaimTries * kRecord;
    while (position < last && !lock(position, kRecord, F_WRLCK)) position += kRecord;
    if (position == last) break;  // the whole file is locked: it is being compacted
    if (size() > position) {      // overtaken between fstat and lock; invariant 2
      lock(position, kRecord, F_UNLCK);
      notify();  // another process may have seen this lock as a ticket
      continue;
    }
    if (::pwrite(fd_.get(), record.data(), kRecord, position) != kRecord) {
      Error error = os::system_error("cannot write a ticket to the wait line");
      lock(position, kRecord, F_UNLCK);
      return fail(std::move(error));
    }
    position_ = position;
    return {};
  }
  return fail(Error(Errc::unavailable, Retry::safe,
                    "a process that does not run holds the lock of the wait line. Resume or end it"));
}

void Line::leave() noexcept {
  if (position_ == 0) return;
  lock(position_, kRecord, F_UNLCK);
  position_ = 0;
  compact();
  fd_.reset();  // the close wakes the others
}

/// Invariant 3. Not for a waiter in the line: it would unlock its own ticket.
void Line::compact() noexcept {
  if (size() > kLineBytesMax && lock(kRecord, 0, F_WRLCK)) {
    (void)!::ftruncate(fd_.get(), kRecord);
    lock(kRecord, 0, F_UNLCK);
  }
}

bool Line::is_first(bool pass_frozen) const {
  if (!is_locked(kRecord, position_ - kRecord)) return true;  // one system call for the whole line
  if (!pass_frozen) return false;
  return each_locked(kRecord, position_, [this](off_t record) { return is_frozen(record); });
}

std::size_t Line::ahead() const {
  std::size_t count = 0;
  each_locked(kRecord, position_, [&](off_t) { return ++count < kAheadMax; });
  return count;
}

std::vector<os::SlotRecord> Line::tickets(std::size_t limit) const {
  std::vector<os::SlotRecord> found;
  const auto add = [&](off_t record) {
    if (auto ticket = read(record)) found.push_back(std::move(*ticket));
    return found.size() < limit;
  };
  const off_t end = std::min(size(), kLineBytesHard);
  if (position_ == 0) {
    each_locked(kRecord, end, add);
  } else if (each_locked(kRecord, position_, add) && add(position_)) {
    each_locked(position_ + kRecord, end, add);
  }
  return found;
}

bool Line::try_lead() const noexcept { return lock(0, 1, F_WRLCK); }
void Line::stop_leading() const noexcept { lock(0, 1, F_UNLCK); }

void Line::notify() const noexcept { (void)os::reopen_for_write(fd_.get()); }

bool Line::lock(off_t from, off_t bytes, short type) const noexcept {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = bytes, .l_pid = 0};
  return ::fcntl(fd_.get(), F_OFD_SETLK, &range) == 0;
}

bool Line::is_locked(off_t from, off_t bytes) const noexcept {
  if (bytes == 0) return false;  // for the kernel, length 0 means to the end
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = bytes, .l_pid = 0};
  return ::fcntl(fd_.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

template <class Visit>
bool Line::each_locked(off_t from, off_t to, const Visit& visit) const {
  if (from >= to || !is_locked(from, to - from)) return true;
  const off_t records = (to - from + kRecord - 1) / kRecord;
  if (records == 1) return visit(from);
  const off_t middle = from + records / 2 * kRecord;
  return each_locked(from, middle, visit) && each_locked(middle, to, visit);
}

std::optional<os::SlotRecord> Line::read(off_t record) const {
  char text[kRecord];
  if (::pread(fd_.get(), text, kRecord, record) != kRecord) return std::nullopt;
  auto ticket = os::parse_slot_record({text, static_cast<std::size_t>(kRecord)});
  if (ticket) ticket->label.erase(ticket->label.find_last_not_of(' ') + 1);
  return ticket;
}

bool Line::is_frozen(off_t record) const {
  const auto ticket = read(record);
  if (!ticket || ticket->namespace_id != os::pid_namespace()) return false;
  const auto process = os::read_process(ticket->pid);
  return process && process->start == ticket->start && process->is_stopped();
}

off_t Line::size() const noexcept {
  struct stat status{};
  return ::fstat(fd_.get(), &status) == 0 ? status.st_size : 0;
}

}  // namespace stint::limit
