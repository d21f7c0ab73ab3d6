#include "cli/fleet_place.hpp"

#include "cli/end_signals.hpp"
#include "cli/exit_status.hpp"
#include "cli/host_views.hpp"
#include "cli/printable.hpp"
#include "driver/survivors.hpp"
#include "engine/rescue.hpp"
#include "fleet/daemon_location.hpp"
#include "fleet/local_fleet.hpp"
#include "fleet/read_project.hpp"
#include "fleet/remote_fleet.hpp"
#include "fleet/store_location.hpp"
#include "net/http_text.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "stint/asio.hpp"
#include "stint/offload.hpp"
#include "store/memory_store.hpp"
#include "wire/run_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace stint::cli {
namespace {

constexpr std::uint32_t kNamesMax = 50;  // of runs, for completion
constexpr Duration kNamesTime = std::chrono::seconds(2);

/// Owns what a command needs to reach the fleet. Declared before the scope that uses it, so that it outlives it.
class FleetConnection {
 public:
  FleetConnection(Reactor& reactor, const domain::System& system, Environment environment)
      : reactor_(reactor), system_(system), environment_(std::move(environment)), survivors_(reactor) {}

  /// Call before the reactor runs.
  Result<> blocking_prepare(const FleetNeeds& needs) {
    STINT_TRY(daemon_, fleet::blocking_find_daemon(environment_));
    if (daemon_) return {};
    STINT_TRY(place_, fleet::blocking_find_store(environment_));
    missing_ = !place_.exists() && !needs.makes_store;
    writes_ = needs.makes_store;
    STINT_TRY(host_, limit::blocking_find_host_place(environment_));
    if (needs.agents) {
      STINT_TRY(snapshot_, fleet::blocking_read_project(environment_, place_.path.empty()));
    }
    return {};
  }

  Task<Result<>> open() {
    if (daemon_) {
      fleet_ = std::make_unique<fleet::RemoteFleet>(reactor_, *daemon_, system_, fleet::find_again_in(environment_),
                                                    print_outage);
      co_return Result<>();
    }
    if (missing_) {
      store_ = std::make_unique<store::MemoryStore>(system_);
    } else {
      STINT_CO_TRY(store_, co_await fleet::open_store(reactor_, place_, system_));
      // Settles runs whose process is gone, so that they are not shown as running.
      STINT_CO_TRY(const store::Ticked ticked, co_await store_->tick());
      if (ticked.lost > 0) co_await engine::kill_survivors(*store_, survivors_);
    }
    fleet::LocalFleet::Options options;
    options.store = place_.shown;
    options.cluster = place_.path.empty();
    options.queue_max = host_.settings.pool.queue;
    options.cost_micros_per_day = host_.settings.cost_micros_per_day;
    options.host_limits = [this] { return list_host_limits(); };
    fleet::LocalFleet::Parts parts{
        .executor = reactor_,
        .store = *store_,
        .run_codec = run_codec_,
        .system = system_,
        .registry = [this]() -> const project::AgentRegistry& { return snapshot_ ? snapshot_->registry : none_; },
        .engine = nullptr,
        .survivors = &survivors_};
    fleet_ = std::make_unique<fleet::LocalFleet>(std::move(parts), std::move(options));
    co_return Result<>();
  }

  /// Without a daemon, a command that writes prunes old runs: at most kAtOnce, and at most once per kEvery over all
  /// commands. An error is ignored: the next command tries again.
  Task<> prune_old() {
    constexpr Duration kEvery = std::chrono::hours(1);
    constexpr std::uint32_t kAtOnce = 500;
    if (daemon_ || missing_ || !writes_) co_return;
    (void)co_await store_->prune_if_due(host_.settings.retention, kEvery, kAtOnce);
  }

  [[nodiscard]] FleetAccess access() {
    return {.fleet = *fleet_,
            .reactor = reactor_,
            .clock = reactor_,
            .environment = environment_,
            .system = system_,
            .daemon = daemon_.has_value(),
            .where = daemon_ ? net::shown_url(daemon_->url) : place_.shown,
            .elsewhere = daemon_ ? daemon_->elsewhere : std::string(),
            .store = store_.get()};
  }

