#include "agent/tool_entries.hpp"

#include "agent/template.hpp"
#include "agent/text.hpp"
#include "agent/yaml_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace stint::agent {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, 4> kToolClasses{"read", "idempotent", "keyed", "once"};
constexpr std::array<std::string_view, 5> kHttpMethods{"GET", "POST", "PUT", "PATCH", "DELETE"};
constexpr std::array<std::string_view, 5> kHeadersOfStint{"content-length", "content-type", "host", "idempotency-key",
                                                          "transfer-encoding"};

bool is_address(std::string_view url) { return url.starts_with("https://") || url.starts_with("http://"); }

bool is_header_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

class ToolReader {
 public:
  ToolReader(const YamlNode& node, std::string path, ProblemList& problems)
      : node_(node), path_(std::move(path)), problems_(problems), fields_(node, path_, problems) {}

  domain::Tool read() {
    tool_.name = fields_.text("name").value_or("");
    if (fields_.find("name") == nullptr) {
      problems_.error(node_.place, path_, "has no name");
    } else if (!domain::is_argument_name(tool_.name)) {
      refuse("name", fmt::format("'{}' cannot be a tool's name: a letter, then letters, digits, '_' and '-'",
                                 excerpt(tool_.name)));
    }
    tool_.description = fields_.text("description").value_or("");
    tool_.timeout = fields_.duration("timeout");
    if (const auto index = fields_.choice("class", kToolClasses)) {
      tool_.tool_class = static_cast<domain::ToolClass>(*index);
    }
    read_way();
    read_input();
    fields_.finish();
    return std::move(tool_);
  }

 private:
  void refuse(std::string_view key, std::string message, std::string suggestion = {}) {
    const YamlNode* const node = fields_.find(key);
    problems_.error(node == nullptr ? node_.place : node->place, fields_.path(key), std::move(message),
                    std::move(suggestion));
  }

  void read_way() {
    const YamlNode* const http = fields_.map("http");
    const YamlNode* const mcp = fields_.map("mcp");
    const bool is_command = fields_.find("command") != nullptr;
    if (is_command + (http != nullptr) + (mcp != nullptr) != 1) {
      problems_.error(node_.place, path_, "needs one of command, http and mcp");
    }
    if (is_command) tool_.command = read_argv(fields_, true);
    if (http != nullptr) read_http(*http);
    if (mcp != nullptr) read_mcp(*mcp);
  }

  std::vector<std::string> read_argv(Fields& fields, bool is_template) {
    const YamlNode* const node = fields.find("command");
    if (node->kind == YamlNode::Kind::scalar) {
      fields.expected(*node, "command", "a list of program and arguments, not a shell command line",
                      R"(write ["sh", "-c", "…"] if you want a shell)");
      return {};
    }
    std::vector<std::string> argv = fields.texts("command").value_or(std::vector<std::string>());
    if (argv.empty() || argv.front().empty()) {
      problems_.error(node->place, fields.path("command"), "names no program");
    } else if (is_template) {
      for (std::size_t i = 0; i < argv.size() && i < node->items.size(); ++i) {
        note_names(argv[i], node->items[i].place, fmt::format("{}[{}]", fields.path("command"), i));
      }
      const auto program = Template::parse(argv.front());
      if (program && !program->names().empty()) {
        problems_.error(node->place, fields.path("command"), "a model can't choose the program",
                        "write the program out");
      }
    }
    return argv;
  }

  void read_http(const YamlNode& node) {
    Fields inner(node, fields_.path("http"), problems_);
    domain::HttpTool http;
    if (const auto index = inner.choice("method", kHttpMethods)) http.method = kHttpMethods[*index];
    http.url = read_url(inner, node);
    if (const YamlNode* const url = inner.find("url")) note_names(http.url, url->place, inner.path("url"));
    const std::size_t host_end = http.url.find('/', http.url.find("://") + 3);
    if (const std::size_t first = http.url.find("{{"); first != std::string::npos && first < host_end) {
      problems_.error(inner.find("url")->place, inner.path("url"), "a model can't choose the host",
                      "write the host out");
    }
    http.headers = read_headers(inner, true);
    inner.finish();
    tool_.http = std::move(http);
  }

  void read_mcp(const YamlNode& node) {
    Fields inner(node, fields_.path("mcp"), problems_);
    domain::McpServer server;
    const bool is_command = inner.find("command") != nullptr;
    if (is_command == (inner.find("url") != nullptr)) {
      problems_.error(node.place, fields_.path("mcp"), "needs either a command or a url");
    }
    if (is_command) server.command = read_argv(inner, false);
    if (inner.find("url") != nullptr) server.url = read_url(inner, node);
    server.headers = read_headers(inner, false);
    server.trusted = inner.flag("trusted").value_or(false);
    inner.finish();
    for (const std::string_view key : {"class", "input", "description"}) {
      if (fields_.find(key) != nullptr) {
        refuse(key, "an MCP server describes its tools itself",
               key == "class" ? "set trusted: true if its annotations are to be believed" : "remove it");
      }
    }
    tool_.mcp = std::move(server);
  }

