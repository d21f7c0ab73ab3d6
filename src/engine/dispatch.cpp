// The engine's way from the queue to a worker: which agent next, permits of the host, the claim.
//
// Invariants
// 1. Permits of the host are in hand before a run that needs them is claimed, and travel with it.
// 2. At most one claim of an agent is on its way: after an answer that did not come, what the store says we own and do
//    not carry is what it gave us.
// 3. Every claim becomes an assignment, or is given back.
// 4. A claim in vain is not repeated at once: the agent rests, unless the store tells of something new.
#include "engine/engine.hpp"
#include "pool/back_off.hpp"
#include "queue/ready_core.hpp"
#include "stint/combinators.hpp"

#include <algorithm>
#include <set>

namespace stint::engine {
namespace {

using pool::BackOff;

constexpr Duration kPermitsKept = std::chrono::seconds(2);  // while no worker is free; then others may have them
constexpr Duration kRestFirst = std::chrono::milliseconds(50), kRestAfterNews = std::chrono::milliseconds(250);

struct Count {
  explicit Count(std::uint32_t& counter, std::uint32_t by = 1) : value(counter), amount(by) { value += amount; }
  ~Count() { value -= amount; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;
  std::uint32_t& value;
  const std::uint32_t amount;
};

}  // namespace

/// Not counting those that are promised.
std::uint32_t Engine::free_workers() const {
  const auto free = static_cast<std::uint32_t>(pool_.free_workers());
  return free > reserved_ ? free - reserved_ : 0;
}

/// How many runs of each agent this process carries.
std::map<std::string_view, std::uint32_t> Engine::running() const {
  std::map<std::string_view, std::uint32_t> counts;
  for (const auto& [key, carried] : worker_.carried()) ++counts[carried->agent];
  return counts;
}

Task<> Engine::dispatch() {
  std::uint64_t seen = 0;
  while (phase_ == Phase::serving) {
    const std::uint64_t stirred = stirred_.count();
    const bool progress = may_claim() && free_workers() > with_permits_ && co_await dispatch_once();
    if (progress) continue;
    if (free_workers() == 0 || !may_claim()) {
      co_await stirred_.wait(stirred);
      continue;
    }
    auto first = co_await race(parts_.store.wait(seen, until_next_look()), stir(stirred));
    if (auto* const waited = std::get_if<0>(&first)) {
      if (*waited) {
        if (std::exchange(seen, **waited) != **waited) wake_resting();
      } else {
        co_await next_step(options_.look_every);
      }
    }
  }
}

Task<> Engine::stir(std::uint64_t seen) { co_await stirred_.wait(seen); }

/// When everything else looks, too; or when an agent has rested.
Duration Engine::until_next_look() const {
  const TimePoint now = parts_.executor.now();
  TimePoint next = now + (options_.look_every - now.time_since_epoch() % options_.look_every);
  for (const auto& [agent, rest] : resting_) {
    if (rest.until > now) next = std::min(next, rest.until);
  }
  return std::max<Duration>(next - now, Executor::kTick);
}

void Engine::rest(const std::string& agent) {
  Rest& rest = resting_[agent];
  rest.length = rest.length == Duration::zero() ? kRestFirst : std::min(2 * rest.length, options_.look_every);
  rest.since = parts_.executor.now();
  rest.until = rest.since + rest.length;
}

bool Engine::rests(const std::string& agent) const {
  const auto found = resting_.find(agent);
  return found != resting_.end() && parts_.executor.now() < found->second.until;
}

/// The store has news: limits may be free. On a busy store news never ends, so that it does not end every rest at once.
void Engine::wake_resting() {
  for (auto& [agent, rest] : resting_) rest.until = std::min(rest.until, rest.since + kRestAfterNews);
}

/// Agents with something to do; or the one, if only its run counts.
Task<Result<std::vector<store::Ready>>> Engine::look_for_work() {
  if (options_.only.empty()) {
    co_return co_await parts_.store.ready(static_cast<std::uint32_t>(options_.pool.queue_capacity));
  }
  std::vector<store::Ready> ready;
  if (rests(options_.only_agent)) co_return ready;
  STINT_CO_TRY(const auto run, co_await parts_.store.find(options_.only));
  if (run && run->state == domain::RunState::queued && run->hold == domain::Hold::none) {
    store::Ready& only = ready.emplace_back();
    only.agent = options_.only_agent;
    only.runs = 1;
  }
  co_return ready;
}

/// True: something was claimed, and there may be more.
Task<bool> Engine::dispatch_once() {
  auto ready = co_await look_for_work();
  if (!ready || !may_claim()) co_return false;
  leave_lines(*ready);
  std::vector<queue::Candidate> candidates;
  std::vector<std::string> heavy;  // nothing of theirs fits, but it must not be served last for ever
  std::uint32_t startable = 0;
  auto carried = running();
  for (const store::Ready& each : *ready) {
    const AgentSpec* const spec = find_spec(*registry_, each.agent);
    if (spec == nullptr || spec->refused) continue;  // somebody else's, or it waits until it may run
    const std::uint32_t runs = std::min(each.runs, each.startable.value_or(each.runs));
    if (runs == 0 && !each.takes_turn) continue;
    if (!parts_.permits.needed(each.agent)) {
      if (runs == 0) heavy.push_back(each.agent);
      candidates.push_back({each.agent, runs, each.rank_ms, carried[agent_of(each.agent)]});
      startable += runs;
    } else if (!feeding_.contains(each.agent)) {
      if (rests(each.agent)) continue;
      feeding_[each.agent] = nullptr;
      scope_->spawn(feed(each.agent));
    } else if (runs > 0 && !waits_.contains(each.agent)) {
      ++startable;
    }
  }
  startable_ = startable;
  bool progress = false;
  // Before the others: a turn counts from the moment it is taken.
  for (const std::string& agent : heavy) progress = co_await claim(agent, 1, nullptr) > 0 || progress;
  const std::uint32_t free = free_workers();
  for (const queue::Share& share :
       queue::share(std::move(candidates), free > with_permits_ ? free - with_permits_ : 0)) {
    const std::uint32_t claimed = co_await claim(share.agent, share.workers, nullptr);
    progress = progress || claimed > 0;
    if (claimed == 0 && !options_.only.empty()) rest(share.agent);
    startable_ -= std::min(startable_, claimed);
  }
  co_return progress;
}

/// Stands in line for an agent's permits, and claims one run with them.
Task<> Engine::feed(std::string agent) {
  struct Feeding {
    Engine& engine;
    const std::string& agent;
    ~Feeding() {
      engine.feeding_.erase(agent);
      engine.waits_.erase(agent);
      engine.stirred_.notify();
    }
  };
  const Feeding feeding{*this, agent};
  auto permits = co_await stand_in_line(agent);
  if (!permits) {
    if (permits.error() == Errc::cancelled) co_return;  // there is nothing to run any more
    tell_unusable(agent, permits.error());
    co_await next_step(options_.look_every);
    co_return;
  }
  told_unusable_.erase(agent);
  {
    // Who has permits goes first. They are not kept for long without a worker: others of this host may want them.
    const Count counted(with_permits_);
    const TimePoint until = parts_.executor.now() + kPermitsKept;
    while (may_claim() && free_workers() == 0 && parts_.executor.now() < until) {
      co_await race(hear(stirred_), nap(until));
    }
  }
  if (!may_claim() || free_workers() == 0) co_return;
  if (co_await claim(agent, 1, std::move(*permits)) > 0) {
    resting_.erase(agent);
  } else {
    rest(agent);
  }
}

/// Permits can't be taken at all, which no release changes: it is logged once, and the process of one run gives up.
void Engine::tell_unusable(const std::string& agent, const Error& error) {
  const std::string why = error.describe();
  waits_[agent] = {.cause = domain::WaitCause::permits, .detail = why};
  if (std::exchange(told_unusable_[agent], why) != why) {
    log_.say(domain::LogLevel::warning, "its permits can't be taken", {{"agent", agent}, {"why", why}});
  }
  const bool for_good = error == Errc::denied || error == Errc::invalid;
  if (options_.only.empty() || !for_good) return;
  cannot_begin_ = error;
  changes_.notify(options_.only);
}

Task<Result<std::unique_ptr<domain::HeldPermits>>> Engine::stand_in_line(const std::string& agent) {
  auto told = [this, &agent](const domain::WaitReason* why) {
    if (why == nullptr) {
      waits_.erase(agent);
    } else {
      waits_[agent] = *why;
    }
    changes_.notify(options_.only);
  };
  auto body = [&](Scope& scope) {
    feeding_[agent] = &scope;
    return parts_.permits.acquire(agent, told);
  };
  auto permits = co_await with_scope(std::ref(body));
  feeding_[agent] = nullptr;
  co_return permits;
}

/// Whoever has nothing to run must not stand in others' way.
void Engine::leave_lines(const std::vector<store::Ready>& but_of) {
  for (const auto& [agent, scope] : feeding_) {
    if (scope != nullptr && std::ranges::find(but_of, agent, &store::Ready::agent) == but_of.end()) scope->cancel();
  }
}

Task<std::uint32_t> Engine::claim(std::string agent, std::uint32_t most, std::unique_ptr<domain::HeldPermits> permits) {
  if (!owner_) co_return 0;
  const Count reserved(reserved_, most);
  struct UnderWay {
    Engine& engine;
    const std::uint64_t number;
    explicit UnderWay(Engine& owner) : engine(owner), number(++owner.claims_asked_) {
      engine.claims_under_way_.insert(number);
    }
    ~UnderWay() { engine.claims_under_way_.erase(number); }
  };
  const UnderWay under_way(*this);
  const store::NodeNumber owner = *owner_;
  const bool needs_permits = permits != nullptr;
  std::vector<store::Claim> claims = co_await ask_claim(owner, agent, most);
  std::vector<store::Claim> unwanted;
  std::uint32_t assigned = 0;
  for (store::Claim& claim : claims) {
    // What the store says we own may be more than was asked for now: permits are there for that only.
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

/// What the store gave us, also if its answer was lost on the way.
Task<std::vector<store::Claim>> Engine::ask_claim(store::NodeNumber owner, const std::string& agent,
                                                  std::uint32_t most) {
  auto claims = co_await parts_.store.claim(owner, agent, most, options_.only);
  if (claims) co_return std::move(*claims);
  if (claims.error().retry() != Retry::unknown) co_return {};
  BackOff back_off;
  // Behind a fence, what we own and do not carry may have been begun: then it is for others to find.
  while (owner_ == owner) {
    // What we carry when we ask may have ended when the answer comes: it must not be taken for new.
    const std::set<AttemptKey> before = carried_keys();
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
    if (!BackOff::may_ask_again(owned.error())) break;
    if (!co_await back_off.wait(store_health_)) break;
  }
  co_return {};
}

/// False: nobody took it. Of the claim its numbers are left then, and perhaps no more.
bool Engine::assign(store::NodeNumber owner, store::Claim& claim, std::unique_ptr<domain::HeldPermits> permits) {
  const AgentSpec* const found = find_spec(*registry_, claim.agent);
  if (found == nullptr || pool_.free_workers() == 0) return false;  // the pool may have shrunk meanwhile
  const AgentSpec& spec = *found;
  const auto variant = spec.variants.find(claim.agent);
  auto assignment = std::make_unique<pool::Assignment>();
  assignment->account = variant == spec.variants.end() ? spec.account : variant->second.account;
  assignment->budget = spec.budget;
  assignment->on_crash = spec.on_crash;
  assignment->reports_use = cost_micros_per_day_.has_value();
  assignment->permits = std::move(permits);
  claim.agent = std::string(agent_of(claim.agent));  // people, drivers and permits know no variants
  assignment->carried = worker_.take(owner, claim);
  JobOptions options;
  options.label = claim.id;
  assignment->claim = std::move(claim);
  return pool_.submit_nowait(std::move(assignment), std::move(options)).has_value();
}

/// They were never begun.
Task<> Engine::give_back(store::NodeNumber owner, std::vector<store::Claim> claims) {
  for (const store::Claim& claim : claims) {
    store::Settlement settlement;
    settlement.run = claim.run;
    settlement.fence = claim.fence;
    settlement.settle = domain::Settle::hand_back;
    (void)co_await settler_.settle(owner, std::move(settlement));
  }
}

}  // namespace stint::engine
