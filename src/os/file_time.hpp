/// Reads and sets the modification time of a file: a heartbeat that costs no write. Also identifies a file without
/// opening it.
#pragma once

#include "stint/retry_after.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stint::os {

/// For a file of this user. If the file system refuses, the time stays unchanged.
void set_written_at(int fd, WallTime at) noexcept;
/// False: there is no such file.
bool set_written_at(const std::string& path, WallTime at) noexcept;
/// None: there is no such file.
[[nodiscard]] std::optional<WallTime> written_at(const std::string& path) noexcept;

/// Identifies the file to which a path leads. A different value means that it was deleted, moved or replaced.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Follows links. None: there is no such file.
[[nodiscard]] std::optional<FileIdentity> file_identity(const std::string& path) noexcept;

}  // namespace stint::os
