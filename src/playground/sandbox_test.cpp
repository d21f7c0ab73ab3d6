#include "playground/sandbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace stint::playground {
namespace {

using namespace std::chrono_literals;

Sandbox with(std::vector<ResourceSpec> resources) {
  Sandbox sandbox;
  sandbox.setup.resources = std::move(resources);
  return sandbox;
}

Action acquire(std::string task, std::string resource = "garage", std::uint32_t units = 1, int priority = 0) {
  return {.verb = Verb::acquire,
          .task = std::move(task),
          .resource = std::move(resource),
          .units = units,
          .priority = priority};
}
Action release(std::string task, std::string resource = "garage", std::string of = {}) {
  return {.verb = Verb::release, .task = std::move(task), .resource = std::move(resource), .of = std::move(of)};
}
Action advance(Duration time) { return {.verb = Verb::advance, .time = time}; }

/// A sandbox that is acted on.
struct Play {
  explicit Play(std::vector<ResourceSpec> resources) : played{with(std::move(resources)), {}} {}
  Play& act(Action action) {
    played = playground::act(played.sandbox, std::move(action)).value();
    EXPECT_EQ(look(played.sandbox).value().view, played.view) << "a replay looks different";
    return *this;
  }
  Error refusal(Action action) const {
    const auto refused = playground::act(played.sandbox, std::move(action));
    EXPECT_FALSE(refused);
    return refused ? Error(Errc::failed) : refused.error();
  }
  /// "kind task units" of the events, from `first` on.
  std::vector<std::string> events(std::size_t first = 0) const {
    std::vector<std::string> texts;
    for (std::size_t i = first; i < played.view.events.size(); ++i) {
      const Event& event = played.view.events[i];
      std::string text(to_string(event.kind));
      if (!event.task.empty()) text += " " + event.task;
      if (event.units != 0) text += " " + std::to_string(event.units);
      texts.push_back(std::move(text));
    }
    return texts;
  }
  const ResourceView& resource(std::size_t i = 0) const { return played.view.resources.at(i); }
  const TaskView& task(const std::string& name) const {
    return *std::ranges::find(played.view.tasks, name, &TaskView::name);
  }
  Played played;
};

using Texts = std::vector<std::string>;

TEST(Sandbox, a_full_garage_has_a_line) {
  Play play({{.name = "garage", .capacity = 2}});
  play.act(acquire("a")).act(acquire("b")).act(acquire("c"));
  EXPECT_EQ(play.events(), (Texts{"granted a 1", "granted b 1", "waits c 1"}));
  EXPECT_EQ(play.resource().available, 0);
  EXPECT_EQ(play.resource().holders.size(), 2U);
  ASSERT_EQ(play.resource().line.size(), 1U);
  EXPECT_EQ(play.resource().line[0].task, "c");
  EXPECT_EQ(play.task("c").state, TaskState::waiting);
  EXPECT_EQ(play.task("a").state, TaskState::holding);
  play.act(release("a"));
  EXPECT_EQ(play.events(3), (Texts{"released a 1", "granted c 1"}));
  EXPECT_EQ(play.task("a").state, TaskState::idle);
}

TEST(Sandbox, a_task_does_one_thing_after_the_other) {
  Play play({{.name = "garage", .capacity = 1}});
  play.act(acquire("a")).act(acquire("b"));
  play.act({.verb = Verb::work, .task = "b", .time = 1s}).act(release("b"));
  EXPECT_EQ(play.task("b").queued, 2U);
  play.act(advance(5s)).act(release("a"));
  EXPECT_EQ(play.task("b").state, TaskState::working);
  play.act(advance(1s));
  EXPECT_EQ(play.events(2), (Texts{"released a 1", "granted b 1", "released b 1"}));
  EXPECT_EQ(play.played.view.events.back().at, 6s);
  EXPECT_EQ(play.played.view.now, 6s);
}

TEST(Sandbox, weight_and_priority_decide_the_order) {
  Play play({{.name = "garage", .capacity = 3}});
  play.act(acquire("a", "garage", 3)).act(acquire("low", "garage", 2)).act(acquire("high", "garage", 2, 3));
  EXPECT_EQ(play.resource().line.front().task, "high");
  EXPECT_EQ(play.resource().line.front().priority, 3);
  play.act({.verb = Verb::return_units, .task = "a", .resource = "garage", .units = 2});
  EXPECT_EQ(play.events(3), (Texts{"released a 2", "granted high 2"}));
}

TEST(Sandbox, a_cancelled_holder_returns_everything) {
  Play play(
      {{.name = "garage", .capacity = 2}, {.name = "lock", .kind = Kind::mutex}, {.name = "pool", .kind = Kind::pool}});
  play.act(acquire("a", "garage", 2)).act(acquire("a", "lock")).act(acquire("a", "pool"));
  play.act({.verb = Verb::cancel, .task = "a"});
  EXPECT_EQ(play.task("a").state, TaskState::cancelled);
  for (const ResourceView& resource : play.played.view.resources)
    EXPECT_TRUE(resource.holders.empty()) << resource.name;
  EXPECT_EQ(play.refusal(acquire("a")).code(), Errc::conflict);
  EXPECT_EQ(play.refusal({.verb = Verb::cancel, .task = "stranger"}).code(), Errc::conflict);
}

TEST(Sandbox, a_wait_ends_at_its_timeout) {
  Play play(
      {{.name = "garage", .capacity = 1}, {.name = "pool", .kind = Kind::pool}, {.name = "lock", .kind = Kind::mutex}});
  for (const char* name : {"garage", "pool", "lock"}) {
    play.act(acquire("a", name));
    Action hurried = acquire("b", name);
    hurried.timeout = 2s;
    play.act(hurried).act(advance(2s));
    EXPECT_EQ(play.played.view.events.back().kind, EventKind::left) << name;
    EXPECT_EQ(play.task("b").state, TaskState::idle) << name;
    EXPECT_FALSE(play.task("b").error.empty()) << name;
  }
}

TEST(Sandbox, the_librarys_refusals_are_events) {
  Play play({{.name = "garage", .capacity = 2}, {.name = "lock", .kind = Kind::mutex}});
  play.act(acquire("a", "garage", 3));
  EXPECT_EQ(play.played.view.events.back().kind, EventKind::refused);
  EXPECT_EQ(play.played.view.events.back().detail, "semaphore 'garage': 3 units of 2 can never be granted");
  EXPECT_EQ(play.task("a").error, play.played.view.events.back().detail);
  play.act(release("a"));
  EXPECT_EQ(play.played.view.events.back().detail, "task 'a' holds nothing of 'garage'");
  play.act(acquire("a", "lock")).act(acquire("a", "lock"));
  EXPECT_TRUE(play.played.view.events.back().detail.contains("already held"));
  play.act(release("b", "lock", "a"));
  EXPECT_EQ(play.played.view.events.back().task, "b");
  EXPECT_TRUE(play.played.view.events.back().detail.contains("does not own it"));
  play.act(release("b", "garage", "stranger"));
  EXPECT_EQ(play.played.view.events.back().detail, "task 'stranger' holds nothing of 'garage'");
}

TEST(Sandbox, closing_refuses_those_in_line) {
  Play play({{.name = "garage", .capacity = 1}});
  play.act(acquire("a")).act(acquire("b")).act({.verb = Verb::close, .resource = "garage"});
  EXPECT_EQ(play.events(2), (Texts{"closed", "left b 1", "refused b"}));
  EXPECT_TRUE(play.resource().closed);
  play.act(release("a"));
  EXPECT_EQ(play.events(5), (Texts{"released a 1"}));
}

TEST(Sandbox, a_resize_makes_a_debt) {
  Play play({{.name = "garage", .capacity = 3}});
  play.act(acquire("a", "garage", 3)).act(acquire("b"));
  play.act({.verb = Verb::resize, .resource = "garage", .capacity = 1});
  EXPECT_EQ(play.resource().available, -2);
  EXPECT_EQ(play.events(2), (Texts{"resized 1"}));
}

TEST(Sandbox, bypass_is_set_while_nothing_is_held) {
  Play play({{.name = "garage", .capacity = 2}});
  play.act({.verb = Verb::bypass, .resource = "garage", .capacity = 5});
  EXPECT_EQ(play.resource().bypass_max, 5U);
  play.act(acquire("a")).act(acquire("large", "garage", 2)).act(acquire("b"));
  EXPECT_EQ(play.events(), (Texts{"granted a 1", "waits large 2", "granted b 1"}));
  EXPECT_EQ(play.refusal({.verb = Verb::bypass, .resource = "garage", .capacity = 1}).code(), Errc::conflict);
}

TEST(Sandbox, a_pool_reuses_and_discards) {
  Play play({{.name = "pool", .kind = Kind::pool, .capacity = 1}});
  play.act(acquire("a", "pool")).act(release("a", "pool")).act(acquire("b", "pool"));
  EXPECT_EQ(play.events(), (Texts{"granted a 1", "made 1", "released a 1", "granted b 1", "reused 1"}));
  play.act({.verb = Verb::discard, .task = "b", .resource = "pool"});
  EXPECT_EQ(play.events(5), (Texts{"released b 1", "discarded 1"}));
  EXPECT_EQ(play.resource().made, 1U);
  EXPECT_EQ(play.resource().reused, 1U);
  EXPECT_EQ(play.resource().discarded, 1U);
  play.act(acquire("c", "pool")).act({.verb = Verb::close, .resource = "pool"}).act(release("c", "pool"));
  EXPECT_EQ(play.resource().discarded, 2U);
}

TEST(Sandbox, steps_go_one_by_one_and_back) {
  Sandbox sandbox = with({{.name = "garage", .capacity = 1}});
  sandbox.actions = {acquire("a"), acquire("b"), release("a")};
  const Played first = step(sandbox, 1).value();
  EXPECT_EQ(first.sandbox.step, 1U);
  EXPECT_EQ(first.view.actions_done, 1U);
  EXPECT_TRUE(first.view.events.empty()) << "the task has not run yet";
  const Played end = play(first.sandbox).value();
  EXPECT_TRUE(end.view.done);
  EXPECT_EQ(step(end.sandbox, 10).value().sandbox.step, end.sandbox.step) << "nothing is left to do";
  EXPECT_EQ(back(end.sandbox, end.sandbox.step - 1).value().view, first.view);
  EXPECT_EQ(back(end.sandbox, 1'000'000).value().sandbox, sandbox);
}

TEST(Sandbox, a_step_back_undoes_an_action) {
  Play play({{.name = "garage", .capacity = 1}});
  play.act(acquire("a"));
  const Played before = play.played;
  play.act(acquire("b"));
  const std::uint32_t steps = play.played.sandbox.step - before.sandbox.step;
  const Played undone = back(play.played.sandbox, steps).value();
  EXPECT_EQ(undone.sandbox, before.sandbox);
  EXPECT_EQ(undone.view, before.view);
}

TEST(Sandbox, steps_by_event_halt_where_something_has_happened) {
  Sandbox sandbox = with({{.name = "garage", .capacity = 1}});
  sandbox.actions = {acquire("a"), acquire("b"), advance(1s), release("a")};
  std::vector<Played> halts = {look(sandbox).value()};
  while (!halts.back().view.done) halts.push_back(step_by_event(halts.back().sandbox, 1).value());
  ASSERT_EQ(halts.size(), 5U) << "a enters, b waits, a leaves, b enters";
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(halts[i].view.events.size(), i);
  EXPECT_EQ(step_by_event(sandbox, 3).value().view, halts[3].view);
  for (std::size_t i = 4; i > 0; --i) EXPECT_EQ(back_by_event(halts[i].sandbox, 1).value().view, halts[i - 1].view);
  EXPECT_EQ(back_by_event(halts[4].sandbox, 3).value().view, halts[1].view);
  EXPECT_EQ(back_by_event(halts[1].sandbox, 100).value().view, halts[0].view);
  EXPECT_EQ(back_by_event(halts[0].sandbox, 1).value().view, halts[0].view);
}

TEST(Sandbox, a_step_back_by_event_undoes_one_action_by_hand) {
  Play play({{.name = "garage", .capacity = 1}});
  play.act(acquire("a"));
  const View after_a = play.played.view;
  play.act(advance(1s));
  const View after_a_second = play.played.view;
  play.act(acquire("b")).act(release("a"));
  EXPECT_EQ(play.events(), (std::vector<std::string>{"granted a 1", "waits b 1", "released a 1", "granted b 1"}));
  play.played = back_by_event(play.played.sandbox, 1).value();
  EXPECT_EQ(play.events(), (std::vector<std::string>{"granted a 1", "waits b 1", "released a 1"}));
  play.played = back_by_event(play.played.sandbox, 1).value();
  EXPECT_EQ(play.events(), (std::vector<std::string>{"granted a 1", "waits b 1"}));
  play.played = back_by_event(play.played.sandbox, 1).value();
  EXPECT_EQ(play.played.view, after_a_second);
  play.played = back_by_event(play.played.sandbox, 1).value();
  EXPECT_EQ(play.played.view, after_a) << "the clock, too";
  play.played = back_by_event(play.played.sandbox, 1).value();
  EXPECT_TRUE(play.played.sandbox.actions.empty());
}

TEST(Sandbox, an_action_between_grant_and_delivery_comes_first) {
  Play play({{.name = "garage", .capacity = 1}});
  play.act(acquire("a")).act(acquire("b")).act(acquire("c")).act(release("a"));
  // Back to the step in which a has returned its unit, and b has not resumed with it.
  while (play.played.view.events.back().kind != EventKind::released) {
    play.played = back(play.played.sandbox, 1).value();
  }
  play.act({.verb = Verb::cancel, .task = "b"});
  EXPECT_EQ(play.events(3), (Texts{"released a 1", "granted c 1", "left b 1"}));
}

// ---- Bounds

TEST(Sandbox, every_bound_refuses) {
  Sandbox many = with({});
  for (std::size_t i = 0; i <= kResourcesMax; ++i) many.setup.resources.push_back({.name = std::to_string(i)});
  EXPECT_EQ(look(many).error().code(), Errc::invalid);
  EXPECT_EQ(look(with({{.name = "a"}, {.name = "a"}})).error().code(), Errc::invalid);
  EXPECT_EQ(look(with({{.name = "a b"}})).error().code(), Errc::invalid);
  EXPECT_EQ(look(with({{.name = std::string(kNameBytesMax + 1, 'a')}})).error().code(), Errc::invalid);
  EXPECT_EQ(look(with({{.name = "a", .capacity = kUnitsMax + 1}})).error().code(), Errc::invalid);
  EXPECT_EQ(look(with({{.name = "a", .kind = Kind::pool, .capacity = 0}})).error().code(), Errc::invalid);

  const Play play({{.name = "garage", .capacity = 1}, {.name = "lock", .kind = Kind::mutex}});
  EXPECT_EQ(play.refusal(acquire("a", "nowhere")).code(), Errc::invalid);
  EXPECT_EQ(play.refusal(acquire("")).code(), Errc::invalid);
  EXPECT_EQ(play.refusal(acquire("a", "garage", 0)).code(), Errc::invalid);
  EXPECT_EQ(play.refusal(acquire("a", "garage", kUnitsMax + 1)).code(), Errc::invalid);
  EXPECT_EQ(play.refusal(acquire("a", "lock", 2)).code(), Errc::invalid);
  EXPECT_EQ(play.refusal(acquire("a", "garage", 1, Semaphore::kPriorityMax + 1)).code(), Errc::invalid);
  EXPECT_EQ(play.refusal(acquire("a", "garage", 1, Semaphore::kPriorityMin - 1)).code(), Errc::invalid);
  EXPECT_EQ(play.refusal(advance(kTimeMax + 1ms)).code(), Errc::invalid);
  EXPECT_EQ(play.refusal(advance(-1ms)).code(), Errc::invalid);
  EXPECT_EQ(play.refusal({.verb = Verb::resize, .resource = "lock", .capacity = 1}).code(), Errc::invalid);
  EXPECT_EQ(play.refusal({.verb = Verb::resize, .resource = "garage", .capacity = kUnitsMax + 1}).code(),
            Errc::invalid);
}

TEST(Sandbox, it_has_at_most_so_many_tasks) {
  Sandbox sandbox = with({{.name = "garage", .capacity = 1}});
  for (std::size_t i = 0; i < kTasksMax; ++i) sandbox.actions.push_back(acquire("t" + std::to_string(i)));
  const Played full = play(sandbox).value();
  EXPECT_EQ(full.view.tasks.size(), kTasksMax);
  EXPECT_EQ(act(full.sandbox, acquire("one-more")).error().code(), Errc::conflict);
  EXPECT_TRUE(act(full.sandbox, acquire("t0")));
}

TEST(Sandbox, it_has_at_most_so_many_actions) {
  Sandbox sandbox = with({{.name = "garage", .capacity = 1}});
  sandbox.actions.assign(kActionsMax, advance(0s));
  EXPECT_EQ(act(sandbox, advance(0s)).error().code(), Errc::conflict);
  sandbox.actions.push_back(advance(0s));
  EXPECT_EQ(look(sandbox).error().code(), Errc::invalid);
}

TEST(Sandbox, it_takes_at_most_so_many_steps) {
  Sandbox sandbox = with({});
  for (int i = 0; i < 200; ++i) {
    sandbox.actions.push_back({.verb = Verb::stream, .task = "t", .units = kUnitsMax, .time = 1ms});
  }
  const Played end = play(sandbox).value();
  EXPECT_EQ(end.sandbox.step, kStepsMax);
  EXPECT_FALSE(end.view.done);
  EXPECT_EQ(end.view.events.size(), kEventsShownMax);
  EXPECT_GT(end.view.events_left_out, 0U);
  EXPECT_EQ(step(end.sandbox, 1).error().code(), Errc::conflict);
  EXPECT_EQ(act(end.sandbox, advance(1s)).error().code(), Errc::conflict);
  sandbox.step = 4'000'000'000;
  EXPECT_EQ(look(sandbox).value().sandbox.step, kStepsMax);
}

TEST(Sandbox, a_replay_is_cut_when_it_takes_too_long) {
  Sandbox sandbox = with({});
  sandbox.actions.assign(kActionsMax, {.verb = Verb::work, .task = "t", .time = 1ms});
  Duration clock{};
  const Patience patience{.now = [&clock] { return clock += 1ms; }};
  EXPECT_EQ(play(sandbox, patience).error().code(), Errc::full);
  const Patience more{.now = [&clock] { return clock += 1ms; }, .most = 1h};
  EXPECT_TRUE(play(sandbox, more).value().view.done);
}

}  // namespace
}  // namespace stint::playground
