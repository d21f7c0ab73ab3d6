/// Makes the tables of a SQLite file, or brings them up to date.
#pragma once

#include "store/migration.hpp"
#include "store/sqlite_db.hpp"

#include <string>

namespace stint::store {

/// Those of this program.
[[nodiscard]] Migrations sqlite_migrations() noexcept;

/// Call it under the store's write lock, so that two processes that start at once do not both do it. `denied`: the file
/// is another program's, a newer Stint's or an unreleased one's, or has triggers or views that no migration made; it is
/// left as it is.
[[nodiscard]] Result<Schema> migrate_sqlite(Database& database, const std::string& path, Migrations migrations);

}  // namespace stint::store
