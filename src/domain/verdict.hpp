/// Decides how an ended attempt is settled: the one rule between an outcome and the store. Pure.
///
/// Only what is safe to repeat is repeated. A run whose attempt may have had effects continues its conversation if the
/// driver can, is run again if its agent allows that, or goes in doubt. A rate limit, an unreachable provider and an
/// expired login are not failures of the run: it is parked with its account and uses up no attempt. The same holds for
/// a provider that fails so often that its account has no retries left.
#pragma once

#include "domain/agent.hpp"
#include "domain/outcome.hpp"
#include "domain/run_state.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace stint::domain {

/// What is known of an attempt besides its outcome.
struct VerdictFacts {
  std::uint32_t number = 1;  ///< among the attempts that count
  std::uint32_t attempts_max = 3;
  bool tools_used = false;  ///< it may have had effects
  OnCrash on_crash = OnCrash::doubt;
  bool retries_used_up = false;  ///< those of its account: from here on one run probes the account
  WallTime wall_now{};
};

struct Verdict {
  Settle settle = Settle::failed;
  bool in_doubt = false;  ///< its effects are unknown: must be marked in the store before the settlement
  std::string why;        ///< for people
  Duration retry_after{};
  bool pauses_account = false;       ///< a park pauses the account too
  std::optional<Duration> park_for;  ///< none: until a person resumes it
  bool resumes = false;              ///< the next attempt continues the conversation
};

[[nodiscard]] Verdict judge(const Outcome& outcome, const VerdictFacts& facts);
/// For an attempt that was ended because its node drains: if the run may begin again, it uses up no attempt.
[[nodiscard]] Verdict judge_handed_back(const Outcome& outcome, const VerdictFacts& facts);
/// For an attempt that ended within a call that must not be repeated: in doubt whatever the outcome, because the
/// effects of that call are unknown.
[[nodiscard]] Verdict judge_open_call(const Outcome& outcome);
/// For an attempt that could not begin for lack of a resource of the host: the run waits and uses up no attempt.
[[nodiscard]] Verdict judge_starved(const Outcome& outcome);

}  // namespace stint::domain
