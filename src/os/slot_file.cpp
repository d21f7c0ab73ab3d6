// Invariants
// 1. A record is written after the lock and before any work starts; it is erased under the lock, when the work is
//    gone.
// 2. Locking one's own open file again does nothing; it fails if the other keeper has released the slot and another
//    process holds it now. So a new owner's record is never touched.
#include "os/slot_file.hpp"

#include "os/cgroup.hpp"
#include "os/number.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::os {
namespace {

constexpr std::string_view kSignature = "stint";
constexpr std::string_view kBlanks = " \n";
constexpr std::string_view kLabelField = " label=";  // the last field: user text is not searched for other fields
constexpr std::uint64_t kInitialNamespace =
    0xEFFFFFFC;  // inode of the kernel's initial pid namespace, which sees all others

/// The value of ` key=`, up to the next space; the label goes to the end of the line.
std::string_view field(std::string_view record, std::string_view key) {
  const std::string needle = " " + std::string(key) + "=";
  const auto label = record.find(kLabelField);
  const auto at = record.substr(0, label == record.npos ? label : label + kLabelField.size()).find(needle);
  if (at == std::string_view::npos) return {};
  const auto from = at + needle.size();
  const auto end = record.find_first_of(key == "label" ? "\n" : " \n", from);
  return record.substr(from, end == std::string_view::npos ? end : end - from);
}

std::string_view read_text(int fd, char (&buffer)[kSlotRecordMax]) noexcept {
  const ssize_t got = ::pread(fd, buffer, sizeof buffer, 0);
  return {buffer, got > 0 ? static_cast<std::size_t>(got) : 0};
}

/// Overwrites the record with blanks if it is that of `run`.
void erase(int fd, std::string_view run) noexcept {
  char text[kSlotRecordMax];
  const std::string_view found = read_text(fd, text);
  if (!found.starts_with(kSignature) || field(found, "run") != run) return;
  const std::size_t length = std::min(found.find('\n'), found.size());
  std::fill_n(text, length, ' ');
  if (::pwrite(fd, text, length, 0) != static_cast<ssize_t>(length)) (void)!::ftruncate(fd, 0);
}

/// What is alive of a record's run.
struct Left {
  std::vector<Process> processes;
  bool complete = true;
  [[nodiscard]] bool none() const { return processes.empty() && complete; }
};
Left left_of(const SlotRecord& record, const Marks& marks) {
  Left left{.processes = {}, .complete = marks.complete};
  for (const Marked& each : marks.found) {
    if (std::ranges::find(each.parts, record.run) != each.parts.end()) left.processes.push_back(each.process);
  }
  return left;
}

void add(std::string& text, std::string_view key, std::string_view value) {
  text += ' ';
  text += key;
  text += '=';
  for (const char c : value)
    text += static_cast<unsigned char>(c) < ' ' || c == 0x7f || (c == ' ' && key != "label") ? '_' : c;
}

}  // namespace

std::string to_text(const SlotRecord& record, std::size_t most) {
  std::string text(kSignature);
  if (!record.run.empty()) add(text, "run", record.run);
  add(text, "pid", std::to_string(record.pid));
  add(text, "start", std::to_string(record.start));
  if (record.capacity != 0) add(text, "n", std::to_string(record.capacity));
  add(text, "weight", std::to_string(record.weight));
  add(text, "since", std::to_string(record.since_ms));
  add(text, "ns", std::to_string(record.namespace_id));
  if (record.user) add(text, "uid", std::to_string(*record.user));
  if (!record.boot.empty()) add(text, "boot", record.boot);
  if (!record.cgroup.empty()) add(text, "cgroup", record.cgroup);
  add(text, "label", std::string_view(record.label).substr(0, kLabelMax));
  text.resize(std::min(text.size(), most - 1));
  return text + '\n';
}

std::optional<SlotRecord> parse_slot_record(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  if (!text.starts_with(kSignature) || !text.substr(kSignature.size()).starts_with(' ')) return std::nullopt;
  SlotRecord record;
  record.run = field(text, "run");
  record.cgroup = field(text, "cgroup");
  record.pid = number<pid_t>(field(text, "pid"));
  record.start = number<std::uint64_t>(field(text, "start"));
  record.capacity = number<std::uint32_t>(field(text, "n"));
  record.weight = std::max<std::uint32_t>(1, number<std::uint32_t>(field(text, "weight")));
  record.since_ms = number<std::int64_t>(field(text, "since"));
  record.namespace_id = number<std::uint64_t>(field(text, "ns"));
  if (const std::string_view user = field(text, "uid"); !user.empty()) record.user = number<uid_t>(user);
  record.boot = field(text, "boot");
  record.label = field(text, "label");
  return record;
}

std::optional<SlotRecord> read_slot_record(int fd) { return read_slot(fd).record; }

SlotContent read_slot(int fd) {
  char buffer[kSlotRecordMax];
  const std::string_view text = read_text(fd, buffer);
  if (text.find_first_not_of(kBlanks) == text.npos && text.size() < sizeof buffer) return {};
  return {.blank = false, .record = parse_slot_record(text)};
}

