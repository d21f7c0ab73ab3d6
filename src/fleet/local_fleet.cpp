#include "fleet/local_fleet.hpp"

#include "agent/arguments.hpp"
#include "agent/problem.hpp"
#include "agent/text.hpp"
#include "domain/bounds.hpp"
#include "engine/rescue.hpp"
#include "fleet/host_views.hpp"
#include "pool/store_backoff.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <unistd.h>

namespace stint::fleet {
namespace {

using namespace std::chrono_literals;
using domain::RunState;

constexpr std::string_view kNoDaemon = "no daemon runs here: `stint serve` starts one";
constexpr Duration kLookAgain = 500ms;  // other processes do not notify us
/// How long a cancel waits for the end: longer than a driver takes to give up on a process that survives SIGKILL, and
/// longer than the lease of an owner that died.
constexpr Duration kGoneMax = 2min;
constexpr std::uint32_t kShownRunning = 200;

Error no_such_run(const std::string& id) {
  return {Errc::invalid, "there is no run '" + agent::excerpt(id) + "'. `stint ls` lists them"};
}

Error sent_away(const std::string& run) {
  return Error(Errc::unavailable, Retry::safe,
               "this daemon is shutting down; run '" + run + "' goes on in another daemon, or after a restart")
      .after(kComeAgain);
}

}  // namespace

Task<Result<std::unique_ptr<RunView>>> Fleet::wait(std::string id) {
  std::uint64_t seen = co_await changed(id, 0, Duration::zero());
  while (true) {
    STINT_CO_TRY(std::optional<RunView> view, co_await find(id));
    if (!view) co_return fail(no_such_run(id));
    if (is_at_rest(view->run)) co_return std::make_unique<RunView>(std::move(*view));
    seen = co_await changed(view->run.id, seen, kLookAgain);
  }
}

std::vector<agent::Problem> Fleet::agent_problems() const { return {}; }

// ---- looking -------------------------------------------------------------------------------------------------------

RunView LocalFleet::view(store::Run run) const {
  RunView view;
  if (!run.input.empty()) {
    if (auto input = parts_.run_codec.read_input(run.input)) view.input = std::move(*input);
  }
  if (!run.result.empty()) {
    if (auto memo = parts_.run_codec.read_memo(run.result)) view.memo = std::move(*memo);
  }
  if (parts_.engine != nullptr) {
    if (const pool::Carried* const carried = parts_.engine->worker().find(run.id)) {
      view.memo.usage = carried->usage;
      if (!carried->worker.empty()) view.carried_by = carried->worker;
    }
  }
  view.run = std::move(run);
  view.run.agent = std::string(project::agent_of(view.run.agent));
  const bool never_began = view.run.state == RunState::expired && !view.run.started_at;
  if (never_began && view.run.error.empty()) view.run.error = "the deadline passed before the run could begin";
  return view;
}

Task<Result<std::optional<RunView>>> LocalFleet::find(std::string id) {
  STINT_CO_TRY(std::optional<store::Run> run, co_await parts_.store.find(std::move(id)));
  if (!run) co_return std::nullopt;
  co_return view(std::move(*run));
}

bool LocalFleet::is_leaving(const std::string& run) const {
  return parts_.engine->phase() >= Phase::handing_back && parts_.engine->worker().find(run) == nullptr;
}

Task<Result<std::unique_ptr<RunView>>> LocalFleet::wait(std::string id) {
  if (parts_.engine == nullptr) co_return co_await Fleet::wait(std::move(id));
  events::Changes::EndSubscription ending(parts_.engine->changes(), id);
  while (true) {
    Result<std::optional<store::Run>> found = co_await parts_.store.find(id);
    if (!found) co_return fail(std::move(found).error());
    if (!*found) co_return fail(no_such_run(id));
    store::Run& run = **found;
    if (is_at_rest(run)) co_return std::make_unique<RunView>(view(std::move(run)));
    if (is_leaving(run.id)) co_return fail(sent_away(run.id));
    co_await ending.next(kLookAgain);
  }
}

Task<Result<RunView>> LocalFleet::must_find(std::string id) {
  STINT_CO_TRY(std::optional<RunView> found, co_await find(id));
  if (!found) co_return fail(no_such_run(id));
  co_return std::move(*found);
}

Task<Result<std::vector<store::Event>>> LocalFleet::events(std::string id, std::int64_t after, std::uint32_t most) {
  return parts_.store.events(std::move(id), after, most);
}

Task<Result<store::FeedPage>> LocalFleet::feed(std::string cursor, std::uint32_t most) {
  return parts_.store.feed(std::move(cursor), most);
}

Task<Result<store::Output>> LocalFleet::output(std::string id) { return parts_.store.output(std::move(id)); }

Task<std::uint64_t> LocalFleet::changed(std::string id, std::uint64_t seen, Duration most) {
  if (parts_.engine == nullptr) {
    // The owner of the run may have died: tick the store, so that its runs are rescued.
    if (most > Duration::zero()) {
      co_await sleep_for(std::min(most, kLookAgain));
      const auto ticked = co_await parts_.store.tick();
      const bool lost = ticked && ticked->lost > 0;
      if (lost && parts_.survivors != nullptr) co_await engine::kill_survivors(parts_.store, *parts_.survivors);
    }
    co_return seen + 1;
  }
  events::Changes& changes = parts_.engine->changes();
  if (most > Duration::zero()) co_await changes.wait(std::move(id), seen, most);
  co_return changes.now();
}

// ---- changing ------------------------------------------------------------------------------------------------------

void LocalFleet::tell(std::string_view id, events::Changes::Kind kind) {
  if (parts_.engine == nullptr) return;
  parts_.engine->changes().notify(id, kind);
  parts_.engine->nudge();
}

/// Waits until no node carries the run and none of its processes is alive on this host; returns the run.
Task<Result<RunView>> LocalFleet::gone(std::string id) {
  const TimePoint until = parts_.executor.now() + kGoneMax;
  std::uint64_t seen = co_await changed(id, 0, Duration::zero());
  while (true) {
    STINT_CO_TRY(RunView now, co_await must_find(id));
    if (now.run.state != RunState::running) {
      if (now.run.lost > 0) STINT_CO_CHECK(co_await end_left(now.run));
      co_return now;
    }
    if (parts_.engine != nullptr && is_leaving(id)) co_return fail(sent_away(id));
    STINT_CO_CHECK(can_be_recorded(id));
    if (parts_.executor.now() >= until) {
      co_return fail(Errc::timed_out,
                     "'" + id + "' is cancelled but has not ended yet. `stint why " + id + "` says why");
    }
    seen = co_await changed(id, seen, kLookAgain);
  }
}

/// Fails if the work of a run that this process carries is over, but the store does not record it.
Result<> LocalFleet::can_be_recorded(const std::string& id) const {
  const pool::Carried* const carried = parts_.engine == nullptr ? nullptr : parts_.engine->worker().find(id);
  if (carried == nullptr || !carried->is_work_over()) return {};
  const std::string why = parts_.engine->store_health().why_unusable();
  if (why.empty()) return {};
  return fail(Error(Errc::unavailable, Retry::safe,
                    "all processes of '" + id + "' are gone, but the store can't record that yet: " + why)
                  .after(kComeAgain));
}

/// Ends what this process carries of the run, when the store can't record the cancel.
Task<Error> LocalFleet::cancel_here(const std::string& id, Error refusal) {
  if (parts_.engine == nullptr || !pool::StoreBackoff::may_retry(refusal)) co_return refusal;
  parts_.engine->store_health().record(pool::StoreHealth::Call::write, Result<>(fail(refusal)));
  std::vector<std::string> tree = {id};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    store::Filter filter;
    filter.parent = tree[i];
    filter.states = {RunState::running};
    filter.most = kShownRunning;
    const auto children = co_await parts_.store.list(std::move(filter));
    if (!children) continue;
    for (const store::Run& child : *children) tree.push_back(child.id);
  }
  std::string ended;
  for (const std::string& each : tree) {
    if (!parts_.engine->stop_here(each, pool::Carried::Stop::cancelled, "cancelled")) continue;
    ended += (ended.empty() ? "'" : ", '") + each + "'";
    const pool::Carried* carried = parts_.engine->worker().find(each);
    while (carried != nullptr && !carried->is_work_over()) {
      co_await parts_.engine->worker_moved();
      carried = parts_.engine->worker().find(each);
    }
  }
  if (ended.empty()) co_return refusal;
  co_return Error(Errc::unavailable, Retry::safe,
                  "the work of " + ended + " was ended, but the store can't record that yet: " + refusal.describe())
      .after(kComeAgain);
}

