#include "store/sqlite_rows.hpp"

#include "os/file_time.hpp"
#include "os/slot_file.hpp"
#include "store/words.hpp"
#include "store_sql_sqlite.hpp"

#include <algorithm>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::Stop;
using std::chrono::milliseconds;
namespace query = sqlite::query;

constexpr unsigned kLeaseMode = 0600, kLeasesMode = 0700;
constexpr std::size_t kEventsAtOnce = 16;  // as many as `add_events` takes

std::string_view hold_text(Hold hold) { return hold == Hold::none ? std::string_view() : to_string(hold); }
std::string_view stop_text(Stop stop) { return stop == Stop::none ? std::string_view() : to_string(stop); }

std::optional<AwakeTime> awake_time(std::optional<std::int64_t> ms) {
  return ms ? std::optional(AwakeTime(milliseconds(*ms))) : std::nullopt;
}
std::int64_t number_of(AwakeTime time) { return time.time_since_epoch().count(); }
std::optional<std::int64_t> number_of(std::optional<AwakeTime> time) {
  return time ? std::optional(number_of(*time)) : std::nullopt;
}

std::unique_ptr<const AgentRow> read_agent(const Query& query) {
  auto row = std::make_unique<AgentRow>();
  AgentRow& agent = *row;
  agent.number = query.number(0);
  agent.entry.name = query.text(1);
  agent.set = query.number(2);
  agent.entry.queued_max = static_cast<std::uint32_t>(query.number(3));
  agent.entry.attempts_max = static_cast<std::uint32_t>(query.number(4));
  agent.entry.lost_max = static_cast<std::uint32_t>(query.number(5));
  agent.entry.backoff_base = milliseconds(query.number(6));
  agent.entry.backoff_cap = milliseconds(query.number(7));
  Standstill& still = agent.standstill;
  still.total = milliseconds(query.number(8));
  still.paused = query.number(9) != 0;
  still.until = query.time(10);
  still.since = query.time(11).value_or(WallTime());
  still.since_awake = AwakeTime(milliseconds(query.number(12)));
  return row;
}

GateRow read_gate(const Query& query) {
  GateRow gate;
  gate.number = query.number(0);
  gate.name = query.text(1);
  gate.capacity = small(query.maybe(2));
  gate.paused = query.number(3) != 0;
  gate.paused_until = query.time(4);
  gate.ramp = small(query.maybe(5));
  gate.turn_of = query.maybe(6);
  gate.last_turn_of = query.maybe(7);
  gate.turn_until = query.time(8).value_or(WallTime());
  gate.configured = small(query.maybe(9));
  return gate;
}

Result<std::vector<GateUse>> read_uses(Query& query) {
  std::vector<GateUse> uses;
  while (query.next()) {
    GateUse use;
    use.gate = read_gate(query);
    use.weight = static_cast<std::uint32_t>(query.number(10));
    use.units = query.number(11);
    use.runs = query.number(12);
    use.shared = query.number(13) > 1;
    uses.push_back(std::move(use));
  }
  STINT_CHECK(query.end());
  return uses;
}

WorkerRow read_worker(const Query& query) {
  const std::string state = query.text(2);
  return {.number = query.number(0),
          .label = query.text(1),
          .state = state == "live"       ? WorkerRow::State::live
                   : state == "draining" ? WorkerRow::State::draining
                                         : WorkerRow::State::dead};
}

}  // namespace

// ---- agents, limits, workers ---------------------------------------------------------------------------------------

Result<Loan<const AgentRow>> SqliteRows::agent(std::string_view name) {
  Query query(database_, query::agent_by_name);
  query.bind(1, name);
  Loan<const AgentRow> found;
  if (query.next()) found = lend_made(read_agent(query));
  STINT_CHECK(query.end());
  return found;
}

