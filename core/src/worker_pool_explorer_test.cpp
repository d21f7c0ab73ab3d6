// The explorer: callers on two executors, cancels, resizes and a drain, in an order drawn from a seed. After every step
// the pool's counters must add up; at the end every accepted job has ended exactly once. A failing seed reproduces the
// failure: `explore_pool(seed)`.
#include "worker_pool_test_support.hpp"

#include <set>

namespace stint {
namespace {

struct PoolWorld {
  static constexpr int kCallers = 6, kRounds = 4;
  static constexpr std::size_t kQueue = 3;

  explicit PoolWorld(std::uint64_t number) : seed(number) {}
  std::uint64_t draw(std::uint64_t below) { return random() % below; }
  Duration milliseconds(std::uint64_t most) { return std::chrono::milliseconds(draw(most + 1)); }
  Work work() {
    using enum Work::End;
    const Work::End ways[] = {succeeds, succeeds, succeeds, fails, throws, hangs};
    return {jobs++, draw(3) == 0 ? Duration::zero() : milliseconds(20), ways[draw(6)]};
  }
  JobOptions options(Executor& executor) {
    JobOptions options;
    if (draw(4) == 0) options.deadline = Deadline::after(executor.now(), milliseconds(15));
    return options;
  }
  void count_end(int job) { ++ends[job]; }

