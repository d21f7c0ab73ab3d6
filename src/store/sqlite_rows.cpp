// Members of SqliteRows: runs.
#include "store/sqlite_rows.hpp"

#include "store/column_codec.hpp"
#include "store/search_text.hpp"
#include "store_sql_sqlite.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using std::chrono::milliseconds;
namespace query = sqlite::query;

}  // namespace

Result<std::string> SqliteRows::agent_name(AgentNumber number) {
  const auto known = agent_names_.find(number);
  if (known != agent_names_.end()) return known->second;
  STINT_TRY(const std::optional<AgentRow> row, agent(number));
  if (!row) return fail(Errc::failed, "the database contains a run whose agent does not exist");
  agent_names_.emplace(number, row->entry.name);
  return row->entry.name;
}

/// The columns of queries.sql, in order.
Result<RunRow> SqliteRows::read_run(const Query& query) {
  RunRow row;
  Run& run = row.run;
  run.number = RunNumber{query.number(0)};
  run.id = query.text(1);
  row.agent = AgentNumber{query.number(2)};
  STINT_TRY(run.agent, agent_name(row.agent));
  run.session = query.text(3);
  row.parent = RunNumber{query.number(4)};
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
  run.fence = Fence{query.number(21)};
  run.seq = query.number(22);
  run.unsafe = query.number(23) != 0;
  run.node = query.maybe<NodeNumber>(24);
  row.set = SetNumber{query.number(25)};
  row.parked_on = query.text(26);
  run.started_at = query.time(27);
  run.finished_at = query.time(28);
  run.tokens = query.number(29);
  run.cost_micros = query.number(30);
  row.kept_for = query.maybe<NodeNumber>(31);
  row.reported = {.tokens = query.number(32), .cost_micros = query.number(33)};
  return row;
}

Result<std::optional<RunRow>> SqliteRows::read_one(Query& query) {
  std::optional<RunRow> found;
  if (query.next()) {
    STINT_TRY(found, read_run(query));
  }
  STINT_CHECK(query.end());
  return found;
}

Result<std::vector<RunRow>> SqliteRows::read_all(Query& query) {
  std::vector<RunRow> found;
  while (query.next()) {
    STINT_TRY(RunRow row, read_run(query));
    found.push_back(std::move(row));
  }
  STINT_CHECK(query.end());
  return found;
}

Result<std::optional<RunRow>> SqliteRows::run(RunNumber number) {
  Query query(database_, query::run_by_number);
  query.bind(1, number);
  return read_one(query);
}

Result<std::optional<RunRow>> SqliteRows::run(std::string_view id) {
  Query query(database_, query::run_by_id);
  query.bind(1, id);
  return read_one(query);
}

Result<std::optional<RunRow>> SqliteRows::run_of_key(AgentNumber agent, std::string_view key) {
  Query query(database_, query::run_by_key);
  query.bind(1, agent).bind(2, key);
  return read_one(query);
}

Result<std::vector<RunRow>> SqliteRows::ready(AgentNumber agent, NodeNumber by, Moment now, std::size_t most) {
  Query query(database_, query::ready);
  query.bind(1, agent).bind(2, now.wall).bind(3, static_cast<std::int64_t>(most)).bind(4, by);
  query.bind(5, number_of(now.drawn));
  return read_all(query);
}

Result<std::vector<RunRow>> SqliteRows::owned(NodeNumber node) {
  Query query(database_, query::owned);
  query.bind(1, node);
  return read_all(query);
}

Result<std::optional<RunRow>> SqliteRows::head_of(std::string_view session) {
  Query query(database_, query::head_of);
  query.bind(1, session);
  return read_one(query);
}

Result<std::vector<RunNumber>> SqliteRows::children(RunNumber parent) {
  Query query(database_, query::children);
  query.bind(1, parent);
  std::vector<RunNumber> found;
  while (query.next()) found.emplace_back(query.number(0));
  STINT_CHECK(query.end());
  return found;
}

Result<std::vector<RunRow>> SqliteRows::parked_on(std::string_view limit) {
  Query query(database_, query::parked_on);
  query.bind(1, limit);
  return read_all(query);
}

Result<std::vector<RunRow>> SqliteRows::asleep(WallTime until, std::size_t most) {
  Query query(database_, query::asleep);
  query.bind(1, until).bind(2, static_cast<std::int64_t>(most));
  return read_all(query);
}

