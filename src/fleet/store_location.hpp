/// Finds the store that the settings name, and opens it.
#pragma once

#include "agent/settings.hpp"
#include "domain/system.hpp"
#include "project/checkout.hpp"
#include "stint/asio.hpp"
#include "store/store.hpp"

#include <filesystem>
#include <memory>
#include <optional>

namespace stint::fleet {

struct StoreLocation {
  std::string path;  ///< of a SQLite file; empty: PostgreSQL
  std::string url;
  std::string shown;                        ///< for people: without a password
  std::filesystem::path state, common_dir;  ///< the user's state folder; the repository that contains the file, if any
  bool withheld = false;  ///< inside a run, which does not get the store's password: only its daemon opens the store

  [[nodiscard]] bool exists() const;  ///< false: the file does not exist yet
};
/// Fails if a setting is wrong, or the store is memory, which other processes can't read.
[[nodiscard]] Result<StoreLocation> blocking_find_store(const project::Location& location);

/// `Errc::denied` if the store lies in an untrusted checkout and was not created there by this user: a daemon would
/// start runs that came with an unpacked folder.
[[nodiscard]] Result<> blocking_check_store_is_own(const StoreLocation& place, bool trusted);

/// Creates the store if it does not exist, and migrates its tables. Without a place: a store in memory.
Task<Result<std::unique_ptr<store::Store>>> open_store(Reactor& reactor, std::optional<StoreLocation> place,
                                                       const domain::System& system);

}  // namespace stint::fleet
