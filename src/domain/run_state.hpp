/// The states of a run and its transition rules, as data and pure functions. Every store follows them; the conformance
/// suite compares stores that decide in SQL with this file, case by case.
#pragma once

#include "domain/agent.hpp"
#include "stint/time.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::domain {

enum class RunState : std::uint8_t {
  queued,
  running,  ///< has an owner and a fence
  parked,   ///< waits for a time or a person; its budget's clock stands still
  succeeded,
  failed,
  cancelled,
  expired,   ///< its deadline or budget passed
  in_doubt,  ///< its effects are unknown: a person decides
};
inline constexpr std::array kRunStates = {RunState::queued, RunState::running,   RunState::parked,  RunState::succeeded,
                                          RunState::failed, RunState::cancelled, RunState::expired, RunState::in_doubt};
[[nodiscard]] std::string_view to_string(RunState state) noexcept;
[[nodiscard]] std::optional<RunState> parse_run_state(std::string_view name) noexcept;
/// Whether the run has ended for good. A run in doubt has not: it blocks its session until a person resolves it.
[[nodiscard]] constexpr bool is_finished(RunState state) noexcept {
  return state == RunState::succeeded || state == RunState::failed || state == RunState::cancelled ||
         state == RunState::expired;
}

/// Why a run that is not running can't be claimed yet. None: it is ready.
enum class Hold : std::uint8_t {
  none,
  session,  ///< an earlier run of its session is unfinished
  delay,    ///< its start time is in the future
  backoff,  ///< between two attempts
  quota,    ///< parked until the account may be used again
  person,   ///< parked until a person answers
};
[[nodiscard]] std::string_view to_string(Hold hold) noexcept;
[[nodiscard]] std::optional<Hold> parse_hold(std::string_view name) noexcept;

/// How the owner of an attempt settles it. `expired`: it used up the rest of its budget. `lost`: its node is gone, and
/// another node settles it.
enum class Settle : std::uint8_t { succeeded, failed, retry, park, hand_back, cancelled, expired, lost };
inline constexpr std::array kSettles = {Settle::succeeded, Settle::failed,    Settle::retry,   Settle::park,
                                        Settle::hand_back, Settle::cancelled, Settle::expired, Settle::lost};
[[nodiscard]] std::string_view to_string(Settle settle) noexcept;

/// A stop requested from the owner of a running run; names the state in which the run will end.
enum class Stop : std::uint8_t { none, cancelled, expired };
inline constexpr std::array kStops = {Stop::none, Stop::cancelled, Stop::expired};
[[nodiscard]] std::string_view to_string(Stop stop) noexcept;

/// How a person resolves a run in doubt.
enum class Resolution : std::uint8_t { done, rerun, discard };
inline constexpr std::array kResolutions = {Resolution::done, Resolution::rerun, Resolution::discard};
[[nodiscard]] std::string_view to_string(Resolution resolution) noexcept;
[[nodiscard]] std::optional<Resolution> parse_resolution(std::string_view name) noexcept;
[[nodiscard]] RunState after_resolution(Resolution resolution) noexcept;

/// The facts that decide the next state of a running run when its attempt is settled.
struct SettleFacts {
  Settle settle = Settle::failed;
  Stop stop = Stop::none;
  bool unsafe = false;  ///< a call that must not be repeated was begun, and its outcome is unknown
  OnCrash on_crash = OnCrash::doubt;
  std::uint32_t attempt = 1;  ///< including this one
  std::uint32_t attempts_max = 3;
  std::uint32_t lost = 0;  ///< attempts whose node died, not including this one
  std::uint32_t lost_max = 3;
  bool expires_first = false;   ///< its deadline or budget ends before it could start again
  bool deadline_first = false;  ///< its deadline passes before the park ends; a park until a person answers never ends
};
[[nodiscard]] RunState after_settle(const SettleFacts& facts) noexcept;

/// Why a run that lost its node `times` times does not go on by itself, for people. Empty: it goes on, or a stop was
/// requested.
[[nodiscard]] std::string error_of_loss(RunState next, std::uint32_t times);

/// One kind of state change. Its event has `cause` as its name.
struct Transition {
  std::string_view cause;
  RunState from;
  RunState to;
};
/// Whether a run may make this transition. Any other transition is a defect of a store.
[[nodiscard]] bool is_transition(std::string_view cause, RunState from, RunState to) noexcept;
inline constexpr std::string_view kEnqueued = "enqueued";  // the first event

/// Priority and aging in one number: the run that is due first goes first, and a step of priority is worth 10 minutes.
inline constexpr Duration kPriorityStep = std::chrono::minutes(10);
inline constexpr int kPriorityMax = 1000;  // and -1000 is the least: a week of lead either way
[[nodiscard]] constexpr std::int64_t rank_ms(std::int64_t due_ms, int priority) noexcept {
  return due_ms - priority * std::chrono::duration_cast<std::chrono::milliseconds>(kPriorityStep).count();
}

}  // namespace stint::domain
