#include "os/fd.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace stint::os {

void Fd::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Error system_error(std::string_view what, int error) {
  std::string text(what);
  text += ": ";
  text += std::generic_category().message(error);
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

std::string read_small_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  char chunk[4096];
  while (text.size() < kSmallFileMax) {
    const ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk, static_cast<std::size_t>(got));
  }
  return text;
}

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
