#include "playground/presets.hpp"

#include "playground/presets/lessons.hpp"
#include "preset_cancelled_head.hpp"
#include "preset_large_request.hpp"
#include "preset_limit_or_reuse.hpp"
#include "preset_owned_timeout.hpp"
#include "preset_priority_inversion.hpp"
#include "preset_resize_with_debt.hpp"
#include "preset_stranger_releases.hpp"
#include "preset_three_at_two.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace stint::playground {
namespace {

using namespace std::chrono_literals;

/// Writes the actions of a preset.
class Script {
 public:
  Script& acquire(std::string task, std::string resource, std::uint32_t units = 1, int priority = 0) {
    return add({.verb = Verb::acquire,
                .task = std::move(task),
                .resource = std::move(resource),
                .units = units,
                .priority = priority});
  }
  Script& release(std::string task, std::string resource, std::string of = {}) {
    return add({.verb = Verb::release, .task = std::move(task), .resource = std::move(resource), .of = std::move(of)});
  }
  Script& work(std::string task, Duration time) {
    return add({.verb = Verb::work, .task = std::move(task), .time = time});
  }
  Script& advance(Duration time) { return add({.verb = Verb::advance, .time = time}); }
  Script& add(Action action) {
    actions_.push_back(std::move(action));
    return *this;
  }
  /// Acquires, works and releases.
  Script& visit(const std::string& task, const std::string& resource, Duration stays, std::uint32_t units = 1) {
    return acquire(task, resource, units).work(task, stays).release(task, resource);
  }
  [[nodiscard]] std::vector<Action> take() { return std::move(actions_); }

