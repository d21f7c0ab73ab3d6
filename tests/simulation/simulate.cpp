// Runs engines in a simulated world, seed after seed, until the time is up or a promise is broken.
//
//   engine_simulation --seconds 60            seeds 1, 2, 3, … for 60 s
//   engine_simulation --seed 4711             one seed
//   engine_simulation --sabotage late_fence   with a known defect, which the simulation must find
#include "world.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

namespace stint::simulation {
namespace {

struct Options {
  std::uint64_t from = 1, most = 1'000'000;
  double seconds = 1e9;
  Sabotage sabotage = Sabotage::none;
};

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--seed") {
      options.from = std::strtoull(value.c_str(), nullptr, 10);
      options.most = 1;
    } else if (name == "--from") {
      options.from = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--seeds") {
      options.most = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--seconds") {
      options.seconds = std::strtod(value.c_str(), nullptr);
    } else if (name == "--sabotage") {
      for (const Sabotage each : kSabotages) {
        if (to_string(each) == value) options.sabotage = each;
      }
      if (options.sabotage == Sabotage::none) {
        fmt::print(stderr, "unknown sabotage '{}'\n", value);
        std::exit(2);
      }
    } else {
      fmt::print(stderr, "unknown option {}\n", name);
      std::exit(2);
    }
  }
  return options;
}

int simulate(const Options& options, const char* program) {
  const auto began = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  std::uint64_t lived = 0;
  for (std::uint64_t seed = options.from; lived < options.most && elapsed() < options.seconds; ++seed, ++lived) {
    World world(seed, options.sabotage);
    const std::vector<std::string> faults = world.live();
    if (faults.empty()) continue;
    for (const std::string& fault : faults) fmt::print("seed {}: {}\n", seed, fault);
    for (const std::string& line : world.events_of(faults.front())) fmt::print("{}\n", line);
    if (options.sabotage != Sabotage::none) {
      fmt::print("{} was found after {} seeds\n", to_string(options.sabotage), lived + 1);
      return 0;
    }
    fmt::print("repeat with: ./dev simulate --seed {}, or {} --seed {}\n", seed, program, seed);
    return 1;
  }
  fmt::print("{} seeds, nothing found, {:.1f} s\n", lived, elapsed());
  return options.sabotage == Sabotage::none && lived > 0 ? 0 : 1;
}

}  // namespace
}  // namespace stint::simulation

int main(int argc, char** argv) {
  return stint::simulation::simulate(stint::simulation::read_options(argc, argv), argv[0]);
}
