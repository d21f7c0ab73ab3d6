/// An agent as plain values: the content of its file, checked and with units resolved. `agent/` parses files into them;
/// queue, limits, drivers and the loop only read them. A field that the file leaves out is empty here: the settings
/// provide defaults later.
#pragma once

#include "domain/driver_descriptor.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::domain {

/// Above this a capacity or a weight is a mistake: every permit of a host is a lock file.
inline constexpr std::uint32_t kPermitsMax = 10'000;
inline constexpr std::size_t kAgentNameMax = 64;
/// The agent name of runs without an agent file (`stint run -p`). Reserved: a file of that name would apply to them.
inline constexpr std::string_view kPromptAgent = "prompt";

enum class Permissions : std::uint8_t { read, edit, full };
enum class OnCrash : std::uint8_t { resume, rerun, doubt };
/// Where a CLI keeps its login and its conversations: in the user's home, or in one per permit of the agent, so that
/// concurrent sessions don't write into the same files.
enum class AgentHome : std::uint8_t { shared, slot };
/// Whether a tool call may be repeated: see the retry rules.
enum class ToolClass : std::uint8_t { read, idempotent, keyed, once };
/// The format of an agent file. In order of precedence: of two agents with one name the earlier hides the later.
enum class AgentFormat : std::uint8_t { stint, coven, claude, gemini, opencode, github };

[[nodiscard]] std::string_view to_string(Permissions permissions) noexcept;
[[nodiscard]] std::string_view to_string(OnCrash on_crash) noexcept;
[[nodiscard]] std::string_view to_string(AgentHome home) noexcept;
[[nodiscard]] std::string_view to_string(ToolClass tool_class) noexcept;
[[nodiscard]] std::string_view to_string(AgentFormat format) noexcept;

struct ArgumentSpec {
  std::string name;
  std::string description;
  bool required = false;
  std::optional<std::string> fallback;  ///< `default:` in the file

  friend bool operator==(const ArgumentSpec&, const ArgumentSpec&) = default;
};

/// The values of a run's arguments. An argument that was given several times has several values.
using ArgumentValues = std::map<std::string, std::vector<std::string>, std::less<>>;

struct LimitRequest {
  std::string name;
  std::uint32_t weight = 1;
  int line = 0;  ///< in the file, for messages

  friend bool operator==(const LimitRequest&, const LimitRequest&) = default;
};

/// An absent bound: not bounded by this agent.
struct BudgetSpec {
  std::optional<Duration> time{};
  std::optional<std::int64_t> attempts{};
  std::optional<std::int64_t> tokens{};
  std::optional<std::int64_t> cost_micros{};

  /// Takes bounds that are absent here from `other`.
  [[nodiscard]] BudgetSpec or_else(const BudgetSpec& other) const {
    return {.time = time ? time : other.time,
            .attempts = attempts ? attempts : other.attempts,
            .tokens = tokens ? tokens : other.tokens,
            .cost_micros = cost_micros ? cost_micros : other.cost_micros};
  }
  friend bool operator==(const BudgetSpec&, const BudgetSpec&) = default;
};

struct RetrySpec {
  std::optional<Duration> base;
  std::optional<Duration> cap;

  friend bool operator==(const RetrySpec&, const RetrySpec&) = default;
};

/// A header of an HTTP tool or an MCP server.
struct ToolHeader {
  std::string name;
  std::string value;     ///< of an HTTP tool: a template over what the model passes
  std::string variable;  ///< of the environment, whose value it has instead: a key never stands in an agent file

  friend bool operator==(const ToolHeader&, const ToolHeader&) = default;
};

/// An HTTP request as a tool. A method without a body puts the arguments into the address only.
struct HttpTool {
  std::string method = "POST";
  std::string url;  ///< a template; values are percent-encoded
  std::vector<ToolHeader> headers{};

  friend bool operator==(const HttpTool&, const HttpTool&) = default;
};

/// A server whose tools are all offered to the model.
struct McpServer {
  std::vector<std::string> command{};  ///< speaks MCP over stdin and stdout; empty: `url`
  std::string url{};
  std::vector<ToolHeader> headers{};
  bool trusted = false;  ///< its annotations decide the classes of its tools; else all are `once`

  friend bool operator==(const McpServer&, const McpServer&) = default;
};

/// One tool, or all tools of an MCP server. Exactly one of `command`, `http` and `mcp` is given.
struct Tool {
  std::string name;
  std::string description{};
  ToolClass tool_class = ToolClass::once;
  std::vector<std::string> command{};  ///< an argv; each element is a template over what the model passes
  std::optional<HttpTool> http{};
  std::optional<McpServer> mcp{};
  std::optional<Duration> timeout{};
  std::string input{};  ///< JSON schema of its arguments; of a server empty

  friend bool operator==(const Tool&, const Tool&) = default;
};

/// A template and the line of the file where it begins.
struct TemplateText {
  std::string text;
  int line = 0;

  [[nodiscard]] bool empty() const noexcept { return text.empty(); }
  friend bool operator==(const TemplateText&, const TemplateText&) = default;
};

struct Agent {
  std::string name;
  std::string file;  ///< its path, as shown in messages
  AgentFormat format = AgentFormat::stint;
  std::string description;
  std::vector<ArgumentSpec> args;
  std::optional<std::uint32_t> max_concurrency;  ///< absent: unlimited
  std::vector<LimitRequest> limits;              ///< besides agent:<name>
  const DriverDescriptor* driver = nullptr;      ///< null: the default of the settings
  std::string model;
  std::vector<std::string> driver_args;
  std::optional<Permissions> permissions;
  std::vector<TemplateText> command;  ///< an argv, rendered element by element
  std::vector<Tool> tools;            ///< that Stint itself calls for the model
  std::string output;                 ///< JSON schema of its result; empty: any text
  BudgetSpec budget;
  RetrySpec retry;
  std::optional<Duration> idle_timeout;
  std::optional<std::uint64_t> memory_bytes_max;  ///< `memory:`, of all its processes together
  std::optional<AgentHome> home;
  std::optional<OnCrash> on_crash;
  std::vector<std::string> next;
  int priority = 0;
  TemplateText title;
  TemplateText prompt;
  /// The body of a foreign file describes the agent, not its task. Verbatim, not a template.
  std::string system_prompt;
  std::optional<std::vector<std::string>> tool_names;  ///< allowed tools of the CLI itself; absent: all
  std::vector<std::string> tool_names_denied;
  std::optional<std::uint32_t> turns_max;
};

/// "agent:review", the limit that `max_concurrency` sets.
[[nodiscard]] std::string agent_limit(std::string_view agent);

/// `[a-z0-9][a-z0-9_-]{0,63}`
[[nodiscard]] bool is_agent_name(std::string_view name) noexcept;
/// `[A-Za-z_][A-Za-z0-9_-]{0,63}`
[[nodiscard]] bool is_argument_name(std::string_view name) noexcept;
/// `[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}`, without "..": a limit's name becomes part of a file's name.
[[nodiscard]] bool is_limit_name(std::string_view name) noexcept;
/// Returns `account:anthropic` for `account.anthropic`: file names have '.' in place of ':'. Only for the prefixes
/// `agent`, `account` and `model`. Empty: the name has none of them.
[[nodiscard]] std::string limit_of_file_name(std::string_view name);

}  // namespace stint::domain
