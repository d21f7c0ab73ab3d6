// Invariants
// 1. For Claude Code, `permissions: read` is a list of allowed tools: a tool of a later version is not on it. Found
// with
//    2.1.325: EnterWorktree, and Task with isolation, made a branch, CronCreate a file, all without asking.
// 2. A rule in parentheses allows exactly its commands: so no mode that accepts further commands may be set. With
//    acceptEdits Claude Code runs `rm` and `mv` without asking.
// 3. Codex and Gemini CLI have modes, not lists: a restriction that no mode enforces is refused.
#include "driver/tool_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace stint::driver {
namespace {

using domain::Permissions;
using Names = std::vector<std::string>;

constexpr std::array<std::string_view, 4> kEditTools{"Edit", "Write", "MultiEdit", "NotebookEdit"};
/// Tools of Claude Code that only read, or only exchange text with the model. It refuses commands that change anything.
constexpr std::array<std::string_view, 17> kReadTools{"Read",
                                                      "Grep",
                                                      "Glob",
                                                      "LS",
                                                      "NotebookRead",
                                                      "Bash",
                                                      "BashOutput",
                                                      "KillShell",
                                                      "TaskOutput",
                                                      "TaskStop",
                                                      "WebFetch",
                                                      "WebSearch",
                                                      "TodoWrite",
                                                      "ToolSearch",
                                                      "LSP",
                                                      "ReportFindings",
                                                      "ReadMcpResourceTool"};
/// Tools of Claude Code for which a rule in parentheses decides what is allowed without asking.
constexpr std::array<std::string_view, 6> kRuled{"Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "WebFetch"};

template <class Range>
bool has(const Range& range, std::string_view value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}
bool is_rule(std::string_view name) noexcept { return name.contains('('); }
bool is_mcp(std::string_view name) noexcept { return name.starts_with("mcp__"); }

/// The rules in parentheses whose tool is not also allowed as a whole.
Names narrow_rules(const ToolRules& rules) {
  Names out;
  for (const std::string& name : rules.allowed.value_or(Names())) {
    if (is_rule(name) && !has(*rules.allowed, tool_of(name))) out.push_back(name);
  }
  return out;
}

Result<> refused(std::string_view what, std::string_view by) {
  return fail(Errc::invalid, fmt::format("{}: {} can't enforce this restriction", what, by));
}

/// For the modes of Codex and Gemini CLI: `may_deny` tells whether a mode can deny a tool.
Result<> check_modes(const ToolRules& rules, std::string_view driver, bool (*may_deny)(std::string_view)) {
  if (rules.allowed) return refused("tools", driver);
  for (const std::string& name : rules.denied) {
    if (is_rule(name) || !may_deny(name)) return refused("a denied tool, " + name, driver);
  }
  return {};
}

Permissions mode_of(const ToolRules& rules) {
  const bool edits_denied = std::ranges::any_of(rules.denied, is_edit_tool);
  if (edits_denied) return Permissions::read;
  return has(rules.denied, "Bash") ? std::min(rules.permissions, Permissions::edit) : rules.permissions;
}

}  // namespace

std::string_view tool_of(std::string_view rule) noexcept { return rule.substr(0, rule.find('(')); }
bool is_edit_tool(std::string_view tool) noexcept { return has(kEditTools, tool); }

Result<> check_claude(const ToolRules& rules) {
  for (const std::string& rule : narrow_rules(rules)) {
    if (!has(kRuled, tool_of(rule))) return refused("tools: " + rule, "claude");
    if (rules.permissions == Permissions::full) {
      return refused(fmt::format("tools: {}, with permissions: full", rule), "claude");
    }
  }
  for (const std::string& name : rules.allowed.value_or(Names())) {
    if (is_mcp(name) && rules.permissions == Permissions::full) {
      return refused(fmt::format("tools: {}, with permissions: full", name), "claude");
    }
  }
  return {};
}

Result<> check_codex(const ToolRules& rules) { return check_modes(rules, "codex", is_edit_tool); }

Result<> check_gemini(const ToolRules& rules) {
  return check_modes(rules, "gemini", [](std::string_view tool) { return tool == "Bash" || is_edit_tool(tool); });
}

Result<> check_without_tools(const ToolRules& rules, std::string_view driver) {
  if (!rules.allowed && rules.denied.empty()) return {};
  return refused("tools", driver);
}

Names claude_arguments(const ToolRules& rules) {
  const bool read = rules.permissions == Permissions::read;
  const Names narrow = narrow_rules(rules);
  Names tools, allowed = narrow, denied = rules.denied, out;
  bool servers = !rules.allowed, edits = false;
  for (const std::string& name : rules.allowed.value_or(Names())) {
    const std::string tool(tool_of(name));
    servers = servers || is_mcp(name);
    if (is_mcp(name)) {
      allowed.push_back(name);
    } else if ((!read || has(kReadTools, tool)) && !has(tools, tool)) {
      tools.push_back(tool);
    }
    edits = edits || is_edit_tool(name);
  }
  // Without the mode that accepts edits a rule allows them, within the folder as in that mode.
  if (edits && !narrow.empty() && rules.permissions == Permissions::edit) allowed.emplace_back("Edit(./**)");
  if (read && !rules.allowed) tools.assign(kReadTools.begin(), kReadTools.end());
  if (read) {
    for (const std::string_view tool : kEditTools) {
      if (!has(denied, tool)) denied.emplace_back(tool);
    }
  }
  const bool asks = read || !narrow.empty();  // without a terminal, a call that would ask is refused
  out.push_back(fmt::format("--permission-mode={}", asks                                     ? "default"
                                                    : rules.permissions == Permissions::full ? "bypassPermissions"
                                                                                             : "acceptEdits"));
  if (read || rules.allowed) out.push_back(fmt::format("--tools={}", fmt::join(tools, ",")));
  if (!allowed.empty()) out.push_back(fmt::format("--allowedTools={}", fmt::join(allowed, ",")));
  if (!denied.empty()) out.push_back(fmt::format("--disallowedTools={}", fmt::join(denied, ",")));
  if (!servers) out.emplace_back("--strict-mcp-config");
  return out;
}

Names codex_arguments(const ToolRules& rules) {
  switch (mode_of(rules)) {
    case Permissions::read: return {"--sandbox=read-only"};
    case Permissions::edit: return {"--sandbox=workspace-write"};
    case Permissions::full: break;
  }
  return {"--sandbox=danger-full-access"};
}

Names gemini_arguments(const ToolRules& rules) {
  switch (mode_of(rules)) {
    case Permissions::read: return {"--approval-mode=default"};  // then it has no tool that changes anything
    case Permissions::edit: return {"--approval-mode=auto_edit"};
    case Permissions::full: break;
  }
  return {"--approval-mode=yolo"};
}

std::vector<std::pair<std::string, std::optional<std::string>>> read_only_git() {
  return {{"GIT_OPTIONAL_LOCKS", "0"}, {"GIT_CONFIG_PARAMETERS", "'diff.autorefreshindex=false'"}};
}

}  // namespace stint::driver
