#include "store/postgres_read.hpp"

#include "store/column_codec.hpp"

namespace stint::store {

Result<Run> read_run(const PostgresRows& rows, int row) {
  int column = 0;
  const auto text = [&] { return rows.text(row, column++); };
  const auto number = [&] { return rows.number(row, column++); };
  const auto time = [&] { return rows.time(row, column++); };
  Run run;
  run.number = RunNumber{number()};
  run.id = text();
  run.agent = text();
  run.session = text();
  run.parent = text();
  run.key = text();
  STINT_TRY(run.state, read_state(text()));
  STINT_TRY(run.hold, read_hold(text()));
  run.stop = read_stop(text());
  run.error = text();
  run.attempt = static_cast<std::uint32_t>(number());
  run.lost = static_cast<std::uint32_t>(number());
  run.fence = Fence{number()};
  run.seq = number();
  run.unsafe = rows.flag(row, column++);
  run.on_crash = read_on_crash(text());
  run.node = rows.maybe<NodeNumber>(row, column++);
  run.created_at = time().value_or(WallTime());
  run.not_before = time();
  run.deadline = time();
  run.expires_at = time();
  run.started_at = time();
  run.finished_at = time();
  run.tokens = number();
  run.cost_micros = number();
  return run;
}

Result<Run> read_whole_run(const PostgresRows& rows, int row) {
  STINT_TRY(Run run, read_run(rows, row));
  run.input = rows.text(row, kInputColumn);
  run.result = rows.text(row, kResultColumn);
  return run;
}

Result<Event> read_event(const PostgresRows& rows, int row) {
  Event event;
  event.run = rows.text(row, 0);
  event.seq = rows.number(row, 2);
  event.fence = Fence{rows.number(row, 3)};
  event.cause = rows.text(row, 4);
  if (!rows.is_null(row, 5)) {
    STINT_TRY(event.state, read_state(rows.text(row, 5)));
  }
  STINT_TRY(event.hold, read_hold(rows.text(row, 6)));
  event.node = rows.maybe<NodeNumber>(row, 7);
  event.error = rows.text(row, 8);
  event.data = rows.text(row, 9);
  event.at = rows.time(row, 10).value_or(WallTime());
  return event;
}

Result<std::map<domain::RunState, std::uint64_t>> read_counts(const PostgresRows& rows) {
  std::map<domain::RunState, std::uint64_t> counts;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_TRY(const domain::RunState state, read_state(rows.text(row, 0)));
    counts[state] = static_cast<std::uint64_t>(rows.number(row, 1));
  }
  return counts;
}

std::vector<QueueState> read_queues(const PostgresRows& rows) {
  std::vector<QueueState> found;
  for (int row = 0; row < rows.size(); ++row) {
    found.push_back({rows.text(row, 0), static_cast<std::uint64_t>(rows.number(row, 1)),
                     static_cast<std::uint64_t>(rows.number(row, 2))});
  }
  return found;
}

std::vector<NodeState> read_nodes(const PostgresRows& rows) {
  std::vector<NodeState> found;
  for (int row = 0; row < rows.size(); ++row) {
    found.push_back({.number = NodeNumber{rows.number(row, 0)},
                     .label = rows.text(row, 1),
                     .kind = rows.flag(row, 5) ? NodeKind::one_run : NodeKind::any,
                     .state = rows.text(row, 2),
                     .last_beat_ago = std::chrono::milliseconds(rows.number(row, 3)),
                     .runs = static_cast<std::uint64_t>(rows.number(row, 4))});
  }
  return found;
}

}  // namespace stint::store