Result<std::vector<RunRow>> SqliteRows::past_deadline(WallTime wall, std::size_t most) {
  Query query(database_, query::past_deadline);
  query.bind(1, wall).bind(2, static_cast<std::int64_t>(most));
  return read_all(query);
}

Result<std::vector<RunRow>> SqliteRows::past_budget(AwakeTime until, std::size_t most) {
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

Result<std::vector<RunRow>> SqliteRows::ready_past_budget(AgentNumber agent, AwakeTime until, std::size_t most) {
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

Result<bool> SqliteRows::has_ready(AgentNumber agent, NodeNumber by) {
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

Result<RunNumber> SqliteRows::add(const RunRow& row, std::string input) {
  const Run& run = row.run;
  RunNumber number{};
  {
    Query query(database_, query::add_run);
    query.bind(1, run.id).bind(2, row.agent).bind_some(3, run.session);
    query.bind(4, row.parent.value == 0 ? std::nullopt : std::optional(row.parent)).bind_some(5, run.parent);
    query.bind_some(6, run.key).bind(7, to_string(run.on_crash)).bind(8, row.rank).bind(9, run.created_at);
    query.bind(10, run.deadline).bind(11, maybe_ms(row.budget)).bind(12, to_string(run.state));
    query.bind_some(13, hold_text(run.hold)).bind(14, run.not_before).bind(15, row.kept_for);
    query.bind(16, number_of(row.budget_until));
    if (query.next()) number = RunNumber{query.number(0)};
    STINT_CHECK(query.run());
  }
  if (!input.empty()) {
    Query query(database_, query::add_input);
    STINT_CHECK(query.bind(1, number).bind(2, search_text(run.agent, input)).bind(3, input).run());
  }
  return number;
}

Result<> SqliteRows::put(const RunRow& row) {
  const Run& run = row.run;
  Query query(database_, query::put_run);
  query.bind(1, run.number).bind(2, to_string(run.state)).bind_some(3, hold_text(run.hold));
  query.bind_some(4, stop_text(run.stop)).bind_some(5, run.error).bind(6, run.not_before);
  query.bind(7, maybe_ms(row.budget_left)).bind(8, number_of(row.budget_until));
  query.bind(9, std::int64_t{run.attempt}).bind(10, std::int64_t{run.lost}).bind(11, run.fence).bind(12, run.seq);
  query.bind(13, std::int64_t{run.unsafe}).bind(14, run.node);
  query.bind(15, row.set.value == 0 ? std::nullopt : std::optional(row.set)).bind_some(16, row.parked_on);
  query.bind(17, run.started_at).bind(18, run.finished_at).bind(19, run.tokens).bind(20, run.cost_micros);
  query.bind(21, row.reported.tokens).bind(22, row.reported.cost_micros);
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

/// Chunks end where the head ends, so that the head stays complete when the middle is dropped.
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

Result<std::optional<std::uint64_t>> SqliteRows::message_end(RunNumber run, std::uint32_t at) {
  Query query(database_, query::message_end);
  query.bind(1, run).bind(2, std::int64_t{at});
  std::optional<std::uint64_t> end;
  if (query.next()) end = static_cast<std::uint64_t>(query.number(0));
  STINT_CHECK(query.end());
  return end;
}

Result<> SqliteRows::put_message(RunNumber run, const Message& message, std::uint64_t end) {
  {
    Query query(database_, query::cut_messages);
    STINT_CHECK(query.bind(1, run).bind(2, std::int64_t{message.at}).run());
  }
  Query query(database_, query::add_message);
  query.bind(1, run).bind(2, std::int64_t{message.at}).bind(3, static_cast<std::int64_t>(end));
  return query.bind_blob(4, message.body).run();
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
  while (query.next()) found.emplace_back(query.number(0));
  STINT_CHECK(query.end());
  return found;
}

Result<> SqliteRows::forget(RunNumber run) {
  for (const std::string_view statement :
       {query::mark_pruned, query::forget_run, query::forget_input, query::forget_result, query::forget_output,
        query::forget_chunks, query::forget_messages, query::forget_events, query::forget_families,
        query::leave_families}) {
    Query query(database_, statement);
    STINT_CHECK(query.bind(1, run).run());
  }
  return {};
}

}  // namespace stint::store
