#include "os/probe.hpp"

#include "os/cgroup.hpp"
#include "os/fd.hpp"
#include "os/process.hpp"
#include "os/spawn.hpp"
#include "os/watch.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stint::os {
namespace {

namespace fs = std::filesystem;

struct Magic {
  std::uint64_t number;
  const char* name;
};
// From linux/magic.h and the sources of the file systems: some are in no header.
constexpr std::array kMagics = {
    Magic{0xEF53, "ext4"},        Magic{0x9123683E, "btrfs"},  Magic{0x58465342, "xfs"},
    Magic{0x01021994, "tmpfs"},   Magic{0x2FC12FC1, "zfs"},    Magic{0xF2F52010, "f2fs"},
    Magic{0x794C7630, "overlay"}, Magic{0x6969, "nfs"},        Magic{0x01021997, "9p"},
    Magic{0x65735546, "fuse"},    Magic{0x517B, "smb"},        Magic{0xFE534D42, "smb2"},
    Magic{0xFF534D42, "cifs"},    Magic{0x786F4256, "vboxsf"}, Magic{0x00C36400, "ceph"},
    Magic{0x5346414F, "afs"},     Magic{0x0BD00BD0, "lustre"}, Magic{0x47504653, "gpfs"},
    Magic{0xF15F, "ecryptfs"},    Magic{0x858458F6, "ramfs"},  Magic{0xCA451A4E, "bcachefs"},
    Magic{0x01161970, "gfs2"},    Magic{0x7461636F, "ocfs2"},  Magic{0x5346544E, "ntfs"},
    Magic{0x7366746E, "ntfs3"},   Magic{0x4D44, "vfat"},       Magic{0x2011BAB0, "exfat"},
};

constexpr std::uint64_t kMemoryTried = std::uint64_t{1} << 30U;  // a limit that does not affect the empty cgroup

std::string nearest_existing(const std::string& directory) {
  fs::path path = fs::absolute(directory).lexically_normal();
  std::error_code error;
  while (path.has_relative_path() && !fs::exists(path, error)) path = path.parent_path();
  return path.string();
}

/// A temporary file for the trial.
class TrialFile {
 public:
  explicit TrialFile(const std::string& directory) : path_(directory + "/.stint-doctor-XXXXXX") {
    first_ = Fd(::mkostemp(path_.data(), O_CLOEXEC));
    error_ = first_ ? 0 : errno;
  }
  ~TrialFile() {
    if (first_) ::unlink(path_.c_str());
  }
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;

  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int fd() const noexcept { return first_.get(); }

 private:
  std::string path_;
  Fd first_;
  int error_ = 0;
};

bool lock_bytes(int fd) noexcept {
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &range) == 0;
}

/// Host limits use both kinds of lock, on different files.
bool locks_exclude(const TrialFile& file) {
  const Fd second(::open(file.path().c_str(), O_RDWR | O_CLOEXEC));
  if (!second || ::flock(file.fd(), LOCK_EX | LOCK_NB) != 0 || ::flock(second.get(), LOCK_EX | LOCK_NB) == 0)
    return false;
  ::flock(file.fd(), LOCK_UN);  // on NFS, flock is a byte range as well
  return lock_bytes(file.fd()) && !lock_bytes(second.get());
}

void try_notices(const TrialFile& file, DirectoryProbe& probe) {
  Watch watch;
  if (!watch.start()) {
    probe.no_more_instances = errno == EMFILE;
    return;
  }
  if (!watch.add_close_write(file.path())) return;
  reopen_for_write(file.fd()).reset();
  probe.notices = watch.drain();  // the close itself queues the event
}

std::uint64_t or_endless(rlim_t limit) noexcept {
  return limit == RLIM_INFINITY ? std::numeric_limits<std::uint64_t>::max() : limit;
}

/// One program under way.
class Asked {
 public:
  explicit Asked(const Question& question) {
    auto pipe = pipe_to_read();
    const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!pipe || !nothing) {
      answer_.status = errno;
      return;
    }
    SpawnOptions options;
    options.program = question.argv.front();
    options.argv = question.argv;
    options.environment = environment_with({});
    options.directory = question.directory;
    options.put = {{nothing.get(), 0}, {pipe->theirs.get(), 1}, {pipe->theirs.get(), 2}};
    options.own_group = true;
    const auto pid = spawn(options);
    if (!pid) {
      answer_.text = pid.error().describe();
      return;
    }
    pid_ = *pid;
    out_ = std::move(pipe->ours);
    ::fcntl(out_.get(), F_SETFL, O_NONBLOCK);
    answer_.end = Answer::End::late;  // until it has ended
  }

  [[nodiscard]] int fd() const noexcept { return out_.get(); }
  /// Reads what is in the pipe now.
  void read_some() {
    char bytes[4096];
    while (out_) {
      const ssize_t count = ::read(out_.get(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) return out_.reset();
      const std::size_t room = kAnswerMax - answer_.text.size();
      answer_.text.append(bytes, std::min(static_cast<std::size_t>(count), room));
      if (room == 0) return;  // an endless writer must not block the caller
    }
  }
  /// True when the program itself has exited, even if another process still holds the pipe.
  [[nodiscard]] bool ended() {
    if (pid_ == 0) return true;
    siginfo_t about{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid == 0) {
      return false;
    }
    read_some();
    const int status = end_group();
    answer_.end = WIFEXITED(status) ? Answer::End::exited : Answer::End::signalled;
    answer_.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    return true;
  }
  Answer finish() {
    if (pid_ != 0) end_group();
    return std::move(answer_);
  }

 private:
  /// Before its leader is reaped: until then the group's number cannot be reused.
  int end_group() noexcept {
    ::kill(-pid_, SIGKILL);
    return blocking_reap(std::exchange(pid_, 0));
  }

  pid_t pid_ = 0;
  Fd out_;
  Answer answer_;
};

