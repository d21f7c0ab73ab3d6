/// How an attempt ended, as data: the same values for every driver. A driver reports what it observed; verdict.hpp
/// decides whether the run goes on.
#pragma once

#include "domain/usage.hpp"
#include "stint/retry_after.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint {

enum class OutcomeKind : std::uint8_t {
  succeeded,
  agent_error,   ///< the agent itself gave up, or its command failed
  api_error,     ///< the provider failed, or refused for good
  rate_limited,  ///< the provider refused for now
  not_logged_in,
  permission_denied,  ///< the agent could not go on without a call that was refused
  out_of_memory,
  crashed,  ///< it ended without a result
  stalled,  ///< no sign of life for too long
  cancelled,
  over_budget,
  in_doubt,  ///< its effects are unknown
};
[[nodiscard]] std::string_view to_string(OutcomeKind kind) noexcept;
[[nodiscard]] std::optional<OutcomeKind> parse_outcome_kind(std::string_view name) noexcept;

/// A call that the agent wanted to make and was refused.
struct Denial {
  std::string tool;
  std::string call;   ///< the refused call, in short
  std::string allow;  ///< the line of the agent's file that would allow it

  friend bool operator==(const Denial&, const Denial&) = default;
};

struct Outcome {
  static constexpr std::size_t kTextMax = 256 << 10;  // a final answer; more is a file, not an answer
  static constexpr std::size_t kMessageMax = 2000;
  static constexpr std::size_t kDenialsMax = 50;

  OutcomeKind kind = OutcomeKind::crashed;
  std::string text;     ///< the final answer
  std::string message;  ///< why, for people; usually empty on success
  Usage usage;
  std::string conversation;  ///< that the driver can continue; empty: none
  std::optional<int> exit_status;
  std::optional<int> signal;
  std::optional<int> http_status;
  /// Of an API error without a status. True: no connection at all (refused, no such host, no network). False: it broke.
  bool unreachable = false;
  std::optional<WallTime> resets_at;
  std::optional<Duration> retry_after;
  std::vector<Denial> denials;
};

}  // namespace stint
