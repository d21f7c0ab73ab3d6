#include "os/fd.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace stint::os {

void Fd::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

namespace {

/// Names the exhausted resource for errors whose own text does not.
std::string_view exhausted_resource(int error) noexcept {
  switch (error) {
    case EMFILE: return ", this process has no file descriptor left (raise `ulimit -n`)";
    case ENFILE: return ", this host has no file descriptor left (raise fs.file-max)";
    case EAGAIN: return ", the process limit is reached (raise `ulimit -u` or the cgroup's pids.max)";
    case ENOMEM: return ", this host has no memory left";
    default: return {};
  }
}

}  // namespace

Error system_error(std::string_view what, int error) {
  std::string text(what);
  text += ": ";
  text += std::generic_category().message(error);
  text += exhausted_resource(error);
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS: return {Errc::denied, std::move(text)};
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EAGAIN: return {Errc::exhausted, Retry::safe, std::move(text)};
    default: return {Errc::failed, std::move(text)};
  }
}

Error system_error(std::string_view what) { return system_error(what, errno); }

namespace {

constexpr int kMakeTries = 10;  // another process may create or remove the file at the same moment

bool is_regular(const Fd& fd) noexcept {
  struct stat status{};
  return fd && ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode);
}

Error not_a_file(const std::string& path) {
  return {Errc::denied, path + " is not a regular file. Remove it: Stint creates a new one"};
}

}  // namespace

Result<Fd> open_shared_file(const std::string& path, unsigned mode) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;  // opening a pipe must not block
  for (int tries = 0; tries < kMakeTries; ++tries) {
    // First without O_CREAT: in a sticky directory the kernel refuses to create a file that another user owns.
    Fd fd(::open(path.c_str(), kFlags));
    if (fd) return is_regular(fd) ? Result<Fd>(std::move(fd)) : fail(not_a_file(path));
    if (errno == ELOOP || errno == EISDIR || errno == ENXIO) return fail(not_a_file(path));
    if (errno != ENOENT) return fail(system_error("cannot open " + path));
    fd = Fd(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, mode));
    if (fd) {
      ::fchmod(fd.get(), mode);
      return fd;
    }
    if (errno != EEXIST) return fail(system_error("cannot create " + path));
  }
  return fail(system_error("cannot open " + path));
}

Fd open_to_look(const std::string& path) noexcept {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  return is_regular(fd) ? std::move(fd) : Fd();
}

Fd duplicate(int fd) noexcept { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

void hold_standard_streams() noexcept {
  for (int stream = 0; stream <= 2; ++stream) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The kernel assigns the lowest free number, which is this one.
    (void)::open("/dev/null", O_RDWR | O_CLOEXEC);
  }
}

FileText read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  FileText file;
  if (!fd) {
    file.error = errno;
    return file;
  }
  char chunk[4096];
  while (file.text.size() < kSmallFileMax) {
    const ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) file.error = errno;
    if (got <= 0) break;
    file.text.append(chunk, static_cast<std::size_t>(got));
  }
  return file;
}

std::string read_small_file(const std::string& path) { return read_file(path).text; }

bool is_shortage(int error) noexcept { return error == EMFILE || error == ENFILE || error == ENOMEM; }

bool write_kernel_file(const std::string& path, std::string_view text) noexcept {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Fd reopen_for_write(int fd) noexcept {
  char path[32] = "/proc/self/fd/";
  char digits[12];
  int count = 0;
  for (int rest = fd; rest > 0 || count == 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
  std::size_t length = std::strlen(path);
  while (count > 0) path[length++] = digits[--count];
  path[length] = 0;
  return Fd(::open(path, O_WRONLY | O_CLOEXEC));
}

}  // namespace stint::os
