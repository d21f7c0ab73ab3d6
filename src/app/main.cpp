// Owns main(): reads the command line and hands over to one command.
#include "cli/agents.hpp"
#include "cli/config.hpp"
#include "cli/demo.hpp"
#include "cli/init.hpp"
#include "cli/trust.hpp"
#include "provider/command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

constexpr int kExitOk = 0;
constexpr int kExitUsage = 2;

constexpr const char* kDescription =
    "Stint runs fleets of AI agents, as many at once as you allow and never one more.\n"
    "\n"
    "This version has the C++ library stint::core, agent files and settings. Running them, the daemon and the\n"
    "dashboard are not built yet.\n"
    "\n"
    "Agents: docs/agents.md. The library: docs/library.md. What a semaphore is good for: docs/learn.md. Programs to "
    "copy: examples/.";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kDescription, "stint");
  app.set_version_flag("--version", "stint " STINT_VERSION);
  app.require_subcommand(0, 1);
  stint::cli::InitCommand init(app);
  stint::cli::AgentsCommand agents(app);
  stint::cli::ConfigCommand config(app);
  stint::cli::TrustCommand trust(app);
  stint::cli::DemoCommand demo(app);
  stint::provider::ProviderCommand provider(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (init.chosen()) return init.run();
  if (agents.chosen()) return agents.run();
  if (config.chosen()) return config.run();
  if (trust.chosen()) return trust.run();
  if (demo.chosen()) return demo.run();
  if (provider.chosen()) return provider.run();
  fmt::print("{}", app.help());
  return kExitOk;
}
