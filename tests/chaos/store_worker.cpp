// One process of the torture of a store: `store_worker STORE MODE …`. STORE is the path of a SQLite file.
//   define                        agents a0 … a4 and their limits
//   submit COUNT SEED             prints the id of each run that was accepted
//   work SEED MS                  carries runs for so long; ends by itself when nothing is left to do
//   events · runs                 what the store has, one JSON object per line
// The driver, chaos.py, kills and freezes these processes and then reads what the store says.
#include "domain/run_id.hpp"
#include "stint/asio.hpp"
#include "stint/scope.hpp"
#include "store/sqlite_store.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>

namespace stint::chaos {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;
using store::Claim;
using store::Store;

constexpr std::uint32_t kAgents = 5;
constexpr std::size_t kSubmitBatch = 50;
constexpr std::uint32_t kClaimMost = 3;
constexpr int kIdleMost = 40;  // rounds without work, after which it looks whether all is done

std::string agent_name(std::uint32_t number) { return "a" + std::to_string(number); }

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "store_worker: %s\n", why.c_str());
  std::_Exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error().describe());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

Task<> define(Store& store) {
  std::vector<store::AgentEntry> agents(kAgents);
  for (std::uint32_t i = 0; i < kAgents; ++i) {
    agents[i].name = agent_name(i);
    agents[i].queued_max = 1'000'000;
    agents[i].attempts_max = 1000;
    agents[i].lost_max = 1000;
    agents[i].backoff_base = 1ms;
    agents[i].backoff_cap = 20ms;
  }
  agents[0].limits = {{"one", 1}};
  agents[1].limits = {{"two", 1}};
  agents[2].limits = {{"five", 1}};
  agents[3].limits = {{"five", 2}, {"two", 1}};  // shared with the two above, and heavy
  must(co_await store.define(agents));
  must(co_await store.resize("one", 1));
  must(co_await store.resize("two", 2));
  must(co_await store.resize("five", 5));
}

Task<> submit(Store& store, std::int64_t count, std::mt19937_64& random) {
  const domain::Ambient chance{.wall_now = {}, .random = [&random] { return random(); }};
  while (count > 0) {
    std::vector<store::NewRun> runs;
    for (; count > 0 && runs.size() < kSubmitBatch; --count) {
      store::NewRun run;
      run.id = domain::new_run_id(chance);
      run.agent = agent_name(static_cast<std::uint32_t>(random() % kAgents));
      if (random() % 4 == 0) run.session = "s" + std::to_string(random() % 40);
      run.priority = static_cast<int>(random() % 3) - 1;
      run.on_crash = random() % 8 == 0 ? domain::OnCrash::doubt : domain::OnCrash::rerun;
      runs.push_back(std::move(run));
    }
    for (const auto& answer : must(co_await store.enqueue(std::move(runs)))) {
      std::printf("%s\n", must(answer).id.c_str());
    }
    std::fflush(stdout);
  }
}

/// One run: some milliseconds of nothing, and an end.
Task<> carry(Store& store, store::WorkerNumber worker, Claim claim, std::uint64_t chance) {
  if (chance % 10 == 0 && !must(co_await store.mark(worker, claim.run, claim.fence, true))) co_return;
  co_await sleep_for(std::chrono::milliseconds(chance / 16 % 12));
  store::Settlement end;
  end.run = claim.run;
  end.fence = claim.fence;
  constexpr std::array kEnds = {Settle::retry, Settle::retry, Settle::hand_back, Settle::failed};
  const std::uint64_t drawn = chance / 1024 % 16;
  end.settle = drawn < kEnds.size() ? kEnds[drawn] : Settle::succeeded;
  (void)must(co_await store.settle(worker, {end}));
}

/// Nothing runs, is ready or sleeps. What is queued behind a run in doubt waits for a person.
Task<bool> is_all_done(Store& store, const store::Ticked& ticked) {
  store::Stats stats = must(co_await store.stats());
  co_return !ticked.next && stats.ready == 0 && stats.runs[RunState::running] == 0;
}

