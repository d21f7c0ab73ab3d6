// Priority inversion, and its cure.
//
// Low holds a lock and needs the processor to make progress. Five tasks of middle priority need the processor too, and
// go before low. High needs the lock: so it waits for low, and low waits for all tasks in the middle. High runs last:
// its priority is inverted. The program runs the scenario twice: with a semaphore of 1 as the lock, and with a Mutex. A
// mutex knows its holder, and the holder inherits the priority of its highest waiter. Virtual time.
#include "stint/mutex.hpp"
#include "stint/scope.hpp"
#include "stint/semaphore.hpp"
#include "stint/testing.hpp"

#include <cstdio>

using namespace stint;
using namespace std::chrono_literals;

struct World {
  Simulator simulator{0, Simulator::Order::fifo};
  Semaphore processor{"processor", 1};
  Duration high_waited{};

  void say(const char* task, const char* what) const {
    std::printf("  %3d s  %-6s %s\n", static_cast<int>((simulator.now() - TimePoint()) / 1s), task, what);
  }
};

Task<> compute(World& world, const char* task, int priority, Duration time) {
  const Result<Permit> permit = co_await world.processor.acquire({.priority = priority});
  world.say(task, "computes");
  co_await sleep_for(time);
}

// [locks]
Task<Result<Permit>> take(Semaphore& lock, int priority) { co_return co_await lock.acquire({.priority = priority}); }
Task<Result<MutexGuard>> take(Mutex& lock, int priority) { co_return co_await lock.lock(priority); }

template <class Lock>
Task<> low(World& world, Lock& lock) {
  const auto held = co_await take(lock, -1);
  world.say("low", "has the lock");
  co_await compute(world, "low", -1, 1s);
  world.say("low", "is done, and unlocks");
}

template <class Lock>
Task<> high(World& world, Lock& lock) {
  co_await sleep_for(1s);
  world.say("high", "wants the lock");
  const auto held = co_await take(lock, 3);
  world.high_waited = world.simulator.now() - TimePoint(1s);
  world.say("high", "has the lock");
}
// [/locks]

template <class Lock>
Duration run_scenario(const char* title, Lock& lock) {
  std::printf("%s:\n", title);
  World world;
  RootScope scope(world.simulator);
  scope.spawn(compute(world, "middle", 0, 10s));  // has the processor before low asks for it
  scope.spawn(low(world, lock));
  scope.spawn(high(world, lock));
  world.simulator.run_ready();
  for (int i = 0; i < 4; ++i) scope.spawn(compute(world, "middle", 0, 10s));
  world.simulator.settle();
  return world.high_waited;
}

int main() {
  Semaphore semaphore("lock", 1);
  const Duration inverted = run_scenario("a semaphore of 1 as the lock", semaphore);
  Mutex mutex("lock");
  const Duration cured = run_scenario("a mutex with priority inheritance", mutex);
  std::printf("high waited %d s for the semaphore, and %d s for the mutex\n", static_cast<int>(inverted / 1s),
              static_cast<int>(cured / 1s));
  return inverted == 50s && cured == 10s ? 0 : 1;
}
