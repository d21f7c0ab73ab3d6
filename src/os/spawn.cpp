#include "os/spawn.hpp"

#include <algorithm>
#include <cerrno>
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
  /// The same number twice is how POSIX takes close-on-exec away.
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
    if (options.default_sigpipe) {
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);
      flags |= POSIX_SPAWN_SETSIGDEF;
      ::posix_spawnattr_setsigdefault(&attributes_, &pipe);
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
  if (error != 0) return fail(system_error("cannot start " + options.program, error));
  return pid;
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