Fd timer_of(Duration most) {
  Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  itimerspec when{};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = std::max<long>(1, std::chrono::nanoseconds(most - seconds).count());
  if (timer) ::timerfd_settime(timer.get(), 0, &when, nullptr);
  return timer;
}

constexpr int kLookAgainMs = 20;    // for a program whose child keeps its output open
constexpr int kLeftoverLooks = 50;  // a second

}  // namespace

std::string file_system_name(std::uint64_t magic) {
  for (const Magic& known : kMagics) {
    if (known.number == magic) return known.name;
  }
  char digits[16];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, magic, 16);
  return "0x" + std::string(digits, end);
}

DirectoryProbe blocking_probe_directory(const std::string& directory) {
  DirectoryProbe probe;
  probe.tried = nearest_existing(directory);
  std::error_code error;
  probe.exists = fs::equivalent(directory, probe.tried, error);
  struct statfs about{};
  if (::statfs(probe.tried.c_str(), &about) == 0) {
    probe.file_system = file_system_name(static_cast<std::uint64_t>(about.f_type) & 0xFFFFFFFFU);
    probe.free_bytes = static_cast<std::uint64_t>(about.f_bavail) * static_cast<std::uint64_t>(about.f_bsize);
    probe.free_files = about.f_ffree;
    probe.counts_files = about.f_files != 0;
  }
  const TrialFile file(probe.tried);
  if (file.error() != 0) {
    probe.problem = std::generic_category().message(file.error());
    return probe;
  }
  probe.locks = locks_exclude(file);
  try_notices(file, probe);
  return probe;
}

std::vector<Answer> blocking_ask(const std::vector<Question>& questions, Duration most) {
  std::vector<Asked> asked;
  asked.reserve(questions.size());
  for (const Question& question : questions) asked.emplace_back(question);
  const Fd timer = timer_of(most);
  while (true) {
    std::vector<pollfd> ready = {{timer.get(), POLLIN, 0}};
    bool waiting = false;
    for (Asked& one : asked) {
      if (!one.ended()) {
        waiting = true;
        ready.push_back({one.fd(), POLLIN, 0});  // poll(2) ignores a closed one
      } else {
        ready.push_back({-1, 0, 0});
      }
    }
    if (!waiting || !timer) break;
    ::poll(ready.data(), ready.size(), kLookAgainMs);
    if (ready.front().revents != 0) break;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (ready[i + 1].revents != 0) asked[i].read_some();
    }
  }
  std::vector<Answer> answers;
  for (Asked& one : asked) answers.push_back(one.finish());
  return answers;
}

bool blocking_end_leftovers() {
  for (int looks = 0; looks < kLeftoverLooks; ++looks) {
    signal_all(descendants_of(::getpid()), SIGKILL);
    if (!reap_all(0).any_left) return true;
    ::poll(nullptr, 0, kLookAgainMs);
  }
  return false;
}

std::string find_program(const std::string& name, const std::string& path_variable) {
  for (std::size_t from = 0; from <= path_variable.size();) {
    const auto to = std::min(path_variable.find(':', from), path_variable.size());
    const std::string path = path_variable.substr(from, to - from) + "/" + name;
    from = to + 1;
    struct stat status{};
    if (path.starts_with('/') && ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return {};
}

ResourceLimits resource_limits() {
  ResourceLimits limits;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limits.descriptors = or_endless(limit.rlim_cur);
    limits.descriptors_hard = or_endless(limit.rlim_max);
  }
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0) limits.processes = or_endless(limit.rlim_cur);
  return limits;
}

std::uint64_t inotify_instances_max() {
  const std::string text = read_small_file("/proc/sys/fs/inotify/max_user_instances");
  std::uint64_t most = 0;
  std::from_chars(text.data(), text.data() + text.size(), most);
  return most;
}

CgroupProbe blocking_probe_cgroup(const std::string& parent) {
  CgroupProbe probe;
  const std::string path = cgroup_path(parent, "doctor-" + std::to_string(::getpid()));
  if (path.empty() || !make_cgroup(path)) return probe;
  probe.made = true;
  probe.kill = ::access((path + "/cgroup.kill").c_str(), W_OK) == 0;
  probe.memory = limit_memory(path, kMemoryTried);
  remove_cgroup(path);
  return probe;
}

}  // namespace stint::os
