/// Small files, read and written whole, with a bound. Blocking: call it before a reactor runs, or in the blocking
/// pool. Never blocks on a pipe or a device that has the name of a file.
#pragma once

#include "stint/error.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

/// `Errc::unavailable` if it does not exist, `Errc::invalid` if it is not a regular file or longer than `bytes_max`.
[[nodiscard]] Result<std::string> blocking_read_file(const std::filesystem::path& path, std::size_t bytes_max);

/// The same for a file of a checkout. `Errc::denied` if a link leads out of `root`: a clone must not pull other files
/// of this machine into a prompt.
[[nodiscard]] Result<std::string> blocking_read_file_within(const std::filesystem::path& root,
                                                            const std::filesystem::path& path, std::size_t bytes_max);

/// Whether something of that name exists; false, too, if that can't be told.
[[nodiscard]] bool blocking_exists(const std::filesystem::path& path);

/// Whether `path` is `root` or inside it; both are real paths.
[[nodiscard]] bool is_within(const std::filesystem::path& root, const std::filesystem::path& path);

/// Creates the file and its parent folders. `Errc::conflict` if something of that name exists, also a dangling link;
/// then nothing is changed.
[[nodiscard]] Result<> blocking_create_file(const std::filesystem::path& path, std::string_view text);

/// Replaces atomically: the file has all of the new text or all of the old, also after a crash. Readable by its owner
/// only. Creates the parent folders.
[[nodiscard]] Result<> blocking_replace_private_file(const std::filesystem::path& path, std::string_view text);

/// The names in a folder, sorted; at most `entries_max`, the rest only sets `more`. An absent folder counts as empty.
struct FolderEntries {
  std::vector<std::string> names;
  bool more = false;
};
[[nodiscard]] Result<FolderEntries> blocking_list_folder(const std::filesystem::path& path, std::size_t entries_max);

}  // namespace stint::agent
