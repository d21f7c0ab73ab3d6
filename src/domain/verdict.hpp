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

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::domain {

/// Which rule decided. The end of an attempt keeps it in the store, the API and the command line make words of it.
enum class VerdictRule : std::uint8_t {
  none,         ///< a success: nothing was to be decided
  transient,    ///< it is repeated
  permanent,    ///< the same would happen again
  attempts,     ///< it would be repeated, but its attempts are used up
  quota,        ///< a rate limit: parked
  unreachable,  ///< the provider can't be reached: parked
  login,        ///< parked until a person has logged in
  retries,      ///< those of its account are used up: parked
  starved,      ///< the host lacks something: parked
  effects,      ///< in doubt: it may have had effects, and can't be continued
  open_call,    ///< in doubt: it ended within a call that must not be repeated
  handed_back,  ///< its node drains
  cancelled,
  budget,  ///< its time, tokens or cost are used up
};
inline constexpr std::array kVerdictRules = {VerdictRule::transient, VerdictRule::permanent,   VerdictRule::attempts,
                                             VerdictRule::quota,     VerdictRule::unreachable, VerdictRule::login,
                                             VerdictRule::retries,   VerdictRule::starved,     VerdictRule::effects,
                                             VerdictRule::open_call, VerdictRule::handed_back, VerdictRule::cancelled,
                                             VerdictRule::budget};
[[nodiscard]] std::string_view to_string(VerdictRule rule) noexcept;
[[nodiscard]] std::optional<VerdictRule> parse_verdict_rule(std::string_view name) noexcept;

/// What the event that ends an attempt keeps of its verdict.
struct VerdictRecord {
  VerdictRule rule = VerdictRule::none;
  std::uint32_t attempt = 1, attempts_max = 1;
  std::optional<Duration> after{};  ///< until the run may go on by itself; none: it does not, or at once
  std::string limit{};              ///< the account that it pauses
  bool resumes = false;             ///< the next attempt continues the conversation

  friend bool operator==(const VerdictRecord&, const VerdictRecord&) = default;
};

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
  VerdictRule rule = VerdictRule::none;
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
