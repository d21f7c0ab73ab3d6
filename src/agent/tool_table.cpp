#include "agent/tool_table.hpp"

#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace stint::agent {
namespace {

using domain::AgentFormat;
using Names = std::vector<std::string>;

struct Row {
  AgentFormat format;
  std::string_view theirs;  ///< in lower case, between spaces
  std::string_view ours;
};
constexpr std::string_view kEdits = "Edit Write MultiEdit NotebookEdit";
constexpr std::array kRows{
    Row{AgentFormat::github, " execute shell bash powershell runcommands runinterminal runtests runtasks ", "Bash"},
    Row{AgentFormat::github, " read notebookread readfile view ", "Read"},
    Row{AgentFormat::github, " edit multiedit write notebookedit editfiles create createfile ", kEdits},
    Row{AgentFormat::github, " search grep glob codebase textsearch filesearch listdirectory ", "Grep Glob LS"},
    Row{AgentFormat::github, " agent task custom-agent runsubagent ", "Task"},
    Row{AgentFormat::github, " web websearch webfetch fetch ", "WebSearch WebFetch"},
    Row{AgentFormat::github, " todo todowrite todos ", "TodoWrite"},
    Row{AgentFormat::opencode, " bash ", "Bash"},
    Row{AgentFormat::opencode, " edit write patch multiedit apply_patch ", kEdits},  // one permission there
    Row{AgentFormat::opencode, " read ", "Read"},
    Row{AgentFormat::opencode, " list ", "LS"},
    Row{AgentFormat::opencode, " glob ", "Glob"},
    Row{AgentFormat::opencode, " grep ", "Grep"},
    Row{AgentFormat::opencode, " webfetch ", "WebFetch"},
    Row{AgentFormat::opencode, " websearch codesearch ", "WebSearch"},
    Row{AgentFormat::opencode, " task ", "Task"},
    Row{AgentFormat::opencode, " todowrite todoread ", "TodoWrite"},
    Row{AgentFormat::opencode, " skill ", "Skill"},
    Row{AgentFormat::opencode, " lsp ", "LSP"},
    Row{AgentFormat::opencode, " question ", "AskUserQuestion"},
    Row{AgentFormat::gemini, " run_shell_command shelltool ", "Bash"},
    Row{AgentFormat::gemini, " read_file read_many_files readfiletool readmanyfilestool ", "Read"},
    Row{AgentFormat::gemini, " write_file replace edit writefiletool edittool ", kEdits},
    Row{AgentFormat::gemini, " list_directory ls lstool ", "LS"},
    Row{AgentFormat::gemini, " glob globtool ", "Glob"},
    Row{AgentFormat::gemini, " grep_search search_file_content greptool ", "Grep"},
    Row{AgentFormat::gemini, " web_fetch webfetchtool ", "WebFetch"},
    Row{AgentFormat::gemini, " google_web_search websearchtool ", "WebSearch"},
    Row{AgentFormat::gemini, " write_todos ", "TodoWrite"},
    Row{AgentFormat::gemini, " activate_skill ", "Skill"},
    Row{AgentFormat::gemini, " invoke_agent ", "Task"},
};

Names words(std::string_view text) {
  Names out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

Names in_table(std::string_view name, AgentFormat format) {
  const std::string wanted = " " + lower(name) + " ";
  for (const Row& row : kRows) {
    if (row.format == format && name.find(' ') == std::string_view::npos && row.theirs.contains(wanted)) {
      return words(row.ours);
    }
  }
  return {};
}

/// A tool of an MCP server, in the notation of each format.
std::optional<std::string> mcp_name(std::string_view name, AgentFormat format) {
  const auto plain = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
  };
  const auto made = [&](std::string_view server, std::string_view tool) -> std::optional<std::string> {
    if (!plain(server)) return std::nullopt;
    if (tool == "*") return fmt::format("mcp__{}", server);
    if (!plain(tool)) return std::nullopt;
    return fmt::format("mcp__{}__{}", server, tool);
  };
  if (format == AgentFormat::github && name.contains('/')) {
    return made(name.substr(0, name.find('/')), name.substr(name.find('/') + 1));
  }
  if (format == AgentFormat::opencode && name.ends_with("_*")) return made(name.substr(0, name.size() - 2), "*");
  if (format == AgentFormat::gemini && name.starts_with("mcp_") && name.ends_with("_*")) {
    return made(name.substr(4, name.size() - 6), "*");
  }
  return std::nullopt;
}

/// A rule of a command, as it is written in parentheses; nothing: it can't be expressed.
std::optional<std::string> shell_rule(std::string_view pattern) {
  if (pattern.empty() || pattern.find_first_of("(),?\"'\\\n\r\t") != std::string_view::npos) return std::nullopt;
  return fmt::format("Bash({})", pattern);
}

/// `Bash(git log:*, git diff:*)` is two rules.
Names split_rules(std::string_view name) {
  const std::size_t open = name.find('(');
  if (open == std::string_view::npos || !name.ends_with(')')) return {std::string(name)};
  Names out;
  for (const std::string& rule : split_commas(name.substr(open + 1, name.size() - open - 2))) {
    out.push_back(fmt::format("{}({})", name.substr(0, open), rule));
  }
  return out.empty() ? Names{std::string(name.substr(0, open))} : out;
}

class Reader {
 public:
  Reader(Fields& fields, AgentFormat format) : fields_(fields), format_(format) {}

