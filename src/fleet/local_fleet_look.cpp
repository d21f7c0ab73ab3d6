// LocalFleet: the fleet at one moment. One snapshot of the store, with what only this process knows: its pool, the
// limits of its host and of its calls, the budget of a day.
#include "fleet/local_fleet.hpp"

#include <algorithm>

namespace stint::fleet {
namespace {

/// Counts runs queued in an agent's variants for the agent.
void join_variants(std::vector<store::QueueState>& queues) {
  std::map<std::string, std::uint64_t> in_variants;
  std::erase_if(queues, [&](const store::QueueState& each) {
    const bool variant = project::agent_of(each.agent) != each.agent;
    if (variant) in_variants[std::string(project::agent_of(each.agent))] += each.queued;
    return variant;
  });
  for (store::QueueState& each : queues) each.queued += in_variants[each.agent];
}

/// A limit of this host is counted by its lock files; the store only knows whether it is paused.
std::vector<store::LimitState> with_host_limits(std::vector<store::LimitState> counted,
                                                const std::vector<LimitView>& views) {
  for (store::LimitState& state : counted) {
    const auto view = std::ranges::find(views, state.name, &LimitView::name);
    if (view == views.end() || view->home != "host") continue;
    state.capacity = view->capacity;
    state.units = view->held;
  }
  return counted;
}

void take_sums(const store::Snapshot& snapshot, engine::FleetView& view) {
  view.as_of = snapshot.as_of;
  view.cursor = snapshot.cursor;
  view.stats.runs = snapshot.counts;
  view.stats.ready = snapshot.claimable();
  view.stats.nodes = snapshot.nodes.size();
  view.stats.bytes = snapshot.bytes;
  view.cost_micros_today = std::max<std::int64_t>(0, snapshot.today.cost_micros);
  view.tokens_today = std::max<std::int64_t>(0, snapshot.today.tokens);
  view.parked = snapshot.parked;
  for (store::WaitGroup& group : view.parked) {  // as in why(): its host lacked something
    if (group.cause == domain::WaitCause::quota && group.limit.empty()) group.cause = domain::WaitCause::shortage;
  }
  view.nodes = snapshot.nodes;
  view.needs_total = snapshot.needs_total();
}

}  // namespace

FleetHealth LocalFleet::health_with(std::vector<store::QueueState> queues) const {
  FleetHealth health;
  static_cast<PoolHealth&>(health) = parts_.engine->health();
  health.queues = std::move(queues);
  join_variants(health.queues);
  std::erase_if(health.queues, [this](const store::QueueState& each) {  // agents that no longer exist
    const auto found = parts_.registry().find(each.agent);
    return each.queued == 0 && (found == parts_.registry().end() || found->second.gone);
  });
  health.queue_size = health.queue_capacity = 0;
  for (const store::QueueState& each : health.queues) {
    health.queue_size += each.queued;
    health.queue_capacity += each.queued_max;
    const auto bound = static_cast<double>(std::max<std::uint64_t>(1, each.queued_max));
    health.queue_fullness = std::max(health.queue_fullness, static_cast<double>(each.queued) / bound);
  }
  health.draining = parts_.engine->is_draining();
  return health;
}

Task<Result<engine::FleetView>> LocalFleet::look(Detail detail) {
  // Also for a summary: how much of a line free units suffice for, its weights say.
  STINT_CO_TRY(store::Snapshot snapshot, co_await parts_.store.snapshot(store::kLimitListMax, kListTextMax));
  engine::FleetView view;
  STINT_CO_TRY(view.limits, co_await list_limits(detail, snapshot.limits));
  take_sums(snapshot, view);
  view.version = options_.version;
  view.store = options_.store;
  view.queue_capacity = options_.queue_max;
  view.cost_micros_per_day = cost_per_day();
  if (parts_.engine != nullptr) {
    view.phase = parts_.engine->phase();
    view.pool = health_with(std::move(snapshot.queues));
    view.queue_capacity = view.pool->queue_capacity;
    view.shortage = parts_.engine->shortage();
    view.notes_left_out = parts_.engine->worker().counts().notes_left_out;
    view.settlements_stale = parts_.engine->worker().counts().stale;
    view.batch_runs = batch_counts_;
  }
  view.queue = store::split_queue(snapshot, with_host_limits(std::move(snapshot.limits), view.limits));
  const bool begins = parts_.engine == nullptr || (!view.shortage && !parts_.engine->is_draining());
  if (begins) view.drain_in = store::estimate_drain(snapshot, view.queue);
  for (store::Run& run : snapshot.running) view.running.push_back(this->view(std::move(run)));
  for (LimitView& limit : view.limits) name_runs(limit.holders, view.running);
  view.refused_agents = refused_agents();
  view.refused_agents_total = view.refused_agents.size();
  if (view.refused_agents.size() > engine::kRefusedAgentsMax) view.refused_agents.resize(engine::kRefusedAgentsMax);
  for (store::Run& run : snapshot.needs) view.needs.push_back(this->view(std::move(run)));
  for (store::Run& run : snapshot.failures) view.failures.push_back(this->view(std::move(run)));
  co_return view;
}

/// The same look as the dashboard's, without its lists.
Task<Result<FleetStatus>> LocalFleet::status() {
  STINT_CO_TRY(engine::FleetView view, co_await look(Detail::summary));
  co_return static_cast<FleetStatus&&>(view);
}

}  // namespace stint::fleet