Task<> work(Store& store, Scope& scope, std::mt19937_64& random, const Executor& executor, Duration time) {
  const store::WorkerNumber worker = must(co_await store.enrol("chaos"));
  const TimePoint end = executor.now() + time;
  for (int idle = 0; executor.now() < end;) {
    if (!must(co_await store.beat(worker)).alive) give_up("others have taken our runs");
    const store::Ticked ticked = must(co_await store.tick());
    const std::string agent = agent_name(static_cast<std::uint32_t>(random() % kAgents));
    const auto most = static_cast<std::uint32_t>(1 + random() % kClaimMost);
    auto claims = must(co_await store.claim(worker, agent, most));
    idle = claims.empty() ? idle + 1 : 0;
    for (Claim& claim : claims) scope.spawn(carry(store, worker, std::move(claim), random()));
    if (idle % kIdleMost == kIdleMost - 1) {
      const bool done = co_await is_all_done(store, ticked);
      if (done) co_return;
    }
    co_await sleep_for(claims.empty() ? 2ms : 0ms);
  }
}

Task<> print_events(Store& store) {
  std::string cursor;
  while (true) {
    const store::FeedPage page = must(co_await store.feed(cursor, 1000));
    if (page.events.empty()) co_return;
    for (const store::Event& event : page.events) {
      std::printf(R"({"run":"%s","seq":%lld,"fence":%lld,"cause":"%s","state":"%s","worker":%lld})"
                  "\n",
                  event.run.c_str(), static_cast<long long>(event.seq), static_cast<long long>(event.fence),
                  event.cause.c_str(), event.state ? std::string(to_string(*event.state)).c_str() : "",
                  static_cast<long long>(event.worker.value_or(0)));
    }
    cursor = page.cursor;
  }
}

Task<> print_runs(Store& store) {
  store::Filter filter;
  filter.most = 1000;
  while (true) {
    const auto runs = must(co_await store.list(filter));
    if (runs.empty()) co_return;
    for (const store::Run& run : runs) {
      std::printf(R"({"id":"%s","agent":"%s","session":"%s","state":"%s","number":%lld,"seq":%lld})"
                  "\n",
                  run.id.c_str(), run.agent.c_str(), run.session.c_str(), std::string(to_string(run.state)).c_str(),
                  static_cast<long long>(run.number), static_cast<long long>(run.seq));
    }
    filter.before = runs.back().number;
  }
}

int blocking_run(const std::vector<std::string>& words) {
  if (words.size() < 2) give_up("usage: store_worker STORE define|submit|work|events|runs …");
  const std::string& mode = words[1];
  std::mt19937_64 random(words.size() > 2 ? std::strtoull(words.back().c_str(), nullptr, 10) : 1);
  const domain::Ambient ambient{
      .wall_now = [] { return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()); },
      .random = [source = std::mt19937_64(random())]() mutable { return source(); }};
  const auto store = must(store::SqliteStore::blocking_open(words[0], ambient));
  Reactor reactor;
  RootScope scope(reactor);
  if (mode == "define") {
    scope.spawn(define(*store));
  } else if (mode == "submit") {
    scope.spawn(submit(*store, std::atoll(words.at(2).c_str()), random));
  } else if (mode == "work") {
    scope.spawn(work(*store, scope, random, reactor, std::chrono::milliseconds(std::atoll(words.at(2).c_str()))));
  } else if (mode == "events") {
    scope.spawn(print_events(*store));
  } else if (mode == "runs") {
    scope.spawn(print_runs(*store));
  } else {
    give_up("no mode " + mode);
  }
  reactor.run(scope);
  return 0;
}

}  // namespace
}  // namespace stint::chaos

int main(int argc, char** argv) { return stint::chaos::blocking_run({argv + 1, argv + argc}); }
