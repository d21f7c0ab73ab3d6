/// The files of an open SQLite database, as they were when it was opened. Another program may delete or move them at
/// any time; SQLite then goes on with files that no path leads to, and what is committed there is gone when the process
/// ends. So the writer checks them around each commit. The check is by path alone: to open one of these files by other
/// means than SQLite is forbidden, because closing it would drop the locks of the whole process. Any thread.
#pragma once

#include "os/file_time.hpp"
#include "stint/error.hpp"

#include <array>
#include <string>

namespace stint::store {

class SqliteFiles {
 public:
  /// `path`: where the database lies, not a link to it. Its connections are open and have read: then all files exist,
  /// and SQLite keeps them until the last connection is closed.
  explicit SqliteFiles(const std::string& path);

  /// Fails with Errc::unavailable if a path does not lead to the file that is open.
  [[nodiscard]] Result<> check() const;

 private:
  struct File {
    std::string path;
    std::optional<os::FileIdentity> opened;
  };
  std::array<File, 3> files_;  // the database, its write-ahead log, the log's index
};

}  // namespace stint::store
