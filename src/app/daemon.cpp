#include "app/daemon.hpp"

#include "agent/quantity.hpp"
#include "cli/host_views.hpp"
#include "os/cgroup.hpp"
#include "os/probe.hpp"
#include "os/resources.hpp"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <filesystem>
#include <unistd.h>

namespace stint::app {
namespace {

using namespace std::chrono_literals;
using domain::LogLevel;

constexpr std::uint64_t kMemoryLeast = 256ULL << 20;  // below it no new run is begun
constexpr std::size_t kDescriptorsPerRun = 16;        // pipes, slots, a control socket
constexpr Duration kLook = 1s;
constexpr Duration kPruneEvery = 10min;  // an idle store is written to so often
constexpr Duration kLastWordsMax = 1s, kLastWordsLook = 5ms;

/// What is wrong with what was read, and what it asks for that this host can't give.
void blocking_log_problems(const cli::Reading& reading, domain::Log& log) {
  for (const agent::Problem& problem : reading.place.warnings) {
    log.say(LogLevel::warning, "settings", {{"problem", describe(problem)}});
  }
  for (const agent::Problem& problem : reading.catalogue.problems) {
    const bool error = problem.severity == agent::Severity::error;
    log.say(error ? LogLevel::error : LogLevel::warning, "agent file", {{"problem", describe(problem)}});
  }
  for (const domain::Agent& agent : reading.catalogue.agents) {
    const auto& refused = reading.book.at(agent.name).refused;
    if (refused)
      log.say(LogLevel::warning, "its runs can't begin", {{"agent", agent.name}, {"why", refused->describe()}});
  }
  std::string unbounded;
  for (const domain::Agent& agent : reading.catalogue.agents) {
    if (agent.memory_bytes_max) unbounded += (unbounded.empty() ? "" : ", ") + agent.name;
  }
  if (unbounded.empty() || os::blocking_probe_cgroup(os::delegated_cgroup()).memory) return;
  log.say(LogLevel::warning, "memory is not bounded here: `stint doctor` says why", {{"agents", unbounded}});
}

}  // namespace

Result<Listen> parse_listen(const std::string& text) {
  const auto colon = text.rfind(':');
  Listen listen;
  listen.address = text.substr(0, colon);
  if (listen.address.starts_with('[') && listen.address.ends_with(']')) {
    listen.address = listen.address.substr(1, listen.address.size() - 2);
  }
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), listen.port);
  if (listen.address.empty() || port.empty() || error != std::errc() || end != port.data() + port.size()) {
    return fail(Errc::invalid, "--listen " + text + ": write it as 127.0.0.1:7717; port 0 picks a free one");
  }
  return listen;
}

engine::EngineOptions engine_options(const agent::Settings& settings, std::optional<std::int64_t> workers) {
  const agent::PoolSettings& pool = settings.pool;
  engine::EngineOptions options;
  options.label = fmt::format("{}:{}", os::host_name(), ::getpid());
  options.pool.name = "pool";
  options.pool.workers = workers ? static_cast<std::size_t>(*workers) : pool.workers;
  options.pool.queue_capacity = pool.queue;
  options.pool.stale_after = pool.stale_after;
  options.pool.idle_beat = pool.idle_beat;
  if (pool.autoscale && !workers) {
    AutoscaleOptions autoscale;
    autoscale.min = pool.min;
    autoscale.max = pool.max;
    autoscale.check_every = pool.check;
    autoscale.up_utilization = pool.up;
    autoscale.up_queue = pool.up_queue;
    autoscale.down_utilization = pool.down;
    options.pool.autoscale = autoscale;
  }
  options.drain_timeout = pool.drain;
  options.retention = settings.retention;
  options.prune_every = kPruneEvery;
  return options;
}

Daemon::Daemon(Reactor& reactor, const domain::Ambient& ambient, cli::Surroundings around,
               std::shared_ptr<const cli::Reading> reading, bool cluster, domain::Log& log)
    : reactor_(reactor),
      ambient_(ambient),
      around_(std::move(around)),
      cluster_(cluster),
      log_(log),
      reading_(std::move(reading)),
      signals_(reactor_.io(), SIGINT, SIGTERM, SIGHUP),
      run_tokens_(ambient, [this](std::string_view run) { return engine_->worker().find(run) != nullptr; }) {}

Daemon::~Daemon() = default;

