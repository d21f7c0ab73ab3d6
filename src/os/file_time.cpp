#include "os/file_time.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>

namespace stint::os {
namespace {

/// Access time and modification time.
std::array<timespec, 2> times(WallTime at) noexcept {
  const auto whole = std::chrono::floor<std::chrono::seconds>(at);
  timespec time{};
  time.tv_sec = static_cast<time_t>(whole.time_since_epoch().count());
  time.tv_nsec = static_cast<long>(std::chrono::nanoseconds(at - whole).count());
  return {time, time};
}

}  // namespace

void set_written_at(int fd, WallTime at) noexcept { (void)::futimens(fd, times(at).data()); }

bool set_written_at(const std::string& path, WallTime at) noexcept {
  return ::utimensat(AT_FDCWD, path.c_str(), times(at).data(), AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

std::optional<WallTime> written_at(const std::string& path) noexcept {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return std::nullopt;
  const auto time = std::chrono::seconds(found.st_mtim.tv_sec) + std::chrono::nanoseconds(found.st_mtim.tv_nsec);
  return WallTime(std::chrono::floor<WallTime::duration>(time));
}

std::optional<FileIdentity> file_identity(const std::string& path) noexcept {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
}

}  // namespace stint::os
