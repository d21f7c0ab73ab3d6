/// The port behind which the work of an attempt is done, and that of the permits of this host which it needs first.
/// `driver/` and `limit/` have the real ones; the simulator has made-up ones.
#pragma once

#include "domain/agent.hpp"
#include "domain/outcome.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::domain {

/// What a run was asked to do, beyond what its agent's file says.
struct RunInput {
  /// The budget of a run above it, on which it draws as well.
  struct BudgetAbove {
    std::string run;
    BudgetSpec budget;  ///< tokens and money
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
  std::string trace;      ///< of what it belongs to, 32 hexadecimal digits
  std::string asked;      ///< of one with a key: a digest of what its caller asked for, before any default
};

/// What earlier attempts of a run left behind, and its result in the end.
struct RunMemo {
  std::string text;  ///< the answer
  Usage usage;       ///< of all attempts
  std::string conversation;
  bool resumes = false;  ///< the next attempt goes on with it
  std::vector<Denial> denials;
  OutcomeKind last = OutcomeKind::crashed;
  std::uint32_t processes_ended = 0;  ///< the receipt of the last attempt's end
  std::uint32_t streams_closed = 0;
  Duration ending{};
};

/// One attempt, as a driver gets it.
struct WorkOrder {
  std::string run;
  std::int64_t fence = 0;
  std::uint32_t attempt = 1;
  std::string agent;
  RunInput input;
  std::string conversation;           ///< to go on with; empty: a new one
  bool may_be_unknown = false;        ///< that conversation: its id was chosen, and perhaps it never began
  std::string new_conversation;       ///< the id of the one to begin, which the store has; empty: the driver's choice
  std::string interrupted;            ///< why the conversation has to be taken up again, for the agent
  Usage usage_before;                 ///< of earlier attempts
  BudgetSpec budget;                  ///< the run's whole one: what is left follows from usage_before
  bool after_loss = false;            ///< an owner of the run died: something of its attempt may be alive
  std::vector<int> descriptors;       ///< of permits, to be kept alive as long as the work
  std::optional<std::uint32_t> slot;  ///< of the agent's own limit

  /// What its processes carry.
  [[nodiscard]] std::string mark() const { return run + ":" + std::to_string(fence); }
};

struct WorkReport {
  Outcome outcome;
  bool begun = true;         ///< false: nothing was started, and nothing has changed
  bool starved = false;      ///< not begun for want of what will be there again: descriptors, processes, memory
  bool tools_used = false;   ///< it began to do something: its effects are not known to be none
  bool never_began = false;  ///< the conversation that it should go on with, whose id was only chosen, does not exist
  std::uint32_t processes_ended = 0;
  std::uint32_t streams_closed = 0;
  Duration ending{};  ///< from the first word of the end until nothing was left
  bool left = false;  ///< some of it could not be ended: permits of this host stay taken until it is gone
};

/// What is told of an attempt while it runs.
struct WorkNews {
  enum class Kind : std::uint8_t { text, tool, note, conversation, usage, life };
  Kind kind = Kind::life;
  std::string text;
  Usage usage;
};

class Work {
 public:
  using Listener = std::function<void(const WorkNews&)>;
  Work() = default;
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Once; until nothing of it is alive. Fails only if nothing was begun. If its chain is stopped, the work is ended
  /// all the same before the stop goes on. A pointer, never null: every frame that waits has room for what it gets.
  virtual Task<Result<std::unique_ptr<WorkReport>>> run() = 0;
  /// Begins to end it; `kind` is what its outcome becomes unless it was done before. Called again it hurries.
  virtual void end(OutcomeKind kind, std::string why) = 0;
  /// True: whoever hears what it says can't take more for now, so that it shall wait with it, if it can; false: again.
  /// Several may ask for it, each in turn with both. It never holds up the end.
  virtual void hold(bool /*held*/) {}
  /// Its processes, or those of an attempt before it, are being ended.
  [[nodiscard]] virtual bool is_ending() const { return false; }
  /// What it waits for before it begins, while it ends, or of the network, for people; empty: it is at work.
  [[nodiscard]] virtual std::string waits_for() const { return {}; }
};

class Driver {
 public:
  Driver() = default;
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  virtual Result<std::unique_ptr<Work>> begin(WorkOrder order, Work::Listener listener) = 0;
  /// An id for the conversation that the order would begin: kept before anything starts, it lets another process take
  /// the run up. Empty: this driver's agent chooses its own.
  [[nodiscard]] virtual std::string choose_conversation(const WorkOrder& /*order*/) { return {}; }
};

/// What is alive on this host of attempts whose owner died, and whoever watched over them. Only this host's: in a store
/// that hosts share, each ends its own.
class Survivors {
 public:
  /// What was found of an attempt.
  enum class Trace : std::uint8_t {
    kept,      ///< processes, and the warden that watches over them
    orphaned,  ///< processes without a warden: nothing but this ends them
    empty,     ///< a cgroup without processes
  };
  struct Attempt {
    std::string run;
    std::int64_t fence = 0;
    Trace trace = Trace::kept;
  };
  struct Ending {
    std::uint32_t processes = 0;  ///< that were found
    std::string left;             ///< those that were still alive when the time was up, for people; empty: none
  };
  Survivors() = default;
  virtual ~Survivors() = default;
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  /// Attempts of which something is here, whoever carries them. Not those that this process is a part of.
  [[nodiscard]] virtual std::vector<Attempt> found() const = 0;
  /// Ends what is alive here of these attempts, and of earlier ones of their runs, and removes their cgroups. Returns
  /// when nothing is left, or when the time for it is up. When `hurry` comes to be true: without grace.
  virtual Task<Ending> end(std::vector<Attempt> attempts, std::function<bool()> hurry) = 0;
  /// Kills the same, once, and waits for nothing: for a command that only reads.
  virtual void kill(const std::vector<Attempt>& attempts) = 0;
};

/// Permits in hand. The destructor gives them back, unless work that keeps them may still be alive.
class HeldPermits {
 public:
  HeldPermits() = default;
  virtual ~HeldPermits() = default;
  HeldPermits(const HeldPermits&) = delete;
  HeldPermits& operator=(const HeldPermits&) = delete;

  /// Says whose they are from here on: before the work begins.
  virtual Result<> assign(const std::string& mark, const std::string& label) = 0;
  [[nodiscard]] virtual std::vector<int> entrust() { return {}; }
  [[nodiscard]] virtual std::optional<std::uint32_t> slot_of(const std::string& /*limit*/) const { return {}; }
  virtual void release() = 0;  ///< the work is gone
};

class Permits {
 public:
  Permits() = default;
  virtual ~Permits() = default;
  Permits(const Permits&) = delete;
  Permits& operator=(const Permits&) = delete;

  /// Whether runs of this agent need permits of this host at all.
  [[nodiscard]] virtual bool needed(const std::string& agent) const = 0;
  /// Waits in line for all of them. `waits` is told why, and nothing when it is over.
  virtual Task<Result<std::unique_ptr<HeldPermits>>> acquire(std::string agent,
                                                             std::function<void(std::string)> waits) = 0;
};

}  // namespace stint::domain
