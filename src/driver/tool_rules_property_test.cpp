// For any foreign file: the command line that we build never allows what the file denies, for every driver. A naive
// model of the foreign tool decides what the file means; a model of the CLI decides what the command line means.
#include "agent/agent_file.hpp"
#include "driver/registry.hpp"
#include "driver/tool_rules.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace stint::driver {
namespace {

using domain::AgentFormat;
using domain::Permissions;
using Names = std::vector<std::string>;

/// One action that a model may try.
struct Try {
  std::string_view kind;     ///< shell, edit, web, task
  std::string_view command;  ///< of a shell; all of them change something
  std::string_view tool;     ///< of Claude Code
};
constexpr Try kTries[] = {{"shell", "git push", "Bash"}, {"shell", "rm x", "Bash"}, {"shell", "npm test", "Bash"},
                          {"edit", "", "Edit"},          {"edit", "", "Write"},     {"web", "", "WebFetch"},
                          {"task", "", "Task"}};
/// The names of each format for the kinds, and for one command.
struct Tongue {
  AgentFormat format;
  std::string_view shell, edit, web, task, read, push;
};
constexpr Tongue kTongues[] = {
    {AgentFormat::claude, "Bash", "Write, Edit, MultiEdit, NotebookEdit", "WebFetch", "Task", "Read",
     "Bash(git push:*)"},
    {AgentFormat::github, "execute", "edit", "web", "agent", "read", ""},
    {AgentFormat::gemini, "run_shell_command", "write_file", "web_fetch", "invoke_agent", "read_file",
     "run_shell_command(git push)"},
};

/// A list of tools, and what it does not allow.
struct ListCase {
  std::string text;
  AgentFormat format = AgentFormat::claude;
  std::map<std::string, bool, std::less<>> denied;  ///< by kind; "git push" for that command alone
};

ListCase list_case() {
  const Tongue& tongue = kTongues[*rc::gen::inRange<std::size_t>(0, std::size(kTongues))];
  ListCase out;
  out.format = tongue.format;
  std::string listed;
  const auto add = [&](std::string_view name) { listed += (listed.empty() ? "" : ", ") + std::string(name); };
  const auto maybe = [&](std::string_view kind, std::string_view name) {
    const bool on = *rc::gen::arbitrary<bool>();
    out.denied[std::string(kind)] = !on;
    if (on) add(name);
  };
  add(tongue.read);
  maybe("edit", tongue.edit);
  maybe("web", tongue.web);
  maybe("task", tongue.task);
  maybe("shell", tongue.shell);
  out.denied["git push"] = out.denied["shell"];
  if (!tongue.push.empty() && *rc::gen::arbitrary<bool>()) {
    add(tongue.push);
    out.denied["git push"] = false;
  }
  out.text = "tools: '" + listed + "'\n";
  if (tongue.format == AgentFormat::claude && *rc::gen::arbitrary<bool>()) {
    out.text += "disallowedTools: Bash\n";
    out.denied["shell"] = out.denied["git push"] = true;
  }
  return out;
}

/// opencode: what is not named is allowed, the last match decides, and `ask` counts as denied without a person.
ListCase permission_case() {
  ListCase out;
  out.format = AgentFormat::opencode;
  const auto action = [] { return *rc::gen::element<std::string>("allow", "ask", "deny"); };
  const bool old = *rc::gen::arbitrary<bool>();
  if (old) {
    const bool edits = *rc::gen::arbitrary<bool>(), shell = *rc::gen::arbitrary<bool>();
    out.text =
        std::string("tools: {write: ") + (edits ? "true" : "false") + ", bash: " + (shell ? "true" : "false") + "}\n";
    out.denied["edit"] = !edits;
    out.denied["shell"] = out.denied["git push"] = !shell;
  }
  if (old && *rc::gen::arbitrary<bool>()) return out;
  const std::string edit = action(), web = action(), others = action(), push = action();
  out.text += "permission:\n  edit: " + edit + "\n  webfetch: " + web + "\n  bash:\n    '*': " + others +
              "\n    'git push*': " + push + "\n";
  out.denied["edit"] = out.denied["edit"] || edit != "allow";
  out.denied["web"] = web != "allow";
  out.denied["git push"] = out.denied["git push"] || push != "allow";
  out.denied["shell"] = out.denied["shell"] || others != "allow";
  return out;
}

Names split(std::string_view text) {
  Names out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}
bool fits(std::string_view rule, const Try& attempt) {
  if (tool_of(rule) != attempt.tool) return false;
  if (!rule.contains('(')) return true;
  std::string_view pattern = rule.substr(rule.find('(') + 1);
  pattern = pattern.substr(0, pattern.find_first_of(":*)"));
  return attempt.command.starts_with(pattern);
}
bool any_fits(const Names& rules, const Try& attempt) {
  return std::ranges::any_of(rules, [&](const std::string& rule) { return fits(rule, attempt); });
}

/// What Claude Code 2.1 does with these arguments.
bool claude_allows(const Names& arguments, const Try& attempt) {
  std::string mode;
  std::optional<Names> tools;
  Names allowed, denied;
  for (const std::string_view each : arguments) {
    const std::string_view value = each.substr(std::min(each.find('=') + 1, each.size()));
    if (each.starts_with("--permission-mode=")) mode = value;
    if (each.starts_with("--tools=")) tools = split(value);
    if (each.starts_with("--allowedTools=")) allowed = split(value);
    if (each.starts_with("--disallowedTools=")) denied = split(value);
  }
  if (tools && std::ranges::find(*tools, attempt.tool) == tools->end()) return false;
  if (any_fits(denied, attempt)) return false;
  if (mode == "bypassPermissions" || attempt.kind == "task" || any_fits(allowed, attempt)) return true;
  if (mode != "acceptEdits") return false;
  return attempt.kind == "edit" || attempt.command == "rm x";  // without asking
}
bool mode_allows(std::string_view driver, const ToolRules& rules, const Try& attempt) {
  const std::string mode = driver == "codex" ? codex_arguments(rules).front() : gemini_arguments(rules).front();
  if (mode == "--sandbox=read-only" || mode == "--approval-mode=default") return attempt.kind == "task";
  if (mode == "--approval-mode=auto_edit") return attempt.kind != "shell";
  return true;
}

/// Checks one file under one set of permissions.
void check_one() {
  const ListCase file = *rc::gen::arbitrary<bool>() ? list_case() : permission_case();
  const Permissions permissions = *rc::gen::element(Permissions::read, Permissions::edit, Permissions::full);
  const std::string text = "---\nname: x\ndescription: d\n" + file.text + "---\nx";
  const agent::AgentFile read = agent::parse_agent(text, {"x.md", "x", file.format});
  RC_ASSERT(read.agent);
  const ToolRules rules{permissions, read.agent->tool_names, read.agent->tool_names_denied};
  for (const std::string_view driver : {"claude", "codex", "gemini"}) {
    if (!check_rules(*domain::find_driver(driver), rules)) continue;
    for (const Try& attempt : kTries) {
      const std::string_view kind = attempt.command == "git push" ? attempt.command : attempt.kind;
      const auto denied = file.denied.find(kind);
      if (denied == file.denied.end() || !denied->second) continue;
      const bool allows =
          driver == "claude" ? claude_allows(claude_arguments(rules), attempt) : mode_allows(driver, rules, attempt);
      RC_LOG() << text << driver << ' ' << to_string(permissions) << ' ' << attempt.tool << ' ' << attempt.command
               << '\n';
      RC_ASSERT(!allows);
    }
  }
}

TEST(ToolRulesProperty, no_command_line_allows_what_a_foreign_file_denies) {
  constexpr int kFilesEach = 20;  // a case in a hundred is a rule beside a mode that accepts more
  const bool held = rc::check([] {
    for (int i = 0; i < kFilesEach; ++i) check_one();
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace stint::driver
