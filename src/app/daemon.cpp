#include "app/daemon.hpp"

#include "app/daemon_files.hpp"
#include "cli/book.hpp"
#include "cli/host_parts.hpp"
#include "cli/store_place.hpp"
#include "cli/surroundings.hpp"
#include "engine/local_fleet.hpp"
#include "http/api.hpp"
#include "http/server.hpp"
#include "limit/listing.hpp"
#include "os/process.hpp"
#include "os/resources.hpp"
#include "stint/asio.hpp"
#include "store/memory_store.hpp"
#include "wire/scribe.hpp"

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace stint::app {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMemoryLeast = 256ULL << 20;  // below it no new run is begun
constexpr std::size_t kDescriptorsPerRun = 16;        // pipes, slots, a control socket
constexpr Duration kLook = 1s;

struct Listen {
  std::string address;
  std::uint16_t port = 0;
};

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
  return options;
}

engine::LimitView limit_view(const limit::Listing& listing) {
  engine::LimitView view;
  view.name = listing.name;
  view.home = "host";
  view.capacity = listing.capacity;
  view.held = static_cast<std::int64_t>(listing.holders.size());
  const auto named = [](const os::SlotRecord& record) {
    return fmt::format("{} (pid {})", record.label.empty() ? "-" : record.label, record.pid);
  };
  for (const auto& holder : listing.holders) {
    view.holders.push_back(holder.record ? named(*holder.record) : "another tool");
  }
  for (const os::SlotRecord& waiter : listing.waiters) view.waiters.push_back(named(waiter));
  return view;
}

/// Everything a daemon is made of, in the order in which it is made.
class Daemon {
 public:
  Daemon(const domain::Ambient& ambient, cli::Surroundings around, std::shared_ptr<const cli::Reading> reading,
         bool cluster)
      : ambient_(ambient),
        around_(std::move(around)),
        cluster_(cluster),
        reading_(std::move(reading)),
        signals_(reactor_.io(), SIGINT, SIGTERM, SIGHUP) {}

  Result<> open(std::unique_ptr<store::Store> store, engine::EngineOptions options, std::string shown) {
    store_ = std::move(store);
    const auto current = [this] { return reading_; };
    permits_ = std::make_unique<cli::HostPermits>(reactor_, ambient_, current);
    cli::ProcessDriver::Options driver;
    driver.environment = [this](const domain::WorkOrder& order) { return environment_of(order); };
    driver_ = std::make_unique<cli::ProcessDriver>(reactor_, current, std::move(driver));
    const std::uint64_t queue = options.pool.queue_capacity;
    engine_ = std::make_unique<engine::Engine>(
        engine::Engine::Parts{reactor_, *store_, *driver_, *permits_, scribe_, ambient_}, std::move(options),
        reading_->book);
    engine::LocalFleet::Options fleet;
    fleet.version = STINT_VERSION;
    fleet.store = std::move(shown);
    fleet.queue_max = queue * std::max<std::uint64_t>(1, reading_->catalogue.agents.size());
    fleet.money_micros_per_day = reading_->place.settings.money_micros_per_day;
    fleet.host_limits = [this] { return look_at_limits(); };
    fleet.resize_host_limit = [this](const std::string& name, std::uint32_t capacity) {
      return resize_limit(name, capacity);
    };
    fleet_ = std::make_unique<engine::LocalFleet>(
        engine::LocalFleet::Parts{reactor_, *store_, scribe_, ambient_,
                                  [this]() -> const engine::Book& { return engine_->book(); }, engine_.get()},
        std::move(fleet));
    return {};
  }

