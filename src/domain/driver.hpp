/// The ports of an attempt: the planner that resolves it, the driver that does its work, the permits of this host that
/// it needs first, and the processes that lost attempts left alive. `driver/`, `limit/` and `project/` implement them;
/// the simulator has its own.
///
/// A driver need not start processes, and the parts of the ports about processes are optional: an in-process driver
/// ignores the last part of WorkOrder, reports `streams_closed` instead of `processes_ended`, and leaves no survivors.
/// The worker holds permits without descriptors until Work::run has returned.
#pragma once

#include "domain/agent.hpp"
#include "domain/attempt_spec.hpp"
#include "domain/numbers.hpp"
#include "domain/outcome.hpp"
#include "domain/span.hpp"
#include "domain/wait_reason.hpp"
#include "stint/error.hpp"
#include "stint/semaphore.hpp"
#include "stint/task.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::domain {

/// The input of a run: what its submission adds to or changes in the agent file.
struct RunInput {
  /// A budget on which this run draws as well: of a run above it, or one that several submissions share.
  struct BudgetAbove {
    std::string run;    ///< its id, or that of the shared budget, which no run has
    BudgetSpec budget;  ///< tokens and cost
  };

  ArgumentValues args;
  std::string prompt;                  ///< instead of an agent's; empty: the agent's
  std::string driver, model, program;  ///< empty: the agent's, or the settings'
  std::string title;                   ///< for listings
  BudgetSpec budget;                   ///< what differs from the agent's
  std::optional<int> priority;         ///< none: the agent's
  std::vector<BudgetAbove> budgets_above;
  std::string directory;  ///< where it runs; empty: the project's root
  std::string retry_of;   ///< the id of the run that it repeats
  std::string trace;      ///< id of the trace that it belongs to, 32 hexadecimal digits
  std::string asked;      ///< with an idempotency key: a digest of the submission, before any default
};

/// What earlier attempts of a run left for the next one, and the result of the run in the end.
struct RunMemo {
  std::string text;  ///< the answer
  Usage usage;       ///< of all attempts
  std::string conversation;
  bool resumes = false;  ///< the next attempt continues it
  std::vector<Denial> denials;
  OutcomeKind last = OutcomeKind::crashed;
  std::uint32_t processes_ended = 0;  ///< the receipt of the last attempt's end
  std::uint32_t streams_closed = 0;
  Duration ending{};
  std::vector<std::string> permits_returned;  ///< limits that the last attempt held …
  std::vector<std::string> permits_held;      ///< … and still holds: some of its processes could not be ended
};

/// One attempt, as the worker hands it to a driver.
struct WorkOrder {
  std::string run;
  Fence fence{};
  std::uint32_t attempt = 1;
  std::string agent;
  RunInput input;
  std::string conversation;                 ///< to continue; empty: a new one
  bool conversation_may_not_exist = false;  ///< the one to continue: its id was chosen, but it may never have begun
  std::string new_conversation;             ///< id of the one to begin, which the store has; empty: the driver chooses
  std::string interrupted;                  ///< why the conversation is continued, for the agent
  Usage usage_before;                       ///< of earlier attempts
  BudgetSpec budget;                        ///< of the whole run
  BudgetSpec left;                          ///< when it begins, of that and of the budgets above: the tightest of each
  AttemptSpec spec;                         ///< made by the planner from all of the above

  // For drivers that start processes; others ignore these fields.
  bool after_loss = false;            ///< a node that owned the run died: processes of its attempt may be alive
  std::vector<int> descriptors;       ///< of host permits, to be kept open as long as a process is alive
  std::optional<std::uint32_t> slot;  ///< of the agent's own limit

  /// The mark of the attempt. Its processes have it in their environment.
  [[nodiscard]] std::string mark() const { return run + ":" + std::to_string(fence.value); }
};

struct WorkReport {
  Outcome outcome;
  bool begun = true;                  ///< false: nothing was started, and nothing has changed
  bool starved = false;               ///< not begun for lack of descriptors, processes or memory: it can begin later
  bool tools_used = false;            ///< it began to use tools: it may have had effects
  bool conversation_missing = false;  ///< the conversation to continue, whose id was only chosen, does not exist

