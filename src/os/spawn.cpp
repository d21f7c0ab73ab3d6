#include "os/spawn.hpp"

#include "os/number.hpp"
#include "stint/assert.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

extern char** environ;

namespace stint::os {
namespace {

class Actions {
 public:
  Actions() noexcept { ::posix_spawn_file_actions_init(&actions_); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  /// In POSIX, the same number twice clears close-on-exec.
  void put(int ours, int theirs) noexcept { ::posix_spawn_file_actions_adddup2(&actions_, ours, theirs); }
  void go_to(const std::string& directory) noexcept {
    ::posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str());
  }
  const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  explicit Attributes(const SpawnOptions& options) noexcept {
    ::posix_spawnattr_init(&attributes_);
    short flags = 0;
    if (options.mask != nullptr) {
      flags |= POSIX_SPAWN_SETSIGMASK;
      ::posix_spawnattr_setsigmask(&attributes_, options.mask);
    }
    if (options.default_signals) {
      sigset_t all;
      sigfillset(&all);
      flags |= POSIX_SPAWN_SETSIGDEF;
      ::posix_spawnattr_setsigdefault(&attributes_, &all);
    }
    if (options.own_group) {
      flags |= POSIX_SPAWN_SETPGROUP;
      ::posix_spawnattr_setpgroup(&attributes_, 0);
    }
    ::posix_spawnattr_setflags(&attributes_, flags);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

/// The memory of argv: the kernel shows these bytes to other processes.
struct CommandLine {
  char* begin = nullptr;
  std::size_t size = 0;
};
CommandLine command_line;

void show_command_line(const std::vector<std::string>& words) noexcept {
  std::string text;
  for (const std::string& word : words) text += word + '\0';
  text.resize(command_line.size);  // padded with zeros, or cut
  if (command_line.size == 0) return;
  text.back() = 0;
  std::ranges::copy(text, command_line.begin);
}

/// Like exec: resets handlers. Keeps ignored signals, unless `all`.
void forget_handlers(bool all) noexcept {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) != 0) continue;
    if (now.sa_handler != SIG_DFL && (all || now.sa_handler != SIG_IGN)) ::signal(signal, SIG_DFL);
  }
}

/// The open descriptors above the standard streams; an errno if they cannot be listed.
struct OpenDescriptors {
  std::vector<int> found;
  int error = 0;
};
OpenDescriptors open_descriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return {{}, errno};
  OpenDescriptors open;
  while (const dirent* const entry = ::readdir(folder)) {
    const int fd = number<int>(entry->d_name);
    if (fd > STDERR_FILENO && fd != ::dirfd(folder)) open.found.push_back(fd);
  }
  ::closedir(folder);
  return open;
}

/// Like exec: closes the close-on-exec descriptors.
void close_private_descriptors(const std::vector<int>& keep) {
  for (const int fd : open_descriptors().found) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) != 0 && std::ranges::find(keep, fd) == keep.end()) ::close(fd);
  }
}

constexpr std::size_t kShown = 40;  // shown bytes of an argument

std::string_view variable(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

Result<pid_t> spawn(const SpawnOptions& options) {
  Actions actions;
  for (const auto& [ours, theirs] : options.put) actions.put(ours, theirs);
  for (const int fd : options.keep) actions.put(fd, fd);
  if (!options.directory.empty()) actions.go_to(options.directory);
  const Attributes attributes(options);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, options.program.c_str(), actions.get(), attributes.get(),
                                  pointers(options.argv).data(), pointers(options.environment).data());
  if (error == E2BIG) {
    const auto longest = std::ranges::max_element(options.argv, {}, &std::string::size);
    return fail(Errc::invalid, "cannot start a process: its arguments are too long. The longest, '" +
                                   longest->substr(0, kShown) + "…', has " + std::to_string(longest->size()) +
                                   " bytes");
  }
  if (error != 0) return fail(system_error("cannot start " + options.program, error));
  return pid;
}

Result<pid_t> spawn_copy(const SpawnOptions& options, const std::function<int()>& body) {
  STINT_ASSERT(options.directory.empty());  // a failure could not be reported
  const pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start a process"));
  if (pid > 0) return pid;
  forget_handlers(options.default_signals);
  if (options.own_group) ::setpgid(0, 0);
  for (const auto& [ours, theirs] : options.put) ::dup2(ours, theirs);
  close_private_descriptors(options.keep);
  if (options.mask != nullptr) ::sigprocmask(SIG_SETMASK, options.mask, nullptr);
  std::vector<char*> variables = pointers(options.environment);
  environ = variables.data();
  show_command_line(options.argv);
  ::_exit(body());
}

void remember_command_line(int argc, char** argv) noexcept {
  if (argc < 1) return;
  command_line = {argv[0], static_cast<std::size_t>(argv[argc - 1] - argv[0]) + std::strlen(argv[argc - 1]) + 1};
}

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool changed =
        std::ranges::any_of(changes, [&](const std::string& change) { return variable(change) == variable(*entry); });
    if (!changed) result.emplace_back(*entry);
  }
  std::ranges::copy_if(changes, std::back_inserter(result),
                       [](const std::string& change) { return change.find('=') != std::string::npos; });
  return result;
}

int close_others(std::vector<int> keep) {
  std::ranges::sort(keep);
  unsigned from = STDERR_FILENO + 1;
  bool closed = true;
  for (const int fd : keep) {
    const auto kept = static_cast<unsigned>(fd);
    if (fd > STDERR_FILENO && kept > from) closed = ::close_range(from, kept - 1, 0) == 0 && closed;
    if (kept >= from) from = kept + 1;
  }
  closed = ::close_range(from, ~0U, 0) == 0 && closed;
  if (closed) return 0;
  // Linux before 5.9, or a seccomp filter without it.
  const OpenDescriptors open = open_descriptors();
  for (const int fd : open.found) {
    if (!std::ranges::binary_search(keep, fd)) ::close(fd);
  }
  return open.error;
}

Result<Pair> packet_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return fail(system_error("socketpair"));
  return Pair{Fd(ends[0]), Fd(ends[1])};
}

Result<Pair> pipe_to_read() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("pipe"));
  return Pair{Fd(ends[0]), Fd(ends[1])};
}

Result<Pair> pipe_to_write() {
  STINT_TRY(Pair pair, pipe_to_read());
  std::swap(pair.ours, pair.theirs);
  return pair;
}

}  // namespace stint::os
