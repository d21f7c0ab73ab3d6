// LocalFleet: why a run waits. Joins the store's reasons with those that only the engine knows.
#include "fleet/local_fleet.hpp"

#include <algorithm>
#include <ranges>

namespace stint::fleet {
namespace {

using domain::RunState;
using domain::WaitCause;
using domain::WaitReason;

constexpr std::uint32_t kParkedLookedAt = 20;  // the latest parked runs, searched for the cause of a pause

WaitReason reason_of(store::Why why) {
  WaitReason reason{.cause = why.cause,
                    .limit = std::move(why.limit),
                    .capacity = why.capacity,
                    .held = why.held,
                    .weight = why.weight,
                    .ahead = why.ahead,
                    .ramp = why.ramp,
                    .turn_of = std::string(project::agent_of(why.turn_of)),
                    .behind = std::move(why.behind),
                    .behind_state = why.behind_state,
                    .place = why.place,
                    .until = why.until};
  for (store::LimitHolder& holder : why.holders) reason.holders.push_back(entry_of(std::move(holder)));
  return reason;
}

}  // namespace

domain::LimitEntry entry_of(store::LimitWaiter waiter) {
  return {.run = std::move(waiter.run),
          .agent = std::string(project::agent_of(waiter.agent)),
          .weight = waiter.weight,
          .since = waiter.since};
}

domain::LimitEntry entry_of(store::LimitHolder holder) {
  return {.run = std::move(holder.run),
          .agent = std::string(project::agent_of(holder.agent)),
          .weight = holder.weight,
          .since = holder.since};
}

Task<Result<WhyView>> LocalFleet::why(std::string id) {
  STINT_CO_TRY(const RunView found, co_await must_find(std::move(id)));
  WhyView why;
  why.run = found.run.id;
  why.state = found.run.state;
  STINT_CO_TRY(std::vector<store::Why> known, co_await parts_.store.why(found.run.id));
  for (store::Why& each : known) why.reasons.push_back(reason_of(std::move(each)));
  STINT_CO_CHECK(co_await name_causes(why.reasons));
  for (WaitReason& each : why.reasons) {
    // Parked without an account: the attempt could not begin because its host lacks something; the error names it.
    if (each.cause == WaitCause::quota && each.limit.empty()) {
      each.cause = WaitCause::shortage;
      each.detail = found.run.error;
    }
  }
  if (parts_.engine != nullptr) add_reasons_here(found, why.reasons);
  const bool holders = std::ranges::any_of(why.reasons, [](const WaitReason& each) { return !each.holders.empty(); });
  if (holders) {
    STINT_CO_TRY(const std::vector<RunView> running, co_await running_runs());
    for (WaitReason& each : why.reasons) name_runs(each.holders, running);
  }
  co_return why;
}

void LocalFleet::add_reasons_here(const RunView& found, std::vector<WaitReason>& reasons) const {
  if (found.run.state == RunState::running) add_reasons_of_attempt(found, reasons);
  if (found.run.state == RunState::queued) add_reasons_of_queue(found, reasons);
}

void LocalFleet::add_reasons_of_attempt(const RunView& view, std::vector<WaitReason>& reasons) const {
  const pool::Carried* const carried = parts_.engine->worker().find(view.run.id);
  if (carried != nullptr) {
    if (auto waits = carried->waits_for()) reasons.push_back(std::move(*waits));
  }
  std::string unusable = parts_.engine->store_health().why_unusable();
  if (!unusable.empty()) reasons.push_back({.cause = WaitCause::store, .detail = std::move(unusable)});
}

std::string LocalFleet::name_in_store_of(const RunView& view) const {
  const auto spec = parts_.registry().find(view.run.agent);
  if (spec == parts_.registry().end()) return view.run.agent;
  return name_in_store(spec->second, view.input.driver, view.input.model);
}

void LocalFleet::add_reasons_of_queue(const RunView& view, std::vector<WaitReason>& reasons) const {
  const auto spec = parts_.registry().find(view.run.agent);
  const bool known = spec != parts_.registry().end();
  if (!known) {
    reasons.push_back({.cause = WaitCause::agent});
  } else if (spec->second.refused) {
    reasons.push_back({.cause = WaitCause::agent, .detail = spec->second.refused->describe()});
  }
  const auto& waits = parts_.engine->waits();
  const auto waiting = waits.find(name_in_store_of(view));
  if (waiting != waits.end()) {
    // The engine waits in line once per agent, for the first of its runs.
    const auto place = std::ranges::find(reasons, WaitCause::place, &WaitReason::cause);
    const bool first = place == reasons.end() || place->place == 1;
    WaitReason& reason = reasons.emplace_back(waiting->second);
    reason.indirect = !first;
  }
  if (parts_.engine->shortage()) {
    reasons.push_back({.cause = WaitCause::shortage, .shortage = parts_.engine->shortage()});
  }
  const PoolHealth pool = parts_.engine->health();
  if (pool.pool_size == 0 || pool.utilization >= 1) {
    reasons.push_back({.cause = WaitCause::workers, .capacity = static_cast<std::uint32_t>(pool.pool_size)});
  }
}

/// The run that was parked last on the limit: its failure paused it. None: a person paused it.
Task<Result<std::optional<store::Run>>> LocalFleet::cause_of_pause(const std::string& limit) {
  store::Filter filter;
  filter.states = {RunState::parked};
  filter.most = kParkedLookedAt;
  STINT_CO_TRY(std::vector<store::Run> parked, co_await parts_.store.list(std::move(filter)));
  for (store::Run& run : parked) {
    if (run.error.empty()) continue;
    STINT_CO_TRY(const std::vector<store::Why> reasons, co_await parts_.store.why(run.id));
    const bool on_it = std::ranges::any_of(
        reasons, [&limit](const store::Why& each) { return is_parked_on_limit(each) && each.limit == limit; });
    if (on_it) co_return std::move(run);
  }
  co_return std::nullopt;
}

Task<Result<>> LocalFleet::name_causes(std::vector<WaitReason>& reasons) {
  for (WaitReason& each : reasons) {
    if (each.cause != WaitCause::paused) continue;
    STINT_CO_TRY(std::optional<store::Run> run, co_await cause_of_pause(each.limit));
    if (!run) continue;
    each.behind = std::move(run->id);
    each.detail = std::move(run->error);
  }
  co_return Result<>();
}

}  // namespace stint::fleet
