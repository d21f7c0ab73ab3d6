/// Small files, read and written whole and with a bound. Blocking: call it before a reactor runs, or in the blocking
/// pool. Nothing here hangs on a pipe or a device that somebody called x.md.
#pragma once

#include "stint/error.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

/// `Errc::unavailable` if it does not exist, `Errc::invalid` if it is no regular file or longer than `bytes_max`.
[[nodiscard]] Result<std::string> blocking_read_file(const std::filesystem::path& path, std::size_t bytes_max);

/// The same of a file of a checkout. `Errc::denied` if a link leads out of `root`: a clone must not have other files of
/// this machine read into a prompt.
[[nodiscard]] Result<std::string> blocking_read_file_within(const std::filesystem::path& root,
                                                            const std::filesystem::path& path, std::size_t bytes_max);

/// Whether `path` is `root` or below it; both are real paths.
[[nodiscard]] bool is_within(const std::filesystem::path& root, const std::filesystem::path& path);

/// Makes it, with the folders above it. `Errc::conflict` if something of that name exists, a dangling link too: then
/// nothing is changed.
[[nodiscard]] Result<> blocking_create_file(const std::filesystem::path& path, std::string_view text);

/// All of the new text or all of the old, also after a crash. Readable by its owner only. Makes the folders above it.
[[nodiscard]] Result<> blocking_replace_private_file(const std::filesystem::path& path, std::string_view text);

/// The names in a folder, sorted; at most `entries_max`, the rest is only noticed. An absent folder is an empty one.
struct FolderEntries {
  std::vector<std::string> names;
  bool more = false;
};
[[nodiscard]] Result<FolderEntries> blocking_list_folder(const std::filesystem::path& path, std::size_t entries_max);

}  // namespace stint::agent
