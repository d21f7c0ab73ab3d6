#include "fleet/connection.hpp"

#include "engine/rescue.hpp"
#include "fleet/host_views.hpp"
#include "fleet/local_fleet.hpp"
#include "fleet/read_project.hpp"
#include "fleet/remote_fleet.hpp"
#include "net/http_text.hpp"
#include "stint/asio.hpp"

#include <algorithm>
#include <utility>

namespace stint::fleet {
namespace {

constexpr Duration kCommandPrunesEvery = std::chrono::hours(1);
constexpr std::uint32_t kPrunedMax = 500;  // by one command

}  // namespace

Connection::Connection(Reactor& reactor, const domain::System& system, project::Location location,
                       std::function<void(const std::string&)> on_outage)
    : reactor_(reactor),
      system_(system),
      location_(std::move(location)),
      on_outage_(std::move(on_outage)),
      survivors_(reactor) {}

Result<> Connection::blocking_prepare(const ConnectionNeeds& needs) {
  STINT_TRY(daemon_, blocking_find_daemon(location_));
  if (daemon_) return {};
  STINT_TRY(place_, blocking_find_store(location_));
  missing_ = !place_.exists() && !needs.makes_store;
  writes_ = needs.makes_store;
  STINT_TRY(host_, limit::blocking_find_host_place(location_));
  if (needs.agents) {
    STINT_TRY(snapshot_, blocking_read_project(location_, place_.path.empty()));
  }
  return {};
}

Task<Result<>> Connection::open() {
  if (daemon_) {
    fleet_ = std::make_unique<RemoteFleet>(reactor_, *daemon_, system_, location_, on_outage_);
    co_return Result<>();
  }
  if (missing_) {
    STINT_CO_TRY(store_, co_await open_store(reactor_, std::nullopt, system_));
  } else {
    STINT_CO_TRY(store_, co_await open_store(reactor_, place_, system_));
    // So that no run is shown as running whose node is gone.
    STINT_CO_TRY(const store::Ticked ticked, co_await store_->tick());
    if (ticked.lost > 0) co_await engine::kill_survivors(*store_, survivors_);
  }
  LocalFleet::Options options;
  options.store = place_.shown;
  options.cluster = place_.path.empty();
  options.queue_max = host_.settings.pool.queue;
  options.cost_micros_per_day = host_.settings.cost_micros_per_day;
  options.host_limits = [this] { return list_host_limits(); };
  LocalFleet::Parts parts{
      .executor = reactor_,
      .store = *store_,
      .run_codec = run_codec_,
      .system = system_,
      .registry = [this]() -> const project::AgentRegistry& { return snapshot_ ? snapshot_->registry : none_; },
      .engine = nullptr,
      .survivors = &survivors_};
  fleet_ = std::make_unique<LocalFleet>(std::move(parts), std::move(options));
  co_return Result<>();
}

std::string Connection::where() const { return daemon_ ? net::shown_url(daemon_->url) : place_.shown; }

Task<Result<bool>> Connection::is_carried() {
  if (daemon_) co_return true;
  STINT_CO_TRY(const std::vector<store::NodeState> nodes, co_await store_->nodes());
  co_return std::ranges::any_of(nodes, store::claims_any);
}

Task<> Connection::prune_if_due() {
  if (daemon_ || missing_ || !writes_) co_return;
  (void)co_await store_->prune_if_due(host_.settings.retention, kCommandPrunesEvery, kPrunedMax);
}

Task<Result<std::vector<LimitView>>> Connection::list_host_limits() {
  co_return co_await offload(files_, [this] { return blocking_host_limits(host_.homes, host_.settings); });
}

}  // namespace stint::fleet
