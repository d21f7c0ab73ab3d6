/// The engine of one node: claims runs from the store, assigns them to workers, renews its lease, and hands runs back
/// when it drains. The store has the truth: this process may be killed at any moment.
///
/// Own thread only. `run` returns when a drain has ended; the parts must outlive it.
#pragma once

#include "domain/driver.hpp"
#include "domain/system.hpp"
#include "engine/limit_waits.hpp"
#include "events/changes.hpp"
#include "pool/worker.hpp"
#include "project/agent_registry.hpp"
#include "stint/notification.hpp"
#include "stint/scope.hpp"
#include "stint/worker_pool.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stint::engine {

using domain::kPromptAgent;
using project::AccountVariant;
using project::agent_of;
using project::AgentRegistry;
using project::AgentSpec;
using project::find_entry;
using project::find_spec;
using project::name_in_store;
using project::variant_name;

struct EngineOptions {
  std::string label = "stint";  ///< for people: host and process
  PoolOptions pool;             ///< the queue is in the store; its capacity is the autoscaler's reference
  Duration beat_every = std::chrono::seconds(1);
  Duration lease = std::chrono::seconds(15);  ///< as in the store; all work is ended before it expires
  Duration fence_before = std::chrono::seconds(3);
  Duration look_every = std::chrono::seconds(1);  ///< polls for work without a notification
  /// How often the runs that this node owns in the store are compared with those that it carries. A run that is owned
  /// and not carried in two comparisons is settled as lost.
  Duration compare_every = std::chrono::seconds(5);
  Duration drain_timeout = std::chrono::seconds(30);
  Duration record_max = std::chrono::seconds(5);  ///< of a drain: how long to retry settlements when all work is over
  /// How often to scan for processes that attempts of any node left alive on this host; more often under a lease. Zero:
  /// only after a run was taken from a node that died.
  Duration survivors_every = std::chrono::minutes(1);
  Duration retention{};                               ///< finished runs are deleted after it; zero: never
  Duration prune_every = std::chrono::minutes(1);     ///< by any of the nodes that share the store
  std::optional<std::int64_t> cost_micros_per_day{};  ///< of all nodes that share the store; see set_cost_per_day()
  /// Limits of this process for single calls of attempts, by name.
  std::map<std::string, std::uint32_t> call_limits{};
  /// The only run that this node carries, and its agent; empty: any run.
  std::string only, only_agent;
};

enum class Phase : std::uint8_t {
  starting,
  serving,
  finishing,     ///< draining: claims nothing new, carried runs may finish
  handing_back,  ///< draining: carried runs are ended and handed back to the store
  stopped,
};
[[nodiscard]] std::string_view to_string(Phase phase) noexcept;

struct DrainReport {
  std::uint64_t finished = 0;     ///< settled since the drain began, in any state
  std::uint64_t handed_back = 0;  ///< of those, back in the queue
  std::uint64_t in_doubt = 0;
  std::uint64_t unrecorded = 0;  ///< ended, but not settled: they are rescued like runs of a node that died
  Duration time{};
};

class Engine {
 public:
  struct Parts {
    Executor& executor;
    store::Store& store;
    domain::Driver& driver;
    domain::Permits& permits;
    const pool::RunCodec& run_codec;
    const domain::System& system;
    domain::Log* log = nullptr;                 ///< null: none
    domain::Survivors* survivors = nullptr;     ///< null: no process outlives its node
    domain::AttemptPlanner* planner = nullptr;  ///< null: the driver needs no AttemptSpec
  };
  Engine(Parts parts, EngineOptions options, AgentRegistry registry);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Enrols this node in the store. run() does it unless it was called before.
  Task<Result<>> enrol();
  /// Runs until drained. Fails if the store can't be used at the start.
  Task<Result<>> run();

