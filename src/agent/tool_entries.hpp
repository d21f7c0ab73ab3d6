/// Reads the tools of our own agent files that Stint itself calls for a model: commands, HTTP requests and MCP servers.
/// The tools that an agent CLI brings along are read by `tool_table.hpp`.
#pragma once

#include "agent/fields.hpp"
#include "domain/agent.hpp"

namespace stint::agent {

inline constexpr std::size_t kToolEntriesMax = 64;
inline constexpr std::size_t kToolHeadersMax = 32;

/// `tools`. A command or an address may name arguments of its `input`; without one, what it names is required text.
void read_tool_entries(Fields& fields, domain::Agent& agent);
/// `output`: the JSON schema of the agent's result. The driver compiles schemas, and refuses wrong ones.
void read_output(Fields& fields, domain::Agent& agent);

}  // namespace stint::agent