void Daemon::open(std::unique_ptr<store::Store> store, engine::EngineOptions options, std::string shown,
                  std::string token) {
  store_ = std::move(store);
  token_ = std::move(token);
  const auto current = [this] { return reading_; };
  permits_ = std::make_unique<cli::HostPermits>(reactor_, ambient_, current);
  cli::ProcessDriver::Options driver;
  driver.mask = driver::SecretMask::of_environment(around_.environment);
  driver.mask.add(token_);
  driver.mask.add_password_of(reading_->place.settings.store);
  driver.environment = [this](const domain::WorkOrder& order) { return environment_of(order); };
  driver_ = std::make_unique<cli::ProcessDriver>(reactor_, current, std::move(driver));
  const std::uint64_t queue = options.pool.queue_capacity;
  engine_ = std::make_unique<engine::Engine>(
      engine::Engine::Parts{reactor_, *store_, *driver_, *permits_, scribe_, ambient_, &log_, &driver_->survivors()},
      std::move(options), reading_->book);
  engine::LocalFleet::Options fleet;
  fleet.version = STINT_VERSION;
  fleet.store = std::move(shown);
  fleet.cluster = cluster_;
  fleet.queue_max = queue * std::max<std::uint64_t>(1, reading_->catalogue.agents.size());
  fleet.money_micros_per_day = reading_->place.settings.money_micros_per_day;
  fleet.host_limits = [this] {
    return cli::blocking_host_limits(reading_->place, ambient_.wall_now(), &reading_->permits);
  };
  fleet.resize_host_limit = [this](const std::string& name, std::uint32_t capacity) {
    return resize_limit(name, capacity);
  };
  fleet_ = std::make_unique<engine::LocalFleet>(
      engine::LocalFleet::Parts{reactor_, *store_, scribe_, ambient_,
                                [this]() -> const engine::Book& { return engine_->book(); }, engine_.get(),
                                &driver_->survivors()},
      std::move(fleet));
}

Result<> Daemon::listen(const Listen& where, std::vector<std::string> hosts) {
  server_.reset();  // of an address that could not be had
  http::ApiOptions api;
  api.default_agent = [this] { return reading_->place.settings.default_agent; };
  api.run_of_token = [this](std::string_view given) { return run_tokens_.run_of(given); };
  api.server = [this] { return server_ ? &server_->stats() : nullptr; };
  api_ = std::make_unique<http::Api>(*fleet_, std::move(api));
  http::ServerOptions options;
  options.address = where.address;
  options.port = where.port;
  options.token = token_;
  options.allowed_hosts = std::move(hosts);
  options.other_token = [this](std::string_view given) { return !run_tokens_.run_of(given).empty(); };
  options.is_open = [](const http::Request& request) { return http::Api::is_open(request); };
  options.wall_clock = [this] { return std::chrono::system_clock::time_point(ambient_.wall_now()); };
  server_ = std::make_unique<http::Server>(reactor_, *api_, std::move(options));
  STINT_TRY(const std::uint16_t port, server_->listen());
  (void)port;
  url_ = "http://" + server_->address();
  return {};
}

Task<Result<>> Daemon::serve() {
  blocking_log_problems(*reading_, log_);
  auto body = [this](Scope& scope) -> Task<Result<>> {
    scope.spawn(hear_signals());
    scope.spawn(watch_surroundings());
    // Who is answered may ask for whatever there is: the store has heard of agents and limits by then.
    STINT_CO_CHECK(co_await engine_->enlist());
    STINT_CO_CHECK(co_await store_->configure(reading_->cluster_limits, cli::agent_names(*reading_)));
    scope.spawn(server_->serve());
    Result<> ended = co_await engine_->run();
    co_await hear_out_followers();
    scope.cancel();
    co_return ended;
  };
  co_return co_await with_scope(std::ref(body));
}

/// Who follows has something to read yet: how the last runs ended, or that they were handed back.
Task<> Daemon::hear_out_followers() {
  const TimePoint until = reactor_.now() + kLastWordsMax;
  while (server_->stats().streams > 0 && reactor_.now() < until) co_await sleep_for(kLastWordsLook);
}

Task<> Daemon::hear_signals() {
  int asked = 0;
  while (true) {
    const auto [error, signal] = co_await signals_.async_wait(use_task);
    if (error) co_return;
    if (signal == SIGHUP) {
      co_await reload();
      continue;
    }
    if (++asked >= 3) ::_exit(128 + signal);  // wardens end what is left
    log_.say(LogLevel::info,
             asked == 1 ? "draining: nothing new is begun; once more to hurry" : "hurrying; once more to leave at once",
             {});
    if (asked == 1) {
      engine_->drain();
    } else {
      engine_->hurry();
    }
  }
}

