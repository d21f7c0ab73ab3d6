/// What comes after an attempt: nothing, another one, or a person. Pure. Only what is safe to repeat is repeated; what
/// may have had effects goes on in its own conversation, where the driver can, or is put in doubt.
#pragma once

#include "domain/agent.hpp"
#include "domain/outcome.hpp"
#include "stint/retry_core.hpp"

#include <cstdint>
#include <string>

namespace stint::domain {

enum class RunEnd : std::uint8_t { succeeded, failed, cancelled, expired, in_doubt };
[[nodiscard]] std::string_view to_string(RunEnd end) noexcept;

/// What is known of the attempt besides its outcome.
struct AttemptFacts {
  std::uint32_t number = 1;  ///< of those that count
  std::uint32_t attempts_max = 3;
  bool tools_used = false;  ///< it began to do something
  std::optional<OnCrash> on_crash;
  RetrySpec retry;
  WallTime wall_now{};
  Duration time_left = Duration::max();  ///< of the budget
  std::uint64_t random = 0;
};

struct AfterAttempt {
  bool again = false;
  RunEnd end = RunEnd::failed;  ///< if not again
  Duration wait{};              ///< before the next
  bool counts = true;           ///< the attempt is one of the budget's; a rate limit's is not
  bool resume = false;          ///< the next goes on with the conversation
  std::string why;              ///< for people
};

[[nodiscard]] AfterAttempt after_attempt(const Outcome& outcome, const AttemptFacts& facts);

}  // namespace stint::domain
