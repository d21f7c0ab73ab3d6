#include "os/file_time.hpp"

#include <array>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>

namespace stint::os {
namespace {

/// Of reading, of writing.
std::array<timespec, 2> times(WallTime at) noexcept {
  const auto whole = std::chrono::floor<std::chrono::seconds>(at);
  timespec time{};
  time.tv_sec = static_cast<time_t>(whole.time_since_epoch().count());
  time.tv_nsec = static_cast<long>(std::chrono::nanoseconds(at - whole).count());
  return {time, time};
}

}  // namespace

void say_written(int fd, WallTime at) noexcept { (void)::futimens(fd, times(at).data()); }

void say_written(const std::string& path, WallTime at) noexcept {
  (void)::utimensat(AT_FDCWD, path.c_str(), times(at).data(), AT_SYMLINK_NOFOLLOW);
}

std::optional<WallTime> written_at(const std::string& path) noexcept {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return std::nullopt;
  const auto time = std::chrono::seconds(found.st_mtim.tv_sec) + std::chrono::nanoseconds(found.st_mtim.tv_nsec);
  return WallTime(std::chrono::floor<WallTime::duration>(time));
}

FileStamp file_stamp(const std::string& path) noexcept {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return {};
  return {found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

}  // namespace stint::os
