// Members of Ledger: decide which runs may start, and assign them to nodes.
#include "store/ledger.hpp"
#include "store/moments.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;

}  // namespace

Result<domain::LimitLoad> Ledger::view(const LimitMember& use, AgentNumber agent,
                                       const std::set<LimitNumber>& held_above) {
  domain::LimitLoad limit;
  limit.paused = is_paused(use.limit, now());
  if (held_above.contains(use.limit.number)) return limit;
  limit.capacity = use.limit.capacity;
  limit.weight = use.weight;
  limit.shared = use.shared;
  limit.ramp = use.limit.ramp;
  limit.units = use.units;
  limit.runs = use.runs;
  limit.turn_of = use.limit.turn_of;
  limit.turn_lapsed = use.limit.turn_until <= now();
  limit.last_turn_of = use.limit.last_turn_of;
  if (!limit.turn_of || limit.turn_lapsed || *limit.turn_of == agent) return limit;
  STINT_TRY(const bool needed, rows_.has_ready(*limit.turn_of));
  limit.turn_lapsed = !needed;
  return limit;
}

/// How many runs of the agent may start now. Takes and returns turns.
Result<std::int64_t> Ledger::permits(const AgentRow& agent, std::uint32_t most,
                                     const std::set<LimitNumber>& held_above) {
  STINT_TRY(std::vector<LimitMember> uses, rows_.limits_of(agent.set));
  std::vector<domain::LimitLoad> limits;
  for (const LimitMember& use : uses) {
    STINT_TRY(const domain::LimitLoad limit, view(use, agent.number, held_above));
    limits.push_back(limit);
  }
  const domain::LimitAnswer answer = domain::ask_limits(agent.number, limits);
  for (const std::size_t i : answer.take_turn) {
    uses[i].limit.turn_of = agent.number;
    uses[i].limit.turn_until = later(now(), domain::kTurn);
    STINT_CHECK(rows_.put(uses[i].limit));
  }
  for (const std::size_t i : answer.clear_turn) {
    const bool mine = uses[i].limit.turn_of == agent.number;
    uses[i].limit.last_turn_of = mine ? std::optional(agent.number) : std::nullopt;
    uses[i].limit.turn_of.reset();
    STINT_CHECK(rows_.put(uses[i].limit));
  }
  return std::min<std::int64_t>(most, answer.free.value_or(most));
}

Result<std::vector<Ready>> Ledger::ready(std::uint32_t most) {
  STINT_TRY(const std::vector<AgentRow> agents,
            rows_.agents());  // before the limits, so that every limit of these agents is read
  STINT_TRY(const std::vector<LimitMember> all, rows_.limits());  // counted once for all agents
  std::map<LimitNumber, LimitMember> limits;
  for (const LimitMember& use : all) limits.emplace(use.limit.number, use);
  std::vector<Ready> found;
  for (const AgentRow& agent : agents) {
    STINT_TRY(const Queue queue, rows_.queue(agent.number, most));
    if (queue.runs == 0) continue;
    STINT_TRY(const auto members, rows_.members(agent.set));
    std::vector<domain::LimitLoad> seen;
    for (const auto& [number, weight] : members) {
      LimitMember use = limits.at(number);
      use.weight = weight;
      STINT_TRY(const domain::LimitLoad limit, view(use, agent.number, {}));
      seen.push_back(limit);
    }
    Ready ready;
    ready.agent = agent.entry.name;
    ready.runs = static_cast<std::uint32_t>(queue.runs);
    ready.rank_ms = queue.rank;
    const domain::LimitAnswer answer = domain::ask_limits(agent.number, seen);
    ready.takes_turn = !answer.take_turn.empty();
    if (answer.blocked_by) ready.blocked_by = limits.at(members[*answer.blocked_by].first).limit.name;
    if (answer.free)
      ready.startable = static_cast<std::uint32_t>(std::clamp<std::int64_t>(*answer.free, 0, queue.runs));
    found.push_back(std::move(ready));
  }
  std::ranges::sort(found, {},
                    [](const Ready& ready) { return std::pair(ready.rank_ms, std::string_view(ready.agent)); });
  return found;
}

Result<> Ledger::add_claim(const RunRow& row, std::vector<Claim>& claims) {
  Claim& claim = claims.emplace_back();
  const Run& run = row.run;
  claim.run = run.number;
  claim.id = run.id;
  claim.agent = run.agent;
  claim.session = run.session;
  claim.fence = run.fence;
  claim.attempt = run.attempt;
  claim.lost = run.lost;
  claim.on_crash = run.on_crash;
  claim.unsafe = run.unsafe;
  STINT_TRY(claim.left, time_left(row));
  if (claim.left) {
    claim.left = std::max(*claim.left, Duration::zero());
    claim.expires_at = later(clock_.shown(now()), *claim.left);
  }
  STINT_TRY(claim.input, rows_.input(row.run.number));
  return {};
}

