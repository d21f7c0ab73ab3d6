/// What an attempt may do, in the words of each CLI: Stint's `permissions` and the tools that an agent's file allows
/// and denies (by the names of Claude Code, with a rule in parentheses) become arguments. A restriction that a CLI
/// can't keep is refused before anything is started. Pure.
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

/// `Errc::invalid`: that CLI can't keep these rules.
[[nodiscard]] Result<> check_claude(const ToolRules& rules);
[[nodiscard]] Result<> check_codex(const ToolRules& rules);
[[nodiscard]] Result<> check_gemini(const ToolRules& rules);
/// Of a driver that knows no tools.
[[nodiscard]] Result<> check_without_tools(const ToolRules& rules, std::string_view driver);

/// Arguments for each CLI, of rules that it can keep.
[[nodiscard]] std::vector<std::string> claude_arguments(const ToolRules& rules);
[[nodiscard]] std::vector<std::string> codex_arguments(const ToolRules& rules);
[[nodiscard]] std::vector<std::string> gemini_arguments(const ToolRules& rules);

/// Variables under which git only reads: not even its index is written anew when files were touched.
[[nodiscard]] std::vector<std::pair<std::string, std::optional<std::string>>> read_only_git();

/// `Bash` of `Bash(git log:*)`.
[[nodiscard]] std::string_view tool_of(std::string_view rule) noexcept;
[[nodiscard]] bool is_edit_tool(std::string_view tool) noexcept;

}  // namespace stint::driver
