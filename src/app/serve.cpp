#include "app/serve.hpp"

#include "app/daemon.hpp"
#include "app/log.hpp"
#include "cli/fleet_text.hpp"
#include "cli/print.hpp"
#include "cli/printable.hpp"
#include "engine/engine.hpp"
#include "fleet/store_location.hpp"
#include "os/blocking_run.hpp"
#include "os/owner.hpp"
#include "os/process.hpp"
#include "os/resources.hpp"

#include <fmt/format.h>

#include <csignal>

namespace stint::app {
namespace {

domain::LogLevel level_of(const std::string& name) {
  for (const auto level : {domain::LogLevel::debug, domain::LogLevel::warning, domain::LogLevel::error}) {
    if (to_string(level) == name) return level;
  }
  return domain::LogLevel::info;
}

constexpr const char* kListen = "127.0.0.1:7717";

/// Picks another port only if none was requested: commands find the daemon of a second project by its file, not by its
/// port.
Result<> blocking_listen(Daemon& daemon, const Listen& wanted, bool asked, const std::vector<std::string>& hosts) {
  const Result<> listening = daemon.listen(wanted, hosts);
  if (listening || listening.error() != Errc::unavailable) return listening;
  const std::string owner = os::port_owner(wanted.port);
  const std::string taken = owner.empty() ? std::string() : fmt::format("port {} is taken by {}", wanted.port, owner);
  if (asked || taken.empty()) {
    return fail(Errc::unavailable, listening.error().describe() + (taken.empty() ? "" : ": " + taken) +
                                       "; --listen 127.0.0.1:0 picks a free port");
  }
  STINT_CHECK(daemon.listen({wanted.address, 0}, hosts));
  cli::print_error("stint: {}; using a free port\n", cli::printable(taken));
  return {};
}

/// After the drain: logs how it went. Fails if ends of runs could not be stored.
int conclude(Daemon& daemon, StderrLog& log) {
  const engine::DrainReport& report = daemon.engine().drained();
  log.write(
      domain::LogLevel::info, "drained",
      {domain::LogField::number("seconds", fmt::format("{:.1f}", std::chrono::duration<double>(report.time).count())),
       domain::LogField::number("ended", std::to_string(report.finished - report.handed_back - report.in_doubt)),
       domain::LogField::number("handed_back", std::to_string(report.handed_back)),
       domain::LogField::number("in_doubt", std::to_string(report.in_doubt)),
       domain::LogField::number("not_recorded", std::to_string(report.unrecorded))});
  if (report.unrecorded == 0) return cli::kExitDone;
  return cli::complain(
      Error(Errc::unavailable,
            fmt::format("the outcome of {} could not be stored: {}. The next `stint serve` rescues them by their "
                        "`on_crash`",
                        cli::some(report.unrecorded, "run"), daemon.engine().store_health().why_unusable())));
}

}  // namespace

ServeCommand::ServeCommand(CLI::App& app) : command_(app, "serve", "Run the fleet: workers, queue, HTTP API, metrics") {
  command_.footer(
      "Takes runs from the store and carries them, as many at once as [pool] in stint.toml and the agents' limits "
      "allow.\n"
      "SIGTERM or Ctrl-C drains: no new run begins, runs under way may finish (pool.drain), the rest is handed back.\n"
      "A second signal stops waiting for them, a third exits at once. SIGHUP reloads agents and settings.\n"
      "Every request needs the token that is printed, and kept in a file that only you can read.");
  command_
      .option("--listen", listen_,
              "Listen here; port 0 picks a free one. Default: 127.0.0.1:7717, or a free port if that is taken")
      .value("ADDRESS:PORT");
  command_.option("--allow-host", hosts_, "Accept this host name in requests; may be repeated").value("NAME");
  command_.option("--workers", workers_, "Run a pool of this size, without autoscaling").whole(0, 10'000);
  command_.flag("--no-token", no_token_, "Require no token; on loopback only");
  command_.flag("--json", json_, "Print address, token and store as JSON");
  command_.option("--log", log_format_, "Choose the format of the log on stderr")
      .one_of({"text", "json"})
      .shows_default();
  command_.option("--log-level", log_level_, "Log from this level on")
      .one_of({"debug", "info", "warning", "error"})
      .shows_default();
}

int ServeCommand::run(const domain::System& system) {
  const cli::Environment environment = cli::blocking_read_environment();
  const auto listen = parse_listen(listen_.empty() ? kListen : listen_);
  if (!listen) {
    cli::complain(listen.error());
    return cli::kExitUsage;
  }
  ::signal(SIGPIPE, SIG_IGN);  // a closed reader becomes an error of the write
  const auto settings = project::blocking_read_checkout(environment);
  if (!settings) return cli::complain(settings.error());
  const bool memory = settings->settings.store == "memory";
  fleet::StoreLocation place;
  if (!memory) {
    auto found = fleet::blocking_find_store(environment);
    if (!found) return cli::complain(found.error());
    place = std::move(*found);
  }
  const bool cluster = !memory && place.path.empty();
  auto snapshot = fleet::blocking_read_project(environment, cluster);
  if (!snapshot) return cli::complain(snapshot.error());
  if (const auto own = fleet::blocking_check_store_is_own(place, (*snapshot)->trusted); !own)
    return cli::complain(own.error());
  const auto files = blocking_daemon_files(environment, settings->project);
  if (!files) return cli::complain(files.error());
  std::string token;
  if (!no_token_) {
    auto made = blocking_token(files->token, system, settings->project.is_repository() ? snapshot->get() : nullptr);
    if (!made) return cli::complain(made.error());
    token = std::move(*made);
  }
  os::become_subreaper();
  os::raise_descriptor_limit();
  Reactor reactor;
  auto store =
      os::blocking_run(reactor, fleet::open_store(reactor, memory ? std::nullopt : std::optional(place), system));
  if (!store) return cli::complain(store.error());
  engine::EngineOptions options = engine_options(settings->settings, workers_);
  if (!memory && !cluster) options.lease = Duration::max();  // as long as the process holds its lock file
  StderrLog log(system, {.format = log_format_ == "json" ? StderrLog::Format::json : StderrLog::Format::text,
                         .least = level_of(log_level_)});
  Daemon daemon(reactor, system, environment, *snapshot, cluster, log);
  daemon.open(std::move(*store), std::move(options), memory ? "memory" : place.shown, token);
  if (const auto listening = blocking_listen(daemon, *listen, !listen_.empty(), hosts_); !listening) {
    return cli::complain(listening.error());
  }
  const auto location = blocking_write_location(*files, daemon.url());
  if (!location) return cli::complain(location.error());
  announce(daemon.url(), token, **snapshot, memory ? "memory" : place.shown, json_);
  if (const Result<> ended = reactor.run(daemon.serve()); !ended) return cli::complain(ended.error());
  return conclude(daemon, log);
}

}  // namespace stint::app
