#include "store/sqlite_changes.hpp"

#include "store_sql_sqlite.hpp"

namespace stint::store {

Result<SqliteChanges> SqliteChanges::open(const std::string& path) {
  STINT_TRY(Database database, Database::open(path, Database::Access::read, Duration::zero()));
  return SqliteChanges(std::move(database));
}

std::uint64_t SqliteChanges::look() {
  Query query(database_, sqlite::query::data_version);
  const bool known = query.next() && query.number(0) == version_;
  if (known) return changes_;
  const bool read = query.end().has_value();
  version_ = read ? query.number(0) : -1;
  return ++changes_;
}

}  // namespace stint::store
