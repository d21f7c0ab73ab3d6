/// Creates the tables of a PostgreSQL store, or migrates them to the version of this program.
#pragma once

#include "stint/asio.hpp"
#include "store/migration.hpp"

#include <string>

namespace stint::store {

/// The migrations of this program.
[[nodiscard]] Migrations postgres_migrations() noexcept;

/// Waits for a migration, its own or that of another process, until the caller cancels it. `patience` bounds every
/// other step: a server that accepts and then does not answer is `unavailable`.
[[nodiscard]] Task<Result<Schema>> migrate_postgres(Reactor& reactor, std::string url, Duration patience,
                                                    Migrations migrations);

}  // namespace stint::store