  const std::uint64_t seed;
  std::mt19937_64 random{seed};
  int jobs = 0;
  std::map<int, int> starts, ends;        // by job
  std::map<std::uint64_t, int> detached;  // accepted jobs without a holder, by id
  std::vector<JobId> ids;
  std::size_t largest = 2;
  int running = 0;
  std::string wrong;
  Hall hall;
  std::optional<Pool> pool;
  std::optional<Pool::DrainReport> report;
  std::vector<std::unique_ptr<RootScope>> scopes;      // the callers', then the pool's, then the troublemaker's
  std::optional<Simulator> near{seed}, far{seed + 1};  // last members: destroyed first, with every frame
};

Task<Result<int>> explored_job(PoolWorld& world, Work work, JobContext& context) {
  if (++world.starts[work.value] > 1) world.wrong = "started twice";
  struct Count {
    explicit Count(PoolWorld& in) : world(in) { ++world.running; }
    ~Count() { --world.running; }
    PoolWorld& world;
  } const count(world);
  if (world.draw(3) == 0) co_await yield();
  if (world.draw(8) == 0) context.scope().spawn(awaited(sleep_for(world.milliseconds(10))));
  auto result = co_await carry_work(world.hall, work, context);
  co_return result;
}

Task<> explored_caller(PoolWorld& world, Executor& executor) {
  Pool& pool = *world.pool;
  for (int round = 0; round < PoolWorld::kRounds; ++round) {
    for (auto pause = world.draw(4); pause > 0; --pause) co_await yield();
    if (world.draw(3) == 0) co_await sleep_for(world.milliseconds(10));
    const Work work = world.work();
    JobOptions options = world.options(executor);
    switch (world.draw(5)) {
      case 0: {
        const auto id = pool.submit_nowait(work, std::move(options));
        if (id) {
          world.ids.push_back(*id);
          world.detached[id->number] = work.value;
        }
        break;
      }
      case 1: {
        auto ticket = co_await pool.enqueue(work, std::move(options));
        if (!ticket) break;
        world.ids.push_back(ticket->id());
        if (world.draw(2) == 0) co_await sleep_for(world.milliseconds(10));
        if (world.draw(3) == 0) {
          if (ticket->ended()) break;
          world.detached[ticket->id().number] = work.value;
          ticket->detach();
        } else if (world.draw(2) == 0) {
          (void)co_await ticket->result();
          world.count_end(work.value);
        }
        break;
      }
      default: (void)co_await pool.submit(work, std::move(options)); world.count_end(work.value);
    }
  }
}

Task<> explored_drain(PoolWorld& world, DrainOptions options) {
  auto report = co_await world.pool->drain(options);
  if (!world.report) {
    world.report = std::move(report);
  } else {
    for (auto& job : report.jobs) world.report->jobs.push_back(std::move(job));
  }
}

Task<> explored_troubles(PoolWorld& world, Scope& own) {
  for (int i = 0; i < 14; ++i) {
    if (world.draw(2) == 0) {
      co_await sleep_for(world.milliseconds(8));
    } else {
      co_await yield();
    }
    switch (world.draw(4)) {
      case 0: world.scopes[world.draw(PoolWorld::kCallers)]->cancel(); break;
      case 1:
        if (!world.ids.empty()) world.pool->cancel(world.ids[world.draw(world.ids.size())]);
        break;
      case 2: {
        const std::size_t size = world.draw(5);
        world.largest = std::max(world.largest, size);
        (void)world.pool->resize(size);
        break;
      }
      default: break;
    }
  }
  if (world.draw(8) == 0) world.scopes[PoolWorld::kCallers]->cancel();  // the pool's own scope
  for (auto drains = 1 + world.draw(2); drains > 0; --drains) {
    DrainOptions options;
    options.timeout = world.milliseconds(60);
    if (world.draw(3) == 0) options.rest = DrainOptions::Rest::cancel;
    own.spawn(explored_drain(world, options));
    if (world.draw(2) == 0) co_await sleep_for(world.milliseconds(30));
  }
}

std::string check(PoolWorld& world) {
  if (!world.wrong.empty()) return world.wrong;
  const PoolHealth health = world.pool->health();
  std::size_t carried = 0;
  for (const WorkerHealth& worker : health.workers) carried += worker.job.has_value();
  if (health.workers.size() != health.pool_size) return "the list differs from the count";
  if (static_cast<std::size_t>(world.running) > health.pool_size) return "more running than workers";
  if (static_cast<std::size_t>(world.running) > world.largest) return "more running than were ever asked for";
  if (health.queue_size > PoolWorld::kQueue) return "the queue is over its capacity";
  if (health.waiting_for_room != 0 && health.queue_size < PoolWorld::kQueue)
    return "a submitter waits although there is room";
  if (health.total_accepted != health.total_completed + health.total_failed + health.total_cancelled +
                                   health.total_handed_back + health.queue_size + carried) {
    return "the account does not add up";
  }
  return "";
}

std::string check_end(PoolWorld& world) {
  if (world.running != 0) return "a job still runs";
  const PoolHealth health = world.pool->health();
  if (!health.draining || health.pool_size != 0 || health.queue_size != 0) return "something is left in the pool";
  if (!world.report) return "no report";
  for (const auto& handed : world.report->jobs) {
    world.count_end(handed.job.value);
    if (world.starts.contains(handed.job.value)) return "handed back after it had begun";
  }
  for (const auto& [id, job] : world.detached) {
    if (world.ends[job] != 1) return "a forgotten job ended " + std::to_string(world.ends[job]) + " times";
  }
  for (const auto& [job, count] : world.ends) {
    if (count > 1) return "a job ended twice";
  }
  return "";
}

/// The failure found with this seed; empty if none.
std::string explore_pool(std::uint64_t seed) {
  PoolWorld world(seed);
  for (int i = 0; i < PoolWorld::kCallers + 2; ++i) {
    world.scopes.push_back(
        std::make_unique<RootScope>(i < PoolWorld::kCallers && i % 2 == 0 ? *world.far : *world.near));
  }
  Scope& pools = *world.scopes[PoolWorld::kCallers];
  PoolOptions options;
  options.workers = 2;
  options.queue_capacity = PoolWorld::kQueue;
  world.pool.emplace(
      pools, [&world](Work work, JobContext& context) { return explored_job(world, work, context); }, options);
  world.pool->on_done([&world](JobId id, Result<int>) {
    const auto found = world.detached.find(id.number);
    if (found != world.detached.end()) world.count_end(found->second);
  });
  for (int i = 0; i < PoolWorld::kCallers; ++i) {
    Scope& caller = *world.scopes[static_cast<std::size_t>(i)];
    caller.spawn(explored_caller(world, caller.executor()));
  }
  world.scopes.back()->spawn(explored_troubles(world, *world.scopes.back()));
  while (!std::ranges::all_of(world.scopes, [](auto& scope) { return scope->idle(); })) {
    const bool first = world.draw(2) == 0;
    if (!(first ? *world.near : *world.far).step() && !(first ? *world.far : *world.near).step()) {
      return "a wait can never complete";
    }
    if (auto wrong = check(world); !wrong.empty()) return wrong;
  }
  return check_end(world);
}

TEST(PoolExplorer, five_thousand_seeds_end_every_job_once) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    ASSERT_EQ(explore_pool(seed), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace stint
