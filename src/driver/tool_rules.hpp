/// Translates what an attempt may do into the arguments of each CLI: Stint's `permissions`, and the tools that an agent
/// file allows and denies (by the names of Claude Code, with a rule in parentheses). A restriction that a CLI can't
/// enforce is refused before anything starts. Pure.
#pragma once

#include "domain/agent.hpp"
#include "stint/error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::driver {

struct ToolRules {
  domain::Permissions permissions = domain::Permissions::edit;
  std::optional<std::vector<std::string>> allowed;  ///< absent: all that the permissions allow
  std::vector<std::string> denied;
};

/// Fails with `Errc::invalid` if the CLI can't enforce these rules.
[[nodiscard]] Result<> check_claude(const ToolRules& rules);
[[nodiscard]] Result<> check_codex(const ToolRules& rules);
[[nodiscard]] Result<> check_gemini(const ToolRules& rules);
/// For a driver that knows no tools.
[[nodiscard]] Result<> check_without_tools(const ToolRules& rules, std::string_view driver);

/// The arguments for each CLI, for rules that passed check_rules().
[[nodiscard]] std::vector<std::string> claude_arguments(const ToolRules& rules);
[[nodiscard]] std::vector<std::string> codex_arguments(const ToolRules& rules);
[[nodiscard]] std::vector<std::string> gemini_arguments(const ToolRules& rules);

/// Variables under which git only reads: it does not even refresh its index when files were touched.
[[nodiscard]] std::vector<std::pair<std::string, std::optional<std::string>>> read_only_git();

/// Returns `Bash` for `Bash(git log:*)`.
[[nodiscard]] std::string_view tool_of(std::string_view rule) noexcept;
[[nodiscard]] bool is_edit_tool(std::string_view tool) noexcept;

}  // namespace stint::driver
