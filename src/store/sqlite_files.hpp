/// The files of an open SQLite database, as they were when it was opened. Another program may delete or move them at
/// any time. SQLite then continues on unlinked files, and their commits are lost when the process ends. So the writer
/// checks the files around each commit. The check is by path alone: opening one of these files other than through
/// SQLite is forbidden, because closing it would drop the locks of the whole process. Any thread.
#pragma once

#include "os/file_time.hpp"
#include "stint/error.hpp"

#include <array>
#include <string>

namespace stint::store {

class SqliteFiles {
 public:
  /// `path`: the database itself, not a link to it. Its connections must be open and have read: then all files exist,
  /// and SQLite keeps them until the last connection is closed.
  explicit SqliteFiles(const std::string& path);

  /// Fails with Errc::unavailable if a path does not lead to the open file.
  [[nodiscard]] Result<> check() const;

 private:
  struct File {
    std::string path;
    std::optional<os::FileIdentity> opened;
  };
  std::array<File, 3> files_;  // the database, its write-ahead log, the log's index
};

}  // namespace stint::store
