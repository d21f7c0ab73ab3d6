#include "store/migration.hpp"

namespace stint::store {

Error unreleased_schema(const std::string& store, std::int64_t found, const std::string& remove) {
  return {Errc::denied, store + " was made by an unreleased version of Stint (schema " + std::to_string(found) +
                            ") and can't be used. To keep its runs, write them to a file with `stint store export` of "
                            "that version; then " +
                            remove + ", and a new one is made"};
}

Error newer_schema(const std::string& store, std::int64_t found, Migrations migrations) {
  return {Errc::denied, store + " was made by a newer Stint (schema " + std::to_string(found) + ", this one knows " +
                            std::to_string(newest_version(migrations)) + "). Install that one"};
}

}  // namespace stint::store
