#include "net/curl_library.hpp"

#include "stint/assert.hpp"

#include <dlfcn.h>
#include <string>

namespace stint::net {
namespace {

constexpr const char* kName = "libcurl.so.4";

Result<Libcurl> load() {
  void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(Errc::denied, "HTTP requests need libcurl: install the package libcurl4: " + std::string(::dlerror()));
  }
  Libcurl found;
#define STINT_FIND(name)                                                        \
  found.name = reinterpret_cast<decltype(found.name)>(::dlsym(library, #name)); \
  if (found.name == nullptr) return fail(Errc::denied, std::string(kName) + " is too old: it has no " #name);
  STINT_LIBCURL(STINT_FIND)
#undef STINT_FIND
  if (found.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return fail(Errc::failed, "can't initialize libcurl");
  return found;
}

const Result<Libcurl>& loaded() {
  static const Result<Libcurl> library = load();
  return library;
}

}  // namespace

Result<> load_libcurl() {
  if (!loaded()) return fail(loaded().error());
  return {};
}

const Libcurl& curl() noexcept {
  STINT_ASSERT(loaded().has_value());
  return *loaded();
}

bool can_reuse_prior_knowledge() noexcept {
  constexpr unsigned kFixed = 0x080000;
  return curl().curl_version_info(CURLVERSION_NOW)->version_num >= kFixed;
}

}  // namespace stint::net
