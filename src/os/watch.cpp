#include "os/watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

namespace stint::os {

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
  char events[4096];
  bool any = false;
  while (inotify_ && ::read(inotify_.get(), events, sizeof events) > 0) any = true;
  return any;
}

}  // namespace stint::os
