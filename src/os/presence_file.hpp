/// A small file that is valid as long as the process that wrote it lives. The writer holds a lock on it, which the
/// kernel releases however that process ends. A pid would prove nothing, as it may be reused.
#pragma once

#include "os/fd.hpp"
#include "stint/error.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace stint::os {

class PresenceFile {
 public:
  static constexpr std::size_t kBytesMax = 64 << 10;

  /// Readable by its user only. A reader sees the whole text and the lock together; replaces an existing file.
  static Result<PresenceFile> blocking_write(std::string path, std::string_view text);
  PresenceFile(PresenceFile&&) noexcept = default;
  PresenceFile& operator=(PresenceFile&&) = delete;
  ~PresenceFile();  // removes it

 private:
  PresenceFile(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;
};

/// Its text; none: its writer is not alive. Any number of processes may read at once.
[[nodiscard]] std::optional<std::string> blocking_read_presence(const std::string& path);

}  // namespace stint::os
