// PostgresStore: the whole fleet at one moment, in one REPEATABLE READ transaction.
#include "store/column_codec.hpp"
#include "store/postgres_cursor.hpp"
#include "store/postgres_read.hpp"
#include "store/postgres_store.hpp"
#include "store/snapshot.hpp"
#include "store_sql_postgres.hpp"

#include <algorithm>
#include <tuple>

namespace stint::store {
namespace {

using domain::RunState;
namespace query = postgres::query;

/// The statements, in the order in which they are sent.
namespace at {
enum : std::size_t { moment, sums, ready, held, queues, running, needs, failures, limits, nodes, today, ends, bytes };
}

Result<std::vector<Run>> read_runs(const PostgresRows& rows) {
  std::vector<Run> runs;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_TRY(runs.emplace_back(), read_whole_run(rows, row));
  }
  return runs;
}

/// One row per limit of an agent.
std::vector<AgentLine> read_lines(const PostgresRows& rows) {
  std::vector<AgentLine> lines;
  for (int row = 0; row < rows.size(); ++row) {
    if (lines.empty() || lines.back().agent != rows.text(row, 0)) {
      lines.push_back({.agent = rows.text(row, 0),
                       .rank_ms = rows.number(row, 1),
                       .runs = static_cast<std::uint64_t>(rows.number(row, 2)),
                       .kept = static_cast<std::uint64_t>(rows.number(row, 3)),
                       .oldest = rows.time(row, 4)});
    }
    if (rows.is_null(row, 5)) continue;
    lines.back().limits.push_back({rows.text(row, 5), static_cast<std::uint32_t>(rows.number(row, 6))});
  }
  return lines;
}

Result<> read_held(const PostgresRows& rows, Snapshot& snapshot) {
  for (int row = 0; row < rows.size(); ++row) {
    STINT_TRY(const RunState state, read_state(rows.text(row, 0)));
    STINT_TRY(const domain::Hold hold, read_hold(rows.text(row, 1)));
    (state == RunState::parked ? snapshot.parked : snapshot.waiting)
        .push_back({.cause = domain::cause_of(hold),
                    .limit = rows.text(row, 2),
                    .runs = static_cast<std::uint64_t>(rows.number(row, 3)),
                    .oldest = rows.time(row, 4),
                    .until = rows.time(row, 5)});
  }
  const auto key = [](const WaitGroup& group) { return std::tie(group.cause, group.limit); };
  std::ranges::sort(snapshot.parked, {}, key);
  std::ranges::sort(snapshot.waiting, {}, key);
  return {};
}

Result<Snapshot> read_snapshot(const std::vector<PostgresRows>& answers) {
  Snapshot snapshot;
  STINT_TRY(const PostgresCursor cursor, PostgresCursor::of_snapshot(answers[at::moment].text(0, 0)));
  snapshot.cursor = cursor.text();
  snapshot.as_of = answers[at::moment].time(0, 1).value_or(WallTime());
  STINT_TRY(snapshot.counts, read_counts(answers[at::sums]));
  for (const RunState state : domain::kRunStates) snapshot.counts.try_emplace(state, 0);
  snapshot.lines = read_lines(answers[at::ready]);
  STINT_CHECK(read_held(answers[at::held], snapshot));
  snapshot.queues = read_queues(answers[at::queues]);
  STINT_TRY(snapshot.running, read_runs(answers[at::running]));
  STINT_TRY(snapshot.needs, read_runs(answers[at::needs]));
  STINT_TRY(snapshot.failures, read_runs(answers[at::failures]));
  snapshot.limits = read_limits(answers[at::limits]);
  snapshot.nodes = read_nodes(answers[at::nodes]);
  snapshot.today = {.tokens = answers[at::today].number(0, 1), .cost_micros = answers[at::today].number(0, 2)};
  snapshot.ended.runs = static_cast<std::uint64_t>(answers[at::ends].number(0, 0));
  snapshot.ended.over = to_duration(answers[at::ends].maybe(0, 1)).value_or(Duration::zero());
  snapshot.bytes = static_cast<std::uint64_t>(answers[at::bytes].number(0, 0));
  return snapshot;
}

}  // namespace

Task<Result<Snapshot>> PostgresStore::snapshot(std::uint32_t listed, std::uint32_t text_bytes_max) {
  const auto list = [&](std::uint32_t most) {
    return Parameters().number(std::int64_t{most}).number(std::int64_t{text_bytes_max});
  };
  std::vector<PostgresClient::Statement> statements;
  statements.push_back({query::snapshot_moment, expect(Parameters())});
  statements.push_back({query::sums, {}});
  statements.push_back({query::tally_ready, {}});
  statements.push_back({query::tally_held, {}});
  statements.push_back({query::queues, {}});
  statements.push_back({query::list_running, list(kRunningListMax)});
  statements.push_back({query::list_needs, list(kNeedsListMax)});
  statements.push_back({query::list_failures, list(kFailuresListMax)});
  statements.push_back({query::limits, Parameters().number(std::int64_t{std::min(listed, kLimitListMax)})});
  statements.push_back({query::nodes, {}});
  statements.push_back({query::used, Parameters().texts({std::string(kToday)})});
  statements.push_back({query::last_ends, Parameters().number(to_ms(kRateWindow)).number(std::int64_t{kRateRunsMax})});
  statements.push_back({query::store_bytes, {}});
  STINT_CO_TRY(const std::vector<PostgresRows> answers,
               co_await reading_.read_together(query::begin_read, std::move(statements), query::commit));
  co_return read_snapshot(answers);
}

}  // namespace stint::store
