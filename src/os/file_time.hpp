/// When a file was written to last, which its owner may also simply say: a sign of life for others that costs no write.
#pragma once

#include "stint/retry_after.hpp"

#include <optional>
#include <string>

namespace stint::os {

/// On a file of our own. If the file system refuses, the time stays what it was.
void say_written(int fd, WallTime at) noexcept;
/// None: there is no such file.
[[nodiscard]] std::optional<WallTime> written_at(const std::string& path) noexcept;

}  // namespace stint::os
