// Random sandboxes. What the events say is compared with the listings of the resources; steps back are compared with
// shorter replays. A failing seed reproduces the failure.
#include "playground/sandbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace stint::playground {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSeeds = 300;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  std::string task() { return std::string(1, static_cast<char>('a' + below(6))); }

  Setup setup() {
    Setup setup;
    setup.seed = random_();
    setup.order = below(2) == 0 ? Order::fifo : Order::seeded;
    setup.resources = {{.name = "s", .capacity = 1 + below(4), .bypass_max = below(3) == 0 ? 2U : 0U},
                       {.name = "m", .kind = Kind::mutex},
                       {.name = "p", .kind = Kind::pool, .capacity = 1 + below(2)},
                       {.name = "v", .kind = Kind::server}};
    return setup;
  }
  std::string resource() { return std::string(1, "ssmpv"[below(5)]); }

  /// What a task does after an acquire takes time, so that it does not leave a line and hold as many units at one
  /// moment.
  std::vector<Action> some() {
    Action action;
    action.task = task();
    action.resource = resource();
    switch (below(12)) {
      case 0: action = {.verb = Verb::cancel, .task = action.task}; return {action};
      case 1: return {{.verb = Verb::resize, .resource = "s", .capacity = below(5)}};
      case 2: return {{.verb = Verb::advance, .time = std::chrono::milliseconds(below(20))}};
      case 3:
      case 4:
      case 5:
        action.verb = Verb::release;
        if (below(4) == 0) action.of = task();
        return {action};
      case 6:
        if (below(6) != 0) return {{.verb = Verb::work, .task = action.task, .time = 1ms}};
        if (action.resource == "v") action.resource = "p";
        return {{.verb = Verb::close, .resource = action.resource}};
      case 7: return {{.verb = Verb::discard, .task = action.task, .resource = "p"}};
      default: break;
    }
    action.verb = Verb::acquire;
    if (action.resource == "s") action.units = 1 + below(4);
    if (below(3) == 0) action.priority = static_cast<int>(below(8)) + Semaphore::kPriorityMin;
    if (below(3) == 0) action.timeout = std::chrono::milliseconds(below(10));
    return {action, {.verb = Verb::work, .task = action.task, .time = std::chrono::milliseconds(1 + below(4))}};
  }

 private:
  std::mt19937_64 random_;
};

using Key = std::pair<std::string, std::string>;  // resource, task

std::map<Key, std::uint32_t> places(const View& view, std::vector<PlaceView> ResourceView::* which) {
  std::map<Key, std::uint32_t> found;
  for (const ResourceView& resource : view.resources) {
    for (const PlaceView& place : resource.*which) found[{resource.name, place.task}] += place.units;
  }
  return found;
}

/// The holders and waiters that the events tell of are those of the listings. Nothing more may happen at the moment of
/// the view.
void expect_events_tell_the_truth(const View& view, const std::string& where) {
  std::map<Key, std::uint32_t> held, waiting;
  std::set<std::tuple<Key, Duration, std::uint32_t>> left;
  for (const Event& event : view.events) {
    const Key key{event.resource, event.task};
    switch (event.kind) {
      case EventKind::waits:
        EXPECT_FALSE(waiting.contains(key)) << where << ": " << event.task << " waits twice";
        waiting[key] = event.units;
        break;
      case EventKind::granted:
        EXPECT_FALSE(left.contains({key, event.at, event.units}))
            << where << ": " << event.task << " left, and was granted";
        waiting.erase(key);
        held[key] += event.units;
        break;
      case EventKind::left:
        EXPECT_EQ(waiting.erase(key), 1U) << where << ": " << event.task << " left a line that it was not in";
        left.insert({key, event.at, event.units});
        break;
      case EventKind::released:
        EXPECT_GE(held[key], event.units) << where;
        if ((held[key] -= event.units) == 0) held.erase(key);
        break;
      default: break;
    }
  }
  EXPECT_EQ(held, places(view, &ResourceView::holders)) << where;
  EXPECT_EQ(waiting, places(view, &ResourceView::line)) << where;
}

bool is_possible(const Result<Played>& played) {
  if (!played) EXPECT_EQ(played.error().code(), Errc::conflict) << played.error().describe();
  return played.has_value();
}

TEST(SandboxProperty, events_agree_with_the_listings) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Draw draw(seed);
    Played played{{.setup = draw.setup()}, {}};
    for (int i = 0; i < 40; ++i) {
      for (const Action& action : draw.some()) {
        const auto next = act(played.sandbox, action);
        if (!is_possible(next)) break;
        played = *next;
        EXPECT_EQ(look(played.sandbox).value().view, played.view) << seed;
        expect_events_tell_the_truth(played.view, "seed " + std::to_string(seed));
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Actions in the middle of a moment: between a grant and its delivery, between a timeout and its end.
TEST(SandboxProperty, events_agree_whenever_something_is_done) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Draw draw(seed + 1'000'000);
    Played played{{.setup = draw.setup()}, {}};
    for (int i = 0; i < 40; ++i) {
      for (const Action& action : draw.some()) {
        const auto middle = back(played.sandbox, draw.below(4));
        ASSERT_TRUE(middle);
        const auto next = act(middle->sandbox, action);
        if (!is_possible(next)) break;
        played = *next;
        EXPECT_EQ(look(played.sandbox).value().view, played.view) << seed;
        expect_events_tell_the_truth(played.view, "seed " + std::to_string(seed));
      }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SandboxProperty, back_k_steps_is_a_replay_of_the_others) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Draw draw(seed);
    Sandbox sandbox{.setup = draw.setup()};
    for (int i = 0; i < 12; ++i) std::ranges::copy(draw.some(), std::back_inserter(sandbox.actions));
    Played end{sandbox, {}};
    while (true) {  // as far as it goes: an action may turn out to be impossible
      const auto next = step(end.sandbox, 1);
      if (!is_possible(next) || next->sandbox.step == end.sandbox.step) break;
      end = *next;
    }
    const std::uint32_t count = end.sandbox.step;
    const std::uint32_t k = draw.below(count + 1);
    const Played replayed = step(sandbox, count - k).value();
    const Played undone = back(end.sandbox, k).value();
    EXPECT_EQ(undone.view, replayed.view) << seed;
    EXPECT_EQ(undone.sandbox, replayed.sandbox) << seed;
    EXPECT_EQ(step(undone.sandbox, k).value().view, look(end.sandbox).value().view) << seed;
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SandboxProperty, a_step_only_adds_events) {
  for (std::uint64_t seed = 0; seed < kSeeds / 10; ++seed) {
    Draw draw(seed);
    Sandbox sandbox{.setup = draw.setup()};
    for (int i = 0; i < 8; ++i) std::ranges::copy(draw.some(), std::back_inserter(sandbox.actions));
    std::vector<Event> before;
    for (Played at{sandbox, {}};;) {
      const auto next = step(at.sandbox, 1);
      if (!is_possible(next) || next->sandbox.step == at.sandbox.step) break;
      at = *next;
      ASSERT_GE(at.view.events.size(), before.size()) << seed;
      ASSERT_TRUE(std::ranges::equal(before, std::span(at.view.events).first(before.size()))) << seed;
      before = at.view.events;
    }
  }
}

}  // namespace
}  // namespace stint::playground
