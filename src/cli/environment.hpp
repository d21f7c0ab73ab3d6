/// What a command finds when it starts: folder, environment variables, terminal. Read once and passed as a value, so
/// that commands can be tested without a process.
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
  bool terminal = false;       ///< stdout is a terminal
  bool colour = false;         ///< stdout is a terminal, not a dumb one, and NO_COLOR is not set
  bool colour_errors = false;  ///< the same for stderr
  int columns = 80;
};
[[nodiscard]] Environment blocking_read_environment();

/// Prints "stint: …" to stderr; returns kExitFailed.
int complain(const Error& error);
/// Prints "stint: …" to stderr: the beginning or the end of an outage of the fleet.
void print_outage(const std::string& text);
/// Prints problems to stderr, one line each.
void print_problems(std::span<const agent::Problem> problems, const Environment& environment);

}  // namespace stint::cli