  Result<> listen(const Listen& where, const std::string& token, std::vector<std::string> hosts) {
    http::ApiOptions api;
    api.default_agent = reading_->place.settings.default_agent;
    api.run_of_token = [this](std::string_view given) { return run_tokens_.run_of(given); };
    api.server = [this] { return server_ ? &server_->stats() : nullptr; };
    api_ = std::make_unique<http::Api>(*fleet_, std::move(api));
    http::ServerOptions options;
    options.address = where.address;
    options.port = where.port;
    options.token = token;
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
  [[nodiscard]] const std::string& url() const { return url_; }
  Reactor& reactor() { return reactor_; }

  /// Until it has drained.
  Task<Result<>> serve() {
    auto body = [this](Scope& scope) -> Task<Result<>> {
      scope.spawn(hear_signals());
      scope.spawn(watch_resources());
      scope.spawn(server_->serve());
      STINT_CO_CHECK(co_await size_limits());
      Result<> ended = co_await engine_->run();
      scope.cancel();
      co_return ended;
    };
    co_return co_await with_scope(std::ref(body));
  }
  [[nodiscard]] const engine::DrainReport& drained() const { return engine_->drained(); }

 private:
  /// The configuration decides at the start, and after a reload; between, whoever resizes.
  Task<Result<>> size_limits() {
    for (const auto& [name, capacity] : reading_->cluster_limits) {
      STINT_CO_CHECK(co_await store_->resize(name, capacity));
    }
    co_return Result<>();
  }

  Task<> hear_signals() {
    int asked = 0;
    while (true) {
      const auto [error, signal] = co_await signals_.async_wait(use_task);
      if (error) co_return;
      if (signal == SIGHUP) {
        co_await reload();
        continue;
      }
      if (++asked >= 3) ::_exit(128 + signal);  // wardens end what is left
      log(asked == 1 ? "draining: nothing new is begun; once more to hurry" : "hurrying; once more to leave at once");
      engine_->drain();
    }
  }

  Task<> reload() {
    auto fresh = cli::blocking_read_project(around_, cluster_);
    if (!fresh) {
      log("not reloaded: " + fresh.error().describe());
      co_return;
    }
    cli::print_problems((*fresh)->catalogue.problems, around_);
    const auto before = std::exchange(reading_, *fresh);
    auto done = co_await engine_->reload(reading_->book);
    if (done) done = co_await size_limits();
    if (!done) {
      reading_ = before;
      log("not reloaded: " + done.error().describe());
      co_return;
    }
    log(fmt::format("reloaded: {} agents", reading_->catalogue.agents.size()));
  }

  /// A run that can't be given a pipe, or pushes the host into swapping, is better begun later.
  Task<> watch_resources() {
    std::string before;
    while (true) {
      std::string why;
      const std::uint64_t memory = os::memory_available();
      const auto [used, most] = os::descriptors();
      if (memory != 0 && memory < kMemoryLeast) {
        why = fmt::format("only {} MiB of memory are free", memory >> 20);
      } else if (used + kDescriptorsPerRun > most) {
        why = fmt::format("{} of {} file descriptors are in use", used, most);
      }
      if (why != before) {
        if (!why.empty()) log("no run is begun: " + why);
        engine_->hold_up(why);
        before = why;
      }
      const auto since = reactor_.now().time_since_epoch();
      co_await sleep_until(TimePoint(since - since % kLook + kLook));
    }
  }

  std::vector<std::string> environment_of(const domain::WorkOrder& order) {
    return {"STINT_URL=" + url_, "STINT_TOKEN=" + run_tokens_.token_of(order.run)};
  }

  std::vector<engine::LimitView> look_at_limits() const {
    std::vector<engine::LimitView> views;
    for (const limit::HostLimit& limit : cli::blocking_all_limits(reading_->place.homes, reading_->place.settings)) {
      views.push_back(limit_view(limit::list(limit)));
    }
    for (const auto& [agent, requests] : reading_->permits) {
      for (const limit::HostRequest& request : requests) {
        const auto same = [&](const engine::LimitView& view) {
          return view.name == request.limit.name || view.name == request.limit.stem();
        };
        std::erase_if(views, same);
        views.push_back(limit_view(limit::list(request.limit)));
      }
    }
    return views;
  }

  Result<bool> resize_limit(const std::string& name, std::uint32_t capacity) const {
    for (const auto& [agent, requests] : reading_->permits) {
      for (const limit::HostRequest& request : requests) {
        if (request.limit.name != name) continue;
        STINT_CHECK(limit::check_capacity(name, capacity));
        STINT_CHECK(limit::resize(request.limit, capacity));
        return true;
      }
    }
    return false;
  }

  static void log(const std::string& text) {
    fmt::print(stderr, "stint: {}\n", text);
    std::fflush(stderr);
  }

  const domain::Ambient& ambient_;
  const cli::Surroundings around_;
  const bool cluster_;
  std::shared_ptr<const cli::Reading> reading_;  // shared with runs that were begun under it
  Reactor reactor_;
  asio::signal_set signals_;
  wire::Scribe scribe_;
  RunTokens run_tokens_{ambient_};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<cli::HostPermits> permits_;
  std::unique_ptr<cli::ProcessDriver> driver_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::LocalFleet> fleet_;
  std::unique_ptr<http::Api> api_;
  std::unique_ptr<http::Server> server_;
  std::string url_;
};

/// Runs a task to its end before there is anything else to do.
template <class T>
Result<T> run_first(Reactor& reactor, Task<Result<T>> task) {
  std::optional<Result<T>> result;
  auto body = [&]() -> Task<> { result.emplace(co_await std::move(task)); };
  RootScope scope(reactor);
  scope.spawn(body());
  reactor.run(scope);
  return std::move(*result);
}

}  // namespace

