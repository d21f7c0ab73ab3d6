// One deadline over retries, waits and nested work; and a cancel that leaves nothing running.
//
// A timeout that stops only the waiting leaves the work running, which keeps costing money. `alive` counts the calls
// that are really running. When the result is returned, whatever it is, the count is 0. Virtual time.
#include "stint/retry.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <cstdio>

using namespace stint;
using namespace std::chrono_literals;

struct World {
  Simulator simulator;
  SeededRandom random{7};
  int alive = 0;
  int failures = 0;  // of the next attempts
  bool hangs = false;

  int now_ms() const { return static_cast<int>((simulator.now() - TimePoint()) / 1ms); }
};

// [work]
/// One upstream call. However it ends, the count is right: a stop destroys the frame, which runs destructors.
Task<Result<int>> call(World& world, Duration takes) {
  struct Alive {
    explicit Alive(int& all) : count(all) { ++count; }
    ~Alive() { --count; }
    int& count;
  };
  const Alive alive(world.alive);
  co_await sleep_for(world.hangs ? Duration(1h) : takes);
  co_return 1;
}

/// One attempt: two calls at once. If one of them fails, the other is stopped.
Task<Result<int>> attempt(World& world, std::uint32_t number) {
  std::printf("  %4d ms  attempt %u\n", world.now_ms(), number);
  STINT_CO_TRY(auto both, co_await all(call(world, 100ms), call(world, 300ms)));
  if (world.failures-- > 0) co_return fail(Error(Errc::unavailable, Retry::safe, "the upstream is overloaded"));
  co_return std::get<0>(both) + std::get<1>(both);
}

/// All of it under one deadline.
Task<Result<int>> answer(World& world, Duration within) {
  const RetryPolicy policy{.attempts_max = 5};
  const auto one = [&](std::uint32_t number) { return attempt(world, number); };
  const auto body = [&](Scope&) { return retry(policy, one, {.random = &world.random}); };
  co_return co_await with_scope({.deadline = Deadline::after(world.simulator.now(), within)}, body);
}
// [/work]

/// Runs one scenario, cancelled from outside at `cancel_at`; returns its result, if it ended by itself.
std::optional<Result<int>> tell(World& world, Duration within, std::optional<Duration> cancel_at = {}) {
  std::optional<Result<int>> end;
  auto program = [&]() -> Task<> { end = co_await answer(world, within); };
  RootScope scope(world.simulator);
  scope.spawn(program());
  if (cancel_at) {
    world.simulator.advance(*cancel_at);
    std::printf("  %4d ms  cancel; calls at work: %d\n", world.now_ms(), world.alive);
    scope.cancel(Reason::user, "no longer needed");
  }
  world.simulator.settle();
  const std::string how = !end ? "gone" : *end ? "answer " + std::to_string(**end) : end->error().describe();
  std::printf("  %4d ms  %s; calls at work: %d\n", world.now_ms(), how.c_str(), world.alive);
  return end;
}

int main() {
  std::printf("two failures, then an answer:\n");
  World busy;
  busy.failures = 2;
  const auto answered = tell(busy, 5s);
  bool good = answered && *answered && **answered == 2 && busy.alive == 0;

  std::printf("the upstream hangs, the deadline is one second:\n");
  World hung;
  hung.hangs = true;
  const auto late = tell(hung, 1s);
  good = good && late && !*late && late->error() == Errc::timed_out && hung.now_ms() == 1000 && hung.alive == 0;

  std::printf("cancelled in the middle of the second attempt:\n");
  World cancelled;
  cancelled.failures = 2;
  good = good && !tell(cancelled, 5s, 800ms) && cancelled.now_ms() == 800 && cancelled.alive == 0;
  return good ? 0 : 1;
}
