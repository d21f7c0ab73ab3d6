// Orphans: runs that this node owns in the store but does not carry. The answer to their claim could not be read, or
// was a final refusal although the claim was done. The node sends heartbeats, so no other node would ever take them:
// they would hold their limits, no cancel would reach them and no drain would end. They are settled as lost, and
// `on_crash` decides.
//
// Invariants
// 1. A run that a claim in flight may have got is not an orphan: settling it waits for all claims that were sent before
//    it was first seen.
// 2. A run that is being settled as an orphan, or was settled since a claim was sent, does not count as an answer to
//    that claim (dispatch.cpp, claim_runs): the list of owned runs may have been read before it was settled.
#include "engine/engine.hpp"
#include "stint/combinators.hpp"

#include <algorithm>

namespace stint::engine {

Task<> Engine::watch_orphans() {
  while (true) {
    co_await next_step(options_.compare_every);
    log_slow_endings();
    co_await find_orphans();
  }
}

/// Logs attempts that were already being ended at the last check: a cancel, a drain or a permit waits for them.
void Engine::log_slow_endings() {
  std::map<CarriedKey, bool> ending;
  for (const auto& [key, carried] : worker_.carried()) {
    if (!carried->is_ending()) continue;
    const domain::WaitReason why = carried->waits_for().value_or(domain::WaitReason());
    const auto before = endings_.find(CarriedKey(key));
    const bool logged = before != endings_.end() && before->second;
    if (before != endings_.end() && !logged) {
      log_.write(domain::LogLevel::warning, "ending the attempt takes long",
                 {{"run", std::string(CarriedKey(key).first)}, {"why", why.detail}, {"beyond", why.beyond}});
    }
    ending[CarriedKey(key)] = before != endings_.end();
  }
  endings_ = std::move(ending);
}

std::set<Engine::CarriedKey> Engine::carried_keys() const {
  std::set<CarriedKey> keys;
  for (const auto& [key, carried] : worker_.carried()) keys.emplace(key);
  return keys;
}

/// Compares the counts first: owned() is expensive, it returns the inputs of all runs.
Task<> Engine::find_orphans() {
  if (!owner_ || fencing_) {
    orphans_.clear();
    co_return;
  }
  const store::NodeNumber owner = *owner_;
  const auto nodes = co_await parts_.store.nodes();
  if (!nodes || owner_ != owner) co_return;
  const auto self = std::ranges::find(*nodes, owner, &store::NodeState::number);
  if (self == nodes->end() || self->runs <= worker_.carried().size()) {
    forget_orphans({});
    co_return;
  }
  const std::set<CarriedKey> before = carried_keys();
  const auto owned = co_await parts_.store.owned(owner);
  if (!owned || owner_ != owner) co_return;
  std::set<CarriedKey> seen;
  for (const store::Claim& claim : *owned) {
    const CarriedKey key{claim.id, claim.fence};
    if (before.contains(key) || worker_.carries(claim)) continue;
    seen.insert(key);
    const auto [known, is_new] =
        orphans_.try_emplace(key, Orphan{.claims_before = claims_asked_, .settling = false, .settled = {}});
    const bool of_a_claim = !claims_in_flight_.empty() && *claims_in_flight_.begin() <= known->second.claims_before;
    if (is_new || of_a_claim || std::exchange(known->second.settling, true)) continue;
    scope_->spawn(settle_orphan(owner, claim));
  }
  forget_orphans(seen);
}

/// Forgets orphans that are no longer owned and that no answer in flight can contain.
void Engine::forget_orphans(const std::set<CarriedKey>& owned) {
  std::erase_if(orphans_, [&](const auto& each) {
    const Orphan& orphan = each.second;
    if (!orphan.settling) return !owned.contains(each.first);
    const bool in_flight = !claims_in_flight_.empty() && *claims_in_flight_.begin() <= orphan.settled.value_or(0);
    return orphan.settled && !in_flight;
  });
}

Task<> Engine::settle_orphan(store::NodeNumber owner, store::Claim claim) {
  log_.write(domain::LogLevel::error, "run owned, but not carried: settled as lost",
             {{"run", claim.id},
              {"agent", claim.agent},
              domain::LogField::number("fence", std::to_string(claim.fence.value))});
  store::Settlement settlement;
  settlement.attempt = claim.attempt_key();
  settlement.settle = domain::Settle::lost;
  (void)co_await settler_.settle(owner, std::move(settlement));
  if (const auto known = orphans_.find({claim.id, claim.fence}); known != orphans_.end()) {
    known->second.settled = claims_asked_;
  }
  changes_.notify(claim.id);
  wakeup_.notify();
}

/// Removes this node from the store. Nothing is carried and no claim is in flight, but the store refuses while the node
/// still owns runs: those are settled as lost first.
Task<> Engine::leave(store::NodeNumber owner) {
  constexpr Duration kMost = std::chrono::seconds(5);  // after that, they are lost when the lease expires
  const auto left = co_await parts_.store.leave(owner);
  if (left || left.error() != Errc::conflict) co_return;
  co_await race(settle_all_owned(owner), pause_until(parts_.executor.now() + kMost));
  (void)co_await parts_.store.leave(owner);
}

Task<> Engine::settle_all_owned(store::NodeNumber owner) {
  const auto owned = co_await parts_.store.owned(owner);
  if (!owned) co_return;
  for (const store::Claim& claim : *owned) co_await settle_orphan(owner, claim);
}

}  // namespace stint::engine
