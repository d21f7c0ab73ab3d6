/// Watches closes of files by inotify. One per process: closing an instance takes the kernel 5 to 10 ms, and a user
/// has 128 of them by default. Created by the first real wait. Without inotify, waiters poll.
#pragma once

#include "os/fd.hpp"

#include <cstdint>
#include <string>

namespace stint::os {

class Watch {
 public:
  /// `allowed` false: as on a host without inotify.
  explicit Watch(bool allowed = true) noexcept : allowed_(allowed) {}

  /// False: no inotify instance is available.
  bool start() noexcept;
  /// Watches closes of writable descriptors, or of all.
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

/// Detects whether entries of a directory were added or removed: one system call instead of a scan.
class DirectoryStamp {
 public:
  /// True if it certainly has the same entries as at the last call. `now_ms` is a wall time, now or earlier: a change
  /// shortly before it may be followed by another with the same timestamp, so such a timestamp is not trusted.
  bool is_same(const std::string& path, std::int64_t now_ms) noexcept;

 private:
  std::uint64_t device_ = 0, inode_ = 0;
  std::int64_t seconds_ = 0, nanoseconds_ = 0;
  bool settled_ = false;
};

}  // namespace stint::os