  // The receipt: what had to be ended.
  std::uint32_t processes_ended = 0;
  std::uint32_t streams_closed = 0;
  Duration ending{};  ///< from the first request to end until nothing was left
  bool left = false;  ///< some of it could not be ended: permits of this host stay held until it is gone
};

/// What an attempt reports while it runs.
struct WorkUpdate {
  static constexpr std::size_t kTextMax = 64 << 10;  // of one piece
  enum class Kind : std::uint8_t { text, tool, note, conversation, usage, span, life };
  Kind kind = Kind::life;
  std::string text;
  Usage usage;                 ///< of kind usage: of the attempt so far; never less than in the update before
  std::optional<Span> span{};  ///< of kind span
};

/// What an attempt may use of the worker that carries it. Outlives the work. Own thread only.
class WorkContext {
 public:
  WorkContext() = default;
  virtual ~WorkContext() = default;
  WorkContext(const WorkContext&) = delete;
  WorkContext& operator=(const WorkContext&) = delete;

  /// Passes an update to the worker. Never waits: `Work::hold` is the back-pressure. Must not be called after
  /// `Work::run` has returned.
  virtual void publish(const WorkUpdate& update) = 0;
  /// Called before a call whose effects must not be repeated. Returns when the store has the mark that the effects of
  /// the attempt may be unknown: if this node dies from here on, the run goes in doubt. Calls nest. Fails if the mark
  /// could not be stored, or the run was stopped or has another owner: then the call must not be made. If the work ends
  /// before effects_known, the run goes in doubt, whatever the outcome. So a work that is ended within the call returns
  /// without effects_known, unless it learned what the call did.
  virtual Task<Result<>> effects_unknown() = 0;
  /// Called when the outcome of that call is known. Fails if the mark could not be cleared: then a crash of this node
  /// still puts the run in doubt, and nothing else is wrong.
  virtual Task<Result<>> effects_known() = 0;
  /// Stores message `at` of the attempt's conversation, and removes all later ones: the next number appends, an
  /// earlier one shortens. Returns when the store has it; from then on an attempt that continues the conversation reads
  /// it, on any node. For drivers whose agent does not keep its conversation itself. Fails if the run was stopped or
  /// has another owner, if an earlier message is missing, and if the conversation is too long. May take as long as the
  /// store is away: race it with the end of the work.
  virtual Task<Result<>> keep_message(std::uint32_t at, std::string body) = 0;
  /// The messages that this attempt or the one that it continues has kept, from number `from` on, in order: at least
  /// one, unless there are no more.
  virtual Task<Result<std::vector<std::string>>> messages(std::uint32_t from) = 0;
  /// Waits for a permit of a limit of this process, for one call of the attempt. Fails with Errc::invalid if there is
  /// no such limit, or `weight` is above its capacity.
  virtual Task<Result<Permit>> acquire(std::string limit, std::uint32_t weight) = 0;
};

class Work {
 public:
  Work() = default;
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Called once; returns when nothing of the work is alive. Fails only if nothing was begun. If the awaiting chain is
  /// stopped, the work is ended before the stop passes on. The result is a pointer, never null, to keep the frames of
  /// waiting callers small.
  virtual Task<Result<std::unique_ptr<WorkReport>>> run() = 0;
  /// Begins to end the work; `kind` becomes its outcome unless it had ended before. A second call skips the grace
  /// period. No effect after run() has returned.
  virtual void end(OutcomeKind kind, std::string why) = 0;
  /// Back-pressure: true pauses the output if the work can, false resumes it; calls nest. Never delays the end.
  virtual void hold(bool /*held*/) {}
  /// end() was called, or processes that an earlier attempt left alive are being ended.
  [[nodiscard]] virtual bool is_ending() const { return false; }
  /// What it waits for: to begin, to end, or for the network. None: it does not wait.
  [[nodiscard]] virtual std::optional<WaitReason> waits_for() const { return std::nullopt; }
};