Task<Result<>> LocalFleet::end_left(const store::Run& run) {
  if (parts_.survivors == nullptr) co_return Result<>();
  std::vector<domain::Survivors::Leftover> attempts{{run.id, run.fence}};
  const auto ending = co_await parts_.survivors->end(std::move(attempts), [] { return false; });
  if (ending.left.empty()) co_return Result<>();
  co_return fail(Errc::timed_out, "'" + run.id + "' is " + std::string(to_string(run.state)) +
                                      ", but some of its processes survived SIGKILL: " + ending.left);
}

Task<Result<Receipt>> LocalFleet::cancel(std::string id) {
  const TimePoint began = parts_.executor.now();
  STINT_CO_TRY(const RunView found, co_await must_find(std::move(id)));
  Receipt receipt;
  std::vector<std::string> held;
  if (found.run.state == RunState::running) held = co_await limits_held_by(found.run.id);
  const auto reached = co_await parts_.store.cancel(found.run.id);
  if (!reached) co_return fail(co_await cancel_here(found.run.id, reached.error()));
  for (const auto& [each, state] : *reached) {
    if (each != found.run.id) receipt.reached.push_back(each);
    if (parts_.engine != nullptr) parts_.engine->stop_here(each, pool::Carried::Stop::cancelled, "cancelled");
    tell(each);
  }
  std::vector<std::string> all = receipt.reached;
  all.push_back(found.run.id);
  for (const std::string& each : all) {
    STINT_CO_TRY(RunView now, co_await gone(each));
    if (each == found.run.id) receipt.run = std::move(now);
  }
  if (found.run.state == RunState::in_doubt) {
    co_return fail(Errc::conflict,
                   "'" + found.run.id + "' is in doubt and has no process left to end. `stint resolve` settles it");
  }
  const domain::RunMemo& kept = receipt.run.memo;
  if (!kept.permits_returned.empty() || !kept.permits_held.empty()) {  // what each later reading of the run shows
    receipt.permits_returned = kept.permits_returned;
    receipt.permits_held = kept.permits_held;
  } else if (!held.empty()) {
    receipt.permits_held = co_await limits_held_by(found.run.id);
    std::ranges::set_difference(held, receipt.permits_held, std::back_inserter(receipt.permits_returned));
  }
  receipt.time = parts_.executor.now() - began;
  co_return receipt;
}

