// SqliteRows: sums and lists for a snapshot. No statement reads more than the unfinished runs: the finished ones are
// counted by triggers.
#include "store/brief_text.hpp"
#include "store/column_codec.hpp"
#include "store/sqlite_rows.hpp"
#include "store_sql_sqlite.hpp"

namespace stint::store {
namespace {

using domain::RunState;
namespace query = sqlite::query;

std::string_view statement_of(Listed which) {
  switch (which) {
    case Listed::running: return query::list_running;
    case Listed::needs: return query::list_needs;
    case Listed::failures: break;
  }
  return query::list_failures;
}

}  // namespace

/// Rows that are cached during a transaction must not outlive it.
Result<> SqliteRows::begin_read() {
  clear_cache();
  return database_.run(query::begin_read);
}

Result<> SqliteRows::end_read() {
  clear_cache();
  return database_.run(query::roll_back);
}

Result<Tally> SqliteRows::tally() {
  Tally tally;
  {
    Query query(database_, query::tally_ended);
    while (query.next()) {
      STINT_TRY(const RunState state, read_state(query.text(0)));
      tally.counts[state] = static_cast<std::uint64_t>(query.number(1));
    }
    STINT_CHECK(query.end());
  }
  STINT_TRY(tally.counts[RunState::queued], count(query::count_queued));
  STINT_TRY(tally.counts[RunState::running], count(query::count_running));
  STINT_TRY(tally.counts[RunState::parked], count(query::count_parked));
  STINT_TRY(tally.counts[RunState::in_doubt], count(query::count_in_doubt));
  STINT_TRY(tally.bytes, count(query::count_bytes));
  {
    Query query(database_, query::tally_ready);
    while (query.next()) {
      tally.lines.push_back({.agent = AgentNumber{query.number(0)},
                             .rank = query.number(1),
                             .runs = static_cast<std::uint64_t>(query.number(2)),
                             .kept = static_cast<std::uint64_t>(query.number(3)),
                             .oldest = query.time(4)});
    }
    STINT_CHECK(query.end());
  }
  Query query(database_, query::tally_held);
  while (query.next()) {
    Tally::Held& held = tally.held.emplace_back();
    STINT_TRY(held.state, read_state(query.text(0)));
    STINT_TRY(held.hold, read_hold(query.text(1)));
    held.limit = query.text(2);
    held.runs = static_cast<std::uint64_t>(query.number(3));
    held.oldest = query.time(4);
    held.until = query.time(5);
  }
  STINT_CHECK(query.end());
  return tally;
}

Result<LastEnds> SqliteRows::last_ends(WallTime since, std::size_t most) {
  Query query(database_, query::last_ends);
  query.bind(1, since).bind(2, static_cast<std::int64_t>(most));
  LastEnds ends;
  if (query.next()) ends = {.worked = static_cast<std::uint64_t>(query.number(0)), .first = query.time(1)};
  STINT_CHECK(query.end());
  return ends;
}

Result<std::vector<RunRow>> SqliteRows::listed(Listed which, std::size_t most, std::uint32_t text_bytes_max) {
  std::vector<RunRow> rows;
  {
    Query query(database_, statement_of(which));
    query.bind(1, static_cast<std::int64_t>(most));
    STINT_TRY(rows, read_all(query));
  }
  STINT_CHECK(add_texts(rows, text_bytes_max));
  return rows;
}

Result<std::int64_t> SqliteRows::last_event() {
  STINT_TRY(const std::uint64_t last, count(query::last_event));
  return static_cast<std::int64_t>(last);
}

/// Also raises the mark up to which events are missing.
Result<> SqliteRows::forget_fleet_events(WallTime before) {
  for (const std::string_view statement : {query::mark_pruned_fleet, query::forget_fleet_events}) {
    Query query(database_, statement);
    STINT_CHECK(query.bind(1, before).run());
  }
  return {};
}

}  // namespace stint::store
