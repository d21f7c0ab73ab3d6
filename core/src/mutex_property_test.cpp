// Random locking of three mutexes and a processor, in all orders, with cancels and deadlines. After every step the
// effective priorities are compared with a naive rule that starts from the listings and applies "a holder's priority is
// its highest waiter's" until nothing changes. A failing seed reproduces the failure: `explore(seed)`.
#include "stint/mutex.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace stint {
namespace {

struct MutexWorld {
  static constexpr int kWorkers = 6, kRounds = 4;
  explicit MutexWorld(std::uint64_t seed) { sim.emplace(seed); }
  std::uint64_t draw(std::uint64_t below) { return sim->random()() % below; }
  int draw_priority() { return static_cast<int>(draw(8)) + Semaphore::kPriorityMin; }

  Mutex mutexes[3] = {Mutex("a"), Mutex("b"), Mutex("c")};
  Semaphore cpu{"cpu", 1};
  int inside[3] = {};
  int circles = 0, locked = 0, boosted = 0;
  std::map<std::string, int> asked_of_cpu;
  std::string wrong;
  std::vector<std::unique_ptr<RootScope>> scopes;
  std::optional<Simulator> sim;  // last member: destroyed first, with every frame
};

struct Inside {
  Inside(MutexWorld& where, std::size_t which) : world(where), index(which) {
    if (++world.inside[index] > 1) world.wrong = "two hold one mutex";
    ++world.locked;
  }
  ~Inside() { --world.inside[index]; }
  MutexWorld& world;
  std::size_t index;
};
struct HeldMutex {
  MutexGuard guard;
  std::unique_ptr<Inside> inside;
};

Task<Result<MutexGuard>> draw_lock(MutexWorld& world, Mutex& mutex, const LockOptions& options) {
  switch (world.draw(4)) {
    case 0: co_return co_await with_deadline(Deadline(world.sim->now() + 20ms), awaited(mutex.lock(options)));
    case 1: {
      LockOptions timed = options;
      timed.deadline = Deadline(world.sim->now() + std::chrono::milliseconds(world.draw(20)));
      co_return co_await mutex.lock(timed);
    }
    default: co_return co_await mutex.lock(options);
  }
}
Task<> draw_run(MutexWorld& world, const std::string& caller) {
  AcquireOptions options;
  options.priority = world.asked_of_cpu[caller] = world.draw_priority();
  options.label = caller;
  const auto permit = co_await world.cpu.acquire(options);
  if (world.draw(2) == 0) co_await sleep_for(std::chrono::milliseconds(1 + world.draw(3)));
}
Task<> explored_worker(MutexWorld& world, int id) {
  const std::string caller = std::to_string(id);
  for (int round = 0; round < MutexWorld::kRounds; ++round) {
    for (auto pause = world.draw(3); pause > 0; --pause) co_await yield();
    std::size_t order[] = {0, 1, 2};
    std::ranges::shuffle(order, world.sim->random());
    std::vector<HeldMutex> held;
    for (std::size_t i = 0; i <= world.draw(3); ++i) {
      LockOptions options;
      options.priority = world.draw_priority();
      options.label = caller;
      auto guard = co_await draw_lock(world, world.mutexes[order[i]], options);
      if (!guard) {
        world.circles += guard.error() == Errc::conflict;
        break;  // releases everything
      }
      held.push_back({std::move(*guard), std::make_unique<Inside>(world, order[i])});
      if (world.draw(2) == 0) co_await draw_run(world, caller);
    }
    while (!held.empty() && world.draw(3) != 0) {  // the rest is released with the frame
      held.back().inside.reset();
      if (!co_await held.back().guard.unlock()) world.wrong = "the owner was not allowed to unlock";
      held.pop_back();
      if (world.draw(2) == 0) co_await yield();
    }
  }
}
Task<> explored_troubles(MutexWorld& world) {
  for (int i = 0; i < 8; ++i) {
    co_await sleep_for(std::chrono::milliseconds(world.draw(8)));
    if (world.draw(4) == 0) world.scopes[world.draw(MutexWorld::kWorkers)]->cancel();
  }
}

/// All effective priorities, by iterating the rule to a fixed point.
std::map<std::string, int> naive(const MutexWorld& world) {
  std::map<std::string, int> effective;
  for (const Mutex& mutex : world.mutexes) {
    for (const auto& waiter : mutex.waiters()) effective[waiter.label] = waiter.priority;
  }
  for (const auto& waiter : world.cpu.waiters()) effective[waiter.label] = world.asked_of_cpu.at(waiter.label);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Mutex& mutex : world.mutexes) {
      const auto holder = mutex.holder();
      if (!holder || !effective.contains(holder->label)) continue;  // free, or its holder does not wait
      for (const auto& waiter : mutex.waiters()) {
        if (effective[waiter.label] <= effective[holder->label]) continue;
        effective[holder->label] = effective[waiter.label];
        changed = true;
      }
    }
  }
  return effective;
}
void compare(MutexWorld& world) {
  auto effective = naive(world);
  for (const Mutex& mutex : world.mutexes) {
    const auto waiters = mutex.waiters();
    for (const auto& waiter : waiters) {
      if (waiter.effective != effective[waiter.label]) world.wrong = "a priority in a mutex's line differs";
      world.boosted += waiter.effective > waiter.priority;
    }
    if (!std::ranges::is_sorted(waiters, std::greater<>(), &Mutex::Waiter::effective)) {
      world.wrong = "a mutex's line is not in order";
    }
  }
  for (const auto& waiter : world.cpu.waiters()) {
    if (waiter.priority != effective[waiter.label]) world.wrong = "a priority in the semaphore's line differs";
    world.boosted += waiter.priority > world.asked_of_cpu[waiter.label];
  }
}

struct Outcome {
  std::string wrong;  // empty if there is no failure
  int circles = 0, locked = 0, boosted = 0;
};
Outcome explore(std::uint64_t seed) {
  MutexWorld world(seed);
  for (int id = 0; id <= MutexWorld::kWorkers; ++id) world.scopes.push_back(std::make_unique<RootScope>(*world.sim));
  for (int id = 0; id < MutexWorld::kWorkers; ++id)
    world.scopes[static_cast<std::size_t>(id)]->spawn(explored_worker(world, id));
  world.scopes.back()->spawn(explored_troubles(world));
  const auto all_idle = [&world] {
    return std::ranges::all_of(world.scopes, [](auto& scope) { return scope->idle(); });
  };
  while (!all_idle() && world.wrong.empty()) {
    if (!world.sim->step()) world.wrong = "a wait can never complete";
    compare(world);
  }
  for (const Mutex& mutex : world.mutexes) {
    if (world.wrong.empty() && mutex.holder()) world.wrong = "a mutex stayed locked";
  }
  return {world.wrong, world.circles, world.locked, world.boosted};
}

TEST(MutexExplorer, three_thousand_seeds_agree_with_the_naive_rule) {
  Outcome sum;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Outcome outcome = explore(seed);
    ASSERT_EQ(outcome.wrong, "") << "seed " << seed;
    sum.circles += outcome.circles;
    sum.locked += outcome.locked;
    sum.boosted += outcome.boosted;
  }
  EXPECT_GT(sum.circles, 0);
  EXPECT_GT(sum.boosted, 0);
  std::printf("  locked %d times, %d circles refused, %d steps with a boost\n", sum.locked, sum.circles, sum.boosted);
}

}  // namespace
}  // namespace stint