  std::string read_url(Fields& fields, const YamlNode& node) {
    std::string url = fields.text("url").value_or("");
    const YamlNode* const at = fields.find("url");
    if (!is_address(url)) {
      problems_.error(at == nullptr ? node.place : at->place, fields.path("url"),
                      fmt::format("expected http:// or https://, found '{}'", excerpt(url)));
    }
    return url;
  }

  std::vector<domain::ToolHeader> read_headers(Fields& fields, bool is_template) {
    std::vector<domain::ToolHeader> out;
    const YamlNode* const map = fields.map("headers");
    if (map == nullptr) return out;
    const auto refuse_header = [&](const YamlNode& item, std::string message, std::string suggestion = {}) {
      problems_.error(item.key_place, fields.path("headers"), std::move(message), std::move(suggestion));
    };
    if (map->items.size() > kToolHeadersMax) refuse_header(*map, fmt::format("more than {} headers", kToolHeadersMax));
    for (const YamlNode& item : map->items) {
      domain::ToolHeader header{.name = item.key, .value = item.text, .variable = {}};
      std::string lower = item.key;
      std::ranges::transform(lower, lower.begin(),
                             [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
      if (!is_header_name(item.key) || contains(kHeadersOfStint, lower)) {
        refuse_header(item, fmt::format("'{}' can't be set here", excerpt(item.key)));
      } else if (item.kind == YamlNode::Kind::map) {
        Fields inner(item, fields.path("headers." + item.key), problems_);
        header.variable = inner.text("env").value_or("");
        if (header.variable.empty() || header.variable.starts_with("STINT_")) {
          refuse_header(item, "expected {env: NAME}, the name of a variable that is not Stint's own");
        }
        inner.finish();
      } else if (item.kind != YamlNode::Kind::scalar || item.text.find_first_of("\r\n") != std::string::npos) {
        refuse_header(item, fmt::format("expected text in one line or {{env: NAME}}, found {}", item.found()));
      } else if (is_template) {
        note_names(item.text, item.place, fields.path("headers." + item.key));
      }
      out.push_back(std::move(header));
    }
    return out;
  }

  struct Use {
    std::string name, field;
    Place place;
  };

  void note_names(const std::string& text, Place place, const std::string& field) {
    const auto parsed = Template::parse(text);
    if (!parsed) {
      problems_.error(place, field, parsed.error().message, parsed.error().suggestion);
      return;
    }
    for (const Template::Name& name : parsed->names()) uses_.push_back({name.name, field, place});
  }

  void read_input() {
    const YamlNode* const input = fields_.map("input");
    if (tool_.mcp) return;
    if (input == nullptr) {
      tool_.input = derived_input();
      return;
    }
    tool_.input = json_text(*input);
    if (const YamlNode* const type = input->find("type"); type != nullptr && type->text != "object") {
      problems_.error(type->place, fields_.path("input.type"), "arguments are always an object", "write type: object");
    }
    const YamlNode* const properties = input->find("properties");
    std::vector<std::string> names;
    if (properties != nullptr) {
      for (const YamlNode& item : properties->items) names.push_back(item.key);
    }
    for (const Use& use : uses_) {
      if (contains(names, use.name)) continue;
      problems_.error(use.place, use.field, fmt::format("{{{{{}}}}} names no property of its input", use.name),
                      did_you_mean(use.name, names));
    }
  }

  /// Every argument that a template names is text that the model must give.
  [[nodiscard]] std::string derived_input() const {
    std::vector<std::string> names;
    for (const Use& use : uses_) {
      if (!contains(names, use.name)) names.push_back(use.name);
    }
    std::string properties, required;
    for (const std::string& name : names) {  // letters, digits, '_' and '-': nothing to escape
      properties += fmt::format(R"({}"{}":{{"type":"string"}})", properties.empty() ? "" : ",", name);
      required += fmt::format(R"({}"{}")", required.empty() ? "" : ",", name);
    }
    return fmt::format(R"({{"type":"object","properties":{{{}}},"required":[{}],"additionalProperties":false}})",
                       properties, required);
  }

  const YamlNode& node_;
  const std::string path_;
  ProblemList& problems_;
  Fields fields_;
  domain::Tool tool_;
  std::vector<Use> uses_;
};

}  // namespace

void read_tool_entries(Fields& fields, domain::Agent& agent) {
  const YamlNode* const list = fields.list("tools");
  if (list == nullptr) return;
  if (list->items.size() > kToolEntriesMax) {
    fields.problems().error(list->place, "tools",
                            fmt::format("{} tools; at most {}", list->items.size(), kToolEntriesMax));
    return;
  }
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& node = list->items[i];
    const std::string path = fmt::format("tools[{}]", i);
    if (node.kind != YamlNode::Kind::map) {
      fields.expected(node, path, "a tool such as {name: send_mail, class: once, command: [./mail, \"{{to}}\"]}");
      continue;
    }
    domain::Tool tool = ToolReader(node, path, fields.problems()).read();
    if (!tool.name.empty() && contains(agent.tools, tool.name, &domain::Tool::name)) {
      fields.problems().error(node.place, path, fmt::format("there are two tools '{}'", excerpt(tool.name)));
    }
    agent.tools.push_back(std::move(tool));
  }
}

void read_output(Fields& fields, domain::Agent& agent) {
  if (const YamlNode* const schema = fields.map("output")) agent.output = json_text(*schema);
}

}  // namespace stint::agent
