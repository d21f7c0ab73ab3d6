/// Which store the settings name, and how it is opened.
#pragma once

#include "agent/settings.hpp"
#include "cli/surroundings.hpp"
#include "domain/ambient.hpp"
#include "stint/asio.hpp"
#include "store/store.hpp"

#include <memory>

namespace stint::cli {

struct StorePlace {
  std::string path;  ///< of a SQLite file; empty: PostgreSQL
  std::string url;
  std::string shown;      ///< for people: without a password
  bool withheld = false;  ///< this is a run, which does not get the store's password: only its daemon opens it

  [[nodiscard]] bool exists() const;  ///< false: a file that is not there yet
};
/// Fails if a setting is wrong, or the store is memory: nothing of it is there for another process.
[[nodiscard]] Result<StorePlace> blocking_find_store(const Surroundings& around);

/// Makes it if it is not there, and brings its tables up to date.
Task<Result<std::unique_ptr<store::Store>>> open_store(Reactor& reactor, StorePlace place,
                                                       const domain::Ambient& ambient);

}  // namespace stint::cli
