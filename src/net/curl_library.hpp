/// libcurl, loaded with the first request and kept. Linking it would load some 25 more libraries at the start of a
/// program that mostly makes no request.
#pragma once

#include "stint/error.hpp"

#include <curl/curl.h>

namespace stint::net {

#define STINT_LIBCURL(STINT_EACH)      \
  STINT_EACH(curl_easy_cleanup)        \
  STINT_EACH(curl_easy_getinfo)        \
  STINT_EACH(curl_easy_init)           \
  STINT_EACH(curl_easy_pause)          \
  STINT_EACH(curl_easy_setopt)         \
  STINT_EACH(curl_easy_strerror)       \
  STINT_EACH(curl_global_init)         \
  STINT_EACH(curl_multi_add_handle)    \
  STINT_EACH(curl_multi_assign)        \
  STINT_EACH(curl_multi_cleanup)       \
  STINT_EACH(curl_multi_info_read)     \
  STINT_EACH(curl_multi_init)          \
  STINT_EACH(curl_multi_remove_handle) \
  STINT_EACH(curl_multi_setopt)        \
  STINT_EACH(curl_multi_socket_action) \
  STINT_EACH(curl_slist_append)        \
  STINT_EACH(curl_slist_free_all)      \
  STINT_EACH(curl_version_info)

struct Libcurl {
#define STINT_DECLARE(name) decltype(&::name) name = nullptr;  // NOLINT: a name can't stand in parentheses
  STINT_LIBCURL(STINT_DECLARE)
#undef STINT_DECLARE
};

/// `denied`: it is not installed. Free of cost once it is loaded.
[[nodiscard]] Result<> load_libcurl();
/// All valid after load_libcurl().
[[nodiscard]] const Libcurl& curl() noexcept;
/// Whether an HTTP/2 connection without TLS can take a second request: in 7.88 (Debian 12) that request fails.
[[nodiscard]] bool can_reuse_prior_knowledge() noexcept;

}  // namespace stint::net