/// By name. Empty if they can't be listed: a cancel does not fail for that.
Task<std::vector<std::string>> LocalFleet::limits_held_by(const std::string& run) {
  std::vector<std::string> held;
  const auto all = co_await limits();
  if (!all) co_return held;
  for (const LimitView& limit : *all) {
    const auto mine = std::ranges::find(limit.holders, run, &domain::LimitEntry::run);
    if (mine != limit.holders.end()) held.push_back(limit.name);
  }
  std::ranges::sort(held);
  co_return held;
}

Task<Result<RunState>> LocalFleet::resolve(std::string id, domain::Resolution how) {
  STINT_CO_TRY(const RunView found, co_await must_find(std::move(id)));
  STINT_CO_TRY(const RunState state, co_await parts_.store.resolve(found.run.id, how));
  tell(found.run.id);
  co_return state;
}

// ---- the fleet -----------------------------------------------------------------------------------------------------

Task<Result<std::vector<AgentView>>> LocalFleet::agents() {
  std::vector<AgentView> views;
  for (const auto& [name, spec] : parts_.registry()) {
    if (spec.gone) continue;
    AgentView view;
    view.name = name;
    view.description = spec.agent.description;
    view.driver = spec.agent.driver != nullptr ? std::string(spec.agent.driver->name) : std::string();
    view.usage = agent::usage(spec.agent);
    if (spec.refused) view.refused = spec.refused->describe();
    view.max_concurrency = spec.agent.max_concurrency;
    for (const domain::LimitRequest& limit : spec.agent.limits) view.limits.push_back({limit.name, limit.weight});
    views.push_back(std::move(view));
  }
  for (engine::RefusedAgent& each : refused_agents()) {
    if (std::ranges::find(views, each.name, &AgentView::name) != views.end()) continue;
    AgentView& view = views.emplace_back();
    view.name = std::move(each.name);
    view.refused = std::move(each.why);
  }
  std::ranges::sort(views, {}, &AgentView::name);
  co_return views;
}