bool write_slot_record(int fd, const SlotRecord& record, bool blank) noexcept {
  const std::string text = to_text(record);
  const bool written = (blank || ::ftruncate(fd, 0) == 0) &&
                       ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (written) return true;
  const int error = errno;
  (void)!::ftruncate(fd, 0);
  errno = error;
  return false;
}

std::uint64_t pid_namespace() {
  struct stat status{};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::string boot_id() {
  std::string id = read_small_file("/proc/sys/kernel/random/boot_id");
  id.resize(std::min(id.find('\n'), id.size()));
  return id;
}

std::string boot_clock_id() {
  std::string id = boot_id();
  struct stat status{};
  const bool known = ::stat("/proc/self/ns/time", &status) == 0;  // otherwise the kernel has no time namespaces
  if (!id.empty() && known) id += "-" + std::to_string(status.st_ino);
  return id;
}

bool can_see(const SlotRecord& record) {
  const std::uint64_t here = pid_namespace();
  // 0: not written by Stint; an invented record must not hold a slot forever.
  return record.namespace_id == here || record.namespace_id == 0 || here == kInitialNamespace;
}

std::vector<std::uint64_t> flocked_inodes() {
  // 1: FLOCK  ADVISORY  WRITE 4711 fd:00:131074 0 EOF
  std::vector<std::uint64_t> found;
  const std::string table = read_small_file("/proc/locks");
  for (std::size_t from = 0; from < table.size();) {
    const auto to = std::min(table.find('\n', from), table.size());
    const std::string_view line = std::string_view(table).substr(from, to - from);
    from = to + 1;
    const auto colon = line.rfind(':');
    if (line.find(": FLOCK ") == std::string_view::npos || colon == std::string_view::npos) continue;
    found.push_back(number<std::uint64_t>(line.substr(colon + 1)));
  }
  return found;
}

std::uint64_t inode_of(int fd) noexcept {
  struct stat status{};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

bool try_lock_slot(int fd) noexcept { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; }
void unlock_slot(int fd) noexcept { ::flock(fd, LOCK_UN); }

Result<LockState> probe_lock(const std::string& path) {
  const auto unknown = [](const Error& error) {
    return fail(Error(error.code(), Retry::safe, std::string(error.what())));
  };
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file && errno == ENOENT) return LockState::missing;
  if (!file) return unknown(system_error("cannot check whether " + path + " is locked"));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return unknown({Errc::denied, "cannot check whether " + path + " is locked: it is not a regular file. Remove it"});
  }
  while (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return LockState::held;
    if (errno != EINTR) return unknown(system_error("cannot check whether " + path + " is locked"));
  }
  return LockState::free;
}

void erase_slot_record(int fd) noexcept { (void)!::ftruncate(fd, 0); }

void release_slot(int fd, std::string_view run) noexcept {
  if (!try_lock_slot(fd)) return;
  erase(fd, run);
  const Fd waker = reopen_for_write(fd);
  unlock_slot(fd);
}

void release_slot(Fd slot, std::string_view run) noexcept {
  if (!try_lock_slot(slot.get())) return;
  erase(slot.get(), run);
  unlock_slot(slot.get());
}

namespace {

/// Whether that user has a process that is not older than the taker of the slot, as its work is younger. The marks of
/// such a process cannot be read, so any of them may belong to the work.
bool may_be_theirs(const SlotRecord& record) {
  for (const Process& process : all_processes()) {
    if (process.is_zombie() || process.start < record.start) continue;
    struct stat status{};
    const std::string folder = "/proc/" + std::to_string(process.pid);
    if (::stat(folder.c_str(), &status) == 0 && status.st_uid == *record.user) return true;
  }
  return false;
}

}  // namespace

bool is_other_users(const SlotRecord& record) noexcept {
  const uid_t self = ::geteuid();
  return self != 0 && record.user && *record.user != self;
}

bool may_be_alive(const SlotRecord& record, const Marks& marks) {
  if (record.run.empty()) return false;
  if (!record.boot.empty() && record.boot != boot_id()) return false;
  if (!can_see(record)) return true;
  if (is_other_users(record)) return may_be_theirs(record);
  if (is_cgroup_of(record.cgroup, record.run) && is_populated(record.cgroup)) return true;
  return !left_of(record, marks).none();
}

Swept sweep(const SlotRecord& record) {
  if (record.run.empty()) return Swept::gone;
  if (!record.boot.empty() && record.boot != boot_id()) return Swept::gone;  // the machine was rebooted since
  if (!can_see(record)) return Swept::unseen;
  if (is_other_users(record)) return may_be_theirs(record) ? Swept::unseen : Swept::gone;
  const bool has_cgroup = is_cgroup_of(record.cgroup, record.run);
  if (has_cgroup) {
    kill_cgroup(record.cgroup);
    if (is_populated(record.cgroup)) return Swept::ending;
  }
  // A single walk can miss a process that is just being created. An empty cgroup creates none: one walk finds a
  // process that has left it.
  for (int walks = has_cgroup ? 1 : 2; walks > 0; --walks) {
    const Left left = left_of(record, all_marked());
    signal_all(left.processes, SIGKILL);
    if (!left.none()) return Swept::ending;
  }
  if (has_cgroup) remove_cgroup(record.cgroup);
  return Swept::gone;
}

}  // namespace stint::os
