#include "cli/environment.hpp"

#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "os/terminal.hpp"
#include "os/variables.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <unistd.h>

namespace stint::cli {

Environment blocking_read_environment() {
  Environment out;
  std::error_code error;
  out.folder = std::filesystem::current_path(error);
  if (error) out.folder = ".";
  out.variables = os::environment_variables();
  const auto variable = [&](const char* name) {
    const auto found = out.variables.find(name);
    return found == out.variables.end() ? std::string() : found->second;
  };
  const bool colour = variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  if (const auto size = os::terminal_size(STDOUT_FILENO)) {
    out.terminal = true;
    out.columns = size->columns;
    out.colour = colour;
  }
  out.colour_errors = colour && os::terminal_size(STDERR_FILENO).has_value();
  return out;
}

int complain(const Error& error) {
  print_error("stint: {}\n", printable(error.describe()));
  return kExitFailed;
}

void print_outage(const std::string& text) { print_error("stint: {}\n", printable(text)); }

void print_problems(std::span<const agent::Problem> problems, const Environment& environment) {
  for (const agent::Problem& problem : problems) {
    const std::string whole = printable(describe(problem));
    const std::string severity(to_string(problem.severity));
    const std::size_t at = whole.find(severity + ": ");
    Line line;
    if (at == std::string::npos) {
      line.add(whole);
    } else {
      line.add(whole.substr(0, at));
      line.add(severity, problem.severity == agent::Severity::error ? Style::red : Style::yellow);
      line.add(whole.substr(at + severity.size()));
    }
    print_error("{}\n", line.str(environment.colour_errors));
  }
}

}  // namespace stint::cli
