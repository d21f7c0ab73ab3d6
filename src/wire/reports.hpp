/// Time series, agents with their statistics, and what was spent, as JSON: answers of the API, what the commands print
/// with `--json`, and what a command reads from a daemon. As in fleet.hpp, times are milliseconds since 1970.
#pragma once

#include "engine/reports.hpp"

#include <span>
#include <string>
#include <string_view>

namespace stint::wire {

/// On a grid of equal steps up to now, `span` long: a step without a point is null in every series.
[[nodiscard]] std::string to_json(const store::Series& series, Duration span);
[[nodiscard]] std::string to_json(const engine::AgentDetail& agent);
/// `{"agents":[…],"problems":[…],"day":{…}}`: one agent by its file, with its statistics.
[[nodiscard]] std::string agent_to_json(std::span<const domain::Agent> agents, std::span<const agent::Problem> problems,
                                        const engine::AgentDetail& statistics);
[[nodiscard]] std::string to_json(const engine::CostReport& report);
/// `agent,day,run`, in any order. `invalid` names a word that is none of them.
[[nodiscard]] Result<engine::CostQuery> read_cost_by(std::string_view by);
[[nodiscard]] std::string cost_by_text(const engine::CostQuery& query);

// The client's side.
/// Without its definition.
[[nodiscard]] Result<engine::AgentDetail> read_agent(std::string_view text);
[[nodiscard]] Result<engine::CostReport> read_cost(std::string_view text);
[[nodiscard]] Result<store::Series> read_series(std::string_view text);

}  // namespace stint::wire
