/// Files with secrets.
#pragma once

#include "stint/error.hpp"

#include <filesystem>
#include <string>

namespace stint::os {

/// Writes a file that only its user can read. Writes to a temporary file and renames it: a reader never sees a partial
/// file.
[[nodiscard]] Result<> blocking_write_private(const std::filesystem::path& path, const std::string& text);

}  // namespace stint::os
