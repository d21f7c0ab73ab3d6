/// The engine of one process: takes runs from the store, gives them to workers, keeps its lease, and hands everything
/// back when it leaves. What is true is in the store; this process may be killed at any moment.
///
/// Own thread only. `run` returns when a drain has ended; the parts must outlive it.
#pragma once

#include "domain/driver.hpp"
#include "domain/system.hpp"
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
  PoolOptions pool;             ///< the queue is the store's; its capacity is what the autoscaler compares with
  Duration beat_every = std::chrono::seconds(1);
  Duration lease = std::chrono::seconds(15);  ///< the store's; work is ended before it is over
  Duration fence_before = std::chrono::seconds(3);
  Duration look_every = std::chrono::seconds(1);  ///< for work that nobody told us of
  /// How often what the store says we own is compared with what we carry. What is owned and not carried for two looks
  /// is settled as lost.
  Duration compare_every = std::chrono::seconds(5);
  Duration drain_timeout = std::chrono::seconds(30);
  Duration record_max = std::chrono::seconds(5);  ///< of a drain: for a store that takes nothing, when all work is over
  /// A look at what attempts left alive here, whoever carried them; more often under a lease. Zero: only after a run
  /// was taken from a process that died.
  Duration survivors_every = std::chrono::minutes(1);
  Duration retention{};                            ///< finished runs are forgotten after it; zero: never
  Duration prune_every = std::chrono::minutes(1);  ///< over all processes that share the store
  /// Limits of this process for single calls of attempts, by name.
  std::map<std::string, std::uint32_t> call_limits{};
  /// The one run that this process carries, and of which agent; empty: whatever comes.
  std::string only, only_agent;
};

enum class Phase : std::uint8_t {
  starting,
  serving,
  finishing,     ///< draining: takes nothing new, what runs may finish
  handing_back,  ///< draining: what still runs is ended, and goes back to the store
  stopped,
};
[[nodiscard]] std::string_view to_string(Phase phase) noexcept;

