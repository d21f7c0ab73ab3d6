/// What the API, the commands and the tests ask of a fleet. Two stand behind it: the store itself, with or without an
/// engine in this process (local_fleet.hpp), and a daemon somewhere else, by HTTP. Own thread only.
#pragma once

#include "domain/driver.hpp"
#include "engine/engine.hpp"
#include "events/changes.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stint::engine {

/// A wish for a run.
struct Submission {
  std::string id;                  ///< empty: one is made
  std::string agent;               ///< empty: `prompt` says all
  bool agent_by_default = false;   ///< the caller named none: `agent` is what the settings say now
  domain::ArgumentValues args;     ///< by name
  std::vector<std::string> words;  ///< as on a command line: values in order, `key=value`
  std::string prompt;              ///< without an agent's file
  std::string session, parent, key;
  std::optional<int> priority;  ///< else the agent's
  domain::BudgetSpec budget;
  std::optional<Duration> deadline;  ///< from now; or, if both are there, the earlier
  std::optional<WallTime> deadline_at;
  Duration delay{};
  std::string driver, model, program;
  std::string directory;  ///< where it runs; empty: in the checkout of who carries it
  std::string retry_of;
  std::vector<domain::RunInput::BudgetAbove> budgets_above;  ///< of a retry whose parent has ended
  std::string trace;                                         ///< empty: a new one
  bool kept = false;                                         ///< only this process may carry it, as long as it lives
  bool awaited = false;                                      ///< who submits it will ask for its end, by ended()
  bool parent_waits = false;  ///< `parent` keeps its permits until this run has ended: refused if it needs those
};
struct Submitted {
  std::string id;
  bool created = true;                                ///< false: it was there, by its key
  std::shared_ptr<events::Changes::Ending> ending{};  ///< of one that is awaited, if its end is told here
};

/// What became of a run, for who only wants its answer.
struct Ended {
  domain::RunState state = domain::RunState::succeeded;
  std::string error, answer;
};

/// A run as people see it.
struct RunView {
  store::Run run;
  domain::RunInput input;
  domain::RunMemo memo;
  std::optional<std::string> carried_by;  ///< a worker of the process that answers
};

struct WhyView {
  std::string run;
  domain::RunState state = domain::RunState::queued;
  std::vector<store::Why> reasons;  ///< none: it does not wait
};

struct AgentView {
  std::string name, description, driver, usage;
  std::string refused;  ///< why it can't run; empty: it can
  std::optional<std::uint32_t> max_concurrency;
  std::vector<store::LimitUse> limits;
};

struct LimitView {
  std::string name;
  std::string home;  ///< host, or cluster
  std::optional<std::uint32_t> capacity;
  std::int64_t held = 0;
  std::vector<std::string> holders, waiters;  ///< in words
  bool paused = false;
  std::optional<WallTime> paused_until;
  /// The run that holds each unit; empty: another tool. None: only their number is known. Not sent by the API.
  std::optional<std::vector<std::string>> holder_runs{};
};

/// The pool of a daemon, and the queues before it. Sizes count all that is queued, as the bounds do, due or not.
struct FleetHealth : PoolHealth {
  std::vector<store::QueueState> queues;  ///< of the agents that it knows, or that have something queued
  double queue_fullness = 0;              ///< of the fullest: at 1 an agent's runs are refused
};

struct FleetStatus {
  Phase phase = Phase::stopped;  ///< of this daemon; stopped: none answers
  std::string version, store;
  std::optional<FleetHealth> pool;
  store::Stats stats;
  std::uint64_t queue_capacity = 0;
  std::vector<LimitView> limits;
  std::vector<RunView> running;
  std::string held_up;  ///< why nothing is begun although there is work
  std::int64_t money_micros_today = 0, tokens_today = 0;
  std::optional<std::int64_t> money_micros_per_day;
  std::uint64_t notes_left_out = 0;     ///< of tools and the like, beyond what a run may leave, since this daemon began
  std::uint64_t settlements_stale = 0;  ///< what this daemon said of runs too late: others had them
};

/// What was ended by a cancel, proven.
struct Receipt {
  RunView run;
  std::vector<std::string> reached;  ///< ids of runs below it that were cancelled with it
  Duration time{};
};

class Fleet {
 public:
  Fleet() = default;
  virtual ~Fleet() = default;
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// One answer for each, in their order. `invalid` names what is wrong, `full` and `closed` say when to come again.
  virtual Task<Result<std::vector<Result<Submitted>>>> submit(std::vector<Submission> wishes) = 0;
  /// By id or a prefix that only one has; none: there is no such run.
  virtual Task<Result<std::optional<RunView>>> find(std::string id) = 0;
  virtual Task<Result<std::vector<RunView>>> list(store::Filter filter) = 0;
  virtual Task<Result<std::vector<store::Event>>> events(std::string id, std::int64_t after, std::uint32_t most) = 0;
  virtual Task<Result<store::FeedPage>> feed(std::string cursor, std::uint32_t most) = 0;
  virtual Task<Result<store::Output>> output(std::string id) = 0;
  virtual Task<Result<WhyView>> why(std::string id) = 0;
  /// What of the run, or of any if it is empty, may have changed since `seen`; at most so long. What to pass next.
  virtual Task<std::uint64_t> changed(std::string id, std::uint64_t seen, Duration most) = 0;
  /// Until it has ended, or waits for a person. `unavailable`: who answers leaves before that, and others go on with
  /// it.
  virtual Task<Result<RunView>> wait(std::string id);
  /// As wait(), for less: who carries it here says how it ended, and the store need not be asked.
  virtual Task<Result<Ended>> ended(Submitted run);

  /// Answers when its work is proven gone.
  virtual Task<Result<Receipt>> cancel(std::string id) = 0;
  /// A new run with the same wish.
  virtual Task<Result<Submitted>> retry(std::string id) = 0;
  virtual Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) = 0;
  /// One that is parked goes on.
  virtual Task<Result<>> answer(std::string id) = 0;

  virtual Task<Result<std::vector<AgentView>>> agents() = 0;
  virtual Task<Result<std::vector<LimitView>>> limits() = 0;
  virtual Task<Result<>> resize_limit(std::string name, std::uint32_t capacity) = 0;
  virtual Task<Result<>> pause(std::string limit, std::optional<Duration> length) = 0;
  virtual Task<Result<std::uint64_t>> resume(std::string limit) = 0;

  virtual Task<Result<FleetStatus>> status() = 0;
  /// Of the daemon's pool, with the store's queue.
  virtual Task<Result<FleetHealth>> health() = 0;
  [[nodiscard]] virtual Phase phase() const = 0;
  /// Why runs can't be taken now although it serves; empty: they can. Asks nobody.
  [[nodiscard]] virtual std::string why_unready() const { return {}; }
  struct Scale {
    std::optional<std::size_t> workers, min, max;
  };
  virtual Task<Result<FleetHealth>> scale(Scale scale) = 0;
  struct Drain {
    std::optional<Duration> timeout;  ///< none: as the settings say
    bool hurry = false;               ///< without a timeout, and without time to end politely if that was given
  };
  virtual Task<Result<>> drain(Drain drain) = 0;
};

/// It does not change any more by itself.
[[nodiscard]] bool is_at_rest(const store::Run& run) noexcept;

}  // namespace stint::engine
