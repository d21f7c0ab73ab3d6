// Stores, one bench per call: `store_bench BENCH key=value…` prints one JSON line per sample.
//   cycle store=memory|sqlite runs= batch=       submitted, then claimed and completed in batches: runs per second of
//   each latency store= rounds=                       submit → claimed, one at a time, submitter and worker in one
//   process claim store= queued= rounds=                 one claim and its completion beside so many that wait
#include "bench_support.hpp"
#include "domain/run_id.hpp"
#include "stint/asio.hpp"
#include "stint/scope.hpp"
#include "store/memory_store.hpp"
#include "store/sqlite_store.hpp"

#include <filesystem>
#include <memory>

namespace stint::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSubmitBatch = 500;
constexpr std::size_t kInputBytes = 300;

class Bench {
 public:
  explicit Bench(const Args& args) : args_(args) {
    directory_ = std::filesystem::current_path().string() + "/store-bench-XXXXXX";
    if (::mkdtemp(directory_.data()) == nullptr) args.fail("no temporary directory");
    const std::string kind = args.text("store", "sqlite");
    if (kind == "memory") {
      store_ = std::make_unique<store::MemoryStore>(ambient_);
    } else if (kind == "sqlite") {
      auto opened = store::SqliteStore::blocking_open(directory_ + "/stint.db", ambient_);
      if (!opened) args.fail(opened.error().describe());
      store_ = std::move(*opened);
    } else {
      args.fail("no store " + kind);
    }
    define("a");
    define("b");
    worker_ = get(store_->enrol("bench"));
  }
  ~Bench() {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void cycle() {
    const std::int64_t runs = args_.number("runs"), batch = args_.number("batch");
    TimePoint start = Clock::now();
    submit("a", runs);
    args_.emit("cycle.submit", static_cast<double>(runs) * 1e9 / ns_since(start), "runs/s");
    start = Clock::now();
    for (std::int64_t done = 0; done < runs;) done += claim_and_complete("a", batch);
    args_.emit("cycle.carry", static_cast<double>(runs) * 1e9 / ns_since(start), "runs/s");
  }

  void latency() {
    std::vector<double> ms;
    for (std::int64_t round = 0; round < args_.number("rounds"); ++round) {
      const TimePoint start = Clock::now();
      submit("a", 1);
      const auto claims = get(store_->claim(worker_, "a", 1));
      ms.push_back(ns_since(start) / 1e6);
      complete(claims);
    }
    args_.emit("latency.p50", percentile(ms, 0.5), "ms");
    args_.emit("latency.p99", percentile(ms, 0.99), "ms");
  }

  void claim() {
    submit("a", args_.number("queued"));
    std::vector<double> ms;
    for (std::int64_t round = 0; round < args_.number("rounds"); ++round) {
      const TimePoint start = Clock::now();
      claim_and_complete("a", 1);
      ms.push_back(ns_since(start) / 1e6);
    }
    args_.emit("claim.p50", percentile(ms, 0.5), "ms");
  }

 private:
  template <class T>
  T get(Task<Result<T>> task) {
    std::optional<Result<T>> result;
    auto body = [&]() -> Task<> { result.emplace(co_await std::move(task)); };
    RootScope scope(reactor_);
    scope.spawn(body());
    reactor_.run(scope);
    if (!*result) args_.fail(result->error().describe());
    if constexpr (!std::is_void_v<T>) return std::move(**result);
  }
  void define(const std::string& name) {
    store::AgentEntry agent;
    agent.name = name;
    agent.queued_max = 10'000'000;
    agent.limits = {{"agent:" + name, 1}};
    get(store_->define({agent}));
    get(store_->resize("agent:" + name, 10'000));
  }
  void submit(const std::string& agent, std::int64_t count) {
    while (count > 0) {
      std::vector<store::NewRun> runs(static_cast<std::size_t>(std::min<std::int64_t>(count, kSubmitBatch)));
      for (store::NewRun& run : runs) {
        run.id = domain::new_run_id(ambient_);
        run.agent = agent;
        run.input = std::string(kInputBytes, 'x');
      }
      count -= std::ssize(runs);
      for (const auto& answer : get(store_->enqueue(std::move(runs)))) {
        if (!answer) args_.fail(answer.error().describe());
      }
    }
  }
  void complete(const std::vector<store::Claim>& claims) {
    std::vector<store::Settlement> ends(claims.size());
    for (std::size_t i = 0; i < claims.size(); ++i) {
      ends[i].run = claims[i].run;
      ends[i].fence = claims[i].fence;
      ends[i].settle = domain::Settle::succeeded;
    }
    for (const auto& state : get(store_->settle(worker_, std::move(ends)))) {
      if (!state) args_.fail("a result was stale");
    }
  }
  std::int64_t claim_and_complete(const std::string& agent, std::int64_t batch) {
    const auto claims = get(store_->claim(worker_, agent, static_cast<std::uint32_t>(batch)));
    if (claims.empty()) args_.fail("nothing to claim");
    complete(claims);
    return std::ssize(claims);
  }

  const Args& args_;
  std::uint64_t random_ = 88172645463325252;
  domain::Ambient ambient_{
      .wall_now = [] { return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()); },
      .random = [this] { return (random_ = random_ * 6364136223846793005U + 1442695040888963407U) >> 20U; }};
  std::string directory_;
  Reactor reactor_;
  std::unique_ptr<store::Store> store_;
  store::WorkerNumber worker_ = 0;
};

int measure(const Args& args) {
  Bench bench(args);
  if (args.bench() == "cycle") {
    bench.cycle();
  } else if (args.bench() == "latency") {
    bench.latency();
  } else if (args.bench() == "claim") {
    bench.claim();
  } else {
    std::fprintf(stderr, "usage: store_bench cycle|latency|claim key=value…\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace stint::bench

int main(int argc, char** argv) { return stint::bench::measure(stint::bench::Args(argc, argv)); }
