// The queries of Ledger: why a run waits, and the state of limits.
#include "store/ledger.hpp"

#include <algorithm>
#include <limits>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::WaitCause;

constexpr std::size_t kNoBound = std::numeric_limits<std::size_t>::max();

}  // namespace

Result<std::vector<LimitHolder>> Ledger::holders(LimitNumber limit, std::uint32_t most) {
  STINT_TRY(std::vector<LimitHolder> found, rows_.holders(limit, std::min(most, kLimitListMax)));
  for (LimitHolder& holder : found) holder.since = clock_.shown(holder.since);
  return found;
}

Result<std::vector<LimitState>> Ledger::limits(std::uint32_t listed) {
  STINT_TRY(const std::vector<LimitMember> members, rows_.limits());
  std::vector<LimitState> found;
  for (const LimitMember& member : members) {
    const LimitRow& limit = member.limit;
    LimitState& state = found.emplace_back();
    state.name = limit.name;
    state.capacity = limit.capacity;
    state.units = member.units;
    state.runs = member.runs;
    state.paused = is_paused(limit, now());
    if (state.paused && limit.paused_until) {
      state.paused_until = clock_.shown(limit.paused_until);
      state.paused_for = *limit.paused_until - now();
    }
    state.ramp = limit.ramp;
    if (limit.turn_of && limit.turn_until > now()) {
      STINT_TRY(const std::optional<AgentRow> served, rows_.agent(*limit.turn_of));
      STINT_TRY(const bool needed, rows_.has_ready(*limit.turn_of));
      if (served && needed) state.turn_of = served->entry.name;
    }
    STINT_TRY(state.waiting, rows_.count_waiters(limit.number, std::nullopt, kNoBound));
    if (listed == 0) continue;
    STINT_TRY(state.holders, holders(limit.number, listed));
    STINT_TRY(state.line, rows_.waiters(limit.number, std::min(listed, kLimitListMax)));
    for (LimitWaiter& waiter : state.line) waiter.since = clock_.shown(waiter.since);
  }
  return found;
}

/// For a run that is not ready.
Result<Why> Ledger::why_held(const RunRow& row) {
  const Run& run = row.run;
  Why why;
  why.cause = domain::cause_of(run.hold);
  why.limit = row.parked_on;
  why.until = clock_.shown(run.not_before);
  if (run.hold != Hold::session) return why;
  STINT_TRY(const std::optional<RunRow> head, rows_.head_of(run.session));
  if (!head) return why;
  why.behind = head->run.id;
  why.behind_state = head->run.state;
  return why;
}

Result<std::optional<Why>> Ledger::why_limited(const RunRow& row, const LimitMember& member,
                                               const std::set<LimitNumber>& held_above) {
  STINT_TRY(const domain::LimitLoad load, view(member, row.agent, held_above));
  Why why;
  why.limit = member.limit.name;
  why.capacity = member.limit.capacity;
  why.held = member.units;
  why.weight = member.weight;
  if (load.paused) {
    why.cause = WaitCause::paused;
    why.until = clock_.shown(member.limit.paused_until);
    return why;
  }
  if (load.turn_of && *load.turn_of != row.agent && !load.turn_lapsed) {
    STINT_TRY(const std::optional<AgentRow> served, rows_.agent(*load.turn_of));
    why.cause = WaitCause::turn;
    if (served) why.turn_of = served->entry.name;
    why.until = clock_.shown(member.limit.turn_until);
  } else if (load.ramp && load.runs >= std::int64_t{*load.ramp}) {
    why.cause = WaitCause::probe;
    why.ramp = load.ramp;
  } else if (load.capacity && std::int64_t{*load.capacity} - load.units < std::int64_t{load.weight}) {
    why.cause = WaitCause::limit;
  } else {
    return std::nullopt;
  }
  STINT_TRY(why.holders, holders(member.limit.number, kLimitListMax));
  if (why.cause == WaitCause::probe) return why;
  const LinePlace place{.rank = row.rank, .run = row.run.number};
  STINT_TRY(const std::uint64_t ahead, rows_.count_waiters(member.limit.number, place, kPlaceMax));
  why.ahead = static_cast<std::uint32_t>(ahead);
  return why;
}

Result<std::vector<Why>> Ledger::why(const std::string& id, std::optional<std::int64_t> place) {
  STINT_TRY(const RunRow row, must_find(id));
  std::vector<Why> reasons;
  const Run& run = row.run;
  if (run.state != RunState::queued && run.state != RunState::parked) return reasons;
  if (run.hold != Hold::none) {
    STINT_TRY(reasons.emplace_back(), why_held(row));
    return reasons;
  }
  STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(row.agent));
  STINT_TRY(const std::vector<LimitMember> members, rows_.limits_of(agent ? agent->set : SetNumber{}));
  std::set<LimitNumber> above;  // these limits do not delay a run that is claimed by its id
  if (row.kept_for) {
    STINT_TRY(above, held_above(row));
  }
  for (const LimitMember& member : members) {
    STINT_TRY(std::optional<Why> why, why_limited(row, member, above));
    if (why) reasons.push_back(std::move(*why));
  }
  if (place) {
    Why& why = reasons.emplace_back();
    why.cause = WaitCause::place;
    why.place = place;
  }
  return reasons;
}

Filter Ledger::kept(Filter filter) const {
  filter.since = clock_.kept(filter.since);
  filter.until = clock_.kept(filter.until);
  return filter;
}

}  // namespace stint::store