struct DrainReport {
  std::uint64_t finished = 0;     ///< settled since the drain began, in whatever state
  std::uint64_t handed_back = 0;  ///< of those, back in the queue
  std::uint64_t in_doubt = 0;
  std::uint64_t unrecorded =
      0;  ///< ended, but the store could not be written: they come back as those of a dead process
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
    domain::Survivors* survivors = nullptr;     ///< null: nothing outlives its process
    domain::AttemptPlanner* planner = nullptr;  ///< null: the driver needs no AttemptSpec
  };
  Engine(Parts parts, EngineOptions options, AgentRegistry registry);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Makes this process known to the store: before run(), for who has to be known earlier.
  Task<Result<>> enlist();
  /// Until drained. Fails if the store can't be used at the start.
  Task<Result<>> run();

  /// Begins a drain. Again: nothing, but that a timeout that is over earlier counts. Returns at once.
  void drain(std::optional<Duration> timeout = {});
  /// Drains without a timeout; what is being handed back already gets no time to end politely. Returns at once.
  void hurry();
  /// The capacities of limits, by name.
  struct Capacities {
    std::map<std::string, std::uint32_t> in_store{};
    std::map<std::string, std::uint32_t> of_calls{};  ///< as EngineOptions::call_limits
  };
  /// Agents and limits as they are now. Runs that are under way keep what they were begun with, so a limit of calls
  /// that is named no more stays. If it fails, everything stays as it was.
  Task<Result<>> reload(AgentRegistry registry, Capacities capacities);
  /// Limits of this process for single calls of attempts.
  [[nodiscard]] pool::CallLimits& call_limits() noexcept { return call_limits_; }
  /// Ends a run that this process carries, if it does. What the store thinks of it was said before.
  bool stop_here(std::string_view id, pool::Carried::Stop why, std::string text);

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] bool is_draining() const noexcept { return phase_ > Phase::serving; }
  [[nodiscard]] const AgentRegistry& registry() const noexcept { return *registry_; }
  [[nodiscard]] events::Changes& changes() noexcept { return changes_; }
  [[nodiscard]] PoolHealth health() const { return pool_.health(); }
  Result<> resize(std::size_t workers);
  /// Size, and the bounds of the autoscaler; what is absent stays.
  Result<> scale(std::optional<std::size_t> workers, std::optional<std::size_t> min, std::optional<std::size_t> max);
  [[nodiscard]] const pool::Worker& worker() const noexcept { return worker_; }
  /// Until a run was taken, its work is over, or it was let go.
  Task<> worker_moved() { return hear(worker_.moved()); }
  [[nodiscard]] std::optional<store::NodeNumber> owner() const noexcept { return owner_; }
  /// Why an agent's runs wait for permits of this host, if they do.
  [[nodiscard]] const std::map<std::string, domain::WaitReason>& waits() const noexcept { return waits_; }
  /// Why the one run that this process carries can't begin, and will not by waiting: a limit that can't be used.
  [[nodiscard]] const std::optional<Error>& cannot_begin() const noexcept { return cannot_begin_; }
  [[nodiscard]] const DrainReport& drained() const noexcept { return drain_report_; }
  /// Something to claim may have come up.
  void nudge() noexcept { stirred_.notify(); }
  /// Why nothing is claimed although there is work; empty: nothing holds it up.
  [[nodiscard]] const std::optional<domain::Shortage>& shortage() const noexcept { return shortage_; }
  /// While there is one, no run is begun.
  void set_shortage(std::optional<domain::Shortage> shortage);
  pool::StoreHealth& store_health() noexcept { return store_health_; }
  /// Why it can't take runs although it serves; empty: it can. Asks nobody.
  [[nodiscard]] std::string why_unready() const;

 private:
  // The lease, and what is due.
  Task<> beat();
  void hear_stop(const store::StopAsked& stop);
  Task<> watch_lease();
  Task<> fence(std::string why);
  Task<> tick();
  Task<> watch_survivors();
  void report(const domain::Survivors::Ending& ending);
  Task<> prune();
  // What is owned and not carried (orphans.cpp).
  struct Orphan {
    std::uint64_t claims_before = 0;  // how many claims had been asked when it was first seen
    bool settling = false;
    std::optional<std::uint64_t> settled;  // how many claims had been asked when the store had settled it
  };
  using AttemptKey = std::pair<std::string, std::int64_t>;  // id and fence
  Task<> watch_orphans();
  void log_slow_endings();
  void forget_orphans(const std::set<AttemptKey>& owned);
  Task<> find_orphans();
  Task<> settle_orphan(store::NodeNumber owner, store::Claim claim);
  Task<> leave(store::NodeNumber owner);
  Task<> settle_all_owned(store::NodeNumber owner);
  [[nodiscard]] std::set<AttemptKey> carried_keys() const;
  // From the queue to a worker (dispatch.cpp).
  Task<> dispatch();
  Task<bool> dispatch_once();
  Task<Result<std::vector<store::Ready>>> look_for_work();
  Task<> feed(std::string agent);
  Task<Result<std::unique_ptr<domain::HeldPermits>>> stand_in_line(const std::string& agent);
  void tell_unusable(const std::string& agent, const Error& error);
  void leave_lines(const std::vector<store::Ready>& but_of);
  void rest(const std::string& agent);
  [[nodiscard]] bool rests(const std::string& agent) const;
  void wake_resting();
  [[nodiscard]] Duration until_next_look() const;
  Task<std::uint32_t> claim(std::string agent, std::uint32_t most, std::unique_ptr<domain::HeldPermits> permits);
  Task<std::vector<store::Claim>> ask_claim(store::NodeNumber owner, const std::string& agent, std::uint32_t most);
  bool assign(store::NodeNumber owner, store::Claim& claim, std::unique_ptr<domain::HeldPermits> permits);
  Task<> give_back(store::NodeNumber owner, std::vector<store::Claim> claims);
  [[nodiscard]] std::uint32_t free_workers() const;
  [[nodiscard]] bool may_claim() const { return phase_ == Phase::serving && owner_ && !fencing_ && !shortage_; }
  [[nodiscard]] std::map<std::string_view, std::uint32_t> running() const;

  Task<> carry_out_drain();
  Task<> hand_back();
  [[nodiscard]] bool is_work_over() const;
  void keep_a_worker();
  Task<> next_step(Duration every);
  Task<> stir(std::uint64_t seen);
  Task<> hear(Notification& notification);
  Task<> nap(TimePoint until);

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
  std::uint32_t reserved_ = 0;             // workers promised to claims that are on their way
  std::uint32_t with_permits_ = 0;         // who has permits and waits for a worker
  std::uint32_t startable_ = 0;            // runs that more workers could start, when last looked
  std::map<std::string, Scope*> feeding_;  // who stands in line for an agent's permits; null: not yet
  std::map<std::string, domain::WaitReason> waits_;
  std::map<std::string, std::string> told_unusable_;  // by agent: what the log said of its permits
  std::optional<Error> cannot_begin_;
  /// An agent whose claim was in vain although there seemed to be something: it is asked again ever more slowly.
  struct Rest {
    TimePoint since{}, until{};
    Duration length{};
  };
  std::map<std::string, Rest> resting_;
  std::uint64_t claims_asked_ = 0;
  std::set<std::uint64_t> claims_under_way_;  // by their number
  std::map<AttemptKey, Orphan> orphans_;
  std::map<AttemptKey, bool> endings_;  // attempts that were being ended at the last look; true: the log has told
  std::optional<domain::Shortage> shortage_;
  Notification stirred_;  // there may be something to claim, or a worker is free
  Notification drain_asked_;
  Notification buried_;                   // runs were taken from a process that died
  std::optional<TimePoint> drain_until_;  // none: nobody has asked for one
  std::uint32_t hurries_ = 0;
  DrainReport drain_report_;
  TimePoint prune_at_{};
  Scope* scope_ = nullptr;
};

}  // namespace stint::engine
