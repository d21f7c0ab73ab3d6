/// Creates the tables of a SQLite file, or migrates them.
#pragma once

#include "store/migration.hpp"
#include "store/sqlite_db.hpp"

#include <string>

namespace stint::store {

/// The migrations of this program.
[[nodiscard]] Migrations sqlite_migrations() noexcept;

/// Call it under the store's write lock, so that only one of several starting processes migrates. `denied`: the file
/// belongs to another program, a newer Stint or an unreleased one, or has triggers or views that no migration
/// created. The file is then left unchanged.
[[nodiscard]] Result<Schema> migrate_sqlite(Database& database, const std::string& path, Migrations migrations);

}  // namespace stint::store