std::vector<engine::RefusedAgent> LocalFleet::refused_agents() const {
  std::map<std::string, std::string> refused;
  for (const auto& [name, spec] : parts_.registry()) {
    if (spec.refused && !spec.gone) refused[name] = spec.refused->describe();
  }
  const auto snapshot = options_.snapshot ? options_.snapshot() : nullptr;
  for (const std::string& name : snapshot ? snapshot->catalogue.broken : std::vector<std::string>()) {
    const auto known = parts_.registry().find(name);
    if (known != parts_.registry().end() && !known->second.gone) continue;
    std::string& why = refused[name] = "its file has errors";
    const std::vector<agent::Problem> problems = project::problems_of(name, snapshot->catalogue, {});
    const auto first = std::ranges::find(problems, agent::Severity::error, &agent::Problem::severity);
    if (first != problems.end()) why = describe(*first);
  }
  std::vector<engine::RefusedAgent> list;
  for (auto& [name, why] : refused) list.push_back({name, std::move(why)});
  return list;
}

void LocalFleet::name_runs(std::vector<domain::LimitEntry>& entries, const std::vector<RunView>& running) {
  for (domain::LimitEntry& entry : entries) {
    if (entry.run.empty()) continue;
    const auto found = std::ranges::find(running, entry.run, [](const RunView& each) { return each.run.id; });
    if (found == running.end()) continue;
    entry.agent = found->run.agent;
    entry.title = found->input.title;
  }
}

Task<Result<std::vector<RunView>>> LocalFleet::running_runs() {
  store::Filter filter;
  filter.states = {RunState::running};
  filter.most = store::kRunningListMax;
  filter.texts = true;
  filter.text_bytes_max = kListTextMax;
  STINT_CO_TRY(std::vector<store::Run> runs, co_await parts_.store.list(std::move(filter)));
  std::vector<RunView> views;
  for (store::Run& run : runs) views.push_back(view(std::move(run)));
  co_return views;
}

Task<Result<std::vector<LimitView>>> LocalFleet::limits() {
  STINT_CO_TRY(std::vector<store::LimitState> counted, co_await parts_.store.limits(store::kLimitListMax));
  STINT_CO_TRY(std::vector<LimitView> views, co_await list_limits(Detail::entries, std::move(counted)));
  STINT_CO_TRY(const std::vector<RunView> running, co_await running_runs());
  for (LimitView& view : views) name_runs(view.holders, running);
  co_return views;
}

