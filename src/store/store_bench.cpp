// Stores, one bench per call: `store_bench BENCH key=value…` prints one JSON line per sample.
//   drain store= runs= batch= carriers=   queued runs are claimed and settled until the store has them all
//   latency store= rounds=                submit → claimed, one at a time, by a waiting node of the same process
//   depth store= most= rounds=            one claim with 1000, 10,000, … `most` queued runs
//   blocked store= blocked= runs= batch=  one agent drained, beside another with one or many runs that may not start
//   ready store= agents= runs= rounds= most=  the agents with ready runs, with `runs` queued over `agents`
// `store` is memory, sqlite or postgres; STINT_BENCH_POSTGRES names the database of the last, which must be new.
// `events=off`: measures the cost of events.
#include "bench_support.hpp"
#include "domain/run_id.hpp"
#include "os/blocking_run.hpp"
#include "stint/asio.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"
#include "store/memory_store.hpp"
#include "store/postgres_store.hpp"
#include "store/sqlite_store.hpp"
#include "store_sql_postgres_bench.hpp"
#include "store_sql_sqlite_bench.hpp"

#include <filesystem>
#include <memory>

namespace stint::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSubmitBatch = 2000;
constexpr std::uint32_t kCapacity = 10'000;  // of each agent: checked at every claim, never reached
constexpr Duration kBeat = 3s;
constexpr Duration kIdle = 5ms;

