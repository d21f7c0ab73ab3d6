/// What the owner of an attempt says of it when it has ended: the one rule between an outcome and the store. Pure.
///
/// Only what is safe to repeat is repeated. What may have had effects goes on in its own conversation, where the driver
/// can, or is run again where its agent allows that, or is put in doubt. A rate limit, an unreachable provider and an
/// expired login are nobody's failure: the run is parked with its account and uses up no attempt. So it is with a
/// provider that fails so often that its account has no retries left.
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
  std::uint32_t number = 1;  ///< of those that count
  std::uint32_t attempts_max = 3;
  bool tools_used = false;  ///< it began to do something
  OnCrash on_crash = OnCrash::doubt;
  bool retries_used_up = false;  ///< those of its account: what comes after is sent by a probe, not by everyone
  WallTime wall_now{};
};

struct Verdict {
  Settle settle = Settle::failed;
  bool in_doubt = false;  ///< what it did is unknown: to be said before it is settled
  std::string why;        ///< for people
  Duration retry_after{};
  bool pauses_account = false;       ///< of a park
  std::optional<Duration> park_for;  ///< none: until a person says so
  bool resumes = false;              ///< the next attempt goes on with the conversation
};

[[nodiscard]] Verdict judge(const Outcome& outcome, const VerdictFacts& facts);
/// Of an attempt that was ended because its worker leaves: it costs the run nothing, if it may begin again.
[[nodiscard]] Verdict judge_handed_back(const Outcome& outcome, const VerdictFacts& facts);
/// Of one that ended within a call that must not be repeated: what that call did is unknown, whatever the outcome says.
[[nodiscard]] Verdict judge_open_call(const Outcome& outcome);
/// Of one that could not begin for want of what will be there again: it waits, and uses up no attempt.
[[nodiscard]] Verdict judge_starved(const Outcome& outcome);

}  // namespace stint::domain
