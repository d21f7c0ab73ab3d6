// LocalFleet: pause and resume limits, answer parked runs.
#include "agent/text.hpp"
#include "domain/bounds.hpp"
#include "fleet/local_fleet.hpp"

#include <algorithm>

namespace stint::fleet {
using domain::RunState;
using domain::WaitCause;

bool is_parked_on_limit(const store::Why& why) noexcept {
  return (why.cause == WaitCause::person || why.cause == WaitCause::quota) && !why.limit.empty();
}

/// Resumes the limit on which the run is parked: while the account stays paused, neither this run nor any other on it
/// could begin. Ending the pause wakes all runs parked on the limit, this one included.
Task<Result<>> LocalFleet::answer(std::string id) {
  STINT_CO_TRY(const RunView found, co_await must_find(std::move(id)));
  STINT_CO_TRY(const std::vector<store::Why> reasons, co_await parts_.store.why(found.run.id));
  const bool parked = found.run.state == RunState::parked;
  for (const store::Why& each : reasons) {
    if (!parked && each.cause == WaitCause::paused) {
      co_return fail(Errc::conflict, "'" + found.run.id + "' is " + std::string(to_string(found.run.state)) +
                                         ", not parked: it waits for " + each.limit +
                                         ", which is paused. `stint resume " + each.limit + "` ends that");
    }
    if (!parked || !is_parked_on_limit(each)) continue;
    STINT_CO_TRY(const std::uint64_t woken, co_await resume(each.limit));
    if (woken > 0) co_return Result<>();
  }
  STINT_CO_CHECK(co_await parts_.store.answer(found.run.id));
  tell(found.run.id);
  co_return Result<>();
}

/// A limit that the store knows: a mistyped name must not create a new one.
Task<Result<store::LimitState>> LocalFleet::must_know(const std::string& limit) {
  STINT_CO_TRY(const auto known, co_await parts_.store.limits());
  const auto found = std::ranges::find(known, limit, &store::LimitState::name);
  if (found != known.end()) co_return *found;
  co_return fail(Errc::invalid, "there is no limit '" + agent::excerpt(limit, domain::kShownNameBytesMax) +
                                    "' in the store. `stint limits` lists them");
}

/// Defines the limit in the store, if an agent takes it: agents that have never run are not in the store, nor their
/// limits.
Task<Result<>> LocalFleet::make_known(const std::string& limit) {
  STINT_CO_TRY(const auto known, co_await parts_.store.limits());
  if (std::ranges::find(known, limit, &store::LimitState::name) != known.end()) co_return Result<>();
  std::vector<store::AgentEntry> entries;
  for (const auto& [name, spec] : parts_.registry()) {
    const auto add_if_used = [&](const store::AgentEntry& entry) {
      const bool uses = std::ranges::find(entry.limits, limit, &store::LimitUse::limit) != entry.limits.end();
      if (uses) entries.push_back(entry);
    };
    add_if_used(spec.entry);
    for (const auto& [variant, of_variant] : spec.variants) add_if_used(of_variant.entry);
  }
  if (entries.empty()) {
    co_return fail(Errc::invalid, "no agent here takes the limit '" +
                                      agent::excerpt(limit, domain::kShownNameBytesMax) +
                                      "', and a pause holds back only runs of agents. `stint agents` lists them");
  }
  co_return co_await parts_.store.define(std::move(entries));
}

Task<Result<>> LocalFleet::pause(std::string limit, std::optional<Duration> length) {
  if (!limit.empty()) {
    STINT_CO_CHECK(co_await make_known(limit));
    STINT_CO_CHECK(co_await parts_.store.pause(std::move(limit), length));
    tell("");
    co_return Result<>();
  }
  std::vector<std::string> names;  // a reload may replace the registry between two awaits
  for (const auto& [name, spec] : parts_.registry()) names.push_back(name);
  for (const std::string& name : names) {
    STINT_CO_CHECK(co_await parts_.store.pause(domain::agent_limit(name), length));
  }
  tell("");
  co_return Result<>();
}

Task<Result<std::uint64_t>> LocalFleet::resume(std::string limit) {
  std::uint64_t woken = 0;
  if (!limit.empty()) {
    STINT_CO_CHECK(co_await must_know(limit));
    STINT_CO_TRY(woken, co_await parts_.store.resume(std::move(limit)));
  } else {
    STINT_CO_TRY(const auto limits, co_await parts_.store.limits());
    for (const store::LimitState& each : limits) {
      if (!each.paused) continue;
      STINT_CO_TRY(const std::uint64_t more, co_await parts_.store.resume(each.name));
      woken += more;
    }
  }
  tell("");
  co_return woken;
}

}  // namespace stint::fleet
