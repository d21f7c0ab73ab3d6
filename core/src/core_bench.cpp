// The library's figures, one bench per call: `core_bench BENCH key=value…` prints one JSON line per sample.
// `bench/run.py core` calls it beside the peers, which answer to the same names and keys:
//   sem.uncontended n= [holders=on]            sem.contended threads= tasks= iters= permits= [order=blocks]
//   sem.waiter_mem n= timed=0|1 [frames=2]     sem.cancel n=
//   spawn n=    await_child n=    sleep n=     scope.timer n= [kind=deadline]
//   pool.throughput, pool.ping: worker_pool_bench.cpp
// Those with memory make one sample per process. Spawned tasks take references: what they name outlives its reactor.
#include "bench_support.hpp"
#include "stint/asio.hpp"
#include "stint/scope.hpp"
#include "stint/semaphore.hpp"

#include <thread>
#include <vector>

namespace stint::bench {
namespace {

using namespace std::chrono_literals;

Task<> pairs(Semaphore& semaphore, std::int64_t count, double& ns) {
  const TimePoint start = Clock::now();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto permit = co_await semaphore.acquire();
  }
  ns = ns_since(start) / static_cast<double>(count);
}
double uncontended(const Args& args) {
  Semaphore::Options options;
  options.track_holders = args.text("holders", "off") == "on";
  Semaphore semaphore("bench", 10, options);
  Reactor reactor;
  RootScope scope(reactor);
  double ns = 0;
  scope.spawn(pairs(semaphore, args.number("n"), ns));
  STINT_ASSERT(reactor.run(scope));
  return ns;
}

/// Joins the line in a fixed order, so that the order is deterministic.
Task<> holds(Semaphore& semaphore, std::size_t place, std::int64_t iters) {
  while (semaphore.waiting() != place) std::this_thread::yield();
  for (std::int64_t i = 0; i < iters; ++i) {
    const auto permit = co_await semaphore.acquire();
    co_await yield();
  }
}
/// One reactor per thread, tasks distributed evenly, one semaphore; the clock starts when all of them wait. Threads
/// alternate in the line, so that every hand-over crosses threads; with `order=blocks` each thread's tasks are
/// adjacent.
double contended(const Args& args) {
  const std::int64_t threads = args.number("threads");
  const std::int64_t each = args.number("tasks") / threads;
  const std::int64_t iters = args.number("iters");
  const bool blocks = args.text("order", "turns") == "blocks";
  Semaphore::Options options;
  options.initially_held = static_cast<std::uint32_t>(args.number("permits"));
  Semaphore semaphore("bench", args.number("permits"), options);
  const auto work = [&](std::int64_t thread) {
    Reactor reactor;
    RootScope scope(reactor);
    for (std::int64_t i = 0; i < each; ++i) {
      const std::int64_t place = blocks ? thread * each + i : i * threads + thread;
      scope.spawn(holds(semaphore, static_cast<std::size_t>(place), iters));
    }
    STINT_ASSERT(reactor.run(scope));
  };
  std::vector<std::thread> workers;
  for (std::int64_t i = 0; i < threads; ++i) workers.emplace_back(work, i);
  while (semaphore.waiting() != static_cast<std::size_t>(each * threads)) std::this_thread::yield();
  const TimePoint start = Clock::now();
  STINT_ASSERT(semaphore.release(options.initially_held));
  for (auto& worker : workers) worker.join();
  return ns_since(start) / static_cast<double>(each * threads * iters);
}

Task<> nothing() { co_return; }
double spawned(const Args& args) {
  const std::int64_t count = args.number("n");
  Reactor reactor;
  RootScope scope(reactor);
  const TimePoint start = Clock::now();
  for (std::int64_t i = 0; i < count; ++i) {
    scope.spawn(nothing());
    if (i % 1000 == 999) STINT_ASSERT(reactor.run(scope));
  }
  STINT_ASSERT(reactor.run(scope));
  return ns_since(start) / static_cast<double>(count);
}
Task<> awaits(std::int64_t count, double& ns) {
  const TimePoint start = Clock::now();
  for (std::int64_t i = 0; i < count; ++i) co_await nothing();
  ns = ns_since(start) / static_cast<double>(count);
}
double awaited_children(const Args& args) {
  Reactor reactor;
  RootScope scope(reactor);
  double ns = 0;
  scope.spawn(awaits(args.number("n"), ns));
  STINT_ASSERT(reactor.run(scope));
  return ns;
}

Task<> parks(Semaphore& semaphore) { (void)co_await semaphore.acquire(); }
Task<> parks_below(Semaphore& semaphore) { co_await parks(semaphore); }
Task<> parks_timed(Semaphore& semaphore, TimePoint when) { (void)co_await semaphore.acquire_until(when); }
Task<> sleeps(TimePoint when) { co_await sleep_until(when); }
Task<> deadline_scope(Semaphore& semaphore, TimePoint when) {
  (void)co_await with_deadline(Deadline(when), parks(semaphore));
}
Task<> timer_scope(Semaphore& semaphore, TimePoint when) {
  ScopeOptions options;
  options.deadline = Deadline(when);
  const auto open = [&semaphore](Scope& scope) -> Task<> {
    scope.spawn(parks(semaphore));
    co_return;
  };
  (void)co_await with_scope(options, open);
}

/// Many tasks that park, each created by `make(semaphore, time)`; the semaphore is never released.
class Crowd {
 public:
  Crowd() : held_(semaphore_.try_acquire()) {}