  ForeignTools read() {
    if (const YamlNode* const node = fields_.find("tools")) read_tools(*node);
    for (const std::string& name : listed("disallowed_tools"))
      deny(name, "disallowed_tools", place("disallowed_tools"));
    const YamlNode* const node = format_ == AgentFormat::opencode ? fields_.find("permission") : nullptr;
    if (node == nullptr) return std::move(tools_);
    const ForeignTools by_tools = std::exchange(tools_, {});
    read_permission(*node);
    restrict_to(by_tools);
    return std::move(tools_);
  }

 private:
  /// Allows what both allow, and nothing that one of them denies.
  void restrict_to(const ForeignTools& other) {
    for (const std::string& name : other.denied) {
      if (!contains(tools_.denied, name)) tools_.denied.push_back(name);
    }
    if (!other.allowed) return;
    if (!tools_.allowed) {
      tools_.allowed = other.allowed;
      return;
    }
    std::erase_if(*tools_.allowed, [&](const std::string& name) {
      return !contains(*other.allowed, name) && !contains(*other.allowed, name.substr(0, name.find('(')));
    });
  }
  Place place(std::string_view key) { return fields_.find(key)->key_place; }
  /// A list, or one text with commas.
  Names listed(std::string_view key) {
    const YamlNode* const node = fields_.find(key);
    if (node == nullptr || node->kind == YamlNode::Kind::null) return {};
    if (node->kind == YamlNode::Kind::scalar) return split_commas(node->text);
    return fields_.texts(key).value_or(Names());
  }

  void read_tools(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::null) return;
    if (node.kind == YamlNode::Kind::map) {  // opencode's: {write: false}; tools that are not named are allowed
      for (const YamlNode& item : node.items) read_switch(item, item.text == "true");
      return;
    }
    tools_.allowed.emplace();
    for (const std::string& name : listed("tools")) {
      if (name == "*") {
        tools_.allowed.reset();
        return;
      }
      allow(name, "tools", node.place);
    }
  }
  void read_switch(const YamlNode& item, bool on) {
    const bool known = on || item.text == "false";
    if (!known) fields_.expected(item, "tools." + item.key, "true or false");
    if (item.key == "*") {
      tools_ = {};
      if (!on) tools_.allowed.emplace();
    } else if (on) {
      allow(item.key, "tools", item.key_place);
    } else {
      deny(item.key, "tools", item.key_place);
    }
  }

