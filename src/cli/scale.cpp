#include "cli/scale.hpp"

#include "agent/quantity.hpp"
#include "cli/fleet_place.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "engine/views.hpp"
#include "stint/scope.hpp"
#include "wire/fleet.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kWorkersMax = 10'000;
constexpr Duration kScaledEvery = 300ms;

std::optional<std::size_t> size_of(const std::optional<std::int64_t>& number) {
  if (!number) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

Task<Result<int>> scale(FleetAccess& access, engine::ScaleRequest wanted, bool json) {
  STINT_CO_TRY(const engine::FleetHealth health, co_await access.fleet.scale(wanted));
  if (json) {
    print_out("{}\n", wire::to_json(health));
    co_return kExitDone;
  }
  std::string text = some(health.pool_size, "worker");
  if (health.target_size != health.pool_size) text += fmt::format(", changing to {}", health.target_size);
  if (health.bounds) text += fmt::format("; autoscales from {} to {}", health.bounds->first, health.bounds->second);
  print_out("{}\n", text);
  co_return kExitDone;
}

/// Returns when the daemon no longer answers, or reports that it has stopped.
Task<Result<>> wait_for_end(FleetAccess& access, bool json) {
  std::uint64_t shown = 0;
  while (true) {
    const auto status = co_await access.fleet.status();
    if (!status) {
      if (status.error() == Errc::unavailable || status.error() == Errc::full) co_return Result<>();
      co_return fail(status.error());
    }
    if (status->phase == engine::Phase::stopped) co_return Result<>();
    const auto counted = status->stats.runs.find(domain::RunState::running);
    const std::uint64_t running = counted == status->stats.runs.end() ? 0 : counted->second;
    if (!json && running != shown) {
      shown = running;
      print_error("stint: waiting for {}\n", some(shown, "run"));
    }
    co_await sleep_for(kScaledEvery);
  }
}

Task<Result<int>> drain(FleetAccess& access, engine::DrainRequest how, bool wait, bool json) {
  STINT_CO_CHECK(co_await access.fleet.drain(how));
  if (!json)
    print_out("{} drains: it begins no new runs, lets those under way finish, then exits.\n",
              access.connection.where());
  flush_out();
  if (wait) STINT_CO_CHECK(co_await wait_for_end(access, json));
  if (wait && !json) print_out("Drained.\n");
  if (json) {
    const auto health = wait ? Result<engine::FleetHealth>(engine::FleetHealth{}) : co_await access.fleet.health();
    print_out("{}\n", wire::to_json(health ? *health : engine::FleetHealth{}));
  }
  co_return kExitDone;
}

}  // namespace

ScaleCommand::ScaleCommand(CLI::App& app) : command_(app, "scale", "Set the number of workers of the daemon") {
  command_.footer("`stint scale 8` sets it now; --min and --max are the bounds within which the pool autoscales.");
  command_.option("N", workers_, "Set the number of workers").whole(0, kWorkersMax).value("");
  command_.option("--min", min_, "Autoscale to no fewer").whole(0, kWorkersMax);
  command_.option("--max", max_, "Autoscale to no more").whole(1, kWorkersMax);
  command_.flag("--json", json_, "Print one JSON object: the pool");
}

bool ScaleCommand::chosen() const { return command_.chosen(); }

int ScaleCommand::run(const domain::System& system) {
  if (!workers_ && !min_ && !max_) {
    complain({Errc::invalid, "no number given. Use `stint scale N`, or --min N and --max N"});
    return kExitUsage;
  }
  if (min_ && max_ && *min_ > *max_) {
    complain({Errc::invalid, "--min must not be more than --max"});
    return kExitUsage;
  }
  return run_on_fleet(system, {}, [this](FleetAccess& access) {
    return scale(access, {.workers = size_of(workers_), .min = size_of(min_), .max = size_of(max_)}, json_);
  });
}

DrainCommand::DrainCommand(CLI::App& app)
    : command_(app, "drain", "Drain the daemon: it begins no new runs, finishes, and exits") {
  command_.footer(
      "Runs that have not finished by the timeout are ended and handed back to the queue, or put in doubt if they "
      "must\n"
      "not be repeated; that uses up no attempt. A second drain changes nothing, except with --hurry or an earlier\n"
      "timeout.");
  command_.option("--timeout", timeout_, "Give runs under way this long; default: pool.drain").value("DURATION");
  command_.flag("--hurry", hurry_, "Do not wait for runs to finish; a second time: kill them at once");
  command_.flag("--wait", wait_, "Wait until the daemon has exited");
  command_.flag("--json", json_, "Print one JSON object: the pool");
}

bool DrainCommand::chosen() const { return command_.chosen(); }

int DrainCommand::run(const domain::System& system) {
  engine::DrainRequest how{.timeout = {}, .hurry = hurry_};
  if (!timeout_.empty()) {
    const auto parsed = agent::parse_duration(timeout_);
    if (!parsed) {
      complain(parsed.error());
      return kExitUsage;
    }
    how.timeout = *parsed;
  }
  return run_on_fleet(system, {}, [&, this](FleetAccess& access) { return drain(access, how, wait_, json_); });
}

}  // namespace stint::cli