  /// Begins a drain. A further call can only shorten its timeout. Returns at once.
  void drain(std::optional<Duration> timeout = {});
  /// Drains without a timeout; runs that are already being handed back are ended without a grace period. Returns at
  /// once.
  void hurry();
  /// The capacities of limits, by name.
  struct Capacities {
    std::map<std::string, std::uint32_t> in_store{};
    std::map<std::string, std::uint32_t> of_calls{};  ///< as EngineOptions::call_limits
  };
  /// Replaces the agents and the capacities of limits. Running attempts keep those with which they began, so a call
  /// limit that is no longer named stays. If it fails, nothing changes.
  Task<Result<>> reload(AgentRegistry registry, Capacities capacities);
  /// Limits of this process for single calls of attempts.
  [[nodiscard]] pool::CallLimits& call_limits() noexcept { return call_limits_; }
  /// Ends a run if this node carries it. The caller has already recorded the stop in the store.
  bool stop_here(std::string_view id, pool::Carried::Stop why, std::string text);

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] bool is_draining() const noexcept { return phase_ > Phase::serving; }
  [[nodiscard]] const AgentRegistry& registry() const noexcept { return *registry_; }
  [[nodiscard]] events::Changes& changes() noexcept { return changes_; }
  [[nodiscard]] PoolHealth health() const { return pool_.health(); }
  Result<> resize(std::size_t workers);
  /// Sets the size, and the bounds of the autoscaler; absent values stay.
  Result<> scale(std::optional<std::size_t> workers, std::optional<std::size_t> min, std::optional<std::size_t> max);
  [[nodiscard]] const pool::Worker& worker() const noexcept { return worker_; }
  /// Waits until a run is taken, its work is over, or it is settled.
  Task<> worker_moved() { return wait_for(worker_.moved()); }
  [[nodiscard]] std::optional<store::NodeNumber> owner() const noexcept { return owner_; }
  /// Why an agent's runs wait for permits of this host, if they do.
  [[nodiscard]] const std::map<std::string, domain::WaitReason>& waits() const noexcept { return waits_; }
  /// For how long, and what for.
  [[nodiscard]] const LimitWaits& limit_waits() const noexcept { return limit_waits_; }
  /// Why the only run of this node can't begin, and waiting does not help: a limit that can't be used.
  [[nodiscard]] const std::optional<Error>& cannot_begin() const noexcept { return cannot_begin_; }
  [[nodiscard]] const DrainReport& drained() const noexcept { return drain_report_; }
  /// There may be something to claim.
  void nudge() noexcept { wakeup_.notify(); }
  /// Why nothing is claimed although there is work; empty: claims go on.
  [[nodiscard]] const std::optional<domain::Shortage>& shortage() const noexcept {
    return host_shortage_ ? host_shortage_ : day_shortage_;
  }
  /// What the host lacks. While there is a shortage, no run begins.
  void set_shortage(std::optional<domain::Shortage> shortage);
  [[nodiscard]] const std::optional<domain::Shortage>& host_shortage() const noexcept { return host_shortage_; }
  /// The budget of a day (UTC, by the store's clock): while nothing is left of it, no run is begun; those that run go
  /// on. Looked at once in `look_every`, and before the first run. None: no bound.
  void set_cost_per_day(std::optional<std::int64_t> cost_micros);
  [[nodiscard]] std::optional<std::int64_t> cost_per_day() const noexcept { return cost_micros_per_day_; }
  pool::StoreHealth& store_health() noexcept { return store_health_; }
  /// Why this node can't take runs although it serves; empty: it can. Makes no call to the store.
  [[nodiscard]] std::string why_unready() const;

 private:
  // The lease, and periodic tasks.
  Task<> beat();
  void handle_stop(const store::StopAsked& stop);
  Task<> watch_lease();
  Task<> fence(std::string why);
  Task<> tick();
  Task<> watch_survivors();
  void report(const domain::Survivors::Ending& ending);
  Task<> prune();
  Task<> watch_pool();
  /// Adds an event of this node to the feed. A store that does not answer costs only the event.
  Task<> announce(std::string cause, std::string data);
  Task<> watch_day();
  Task<> look_at_day();
  // Runs that are owned and not carried (orphans.cpp).
  struct Orphan {
    std::uint64_t claims_before = 0;  // claims_asked_ when it was first seen
    bool settling = false;
    std::optional<std::uint64_t> settled;  // claims_asked_ when the store had settled it
  };
  using CarriedKey = std::pair<std::string, store::Fence>;  // the id of the run, and the fence
  Task<> watch_orphans();
  void log_slow_endings();
  void forget_orphans(const std::set<CarriedKey>& owned);
  Task<> find_orphans();
  Task<> settle_orphan(store::NodeNumber owner, store::Claim claim);
  Task<> leave(store::NodeNumber owner);
  Task<> settle_all_owned(store::NodeNumber owner);
  [[nodiscard]] std::set<CarriedKey> carried_keys() const;
  // From the queue to a worker (dispatch.cpp).
  Task<> dispatch();
  Task<bool> dispatch_once();
  Task<Result<std::vector<store::Ready>>> look_for_work();
  Task<> acquire_and_claim(std::string agent);
  Task<Result<std::unique_ptr<domain::HeldPermits>>> acquire_permits(const std::string& agent);
  void report_unusable(const std::string& agent, const Error& error);
  void leave_lines(const std::vector<store::Ready>& ready);
  void record_waits(const std::vector<store::Ready>& ready);
  Task<> record_wait_of_only();
  void start_back_off(const std::string& agent);
  [[nodiscard]] bool is_backing_off(const std::string& agent) const;
  void shorten_back_offs();
  [[nodiscard]] Duration until_next_look() const;
  Task<std::uint32_t> claim(std::string agent, std::uint32_t most, std::unique_ptr<domain::HeldPermits> permits);
  Task<std::vector<store::Claim>> claim_runs(store::NodeNumber owner, const std::string& agent, std::uint32_t most);
  bool assign(store::NodeNumber owner, store::Claim& claim, std::unique_ptr<domain::HeldPermits> permits);
  Task<> give_back(store::NodeNumber owner, std::vector<store::Claim> claims);
  [[nodiscard]] std::uint32_t free_workers() const;
  [[nodiscard]] bool may_claim() const { return phase_ == Phase::serving && owner_ && !fencing_ && !shortage(); }
  [[nodiscard]] std::map<std::string_view, std::uint32_t> running() const;

  Task<> carry_out_drain();
  Task<> hand_back();
  [[nodiscard]] bool is_work_over() const;
  void keep_a_worker();
  Task<> next_step(Duration every);
  Task<> woken(std::uint64_t seen);
  Task<> wait_for(Notification& notification);
  Task<> pause_until(TimePoint until);

  Parts parts_;
  domain::NoLog no_log_;
  domain::Log& log_;
  const EngineOptions options_;
  std::shared_ptr<const AgentRegistry> registry_;  // shared with runs that were begun under it
  events::Changes changes_;
  pool::StoreHealth store_health_;
  pool::Settler settler_;
  pool::CallLimits call_limits_;
  pool::Worker worker_;
  WorkerPool<std::unique_ptr<pool::Assignment>> pool_;
  Phase phase_ = Phase::starting;
  std::optional<store::NodeNumber> owner_;
  TimePoint leased_until_{};
  bool fencing_ = false;
  std::uint32_t reserved_ = 0;               // workers reserved for claims in flight
  std::uint32_t with_permits_ = 0;           // claims that hold permits and wait for a worker
  std::uint32_t startable_ = 0;              // runs that more workers could start, at the last check
  std::map<std::string, Scope*> acquiring_;  // agents that wait in line for permits; null: not in line now
  std::map<std::string, domain::WaitReason> waits_;
  LimitWaits limit_waits_;
  std::map<std::string, std::string> logged_unusable_;  // by agent: the reason that was logged
  std::optional<Error> cannot_begin_;
  /// Of an agent that seemed to have a ready run but whose claim got none: its claims get rarer.
  struct ClaimBackOff {
    TimePoint since{}, until{};
    Duration length{};
  };
  std::map<std::string, ClaimBackOff> back_offs_;
  std::uint64_t claims_asked_ = 0;
  std::set<std::uint64_t> claims_in_flight_;  // by their number
  std::map<CarriedKey, Orphan> orphans_;
  std::map<CarriedKey, bool> endings_;  // attempts that were being ended at the last check; true: it was logged
  std::optional<domain::Shortage> host_shortage_, day_shortage_;
  std::optional<std::int64_t> cost_micros_per_day_;
  Notification day_changed_;  // the budget of a day was changed
  Notification pool_scaled_;  // a person changed the size of the pool
  Notification wakeup_;       // there may be something to claim, or a worker is free
  Notification drain_asked_;
  Notification rescued_;                  // runs were taken from a node that died
  std::optional<TimePoint> drain_until_;  // none: no drain was requested
  std::uint32_t hurries_ = 0;
  DrainReport drain_report_;
  TimePoint prune_at_{};
  Scope* scope_ = nullptr;
};

}  // namespace stint::engine
