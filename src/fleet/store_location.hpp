/// Which store the settings name, and how it is opened.
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
  std::filesystem::path state, common_dir;  ///< the user's folder, and the repository in which the file lies, if any
  bool withheld = false;  ///< this is a run, which does not get the store's password: only its daemon opens it

  [[nodiscard]] bool exists() const;  ///< false: a file that is not there yet
};
/// Fails if a setting is wrong, or the store is memory: nothing of it is there for another process.
[[nodiscard]] Result<StoreLocation> blocking_find_store(const project::Location& location);

/// `Errc::denied` if the store lies in an untrusted checkout and was not made there by this user: a daemon would begin
/// what an unpacked folder has put into it.
[[nodiscard]] Result<> blocking_check_store_is_own(const StoreLocation& place, bool trusted);

/// Makes it if it is not there, and brings its tables up to date. Without a place: a store in memory.
Task<Result<std::unique_ptr<store::Store>>> open_store(Reactor& reactor, std::optional<StoreLocation> place,
                                                       const domain::System& system);

}  // namespace stint::fleet