 private:
  Task<Result<std::vector<engine::LimitView>>> list_host_limits() {
    co_return co_await offload(files_, [this] { return blocking_host_limits(host_.homes, host_.settings); });
  }

  Reactor& reactor_;
  BlockingPool files_{"files", 1};
  const domain::System& system_;
  const Environment environment_;
  std::optional<fleet::DaemonLocation> daemon_;
  fleet::StoreLocation place_;  // without a daemon
  bool missing_ = false, writes_ = false;
  limit::HostPlace host_;
  std::shared_ptr<const project::Snapshot>
      snapshot_;  // shared by type only: with an engine, runs would be the second owner
  const project::AgentRegistry none_;
  wire::RunCodec run_codec_;
  driver::HostSurvivors survivors_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<fleet::Fleet> fleet_;
};

Task<> handle_signals(EndSignals& signals, int& received, Scope& work) {
  received = co_await signals.next();
  work.cancel(Reason::user, "a signal");
}

}  // namespace

int run_on_fleet(const domain::System& system, const FleetNeeds& needs, const FleetBody& body) {
  Reactor reactor;
  FleetConnection connection(reactor, system, blocking_read_environment());
  if (const auto prepared = connection.blocking_prepare(needs); !prepared) return complain(prepared.error());
  int exit = kExitFailed, signal = 0;
  const auto act = [&]() -> Task<Result<int>> {
    STINT_CO_CHECK(co_await connection.open());
    FleetAccess access = connection.access();
    Result<int> done = co_await body(access);
    co_await connection.prune_old();
    co_return done;
  };
  const auto carry = [&]() -> Task<> {
    const Result<int> done = co_await act();
    if (!done) complain(done.error());
    exit = done ? *done : exit_status(done.error());
  };
  {
    EndSignals signals(reactor);
    RootScope helpers(reactor);
    RootScope work(reactor);
    helpers.spawn(handle_signals(signals, signal, work));
    work.spawn(carry());
    (void)reactor.run(work);  // `exit` and `signal` say how it ended
    helpers.cancel(Reason::shutdown);
    (void)reactor.run(helpers);  // cancelled here
  }
  return signal != 0 ? kExitBySignal + signal : exit;
}

Task<Result<engine::RunView>> find_run(fleet::Fleet& fleet, std::string id) {
  STINT_CO_TRY(std::optional<engine::RunView> found, co_await fleet.find(id));
  if (!found) co_return fail(Errc::invalid, "there is no run '" + id + "'. `stint ls` lists them");
  co_return std::move(*found);
}

Task<Result<bool>> is_carried(const FleetAccess& access) {
  if (access.daemon) co_return true;
  STINT_CO_TRY(const std::vector<store::NodeState> workers, co_await access.store->nodes());
  co_return std::ranges::any_of(workers, store::claims_any);
}

Task<std::string> running_parent(fleet::Fleet& fleet) {
  const std::vector<std::string> parts = os::mark_parts(os::environment(os::kMarkVariable));
  if (parts.empty()) co_return {};
  const std::string id = parts.back().substr(0, parts.back().find(':'));
  const auto found = co_await fleet.find(id);
  const bool runs = found && *found && (*found)->run.id == id && (*found)->run.state == domain::RunState::running;
  co_return runs ? id : std::string();
}

std::vector<Candidate> blocking_run_names(const domain::System& system) {
  std::vector<Candidate> names;
  Reactor reactor;
  FleetConnection connection(reactor, system, blocking_read_environment());
  if (!connection.blocking_prepare({})) return names;
  const auto collect = [&]() -> Task<Result<>> {
    STINT_CO_CHECK(co_await connection.open());
    store::Filter filter;
    filter.most = kNamesMax;
    STINT_CO_TRY(const std::vector<engine::RunView> runs, co_await connection.access().fleet.list(std::move(filter)));
    for (const engine::RunView& view : runs) {
      names.push_back(
          {view.run.id, fmt::format("{} {} {}", view.run.agent, to_string(view.run.state), view.input.title)});
    }
    co_return Result<>();
  };
  ScopeOptions options;
  options.deadline = Deadline::after(reactor.now(), kNamesTime);
  RootScope work(reactor, options);
  work.spawn(collect());
  (void)reactor.run(work);  // offers what was found in time; a completion shows no errors
  return names;
}

}  // namespace stint::cli
