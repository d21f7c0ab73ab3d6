/// An owned descriptor, and the small files of the kernel and of Stint: /proc, cgroups, slot records.
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

/// The text of `errno` after the failed action: "cannot open …: Permission denied".
[[nodiscard]] Error system_error(std::string_view what, int error);
[[nodiscard]] Error system_error(std::string_view what);

inline constexpr std::size_t kSmallFileMax = 1 << 20;  // the largest are environments and mount tables

/// The content of a small file, cut at kSmallFileMax; empty if it cannot be read.
[[nodiscard]] std::string read_small_file(const std::string& path);
/// The same with the errno of the failure, for callers that distinguish a missing file from an unreadable one.
struct FileText {
  std::string text;
  int error = 0;
};
[[nodiscard]] FileText read_file(const std::string& path);
/// Whether an errno means that this process or the host lacks a resource, and says nothing about the file.
[[nodiscard]] bool is_shortage(int error) noexcept;
/// Opens a file that processes share for reading and writing; creates it with `mode`, whatever the umask, if it is
/// missing. Only a regular file, and never through a symbolic link: in a directory that others may write, a link
/// could lead elsewhere.
[[nodiscard]] Result<Fd> open_shared_file(const std::string& path, unsigned mode);
/// The same file read-only; none if it is missing or not a regular file.
[[nodiscard]] Fd open_to_look(const std::string& path) noexcept;
/// A copy, close-on-exec.
[[nodiscard]] Fd duplicate(int fd) noexcept;
/// Opens /dev/null where standard input, output or error is closed: otherwise the next opened file would take its
/// number. Started programs still find them closed.
void hold_standard_streams() noexcept;
/// For kernel files, which exist and take a value in one write.
bool write_kernel_file(const std::string& path, std::string_view text) noexcept;
/// Another descriptor of the same open path, for writing. Its close is an event for watchers of the file.
[[nodiscard]] Fd reopen_for_write(int fd) noexcept;

}  // namespace stint::os