Task<Result<std::vector<LimitView>>> LocalFleet::list_limits(Detail detail, std::vector<store::LimitState> counted) {
  std::vector<LimitView> views;
  if (options_.host_limits) {
    STINT_CO_TRY(views, co_await options_.host_limits());
  }
  for (store::LimitState& state : counted) {
    const auto known = std::ranges::find(views, state.name, &LimitView::name);
    const bool is_new = known == views.end();
    LimitView& view = is_new ? views.emplace_back() : *known;
    view.paused = state.paused;
    view.paused_until = state.paused_until;
    if (is_new) {
      view.name = state.name;
      view.home = options_.cluster ? "cluster" : "host";
      view.capacity = state.capacity;
      view.held = state.units;
      for (store::LimitHolder& holder : state.holders) view.holders.push_back(entry_of(std::move(holder)));
      for (store::LimitWaiter& waiter : state.line) view.line.push_back(entry_of(std::move(waiter)));
      view.waiting = state.waiting;
      number_places(view.line);
    } else if (parts_.engine != nullptr) {
      put_runs_in_line(view, std::move(state), ::getpid());
    }
  }
  if (parts_.engine != nullptr) {
    for (const std::string& name : parts_.engine->call_limits().names()) {
      const auto state = *parts_.engine->call_limits().find(name);
      LimitView& view = views.emplace_back();
      view.name = name;
      view.home = "process";
      view.capacity = state.capacity;
      view.held = state.held;
      view.waiting = state.waiting;
    }
  }
  std::ranges::sort(views, {}, &LimitView::name);
  if (detail == Detail::summary) {
    for (LimitView& view : views) view.holders = view.line = {};
  }
  co_return views;
}

Task<Result<>> LocalFleet::resize_limit(std::string name, std::uint32_t capacity) {
  if (options_.resize_host_limit) {
    STINT_CO_TRY(const bool done, co_await options_.resize_host_limit(name, capacity));
    if (done) co_return Result<>();
  }
  if (parts_.engine != nullptr && parts_.engine->call_limits().find(name)) {
    STINT_CO_CHECK(parts_.engine->call_limits().set(name, capacity));
    tell("");
    co_return Result<>();
  }
  STINT_CO_TRY(const store::LimitState limit, co_await must_know(name));
  if (!limit.capacity) {
    co_return fail(Errc::invalid,
                   "'" + name + "' has no capacity that could be changed. Set `max_concurrency` of its agent, or " +
                       "[limits] in stint.toml");
  }
  STINT_CO_CHECK(co_await parts_.store.resize(std::move(name), capacity));
  tell("");
  co_return Result<>();
}

std::optional<std::int64_t> LocalFleet::cost_per_day() const {
  return parts_.engine == nullptr ? options_.cost_micros_per_day : parts_.engine->cost_per_day();
}

Phase LocalFleet::phase() const { return parts_.engine == nullptr ? Phase::stopped : parts_.engine->phase(); }

std::string LocalFleet::why_unready() const {
  return parts_.engine == nullptr ? std::string(kNoDaemon) : parts_.engine->why_unready();
}

/// Queue numbers come from the store, which owns the queue.
Task<Result<FleetHealth>> LocalFleet::health() {
  if (parts_.engine == nullptr) co_return fail(Errc::unavailable, std::string(kNoDaemon));
  STINT_CO_TRY(std::vector<store::QueueState> queues, co_await parts_.store.queues());
  co_return health_with(std::move(queues));
}

Task<Result<FleetHealth>> LocalFleet::scale(ScaleRequest scale) {
  if (parts_.engine == nullptr) co_return fail(Errc::unavailable, std::string(kNoDaemon));
  STINT_CO_CHECK(parts_.engine->scale(scale.workers, scale.min, scale.max));
  co_return co_await health();
}

Task<Result<>> LocalFleet::drain(DrainRequest drain) {
  if (parts_.engine == nullptr) co_return fail(Errc::unavailable, std::string(kNoDaemon));
  if (drain.hurry) {
    parts_.engine->hurry();
  } else {
    parts_.engine->drain(drain.timeout);
  }
  co_return Result<>();
}

}  // namespace stint::fleet
