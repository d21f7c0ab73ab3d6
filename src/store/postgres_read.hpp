/// Reads rows of the views in sql/postgres.
#pragma once

#include "store/postgres_connection.hpp"
#include "store/store.hpp"

namespace stint::store {

/// In the order of `columns` in sql/postgres/queries.sql.
[[nodiscard]] Result<Run> read_run(const PostgresRows& rows, int row);
/// Includes input and result, whose columns follow those of a run.
[[nodiscard]] Result<Run> read_whole_run(const PostgresRows& rows, int row);
inline constexpr int kInputColumn = 25, kResultColumn = 26;

/// In the order of the view `told`.
[[nodiscard]] Result<Event> read_event(const PostgresRows& rows, int row);
inline constexpr int kXidColumn = 11, kEventColumn = 12;

[[nodiscard]] Result<std::map<domain::RunState, std::uint64_t>> read_counts(const PostgresRows& rows);
[[nodiscard]] std::vector<QueueState> read_queues(const PostgresRows& rows);
[[nodiscard]] std::vector<NodeState> read_nodes(const PostgresRows& rows);
/// In the order of the function `limits`, with the listed entries.
[[nodiscard]] std::vector<LimitState> read_limits(const PostgresRows& rows);

}  // namespace stint::store
