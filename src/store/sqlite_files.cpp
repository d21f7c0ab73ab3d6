#include "store/sqlite_files.hpp"

namespace stint::store {

SqliteFiles::SqliteFiles(const std::string& path) {
  const std::array<const char*, 3> suffixes = {"", "-wal", "-shm"};
  for (std::size_t i = 0; i < files_.size(); ++i) {
    files_[i].path = path + suffixes[i];
    files_[i].opened = os::file_identity(files_[i].path);
  }
}

Result<> SqliteFiles::check() const {
  for (const File& file : files_) {
    const std::optional<os::FileIdentity> found = os::file_identity(file.path);
    if (found == file.opened) continue;
    return fail(Error(Errc::unavailable, Retry::safe,
                      file.path + (found ? " was replaced by another file" : " was deleted or moved") +
                          " while Stint has it open: nothing can be stored. Put the file back, or "
                          "restart Stint"));
  }
  return {};
}

}  // namespace stint::store
