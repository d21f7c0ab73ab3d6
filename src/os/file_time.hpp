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
void say_written(const std::string& path, WallTime at) noexcept;
/// None: there is no such file.
[[nodiscard]] std::optional<WallTime> written_at(const std::string& path) noexcept;

/// Two that differ: it was written to, or is another file. The kernel's clock for this has steps of up to 10 ms: what
/// is written within the step of the write before may leave no trace.
struct FileStamp {
  std::uint64_t inode = 0;
  std::int64_t size = 0, written_s = 0, written_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
/// All zero: there is no such file.
[[nodiscard]] FileStamp file_stamp(const std::string& path) noexcept;

}  // namespace stint::os