  void read_permission(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::scalar) {
      if (!allows(node)) tools_ = {.allowed = Names(), .denied = {}};
      return;
    }
    for (const YamlNode& item : node.items) {
      if (item.key == "external_directory" || item.key == "doom_loop")
        continue;  // governed by Stint's own permissions:
      if (item.key == "*" && item.kind == YamlNode::Kind::scalar) {
        tools_ = {};
        if (!allows(item)) tools_.allowed.emplace();
      } else if (item.kind == YamlNode::Kind::scalar) {
        allows(item) ? allow(item.key, "permission", item.key_place) : deny(item.key, "permission", item.key_place);
      } else {
        read_patterns(item);
      }
    }
  }
  /// `ask` counts as `deny`.
  bool allows(const YamlNode& item) {
    if (item.text == "ask") {
      fields_.problems().warning(item.place, "permission",
                                 fmt::format("'{}' is denied: a run can't ask a person", excerpt(item.key)));
    } else if (item.text != "allow" && item.text != "deny") {
      fields_.expected(item, "permission." + item.key, "allow, ask or deny");
    }
    return item.text == "allow";
  }
  /// Commands by pattern: the last match decides. For other tools a pattern that denies denies the whole tool.
  void read_patterns(const YamlNode& item) {
    const Names names = tools_named(item.key, format_);
    const bool shell = names == Names{"Bash"};
    bool others = true;  // commands that no pattern names are allowed
    Names allowed, denied;
    for (const YamlNode& rule : item.items) {
      const bool on = allows(rule);
      if (rule.key == "*") {
        others = on;
        allowed.clear();
        denied.clear();
        continue;
      }
      const std::optional<std::string> made = shell ? shell_rule(rule.key) : std::nullopt;
      if (made) {
        std::erase(on ? denied : allowed, *made);
        (on ? allowed : denied).push_back(*made);
      } else if (!on && others) {
        if (shell) return cannot_keep(rule.key_place, "permission", rule.key);
        fields_.problems().warning(
            rule.key_place, "permission",
            fmt::format("all of '{}' is denied: Stint supports patterns for commands only", item.key));
        others = false;
      }
    }
    if (!others) {
      deny(item.key, "permission", item.key_place);
      if (!allowed.empty()) {
        std::erase(tools_.denied, "Bash");
        if (!tools_.allowed) tools_.allowed = all_but_shell();
        std::erase_if(*tools_.allowed, [](const std::string& name) { return name.starts_with("Bash"); });
        std::ranges::move(allowed, std::back_inserter(*tools_.allowed));
      }
    } else {
      allow(item.key, "permission", item.key_place);
    }
    std::ranges::move(denied, std::back_inserter(tools_.denied));
  }
  static Names all_but_shell() {
    Names all;
    for (const Row& row : kRows) {
      if (row.format != AgentFormat::opencode || row.ours == "Bash") continue;
      for (std::string& name : words(row.ours)) all.push_back(std::move(name));
    }
    return all;
  }

  void allow(const std::string& name, std::string_view key, Place at) {
    const Names ours = tools_named(name, format_);
    if (ours.empty()) {
      fields_.problems().warning(at, std::string(key),
                                 fmt::format("'{}' is not a tool of {} that Stint knows; the agent runs without it",
                                             excerpt(name), to_string(format_)));
      return;
    }
    for (const std::string& each : ours) {
      std::erase(tools_.denied, each);
      if (tools_.allowed && !contains(*tools_.allowed, each)) tools_.allowed->push_back(each);
    }
  }
  void deny(const std::string& name, std::string_view key, Place at) {
    const Names ours = tools_named(name, format_);
    if (ours.empty()) return cannot_keep(at, key, name);
    for (const std::string& each : ours) {
      if (!contains(tools_.denied, each)) tools_.denied.push_back(each);
      if (tools_.allowed) std::erase(*tools_.allowed, each);
    }
  }
  void cannot_keep(Place at, std::string_view key, std::string_view name) {
    fields_.problems().error(at, std::string(key), fmt::format("'{}' can't be denied here", excerpt(name)),
                             "set tools: and permissions: in a file in .stint/agents");
  }

  Fields& fields_;
  const AgentFormat format_;
  ForeignTools tools_;
};

}  // namespace

std::vector<std::string> tools_named(std::string_view name, AgentFormat format) {
  name = trimmed(name);
  if (name.empty() || name.starts_with('-') || name.find_first_of("\n\r\"'\\") != std::string_view::npos) return {};
  if (format == AgentFormat::claude || format == AgentFormat::coven || format == AgentFormat::stint) {
    return split_rules(name);
  }
  const std::size_t open = name.find('(');
  const std::string_view base = trimmed(name.substr(0, open));
  Names found = in_table(base, format);
  if (found.empty() && format == AgentFormat::github && base.contains('/')) {
    found = in_table(base.substr(0, base.find('/')), format);  // a tool set of the editor: search/codebase
  }
  if (found.empty()) {
    const std::optional<std::string> mcp = mcp_name(name, format);
    return mcp ? Names{*mcp} : Names();
  }
  if (open == std::string_view::npos) return found;
  // run_shell_command(git log): commands with this prefix
  if (found != Names{"Bash"} || !name.ends_with(')')) return {};
  Names rules;
  for (const std::string& rule : split_commas(name.substr(open + 1, name.size() - open - 2))) {
    const auto made = shell_rule(rule.ends_with('*') ? rule : rule + ":*");
    if (!made) return {};
    rules.push_back(*made);
  }
  return rules;
}

ForeignTools read_tools(Fields& fields, AgentFormat format) { return Reader(fields, format).read(); }

}  // namespace stint::agent
