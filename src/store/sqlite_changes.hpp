/// Detects commits to a SQLite database: `PRAGMA data_version` on a connection that does nothing else, so that
/// commits of this process count like those of others. A look reads shared memory, takes some microseconds, and waits
/// for no writer and no disk sync. Own thread only.
#pragma once

#include "store/sqlite_db.hpp"

#include <cstdint>
#include <string>

namespace stint::store {

class SqliteChanges {
 public:
  static Result<SqliteChanges> open(const std::string& path);

  /// The same number as before means that nothing was committed between the two looks, so data read after the first
  /// look is still current. A failed look returns a new number.
  std::uint64_t look();

 private:
  explicit SqliteChanges(Database database) : database_(std::move(database)) {}

  Database database_;
  std::int64_t version_ = -1;
  std::uint64_t changes_ = 0;
};

}  // namespace stint::store
