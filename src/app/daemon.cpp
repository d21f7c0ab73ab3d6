#include "app/daemon.hpp"

#include "cli/reason_text.hpp"
#include "fleet/host_views.hpp"
#include "os/cgroup.hpp"
#include "os/probe.hpp"
#include "os/resources.hpp"
#include "store/series.hpp"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <unistd.h>

namespace stint::app {
namespace {

using namespace std::chrono_literals;
using domain::LogLevel;

constexpr std::uint64_t kMemoryLeast = 256ULL << 20;  // with less free, no new run begins
constexpr std::size_t kDescriptorsPerRun = 16;        // pipes, slots, a control socket
constexpr Duration kLook = 1s;
constexpr Duration kFilesLook = 3s;      // each look wakes a thread of the pool and the reactor
constexpr Duration kPruneEvery = 10min;  // an idle store is written to this often
constexpr Duration kLastWordsMax = 1s, kLastWordsLook = 5ms;

Duration thread_processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Agents whose file sets a memory limit that this host can't enforce.
std::string blocking_find_unbounded(const project::Snapshot& snapshot) {
  std::string unbounded;
  for (const domain::Agent& agent : snapshot.catalogue.agents) {
    if (agent.memory_bytes_max) unbounded += (unbounded.empty() ? "" : ", ") + agent.name;
  }
  if (unbounded.empty() || os::blocking_probe_cgroup(os::delegated_cgroup()).memory) return {};
  return unbounded;
}

std::optional<domain::Shortage> find_memory_shortage() {
  const std::uint64_t memory = os::memory_available();
  if (memory == 0 || memory >= kMemoryLeast) return std::nullopt;
  return domain::Shortage{.kind = domain::Shortage::Kind::memory,
                          .amount = static_cast<std::int64_t>(memory),
                          .bound = static_cast<std::int64_t>(kMemoryLeast)};
}

/// Of descriptors for the pipes of another run. With 10,000 open descriptors it takes 8 ms.
std::optional<domain::Shortage> blocking_find_descriptor_shortage() {
  const auto [used, most] = os::blocking_descriptors();
  if (used + kDescriptorsPerRun <= most) return std::nullopt;
  return domain::Shortage{.kind = domain::Shortage::Kind::descriptors,
                          .amount = static_cast<std::int64_t>(used),
                          .bound = static_cast<std::int64_t>(most)};
}

/// Logs problems of agent files and settings, and requirements that this host can't meet.
void log_problems(const project::Snapshot& snapshot, const std::string& unbounded, domain::Log& log) {
  for (const agent::Problem& problem : snapshot.checkout.warnings) {
    log.write(LogLevel::warning, "settings", {{"problem", describe(problem)}});
  }
  for (const agent::Problem& problem : snapshot.catalogue.problems) {
    const bool error = problem.severity == agent::Severity::error;
    log.write(error ? LogLevel::error : LogLevel::warning, "agent file", {{"problem", describe(problem)}});
  }
  for (const domain::Agent& agent : snapshot.catalogue.agents) {
    const auto& refused = snapshot.registry.at(agent.name).refused;
    if (refused)
      log.write(LogLevel::warning, "runs of this agent can't begin",
                {{"agent", agent.name}, {"why", refused->describe()}});
  }
  if (unbounded.empty()) return;
  log.write(LogLevel::warning, "memory limits are not enforced on this host: `stint doctor` says why",
            {{"agents", unbounded}});
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

Daemon::Daemon(Reactor& reactor, const domain::System& system, cli::Environment environment,
               std::shared_ptr<const project::Snapshot> snapshot, bool cluster, domain::Log& log)
    : reactor_(reactor),
      system_(system),
      environment_(std::move(environment)),
      cluster_(cluster),
      log_(log),
      snapshot_(std::move(snapshot)),
      signals_(reactor_.io(), SIGINT, SIGTERM, SIGHUP),
      run_tokens_(system, [this](std::string_view run) { return engine().worker().find(run) != nullptr; }) {}

Daemon::~Daemon() = default;

void Daemon::open(std::unique_ptr<store::Store> store, engine::EngineOptions options, std::string shown,
                  std::string token) {
  store_ = std::move(store);
  token_ = std::move(token);
  fleet::Node::Options node;
  node.planner.environment = [this](const domain::WorkOrder& order) { return environment_of(order); };
  node.driver.mask = driver::SecretMask::of_environment(environment_.variables);
  node.driver.mask.add(token_);
  node.driver.mask.add_password_of(snapshot_->checkout.settings.store);
  node.fleet.version = STINT_VERSION;
  node.fleet.store = std::move(shown);
  node.fleet.cluster = cluster_;
  node.fleet.queue_max = options.pool.queue_capacity * std::max<std::uint64_t>(1, snapshot_->catalogue.agents.size());
  options.cost_micros_per_day = snapshot_->checkout.settings.cost_micros_per_day;
  node.fleet.snapshot = [this] { return snapshot_; };
  node.fleet.host_limits = [this] { return list_host_limits(); };
  node.fleet.resize_host_limit = [this](std::string name, std::uint32_t capacity) {
    return resize_host_limit(std::move(name), capacity);
  };
  node.engine = std::move(options);
  node_ = std::make_unique<fleet::Node>(fleet::Node::Parts{.reactor = reactor_,
                                                           .system = system_,
                                                           .store = *store_,
                                                           .snapshot = [this] { return snapshot_; },
                                                           .log = &log_},
                                        std::move(node));
}

Result<> Daemon::listen(const Listen& where, std::vector<std::string> hosts) {
  server_.reset();  // left from a failed attempt to listen
  http::ApiOptions api;
  api.default_agent = [this] { return snapshot_->checkout.settings.default_agent; };
  api.run_of_token = [this](std::string_view given) { return run_tokens_.run_of(given); };
  api.server = [this] { return server_ ? &server_->stats() : nullptr; };
  api.playground = {.pool = &playground_,
                    .elapsed = [this] { return system_.elapsed_now(); },
                    .processor_time = thread_processor_time,
                    .random = system_.random};
  api.live = {.look = [this] { return node_->fleet().look(); },
              .elapsed = [this] { return reactor_.now().time_since_epoch(); },
              .wall_now = system_.wall_now};
  api_ = std::make_unique<http::Api>(node_->fleet(), std::move(api));
  http::ServerOptions options;
  options.address = where.address;
  options.port = where.port;
  options.token = token_;
  options.allowed_hosts = std::move(hosts);
  options.other_token = [this](std::string_view given) { return !run_tokens_.run_of(given).empty(); };
  options.is_open = [](const http::Request& request) { return http::Api::is_open(request); };
  options.wall_clock = [this] { return std::chrono::system_clock::time_point(system_.wall_now()); };
  server_ = std::make_unique<http::Server>(reactor_, *api_, std::move(options));
  STINT_TRY(const std::uint16_t port, server_->listen());
  (void)port;
  url_ = "http://" + server_->address();
  return {};
}

Task<Result<>> Daemon::serve() {
  STINT_CO_CHECK(co_await report_problems(snapshot_));
  auto body = [this](Scope& scope) -> Task<Result<>> {
    scope.spawn(handle_signals());
    scope.spawn(watch_project());
    // Accept requests only after the store has the agents and limits: a client may ask for any of them.
    STINT_CO_CHECK(co_await engine().enrol());
    STINT_CO_CHECK(co_await store_->configure(snapshot_->cluster_limits, project::names_in_store(*snapshot_)));
    ready_.notify();
    scope.spawn(sample_series());
    scope.spawn(server_->serve());
    scope.spawn(node_->fleet().carry_batches(log_));
    Result<> ended = co_await engine().run();
    co_await flush_subscribers();
    scope.cancel();
    co_return ended;
  };
  co_return co_await with_scope(std::ref(body));
}

/// Lets subscribers read the last events: how the last runs ended, or that they were handed back.
Task<> Daemon::flush_subscribers() {
  const TimePoint until = reactor_.now() + kLastWordsMax;
  while (server_->stats().streams > 0 && reactor_.now() < until) co_await sleep_for(kLastWordsLook);
}

Task<> Daemon::handle_signals() {
  int asked = 0;
  while (true) {
    const auto [error, signal] = co_await signals_.async_wait(use_task);
    if (error) co_return;
    if (signal == SIGHUP) {
      co_await reload();
      continue;
    }
    if (++asked >= 3) ::_exit(128 + signal);  // wardens end what is left
    log_.write(LogLevel::info,
               asked == 1 ? "draining: no new runs begin; signal again to stop waiting for runs"
                          : "ending all runs; signal again to exit at once",
               {});
    if (asked == 1) {
      engine().drain();
    } else {
      engine().hurry();
    }
  }
}

Task<Result<>> Daemon::report_problems(std::shared_ptr<const project::Snapshot> snapshot) {
  STINT_CO_TRY(const std::string unbounded,
               co_await offload(files_, [&snapshot] { return blocking_find_unbounded(*snapshot); }));
  log_problems(*snapshot, unbounded, log_);
  co_return Result<>();
}

Task<> Daemon::reload() {
  const auto alone = co_await reloading_.lock();
  if (!alone) co_return;
  auto fresh = co_await offload(
      files_, [this, known = snapshot_] { return fleet::blocking_read_project(environment_, cluster_, known.get()); });
  if (!fresh) {
    log_.write(LogLevel::error, "not reloaded", {{"why", fresh.error().describe()}});
    co_return;
  }
  (void)co_await report_problems(*fresh);
  const auto done = co_await engine().reload((*fresh)->registry, {(*fresh)->cluster_limits, (*fresh)->process_limits});
  if (!done) {
    log_.write(LogLevel::error, "not reloaded", {{"why", done.error().describe()}});
    co_return;
  }
  const auto before = std::exchange(snapshot_, *fresh);
  engine().set_cost_per_day(snapshot_->checkout.settings.cost_micros_per_day);
  for (const std::string& name : snapshot_->catalogue.broken) {
    if (snapshot_->registry.contains(name))
      log_.write(LogLevel::warning, "agent file has errors: keeping the agent as it was", {{"agent", name}});
  }
  for (const auto& [name, spec] : snapshot_->registry) {
    const auto known = before->registry.find(name);
    if (spec.gone && !known->second.gone) {
      log_.write(LogLevel::info, "agent file is gone: accepted runs go on, new ones are refused", {{"agent", name}});
    }
  }
  log_.write(LogLevel::info, "reloaded",
             {domain::LogField::number("agents", std::to_string(snapshot_->catalogue.agents.size()))});
}

/// Why no run should begin now: the checkout is gone, or this host lacks something.
Task<std::optional<domain::Shortage>> Daemon::find_shortage() {
  if (checkout_gone_) {
    co_return domain::Shortage{.kind = domain::Shortage::Kind::checkout,
                               .path = snapshot_->checkout.project.root.string()};
  }
  if (const auto memory = find_memory_shortage()) co_return memory;
  // Counting wakes a thread of the pool and the reactor: only where the bound leaves it open.
  if (const std::size_t most = os::descriptors_max();
      most > kDescriptorsPerRun && os::descriptors_bound() <= most - kDescriptorsPerRun) {
    co_return std::nullopt;
  }
  const auto found = co_await offload(files_, blocking_find_descriptor_shortage);
  if (found) co_return *found;
  co_return engine().host_shortage();  // no thread could be started: as it was
}

/// What may have changed on disk: the checkout, its trust, files of limits that could not be used.
struct Daemon::FilesLook {
  bool gone = false, changed = false;
};

Task<> Daemon::look_at_files() {
  const auto look = co_await offload(files_, [this, snapshot = snapshot_]() -> FilesLook {
    const agent::Project& project = snapshot->checkout.project;
    std::error_code error;
    const bool there = std::filesystem::is_directory(project.root, error) &&
                       (!project.is_repository() || std::filesystem::is_directory(*project.common_dir, error));
    // `stint trust` takes effect without a restart or a signal.
    return {.gone = !there,
            .changed = project::blocking_trust_changed(environment_, *snapshot) ||
                       limit::blocking_limits_usable_again(*snapshot)};
  });
  if (!look) co_return;
  checkout_gone_ = look->gone;
  if (look->changed) co_await reload();
}

Task<> Daemon::watch_project() {
  TimePoint files_at = reactor_.now();
  while (true) {
    if (reactor_.now() >= files_at) {
      files_at = reactor_.now() + kFilesLook;
      co_await look_at_files();
    }
    const std::optional<domain::Shortage> shortage = co_await find_shortage();
    const auto& before = engine().host_shortage();
    if (shortage.has_value() != before.has_value() || (shortage && shortage->kind != before->kind)) {
      log_.write(shortage ? LogLevel::warning : LogLevel::info, shortage ? "no new runs begin" : "runs begin again",
                 {{"why", shortage ? cli::shortage_text(*shortage) : std::string()}});
    }
    if (shortage != before) engine().set_shortage(shortage);
    const auto since = reactor_.now().time_since_epoch();
    co_await sleep_until(TimePoint(since - since % kLook + kLook));
  }
}

/// A failure leaves a gap in the series, which says it: the store's own failures are logged by the calls that matter.
Task<> Daemon::sample_series() {
  while (true) {
    Duration next = kLook;
    const auto sample = co_await node_->fleet().observe();
    const auto owner = engine().owner();
    if (sample && owner) next = (co_await store_->sample(*owner, *sample)).value_or(kLook);
    // Together with the other looks, so that an idle daemon wakes no more often.
    const auto then = (reactor_.now() + std::max(next, kLook / 2)).time_since_epoch();
    co_await sleep_until(TimePoint(then - then % kLook + kLook));
  }
}

std::vector<std::string> Daemon::environment_of(const domain::WorkOrder& order) {
  return {"STINT_URL=" + url_, "STINT_TOKEN=" + run_tokens_.token_of(order.run)};
}

Task<Result<std::vector<engine::LimitView>>> Daemon::list_host_limits() {
  co_return co_await offload(files_, [snapshot = snapshot_] {
    return fleet::blocking_host_limits(limit::Homes(snapshot->limit_directories), snapshot->checkout.settings,
                                       snapshot.get());
  });
}

Task<Result<bool>> Daemon::resize_host_limit(std::string name, std::uint32_t capacity) {
  co_return co_await offload(
      files_, [snapshot = snapshot_, &name, capacity] { return limit::blocking_resize(*snapshot, name, capacity); });
}

}  // namespace stint::app
