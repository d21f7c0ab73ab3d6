/// Hears of closes of files, by inotify. One per process: closing an instance takes the kernel 5 to 10 ms, and a user
/// has 128 of them by default. Made at the first real wait. Where there is none, waiters poll.
#pragma once

#include "os/fd.hpp"

#include <cstdint>
#include <string>

namespace stint::os {

class Watch {
 public:
  /// `allowed` false: as if there were no inotify.
  explicit Watch(bool allowed = true) noexcept : allowed_(allowed) {}

  /// False if there is none to be had.
  bool start() noexcept;
  /// A close of a descriptor that could write, or of any.
  bool add_close_write(const std::string& path) noexcept;
  bool add_close(const std::string& path) noexcept;
  /// True if there was any event since the last call.
  bool drain() noexcept;
  [[nodiscard]] int fd() const noexcept { return inotify_.get(); }

 private:
  bool add(const std::string& path, std::uint32_t events) noexcept;
  bool allowed_;
  Fd inotify_;
};

/// Whether entries of a directory came or went: one system call instead of a walk.
class DirectoryStamp {
 public:
  /// True if it surely has the entries it had at the last call. `now_ms` is a time of the wall clock, now or earlier: a
  /// change shortly before it may still be followed by one with the same time, so that is not believed.
  bool is_same(const std::string& path, std::int64_t now_ms) noexcept;

 private:
  std::uint64_t device_ = 0, inode_ = 0;
  std::int64_t seconds_ = 0, nanoseconds_ = 0;
  bool settled_ = false;
};

}  // namespace stint::os
