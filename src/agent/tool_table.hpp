/// The tools of a foreign file in one vocabulary: the names of Claude Code's tools, with a rule in parentheses
/// behind them (`Bash(git log:*)`). A table maps the names of Copilot, opencode and Gemini. What is denied
/// there is denied here; what needs a confirmation is denied, too, since a run can't ask a person. An unknown name is
/// left out of the allowed tools, with a warning; among the denied tools it is an error.
#pragma once

#include "agent/fields.hpp"
#include "domain/agent.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::agent {

struct ForeignTools {
  std::optional<std::vector<std::string>> allowed;  ///< absent: all
  std::vector<std::string> denied;
};

/// Reads `tools`, `disallowed_tools` and, for opencode, `permission`.
[[nodiscard]] ForeignTools read_tools(Fields& fields, domain::AgentFormat format);

/// The names of Claude Code that a tool's name maps to; none: unknown. Ignores case.
[[nodiscard]] std::vector<std::string> tools_named(std::string_view name, domain::AgentFormat format);

}  // namespace stint::agent
