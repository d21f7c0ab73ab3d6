/// Definitions and problems of agent files as JSON values. Internal to this folder.
#pragma once

#include "agent/problem.hpp"
#include "domain/agent.hpp"

#include <boost/json.hpp>

#include <span>

namespace stint::wire {

[[nodiscard]] boost::json::object agent_value(const domain::Agent& agent);
[[nodiscard]] boost::json::array problems_value(std::span<const agent::Problem> problems);

}  // namespace stint::wire
