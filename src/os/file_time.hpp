/// When a file was written to last, which its owner may also simply say: a sign of life for others that costs no write.
/// And what can be told of a file without opening it.
#pragma once

#include "stint/retry_after.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stint::os {

/// On a file of our own. If the file system refuses, the time stays what it was.
void say_written(int fd, WallTime at) noexcept;
/// False: there is no such file.
bool say_written(const std::string& path, WallTime at) noexcept;
/// None: there is no such file.
[[nodiscard]] std::optional<WallTime> written_at(const std::string& path) noexcept;

/// Which file a path leads to. Two that differ: it was deleted, moved, or replaced by another.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Links are followed. None: there is no such file.
[[nodiscard]] std::optional<FileIdentity> file_identity(const std::string& path) noexcept;

}  // namespace stint::os