ServeCommand::ServeCommand(CLI::App& app) : command_(app, "serve", "Run the fleet: workers, queue, HTTP API, metrics") {
  command_.footer(
      "Takes runs from the store and carries them, as many at once as [pool] of stint.toml and the agents' limits "
      "allow.\n"
      "SIGTERM or Ctrl-C drains: nothing new is begun, what runs may finish (pool.drain), the rest is handed back. A\n"
      "second one hurries, a third leaves at once. SIGHUP reads agents and settings again.\n"
      "Every request needs the token that is printed, and kept in a file that only you can read.");
  command_.option("--listen", listen_, "Address and port; port 0 picks a free one")
      .value("ADDRESS:PORT")
      .shows_default();
  command_.option("--allow-host", hosts_, "A name under which clients may reach it").value("NAME");
  command_.option("--workers", workers_, "A pool of this size, without autoscaling").whole(0, 10'000);
  command_.flag("--no-token", no_token_, "Ask for no token; on loopback only");
  command_.flag("--json", json_, "Say where it listens as JSON");
}

int ServeCommand::run(const domain::Ambient& ambient) {
  const cli::Surroundings around = cli::blocking_look_around();
  const auto listen = parse_listen(listen_);
  if (!listen) {
    cli::complain(listen.error());
    return cli::kExitUsage;
  }
  ::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of the write
  const auto settings = cli::blocking_find_settings(around);
  if (!settings) return cli::complain(settings.error());
  const bool memory = settings->settings.store == "memory";
  cli::StorePlace place;
  if (!memory) {
    auto found = cli::blocking_find_store(around);
    if (!found) return cli::complain(found.error());
    place = std::move(*found);
  }
  const bool cluster = !memory && place.path.empty();
  auto reading = cli::blocking_read_project(around, cluster);
  if (!reading) return cli::complain(reading.error());
  cli::print_problems((*reading)->catalogue.problems, around);
  const auto files = blocking_daemon_files(around, settings->project);
  if (!files) return cli::complain(files.error());
  std::string token;
  if (!no_token_) {
    auto made = blocking_token(files->token, ambient);
    if (!made) return cli::complain(made.error());
    token = std::move(*made);
  }
  os::become_subreaper();
  os::raise_descriptor_limit();
  Daemon daemon(ambient, around, *reading, cluster);
  std::unique_ptr<store::Store> store;
  if (memory) {
    store = std::make_unique<store::MemoryStore>(ambient);
  } else {
    auto opened = run_first(daemon.reactor(), cli::open_store(daemon.reactor(), place, ambient));
    if (!opened) return cli::complain(opened.error());
    store = std::move(*opened);
  }
  engine::EngineOptions options = engine_options(settings->settings, workers_);
  if (!memory && !cluster) options.lease = Duration::max();  // as long as the process holds its lock file
  if (auto opened = daemon.open(std::move(store), std::move(options), memory ? "memory" : place.shown); !opened) {
    return cli::complain(opened.error());
  }
  if (auto listening = daemon.listen(*listen, token, hosts_); !listening) {
    Error error = listening.error();
    if (error == Errc::unavailable) {
      return cli::complain(Error(error.code(), error.describe() + "; --listen 127.0.0.1:0 picks a free port"));
    }
    return cli::complain(error);
  }
  const auto announced = DaemonFile::blocking_write(*files, daemon.url());
  if (!announced) return cli::complain(announced.error());
  announce(daemon.url(), token, **reading, memory ? "memory" : place.shown, json_);
  std::optional<Result<>> ended;
  auto body = [&]() -> Task<> { ended.emplace(co_await daemon.serve()); };
  RootScope scope(daemon.reactor());
  scope.spawn(body());
  daemon.reactor().run(scope);
  if (!*ended) return cli::complain(ended->error());
  const engine::DrainReport& report = daemon.drained();
  fmt::print(stderr, "stint: drained in {:.1f} s: {} runs ended, {} handed back, {} in doubt\n",
             std::chrono::duration<double>(report.time).count(), report.finished - report.handed_back - report.in_doubt,
             report.handed_back, report.in_doubt);
  return cli::kExitDone;
}

}  // namespace stint::app
