#include "store/sqlite_migrate.hpp"

#include "store_sql_sqlite.hpp"

#include <algorithm>

namespace stint::store {
namespace {

namespace query = sqlite::query;

constexpr std::size_t kShownMax = 64;              // shown bytes of a foreign name
constexpr std::int64_t kApplication = 0x53544E54;  // `STNT`, in the file's header

bool is_in(Migrations migrations, const std::string& sql) {
  return !sql.empty() && std::ranges::any_of(migrations, [&](Migration migration) {
    return std::ranges::any_of(migration, [&](std::string_view script) { return script.contains(sql); });
  });
}

/// A trigger or view that no migration created could change what is written, such as a run's prompt. SQLite keeps
/// their source text.
Result<> check_triggers(Database& database, const std::string& path, Migrations migrations) {
  Query query(database, query::triggers);
  while (query.next()) {
    if (is_in(migrations, query.text(1))) continue;
    return fail(Errc::denied, path + " contains a trigger or view that Stint did not create, '" +
                                  query.text(0).substr(0, kShownMax) +
                                  "', which could change what is stored. Move the file away: Stint creates a new one");
  }
  return query.end();
}

Result<> run_missing(Database& database, Migrations missing, std::int64_t newest) {
  for (const Migration migration : missing) {
    for (const char* const script : migration) STINT_CHECK(database.run(script));
  }
  STINT_CHECK(database.run(std::string(query::set_version) + std::to_string(newest)));
  return database.run(std::string(query::set_application) + std::to_string(kApplication));
}

}  // namespace

Migrations sqlite_migrations() noexcept { return sqlite::kMigrations; }

Result<Schema> migrate_sqlite(Database& database, const std::string& path, Migrations migrations) {
  const std::int64_t newest = newest_version(migrations);
  STINT_TRY(const std::int64_t version, read_number(database, query::version));
  STINT_TRY(const std::int64_t application, read_number(database, query::application));
  STINT_TRY(const std::int64_t tables, read_number(database, query::count_tables));
  if (application != kApplication && (tables > 0 || version > 0)) {
    return fail(Errc::denied, path + " is the database of another program. Move it away: Stint creates a new one");
  }
  if (version > 0 && version <= kUnreleasedMax) return fail(unreleased_schema(path, version, "delete the file"));
  STINT_CHECK(check_triggers(database, path, migrations));
  if (version > newest) {
    STINT_TRY(const std::int64_t oldest, read_number(database, query::oldest_program));
    if (oldest <= newest) return Schema{version, version};
    return fail(newer_schema(path, version, migrations));
  }
  if (version == newest) return Schema{version, version};
  STINT_CHECK(database.run(query::begin));
  if (Result<> done = run_missing(database, missing_of(migrations, version), newest); !done) {
    (void)database.run(query::roll_back);
    return fail(std::move(done.error()));
  }
  STINT_CHECK(database.run(query::commit));
  return Schema{version, newest};
}

}  // namespace stint::store
