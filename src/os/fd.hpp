/// An owned descriptor, and the small files that the system and Stint talk through: /proc, cgroups, slot records.
/// The destructor only closes. It never unlocks: a forked copy would free its parent's lock.
#pragma once

#include "stint/error.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace stint::os {

class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

/// The text of `errno`, after what was tried: "cannot open …: Permission denied".
[[nodiscard]] Error system_error(std::string_view what, int error);
[[nodiscard]] Error system_error(std::string_view what);

inline constexpr std::size_t kSmallFileMax = 1 << 20;  // environments and mount tables are the largest

/// The content of a small file, cut at kSmallFileMax; empty if it can't be read.
[[nodiscard]] std::string read_small_file(const std::string& path);
/// The same, with the errno of what failed: for callers to whom "not there" and "can't be read" are different answers.
struct FileText {
  std::string text;
  int error = 0;
};
[[nodiscard]] FileText read_file(const std::string& path);
/// Whether an errno says that this process or the host is short of something, and nothing about what was asked for.
[[nodiscard]] bool is_shortage(int error) noexcept;
/// Opens a file that processes share, to read and to write; makes it with `mode`, whatever the umask, if it is missing.
/// Only a regular file, and never through a symbolic link: a directory that others may write to must not lead us
/// elsewhere.
[[nodiscard]] Result<Fd> open_shared_file(const std::string& path, unsigned mode);
/// The same file, to read only; none if it is missing or no regular file.
[[nodiscard]] Fd open_to_look(const std::string& path) noexcept;
/// A copy, close-on-exec.
[[nodiscard]] Fd duplicate(int fd) noexcept;
/// Puts something harmless where standard input, output and error are closed, or the next file that is opened would be
/// taken for one of them. Programs that we start still find them closed.
void hold_standard_streams() noexcept;
/// For files of the kernel, which exist and take a value in one write.
bool write_kernel_file(const std::string& path, std::string_view text) noexcept;
/// Another descriptor of the same open path, for writing. Its close is an event to who watches the file.
[[nodiscard]] Fd reopen_for_write(int fd) noexcept;

}  // namespace stint::os
