/// Files with secrets.
#pragma once

#include "stint/error.hpp"

#include <filesystem>
#include <string>

namespace stint::os {

/// Writes a file that only its user can read. Writes to a temporary file and renames it: a reader never sees a partial
/// file.
[[nodiscard]] Result<> blocking_write_private(const std::filesystem::path& path, const std::string& text);

inline constexpr std::size_t kPrivateFileMax = 64 << 10;

/// Reads a file with a secret. Errc::denied: it isn't a regular file of this user (or of root), or another user can
/// read or change it; a symbolic link is followed. Errc::failed: missing, unreadable or larger than kPrivateFileMax.
[[nodiscard]] Result<std::string> blocking_read_private(const std::filesystem::path& path);

}  // namespace stint::os
