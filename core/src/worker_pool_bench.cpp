// The worker pool's figures; see core_bench.cpp for how it is called.
//   pool.throughput cap= workers= jobs=    → jobs per second, and latency from the submit until the result is set
//   pool.ping workers= jobs=               → one job at a time: submit, await the result
#include "bench_support.hpp"
#include "stint/asio.hpp"
#include "stint/worker_pool.hpp"

#include <deque>
#include <vector>

namespace stint::bench {
namespace {

struct Ping {
  TimePoint submitted;
  double* latency_us;  // set by the handler
};
using Pool = WorkerPool<Ping, int>;

Task<Result<int>> answer(Ping ping, JobContext&) {
  *ping.latency_us = ns_since(ping.submitted) / 1e3;
  co_return 1;
}

/// Takes results in order as soon as they are available, as the peers' collectors do.
Task<> submit_all(Pool& pool, std::vector<double>& latency_us, std::int64_t& done) {
  std::deque<Ticket<int>> pending;
  for (double& slot : latency_us) {
    auto ticket = co_await pool.enqueue(Ping{Clock::now(), &slot});
    pending.push_back(*std::move(ticket));
    while (!pending.empty() && pending.front().ended()) {
      done += (co_await pending.front().result()).value();
      pending.pop_front();
    }
  }
  for (auto& ticket : pending) done += (co_await ticket.result()).value();
}
Task<> ping_all(Pool& pool, std::vector<double>& latency_us, std::int64_t& done) {
  for (double& slot : latency_us) {
    double ignored = 0;
    const TimePoint start = Clock::now();
    done += (co_await pool.submit(Ping{start, &ignored})).value();
    slot = ns_since(start) / 1e3;
  }
}
Task<> then_drain(Pool& pool, Task<> work, TimePoint& ended) {
  co_await work;
  ended = Clock::now();
  (void)co_await pool.drain();
}

struct Measured {
  double seconds;
  std::vector<double> latency_us;
};
template <class Work>
Measured measure_pool(const Args& args, std::size_t capacity, Work work) {
  PoolOptions options;
  options.workers = static_cast<std::size_t>(args.number("workers"));
  options.queue_capacity = capacity;
  Pool pool(answer, options);
  Reactor reactor;
  RootScope scope(reactor);
  pool.start(scope);
  Measured measured{0, std::vector<double>(static_cast<std::size_t>(args.number("jobs")))};
  std::int64_t done = 0;
  const TimePoint start = Clock::now();
  TimePoint ended;
  scope.spawn(then_drain(pool, work(pool, measured.latency_us, done), ended));
  STINT_ASSERT(reactor.run(scope));
  measured.seconds = std::chrono::duration<double>(ended - start).count();
  if (done != args.number("jobs")) args.fail("lost jobs");
  return measured;
}

}  // namespace

void pool_throughput(const Args& args) {
  for (std::int64_t rep = 0; rep <= args.reps(); ++rep) {
    auto [seconds, latency_us] = measure_pool(args, static_cast<std::size_t>(args.number("cap")), submit_all);
    if (rep == 0) continue;
    args.emit("pool.throughput", static_cast<double>(args.number("jobs")) / seconds, "jobs/s");
    args.emit("pool.latency_p50", percentile(latency_us, 0.5), "us");
    args.emit("pool.latency_p99", percentile(latency_us, 0.99), "us");
  }
}
void pool_ping(const Args& args) {
  for (std::int64_t rep = 0; rep <= args.reps(); ++rep) {
    auto [seconds, latency_us] = measure_pool(args, 100, ping_all);
    if (rep == 0) continue;
    args.emit("pool.ping_p50", percentile(latency_us, 0.5), "us");
    args.emit("pool.ping_p99", percentile(latency_us, 0.99), "us");
  }
}

}  // namespace stint::bench
