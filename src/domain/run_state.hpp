/// The states of a run and the rules by which it changes them, as data and pure functions. Every store follows them;
/// those that decide in SQL are compared with this file, case by case, by the conformance suite.
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
  in_doubt,  ///< nobody knows what it did: a person decides
};
inline constexpr std::array kRunStates = {RunState::queued, RunState::running,   RunState::parked,  RunState::succeeded,
                                          RunState::failed, RunState::cancelled, RunState::expired, RunState::in_doubt};
[[nodiscard]] std::string_view to_string(RunState state) noexcept;
[[nodiscard]] std::optional<RunState> parse_run_state(std::string_view name) noexcept;
/// For good. A run in doubt is not: it holds its session until somebody resolves it.
[[nodiscard]] constexpr bool is_finished(RunState state) noexcept {
  return state == RunState::succeeded || state == RunState::failed || state == RunState::cancelled ||
         state == RunState::expired;
}

/// Why a run that is not running can't be claimed yet. None: it is ready.
enum class Hold : std::uint8_t {
  none,
  session,  ///< an earlier run of its session is unfinished
  delay,    ///< it was asked to begin later
  backoff,  ///< between two attempts
  quota,    ///< parked until the account may be used again
  person,   ///< parked until somebody answers
};
[[nodiscard]] std::string_view to_string(Hold hold) noexcept;
[[nodiscard]] std::optional<Hold> parse_hold(std::string_view name) noexcept;

/// What becomes of an attempt, as its owner says it. `expired`: it used up what was left of its budget. `lost` is said
/// by others: the owner is gone.
enum class Settle : std::uint8_t { succeeded, failed, retry, park, hand_back, cancelled, expired, lost };
inline constexpr std::array kSettles = {Settle::succeeded, Settle::failed,    Settle::retry,   Settle::park,
                                        Settle::hand_back, Settle::cancelled, Settle::expired, Settle::lost};
[[nodiscard]] std::string_view to_string(Settle settle) noexcept;

/// Asked of the owner of a running run; names the state in which it will end.
enum class Stop : std::uint8_t { none, cancelled, expired };
inline constexpr std::array kStops = {Stop::none, Stop::cancelled, Stop::expired};
[[nodiscard]] std::string_view to_string(Stop stop) noexcept;

/// What a person says of a run in doubt.
enum class Resolution : std::uint8_t { done, rerun, discard };
inline constexpr std::array kResolutions = {Resolution::done, Resolution::rerun, Resolution::discard};
[[nodiscard]] std::string_view to_string(Resolution resolution) noexcept;
[[nodiscard]] std::optional<Resolution> parse_resolution(std::string_view name) noexcept;
[[nodiscard]] RunState after_resolution(Resolution resolution) noexcept;

/// What decides where a running run goes when its attempt is settled.
struct SettleFacts {
  Settle settle = Settle::failed;
  Stop stop = Stop::none;
  bool unsafe = false;  ///< a call that may not be repeated was begun, and its outcome is not known
  OnCrash on_crash = OnCrash::doubt;
  std::uint32_t attempt = 1;  ///< this one counted
  std::uint32_t attempts_max = 3;
  std::uint32_t lost = 0;  ///< attempts whose owner died, this one not counted
  std::uint32_t lost_max = 3;
  bool expires_first = false;   ///< its deadline or budget ends before it could start again
  bool deadline_first = false;  ///< its deadline alone ends before the park does; a park until a person has no end
};
[[nodiscard]] RunState after_settle(const SettleFacts& facts) noexcept;

/// For people, of a run whose owner was lost `times` times: why it does not go on by itself. Empty: it does, or
/// somebody had asked it to stop.
[[nodiscard]] std::string error_of_loss(RunState next, std::uint32_t times);

/// One kind of change. The event that it leaves carries the name.
struct Transition {
  std::string_view cause;
  RunState from;
  RunState to;
};
/// All that may happen to a run once it is there. Whatever is not in it is a defect of a store.
[[nodiscard]] bool is_transition(std::string_view cause, RunState from, RunState to) noexcept;
inline constexpr std::string_view kEnqueued = "enqueued";  // the first event

/// Priority and aging in one number: what is due first goes first, and a step of priority counts as much as 10 minutes.
inline constexpr Duration kPriorityStep = std::chrono::minutes(10);
inline constexpr int kPriorityMax = 1000;  // and its negative: a week of lead
[[nodiscard]] constexpr std::int64_t rank_ms(std::int64_t due_ms, int priority) noexcept {
  return due_ms - priority * std::chrono::duration_cast<std::chrono::milliseconds>(kPriorityStep).count();
}

}  // namespace stint::domain
