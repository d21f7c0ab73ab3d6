// Members of Ledger: define agents; size, pause and resume limits.
#include "domain/fleet_event.hpp"
#include "store/column_codec.hpp"
#include "store/ledger.hpp"
#include "store/moments.hpp"

#include <algorithm>
#include <utility>

namespace stint::store {
namespace {

void extend_pause(LimitRow& limit, std::optional<WallTime> until) {
  const bool for_good = limit.paused && !limit.paused_until;
  if (!for_good) limit.paused_until = limit.paused && until ? std::max(*limit.paused_until, *until) : until;
  limit.paused = true;
}

}  // namespace

Result<> Ledger::define(const AgentEntry& entry) {
  STINT_TRY(const std::optional<AgentRow> known, rows_.agent(entry.name));
  AgentRow agent = known ? *known : AgentRow();
  Members members;
  for (const LimitUse& use : entry.limits) {
    if (use.weight == 0) return fail(Errc::invalid, entry.name + ": the weight must be at least 1");
    STINT_TRY(const LimitRow limit, rows_.limit(use.limit));
    members.emplace_back(limit.number, use.weight);
  }
  std::ranges::sort(members);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::ranges::adjacent_find(members, same) != members.end()) {
    return fail(Errc::invalid, entry.name + ": a limit is listed twice. List it once, with a weight");
  }
  Members before;
  if (known) {
    STINT_TRY(before, rows_.members(agent.set));
  }
  if (!known || members != before) {
    STINT_TRY(agent.set, rows_.make_set(members));
  }
  agent.entry = entry;
  STINT_CHECK(rows_.put(agent));
  return note_pauses(agent);
}

Result<> Ledger::resize(const std::string& name, std::optional<std::uint32_t> capacity) {
  if (capacity == 0U) return fail(Errc::invalid, name + ": the capacity must be at least 1");
  STINT_TRY(LimitRow limit, rows_.limit(name));
  if (limit.capacity == capacity) return {};
  return resize(limit, capacity);
}

Result<> Ledger::resize(LimitRow& limit, std::optional<std::uint32_t> capacity) {
  const bool changed = std::exchange(limit.capacity, capacity) != capacity;
  STINT_CHECK(rows_.put(limit));
  if (!changed) return {};
  return add_fleet_event(domain::kLimitResized, domain::limit_data(limit.name, capacity));
}

Result<> Ledger::configure(const std::map<std::string, std::uint32_t>& capacities,
                           const std::vector<std::string>& agents) {
  for (const auto& [name, capacity] : capacities) {
    if (capacity == 0) return fail(Errc::invalid, name + ": the capacity must be at least 1");
    STINT_TRY(LimitRow limit, rows_.limit(name));
    if (limit.configured == capacity) continue;
    limit.configured = capacity;
    STINT_CHECK(resize(limit, capacity));
  }
  if (agents.empty()) return {};
  STINT_TRY(const std::vector<AgentRow> all, rows_.agents());
  std::set<LimitNumber> of_others;
  for (const AgentRow& agent : all) {
    if (std::ranges::find(agents, agent.entry.name) != agents.end()) continue;
    STINT_TRY(const Members members, rows_.members(agent.set));
    for (const auto& [limit, weight] : members) of_others.insert(limit);
  }
  STINT_TRY(std::vector<LimitMember> uses, rows_.limits());
  for (LimitMember& use : uses) {
    if (!use.limit.configured || capacities.contains(use.limit.name) || of_others.contains(use.limit.number)) continue;
    use.limit.configured.reset();
    STINT_CHECK(resize(use.limit, std::nullopt));
  }
  return {};
}

Result<> Ledger::pause(const std::string& name, std::optional<Duration> length) {
  return pause(name, length, domain::is_probed(name));
}

Result<> Ledger::pause(const std::string& name, std::optional<Duration> length, bool probed) {
  STINT_TRY(LimitRow limit, rows_.limit(name));
  const bool was_paused = is_paused(limit, now());
  const std::optional<WallTime> before = limit.paused_until;
  extend_pause(limit, length ? std::optional(later(now(), *length)) : std::nullopt);
  if (probed) limit.ramp = 1;
  STINT_CHECK(rows_.put(limit));
  STINT_CHECK(note_pauses(limit.number));
  if (was_paused && limit.paused_until == before) return {};
  const auto left = limit.paused_until ? std::optional(to_ms(*limit.paused_until - now())) : std::nullopt;
  return add_fleet_event(domain::kLimitPaused, domain::pause_data(name, left));
}

Result<std::uint64_t> Ledger::resume(const std::string& name) {
  STINT_TRY(std::vector<RunRow> parked, rows_.parked_on(name));
  for (RunRow& row : parked) STINT_CHECK(wake(row, "limit_resumed"));
  STINT_TRY(LimitRow limit, rows_.limit(name));
  const bool was_paused = is_paused(limit, now());
  limit.paused = false;
  limit.paused_until.reset();
  STINT_CHECK(rows_.put(limit));
  STINT_CHECK(note_pauses(limit.number));
  if (was_paused || !parked.empty()) {
    STINT_CHECK(add_fleet_event(domain::kLimitResumed, domain::resume_data(name, parked.size())));
  }
  return parked.size();
}

}  // namespace stint::store
