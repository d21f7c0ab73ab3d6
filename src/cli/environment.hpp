/// What a command finds when it starts: folder, environment, terminal, project, agents, settings. Looked at once; then
/// it is a value, so that commands can be tried without a process.
#pragma once

#include "agent/discovery.hpp"
#include "agent/project.hpp"
#include "agent/settings.hpp"
#include "cli/demo_text.hpp"
#include "project/checkout.hpp"

#include <filesystem>
#include <span>
#include <string>

namespace stint::cli {

// Exit statuses of every command but `with`.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

struct Environment : project::Location {
  bool terminal = false;       ///< stdout is one
  bool colour = false;         ///< a terminal, and NO_COLOR does not say otherwise
  bool colour_errors = false;  ///< the same of stderr
  int columns = 80;
};
[[nodiscard]] Environment blocking_read_environment();

/// Prints "stint: …" to stderr; gives kExitFailed.
int complain(const Error& error);
/// Prints "stint: …" to stderr: the beginning or the end of an outage of the fleet.
void say_outage(const std::string& text);
/// Prints problems to stderr, one line each.
void print_problems(std::span<const agent::Problem> problems, const Environment& environment);

}  // namespace stint::cli