/// Does the work of attempts. tests/conformance has the suite that every implementation passes.
class Driver {
 public:
  Driver() = default;
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Makes the work without starting anything: Work::run starts it. Work that is destroyed before has no effect.
  virtual Result<std::unique_ptr<Work>> begin(WorkOrder order, WorkContext& context) = 0;
  /// The id of the conversation that the order would begin, the same for the same attempt. The worker stores it before
  /// the work begins, so that another node can continue the run. Empty: the agent chooses its own.
  [[nodiscard]] virtual std::string choose_conversation(const WorkOrder& /*order*/) { return {}; }
};

/// Resolves an order into an AttemptSpec, from the current state of the project.
class AttemptPlanner {
 public:
  AttemptPlanner() = default;
  virtual ~AttemptPlanner() = default;
  AttemptPlanner(const AttemptPlanner&) = delete;
  AttemptPlanner& operator=(const AttemptPlanner&) = delete;

  /// Fails if the attempt must not begin: its agent is gone or refused, its folder or program is not allowed. Awaited
  /// at once: `order` must live until it returns.
  virtual Task<Result<AttemptSpec>> plan(const WorkOrder& order) = 0;
};

/// Processes on this host of attempts whose node died together with the warden. Only this host's: hosts that share a
/// store each end their own.
class Survivors {
 public:
  /// What was found of a lost attempt.
  enum class Trace : std::uint8_t {
    kept,      ///< processes with a living warden, which ends them
    orphaned,  ///< processes without a warden: only end() or kill() ends them
    empty,     ///< a cgroup without processes
  };
  /// What is left of one attempt.
  struct Leftover {
    std::string run;
    Fence fence{};
    Trace trace = Trace::kept;
  };
  struct Ending {
    std::uint32_t processes = 0;  ///< that were found
    std::string left;             ///< those still alive when the time was up, for people; empty: none
  };
  Survivors() = default;
  virtual ~Survivors() = default;
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  /// Every attempt that has processes or a cgroup on this host, except those that this process is a part of.
  virtual Task<Result<std::vector<Leftover>>> find() = 0;
  /// Ends the processes of these attempts and of earlier attempts of their runs, and removes their cgroups. Returns
  /// when nothing is left, or when the time for it is up. Once `hurry` returns true, it skips the grace period.
  virtual Task<Ending> end(std::vector<Leftover> leftovers, std::function<bool()> hurry) = 0;
  /// Kills the same processes once, and does not wait for their end: for commands that only read.
  virtual Task<> kill(std::vector<Leftover> leftovers) = 0;
};

/// The permits that an attempt holds. The destructor releases them, unless work that holds them may still be alive.
class HeldPermits {
 public:
  HeldPermits() = default;
  virtual ~HeldPermits() = default;
  HeldPermits(const HeldPermits&) = delete;
  HeldPermits& operator=(const HeldPermits&) = delete;

  /// Records the attempt that holds them from here on. Called before the work begins.
  virtual Result<> assign(const std::string& mark, const std::string& label) = 0;
  /// The descriptors of the permits, for the work's processes to keep open: a permit is free when the last one closes.
  [[nodiscard]] virtual std::vector<int> entrust() { return {}; }
  [[nodiscard]] virtual std::optional<std::uint32_t> slot_of(const std::string& /*limit*/) const { return {}; }
  /// The limits of which it holds permits, by name.
  [[nodiscard]] virtual std::vector<std::string> limits() const { return {}; }
  virtual void release() = 0;  ///< called when the work is gone
};

class Permits {
 public:
  Permits() = default;
  virtual ~Permits() = default;
  Permits(const Permits&) = delete;
  Permits& operator=(const Permits&) = delete;

  /// Whether runs of this agent need permits of this host.
  [[nodiscard]] virtual bool needed(const std::string& agent) const = 0;
  /// Waits in line for all permits of the agent. Calls `waits` with the reason when a wait begins and when its reason
  /// changes, and with null when it is over.
  virtual Task<Result<std::unique_ptr<HeldPermits>>> acquire(std::string agent,
                                                             std::function<void(const WaitReason*)> waits) = 0;
};

}  // namespace stint::domain
