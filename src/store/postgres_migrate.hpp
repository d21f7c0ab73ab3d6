/// The tables of a PostgreSQL store: made, or brought to the version that this program knows.
#pragma once

#include "stint/asio.hpp"
#include "store/migration.hpp"

#include <string>

namespace stint::store {

/// Those of this program.
[[nodiscard]] Migrations postgres_migrations() noexcept;

/// Waits for a migration, its own or another process's, as long as the caller lets it; else `patience` bounds each
/// step: a server that accepts and then falls silent is `unavailable`.
[[nodiscard]] Task<Result<Schema>> migrate_postgres(Reactor& reactor, std::string url, Duration patience,
                                                    Migrations migrations);

}  // namespace stint::store
