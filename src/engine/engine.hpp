/// The engine of one process: takes runs from the store, gives them to workers, keeps its lease, and hands everything
/// back when it leaves. What is true is in the store; this process may be killed at any moment.
///
/// Own thread only. `run` returns when a drain has ended; the parts must outlive it.
#pragma once

#include "domain/ambient.hpp"
#include "domain/driver.hpp"
#include "engine/book.hpp"
#include "events/changes.hpp"
#include "pool/worker.hpp"
#include "stint/bell.hpp"
#include "stint/scope.hpp"
#include "stint/worker_pool.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stint::engine {

struct EngineOptions {
  std::string label = "stint";  ///< for people: host and process
  PoolOptions pool;             ///< the queue is the store's; its capacity is what the autoscaler compares with
  Duration beat_every = std::chrono::seconds(1);
  Duration lease = std::chrono::seconds(15);  ///< the store's; work is ended before it is over
  Duration fence_before = std::chrono::seconds(3);
  Duration look_every = std::chrono::seconds(1);  ///< for work that nobody told us of
  Duration drain_timeout = std::chrono::seconds(30);
  Duration retention{};  ///< finished runs are forgotten after it; zero: never
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
  Duration time{};
};

class Engine {
 public:
  struct Parts {
    Executor& executor;
    store::Store& store;
    domain::Driver& driver;
    domain::Permits& permits;
    const pool::Scribe& scribe;
    const domain::Ambient& ambient;
    domain::Log* log = nullptr;  ///< null: none
  };
  Engine(Parts parts, EngineOptions options, Book book);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Makes this process known to the store: before run(), for who has to be known earlier.
  Task<Result<>> enlist();
  /// Until drained. Fails if the store can't be used at the start.
  Task<Result<>> run();

  /// Begins a drain; again: hurries. Returns at once.
  void drain(std::optional<Duration> timeout = {});
  /// Agents as they are now. Runs that are under way keep what they were begun with.
  Task<Result<>> reload(Book book);
  /// Ends a run that this process carries, if it does. What the store thinks of it was said before.
  bool stop_here(std::string_view id, pool::Carried::Stop why, std::string text);

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] const Book& book() const noexcept { return *book_; }
  [[nodiscard]] events::Changes& changes() noexcept { return changes_; }
  [[nodiscard]] PoolHealth health() const { return pool_.health(); }
  Result<> resize(std::size_t workers);
  /// Size, and the bounds of the autoscaler; what is absent stays.
  Result<> scale(std::optional<std::size_t> workers, std::optional<std::size_t> min, std::optional<std::size_t> max);
  [[nodiscard]] const pool::Worker& worker() const noexcept { return worker_; }
  [[nodiscard]] std::optional<store::WorkerNumber> owner() const noexcept { return owner_; }
  /// Why an agent's runs wait for permits of this host, if they do.
  [[nodiscard]] const std::map<std::string, std::string>& waits() const noexcept { return waits_; }
  [[nodiscard]] const DrainReport& drained() const noexcept { return drain_report_; }
  /// Something to claim may have come up.
  void nudge() noexcept { stirred_.ring(); }
  /// Why nothing is claimed although there is work; empty: nothing holds it up.
  [[nodiscard]] const std::string& held_up() const noexcept { return held_up_; }
  void hold_up(std::string why);

 private:
  // The lease, and what is due.
  Task<> beat();
  void hear_stop(const store::StopAsked& stop);
  Task<> watch_lease();
  Task<> fence(std::string why);
  Task<> tick();
  Task<> prune();
  // From the queue to a worker (dispatch.cpp).
  Task<> dispatch();
  Task<bool> dispatch_once();
  Task<Result<std::vector<store::Ready>>> look_for_work();
  Task<> feed(std::string agent);
  Task<Result<std::unique_ptr<domain::HeldPermits>>> stand_in_line(const std::string& agent);
  void leave_lines(const std::vector<store::Ready>& but_of);
  Task<std::uint32_t> claim(std::string agent, std::uint32_t most, std::unique_ptr<domain::HeldPermits> permits);
  Task<std::vector<store::Claim>> ask_claim(store::WorkerNumber owner, const std::string& agent, std::uint32_t most);
  bool assign(store::WorkerNumber owner, store::Claim& claim, std::unique_ptr<domain::HeldPermits> permits);
  Task<> give_back(store::WorkerNumber owner, std::vector<store::Claim> claims);
  [[nodiscard]] std::uint32_t free_workers() const;
  [[nodiscard]] bool may_claim() const { return phase_ == Phase::serving && owner_ && !fencing_ && held_up_.empty(); }
  [[nodiscard]] std::map<std::string_view, std::uint32_t> running() const;

  Task<> carry_out_drain();
  void keep_a_worker();
  Task<> next_step(Duration every);
  Task<> stir(std::uint64_t seen);
  Task<> hear(Bell& bell);
  Task<> nap(TimePoint until);

  Parts parts_;
  domain::NoLog no_log_;
  domain::Log& log_;
  const EngineOptions options_;
  std::shared_ptr<const Book> book_;  // shared with runs that were begun under it
  events::Changes changes_;
  pool::Settler settler_;
  pool::Worker worker_;
  WorkerPool<std::unique_ptr<pool::Assignment>> pool_;
  Phase phase_ = Phase::starting;
  std::optional<store::WorkerNumber> owner_;
  TimePoint leased_until_{};
  bool fencing_ = false;
  std::uint32_t reserved_ = 0;             // workers promised to claims that are on their way
  std::uint32_t with_permits_ = 0;         // who has permits and waits for a worker
  std::uint32_t startable_ = 0;            // runs that more workers could start, when last looked
  std::map<std::string, Scope*> feeding_;  // who stands in line for an agent's permits; null: not yet
  std::map<std::string, std::string> waits_;
  std::string held_up_;
  Bell stirred_;  // there may be something to claim, or a worker is free
  Bell drain_asked_;
  std::optional<Duration> drain_timeout_;
  std::uint32_t drains_asked_ = 0;
  DrainReport drain_report_;
  TimePoint prune_at_{};
  Scope* scope_ = nullptr;
};

}  // namespace stint::engine
