/// What a foreign file says about tools, in one vocabulary: the names of Claude Code's tools, a rule in parentheses
/// behind them (`Bash(git log:*)`). Copilot's, opencode's and Gemini's names are mapped by a table. What is denied
/// there is denied here; what can only be asked for is denied, too, since nobody is there to be asked. A name that no
/// table knows is left out of what is allowed, with a warning; in what is denied it is an error.
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

/// Reads `tools`, `disallowed_tools` and, of opencode, `permission`.
[[nodiscard]] ForeignTools read_tools(Fields& fields, domain::Dialect dialect);

/// The names of Claude Code that a tool's name stands for; none: it is not known. Whatever its case.
[[nodiscard]] std::vector<std::string> tools_named(std::string_view name, domain::Dialect dialect);

}  // namespace stint::agent
