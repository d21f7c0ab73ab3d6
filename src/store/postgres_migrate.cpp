#include "store/postgres_migrate.hpp"

#include "stint/combinators.hpp"
#include "store/postgres_connection.hpp"
#include "store/postgres_store.hpp"
#include "store_sql_postgres.hpp"

namespace stint::store {
namespace {

namespace query = postgres::query;

constexpr int kVersionUnit = 10'000;  // libpq's version number per major version

/// Gives up on a server that does not answer after the handshake.
template <class T>
Task<Result<T>> answered_within(Reactor& reactor, Duration patience, Task<Result<T>> statement) {
  auto answer = co_await with_deadline(Deadline::after(reactor.now(), patience), std::move(statement));
  if (answer || answer.error() != Errc::timed_out) co_return answer;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
  co_return fail(Error(Errc::unavailable, Retry::safe,
                       "PostgreSQL accepted the connection but did not answer within " + std::to_string(seconds) +
                           " s. Check whether it is overloaded or stopped"));
}

/// The version of the tables; 0: none.
Task<Result<std::int64_t>> find_version(PostgresConnection& connection, Migrations migrations) {
  STINT_CO_TRY(const PostgresRows tables, co_await connection.run(query::has_tables, {}));
  if (!tables.flag(0, 0)) co_return 0;
  STINT_CO_TRY(const PostgresRows found, co_await connection.run(query::version, {}));
  const std::int64_t version = found.number(0, 0), newest = newest_version(migrations);
  if (version <= kUnreleasedMax) {
    co_return fail(unreleased_schema("the database", version, "drop its schemas whose names begin with `stint`"));
  }
  if (version > newest && found.number(0, 1) > newest)
    co_return fail(newer_schema("the database", version, migrations));
  co_return version;
}

/// In one transaction, under a lock, so that only one of several starting processes migrates.
Task<Result<Schema>> migrate_locked(PostgresConnection& connection, Migrations migrations) {
  const std::int64_t newest = newest_version(migrations);
  STINT_CO_CHECK(co_await connection.run(query::lock_migrations, {}));
  STINT_CO_TRY(const std::int64_t version, co_await find_version(connection, migrations));
  if (version >= newest) co_return Schema{version, version};
  for (const Migration migration : missing_of(migrations, version)) {
    for (const char* const script : migration) STINT_CO_CHECK(co_await connection.run_script(script));
  }
  STINT_CO_CHECK(co_await connection.run(query::set_version, Parameters().number(newest)));
  co_return Schema{version, newest};
}

/// Whether the server refused the statements. The errors of this file need no addition.
bool is_refused_by_server(const Error& error) {
  return error == Errc::denied && !error.what().contains("newer") && !error.what().contains("unreleased");
}

}  // namespace

Migrations postgres_migrations() noexcept { return postgres::kMigrations; }

Task<Result<Schema>> migrate_postgres(Reactor& reactor, std::string url, Duration patience, Migrations migrations) {
  STINT_CO_TRY(const auto connection, co_await PostgresConnection::open(reactor, std::move(url)));
  if (connection->server_version() < PostgresStore::kServerMin * kVersionUnit) {
    co_return fail(Errc::denied, "this is PostgreSQL " + std::to_string(connection->server_version() / kVersionUnit) +
                                     "; Stint needs " + std::to_string(PostgresStore::kServerMin) + " or newer");
  }
  // An up-to-date schema needs no lock: while waiting for one, a silent server looks like a long migration.
  STINT_CO_TRY(const std::int64_t version,
               co_await answered_within(reactor, patience, find_version(*connection, migrations)));
  if (version >= newest_version(migrations)) co_return Schema{version, version};
  STINT_CO_CHECK(co_await answered_within(reactor, patience, connection->run(query::begin, {})));
  auto done = co_await migrate_locked(*connection, migrations);
  if (!done) {
    if (is_refused_by_server(done.error())) {
      co_return fail(std::move(Error(Errc::denied,
                                     "cannot create the tables of Stint: connect as a user who may create "
                                     "schemas in this database")
                                   .because(std::move(done.error()))));
    }
    co_return std::move(done);  // closes the connection and so rolls back
  }
  STINT_CO_CHECK(co_await connection->run(query::commit, {}));
  co_return std::move(done);
}

}  // namespace stint::store
