// A worker pool that grows under load, shrinks when idle, and drains without losing a job.
//
// Look at the table: 40 jobs of 20 s arrive at once, then three that take hours. The pool starts with 2 workers, grows
// in steps, shrinks back, and is drained with a timeout: jobs that have not started are handed back, jobs that run too
// long are cancelled. Every accepted job ends in exactly one of four ways. Virtual time.
#include "stint/testing.hpp"
#include "stint/worker_pool.hpp"

#include <cstdio>

using namespace stint;
using namespace std::chrono_literals;

// [pool]
struct Job {
  Duration takes{};
};

/// Runs in its own scope, which ends with the job.
Task<Result<>> carry(Job job, JobContext&) {
  co_await sleep_for(job.takes);
  co_return Result<>();
}

PoolOptions options() {
  AutoscaleOptions scale;  // every 10 s: grow above 80 % busy, shrink below 30 %
  scale.min = 2;
  scale.max = 8;
  PoolOptions pool;
  pool.workers = 2;
  pool.queue_capacity = 50;
  pool.autoscale = scale;
  return pool;
}
// [/pool]

void show(const Simulator& simulator, const PoolHealth& health) {
  std::printf("%5d s   workers %2d   busy %3.0f %%   queue %2d   completed %2d\n",
              static_cast<int>((simulator.now() - TimePoint()) / 1s), static_cast<int>(health.pool_size),
              100 * health.utilization, static_cast<int>(health.queue_size), static_cast<int>(health.total_completed));
}

int main() {
  Simulator simulator;
  WorkerPool<Job> pool(carry, options());
  RootScope scope(simulator);
  pool.start(scope);

  for (int i = 0; i < 40; ++i) (void)pool.submit_nowait({20s});
  std::size_t most = 0;
  for (int i = 0; i <= 10; ++i) {
    show(simulator, pool.health());
    most = std::max(most, pool.health().pool_size);
    simulator.advance(30s);
  }
  const PoolHealth quiet = pool.health();

  std::printf("three jobs of hours, and a drain with 60 s:\n");
  for (int i = 0; i < 3; ++i) (void)pool.submit_nowait({5h});
  simulator.run_ready();
  WorkerPool<Job>::DrainReport report;
  auto drain = [&]() -> Task<> { report = co_await pool.drain(60s); };
  scope.spawn(drain());
  simulator.run_ready();
  const Result<JobId> refused = pool.submit_nowait({1s});
  std::printf("a job that comes now: %s\n", refused ? "accepted" : refused.error().describe().c_str());
  simulator.settle();

  std::printf("drained in %d s: cancelled %d, handed back %d\n", static_cast<int>(report.time / 1s),
              static_cast<int>(report.cancelled), static_cast<int>(report.handed_back));
  const PoolHealth end = pool.health();
  const bool all_ended =
      end.total_accepted == end.total_completed + end.total_failed + end.total_cancelled + end.total_handed_back;
  std::printf("accepted %d = completed %d + failed %d + cancelled %d + handed back %d\n",
              static_cast<int>(end.total_accepted), static_cast<int>(end.total_completed),
              static_cast<int>(end.total_failed), static_cast<int>(end.total_cancelled),
              static_cast<int>(end.total_handed_back));
  const bool scaled = most == 8 && quiet.pool_size == 2;
  const bool drained = report.cancelled == 2 && report.handed_back == 1 && report.time == 60s && end.pool_size == 0;
  return all_ended && scaled && drained && !refused ? 0 : 1;
}
