/// The client's side of fleet.hpp: reads the answers of a daemon, and writes the requests of a command.
///
/// Absent members get default values. Anything that is not such JSON is `failed`: the server is not a daemon of ours,
/// or one of another version.
#pragma once

#include "engine/search.hpp"
#include "engine/views.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stint::wire {

[[nodiscard]] Result<engine::RunView> read_run(std::string_view text);
[[nodiscard]] Result<engine::RunPage> read_runs(std::string_view text);
[[nodiscard]] Result<store::FeedPage> read_events(std::string_view text);
[[nodiscard]] Result<engine::WhyView> read_why(std::string_view text);
/// The run in it has only the fields of a receipt.
[[nodiscard]] Result<engine::Receipt> read_receipt(std::string_view text);
[[nodiscard]] Result<engine::Submitted> read_submitted(std::string_view text);
[[nodiscard]] Result<std::vector<engine::AgentView>> read_agents(std::string_view text);
[[nodiscard]] Result<std::vector<engine::LimitView>> read_limits(std::string_view text);
[[nodiscard]] Result<engine::FleetHealth> read_health(std::string_view text);
[[nodiscard]] Result<engine::FleetStatus> read_status(std::string_view text);
[[nodiscard]] Result<store::Output> read_output(std::string_view text);
[[nodiscard]] Result<domain::RunState> read_resolved(std::string_view text);
[[nodiscard]] Result<std::uint64_t> read_resumed(std::string_view text);
/// Of a problem document; all empty: the text is not one.
struct ReadProblem {
  std::string detail;
  std::string list;  ///< path of the API that lists what exists, of a name that does not
};
[[nodiscard]] ReadProblem read_problem(std::string_view text);

/// Without its idempotency key, which is a header.
[[nodiscard]] std::string submit_to_json(const engine::Submission& submission);
[[nodiscard]] std::string resolve_to_json(domain::Resolution how);
[[nodiscard]] std::string scale_to_json(const engine::ScaleRequest& scale);
[[nodiscard]] std::string capacity_to_json(std::uint32_t capacity);
[[nodiscard]] std::string pause_to_json(std::optional<Duration> length);
[[nodiscard]] std::string drain_to_json(const engine::DrainRequest& drain);

}  // namespace stint::wire
