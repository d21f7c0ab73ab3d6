// Members of SqliteRows: agents, limits and nodes.
#include "os/file_time.hpp"
#include "os/slot_file.hpp"
#include "store/column_codec.hpp"
#include "store/sqlite_rows.hpp"
#include "store_sql_sqlite.hpp"

#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::store {
namespace {

using std::chrono::milliseconds;
namespace query = sqlite::query;

constexpr unsigned kLeaseMode = 0600, kLeasesMode = 0700;

AgentRow read_agent(const Query& query) {
  AgentRow agent;
  agent.number = AgentNumber{query.number(0)};
  agent.entry.name = query.text(1);
  agent.set = SetNumber{query.number(2)};
  agent.entry.queued_max = static_cast<std::uint32_t>(query.number(3));
  agent.entry.attempts_max = static_cast<std::uint32_t>(query.number(4));
  agent.entry.lost_max = static_cast<std::uint32_t>(query.number(5));
  Standstill& still = agent.standstill;
  still.total = milliseconds(query.number(6));
  still.paused = query.number(7) != 0;
  still.until = query.time(8);
  still.since = query.time(9).value_or(WallTime());
  still.since_awake = AwakeTime(milliseconds(query.number(10)));
  return agent;
}

LimitRow read_limit(const Query& query) {
  LimitRow limit;
  limit.number = LimitNumber{query.number(0)};
  limit.name = query.text(1);
  limit.capacity = small(query.maybe(2));
  limit.paused = query.number(3) != 0;
  limit.paused_until = query.time(4);
  limit.ramp = small(query.maybe(5));
  limit.turn_of = query.maybe<AgentNumber>(6);
  limit.last_turn_of = query.maybe<AgentNumber>(7);
  limit.turn_until = query.time(8).value_or(WallTime());
  limit.configured = small(query.maybe(9));
  return limit;
}

Result<std::vector<LimitMember>> read_uses(Query& query) {
  std::vector<LimitMember> uses;
  while (query.next()) {
    LimitMember use;
    use.limit = read_limit(query);
    use.weight = static_cast<std::uint32_t>(query.number(10));
    use.units = query.number(11);
    use.runs = query.number(12);
    use.shared = query.number(13) > 1;
    uses.push_back(std::move(use));
  }
  STINT_CHECK(query.end());
  return uses;
}

NodeRow read_node(const Query& query) {
  const std::string state = query.text(2);
  return {.number = NodeNumber{query.number(0)},
          .label = query.text(1),
          .kind = query.number(3) != 0 ? NodeKind::one_run : NodeKind::any,
          .state = state == "live"       ? NodeRow::State::live
                   : state == "draining" ? NodeRow::State::draining
                                         : NodeRow::State::dead};
}

}  // namespace

Result<std::optional<AgentRow>> SqliteRows::agent(std::string_view name) {
  Query query(database_, query::agent_by_name);
  query.bind(1, name);
  std::optional<AgentRow> found;
  if (query.next()) found = read_agent(query);
  STINT_CHECK(query.end());
  return found;
}

Result<std::optional<AgentRow>> SqliteRows::agent(AgentNumber number) {
  if (const auto known = agents_.find(number); known != agents_.end()) return known->second;
  Query query(database_, query::agent_by_number);
  query.bind(1, number);
  std::optional<AgentRow> found;
  if (query.next()) found = read_agent(query);
  STINT_CHECK(query.end());
  if (found && database_.in_transaction()) agents_.emplace(number, *found);
  return found;
}

