// Owns main(): reads the command line and hands over to one command.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

constexpr int kExitOk = 0;
constexpr int kExitUsage = 2;

constexpr const char* kDescription =
    "Stint runs fleets of AI agents, as many at once as you allow and never one more.\n"
    "\n"
    "This version has the C++ library stint::core, and no command yet: agents, daemon and dashboard are not built.\n"
    "See docs/library.md, and the programs in examples/.";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kDescription, "stint");
  app.set_version_flag("--version", "stint " STINT_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  fmt::print("{}", app.help());
  return kExitOk;
}
