/// What is known of each driver as plain data, in one table: its name, its account, where it keeps its login, how it is
/// installed, what it can do. Agent files, settings, budgets, trust, the command line and `stint doctor` read it here,
/// so that a new driver needs no change in them. `driver/registry.hpp` has the code of each. A driver is identified by
/// the address of its descriptor, which never changes.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace stint::domain {

/// A variable of a program's environment.
struct DriverVariable {
  std::string_view name;
  std::string_view value;
};

/// A version from which on a CLI no longer does something that hurts a fleet.
struct DriverMilestone {
  std::array<int, 3> version;
  std::string_view before;  ///< what an older version does
};

struct DriverDescriptor {
  std::string_view name{};           ///< in agent files, settings, submissions; of a CLI also its program
  std::string_view account{};        ///< the limit that its runs take, "account:anthropic"; empty: the model decides
  std::string_view key_variable{};   ///< an API key in the environment that it uses before its own login; empty: none
  std::string_view home_variable{};  ///< names the folder of its login and its conversations, for `home: slot`
  std::string_view install_hint{};   ///< a command that installs its program; empty: there is none to install
  std::string_view update_hint{};    ///< a command that updates it; empty: install_hint does

  bool runs_command = false;           ///< it runs the command of an agent's file, which must have one
  bool resumes = false;                ///< it can continue a conversation after a crash
  bool holds_tokens = false;           ///< it can be stopped at a budget; else usage is known only when it has ended
  bool names_cost = false;             ///< it reports its cost; else the cost follows from tokens and a price
  bool grants_tools = false;           ///< allowed tools with a rule, or of an MCP server, are used without asking
  bool calls_in_process = false;       ///< it makes its calls in this process, where limits of calls can count them
  bool always_reads_checkout = false;  ///< no option covers all hooks and MCP servers that a checkout's settings name

  std::span<const std::string_view> checkout_files{};  ///< that it reads by itself in the folder it is started in
  /// Switch off its own retries, so that there is one retry loop. `{provider}` is a provider of the user's own; without
  /// one the arguments are left out.
  std::span<const std::string_view> retry_off_arguments{};
  std::span<const DriverVariable> retry_off_variables{};
  std::span<const DriverMilestone> milestones{};  ///< newest first
};

namespace detail {

inline constexpr std::array<std::string_view, 4> kClaudeFiles{"CLAUDE.md", "CLAUDE.local.md", ".claude", ".mcp.json"};
inline constexpr std::array kClaudeRetryOff{
    DriverVariable{"CLAUDE_CODE_MAX_RETRIES", "1"},                    // with one it says how long it was told to wait
    DriverVariable{"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"},  // repeats a broken stream, unseen and billed
};
inline constexpr std::array kClaudeMilestones{
    DriverMilestone{{2, 1, 221}, "starts its first turn before MCP servers of --mcp-config are ready"},
    DriverMilestone{{2, 1, 216}, "may kill an unrelated process because of a stale lock file"},
    DriverMilestone{{2, 1, 214}, "cuts its output short when it is read slowly"},
    DriverMilestone{{2, 1, 212}, "leaves the commands it started running when it is terminated"},
    DriverMilestone{{2, 1, 163}, "hangs on a background shell that never ends"},
    DriverMilestone{{2, 1, 162}, "loses an interrupt that comes early"},
    DriverMilestone{{2, 1, 153}, "hangs when its input is closed"},
};
inline constexpr std::array<std::string_view, 1> kCodexFiles{".codex"};
inline constexpr std::array<std::string_view, 4> kCodexRetryOff{
    "-c", "model_providers.{provider}.request_max_retries=1",  // its built-in provider takes no such setting
    "-c", "model_providers.{provider}.stream_max_retries=1"};
inline constexpr std::array<std::string_view, 2> kGeminiFiles{".gemini", ".env"};

}  // namespace detail

/// One entry for each driver. The first is the default.
inline constexpr std::array kDrivers{
    DriverDescriptor{.name = "claude",
                     .account = "account:anthropic",
                     .key_variable = "ANTHROPIC_API_KEY",
                     .home_variable = "CLAUDE_CONFIG_DIR",
                     .install_hint = "npm install -g @anthropic-ai/claude-code",
                     .update_hint = "claude update",
                     .resumes = true,
                     .holds_tokens = true,
                     .names_cost = true,
                     .grants_tools = true,
                     .checkout_files = detail::kClaudeFiles,
                     .retry_off_variables = detail::kClaudeRetryOff,
                     .milestones = detail::kClaudeMilestones},
    DriverDescriptor{.name = "codex",
                     .account = "account:openai",
                     .key_variable = "OPENAI_API_KEY",
                     .home_variable = "CODEX_HOME",
                     .install_hint = "npm install -g @openai/codex",
                     .resumes = true,
                     .holds_tokens = true,
                     .always_reads_checkout = true,
                     .checkout_files = detail::kCodexFiles,
                     .retry_off_arguments = detail::kCodexRetryOff},
    DriverDescriptor{.name = "gemini",
                     .account = "account:google",
                     .key_variable = "GEMINI_API_KEY",
                     .home_variable = "HOME",
                     .install_hint = "npm install -g @google/gemini-cli",
                     .resumes = true,
                     .always_reads_checkout = true,
                     .checkout_files = detail::kGeminiFiles},
    DriverDescriptor{
        .name = "command", .home_variable = "HOME", .runs_command = true, .holds_tokens = true, .names_cost = true},
    DriverDescriptor{.name = "llm", .resumes = true, .holds_tokens = true, .calls_in_process = true},
};

/// In the order of the table.
inline constexpr auto kDriverNames = [] {
  std::array<std::string_view, kDrivers.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kDrivers[i].name;
  return names;
}();

/// Of agents and settings that name no driver.
inline constexpr const DriverDescriptor& kDefaultDriver = kDrivers.front();

/// Null: there is no such driver.
[[nodiscard]] constexpr const DriverDescriptor* find_driver(std::string_view name) noexcept {
  for (const DriverDescriptor& driver : kDrivers) {
    if (driver.name == name) return &driver;
  }
  return nullptr;
}
/// The driver of an agent's file that has a command and names no driver.
[[nodiscard]] const DriverDescriptor& command_driver() noexcept;
/// The driver that calls models and tools itself.
[[nodiscard]] const DriverDescriptor& in_process_driver() noexcept;
/// "claude, codex, gemini, command or llm"
[[nodiscard]] std::string driver_choices();
/// Why `name` can't be used, and what can.
[[nodiscard]] std::string why_no_driver(std::string_view name);

}  // namespace stint::domain
