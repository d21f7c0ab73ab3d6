// How the engine moves runs from the queue to workers: choose an agent, acquire permits of the host, claim.
//
// Invariants
// 1. The engine holds the host permits that a run needs before it claims the run, and hands them on with it.
// 2. At most one claim per agent is in flight: if an answer is lost, the runs that the store lists as owned by this
//    node and that it does not carry are those of the lost claim.
// 3. Every claim becomes an assignment, or is handed back.
// 4. A claim that got no run is not repeated at once: the agent backs off, for less time if the store changes.
#include "engine/engine.hpp"
#include "pool/store_backoff.hpp"
#include "queue/ready_core.hpp"
#include "stint/combinators.hpp"

#include <algorithm>
#include <set>

namespace stint::engine {
namespace {

using pool::StoreBackoff;

constexpr Duration kPermitsKept = std::chrono::seconds(2);  // while no worker is free; then they are released
constexpr Duration kBackOffFirst = std::chrono::milliseconds(50), kBackOffAfterChange = std::chrono::milliseconds(250);

struct Count {
  explicit Count(std::uint32_t& counter, std::uint32_t by = 1) : value(counter), amount(by) { value += amount; }
  ~Count() { value -= amount; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;
  std::uint32_t& value;
  const std::uint32_t amount;
};

}  // namespace

/// Without those that are reserved for claims in flight.
std::uint32_t Engine::free_workers() const {
  const auto free = static_cast<std::uint32_t>(pool_.free_workers());
  return free > reserved_ ? free - reserved_ : 0;
}

/// How many runs of each agent this node carries.
std::map<std::string_view, std::uint32_t> Engine::running() const {
  std::map<std::string_view, std::uint32_t> counts;
  for (const auto& [key, carried] : worker_.carried()) ++counts[carried->agent];
  return counts;
}

Task<> Engine::dispatch() {
  std::uint64_t seen = 0;
  while (phase_ == Phase::serving) {
    const std::uint64_t seen_wakeup = wakeup_.count();
    const bool progress = may_claim() && free_workers() > with_permits_ && co_await dispatch_once();
    if (progress) continue;
    if (free_workers() == 0 || !may_claim()) {
      limit_waits_.stop_looking(parts_.executor.now());
      co_await wakeup_.wait(seen_wakeup);
      continue;
    }
    auto first = co_await race(parts_.store.wait(seen, until_next_look()), woken(seen_wakeup));
    if (auto* const waited = std::get_if<0>(&first)) {
      if (*waited) {
        if (std::exchange(seen, **waited) != **waited) shorten_back_offs();
      } else {
        co_await next_step(options_.look_every);
      }
    }
  }
}

Task<> Engine::woken(std::uint64_t seen) { co_await wakeup_.wait(seen); }

/// Until the next common step of the clock, or the end of an agent's back-off.
Duration Engine::until_next_look() const {
  const TimePoint now = parts_.executor.now();
  TimePoint next = now + (options_.look_every - now.time_since_epoch() % options_.look_every);
  for (const auto& [agent, entry] : back_offs_) {
    if (entry.until > now) next = std::min(next, entry.until);
  }
  return std::max<Duration>(next - now, Executor::kTick);
}

void Engine::start_back_off(const std::string& agent) {
  ClaimBackOff& entry = back_offs_[agent];
  entry.length = entry.length == Duration::zero() ? kBackOffFirst : std::min(2 * entry.length, options_.look_every);
  entry.since = parts_.executor.now();
  entry.until = entry.since + entry.length;
}

bool Engine::is_backing_off(const std::string& agent) const {
  const auto found = back_offs_.find(agent);
  return found != back_offs_.end() && parts_.executor.now() < found->second.until;
}

/// The store has changed, so limits may be free. A busy store changes all the time: so this shortens back-offs, and
/// does not end them.
void Engine::shorten_back_offs() {
  for (auto& [agent, entry] : back_offs_) entry.until = std::min(entry.until, entry.since + kBackOffAfterChange);
}

/// Agents with ready runs; for an engine of one run, only that run's agent.
Task<Result<std::vector<store::Ready>>> Engine::look_for_work() {
  if (options_.only.empty()) {
    co_return co_await parts_.store.ready(static_cast<std::uint32_t>(options_.pool.queue_capacity));
  }
  std::vector<store::Ready> ready;
  if (is_backing_off(options_.only_agent)) co_return ready;
  STINT_CO_TRY(const auto run, co_await parts_.store.find(options_.only));
  if (run && run->state == domain::RunState::queued && run->hold == domain::Hold::none) {
    store::Ready& only = ready.emplace_back();
    only.agent = options_.only_agent;
    only.runs = 1;
  }
  co_return ready;
}

/// Returns true if a run was claimed: there may be more.
Task<bool> Engine::dispatch_once() {
  auto ready = co_await look_for_work();
  if (!ready || !may_claim()) co_return false;
  leave_lines(*ready);
  record_waits(*ready);
  std::vector<queue::Candidate> candidates;
  std::vector<std::string> heavy;  // their runs do not fit now, but must not starve: they take a turn
  std::uint32_t startable = 0;
  auto carried = running();
  for (const store::Ready& each : *ready) {
    const AgentSpec* const spec = find_spec(*registry_, each.agent);
    if (spec == nullptr || spec->refused) continue;  // an agent of another node, or one that must not run now
    const std::uint32_t runs = std::min(each.runs, each.startable.value_or(each.runs));
    if (runs == 0 && !each.takes_turn) continue;
    if (!parts_.permits.needed(each.agent)) {
      if (runs == 0) heavy.push_back(each.agent);
      candidates.push_back({each.agent, runs, each.rank_ms, carried[agent_of(each.agent)]});
      startable += runs;
    } else if (!acquiring_.contains(each.agent)) {
      if (is_backing_off(each.agent)) continue;
      acquiring_[each.agent] = nullptr;
      scope_->spawn(acquire_and_claim(each.agent));
    } else if (runs > 0 && !waits_.contains(each.agent)) {
      ++startable;
    }
  }
  startable_ = startable;
  bool progress = false;
  // Before the others: a turn starts when it is taken.
  for (const std::string& agent : heavy) progress = co_await claim(agent, 1, nullptr) > 0 || progress;
  const std::uint32_t free = free_workers();
  for (const queue::Share& share :
       queue::share(std::move(candidates), free > with_permits_ ? free - with_permits_ : 0)) {
    const std::uint32_t claimed = co_await claim(share.agent, share.workers, nullptr);
    progress = progress || claimed > 0;
    if (claimed == 0 && !options_.only.empty()) {
      start_back_off(share.agent);
      co_await record_wait_of_only();
    }
    startable_ -= std::min(startable_, claimed);
  }
  co_return progress;
}

/// Which agents the limits of the store keep from starting, for the timelines of their runs.
void Engine::record_waits(const std::vector<store::Ready>& ready) {
  const TimePoint now = parts_.executor.now();
  limit_waits_.keep_if(
      [&](const std::string& agent) { return std::ranges::find(ready, agent, &store::Ready::agent) != ready.end(); });
  for (const store::Ready& each : ready) {
    if (each.blocked_by.empty()) {
      limit_waits_.not_blocked(each.agent, now);
    } else {
      limit_waits_.blocked(each.agent, each.blocked_by, now);
    }
  }
}

/// The same for the only run of this node: look_for_work() asks for no limits.
Task<> Engine::record_wait_of_only() {
  const auto reasons = co_await parts_.store.why(options_.only);
  if (!reasons) co_return;
  for (const store::Why& each : *reasons) {
    using enum domain::WaitCause;
    const bool of_limit = each.cause == limit || each.cause == paused || each.cause == probe || each.cause == turn;
    if (!of_limit) continue;
    limit_waits_.blocked(options_.only_agent, each.limit, parts_.executor.now());
    co_return;
  }
}

/// Waits in line for an agent's host permits, and claims one run with them.
Task<> Engine::acquire_and_claim(std::string agent) {
  struct Acquiring {
    Engine& engine;
    const std::string& agent;
    ~Acquiring() {
      engine.acquiring_.erase(agent);
      engine.waits_.erase(agent);
      engine.wakeup_.notify();
    }
  };
  const Acquiring acquiring{*this, agent};
  auto permits = co_await acquire_permits(agent);
  if (!permits) {
    if (permits.error() == Errc::cancelled) co_return;  // the agent has nothing ready any more
    report_unusable(agent, permits.error());
    co_await next_step(options_.look_every);
    co_return;
  }
  logged_unusable_.erase(agent);
  {
    // A claim with permits goes before those without. Permits are not kept for long without a worker: other processes
    // of this host may wait for them.
    const Count counted(with_permits_);
    const TimePoint until = parts_.executor.now() + kPermitsKept;
    while (may_claim() && free_workers() == 0 && parts_.executor.now() < until) {
      co_await race(wait_for(wakeup_), pause_until(until));
    }
  }
  if (!may_claim() || free_workers() == 0) co_return;
  if (co_await claim(agent, 1, std::move(*permits)) > 0) {
    back_offs_.erase(agent);
  } else {
    start_back_off(agent);
  }
}

/// Permits can't be taken at all, and waiting does not help: logs it once, and an engine of one run gives up.
void Engine::report_unusable(const std::string& agent, const Error& error) {
  const std::string why = error.describe();
  waits_[agent] = {.cause = domain::WaitCause::permits, .detail = why};
  if (std::exchange(logged_unusable_[agent], why) != why) {
    log_.write(domain::LogLevel::warning, "permits can't be taken", {{"agent", agent}, {"why", why}});
  }
  const bool for_good = error == Errc::denied || error == Errc::invalid;
  if (options_.only.empty() || !for_good) return;
  cannot_begin_ = error;
  changes_.notify(options_.only);
}

Task<Result<std::unique_ptr<domain::HeldPermits>>> Engine::acquire_permits(const std::string& agent) {
  auto waits = [this, &agent](const domain::WaitReason* why) {
    if (why == nullptr) {
      waits_.erase(agent);
      limit_waits_.out_of_line(agent, parts_.executor.now());
    } else {
      waits_[agent] = *why;
      limit_waits_.in_line(agent, why->limit, parts_.executor.now());
    }
    changes_.notify(options_.only);
  };
  auto body = [&](Scope& scope) {
    acquiring_[agent] = &scope;
    return parts_.permits.acquire(agent, waits);
  };
  auto permits = co_await with_scope(std::ref(body));
  acquiring_[agent] = nullptr;
  co_return permits;
}

/// Leaves the lines of agents that have nothing ready: their place would block other processes of this host.
void Engine::leave_lines(const std::vector<store::Ready>& ready) {
  for (const auto& [agent, scope] : acquiring_) {
    if (scope != nullptr && std::ranges::find(ready, agent, &store::Ready::agent) == ready.end()) scope->cancel();
  }
}

Task<std::uint32_t> Engine::claim(std::string agent, std::uint32_t most, std::unique_ptr<domain::HeldPermits> permits) {
  if (!owner_) co_return 0;
  const Count reserved(reserved_, most);
  struct InFlight {
    Engine& engine;
    const std::uint64_t number;
    explicit InFlight(Engine& owner) : engine(owner), number(++owner.claims_asked_) {
      engine.claims_in_flight_.insert(number);
    }
    ~InFlight() { engine.claims_in_flight_.erase(number); }
  };
  const InFlight in_flight(*this);
  const store::NodeNumber owner = *owner_;
  const bool needs_permits = permits != nullptr;
  std::vector<store::Claim> claims = co_await claim_runs(owner, agent, most);
  std::vector<store::Claim> unwanted;
  std::uint32_t assigned = 0;
  for (store::Claim& claim : claims) {
    // After a lost answer the store may list more owned runs than this claim asked for; the permits are for one.
    const bool permitted = !needs_permits || permits != nullptr;
    const bool may = owner_ == owner && !fencing_ && phase_ == Phase::serving && permitted;
    if (may && assign(owner, claim, std::move(permits))) {
      ++assigned;
    } else {
      unwanted.push_back(std::move(claim));
    }
  }
  if (!unwanted.empty()) co_await give_back(owner, std::move(unwanted));
  co_return assigned;
}

/// Claims up to `most` runs of the agent. If the answer is lost, reads from the store which runs it gave to this node.
Task<std::vector<store::Claim>> Engine::claim_runs(store::NodeNumber owner, const std::string& agent,
                                                   std::uint32_t most) {
  const auto waits = limit_waits_.of(agent, parts_.executor.now());
  auto claims = co_await parts_.store.claim(owner, agent, most, options_.only,
                                            waits.empty() ? std::string() : parts_.run_codec.write_waits(waits));
  if (claims) co_return std::move(*claims);
  if (claims.error().retry() != Retry::unknown) co_return {};
  StoreBackoff backoff;
  // After a fence, runs that the former owner did not carry may have begun: their lease expires instead.
  while (owner_ == owner) {
    // A run that is carried now may have ended when the answer comes: it must not count as newly claimed.
    const std::set<CarriedKey> before = carried_keys();
    auto owned = co_await parts_.store.owned(owner);
    if (owner_ != owner) break;
    if (owned) {
      std::erase_if(*owned, [&](const store::Claim& claim) {
        const auto orphan = orphans_.find({claim.id, claim.fence});
        const bool settling = orphan != orphans_.end() && orphan->second.settling;
        return claim.agent != agent || settling || before.contains({claim.id, claim.fence}) || worker_.carries(claim);
      });
      co_return std::move(*owned);
    }
    if (!StoreBackoff::may_retry(owned.error())) break;
    if (!co_await backoff.wait(store_health_)) break;
  }
  co_return {};
}

/// Hands the run to a worker. False: no worker took it; of `claim` only its numbers are then valid.
bool Engine::assign(store::NodeNumber owner, store::Claim& claim, std::unique_ptr<domain::HeldPermits> permits) {
  const AgentSpec* const found = find_spec(*registry_, claim.agent);
  if (found == nullptr || pool_.free_workers() == 0) return false;  // the pool may have shrunk
  const AgentSpec& spec = *found;
  const auto variant = spec.variants.find(claim.agent);
  auto assignment = std::make_unique<pool::Assignment>();
  assignment->account = variant == spec.variants.end() ? spec.account : variant->second.account;
  assignment->budget = spec.budget;
  assignment->backoff = spec.backoff;
  assignment->on_crash = spec.on_crash;
  assignment->reports_use = cost_micros_per_day_.has_value();
  assignment->permits = std::move(permits);
  if (const domain::AgentEntry* const entry = project::find_entry(*registry_, claim.agent);
      entry != nullptr && options_.only.empty()) {  // a nested run holds none of its ancestors' limits
    for (const domain::LimitUse& use : entry->limits) assignment->limits.push_back(use.limit);
  }
  claim.agent = std::string(agent_of(claim.agent));  // variants exist only in the store
  assignment->carried = worker_.take(owner, claim);
  JobOptions options;
  options.label = claim.id;
  assignment->claim = std::move(claim);
  return pool_.submit_nowait(std::move(assignment), std::move(options)).has_value();
}

/// Settles claims whose work never began as handed back.
Task<> Engine::give_back(store::NodeNumber owner, std::vector<store::Claim> claims) {
  for (const store::Claim& claim : claims) {
    store::Settlement settlement;
    settlement.attempt = claim.attempt_key();
    settlement.settle = domain::Settle::hand_back;
    (void)co_await settler_.settle(owner, std::move(settlement));
  }
}

}  // namespace stint::engine
