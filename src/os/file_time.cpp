#include "os/file_time.hpp"

#include <array>
#include <chrono>
#include <sys/stat.h>

namespace stint::os {

void say_written(int fd, WallTime at) noexcept {
  const auto whole = std::chrono::floor<std::chrono::seconds>(at);
  timespec time{};
  time.tv_sec = static_cast<time_t>(whole.time_since_epoch().count());
  time.tv_nsec = static_cast<long>(std::chrono::nanoseconds(at - whole).count());
  const std::array<timespec, 2> times = {time, time};  // of reading, of writing
  (void)::futimens(fd, times.data());
}

std::optional<WallTime> written_at(const std::string& path) noexcept {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return std::nullopt;
  const auto time = std::chrono::seconds(found.st_mtim.tv_sec) + std::chrono::nanoseconds(found.st_mtim.tv_nsec);
  return WallTime(std::chrono::floor<WallTime::duration>(time));
}

}  // namespace stint::os
