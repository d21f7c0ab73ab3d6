/// A sandbox is its setup, a list of actions and a number of steps: everything else follows from them. Each call
/// replays it from the beginning on a simulator, so no frame lives between two calls, and a step back is a shorter
/// replay. Pure: the same sandbox gives the same view.
///
/// A step is one step of the simulator or one action. An action is performed when nothing more can happen at that
/// moment, or before the step that it names.
#pragma once

#include "playground/action.hpp"
#include "playground/actor.hpp"
#include "playground/observer.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stint::playground {

inline constexpr std::size_t kEventsShownMax = 500;  // the newest

struct Sandbox {
  Setup setup{};
  std::vector<Action> actions{};
  std::uint32_t step = 0;
  std::string preset{};  ///< where the first actions come from; empty: none
  friend bool operator==(const Sandbox&, const Sandbox&) = default;
};

struct PlaceView {
  std::string task{};
  std::uint32_t units = 0;
  std::optional<int> priority{};    ///< in a line: the effective one
  std::optional<Duration> since{};  ///< if the resource knows it
  friend bool operator==(const PlaceView&, const PlaceView&) = default;
};

struct ResourceView {
  std::string name{};
  Kind kind = Kind::semaphore;
  std::uint32_t capacity = 0;
  std::int64_t available = 0;  ///< negative: debt
  std::uint32_t bypass_max = 0;
  bool closed = false;
  std::vector<PlaceView> holders{}, line{};
  std::uint64_t made = 0, reused = 0, discarded = 0;
  friend bool operator==(const ResourceView&, const ResourceView&) = default;
};

struct TaskView {
  std::string name{};
  TaskState state = TaskState::idle;
  std::size_t queued = 0;
  std::string error{};
  friend bool operator==(const TaskView&, const TaskView&) = default;
};

/// What a sandbox looks like after its steps.
struct View {
  Duration now{};
  bool done = false;  ///< nothing is left to do
  std::size_t actions_done = 0;
  std::vector<ResourceView> resources{};
  std::vector<TaskView> tasks{};
  std::uint64_t tokens = 0, tokens_leaked = 0;
  std::vector<Event> events{};  ///< the newest
  std::size_t events_left_out = 0;
  friend bool operator==(const View&, const View&) = default;
};

/// A sandbox after a call, and how it looks.
struct Played {
  Sandbox sandbox;
  View view;
};

/// Bounds the processor time of one replay.
struct Patience {
  std::function<Duration()> now = nullptr;  ///< a clock that never jumps; null: no bound
  Duration most = kReplayMax;
};

/// Each fails with `invalid` if the sandbox or an argument is wrong, with `conflict` if something is not possible in
/// this state, and with `full` if the replay takes too long. The sandbox given stays as it was.
[[nodiscard]] Result<Played> look(Sandbox sandbox, const Patience& patience = Patience());
/// Performs the action now, then everything that follows from it before the clock advances.
[[nodiscard]] Result<Played> act(Sandbox sandbox, Action action, const Patience& patience = Patience());
[[nodiscard]] Result<Played> step(Sandbox sandbox, std::uint32_t steps, const Patience& patience = Patience());
/// Goes on until `events` more events have happened, or to the end. Events of one step come together.
[[nodiscard]] Result<Played> step_by_event(Sandbox sandbox, std::uint32_t events,
                                           const Patience& patience = Patience());
/// Actions that were performed by `act` in those steps are dropped.
[[nodiscard]] Result<Played> back(Sandbox sandbox, std::uint32_t steps, const Patience& patience = Patience());
/// Takes back the last event, or the last action by hand if that came later; `events` times.
[[nodiscard]] Result<Played> back_by_event(Sandbox sandbox, std::uint32_t events,
                                           const Patience& patience = Patience());
/// To the end, or to the last step that is allowed.
[[nodiscard]] Result<Played> play(Sandbox sandbox, const Patience& patience = Patience());

}  // namespace stint::playground
