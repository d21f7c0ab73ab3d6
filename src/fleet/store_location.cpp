#include "fleet/store_location.hpp"

#include "agent/trust.hpp"
#include "store/memory_store.hpp"
#include "store/postgres_store.hpp"
#include "store/sqlite_store.hpp"

#include <fmt/format.h>

namespace stint::fleet {

bool StoreLocation::exists() const {
  std::error_code error;
  return path.empty() || std::filesystem::exists(path, error);
}

Result<StoreLocation> blocking_find_store(const project::Location& location) {
  STINT_TRY(const project::Checkout found, project::blocking_read_checkout(location));
  const std::string& store = found.settings.store;
  StoreLocation place;
  if (store == "memory") {
    return fail(Errc::invalid,
                "the store is \"memory\": it exists only inside the process that uses it. Set `store` to \"sqlite\" or "
                "an address");
  }
  if (store == "postgres") {
    return fail(Errc::invalid, "the store \"postgres\" has no address: set STINT_STORE=postgres://…");
  }
  if (store != "sqlite") {
    place.url = store;
    place.withheld = store.find(fmt::format(":{}@", agent::kPasswordMask)) != std::string::npos ||
                     store.find(fmt::format("password={}", agent::kPasswordMask)) != std::string::npos;
    const agent::Setting* const setting = found.settings.find("store");
    place.shown = setting != nullptr ? setting->shown() : "postgres";
    return place;
  }
  if (found.project.is_repository()) {
    place.path = (*found.project.common_dir / "stint" / "stint.db").string();
    place.common_dir = *found.project.common_dir;
    if (const auto places = agent::user_places(location.variables)) place.state = places->state;
  } else {
    STINT_TRY(const agent::UserPlaces places, agent::user_places(location.variables));
    place.path = (places.state / "stint.db").string();
  }
  place.shown = place.path;
  return place;
}

Result<> blocking_check_store_is_own(const StoreLocation& place, bool trusted) {
  if (trusted || place.state.empty() || !place.exists()) return {};
  if (agent::blocking_is_own(place.state, agent::OwnFile::store, place.common_dir)) return {};
  return fail(Errc::denied,
              fmt::format("{} was not created here by this user, and a daemon would start the runs in it. If "
                          "they are yours, run `stint trust` there; else remove the file",
                          place.path));
}

Task<Result<std::unique_ptr<store::Store>>> open_store(Reactor& reactor, std::optional<StoreLocation> place,
                                                       const domain::System& system) {
  if (!place) co_return std::make_unique<store::MemoryStore>(system);
  if (!place->path.empty()) {
    if (!place->state.empty() && !place->exists()) {
      STINT_CO_CHECK(agent::blocking_note_own(place->state, agent::OwnFile::store, place->common_dir));
    }
    STINT_CO_TRY(auto opened, store::SqliteStore::blocking_open(std::move(place->path), system));
    co_return std::unique_ptr<store::Store>(std::move(opened));
  }
  if (place->withheld) {
    co_return fail(Errc::denied, "a run does not get the password of the store " + place->shown +
                                     ", and no daemon is reachable. Set STINT_URL and STINT_TOKEN");
  }
  STINT_CO_TRY(auto opened, co_await store::PostgresStore::open(reactor, std::move(place->url)));
  co_return std::unique_ptr<store::Store>(std::move(opened));
}

}  // namespace stint::fleet
