#include "stint/http_status.hpp"

namespace stint {

HttpFailure classify_http_status(int status) noexcept {
  switch (status) {
    case 401:
    case 402:
    case 403: return {.code = Errc::denied};
    case 408: return {.code = Errc::timed_out, .retry = Retry::safe};
    case 409: return {.code = Errc::conflict, .retry = Retry::safe};
    case 429: return {.code = Errc::unavailable, .retry = Retry::safe, .needs_window = true, .overload = true};
    case 503:
    case 529: return {.code = Errc::unavailable, .retry = Retry::safe, .overload = true};
    default: break;
  }
  if (status >= 400 && status <= 499) return {.code = Errc::invalid};
  if (status >= 500 && status <= 599) return {.code = Errc::unavailable, .retry = Retry::unknown};
  return {};
}

Error http_error(int status, const HttpHints& hints, const std::string& what) {
  using Kind = ServerDelay::Kind;
  const HttpFailure failure = classify_http_status(status);
  Retry retry = failure.retry;
  if (failure.needs_window && hints.delay.kind != Kind::wait) retry = Retry::never;
  if (hints.should_retry) retry = *hints.should_retry ? Retry::safe : Retry::never;
  if (hints.delay.kind == Kind::stop) retry = Retry::never;
  Error error(failure.code, retry, "HTTP " + std::to_string(status) + (what.empty() ? "" : ": " + what));
  if (hints.delay.kind == Kind::wait) error = std::move(error).after(hints.delay.wait);
  return error;
}

}  // namespace stint
