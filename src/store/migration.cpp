#include "store/migration.hpp"

namespace stint::store {

Error unreleased_schema(const std::string& store, std::int64_t found, const std::string& remove) {
  return {Errc::denied, store + " was created by an unreleased version of Stint (schema " + std::to_string(found) +
                            ") and cannot be used. To keep its runs, export them with `stint store export` of "
                            "that version; then " +
                            remove + ": Stint creates a new one"};
}

Error newer_schema(const std::string& store, std::int64_t found, Migrations migrations) {
  return {Errc::denied, store + " was created by a newer Stint (schema " + std::to_string(found) +
                            "; this one supports up to " + std::to_string(newest_version(migrations)) +
                            "). Use that version"};
}

}  // namespace stint::store
