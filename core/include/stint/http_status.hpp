/// Maps a failed HTTP call to an `Error` and whether it may be repeated: one table for every client of an HTTP
/// upstream. The rest of the library is independent of HTTP.
#pragma once

#include "stint/error.hpp"
#include "stint/retry_after.hpp"

#include <optional>
#include <string>

namespace stint {

struct HttpFailure {
  Errc code = Errc::failed;
  Retry retry = Retry::never;
  bool needs_window = false;  ///< repeat only with a delay from the server; without one it is a quota, not a throttle
  bool overload = false;      ///< a signal for adaptive limits and for `RateLimiter::pause_until`

  friend bool operator==(const HttpFailure&, const HttpFailure&) = default;
};

/// Safe to repeat, since the request was not executed: 408, 409, 503, 529, and 429 with a delay. Unknown: other 5xx,
/// since a gateway or a crashed server may have executed it; a model call without output yet counts as idempotent.
/// Never: everything else, including statuses that are not failures.
[[nodiscard]] HttpFailure classify_http_status(int status) noexcept;

/// Further hints in the response.
struct HttpHints {
  ServerDelay delay{};
  std::optional<bool> should_retry{};  ///< the server's explicit answer; overrides the table
};
/// "HTTP 429: what". A delay of kind stop, or none where one is needed, makes it `Retry::never`.
[[nodiscard]] Error http_error(int status, const HttpHints& hints, const std::string& what);

}  // namespace stint