Result<std::vector<AgentRow>> SqliteRows::agents() {
  Query query(database_, query::agents);
  std::vector<AgentRow> found;
  while (query.next()) found.push_back(read_agent(query));
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::put(AgentRow& agent) {
  agents_.clear();
  Query query(database_, query::put_agent);
  query.bind(1, agent.entry.name).bind(2, agent.set).bind(3, std::int64_t{agent.entry.queued_max});
  query.bind(4, std::int64_t{agent.entry.attempts_max}).bind(5, std::int64_t{agent.entry.lost_max});
  if (query.next()) agent.number = AgentNumber{query.number(0)};
  return query.run();
}

Result<> SqliteRows::put(AgentNumber agent, const Standstill& standstill) {
  agents_.clear();
  Query query(database_, query::put_standstill);
  query.bind(1, agent).bind(2, to_ms(standstill.total)).bind(3, std::int64_t{standstill.paused});
  query.bind(4, standstill.until).bind(5, standstill.since).bind(6, number_of(standstill.since_awake));
  return query.run();
}

Result<SetNumber> SqliteRows::make_set(const Members& members) {
  SetNumber set{};
  {
    Query query(database_, query::make_set);
    if (query.next()) set = SetNumber{query.number(0)};
    STINT_CHECK(query.run());
  }
  for (const auto& [limit, weight] : members) {
    Query query(database_, query::add_to_set);
    query.bind(1, set).bind(2, limit).bind(3, std::int64_t{weight});
    STINT_CHECK(query.run());
  }
  return set;
}

Result<std::vector<SetNumber>> SqliteRows::sets_with(LimitNumber limit) {
  Query query(database_, query::sets_with);
  query.bind(1, limit);
  std::vector<SetNumber> found;
  while (query.next()) found.emplace_back(query.number(0));
  STINT_CHECK(query.end());
  return found;
}

Result<LimitRow> SqliteRows::limit(std::string_view name) {
  {
    Query query(database_, query::limit_by_name);
    query.bind(1, name);
    if (query.next()) return read_limit(query);
    STINT_CHECK(query.end());
  }
  Query query(database_, query::make_limit);
  query.bind(1, name);
  LimitRow fresh;
  fresh.name = name;
  if (query.next()) fresh.number = LimitNumber{query.number(0)};
  STINT_CHECK(query.run());
  return fresh;
}

Result<std::vector<LimitMember>> SqliteRows::limits_of(SetNumber set) {
  Query query(database_, query::limits_of_set);
  query.bind(1, set);
  return read_uses(query);
}

Result<std::vector<LimitRow>> SqliteRows::ramping(SetNumber set) {
  if (steady_.contains(set)) return std::vector<LimitRow>();
  Query query(database_, query::ramping);
  query.bind(1, set);
  std::vector<LimitRow> found;
  while (query.next()) found.push_back(read_limit(query));
  STINT_CHECK(query.end());
  if (found.empty()) steady_.insert(set);
  return found;
}

Result<std::vector<LimitMember>> SqliteRows::limits() {
  Query query(database_, query::limits);
  return read_uses(query);
}

Result<Members> SqliteRows::members(SetNumber set) {
  Query query(database_, query::members);
  query.bind(1, set);
  Members found;
  while (query.next()) found.emplace_back(query.number(0), static_cast<std::uint32_t>(query.number(1)));
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::put(const LimitRow& limit) {
  steady_.clear();
  Query query(database_, query::put_limit);
  query.bind(1, limit.number).bind(2, wide(limit.capacity)).bind(3, std::int64_t{limit.paused});
  query.bind(4, limit.paused_until).bind(5, wide(limit.ramp)).bind(6, limit.turn_of).bind(7, limit.last_turn_of);
  query.bind(8, limit.turn_until).bind(9, wide(limit.configured));
  return query.run();
}

std::string SqliteRows::lease_path(const std::string& leases, NodeNumber node) {
  return leases + "/" + std::to_string(node.value) + ".lock";
}

Result<NodeNumber> SqliteRows::add_node(const std::string& label, NodeKind kind, WallTime now) {
  NodeNumber number{};
  {
    Query query(database_, query::add_node);
    query.bind(1, label).bind(2, std::int64_t{kind == NodeKind::one_run});
    if (query.next()) number = NodeNumber{query.number(0)};
    STINT_CHECK(query.run());
  }
  // Before the commit: a process that sees the node must find it locked.
  STINT_TRY(os::Fd lease, take_lease(number));
  own_.insert_or_assign(number, std::move(lease));
  enrolled_.push_back(number);
  STINT_CHECK(renew(number, now));
  return number;
}

Result<os::Fd> SqliteRows::take_lease(NodeNumber node) const {
  const std::string path = lease_path(node);
  if (!os::file_identity(leases_)) ::mkdir(leases_.c_str(), kLeasesMode);  // if this fails, the next call reports why
  STINT_TRY(os::Fd lease, os::open_shared_file(path, kLeaseMode));
  if (os::try_lock_slot(lease.get())) return lease;
  return fail(Errc::conflict, path + " is locked by another program. End that program");
}

Result<std::optional<NodeRow>> SqliteRows::node(NodeNumber number) {
  Query query(database_, query::node);
  query.bind(1, number);
  std::optional<NodeRow> found;
  if (query.next()) found = read_node(query);
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::put(const NodeRow& node) {
  if (node.state != NodeRow::State::dead) {
    Query query(database_, query::put_node);
    return query.bind(1, node.number).bind(2, to_string(node.state)).run();
  }
  Query query(database_, query::remove_node);
  STINT_CHECK(query.bind(1, node.number).run());
  buried_.push_back(node.number);
  return {};
}

/// Creates a deleted lease file again: without it other processes consider this one dead.
Result<> SqliteRows::renew(NodeNumber number, WallTime now) {
  const auto own = own_.find(number);
  if (own == own_.end()) return {};
  if (!os::file_identity(lease_path(number))) {
    STINT_TRY(own->second, take_lease(number));
  }
  os::set_written_at(own->second.get(), now);
  return {};
}

/// Only a free lock, or a missing file, proves that a process is gone. A failed check proves nothing.
Result<bool> SqliteRows::is_lapsed(NodeNumber number, WallTime) {
  if (own_.contains(number)) return false;
  STINT_TRY(const os::LockState lease, os::probe_lock(lease_path(number)));
  return lease != os::LockState::held;
}

Result<std::vector<NodeRow>> SqliteRows::nodes() {
  Query query(database_, query::nodes);
  std::vector<NodeRow> found;
  while (query.next()) found.push_back(read_node(query));
  STINT_CHECK(query.end());
  return found;
}

Result<bool> SqliteRows::are_all_own() {
  STINT_TRY(const std::vector<NodeRow> all, nodes());
  return std::ranges::all_of(all, [this](const NodeRow& node) { return own_.contains(node.number); });
}

Result<> SqliteRows::see_clock(const StoreClock& clock) {
  StoreClock::Seen seen;
  {
    Query query(database_, query::clock);
    if (query.next()) {
      seen = {.wall = WallTime(milliseconds(query.number(5))),
              .now = WallTime(milliseconds(query.number(6))),
              .awake_now = AwakeTime(milliseconds(query.number(7)))};
    }
    STINT_CHECK(query.run());
  }
  if (!clock.is_stale(seen)) return {};
  seen = clock.look();
  Query query(database_, query::see_clock);
  return query.bind(1, seen.wall).bind(2, seen.now).bind(3, number_of(seen.awake_now)).run();
}

Result<std::vector<NodeState>> SqliteRows::node_states(WallTime now) {
  Query query(database_, query::node_states);
  std::vector<NodeState> found;
  while (query.next()) {
    const NodeRow row = read_node(query);
    const std::optional<WallTime> beaten = os::written_at(lease_path(row.number));
    if (!beaten) continue;  // it is being declared dead
    found.push_back({.number = row.number,
                     .label = row.label,
                     .kind = row.kind,
                     .state = std::string(to_string(row.state)),
                     .last_beat_ago = std::max<Duration>(now - *beaten, Duration::zero()),
                     .runs = static_cast<std::uint64_t>(query.number(4))});
  }
  STINT_CHECK(query.end());
  return found;
}

}  // namespace stint::store
