// Owns main(): reads the command line and hands over to one command.
#include "cli/demo.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

constexpr int kExitOk = 0;
constexpr int kExitUsage = 2;

constexpr const char* kDescription =
    "Stint runs fleets of AI agents, as many at once as you allow and never one more.\n"
    "\n"
    "This version is the ground floor: the C++ library stint::core, and one command that shows it at work.\n"
    "Agents, the daemon and the dashboard are not built yet.\n"
    "\n"
    "The library: docs/library.md. What a semaphore is good for: docs/learn.md. Programs to copy: examples/.";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kDescription, "stint");
  app.set_version_flag("--version", "stint " STINT_VERSION);
  app.require_subcommand(0, 1);
  stint::cli::DemoCommand demo(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (demo.chosen()) return demo.run();
  fmt::print("{}", app.help());
  return kExitOk;
}