Result<Loan<const AgentRow>> SqliteRows::agent(AgentNumber number) {
  if (const auto known = agents_.find(number); known != agents_.end()) return lend(*known->second);
  Query query(database_, query::agent_by_number);
  query.bind(1, number);
  std::unique_ptr<const AgentRow> found;
  if (query.next()) found = read_agent(query);
  STINT_CHECK(query.end());
  if (!found || !database_.in_transaction()) return lend_made(std::move(found));
  return lend(*agents_.emplace(number, std::move(found)).first->second);
}

Result<std::vector<Loan<const AgentRow>>> SqliteRows::agents() {
  Query query(database_, query::agents);
  std::vector<Loan<const AgentRow>> found;
  while (query.next()) found.push_back(lend_made(read_agent(query)));
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::put(AgentRow& agent) {
  agents_.clear();
  Query query(database_, query::put_agent);
  query.bind(1, agent.entry.name).bind(2, agent.set).bind(3, std::int64_t{agent.entry.queued_max});
  query.bind(4, std::int64_t{agent.entry.attempts_max}).bind(5, std::int64_t{agent.entry.lost_max});
  query.bind(6, to_ms(agent.entry.backoff_base)).bind(7, to_ms(agent.entry.backoff_cap));
  if (query.next()) agent.number = query.number(0);
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
  SetNumber set = 0;
  {
    Query query(database_, query::make_set);
    if (query.next()) set = query.number(0);
    STINT_CHECK(query.run());
  }
  for (const auto& [gate, weight] : members) {
    Query query(database_, query::add_to_set);
    query.bind(1, set).bind(2, gate).bind(3, std::int64_t{weight});
    STINT_CHECK(query.run());
  }
  return set;
}

Result<std::vector<SetNumber>> SqliteRows::sets_with(GateNumber gate) {
  Query query(database_, query::sets_with);
  query.bind(1, gate);
  std::vector<SetNumber> found;
  while (query.next()) found.push_back(query.number(0));
  STINT_CHECK(query.end());
  return found;
}

Result<GateRow> SqliteRows::gate(std::string_view name) {
  {
    Query query(database_, query::gate_by_name);
    query.bind(1, name);
    if (query.next()) return read_gate(query);
    STINT_CHECK(query.end());
  }
  Query query(database_, query::make_gate);
  query.bind(1, name);
  GateRow fresh;
  fresh.name = name;
  if (query.next()) fresh.number = query.number(0);
  STINT_CHECK(query.run());
  return fresh;
}

Result<std::vector<GateUse>> SqliteRows::gates_of(SetNumber set) {
  Query query(database_, query::gates_of_set);
  query.bind(1, set);
  return read_uses(query);
}

Result<std::vector<GateRow>> SqliteRows::ramping(SetNumber set) {
  if (steady_.contains(set)) return std::vector<GateRow>();
  Query query(database_, query::ramping);
  query.bind(1, set);
  std::vector<GateRow> found;
  while (query.next()) found.push_back(read_gate(query));
  STINT_CHECK(query.end());
  if (found.empty()) steady_.insert(set);
  return found;
}

Result<std::vector<GateUse>> SqliteRows::gates() {
  Query query(database_, query::gates);
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

Result<> SqliteRows::put(const GateRow& gate) {
  steady_.clear();
  Query query(database_, query::put_gate);
  query.bind(1, gate.number).bind(2, wide(gate.capacity)).bind(3, std::int64_t{gate.paused});
  query.bind(4, gate.paused_until).bind(5, wide(gate.ramp)).bind(6, gate.turn_of).bind(7, gate.last_turn_of);
  query.bind(8, gate.turn_until).bind(9, wide(gate.configured));
  return query.run();
}

std::string SqliteRows::lease_path(const std::string& leases, WorkerNumber worker) {
  return leases + "/" + std::to_string(worker) + ".lock";
}

Result<WorkerNumber> SqliteRows::add_worker(const std::string& label, WallTime now) {
  WorkerNumber number = 0;
  {
    Query query(database_, query::add_worker);
    query.bind(1, label);
    if (query.next()) number = query.number(0);
    STINT_CHECK(query.run());
  }
  // Before the commit: who sees the worker finds it locked.
  STINT_TRY(os::Fd lease, take_lease(number));
  own_.insert_or_assign(number, std::move(lease));
  enrolled_.push_back(number);
  STINT_CHECK(renew(number, now));
  return number;
}

Result<os::Fd> SqliteRows::take_lease(WorkerNumber worker) const {
  const std::string path = lease_path(worker);
  if (!os::file_identity(leases_)) ::mkdir(leases_.c_str(), kLeasesMode);  // else the next call says why it failed
  STINT_TRY(os::Fd lease, os::open_shared_file(path, kLeaseMode));
  if (os::try_lock_slot(lease.get())) return lease;
  return fail(Errc::conflict, path + " is locked by another program. End that program");
}

Result<Loan<const WorkerRow>> SqliteRows::worker(WorkerNumber number) {
  Query query(database_, query::worker);
  query.bind(1, number);
  Loan<const WorkerRow> found;
  if (query.next()) found = lend_made(std::make_unique<const WorkerRow>(read_worker(query)));
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::put(const WorkerRow& worker) {
  if (worker.state != WorkerRow::State::dead) {
    Query query(database_, query::put_worker);
    return query.bind(1, worker.number).bind(2, to_string(worker.state)).run();
  }
  Query query(database_, query::remove_worker);
  STINT_CHECK(query.bind(1, worker.number).run());
  buried_.push_back(worker.number);
  return {};
}

/// A lease file that was deleted is made anew: without it other processes take this one for dead.
Result<> SqliteRows::renew(WorkerNumber number, WallTime now) {
  const auto own = own_.find(number);
  if (own == own_.end()) return {};
  if (!os::file_identity(lease_path(number))) {
    STINT_TRY(own->second, take_lease(number));
  }
  os::say_written(own->second.get(), now);
  return {};
}

/// Only a lock that is free, or no file at all, proves that a process is gone. Not being able to look proves nothing.
Result<bool> SqliteRows::is_lapsed(WorkerNumber number, WallTime) {
  if (own_.contains(number)) return false;
  STINT_TRY(const os::LockState lease, os::probe_lock(lease_path(number)));
  return lease != os::LockState::held;
}

Result<std::vector<WorkerRow>> SqliteRows::workers() {
  Query query(database_, query::workers);
  std::vector<WorkerRow> found;
  while (query.next()) found.push_back(read_worker(query));
  STINT_CHECK(query.end());
  return found;
}

Result<bool> SqliteRows::are_all_own() {
  STINT_TRY(const std::vector<WorkerRow> all, workers());
  return std::ranges::all_of(all, [this](const WorkerRow& worker) { return own_.contains(worker.number); });
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

Result<std::vector<WorkerState>> SqliteRows::worker_states(WallTime now) {
  Query query(database_, query::worker_states);
  std::vector<WorkerState> found;
  while (query.next()) {
    const WorkerRow row = read_worker(query);
    const std::optional<WallTime> beaten = os::written_at(lease_path(row.number));
    if (!beaten) continue;  // it is being buried
    found.push_back({.number = row.number,
                     .label = row.label,
                     .state = std::string(to_string(row.state)),
                     .last_beat_ago = std::max<Duration>(now - *beaten, Duration::zero()),
                     .runs = static_cast<std::uint64_t>(query.number(3))});
  }
  STINT_CHECK(query.end());
  return found;
}

// ---- runs ----------------------------------------------------------------------------------------------------------

Result<std::string> SqliteRows::agent_name(AgentNumber number) {
  const auto known = agent_names_.find(number);
  if (known != agent_names_.end()) return known->second;
  STINT_TRY(const Loan<const AgentRow> row, agent(number));
  if (!row) return fail(Errc::failed, "the database has a run of an agent that it has not");
  agent_names_.emplace(number, row->entry.name);
  return row->entry.name;
}

/// The columns of queries.sql, in their order.
Result<Loan<RunRow>> SqliteRows::read_run(const Query& query) {
  auto made = std::make_unique<RunRow>();
  RunRow& row = *made;
  Run& run = row.run;
  run.number = query.number(0);
  run.id = query.text(1);
  row.agent = query.number(2);
  STINT_TRY(run.agent, agent_name(row.agent));
  run.session = query.text(3);
  row.parent = query.number(4);
  run.parent = query.text(5);
  run.key = query.text(6);
  run.on_crash = read_on_crash(query.text(7));
  row.rank = query.number(8);
  run.created_at = query.time(9).value_or(WallTime());
  run.deadline = query.time(10);
  row.budget = to_duration(query.maybe(11));
  STINT_TRY(run.state, read_state(query.text(12)));
  STINT_TRY(run.hold, read_hold(query.text(13)));
  run.stop = read_stop(query.text(14));
  run.error = query.text(15);
  run.not_before = query.time(16);
  row.budget_left = to_duration(query.maybe(17));
  row.budget_until = awake_time(query.maybe(18));
  row.by_agents_clock = run.state == RunState::queued && run.hold == Hold::none;
  run.attempt = static_cast<std::uint32_t>(query.number(19));
  run.lost = static_cast<std::uint32_t>(query.number(20));
  run.fence = query.number(21);
  run.seq = query.number(22);
  run.unsafe = query.number(23) != 0;
  run.worker = query.maybe(24);
  row.set = query.number(25);
  row.parked_on = query.text(26);
  run.started_at = query.time(27);
  run.finished_at = query.time(28);
  run.tokens = query.number(29);
  run.money_micros = query.number(30);
  row.kept_for = query.maybe(31);
  row.reported = {.tokens = query.number(32), .money_micros = query.number(33)};
  return lend_made(std::move(made));
}

Result<Loan<RunRow>> SqliteRows::read_one(Query& query) {
  Loan<RunRow> found;
  if (query.next()) {
    STINT_TRY(found, read_run(query));
  }
  STINT_CHECK(query.end());
  return found;
}

Result<std::vector<Loan<RunRow>>> SqliteRows::read_all(Query& query) {
  std::vector<Loan<RunRow>> found;
  while (query.next()) {
    STINT_TRY(Loan<RunRow> row, read_run(query));
    found.push_back(std::move(row));
  }
  STINT_CHECK(query.end());
  return found;
}

Result<Loan<RunRow>> SqliteRows::run(RunNumber number) {
  Query query(database_, query::run_by_number);
  query.bind(1, number);
  return read_one(query);
}

Result<Loan<RunRow>> SqliteRows::run(std::string_view id) {
  Query query(database_, query::run_by_id);
  query.bind(1, id);
  return read_one(query);
}

Result<Loan<RunRow>> SqliteRows::run_of_key(AgentNumber agent, std::string_view key) {
  Query query(database_, query::run_by_key);
  query.bind(1, agent).bind(2, key);
  return read_one(query);
}

Result<std::vector<Loan<RunRow>>> SqliteRows::ready(AgentNumber agent, WorkerNumber by, Moment now, std::size_t most) {
  Query query(database_, query::ready);
  query.bind(1, agent).bind(2, now.wall).bind(3, static_cast<std::int64_t>(most)).bind(4, by);
  query.bind(5, number_of(now.drawn));
  return read_all(query);
}

Result<std::vector<Loan<RunRow>>> SqliteRows::owned(WorkerNumber worker) {
  Query query(database_, query::owned);
  query.bind(1, worker);
  return read_all(query);
}

Result<Loan<RunRow>> SqliteRows::head_of(std::string_view session) {
  Query query(database_, query::head_of);
  query.bind(1, session);
  return read_one(query);
}

Result<std::vector<RunNumber>> SqliteRows::children(RunNumber parent) {
  Query query(database_, query::children);
  query.bind(1, parent);
  std::vector<RunNumber> found;
  while (query.next()) found.push_back(query.number(0));
  STINT_CHECK(query.end());
  return found;
}

Result<std::vector<Loan<RunRow>>> SqliteRows::parked_on(std::string_view limit) {
  Query query(database_, query::parked_on);
  query.bind(1, limit);
  return read_all(query);
}

Result<std::vector<Loan<RunRow>>> SqliteRows::asleep(WallTime until, std::size_t most) {
  Query query(database_, query::asleep);
  query.bind(1, until).bind(2, static_cast<std::int64_t>(most));
  return read_all(query);
}

Result<std::vector<Loan<RunRow>>> SqliteRows::past_deadline(WallTime wall, std::size_t most) {
  Query query(database_, query::past_deadline);
  query.bind(1, wall).bind(2, static_cast<std::int64_t>(most));
  return read_all(query);
}

Result<std::vector<Loan<RunRow>>> SqliteRows::past_budget(AwakeTime until, std::size_t most) {
  Query query(database_, query::past_budget);
  query.bind(1, number_of(until)).bind(2, static_cast<std::int64_t>(most));
  return read_all(query);
}

Result<std::vector<std::pair<AgentNumber, AwakeTime>>> SqliteRows::ready_budgets() {
  Query query(database_, query::ready_budgets);
  std::vector<std::pair<AgentNumber, AwakeTime>> found;
  while (query.next()) found.emplace_back(query.number(0), AwakeTime(milliseconds(query.number(1))));
  STINT_CHECK(query.end());
  return found;
}

Result<std::vector<Loan<RunRow>>> SqliteRows::ready_past_budget(AgentNumber agent, AwakeTime until, std::size_t most) {
  Query query(database_, query::ready_past_budget);
  query.bind(1, agent).bind(2, number_of(until)).bind(3, static_cast<std::int64_t>(most));
  return read_all(query);
}

Result<NextDue> SqliteRows::next_due() {
  Query query(database_, query::next_due);
  NextDue due;
  if (query.next()) {
    due = {.asleep = query.time(0), .deadline = query.time(1), .budget = awake_time(query.maybe(2))};
  }
  STINT_CHECK(query.run());
  return due;
}

Result<bool> SqliteRows::has_queued(AgentNumber agent, std::size_t least) {
  if (least == 0) return true;
  Query query(database_, query::has_queued);
  query.bind(1, agent).bind(2, static_cast<std::int64_t>(least));
  const bool any = query.next();
  STINT_CHECK(query.end());
  return any;
}

Result<bool> SqliteRows::has_ready(AgentNumber agent, WorkerNumber by) {
  Query query(database_, query::has_ready_for);
  query.bind(1, agent).bind(2, by);
  const bool any = query.next();
  STINT_CHECK(query.end());
  return any;
}

Result<bool> SqliteRows::has_ready(AgentNumber agent) {
  Query query(database_, query::has_ready);
  query.bind(1, agent);
  const bool any = query.next();
  STINT_CHECK(query.end());
  return any;
}

Result<Queue> SqliteRows::queue(AgentNumber agent, std::size_t most) {
  Query query(database_, query::queue);
  query.bind(1, agent).bind(2, static_cast<std::int64_t>(most));
  Queue found;
  if (query.next()) found = {.runs = query.number(0), .rank = query.number(1)};
  STINT_CHECK(query.run());
  return found;
}

Result<Loan<RunRow>> SqliteRows::add(RunRow&& fresh, std::string input) {
  auto made = std::make_unique<RunRow>(std::move(fresh));
  RunRow& row = *made;
  Run& run = row.run;
  {
    Query query(database_, query::add_run);
    query.bind(1, run.id).bind(2, row.agent).bind_some(3, run.session);
    query.bind(4, row.parent == 0 ? std::nullopt : std::optional(row.parent)).bind_some(5, run.parent);
    query.bind_some(6, run.key).bind(7, to_string(run.on_crash)).bind(8, row.rank).bind(9, run.created_at);
    query.bind(10, run.deadline).bind(11, maybe_ms(row.budget)).bind(12, to_string(run.state));
    query.bind_some(13, hold_text(run.hold)).bind(14, run.not_before).bind(15, row.kept_for);
    query.bind(16, number_of(row.budget_until));
    if (query.next()) run.number = query.number(0);
    STINT_CHECK(query.run());
  }
  if (!input.empty()) {
    Query query(database_, query::add_input);
    STINT_CHECK(query.bind(1, run.number).bind(2, input).run());
  }
  return lend_made(std::move(made));
}

Result<> SqliteRows::put(const RunRow& row) {
  const Run& run = row.run;
  Query query(database_, query::put_run);
  query.bind(1, run.number).bind(2, to_string(run.state)).bind_some(3, hold_text(run.hold));
  query.bind_some(4, stop_text(run.stop)).bind_some(5, run.error).bind(6, run.not_before);
  query.bind(7, maybe_ms(row.budget_left)).bind(8, number_of(row.budget_until));
  query.bind(9, std::int64_t{run.attempt}).bind(10, std::int64_t{run.lost}).bind(11, run.fence).bind(12, run.seq);
  query.bind(13, std::int64_t{run.unsafe}).bind(14, run.worker);
  query.bind(15, row.set == 0 ? std::nullopt : std::optional(row.set)).bind_some(16, row.parked_on);
  query.bind(17, run.started_at).bind(18, run.finished_at).bind(19, run.tokens).bind(20, run.money_micros);
  query.bind(21, row.reported.tokens).bind(22, row.reported.money_micros);
  return query.run();
}

Result<std::string> SqliteRows::input(RunNumber run) {
  Query query(database_, query::input);
  query.bind(1, run);
  std::string body;
  if (query.next()) body = query.text(0);
  STINT_CHECK(query.end());
  return body;
}

Result<std::string> SqliteRows::result(RunNumber run) {
  Query query(database_, query::result);
  query.bind(1, run);
  std::string body;
  if (query.next()) body = query.text(0);
  STINT_CHECK(query.end());
  return body;
}

Result<> SqliteRows::put_result(RunNumber run, std::string result) {
  Query query(database_, query::put_result);
  return query.bind(1, run).bind(2, result).run();
}

Result<> SqliteRows::add_event(EventRow&& event) {
  events_.push_back(std::move(event));
  return {};
}

Result<> SqliteRows::write_events(std::size_t from, std::size_t count) {
  Query query(database_, count == kEventsAtOnce ? query::add_events : query::add_event);
  int at = 0;
  for (const EventRow& event : std::span(events_).subspan(from, count)) {
    query.bind(++at, event.run == 0 ? std::nullopt : std::optional(event.run)).bind(++at, event.seq);
    query.bind(++at, event.fence).bind(++at, event.worker).bind(++at, event.cause);
    query.bind_some(++at, event.state ? to_string(*event.state) : std::string_view());
    query.bind_some(++at, hold_text(event.hold)).bind_some(++at, event.error).bind_some(++at, event.data);
    query.bind(++at, event.at);
  }
  return query.run();
}

Result<> SqliteRows::add_spent(AgentNumber agent, WallTime now, const Use& use) {
  Spent& spent = spent_[{std::chrono::floor<std::chrono::days>(now), agent}];
  ++spent.runs;
  spent.tokens += use.tokens;
  spent.money_micros += use.money_micros;
  return {};
}

Result<> SqliteRows::write_spent() {
  for (const auto& [key, spent] : spent_) {
    Query query(database_, query::add_spent);
    query.bind(1, day_of(key.first))
        .bind(2, key.second)
        .bind(3, spent.runs)
        .bind(4, spent.tokens)
        .bind(5, spent.money_micros);
    STINT_CHECK(query.run());
  }
  spent_.clear();
  return {};
}

Result<> SqliteRows::flush() {
  STINT_CHECK(write_spent());
  for (std::size_t done = 0; done < events_.size();) {
    const std::size_t count = events_.size() - done >= kEventsAtOnce ? kEventsAtOnce : 1;
    STINT_CHECK(write_events(done, count));
    done += count;
  }
  events_.clear();
  return {};
}

void SqliteRows::begin_group() {
  forget_kept();  // other processes may have written since
  enrolled_.clear();
  buried_.clear();
  begin_step();
}

void SqliteRows::begin_step() {
  enrolled_before_ = enrolled_.size();
  buried_before_ = buried_.size();
}

void SqliteRows::undo_step() {
  forget_kept();
  agent_names_.clear();  // an agent that was rolled back leaves its number to another
  give_up_leases(enrolled_before_);
  buried_.resize(buried_before_);
}

void SqliteRows::end_group(bool committed) {
  if (!committed) {
    enrolled_before_ = buried_before_ = 0;
    undo_step();
    return;
  }
  for (const WorkerNumber worker : buried_) {
    ::unlink(lease_path(worker).c_str());  // numbers are never used again
    own_.erase(worker);
  }
}

/// Under the gate: the number of a worker that was rolled back is given to the next one, of whatever process.
void SqliteRows::give_up_leases(std::size_t from) {
  for (std::size_t i = from; i < enrolled_.size(); ++i) {
    ::unlink(lease_path(enrolled_[i]).c_str());
    own_.erase(enrolled_[i]);
  }
  enrolled_.resize(from);
}

void SqliteRows::forget_kept() {
  events_.clear();
  spent_.clear();
  agents_.clear();
  steady_.clear();
}

/// Chunks end where the head ends, so that the head stays whole while the middle goes.
Result<> SqliteRows::add_output(RunNumber run, std::string_view text) {
  std::int64_t bytes = 0;
  {
    Query query(database_, query::output_bytes);
    query.bind(1, run);
    if (query.next()) bytes = query.number(0);
    STINT_CHECK(query.end());
  }
  constexpr auto kHead = static_cast<std::int64_t>(kOutputHeadMax), kTail = static_cast<std::int64_t>(kOutputTailMax);
  const std::int64_t end = bytes + std::ssize(text);
  for (std::int64_t at = bytes; at < end;) {
    const std::int64_t to = at < kHead ? std::min(end, kHead) : end;
    Query query(database_, query::add_chunk);
    query.bind(1, run).bind(2, at);
    query.bind_blob(3, text.substr(static_cast<std::size_t>(at - bytes), static_cast<std::size_t>(to - at)));
    STINT_CHECK(query.run());
    at = to;
  }
  {
    Query query(database_, query::put_output_bytes);
    STINT_CHECK(query.bind(1, run).bind(2, end).run());
  }
  if (end - kTail <= kHead) return {};
  Query query(database_, query::drop_chunks);
  return query.bind(1, run).bind(2, kHead).bind(3, end - kTail).run();
}

Result<> SqliteRows::put_output(RunNumber run, const Output& output) {
  const auto chunk = [&](std::uint64_t at, const std::string& body) -> Result<> {
    if (body.empty()) return {};
    Query query(database_, query::add_chunk);
    return query.bind(1, run).bind(2, static_cast<std::int64_t>(at)).bind_blob(3, body).run();
  };
  STINT_CHECK(chunk(0, output.head));
  STINT_CHECK(chunk(output.bytes - output.tail.size(), output.tail));
  Query query(database_, query::put_output_bytes);
  return query.bind(1, run).bind(2, static_cast<std::int64_t>(output.bytes)).run();
}

Result<std::vector<RunNumber>> SqliteRows::finished_before(WallTime time, std::size_t most) {
  Query query(database_, query::finished_before);
  query.bind(1, time).bind(2, static_cast<std::int64_t>(most));
  std::vector<RunNumber> found;
  while (query.next()) found.push_back(query.number(0));
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::forget(RunNumber run) {
  for (const std::string_view statement :
       {query::forget_run, query::forget_input, query::forget_result, query::forget_output, query::forget_chunks,
        query::forget_events, query::forget_families, query::leave_families}) {
    Query query(database_, statement);
    STINT_CHECK(query.bind(1, run).run());
  }
  return {};
}

}  // namespace stint::store
