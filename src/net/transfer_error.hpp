/// Failures of a transfer as errors. Internal to this folder. `shown` is a URL without secrets; no error has a query, a
/// header or a body in it.
#pragma once

#include "net/curl_library.hpp"
#include "stint/time.hpp"

#include <cstddef>
#include <string>

namespace stint::net {

/// `sending`: a connection was there and bytes of the request may have been sent. Before that nothing can have
/// happened.
[[nodiscard]] Error to_error(CURLcode code, bool sending, std::string what);

[[nodiscard]] Error lookup_limit_passed(const std::string& shown, const std::string& host, Duration limit);
[[nodiscard]] Error connect_limit_passed(const std::string& shown, Duration limit);
[[nodiscard]] Error first_byte_limit_passed(const std::string& shown, Duration limit, std::size_t sent,
                                            std::size_t size);
[[nodiscard]] Error idle_limit_passed(const std::string& shown, Duration limit);

}  // namespace stint::net