 private:
  std::vector<Action> actions_;
};

ResourceSpec semaphore(std::string name, std::uint32_t capacity, std::uint32_t bypass_max = 0) {
  return {.name = std::move(name), .kind = Kind::semaphore, .capacity = capacity, .bypass_max = bypass_max};
}
ResourceSpec mutex(std::string name) { return {.name = std::move(name), .kind = Kind::mutex}; }

Setup with(std::vector<ResourceSpec> resources) {
  Setup setup;
  setup.resources = std::move(resources);
  return setup;
}

Preset three_at_two() {
  Script script;
  for (const char* task : {"a", "b", "c"}) script.visit(task, "garage", 1s);
  return {
      .name = "three-at-two",
      .title = "Three tasks, two spaces",
      .sentences = {"A semaphore counts units of something scarce, here the spaces of a garage.",
                    "A task that asks for a unit when none is free waits in line, and costs nothing meanwhile.",
                    "A permit returns its unit when it is destroyed, and the next in line gets it."},
      .question = "The garage has two spaces; a, b and c arrive together and stay for one second. When does c enter?",
      .choices = {"At once", "After one second", "After two seconds"},
      .answer = 1,
      .why = "a and b leave after one second; the first space that is returned goes to c.",
      .code = show(kThreeAtTwo),
      .run = lesson::three_at_two,
      .setup = with({semaphore("garage", 2)}),
      .actions = script.take()};
}

Preset stranger_releases() {
  Script script;
  script.acquire("owner", "door").acquire("owner", "lock").work("owner", 2s).release("owner", "lock");
  script.work("stranger", 1s).release("stranger", "door", "owner").release("stranger", "lock", "owner");
  return {.name = "stranger-releases",
          .title = "A semaphore of one is not a mutex",
          .sentences = {"A semaphore with one unit admits one task at a time, but it does not know which.",
                        "Any task that has the permit in its hands may return it.",
                        "A mutex knows its owner: an unlock by another task is an error, and the lock stays held."},
          .question = "A stranger releases the owner's permit, then unlocks the owner's mutex. What happens?",
          .choices = {"Both succeed", "The permit is returned, the unlock is denied", "Both are denied"},
          .answer = 1,
          .why = "A permit is a number of units; a mutex guard belongs to the chain of the task that locked it.",
          .code = show(kStrangerReleases),
          .run = lesson::stranger_releases,
          .setup = with({semaphore("door", 1), mutex("lock")}),
          .actions = script.take()};
}

Preset priority_inversion() {
  Script script;
  const auto scene = [&](const std::string& lock, const std::string& number) {
    const std::string low = "low" + number, high = "high" + number;
    script.visit("middle-a" + number, "processor", 10s);
    script.acquire(low, lock, 1, -1).acquire(low, "processor", 1, -1).work(low, 1s);
    script.release(low, "processor").release(low, lock);
    script.work(high, 1s).acquire(high, lock, 1, 3).work(high, 1s).release(high, lock);
    script.visit("middle-b" + number, "processor", 10s).visit("middle-c" + number, "processor", 10s);
    script.advance(40s);
  };
  scene("door", "1");
  scene("lock", "2");
  return {.name = "priority-inversion",
          .title = "Priority inversion, and its cure",
          .sentences = {"Low holds a lock and needs the processor; tasks of middle priority need it too, and go first.",
                        "High waits for the lock, so it waits for low, and thereby for every task in the middle.",
                        "A mutex knows its holder and lends it the priority of its highest waiter."},
          .question =
              "High asks for the lock after one second, three tasks in the middle compute for ten seconds each. "
              "How long does high wait for a semaphore as the lock, and how long for a mutex?",
          .choices = {"10 s for both", "30 s for both", "30 s for the semaphore, 10 s for the mutex"},
          .answer = 2,
          .why = "With the mutex, low has the priority of high and gets the processor after the first ten seconds.",
          .code = show(kPriorityInversion),
          .run = lesson::priority_inversion,
          .setup = with({semaphore("door", 1), mutex("lock"), semaphore("processor", 1)}),
          .actions = script.take()};
}

Preset large_request() {
  Script script;
  const auto scene = [&](const std::string& garage, const std::string& number) {
    for (int i = 0; i < 6; ++i) {
      const std::string name = "small-" + std::string(1, static_cast<char>('a' + i)) + number;
      script.work(name, 100ms + i * 1000ms).visit(name, garage, 1900ms);
    }
    script.work("large" + number, 600ms).visit("large" + number, garage, 1s, 2);
    script.advance(12s);
  };
  scene("unfair", "1");
  scene("fair", "2");
  return {.name = "large-request",
          .title = "A large request, starved and not",
          .sentences = {"A large request needs several units at once, and small ones fit into the gaps before it.",
                        "If every small request may overtake it, it waits for as long as small ones come.",
                        "In strict order the small ones wait behind it: a little is wasted, nothing starves."},
          .question =
              "Small tasks arrive at 0.1 s, 1.1 s … 5.1 s and stay for 1.9 s; at 0.6 s one arrives that needs both "
              "units. When does it enter if all may overtake it, and when if none may?",
          .choices = {"At 2 s and at 2 s", "At 7 s and at 2 s", "At 7 s and at 7 s"},
          .answer = 1,
          .why = "Overtaken by all, it enters after the last small one; in order, after the one that came before it.",
          .code = show(kLargeRequest),
          .run = lesson::large_request,
          .setup = with({semaphore("unfair", 2, 100), semaphore("fair", 2)}),
          .actions = script.take()};
}

Preset limit_or_reuse() {
  Script script;
  for (const char* task : {"a1", "b1", "c1", "d1", "e1", "f1"}) {
    script.acquire(task, "slots").acquire(task, "database").work(task, 1s);
    script.release(task, "database").release(task, "slots");
  }
  script.advance(4s);
  for (const char* task : {"a2", "b2", "c2", "d2", "e2", "f2"}) script.visit(task, "pool", 1s);
  return {.name = "limit-or-reuse",
          .title = "Limiting is not reuse",
          .sentences = {"A semaphore limits how many connections exist at once; each query still makes its own.",
                        "A pool limits as well, and keeps what is returned: the next query gets it.",
                        "It makes a connection only if a query has its turn and none is idle."},
          .question = "Six queries, two at a time. How many connections are made with a semaphore, how many by a pool?",
          .choices = {"2 and 2", "6 and 2", "6 and 6"},
          .answer = 1,
          .why = "The semaphore says when a query may begin, not what it works with; the pool reuses two four times.",
          .code = show(kLimitOrReuse),
          .run = lesson::limit_or_reuse,
          .setup = with({semaphore("slots", 2),
                         {.name = "database", .kind = Kind::server},
                         {.name = "pool", .kind = Kind::pool, .capacity = 2}}),
          .actions = script.take()};
}

Preset owned_timeout() {
  Script script;
  Action stream{.verb = Verb::stream, .task = "race", .units = 50, .time = 100ms, .timeout = 1050ms};
  script.add(stream).advance(6s);
  stream.task = "owner";
  stream.owned = true;
  script.add(stream);
  return {.name = "owned-timeout",
          .title = "A timeout that stops nothing",
          .sentences = {"A race against a clock ends the wait, not the work: a producer elsewhere does not notice.",
                        "Every token that it produces from then on is paid for, and nothing reads it.",
                        "A timeout that owns the producer stops it, and is over only when the producer is gone."},
          .question =
              "A model produces 50 tokens, one each 100 ms; the reader gives up after 1.05 s. How many tokens "
              "are lost after a race, and how many after an owned timeout?",
          .choices = {"40 and 0", "40 and 40", "0 and 0"},
          .answer = 0,
          .why = "Ten tokens are read in both cases; the abandoned producer makes the other forty as well.",
          .code = show(kOwnedTimeout),
          .run = lesson::owned_timeout,
          .setup = with({}),
          .actions = script.take()};
}

Preset cancelled_head() {
  Script script;
  script.visit("car", "garage", 5s).visit("bus", "garage", 1s, 3);
  script.visit("bike-a", "garage", 1s).visit("bike-b", "garage", 1s);
  script.advance(1s).add({.verb = Verb::cancel, .task = "bus"});
  return {.name = "cancelled-head",
          .title = "A cancelled head wakes those behind it",
          .sentences = {"The bus at the head needs three spaces, two are free, and two bikes wait behind it in order.",
                        "When the bus is cancelled, no unit is returned: nothing would wake the bikes by itself.",
                        "A semaphore that forgets them here leaves them asleep beside free spaces."},
          .question = "The bus is cancelled after one second. When do the bikes enter?",
          .choices = {"At that moment", "When the car leaves, after five seconds", "Never"},
          .answer = 0,
          .why = "Every change of the line ends with a look at the new head: both bikes fit at once.",
          .code = show(kCancelledHead),
          .run = lesson::cancelled_head,
          .setup = with({semaphore("garage", 3)}),
          .actions = script.take()};
}

Preset resize_with_debt() {
  Script script;
  script.visit("a", "garage", 1s).visit("b", "garage", 2s).visit("c", "garage", 3s);
  script.advance(500ms).add({.verb = Verb::resize, .resource = "garage", .capacity = 1});
  script.visit("d", "garage", 500ms);
  return {.name = "resize-with-debt",
          .title = "A resize with debt",
          .sentences = {"A capacity can be lowered while more units are held than it then allows.",
                        "Nothing is taken away: the difference is a debt, which returning permits pay first.",
                        "Only when it is paid and a unit is free does the next in line enter."},
          .question = "a, b and c are inside until 1, 2 and 3 s when the capacity becomes one. When does d enter?",
          .choices = {"At 1 s", "At 2 s", "At 3 s"},
          .answer = 2,
          .why = "The spaces of a and b pay the debt of two; that of c is the first that is free.",
          .code = show(kResizeWithDebt),
          .run = lesson::resize_with_debt,
          .setup = with({semaphore("garage", 3)}),
          .actions = script.take()};
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {three_at_two(),   stranger_releases(), priority_inversion(),
                                          large_request(),  limit_or_reuse(),    owned_timeout(),
                                          cancelled_head(), resize_with_debt()};
  return all;
}

const Preset* find_preset(std::string_view name) {
  const auto found = std::ranges::find(presets(), name, &Preset::name);
  return found == presets().end() ? nullptr : &*found;
}

Sandbox open(const Preset& preset) {
  Sandbox sandbox;
  sandbox.setup = preset.setup;
  sandbox.actions = preset.actions;
  sandbox.preset = preset.name;
  return sandbox;
}

}  // namespace stint::playground
