#include "playground/sandbox.hpp"

#include "playground/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

namespace stint::playground {
namespace {

constexpr std::uint32_t kStepsPerCheck = 64;  // between two looks at the clock

/// One replay.
class World {
 public:
  World(const Sandbox& sandbox, const Patience& patience);
  /// The simulator's frames refer to the actors.
  ~World() { stage_.reset(); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// One step. False if nothing is left to do.
  Result<bool> step();
  Result<> step_to(std::uint32_t step);
  Result<> step_by_event(std::uint32_t events);
  Result<> perform(const Action& action);
  Result<> finish_moment();
  [[nodiscard]] std::uint32_t steps() const noexcept { return stage_->steps(); }
  [[nodiscard]] std::size_t performed() const noexcept { return next_; }
  [[nodiscard]] View view();

 private:
  [[nodiscard]] bool is_due();
  Result<> perform_unchecked(const Action& action);
  Result<Actor*> actor(const std::string& task);
  Result<> check_time();
  [[nodiscard]] ResourceView view_of(const Resource& resource) const;

  const std::vector<Action>& actions_;
  std::unique_ptr<Stage> stage_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::size_t next_ = 0;
  const Patience& patience_;
  Duration began_{};
  std::uint32_t unchecked_ = 0;
};

World::World(const Sandbox& sandbox, const Patience& patience)
    : actions_(sandbox.actions),
      stage_(std::make_unique<Stage>(sandbox.setup.seed, sandbox.setup.order)),
      patience_(patience),
      began_(patience.now ? patience.now() : Duration::zero()) {
  for (const ResourceSpec& spec : sandbox.setup.resources) {
    switch (spec.kind) {
      case Kind::semaphore: stage_->semaphore(spec.name, spec.capacity, spec.bypass_max); break;
      case Kind::mutex: stage_->mutex(spec.name); break;
      case Kind::pool: stage_->pool(spec.name, spec.capacity); break;
      case Kind::server: stage_->server(spec.name); break;
    }
  }
}

/// Also an action whose step never comes is performed in the end.
bool World::is_due() {
  if (next_ == actions_.size()) return false;
  const auto at = actions_[next_].at;
  if (at && *at <= steps()) return true;
  if (stage_->is_ready() || stage_->is_advancing()) return false;
  return !at || stage_->is_idle();
}

Result<> World::check_time() {
  if (!patience_.now || ++unchecked_ < kStepsPerCheck) return {};
  unchecked_ = 0;
  if (patience_.now() - began_ <= patience_.most) return {};
  return fail(Errc::full, fmt::format("the replay took longer than {} ms: go back, or begin a new sandbox",
                                      std::chrono::duration_cast<std::chrono::milliseconds>(patience_.most).count()));
}

Result<bool> World::step() {
  STINT_CHECK(check_time());
  if (!is_due()) return stage_->step();
  STINT_CHECK(perform(actions_[next_]));
  ++next_;
  return true;
}

Result<> World::step_to(std::uint32_t step) {
  while (steps() < step) {
    STINT_TRY(const bool went_on, this->step());
    if (!went_on) break;
  }
  return {};
}

Result<> World::step_by_event(std::uint32_t events) {
  while (steps() < kStepsMax && events > 0) {
    const std::size_t before = stage_->events().size();
    STINT_TRY(const bool went_on, step());
    if (!went_on) break;
    if (stage_->events().size() != before) --events;
  }
  return {};
}

/// Everything that is ready, and no further action.
Result<> World::finish_moment() {
  while ((stage_->is_ready() || stage_->is_advancing()) && steps() < kStepsMax) {
    STINT_CHECK(check_time());
    stage_->step();
  }
  return {};
}

Result<Actor*> World::actor(const std::string& task) {
  const auto found = std::ranges::find(actors_, task, [](const auto& each) { return each->name(); });
  if (found != actors_.end()) {
    if (!(*found)->is_cancelled()) return found->get();
    return fail(Errc::conflict, fmt::format("task '{}' was cancelled: use another name", task));
  }
  if (actors_.size() == kTasksMax) {
    return fail(Errc::conflict, fmt::format("a sandbox has at most {} tasks", kTasksMax));
  }
  const auto find = [this](const std::string& name) {
    const auto other = std::ranges::find(actors_, name, [](const auto& each) { return each->name(); });
    return other == actors_.end() ? nullptr : other->get();
  };
  return actors_.emplace_back(std::make_unique<Actor>(*stage_, task, find)).get();
}

Result<> World::perform(const Action& action) {
  STINT_CHECK(perform_unchecked(action));
  stage_->did();
  return {};
}

Result<> World::perform_unchecked(const Action& action) {
  switch (action.verb) {
    case Verb::cancel: {
      const auto found = std::ranges::find(actors_, action.task, [](const auto& each) { return each->name(); });
      if (found == actors_.end()) return fail(Errc::conflict, fmt::format("there is no task '{}'", action.task));
      (*found)->cancel();
      return {};
    }
    case Verb::resize: return stage_->resource(action.resource).semaphore->set_capacity(action.capacity);
    case Verb::close: {
      Resource& resource = stage_->resource(action.resource);
      if (resource.semaphore) resource.semaphore->close();
      if (resource.mutex) resource.mutex->close();
      if (resource.pool) resource.pool->close();
      return {};
    }
    case Verb::bypass:
      if (stage_->set_bypass(stage_->resource(action.resource), action.capacity)) return {};
      return fail(Errc::conflict,
                  fmt::format("'{}' is in use: a semaphore's bypass is fixed when it is made", action.resource));
    case Verb::advance:
      if (stage_->is_advancing()) return fail(Errc::conflict, "the clock advances already: step to its end first");
      stage_->begin_advance(action.time);
      return {};
    default: break;
  }
  STINT_TRY(Actor* const task, actor(action.task));
  task->tell(action);
  return {};
}

ResourceView World::view_of(const Resource& resource) const {
  ResourceView view;
  view.name = resource.name;
  view.kind = resource.kind;
  view.bypass_max = resource.bypass_max;
  const Semaphore* const places = resource.pool ? &resource.pool->places() : resource.semaphore.get();
  if (places != nullptr) {
    view.capacity = places->capacity();
    view.available = places->available();
    view.closed = places->closed();
    for (const auto& holder : places->holders()) {
      view.holders.push_back({holder.label, holder.units, {}, holder.since - TimePoint()});
    }
    for (const auto& waiter : places->waiters()) {
      view.line.push_back({waiter.label, waiter.units, waiter.priority,
                           waiter.since.transform([](TimePoint since) { return since - TimePoint(); })});
    }
  }
  if (resource.mutex) {
    view.capacity = 1;
    view.closed = resource.mutex->closed();
    if (const auto holder = resource.mutex->holder()) {
      view.holders.push_back({holder->label, 1, holder->effective, holder->since - TimePoint()});
    }
    for (const auto& waiter : resource.mutex->waiters()) view.line.push_back({waiter.label, 1, waiter.effective, {}});
    view.available = view.holders.empty() ? 1 : 0;
  }
  if (resource.pool) view.reused = resource.pool->counts().reused;
  if (resource.server) {
    view.made = resource.server->made();
    view.discarded = resource.server->discarded();
  }
  return view;
}

View World::view() {
  View view;
  view.now = stage_->now();
  view.done = next_ == actions_.size() && stage_->is_idle();
  view.actions_done = next_;
  for (const Resource& resource : stage_->resources()) view.resources.push_back(view_of(resource));
  for (const auto& actor : actors_) {
    view.tasks.push_back({actor->name(), actor->state(), actor->queued(), actor->error()});
  }
  view.tokens = stage_->tokens().tokens();
  view.tokens_leaked = stage_->tokens().leaked();
  const std::vector<Event>& events = stage_->events();
  view.events_left_out = events.size() - std::min(events.size(), kEventsShownMax);
  view.events.assign(events.begin() + static_cast<std::ptrdiff_t>(view.events_left_out), events.end());
  return view;
}

Result<> check(const Sandbox& sandbox) {
  STINT_CHECK(check(sandbox.setup));
  if (sandbox.actions.size() > kActionsMax) {
    return fail(Errc::invalid, fmt::format("'actions' must have at most {} entries", kActionsMax));
  }
  for (std::size_t i = 0; i < sandbox.actions.size(); ++i) {
    const Result<> checked = check(sandbox.setup, sandbox.actions[i]);
    if (!checked) return fail(Errc::invalid, fmt::format("action {}: {}", i + 1, checked.error().what()));
  }
  return {};
}

/// Replays to the step of the sandbox, or as far as it goes.
Result<Played> replay(Sandbox sandbox, std::uint32_t step, const Patience& patience) {
  STINT_CHECK(check(sandbox));
  World world(sandbox, patience);
  STINT_CHECK(world.step_to(std::min(step, kStepsMax)));
  sandbox.step = world.steps();
  View view = world.view();
  return Played{std::move(sandbox), std::move(view)};
}

Error too_many_steps() {
  return {Errc::conflict, fmt::format("the sandbox has taken {} steps, the most there are: go back", kStepsMax)};
}

}  // namespace

Result<Played> look(Sandbox sandbox, const Patience& patience) {
  const std::uint32_t at = sandbox.step;
  return replay(std::move(sandbox), at, patience);
}

Result<Played> act(Sandbox sandbox, Action action, const Patience& patience) {
  STINT_CHECK(check(sandbox));
  STINT_CHECK(check(sandbox.setup, action));
  if (sandbox.actions.size() >= kActionsMax) {
    return fail(Errc::conflict, fmt::format("a sandbox has at most {} actions: go back", kActionsMax));
  }
  if (sandbox.step >= kStepsMax) return fail(too_many_steps());
  World world(sandbox, patience);
  STINT_CHECK(world.step_to(sandbox.step));
  action.at = world.steps();
  STINT_CHECK(world.perform(action));
  STINT_CHECK(world.finish_moment());
  View view = world.view();
  Sandbox after = sandbox;  // a copy: the world refers to the actions
  after.step = world.steps();
  after.actions.insert(after.actions.begin() + static_cast<std::ptrdiff_t>(world.performed()), std::move(action));
  ++view.actions_done;
  return Played{std::move(after), std::move(view)};
}

Result<Played> step(Sandbox sandbox, std::uint32_t steps, const Patience& patience) {
  if (sandbox.step >= kStepsMax) return fail(too_many_steps());
  const std::uint32_t until = sandbox.step + std::min(steps, kStepsMax - sandbox.step);
  return replay(std::move(sandbox), until, patience);
}

Result<Played> step_by_event(Sandbox sandbox, std::uint32_t events, const Patience& patience) {
  if (sandbox.step >= kStepsMax) return fail(too_many_steps());
  STINT_CHECK(check(sandbox));
  World world(sandbox, patience);
  STINT_CHECK(world.step_to(sandbox.step));
  STINT_CHECK(world.step_by_event(events));
  sandbox.step = world.steps();
  View view = world.view();
  return Played{std::move(sandbox), std::move(view)};
}

Result<Played> back(Sandbox sandbox, std::uint32_t steps, const Patience& patience) {
  const std::uint32_t until = sandbox.step - std::min(steps, sandbox.step);
  std::erase_if(sandbox.actions, [&](const Action& action) { return action.at && *action.at >= until; });
  return replay(std::move(sandbox), until, patience);
}

Result<Played> back_by_event(Sandbox sandbox, std::uint32_t events, const Patience& patience) {
  STINT_TRY(const Played now, look(sandbox, patience));
  std::set<std::uint32_t> stops = {0};  // where it may halt on its way back
  std::uint32_t last = 0;               // the latest of them that takes something back
  for (const Event& event : now.view.events) {
    stops.insert(event.step);
    last = std::max(last, event.step - 1);
  }
  for (const Action& action : now.sandbox.actions) {
    if (!action.at || *action.at >= now.sandbox.step) continue;
    stops.insert(*action.at);
    last = std::max(last, *action.at);
  }
  auto until = std::prev(stops.upper_bound(last));
  for (; events > 1 && until != stops.begin(); --events) --until;
  return back(std::move(sandbox), now.sandbox.step - *until, patience);
}

Result<Played> play(Sandbox sandbox, const Patience& patience) {
  return replay(std::move(sandbox), kStepsMax, patience);
}

}  // namespace stint::playground
