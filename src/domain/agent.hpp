/// An agent as plain values: what its file says, checked and with units resolved. Whoever reads files makes these
/// (`agent/`); queue, limits, drivers and the loop only look at them. What the file leaves out is empty here: defaults
/// come from the settings, later.
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
/// The name of runs without an agent's file (`stint run -p`). Reserved: a file of that name would decide for them.
inline constexpr std::string_view kPromptAgent = "prompt";

enum class Permissions : std::uint8_t { read, edit, full };
enum class OnCrash : std::uint8_t { resume, rerun, doubt };
/// Where a CLI keeps its login and its conversations: the user's, or one for each permit of the agent, so that sessions
/// side by side don't write into the same files.
enum class AgentHome : std::uint8_t { shared, slot };
/// How often a tool may be called with the same effect: see the retry rules.
enum class ToolClass : std::uint8_t { read, idempotent, keyed, once };
/// Whose format a file is in. In order of precedence: of two agents of one name the earlier hides the later.
enum class Dialect : std::uint8_t { stint, coven, claude, gemini, opencode, github };

[[nodiscard]] std::string_view to_string(Permissions permissions) noexcept;
[[nodiscard]] std::string_view to_string(OnCrash on_crash) noexcept;
[[nodiscard]] std::string_view to_string(AgentHome home) noexcept;
[[nodiscard]] std::string_view to_string(ToolClass tool_class) noexcept;
[[nodiscard]] std::string_view to_string(Dialect dialect) noexcept;

struct ArgumentSpec {
  std::string name;
  std::string description;
  bool required = false;
  std::optional<std::string> fallback;  ///< `default:` in the file

  friend bool operator==(const ArgumentSpec&, const ArgumentSpec&) = default;
};

/// The values of a run's arguments. One that was given several times has several.
using ArgumentValues = std::map<std::string, std::vector<std::string>, std::less<>>;

struct LimitRequest {
  std::string name;
  std::uint32_t weight = 1;
  int line = 0;  ///< of the file, for messages

  friend bool operator==(const LimitRequest&, const LimitRequest&) = default;
};

/// Absent: not bounded by this agent.
struct BudgetSpec {
  std::optional<Duration> time{};
  std::optional<std::int64_t> attempts{};
  std::optional<std::int64_t> tokens{};
  std::optional<std::int64_t> cost_micros{};

  /// What is absent here, from there.
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

struct Tool {
  std::string name;
  std::string description;
  ToolClass tool_class = ToolClass::once;
  std::vector<std::string> command;  ///< an argv; each element is a template over what the model passes
  std::optional<Duration> timeout;

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
  std::string file;  ///< as messages name it
  Dialect dialect = Dialect::stint;
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
  /// Foreign files: their body is what the agent is, not what it is asked to do. Verbatim, no template.
  std::string system_prompt;
  std::optional<std::vector<std::string>> tool_names;  ///< of a CLI's own tools; absent: all
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
/// `account:anthropic` of `account.anthropic`: in file names ':' is written as '.', and one limit has one name. Empty:
/// the name is none of a file. Of `agent`, `account` and `model`.
[[nodiscard]] std::string limit_of_file_name(std::string_view name);

}  // namespace stint::domain