Task<> Daemon::reload() {
  auto fresh = cli::blocking_read_project(around_, cluster_, reading_.get());
  if (!fresh) {
    log_.say(LogLevel::error, "not reloaded", {{"why", fresh.error().describe()}});
    co_return;
  }
  blocking_log_problems(**fresh, log_);
  const auto done = co_await engine_->reload((*fresh)->book, (*fresh)->cluster_limits);
  if (!done) {
    log_.say(LogLevel::error, "not reloaded", {{"why", done.error().describe()}});
    co_return;
  }
  const auto before = std::exchange(reading_, *fresh);
  for (const std::string& name : reading_->catalogue.broken) {
    if (reading_->book.contains(name))
      log_.say(LogLevel::warning, "its file is broken: kept as it was", {{"agent", name}});
  }
  for (const auto& [name, spec] : reading_->book) {
    const auto known = before->book.find(name);
    if (spec.gone && !known->second.gone) {
      log_.say(LogLevel::info, "its file is gone: no new runs, but those that were accepted", {{"agent", name}});
    }
  }
  log_.say(LogLevel::info, "reloaded",
           {domain::LogField::number("agents", std::to_string(reading_->catalogue.agents.size()))});
}

/// A run that can't be given a pipe, or pushes the host into swapping, or costs more than a day may, is better begun
/// later.
Task<std::string> Daemon::why_held_up() {
  const agent::Project& project = reading_->place.project;
  std::error_code error;
  if (!std::filesystem::is_directory(project.root, error) ||
      (project.is_repository() && !std::filesystem::is_directory(*project.common_dir, error))) {
    co_return fmt::format("the checkout {} does not exist any more: it was deleted or moved", project.root.string());
  }
  const std::uint64_t memory = os::memory_available();
  if (memory != 0 && memory < kMemoryLeast) co_return fmt::format("only {} MiB of memory are free", memory >> 20);
  const auto [used, most] = os::descriptors();
  if (used + kDescriptorsPerRun > most) co_return fmt::format("{} of {} file descriptors are in use", used, most);
  const auto per_day = reading_->place.settings.money_micros_per_day;
  if (!per_day) co_return {};
  const auto today = co_await fleet_->spent_today();
  if (!today || today->money_micros < *per_day) co_return {};
  co_return fmt::format("the fleet has spent {} of {} today (budget.cost_per_day)",
                        agent::format_money(today->money_micros), agent::format_money(*per_day));
}

Task<> Daemon::watch_surroundings() {
  std::string before;
  while (true) {
    const std::string why = co_await why_held_up();
    if (why != before) {
      log_.say(why.empty() ? LogLevel::info : LogLevel::warning,
               why.empty() ? "runs are begun again" : "no run is begun", {{"why", why}});
      engine_->hold_up(why);
      before = why;
    }
    // Who has just been told to say `stint trust` expects no more to be needed.
    if (cli::blocking_trust_changed(around_, *reading_) || cli::blocking_limits_mended(*reading_)) co_await reload();
    const auto since = reactor_.now().time_since_epoch();
    co_await sleep_until(TimePoint(since - since % kLook + kLook));
  }
}

std::vector<std::string> Daemon::environment_of(const domain::WorkOrder& order) {
  return {"STINT_URL=" + url_, "STINT_TOKEN=" + run_tokens_.token_of(order.run)};
}

Result<bool> Daemon::resize_limit(const std::string& name, std::uint32_t capacity) const {
  for (const auto& [agent, requests] : reading_->permits) {
    for (const limit::HostRequest& request : requests) {
      if (request.limit.name != name) continue;
      STINT_CHECK(limit::check_capacity(name, capacity));
      STINT_CHECK(limit::resize(request.limit, capacity));
      return true;
    }
  }
  // One of [limits] that no agent takes: other programs of the host may, by `stint with`.
  if (!cli::configured_capacity(reading_->place.settings, name) || reading_->cluster_limits.contains(name))
    return false;
  STINT_TRY(const limit::HostLimit limit, reading_->place.homes.find(name, capacity));
  STINT_CHECK(limit::check_capacity(name, capacity));
  STINT_CHECK(limit::resize(limit, capacity));
  return true;
}

}  // namespace stint::app