Result<bool> Ledger::is_kept(const RunRow& row, NodeNumber from) {
  if (!row.kept_for || *row.kept_for == from) return false;
  STINT_TRY(const std::optional<NodeRow> keeper, rows_.node(*row.kept_for));
  return keeper && keeper->state != NodeRow::State::dead;
}

Result<std::set<LimitNumber>> Ledger::held_above(const RunRow& row) {
  std::set<LimitNumber> limits;
  for (RunNumber above = row.parent; above.value != 0;) {  // terminates: a parent is older than its child
    STINT_TRY(const std::optional<RunRow> holder, rows_.run(above));
    if (!holder || holder->run.state != RunState::running) break;
    STINT_TRY(const Members members, rows_.members(holder->set));
    for (const auto& [limit, weight] : members) limits.insert(limit);
    above = holder->parent;
  }
  return limits;
}

Result<SetNumber> Ledger::set_without(SetNumber set, const std::set<LimitNumber>& limits) {
  if (limits.empty()) return set;
  STINT_TRY(Members members, rows_.members(set));
  if (std::erase_if(members, [&](const auto& member) { return limits.contains(member.first); }) == 0) return set;
  if (members.empty()) return SetNumber{};
  STINT_TRY(const std::vector<SetNumber> known, rows_.sets_with(members.front().first));
  for (const SetNumber candidate : known) {
    STINT_TRY(const Members its, rows_.members(candidate));
    if (its == members) return candidate;
  }
  return rows_.make_set(members);
}

Result<std::vector<RunRow>> Ledger::first_ones(NodeNumber node, const AgentRow& agent, std::uint32_t most) {
  std::vector<RunRow> rows;
  STINT_TRY(const bool any, rows_.has_ready(agent.number, node));  // an agent without ready runs takes no turn
  if (!any) return rows;
  STINT_TRY(const std::int64_t room, permits(agent, most, {}));
  if (room < 1) return rows;
  STINT_TRY(rows,
            rows_.ready(agent.number, node, {clock_.wall(), agents_clock(agent)}, static_cast<std::size_t>(room)));
  for (RunRow& row : rows) row.set = agent.set;
  return rows;
}

Result<std::vector<RunRow>> Ledger::named_one(NodeNumber node, const AgentRow& agent, const std::string& id) {
  std::vector<RunRow> rows;
  STINT_TRY(std::optional<RunRow> row, rows_.run(id));
  const bool ready =
      row && row->agent == agent.number && row->run.state == RunState::queued && row->run.hold == Hold::none;
  if (!ready) return rows;
  STINT_TRY(const std::optional<Duration> left, time_left(*row));
  if (left && *left <= Duration::zero()) return rows;
  STINT_TRY(const bool kept, is_kept(*row, node));
  if (kept) return rows;
  STINT_TRY(const std::set<LimitNumber> above, held_above(*row));
  STINT_TRY(const std::int64_t room, permits(agent, 1, above));
  if (room < 1) return rows;
  STINT_TRY(row->set, set_without(agent.set, above));
  rows.push_back(std::move(*row));
  return rows;
}

Result<std::vector<Claim>> Ledger::claim(NodeNumber node, const std::string& agent, std::uint32_t most,
                                         const ClaimDetails& details) {
  STINT_TRY(const std::optional<NodeRow> by, rows_.node(node));
  bool lapsed = !by || by->state == NodeRow::State::dead;
  if (!lapsed) {
    STINT_TRY(lapsed, rows_.is_lapsed(node, beat_time()));
  }
  if (lapsed) return fail(Errc::closed, "the lease of this node is over");
  std::vector<Claim> claims;
  if (by->state != NodeRow::State::live || most == 0) return claims;
  STINT_TRY(const std::optional<AgentRow> of, rows_.agent(agent));
  if (!of) return claims;
  STINT_TRY(std::vector<RunRow> next,
            details.only.empty() ? first_ones(node, *of, most) : named_one(node, *of, details.only));
  claims.reserve(next.size());
  for (RunRow& row : next) {
    Run& run = row.run;
    run.state = RunState::running;
    run.node = node;
    ++run.fence.value;
    ++run.attempt;
    const bool first = !run.started_at;  // the parent's budget may bound it, but its own begins now
    run.started_at = now();
    row.reported = {};
    STINT_CHECK(choose_clock(row));
    if (row.budget && (first || !row.budget_until)) {
      row.budget_until = sooner(row.budget_until, later(clock_.awake(), *row.budget));
    }
    STINT_CHECK(save(row, "claimed", {}, details.waited));
    STINT_CHECK(add_claim(row, claims));
  }
  return claims;
}

Result<std::vector<Claim>> Ledger::owned(NodeNumber node) {
  STINT_TRY(const std::vector<RunRow> rows, rows_.owned(node));
  std::vector<Claim> claims;
  for (const RunRow& row : rows) STINT_CHECK(add_claim(row, claims));
  return claims;
}

}  // namespace stint::store
