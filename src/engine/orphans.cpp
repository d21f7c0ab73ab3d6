// Runs that the store says this process owns and that it does not carry: their claim was answered in a way that could
// not be read, or refused for good after it was done. The process beats, so no other would ever take them: their limits
// would be held, a cancel never answered, a drain never over. They go the way of a lost attempt, by `on_crash`.
//
// Invariants
// 1. What a claim that is under way may have taken is no orphan: it waits for claims that were asked before it was
// seen.
// 2. What is being settled as an orphan, or was since a claim was asked, is not taken for the answer to that claim
//    (dispatch.cpp, ask_claim): what the store says that we own may have been read before it was settled.
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

/// What was being ended at the last look as well: a cancel, a drain or a permit waits for it.
void Engine::log_slow_endings() {
  std::map<AttemptKey, bool> ending;
  for (const auto& [key, carried] : worker_.carried()) {
    if (!carried->is_ending()) continue;
    const domain::WaitReason why = carried->waits_for().value_or(domain::WaitReason());
    const auto before = endings_.find(AttemptKey(key));
    const bool logged = before != endings_.end() && before->second;
    if (before != endings_.end() && !logged) {
      log_.say(domain::LogLevel::warning, "its end takes long",
               {{"run", std::string(AttemptKey(key).first)}, {"why", why.detail}, {"beyond", why.beyond}});
    }
    ending[AttemptKey(key)] = before != endings_.end();
  }
  endings_ = std::move(ending);
}

std::set<Engine::AttemptKey> Engine::carried_keys() const {
  std::set<AttemptKey> keys;
  for (const auto& [key, carried] : worker_.carried()) keys.emplace(key);
  return keys;
}

/// Counts first: owned() brings the inputs of all runs along.
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
  const std::set<AttemptKey> before = carried_keys();
  const auto owned = co_await parts_.store.owned(owner);
  if (!owned || owner_ != owner) co_return;
  std::set<AttemptKey> seen;
  for (const store::Claim& claim : *owned) {
    const AttemptKey key{claim.id, claim.fence};
    if (before.contains(key) || worker_.carries(claim)) continue;
    seen.insert(key);
    const auto [known, is_new] =
        orphans_.try_emplace(key, Orphan{.claims_before = claims_asked_, .settling = false, .settled = {}});
    const bool of_a_claim = !claims_under_way_.empty() && *claims_under_way_.begin() <= known->second.claims_before;
    if (is_new || of_a_claim || std::exchange(known->second.settling, true)) continue;
    scope_->spawn(settle_orphan(owner, claim));
  }
  forget_orphans(seen);
}

/// All but those that are still owned, and those that an answer on its way may contain.
void Engine::forget_orphans(const std::set<AttemptKey>& owned) {
  std::erase_if(orphans_, [&](const auto& each) {
    const Orphan& orphan = each.second;
    if (!orphan.settling) return !owned.contains(each.first);
    const bool on_its_way = !claims_under_way_.empty() && *claims_under_way_.begin() <= orphan.settled.value_or(0);
    return orphan.settled && !on_its_way;
  });
}

Task<> Engine::settle_orphan(store::NodeNumber owner, store::Claim claim) {
  log_.say(domain::LogLevel::error, "run owned, but not carried: settled as lost",
           {{"run", claim.id}, {"agent", claim.agent}, domain::LogField::number("fence", std::to_string(claim.fence))});
  store::Settlement settlement;
  settlement.run = claim.run;
  settlement.fence = claim.fence;
  settlement.settle = domain::Settle::lost;
  (void)co_await settler_.settle(owner, std::move(settlement));
  if (const auto known = orphans_.find({claim.id, claim.fence}); known != orphans_.end()) {
    known->second.settled = claims_asked_;
  }
  changes_.notify(claim.id);
  stirred_.notify();
}

/// Nothing is carried any more, and no claim is under way: what the store says we own keeps us from leaving.
Task<> Engine::leave(store::NodeNumber owner) {
  constexpr Duration kMost = std::chrono::seconds(5);  // after that, they are lost when the lease is over
  const auto left = co_await parts_.store.leave(owner);
  if (left || left.error() != Errc::conflict) co_return;
  co_await race(settle_all_owned(owner), nap(parts_.executor.now() + kMost));
  (void)co_await parts_.store.leave(owner);
}

Task<> Engine::settle_all_owned(store::NodeNumber owner) {
  const auto owned = co_await parts_.store.owned(owner);
  if (!owned) co_return;
  for (const store::Claim& claim : *owned) co_await settle_orphan(owner, claim);
}

}  // namespace stint::engine
