/// Versions of a store's tables, the same for each kind of database.
#pragma once

#include "store/store.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace stint::store {

/// What makes one version of the schema of the one before: scripts, run in their order in one transaction.
using Migration = std::span<const char* const>;
using Migrations = std::span<const Migration>;

/// Versions up to this one were never released. Their tables are neither used nor changed.
inline constexpr std::int64_t kUnreleasedMax = 100;

/// The version after all of these migrations.
[[nodiscard]] constexpr std::int64_t newest_version(Migrations migrations) noexcept {
  return kUnreleasedMax + static_cast<std::int64_t>(migrations.size());
}
/// Those that a store of version `found` lacks; 0: it has no tables.
[[nodiscard]] constexpr Migrations missing_of(Migrations migrations, std::int64_t found) noexcept {
  return migrations.subspan(found <= kUnreleasedMax ? 0 : static_cast<std::size_t>(found - kUnreleasedMax));
}

/// `store`: its name in messages. `remove`: the command or the step that deletes it.
[[nodiscard]] Error unreleased_schema(const std::string& store, std::int64_t found, const std::string& remove);
[[nodiscard]] Error newer_schema(const std::string& store, std::int64_t found, Migrations migrations);

}  // namespace stint::store
