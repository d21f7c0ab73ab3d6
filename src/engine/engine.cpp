#include "engine/engine.hpp"

#include "domain/budget_core.hpp"
#include "domain/fleet_event.hpp"
#include "engine/rescue.hpp"
#include "pool/store_backoff.hpp"
#include "stint/combinators.hpp"

#include <algorithm>

namespace stint::engine {
namespace {

constexpr int kSurvivorLooksPerLease = 5;  // the last scan, the kill and its proof all fit into the lease
constexpr int kSurvivorLookShare = 100;    // a scan reads all of /proc: it may take a hundredth of the time

/// A lease that lasts as long as the process has no end, and adding it would overflow.
TimePoint end_of(TimePoint asked_at, Duration lease) {
  return lease == Duration::max() ? TimePoint::max() : asked_at + lease;
}

/// Defines all agents in the store, and those variants that the store already has: others are defined when a run is
/// submitted to them.
Task<Result<>> define_all(store::Store& store, std::shared_ptr<const AgentRegistry> registry) {
  std::vector<store::AgentEntry> entries;
  for (const auto& [name, spec] : *registry) entries.push_back(spec.entry);
  const bool variants = std::ranges::any_of(*registry, [](const auto& each) { return !each.second.variants.empty(); });
  if (!variants) co_return co_await store.define(std::move(entries));
  STINT_CO_TRY(const std::vector<store::AgentEntry> known, co_await store.agents());
  for (const store::AgentEntry& each : known) {
    if (agent_of(each.name) == each.name) continue;
    if (const store::AgentEntry* const variant = find_entry(*registry, each.name)) entries.push_back(*variant);
  }
  co_return co_await store.define(std::move(entries));
}

/// A node that carries only one run claims no other.
store::NodeKind kind_of(const EngineOptions& options) {
  return options.only.empty() ? store::NodeKind::any : store::NodeKind::one_run;
}

}  // namespace

using pool::Carried;
using pool::StoreBackoff;

std::string_view to_string(Phase phase) noexcept {
  switch (phase) {
    case Phase::starting: return "starting";
    case Phase::serving: return "serving";
    case Phase::finishing: return "finishing";
    case Phase::handing_back: return "handing_back";
    case Phase::stopped: return "stopped";
  }
  return "unknown";
}

Engine::Engine(Parts parts, EngineOptions options, AgentRegistry registry)
    : parts_(parts),
      log_(parts.log != nullptr ? *parts.log : no_log_),
      options_(std::move(options)),
      registry_(std::make_shared<const AgentRegistry>(std::move(registry))),
      store_health_(parts_.executor, log_, parts_.system.random),
      settler_(parts_.store, store_health_, log_),
      worker_({parts_.store, parts_.driver, parts_.planner, parts_.run_codec, parts_.system, settler_, store_health_,
               changes_, call_limits_, log_}),
      pool_([this](std::unique_ptr<pool::Assignment> assignment,
                   JobContext& job) { return worker_.carry(std::move(assignment), job); },
            [this] {
              PoolOptions pool = options_.pool;
              pool.startable_queue_size = [this] { return startable_; };
              return pool;
            }()) {
  cost_micros_per_day_ = options_.cost_micros_per_day;
  for (const auto& [name, capacity] : options_.call_limits) {
    STINT_ASSERT(call_limits_.set(name, capacity) && "a new limit takes any capacity");
  }
  pool_.on_done([this](JobId, Result<>) { wakeup_.notify(); });
}

Engine::~Engine() = default;

Task<Result<>> Engine::enrol() {
  STINT_CO_CHECK(co_await define_all(parts_.store, registry_));
  const TimePoint asked_at = parts_.executor.now();
  STINT_CO_TRY(owner_, co_await parts_.store.enrol(options_.label, kind_of(options_)));
  leased_until_ = end_of(asked_at, options_.lease);
  co_return Result<>();
}

Task<Result<>> Engine::run() {
  if (!owner_) STINT_CO_CHECK(co_await enrol());
  auto body = [&](Scope& scope) -> Task<Result<>> {
    scope_ = &scope;
    pool_.start(scope);
    scope.spawn(settler_.run());
    scope.spawn(beat());
    scope.spawn(watch_lease());
    scope.spawn(tick());
    scope.spawn(watch_orphans());
    scope.spawn(watch_pool());
    if (parts_.survivors != nullptr) scope.spawn(watch_survivors());
    phase_ = Phase::serving;
    co_await look_at_day();
    scope.spawn(watch_day());
    scope.spawn(dispatch());
    if (!drain_until_) co_await drain_asked_.wait(drain_asked_.count());
    co_await carry_out_drain();
    (void)co_await pool_.stop();
    phase_ = Phase::stopped;
    changes_.notify_all();
    if (owner_) co_await leave(*owner_);
    scope.cancel();
    co_return Result<>();
  };
  auto ended = co_await with_scope(std::ref(body));
  scope_ = nullptr;
  co_return ended;
}

Task<Result<>> Engine::reload(AgentRegistry registry, Capacities capacities) {
  std::vector<std::string> names;
  for (const auto& [name, spec] : registry) {
    names.push_back(name);
    for (const auto& [variant, entry] : spec.variants) names.push_back(variant);
  }
  const auto next = std::make_shared<const AgentRegistry>(std::move(registry));
  Result<> done = co_await define_all(parts_.store, next);
  if (done) done = co_await parts_.store.configure(std::move(capacities.in_store), std::move(names));
  if (!done) {
    (void)co_await define_all(parts_.store, registry_);  // restores what the first call may have changed
    co_return done;
  }
  for (const auto& [name, capacity] : capacities.of_calls) {
    STINT_ASSERT(call_limits_.set(name, capacity) && "the settings were checked");
  }
  registry_ = next;
  wakeup_.notify();
  co_await announce(std::string(domain::kReloaded), domain::reload_data(next->size()));
  co_return Result<>();
}

bool Engine::stop_here(std::string_view id, Carried::Stop why, std::string text) {
  Carried* const carried = worker_.find(id);
  if (carried == nullptr) return false;
  carried->stop(why, std::move(text));
  return true;
}

void Engine::set_shortage(std::optional<domain::Shortage> shortage) {
  host_shortage_ = std::move(shortage);
  if (host_shortage_) leave_lines({});
  wakeup_.notify();
}

void Engine::set_cost_per_day(std::optional<std::int64_t> cost_micros) {
  if (std::exchange(cost_micros_per_day_, cost_micros) != cost_micros) day_changed_.notify();
}

std::string Engine::why_unready() const {
  std::string why = store_health_.why_unusable();
  if (why.empty() && fencing_) why = "this node lost its lease";
  return why;
}

Result<> Engine::resize(std::size_t workers) {
  STINT_CHECK(pool_.resize(workers));
  pool_scaled_.notify();
  wakeup_.notify();
  return {};
}

Result<> Engine::scale(std::optional<std::size_t> workers, std::optional<std::size_t> min,
                       std::optional<std::size_t> max) {
  if (min || max) {
    const auto bounds = pool_.health().bounds;
    if (!bounds) return fail(Errc::invalid, "this pool has a fixed size: autoscale is off in [pool]");
    STINT_CHECK(pool_.set_bounds(min.value_or(bounds->first), max.value_or(bounds->second)));
  }
  if (!workers) return {};
  return resize(*workers);
}

/// A pool of size 0 must still carry the runs that it was given before.
void Engine::keep_a_worker() {
  const PoolHealth health = pool_.health();
  if (health.target_size == 0 && health.queue_size > 0) (void)pool_.resize(1);
}

// ---- lease ---------------------------------------------------------------------------------------------------------

/// Sleeps until the next multiple of `every`, so that all periodic tasks wake the process together.
Task<> Engine::next_step(Duration every) {
  const auto since = parts_.executor.now().time_since_epoch();
  co_await sleep_until(TimePoint(since - since % every + every));
}

Task<> Engine::beat() {
  while (true) {
    co_await next_step(options_.beat_every);
    if (!owner_) continue;
    const store::NodeNumber owner = *owner_;
    const TimePoint asked_at = parts_.executor.now();
    const auto beat = co_await parts_.store.beat(owner);
    store_health_.record(pool::StoreHealth::Call::beat, beat);
    if (owner_ != owner || !beat) continue;  // watch_lease() handles missing answers
    if (!beat->alive) {
      co_await fence("other nodes have taken its runs");
      continue;
    }
    leased_until_ = end_of(asked_at, options_.lease);
    for (const store::StopAsked& stop : beat->stops) handle_stop(stop);
  }
}

void Engine::handle_stop(const store::StopAsked& stop) {
  for (const auto& [key, carried] : worker_.carried()) {
    if (carried->attempt_key() != stop.attempt) continue;
    if (carried->stopped() != Carried::Stop::none) return;  // a second stop would skip the grace period
    const bool expired = stop.stop == domain::Stop::expired;
    carried->stop(expired ? Carried::Stop::expired : Carried::Stop::cancelled,
                  expired ? "the run's time is used up" : "cancelled");
    return;
  }
}

/// Fences this node before its lease expires: its work must be gone before other nodes may take its runs.
Task<> Engine::watch_lease() {
  if (options_.lease == Duration::max()) co_return;  // the lease lasts as long as the process
  while (true) {
    const TimePoint until = leased_until_ - options_.fence_before;
    if (!owner_ || parts_.executor.now() < until) {
      co_await sleep_until(std::max(until, parts_.executor.now() + options_.beat_every));
      continue;
    }
    co_await fence("the store did not answer within the lease");
  }
}

/// Ends all work at once, because other nodes will take the runs, and enrols again as a new node.
Task<> Engine::fence(std::string why) {
  if (std::exchange(fencing_, true)) co_return;
  log_.write(domain::LogLevel::error, "lease lost",
             {{"why", why}, domain::LogField::number("runs", std::to_string(worker_.carried().size()))});
  settler_.give_up(*owner_);
  owner_.reset();
  leave_lines({});
  for (const auto& [key, carried] : worker_.carried()) carried->stop(Carried::Stop::fenced, why);
  keep_a_worker();
  while (!worker_.carried().empty()) co_await worker_.moved().wait(worker_.moved().count());
  StoreBackoff backoff;
  while (phase_ == Phase::serving) {
    const TimePoint asked_at = parts_.executor.now();
    const auto owner = co_await parts_.store.enrol(options_.label, kind_of(options_));
    store_health_.record(pool::StoreHealth::Call::write, owner);
    if (owner) {
      owner_ = *owner;
      log_.write(domain::LogLevel::info, "enrolled again",
                 {domain::LogField::number("number", std::to_string(owner->value))});
      leased_until_ = end_of(asked_at, options_.lease);
      break;
    }
    if (!co_await backoff.wait(store_health_)) break;
  }
  fencing_ = false;
  wakeup_.notify();
}

/// Does what is due in the store, for all nodes: any of them may do it.
Task<> Engine::tick() {
  while (true) {
    const auto ticked = co_await parts_.store.tick();
    store_health_.record(pool::StoreHealth::Call::tick, ticked);
    if (ticked && ticked->changed()) {
      changes_.notify("");
      wakeup_.notify();
    }
    if (ticked && ticked->lost > 0) rescued_.notify();
    co_await prune();
    Duration pause = options_.look_every;
    if (ticked && ticked->next) {
      pause = std::clamp<Duration>(*ticked->next, Executor::kTick, options_.look_every);
    }
    if (pause == options_.look_every) {
      co_await next_step(pause);
    } else {
      co_await sleep_for(pause);
    }
  }
}

// ---- news for the feed ----------------------------------------------------------------------------------------------

Task<> Engine::announce(std::string cause, std::string data) {
  if (!owner_ || !options_.only.empty()) co_return;
  const auto told = co_await parts_.store.announce(*owner_, std::move(cause), std::move(data));
  if (told) changes_.notify("");
}

/// The autoscaler changes the target by itself: looking at it misses no change.
Task<> Engine::watch_pool() {
  std::size_t known = pool_.health().target_size;
  while (true) {
    (void)co_await race(next_step(options_.look_every), wait_for(pool_scaled_));
    const std::size_t target = pool_.health().target_size;
    if (std::exchange(known, target) == target) continue;
    co_await announce(std::string(domain::kPoolScaled), domain::scale_data(target));
  }
}

// ---- the budget of a day -------------------------------------------------------------------------------------------

Task<> Engine::watch_day() {
  while (true) {
    const std::uint64_t seen = day_changed_.count();
    if (cost_micros_per_day_) {
      (void)co_await race(next_step(options_.look_every), day_changed_.wait(seen));
    } else {
      co_await day_changed_.wait(seen);
    }
    co_await look_at_day();
  }
}

/// Keeps the last answer while the store does not answer: no run can be claimed then, either.
Task<> Engine::look_at_day() {
  std::optional<domain::Shortage> shortage;
  if (const auto budget = cost_micros_per_day_) {
    std::vector<std::string> heads;
    heads.emplace_back(store::kToday);
    const auto sums = co_await parts_.store.used(std::move(heads));
    if (!sums) co_return;
    const store::Use& today = sums->front().used;
    if (domain::used_up({.cost_micros = budget}, today)) {
      shortage = {.kind = domain::Shortage::Kind::cost_per_day, .amount = today.cost_micros, .bound = *budget};
    }
  }
  if (shortage == day_shortage_) co_return;
  if (shortage.has_value() != day_shortage_.has_value()) {
    using domain::LogField;
    std::vector<LogField> fields{{"why", shortage ? "the cost of all runs today has reached budget.cost_per_day" : ""}};
    if (shortage) {
      fields.push_back(LogField::number("cost_micros", std::to_string(shortage->amount)));
      fields.push_back(LogField::number("cost_micros_per_day", std::to_string(shortage->bound)));
    }
    log_.write(shortage ? domain::LogLevel::warning : domain::LogLevel::info,
               shortage ? "no new runs begin" : "runs begin again", std::move(fields));
  }
  day_shortage_ = std::move(shortage);
  if (day_shortage_) leave_lines({});
  wakeup_.notify();
}

/// Separate from tick(), because ending processes may take long.
Task<> Engine::watch_survivors() {
  const Duration every = options_.survivors_every;
  // Another host takes a lost run when its lease expires: its processes on this host must be gone by then.
  const bool leased = options_.lease != Duration::max();
  const Duration pause = leased ? std::min(every, options_.lease / kSurvivorLooksPerLease) : every;
  using Leftovers = std::vector<domain::Survivors::Leftover>;
  std::uint64_t seen = 0;
  if (every == Duration::zero()) co_await rescued_.wait(seen);
  while (true) {
    seen = rescued_.count();
    const TimePoint began = parts_.executor.now();
    auto found = co_await parts_.survivors->find();
    const Duration look = parts_.executor.now() - began;
    if (!found)
      log_.write(domain::LogLevel::warning, "the scan for survivors failed", {{"why", found.error().describe()}});
    auto over = co_await lost_among(parts_.store, std::move(found).value_or(Leftovers()), &worker_);
    if (!over.empty()) report(co_await parts_.survivors->end(std::move(over), [leased] { return leased; }));
    if (every == Duration::zero()) {
      co_await rescued_.wait(seen);
    } else {
      (void)co_await rescued_.wait(seen, std::max(pause, std::min(every, look * kSurvivorLookShare)));
    }
  }
}

void Engine::report(const domain::Survivors::Ending& ending) {
  if (ending.processes > 0) {
    log_.write(domain::LogLevel::warning, "survivors ended",
               {domain::LogField::number("processes", std::to_string(ending.processes))});
  }
  if (!ending.left.empty()) log_.write(domain::LogLevel::error, "survivors did not end", {{"left", ending.left}});
}

Task<> Engine::prune() {
  constexpr std::uint32_t kAtOnce = 500;  // a short transaction: other nodes write, too
  const TimePoint now = parts_.executor.now();
  if (options_.retention == Duration::zero() || now < prune_at_) co_return;
  prune_at_ = now + options_.prune_every;
  const auto gone = co_await parts_.store.prune_if_due(options_.retention, options_.prune_every, kAtOnce);
  if (gone && *gone == kAtOnce) prune_at_ = now + options_.look_every;
}

// ---- drain ---------------------------------------------------------------------------------------------------------

void Engine::drain(std::optional<Duration> timeout) {
  const TimePoint now = parts_.executor.now();
  if (!drain_until_) {
    drain_until_ = now + timeout.value_or(options_.drain_timeout);
    if (!is_draining()) phase_ = Phase::finishing;
    leave_lines({});
  } else if (timeout) {
    drain_until_ = std::min(*drain_until_, now + *timeout);
  }
  drain_asked_.notify();
  wakeup_.notify();
  changes_.notify("");
}

void Engine::hurry() {
  if (phase_ == Phase::handing_back) ++hurries_;
  drain(Duration::zero());
}

Task<> Engine::carry_out_drain() {
  const TimePoint began = parts_.executor.now();
  const pool::WorkerCounts before = worker_.counts();
  phase_ = Phase::finishing;
  keep_a_worker();
  if (owner_) (void)co_await parts_.store.drain(*owner_);
  const auto idle = [this] { return worker_.carried().empty() && reserved_ == 0; };
  while (!idle() && parts_.executor.now() < *drain_until_) {
    co_await race(wait_for(worker_.moved()), wait_for(wakeup_), wait_for(drain_asked_), pause_until(*drain_until_));
  }
  phase_ = Phase::handing_back;
  changes_.notify_all();
  if (scope_ != nullptr) {
    scope_->spawn(announce(std::string(domain::kPoolDraining), domain::drain_data(to_string(phase_))));
  }
  co_await hand_back();
  const pool::WorkerCounts after = worker_.counts();
  const auto grown = [&](domain::RunState state) {
    const auto count = [&](const pool::WorkerCounts& counts) {
      const auto found = counts.settled.find(state);
      return found == counts.settled.end() ? 0 : found->second;
    };
    return count(after) - count(before);
  };
  for (const domain::RunState state : domain::kRunStates) drain_report_.finished += grown(state);
  drain_report_.handed_back = grown(domain::RunState::queued);
  drain_report_.in_doubt = grown(domain::RunState::in_doubt);
  drain_report_.unrecorded = after.unrecorded - before.unrecorded;
  drain_report_.time = parts_.executor.now() - began;
}

bool Engine::is_work_over() const {
  return std::ranges::all_of(worker_.carried(), [](const auto& each) { return each.second->is_work_over(); });
}

/// Ends the runs that are still carried, and waits until they are settled. A store that accepts no writes must not keep
/// the process alive: runs that were not settled are rescued like those of a process that died.
Task<> Engine::hand_back() {
  std::uint32_t heeded = 0;
  std::optional<TimePoint> leave_at;
  while (!worker_.carried().empty() || reserved_ > 0) {
    const bool hurry = hurries_ > std::exchange(heeded, hurries_);
    for (const auto& [key, carried] : worker_.carried()) {
      if (carried->stopped() == Carried::Stop::none || hurry) {
        carried->stop(Carried::Stop::handed_back, "its node is draining");
      }
    }
    const TimePoint now = parts_.executor.now();
    if (!is_work_over()) {
      leave_at.reset();
    } else if (!leave_at) {
      leave_at = now + options_.record_max;
    } else if (now >= *leave_at && !store_health_.gave_up()) {
      log_.write(domain::LogLevel::error, "exiting before the store has recorded all settlements",
                 {{"why", store_health_.why_unusable()},
                  domain::LogField::number("runs", std::to_string(worker_.carried().size()))});
      store_health_.give_up();
    }
    const TimePoint next = now + options_.look_every;
    const bool waits = leave_at && !store_health_.gave_up();
    co_await race(wait_for(worker_.moved()), wait_for(wakeup_), wait_for(drain_asked_),
                  pause_until(waits ? std::min(*leave_at, next) : next));
  }
}

Task<> Engine::wait_for(Notification& notification) { co_await notification.wait(notification.count()); }
Task<> Engine::pause_until(TimePoint until) { co_await sleep_until(until); }

}  // namespace stint::engine