class Bench {
 public:
  explicit Bench(const Args& args) : args_(args) {
    directory_ = std::filesystem::current_path().string() + "/store-bench-XXXXXX";
    if (::mkdtemp(directory_.data()) == nullptr) args.fail("no temporary directory");
    open(args.text("store", "sqlite"), args.text("events", "on") == "on");
    define("a", kCapacity);
    define("b", kCapacity);
    node_ = get(store_->enrol("bench"));
  }
  ~Bench() {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void drain() {
    const std::int64_t runs = args_.number("runs");
    const TimePoint start = Clock::now();
    submit("a", runs);
    args_.emit("drain.submit", static_cast<double>(runs) * 1e9 / ns_since(start), "runs/s");
    args_.emit("drain", drain_rate("a", runs), "runs/s");
  }

  void latency() {
    std::vector<double> ms;
    std::uint64_t seen = 0;
    for (std::int64_t round = 0; round < args_.number("rounds"); ++round) {
      TimePoint submitted, claimed;
      std::vector<store::Claim> claims;
      auto work = [&]() -> Task<Result<>> {
        while (claims.empty()) {
          STINT_CO_TRY(seen, co_await store_->wait(seen, 1s));
          STINT_CO_TRY(claims, co_await store_->claim(node_, "a", 1));
          claimed = Clock::now();
        }
        co_return Result<>();
      };
      auto submit_one = [&]() -> Task<Result<>> {
        co_await sleep_for(kIdle);  // the node waits by then
        submitted = Clock::now();
        STINT_CO_CHECK(co_await store_->enqueue({fresh("a")}));
        co_return Result<>();
      };
      auto both = [&]() -> Task<Result<>> {
        STINT_CO_CHECK(co_await all(work(), submit_one()));
        co_return Result<>();
      };
      get(both());
      ms.push_back(std::chrono::duration<double, std::milli>(claimed - submitted).count());
      get(complete(claims));
    }
    args_.emit("latency.p50", percentile(ms, 0.5), "ms");
    args_.emit("latency.p99", percentile(ms, 0.99), "ms");
  }

  void depth() {
    std::int64_t waiting = 0;
    for (std::int64_t depth = 1000; depth <= args_.number("most"); depth *= 10) {
      submit("a", depth - waiting);
      calm_down();
      std::vector<double> ms;
      for (std::int64_t round = 0; round < args_.number("rounds"); ++round) {
        get(store_->beat(node_));
        const TimePoint start = Clock::now();
        const auto claims = get(store_->claim(node_, "a", 1));
        ms.push_back(ns_since(start) / 1e6);
        if (claims.empty()) args_.fail("nothing to claim");
        get(complete(claims));
      }
      waiting = depth - args_.number("rounds");
      args_.emit("depth." + std::to_string(depth), percentile(ms, 0.5), "ms");
    }
  }

  void ready() {
    const std::int64_t agents = args_.number("agents");
    for (std::int64_t i = 0; i < agents; ++i) define("r" + std::to_string(i), 1);
    for (std::int64_t i = 0; i < agents; ++i) submit("r" + std::to_string(i), args_.number("runs") / agents);
    calm_down();
    std::vector<double> ms;
    for (std::int64_t round = 0; round < args_.number("rounds"); ++round) {
      const TimePoint start = Clock::now();
      if (std::ssize(get(store_->ready(static_cast<std::uint32_t>(args_.number("most"))))) != agents)
        args_.fail("not all are ready");
      ms.push_back(ns_since(start) / 1e6);
    }
    args_.emit("ready", percentile(ms, 0.5), "ms");
  }

  void blocked() {
    const std::int64_t runs = args_.number("runs");
    define("blocked", 1);
    submit("blocked", 2);
    submit("a", 3 * runs);
    if (get(store_->claim(node_, "blocked", 1)).size() != 1) args_.fail("nothing to claim");
    drain_rate("a", runs, "blocked");  // warm-up
    args_.emit("blocked.one", drain_rate("a", runs, "blocked"), "runs/s");
    submit("blocked", args_.number("blocked"));
    calm_down();
    args_.emit("blocked.many", drain_rate("a", runs, "blocked"), "runs/s");
  }

 private:
  void open(const std::string& kind, bool events) {
    if (kind == "memory") {
      store_ = std::make_unique<store::MemoryStore>(system_);
    } else if (kind == "sqlite") {
      const std::string path = directory_ + "/stint.db";
      auto opened = store::SqliteStore::blocking_open(path, system_);
      if (!opened) args_.fail(opened.error().describe());
      store_ = std::move(*opened);
      if (events) return;
      auto database = store::Database::open(path, store::Database::Access::write, 1s);
      if (!database || !database->run(store::sqlite_bench::query::without_events)) args_.fail("events stay on");
    } else if (kind == "postgres") {
      const char* const url = std::getenv("STINT_BENCH_POSTGRES");
      if (url == nullptr) args_.fail("STINT_BENCH_POSTGRES names no database");
      store_ = get(store::PostgresStore::open(reactor_, url));
      if (events) return;
      const auto connection = get(store::PostgresConnection::open(reactor_, url));
      get(connection->run_script(std::string(store::postgres_bench::query::without_events)));
    } else {
      args_.fail("no store " + kind);
    }
  }
  /// Waits until the disk has written the submitted runs: its backlog is not the cost of a claim.
  void calm_down() {
    if (args_.text("store", "") == "postgres") {
      const auto connection = get(store::PostgresConnection::open(reactor_, std::getenv("STINT_BENCH_POSTGRES")));
      for (const auto sql : {store::postgres_bench::query::checkpoint, store::postgres_bench::query::analyze}) {
        get(connection->run_script(std::string(sql)));
      }
    }
    ::sync();
  }
  template <class T>
  T get(Task<Result<T>> task) {
    Result<T> result = os::blocking_run(reactor_, std::move(task));
    if (!result) args_.fail(result.error().describe());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
  }
  void define(const std::string& name, std::uint32_t capacity) {
    store::AgentEntry agent;
    agent.name = name;
    agent.queued_max = 10'000'000;
    agent.limits = {{"agent:" + name, 1}};
    get(store_->define({agent}));
    get(store_->resize("agent:" + name, capacity));
  }
  store::NewRun fresh(const std::string& agent) {
    store::NewRun run;
    run.id = domain::new_run_id(system_);
    run.agent = agent;
    run.input = "{\"i\":" + std::to_string(submitted_++) + "}";
    return run;
  }

  void submit(const std::string& agent, std::int64_t count) {
    while (count > 0) {
      std::vector<store::NewRun> runs(static_cast<std::size_t>(std::min<std::int64_t>(count, kSubmitBatch)));
      for (store::NewRun& run : runs) run = fresh(agent);
      count -= std::ssize(runs);
      for (const auto& answer : get(store_->enqueue(std::move(runs)))) {
        if (!answer) args_.fail(answer.error().describe());
      }
      if (node_.value != 0) get(store_->beat(node_));
    }
  }
  Task<Result<>> complete(std::vector<store::Claim> claims) {
    std::vector<store::Settlement> ends(claims.size());
    for (std::size_t i = 0; i < claims.size(); ++i) {
      ends[i].attempt = claims[i].attempt_key();
      ends[i].settle = domain::Settle::succeeded;
    }
    STINT_CO_TRY(const auto states, co_await store_->settle(node_, std::move(ends)));
    for (const auto& state : states) {
      if (!state) co_return fail(Errc::failed, "a result was stale");
    }
    co_return Result<>();
  }
  /// One of several carriers that take a batch each: while one settles its batch, another claims the next.
  Task<Result<>> carry(std::string agent, std::string asked_too) {
    while (left_ > 0) {
      const std::int64_t batch = std::min(left_, args_.number("batch"));
      left_ -= batch;
      if (!asked_too.empty()) {
        STINT_CO_TRY(const auto none, co_await store_->claim(node_, asked_too, 1));
        if (!none.empty()) co_return fail(Errc::failed, "what was blocked has started");
      }
      STINT_CO_TRY(auto claims, co_await store_->claim(node_, agent, static_cast<std::uint32_t>(batch)));
      if (std::ssize(claims) != batch) co_return fail(Errc::failed, "too few to claim");
      STINT_CO_CHECK(co_await complete(std::move(claims)));
      if (Clock::now() - beaten_ < kBeat) continue;
      beaten_ = Clock::now();
      STINT_CO_CHECK(co_await store_->beat(node_));
    }
    co_return Result<>();
  }
  double drain_rate(const std::string& agent, std::int64_t runs, const std::string& asked_too = {}) {
    left_ = runs;
    beaten_ = Clock::now();
    const TimePoint start = beaten_;
    RootScope scope(reactor_);
    for (std::int64_t carrier = 0; carrier < args_.number("carriers"); ++carrier) scope.spawn(carry(agent, asked_too));
    if (const Result<> drained = reactor_.run(scope); !drained) args_.fail(drained.error().describe());
    return static_cast<double>(runs) * 1e9 / ns_since(start);
  }

  const Args& args_;
  std::uint64_t random_ = 88172645463325252;
  domain::System system_{
      .wall_now = [] { return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()); },
      .random = [this] { return random_ = random_ * 6364136223846793005U + 1442695040888963407U; }};
  std::string directory_;
  Reactor reactor_;
  std::unique_ptr<store::Store> store_;
  store::NodeNumber node_{};
  std::int64_t submitted_ = 0, left_ = 0;
  TimePoint beaten_;
};

int measure(const Args& args) {
  Bench bench(args);
  if (args.bench() == "drain") {
    bench.drain();
  } else if (args.bench() == "latency") {
    bench.latency();
  } else if (args.bench() == "depth") {
    bench.depth();
  } else if (args.bench() == "ready") {
    bench.ready();
  } else if (args.bench() == "blocked") {
    bench.blocked();
  } else {
    std::fprintf(stderr, "usage: store_bench drain|latency|depth|ready|blocked key=value…\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace stint::bench

int main(int argc, char** argv) { return stint::bench::measure(stint::bench::Args(argc, argv)); }
