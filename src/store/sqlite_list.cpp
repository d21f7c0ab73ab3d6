// Members of SqliteRows: lists of runs by a filter.
#include "store/column_codec.hpp"
#include "store/sqlite_rows.hpp"
#include "store_sql_sqlite.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace stint::store {
namespace {

using domain::RunState;
namespace query = sqlite::query;

constexpr std::int64_t kFewQueued = 10'000;  // with more, a backward scan over all runs finds the newest sooner

}  // namespace

/// Whether the index of these states is faster than a backward scan over all runs.
Result<bool> SqliteRows::are_few(const std::vector<RunState>& states) {
  constexpr std::array kUnfinished = {RunState::queued, RunState::running, RunState::parked, RunState::in_doubt};
  const auto is_unfinished = [&](RunState state) { return std::ranges::find(kUnfinished, state) != kUnfinished.end(); };
  if (states.empty() || !std::ranges::all_of(states, is_unfinished)) return false;
  if (std::ranges::find(states, RunState::queued) == states.end()) return true;
  Query query(database_, query::count_queued);
  std::int64_t queued = 0;
  if (query.next()) queued = query.number(0);
  STINT_CHECK(query.run());
  return queued <= kFewQueued;
}

/// How the runs of a filter are found: by which statement, and what it needs besides the filter.
struct SqliteRows::Plan {
  std::string_view statement;
  std::string agents;  // their numbers between commas
  RunNumber parent{}, least{};
};

/// None: no run can match.
Result<std::optional<SqliteRows::Plan>> SqliteRows::plan(const Filter& filter) {
  Plan plan;
  if (!filter.agent.empty()) {
    std::vector<std::string> names = filter.also_agents;
    names.push_back(filter.agent);
    for (const std::string& name : names) {
      STINT_TRY(const std::optional<AgentRow> row, agent(name));
      if (row) plan.agents += "," + std::to_string(row->number.value) + ",";
    }
    if (plan.agents.empty()) return std::nullopt;
  }
  if (!filter.parent.empty()) {
    STINT_TRY(const std::optional<RunRow> row, run(filter.parent));
    if (!row) return std::nullopt;
    plan.parent = row->run.number;
  }
  STINT_TRY(const bool few, are_few(filter.states));
  plan.statement = plan.parent.value != 0 ? query::list_children : few ? query::list_unfinished : query::list;
  return plan;
}

void SqliteRows::bind(Query& query, const Filter& filter, const Plan& plan) {
  std::string states, holds;
  for (const RunState state : filter.states) states += "," + std::string(to_string(state)) + ",";
  for (const domain::Hold hold : filter.holds) holds += "," + std::string(to_string(hold)) + ",";
  query.bind_some(1, states).bind_some(2, plan.agents).bind_some(3, filter.session);
  query.bind(4, filter.before).bind(5, std::int64_t{filter.most}).bind(6, plan.parent).bind(7, plan.least);
  query.bind_some(8, holds).bind(9, filter.since).bind(10, filter.until).bind_some(11, filter.search);
}

Result<std::vector<RunRow>> SqliteRows::list(const Filter& filter) {
  std::vector<RunRow> rows;
  if (!filter.only.empty()) {
    for (const RunNumber number : filter.only) {
      STINT_TRY(std::optional<RunRow> row, run(number));
      if (row && rows.size() < filter.most) rows.push_back(std::move(*row));
    }
    std::ranges::sort(rows, std::greater(), [](const RunRow& row) { return row.run.number; });
  } else {
    STINT_TRY(const std::optional<Plan> found, plan(filter));
    if (!found) return rows;
    Query query(database_, found->statement);
    bind(query, filter, *found);
    STINT_TRY(rows, read_all(query));
  }
  if (filter.texts) STINT_CHECK(add_texts(rows, filter.text_bytes_max));
  return rows;
}

/// 0: there is no run.
Result<RunNumber> SqliteRows::newest_before(RunNumber number) {
  Query query(database_, query::newest_before);
  query.bind(1, number);
  RunNumber newest;
  if (query.next()) newest = RunNumber{query.number(0)};
  STINT_CHECK(query.run());
  return newest;
}

/// A statement that uses an index examines only runs that have not ended, or children of one run. The scan over all
/// runs is cut into windows of numbers; a window begins at a run, so that gaps cost nothing.
Result<Matches> SqliteRows::match(const Filter& filter) {
  Matches matches;
  STINT_TRY(std::optional<Plan> found, plan(filter));
  if (!found) return matches;
  if (found->statement == query::list) {
    STINT_TRY(
        const RunNumber top,
        newest_before(filter.before.value > 0 ? filter.before : RunNumber{std::numeric_limits<std::int64_t>::max()}));
    found->least = RunNumber{std::max<std::int64_t>(1, top.value - kExamineMax + 1)};
    STINT_TRY(const RunNumber rest, newest_before(found->least));
    if (rest.value > 0) matches.next = RunNumber{rest.value + 1};
  }
  Query query(database_, found->statement);
  bind(query, filter, *found);
  while (query.next()) matches.runs.push_back({RunNumber{query.number(0)}, query.text(1)});
  STINT_CHECK(query.end());
  if (matches.runs.size() == filter.most) matches.next = matches.runs.back().number;
  return matches;
}

}  // namespace stint::store
