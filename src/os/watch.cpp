#include "os/watch.hpp"

#include <climits>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::os {
namespace {

constexpr std::int64_t kStampCoarseMs = 100;  // file systems use the time of the last tick: up to 10 ms ago

}  // namespace

bool Watch::start() noexcept {
  if (allowed_ && !inotify_) inotify_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  return static_cast<bool>(inotify_);
}

bool Watch::add(const std::string& path, std::uint32_t events) noexcept {
  return inotify_ && ::inotify_add_watch(inotify_.get(), path.c_str(), events) >= 0;
}
bool Watch::add_close_write(const std::string& path) noexcept { return add(path, IN_CLOSE_WRITE); }
bool Watch::add_close(const std::string& path) noexcept { return add(path, IN_CLOSE); }

bool Watch::drain() noexcept {
  constexpr std::size_t kEventMax = sizeof(inotify_event) + NAME_MAX + 1;
  char events[4096];
  bool any = false;
  for (bool more = static_cast<bool>(inotify_); more;) {
    const ssize_t got = ::read(inotify_.get(), events, sizeof events);
    any = any || got > 0;
    more = got > static_cast<ssize_t>(sizeof events - kEventMax);  // otherwise there was room for another event
  }
  return any;
}

bool DirectoryStamp::is_same(const std::string& path, std::int64_t now_ms) noexcept {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return settled_ = false;
  const bool same = settled_ && status.st_dev == device_ && status.st_ino == inode_ &&
                    status.st_mtim.tv_sec == seconds_ && status.st_mtim.tv_nsec == nanoseconds_;
  if (same) return true;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  seconds_ = status.st_mtim.tv_sec;
  nanoseconds_ = status.st_mtim.tv_nsec;
  const std::int64_t changed_ms = seconds_ * 1000 + nanoseconds_ / 1'000'000;
  settled_ =
      nanoseconds_ != 0 && changed_ms + kStampCoarseMs < now_ms;  // no fraction: the file system has no finer clock
  return false;
}

}  // namespace stint::os