  template <class Make>
  void start(std::int64_t count, Make make) {
    // One time per millisecond of a minute, an hour from now: a wheel with timers in many slots.
    const TimePoint base = reactor_.now() + 1h;
    for (std::int64_t i = 0; i < count; ++i) scope_.spawn(make(semaphore_, base + i % 60'000 * 1ms));
    for (int round = 0; round < kRoundsToPark; ++round) {
      Mark mark;
      reactor_.post(mark);
      reactor_.run_until([&mark] { return mark.reached; });
    }
  }
  void cancel() {
    scope_.cancel();
    reactor_.run_until([this] { return scope_.idle(); });  // run() would report that it was cancelled
  }

 private:
  static constexpr int kRoundsToPark = 4;  // a combinator starts its branches one round later
  struct Mark final : Runnable {
    void run() noexcept override { reached = true; }
    bool reached = false;
  };

  Semaphore semaphore_{"bench", 1};
  std::optional<Permit> held_;
  Reactor reactor_;
  RootScope scope_{reactor_};
};

void waiter_memory(const Args& args) {
  const std::int64_t count = args.number("n");
  const bool timed = args.number("timed") == 1;
  const bool two_frames = args.text("frames", "1") == "2";
  Crowd crowd;
  const double before = resident_bytes();
  crowd.start(count, [timed, two_frames](Semaphore& semaphore, TimePoint when) {
    if (timed) return parks_timed(semaphore, when);
    return two_frames ? parks_below(semaphore) : parks(semaphore);
  });
  args.emit("sem.waiter_mem", (resident_bytes() - before) / static_cast<double>(count), "bytes");
  crowd.cancel();
}
double cancelled_waiters(const Args& args) {
  const std::int64_t count = args.number("n");
  Crowd crowd;
  crowd.start(count, [](Semaphore& semaphore, TimePoint) { return parks(semaphore); });
  const TimePoint start = Clock::now();
  crowd.cancel();
  return ns_since(start) / static_cast<double>(count);
}

template <class Make>
void start_and_cancel(const Args& args, const std::string& prefix, Make make) {
  const auto total = static_cast<double>(args.number("n"));
  Crowd crowd;
  const double before = resident_bytes();
  TimePoint start = Clock::now();
  crowd.start(args.number("n"), make);
  args.emit(prefix + "start", ns_since(start) / total, "ns");
  args.emit(prefix + "mem", (resident_bytes() - before) / total, "bytes");
  start = Clock::now();
  crowd.cancel();
  args.emit(prefix + "cancel", ns_since(start) / total, "ns");
}
void sleepers(const Args& args) {
  start_and_cancel(args, "sleep.", [](Semaphore&, TimePoint when) { return sleeps(when); });
}
void timer_scopes(const Args& args) {
  const bool deadline = args.text("kind", "scope") == "deadline";
  start_and_cancel(args, "scope.timer_", [deadline](Semaphore& semaphore, TimePoint when) {
    return deadline ? deadline_scope(semaphore, when) : timer_scope(semaphore, when);
  });
}

void measure(const Args& args) {
  const std::string& bench = args.bench();
  if (bench == "sem.uncontended") return repeat(args, uncontended);
  if (bench == "sem.contended") return repeat(args, contended);
  if (bench == "sem.waiter_mem") return waiter_memory(args);
  if (bench == "sem.cancel") return repeat(args, cancelled_waiters);
  if (bench == "spawn") return repeat(args, spawned);
  if (bench == "await_child") return repeat(args, awaited_children);
  if (bench == "sleep") return sleepers(args);
  if (bench == "scope.timer") return timer_scopes(args);
  if (bench == "pool.throughput") return pool_throughput(args);
  if (bench == "pool.ping") return pool_ping(args);
  args.fail("not a bench of this program");
}

}  // namespace
}  // namespace stint::bench

int main(int argc, char** argv) { stint::bench::measure(stint::bench::Args(argc, argv)); }
