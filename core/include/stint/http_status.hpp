/// What a failed HTTP call means for who may repeat it: the one table from status to `Error`, for every client of an
/// HTTP upstream. The rest of the library knows no HTTP.
#pragma once

#include "stint/error.hpp"
#include "stint/retry_after.hpp"

#include <optional>
#include <string>

namespace stint {

struct HttpFailure {
  Errc code = Errc::failed;
  Retry retry = Retry::never;
  bool needs_window = false;  ///< to be repeated only if the other side says when: else it is a quota, not a throttle
  bool overload = false;      ///< a signal for adaptive limits and for closing a gate

  friend bool operator==(const HttpFailure&, const HttpFailure&) = default;
};

/// Safe to repeat: 408, 409, 503, 529, and 429 with a window: the request was not carried out. Other 5xx: unknown,
/// since a gateway or a crashed server may have carried it out; a model call without output yet counts as idempotent.
/// Never: the rest, and everything that is not a failure at all.
[[nodiscard]] HttpFailure classify_http_status(int status) noexcept;

/// What else the answer said.
struct HttpHints {
  ServerDelay delay{};
  std::optional<bool> should_retry{};  ///< the other side's own word on repeating; wins over the table
};
/// "HTTP 429: what". A delay of kind stop, or none where a window is needed, makes it `Retry::never`.
[[nodiscard]] Error http_error(int status, const HttpHints& hints, const std::string& what);

}  // namespace stint
