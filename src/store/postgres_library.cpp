#include "store/postgres_library.hpp"

#include "stint/assert.hpp"

#include <dlfcn.h>
#include <string>

namespace stint::store {
namespace {

constexpr const char* kName = "libpq.so.5";

Result<Libpq> load() {
  void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(Errc::denied, "a PostgreSQL store needs libpq (Debian package libpq5): " + std::string(::dlerror()));
  }
  Libpq found;
#define STINT_FIND(name)                                                        \
  found.name = reinterpret_cast<decltype(found.name)>(::dlsym(library, #name)); \
  if (found.name == nullptr) return fail(Errc::denied, std::string(kName) + " is too old: it lacks " #name);
  STINT_LIBPQ(STINT_FIND)
#undef STINT_FIND
  return found;
}

const Result<Libpq>& loaded() {
  static const Result<Libpq> library = load();
  return library;
}

}  // namespace

Result<> load_libpq() {
  if (!loaded()) return fail(loaded().error());
  return {};
}

const Libpq& pq() noexcept {
  STINT_ASSERT(loaded().has_value());
  return *loaded();
}

}  // namespace stint::store
