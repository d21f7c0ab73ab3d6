// Owns main(): parses the command line and runs one command.
#include "app/demo_fleet.hpp"
#include "app/serve.hpp"
#include "cli/agents.hpp"
#include "cli/command.hpp"
#include "cli/complete.hpp"
#include "cli/completions.hpp"
#include "cli/config.hpp"
#include "cli/demo.hpp"
#include "cli/doctor.hpp"
#include "cli/fleet_commands.hpp"
#include "cli/fleet_place.hpp"
#include "cli/init.hpp"
#include "cli/limits.hpp"
#include "cli/print.hpp"
#include "cli/provider.hpp"
#include "cli/run.hpp"
#include "cli/store.hpp"
#include "cli/trust.hpp"
#include "cli/with.hpp"
#include "driver/warden.hpp"
#include "os/fd.hpp"
#include "os/random.hpp"
#include "os/slot_file.hpp"
#include "os/spawn.hpp"
#include "provider/ask.hpp"
#include "stint/since_boot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitWithFailed = 125;  // all other statuses of `with` belong to its command

constexpr const char* kDescription =
    "Stint runs fleets of AI agents: as many at once as you allow and never one more, each within one budget of time,\n"
    "attempts, tokens and cost.\n"
    "\n"
    "Run one agent: docs/running.md. Run a fleet: docs/fleet.md, docs/operations.md, docs/store.md. Write agents:\n"
    "docs/agents.md. Use the library: docs/library.md, docs/learn.md, examples/.";

/// A random name if the kernel gives none, so that no other process compares its clocks with ours.
std::string name_of_boot(std::uint64_t random) {
  std::string name = stint::os::boot_clock_id();
  return name.empty() ? "unknown-" + std::to_string(random) : name;
}

stint::domain::System real_world() {
  return {.wall_now = [] { return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()); },
          .random = [source = std::make_shared<stint::os::Random>()] { return (*source)(); },
          .elapsed = stint::since_boot,
          .awake = stint::awake_since_boot,
          .boot = name_of_boot(stint::os::Random()())};
}

/// The words after the first `--` of `stint with … -- CMD…`, which the parser must not read.
std::vector<std::string> cut_command(std::vector<std::string>& words) {
  if (words.empty() || words.front() != "with") return {};
  const auto dashes = std::ranges::find(words, "--");
  std::vector<std::string> command(dashes == words.end() ? dashes : dashes + 1, words.end());
  words.erase(dashes, words.end());
  return command;
}

int run_command_line(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == stint::driver::kWardenArgument) {
    return stint::driver::warden_main({words.begin() + 1, words.end()});
  }
  if (!words.empty() && words.front() == stint::provider::kAskArgument) {
    return stint::provider::ask_main({words.begin() + 1, words.end()});
  }
  const std::vector<std::string> command = cut_command(words);
  stint::cli::CommandLine line(kDescription, STINT_VERSION);
  CLI::App& app = line.app();
  stint::cli::InitCommand init(app);
  stint::cli::AgentsCommand agents(app);
  stint::cli::ConfigCommand config(app);
  stint::cli::TrustCommand trust(app);
  stint::cli::RunCommand run(app);
  stint::cli::FleetCommands fleet(app);
  stint::app::ServeCommand serve(app);
  stint::cli::WithCommand with(app);
  stint::cli::LimitsCommand limits(app);
  stint::cli::StoreCommand store(app);
  stint::cli::DoctorCommand doctor(app);
  stint::cli::CompletionsCommand completions(app);
  stint::cli::DemoCommand demo(app);
  stint::app::DemoFleetCommand demo_fleet(app);
  stint::cli::ProviderCommand provider(app);
  if (!words.empty() && words.front() == stint::cli::kCompleteArgument) {
    words.erase(words.begin());
    stint::cli::Names names = stint::cli::blocking_project_names();
    names.runs = [] { return stint::cli::blocking_run_names(real_world()); };
    stint::cli::print_out("{}", to_text(complete(app, words, names)));
    return kExitOk;
  }
  switch (line.parse(words)) {
    case stint::cli::CommandLine::Parsed::command: break;
    case stint::cli::CommandLine::Parsed::answered: return kExitOk;
    case stint::cli::CommandLine::Parsed::wrong: return with.chosen() ? kExitWithFailed : kExitUsage;
  }
  if (init.chosen()) return init.run();
  if (agents.chosen()) return agents.run(real_world());
  if (config.chosen()) return config.run();
  if (trust.chosen()) return trust.run();
  if (run.chosen()) return run.run(real_world());
  if (const auto status = fleet.run(real_world())) return *status;
  if (serve.chosen()) return serve.run(real_world());
  if (limits.chosen()) return limits.run(real_world());
  if (store.chosen()) return store.run(real_world());
  if (with.chosen()) return with.run(real_world(), command);
  if (demo_fleet.chosen()) return demo_fleet.run(real_world());
  if (doctor.chosen()) return doctor.run(real_world());
  if (completions.chosen()) return completions.run();
  if (demo.chosen()) return demo.run();
  if (provider.chosen()) return provider.run();
  stint::cli::print_out("{}", line.help());
  return kExitOk;
}

/// Whether all output was written. A closed reader is not an error: it has seen what it wanted.
bool blocking_finish_output() {
  const int error = stint::cli::lost_output();
  pollfd reader{STDOUT_FILENO, POLLOUT, 0};
  const bool gone = ::poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0;
  // The parser prints its help itself: then only the stream has the error.
  if (error == 0 && (std::ferror(stdout) == 0 || gone)) return true;
  const std::string why = error == 0 ? "" : std::string(": ") + std::strerror(error);
  stint::cli::write_error("stint: standard output could not be written completely" + why + "\n");
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  stint::os::hold_standard_streams();
  stint::os::remember_command_line(argc, argv);
  const int failed = argc > 1 && std::string_view(argv[1]) == "with" ? kExitWithFailed : kExitFailed;
  try {
    const int status = run_command_line(argc, argv);
    return blocking_finish_output() || status != kExitOk ? status : failed;
  } catch (const std::exception& error) {  // out of descriptors or memory, or no stdout
    std::fputs((std::string("stint: ") + error.what() + "\n").c_str(), stderr);
    return failed;
  }
}
