/// What a failed model call means: repeat it, wait for the account, or give up. One rule for HTTP answers and for
/// errors inside a stream; the names of each protocol's errors are read in its dialect.
///
/// Messages hold no credential and no whole body: they are bounded, in one line, and words that look like keys are
/// masked. Pure.
#pragma once

#include "model/dialect.hpp"
#include "stint/error.hpp"
#include "stint/retry_after.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::model {

enum class FailureKind : std::uint8_t {
  retry,             ///< a throttle with a window, or a passing error of the server
  overload,          ///< the provider has no room, whatever this account's rate; a longer back-off
  quota,             ///< the account's quota is used up: until the delay, or until a probe succeeds
  spend_limit,       ///< the account pays for no more: a person decides
  auth,              ///< the credential is missing, wrong or expired
  denied,            ///< the credential lacks access
  invalid,           ///< the request itself
  context_too_long,  ///< the conversation does not fit into the model
  not_found,         ///< no such model or endpoint
  ambiguous,         ///< it broke off, or the error is unknown: the model may have worked, and is paid for
  failed,            ///< the server said not to repeat it, without a reason from above
};
[[nodiscard]] std::string_view to_string(FailureKind kind) noexcept;

struct Failure {
  static constexpr std::size_t kMessageMax = 300;
  static constexpr std::size_t kCodeMax = 100;

  FailureKind kind = FailureKind::ambiguous;
  int status = 0;  ///< of HTTP; 0: an error inside a stream
  Retry repeat = Retry::never;
  std::optional<Duration> delay;  ///< named by the server
  std::string code;               ///< the provider's own word for it; may be empty
  std::string message;
  /// Text or a tool call was received before: then `repeat` is never, because the call was not blindly repeatable.
  bool after_output = false;

  [[nodiscard]] Error error() const;
  friend bool operator==(const Failure&, const Failure&) = default;
};

/// What a dialect understood of an error's body.
struct ErrorNote {
  int status = 0;                            ///< the HTTP status that the error stands for; 0: unknown
  std::optional<FailureKind> kind;           ///< if the error says more than a status
  bool repeatable = true;                    ///< false: not in this attempt, whatever the kind
  std::optional<Duration> delay;             ///< a window named in the body
  std::optional<std::chrono::hours> resets;  ///< the time of day, UTC, at which a daily quota begins anew
  std::string code, message;
};

/// A throttle that lasts longer is the account's quota: the run is parked instead of holding its place.
inline constexpr Duration kThrottleMax = std::chrono::minutes(5);
/// Of an error's body: more is not read.
inline constexpr std::size_t kErrorBodyMax = 64 << 10;

/// A response with a status that is not 2xx. `body` may be cut or not JSON at all.
[[nodiscard]] Failure classify_response(Dialect dialect, int status, const Headers& headers, std::string_view body,
                                        WallTime now);
/// An error inside a stream.
[[nodiscard]] Failure classify_note(const ErrorNote& note, WallTime now);
/// The body ended early, or can't be understood.
[[nodiscard]] Failure broken_answer(std::string message);

}  // namespace stint::model
