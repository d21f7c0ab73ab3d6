#include "store/postgres_migrate.hpp"

#include "stint/combinators.hpp"
#include "store/postgres_connection.hpp"
#include "store/postgres_store.hpp"
#include "store_sql_postgres.hpp"

namespace stint::store {
namespace {

namespace query = postgres::query;

constexpr int kVersionUnit = 10'000;  // of libpq's number of a server's version
constexpr auto kNewest = static_cast<std::int64_t>(postgres::kMigrations.size());

/// A server that falls silent after the handshake is given up like one that never answers.
template <class T>
Task<Result<T>> answered_within(Reactor& reactor, Duration patience, Task<Result<T>> statement) {
  auto answer = co_await with_deadline(Deadline::after(reactor.now(), patience), std::move(statement));
  if (answer || answer.error() != Errc::timed_out) co_return answer;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
  co_return fail(Error(Errc::unavailable, Retry::safe,
                       "PostgreSQL accepted the connection, and did not answer within " + std::to_string(seconds) +
                           " s. Is it overloaded, or stopped?"));
}

/// The version of the tables; 0: there are none.
Task<Result<std::int64_t>> find_version(PostgresConnection& connection) {
  STINT_CO_TRY(const PostgresRows tables, co_await connection.run(query::has_tables, {}));
  if (!tables.flag(0, 0)) co_return 0;
  STINT_CO_TRY(const PostgresRows found, co_await connection.run(query::version, {}));
  const std::int64_t version = found.number(0, 0);
  if (version > kNewest && found.number(0, 1) > kNewest) {
    co_return fail(Errc::denied, "the database was made by a newer Stint (schema " + std::to_string(version) +
                                     ", this one knows " + std::to_string(kNewest) + "). Install that one");
  }
  co_return version;
}

/// In one transaction, under a lock of its own, so that processes that start at once do not both do it.
Task<Result<Schema>> migrate_locked(PostgresConnection& connection) {
  STINT_CO_CHECK(co_await connection.run(query::lock_migrations, {}));
  STINT_CO_TRY(const std::int64_t version, co_await find_version(connection));
  if (version >= kNewest) co_return Schema{version, version};
  for (std::int64_t next = version; next < kNewest; ++next) {
    STINT_CO_CHECK(co_await connection.run_script(postgres::kMigrations[static_cast<std::size_t>(next)]));
  }
  STINT_CO_CHECK(co_await connection.run(query::set_version, Parameters().number(kNewest)));
  co_return Schema{version, kNewest};
}

}  // namespace

Task<Result<Schema>> migrate_postgres(Reactor& reactor, std::string url, Duration patience) {
  STINT_CO_TRY(const auto connection, co_await PostgresConnection::open(reactor, std::move(url)));
  if (connection->server_version() < PostgresStore::kServerMin * kVersionUnit) {
    co_return fail(Errc::denied, "this is PostgreSQL " + std::to_string(connection->server_version() / kVersionUnit) +
                                     "; Stint needs " + std::to_string(PostgresStore::kServerMin) + " or newer");
  }
  // What is up to date needs no lock, for which a silent server could not be told from a long migration.
  STINT_CO_TRY(const std::int64_t version, co_await answered_within(reactor, patience, find_version(*connection)));
  if (version >= kNewest) co_return Schema{version, version};
  STINT_CO_CHECK(co_await answered_within(reactor, patience, connection->run(query::begin, {})));
  auto done = co_await migrate_locked(*connection);
  if (!done) {
    if (done.error() == Errc::denied && !done.error().what().contains("newer")) {
      co_return fail(std::move(Error(Errc::denied,
                                     "the tables of Stint can't be made: connect as a user who may create "
                                     "schemas in this database")
                                   .because(std::move(done.error()))));
    }
    co_return std::move(done);  // the connection goes, and the transaction with it
  }
  STINT_CO_CHECK(co_await connection->run(query::commit, {}));
  co_return std::move(done);
}

}  // namespace stint::store
