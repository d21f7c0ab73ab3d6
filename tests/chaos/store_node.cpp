// One process of the chaos test of a store: `store_node STORE MODE …`. STORE is the path of a SQLite file or the
// address of a PostgreSQL database.
//   define                 agents a0 … a4 and their limits
//   submit COUNT SEED      submits runs
//   work SEED              carries runs until SIGTERM
//   meddle SEED            until SIGTERM: cancels some runs, answers parked ones, resolves those in doubt
//   left                   prints how many runs have not ended
//   events · runs          the content of the store, one JSON object per line
// The driver, chaos.py, kills and freezes these processes and then reads the store. Every answer of the store is
// printed, one per line, so that the auditor can compare both.
#include "domain/run_id.hpp"
#include "stint/asio.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"
#include "store/postgres_store.hpp"
#include "store/sqlite_store.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <unistd.h>

namespace stint::chaos {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;
using store::Claim;
using store::Store;

constexpr std::uint32_t kAgents = 5;
constexpr std::size_t kSubmitBatch = 20;
constexpr std::uint32_t kClaimMost = 3;
constexpr std::size_t kCarriedMost = 12;
constexpr Duration kLease = 1s, kBeat = 200ms;  // ground.py has the same lease

constexpr const char* kLong = "\"long\"";

volatile std::sig_atomic_t asked_to_end = 0;

std::string agent_name(std::uint32_t number) { return "a" + std::to_string(number); }

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "store_node: %s\n", why.c_str());
  std::_Exit(1);
}

/// Writes a line in one call: a killed process leaves no partial line.
void say(const std::string& words) {
  const std::string line = words + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) != std::ssize(line)) give_up("the output is closed");
}

std::int64_t wall_ms() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()).time_since_epoch().count();
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error().describe());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Repeats a call until it is answered: for calls that may be repeated without harm.
template <class T, class Ask>
Task<T> insist(Ask ask) {
  while (true) {
    Result<T> answer = co_await ask();
    if (answer || answer.error() != Errc::unavailable) co_return must(std::move(answer));
    co_await sleep_for(5ms);
  }
}

Task<> define(Store& store) {
  std::vector<store::AgentEntry> agents(kAgents);
  for (std::uint32_t i = 0; i < kAgents; ++i) {
    agents[i].name = agent_name(i);
    agents[i].queued_max = 1'000'000;
    agents[i].attempts_max = 1000;
    agents[i].lost_max = 1000;
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

// ---- callers ------------------------------------------------------------------------------------------------------

store::NewRun draw_run(std::mt19937_64& random) {
  const domain::System chance{.wall_now = {}, .random = [&random] { return random(); }};
  store::NewRun run;
  run.id = domain::new_run_id(chance);
  run.agent = agent_name(static_cast<std::uint32_t>(random() % kAgents));
  // All submit to the same few sessions at one time, so that they meet in empty ones; and to others that have runs.
  if (random() % 4 == 0)
    run.session = random() % 2 == 0 ? "t" + std::to_string(wall_ms() / 64 % 128) : "s" + std::to_string(random() % 40);
  if (random() % 8 == 0) run.key = "k" + run.id;
  if (run.agent == "a4") run.input = kLong;  // it has no limit that it could block
  run.priority = static_cast<int>(random() % 3) - 1;
  if (random() % 10 == 0) run.delay = std::chrono::milliseconds(random() % 100);
  if (random() % 40 == 0) run.deadline_in = std::chrono::milliseconds(200 + random() % 5000);
  run.on_crash = random() % 8 == 0 ? domain::OnCrash::doubt : domain::OnCrash::rerun;
  return run;
}

Task<> submit(Store& store, std::int64_t count, std::mt19937_64& random) {
  while (count > 0 && asked_to_end == 0) {
    std::vector<store::NewRun> runs;
    for (; count > 0 && runs.size() < kSubmitBatch; --count) runs.push_back(draw_run(random));
    using Answers = std::vector<Result<store::Accepted>>;
    const auto ask = [&] { return store.enqueue(runs); };
    for (const auto& answer : co_await insist<Answers>(ask)) say("accepted " + must(answer).id);
    co_await sleep_for(std::chrono::milliseconds(random() % 20));
    if (random() % 8 != 0) continue;
    for (const auto& answer : co_await insist<Answers>(ask)) {
      if (must(answer).created) give_up(answer->id + " was accepted twice");
    }
  }
}

/// Another process may have done it first.
template <class T>
void may_conflict(const Result<T>& result) {
  if (!result && result.error() != Errc::conflict && result.error() != Errc::unavailable) {
    give_up(result.error().describe());
  }
}

Task<> meddle(Store& store, std::mt19937_64& random) {
  constexpr std::array kWays = {domain::Resolution::done, domain::Resolution::rerun, domain::Resolution::discard};
  constexpr std::array kStates = {RunState::in_doubt, RunState::parked, RunState::queued, RunState::running};
  while (asked_to_end == 0) {
    store::Filter filter;
    filter.states = {kStates.at(random() % kStates.size())};
    filter.most = 20;
    (void)co_await insist<store::Ticked>([&] { return store.tick(); });  // not all nodes can declare others dead
    const auto runs = co_await insist<std::vector<store::Run>>([&] { return store.list(filter); });
    for (const store::Run& run : runs) {
      if (run.state == RunState::in_doubt)
        may_conflict(co_await store.resolve(run.id, kWays.at(random() % kWays.size())));
      if (run.hold == domain::Hold::person) may_conflict(co_await store.answer(run.id));
    }
    if (!runs.empty() && random() % 4 == 0) may_conflict(co_await store.cancel(runs[random() % runs.size()].id));
    co_await sleep_for(std::chrono::milliseconds(5 + random() % 30));
  }
}

// ---- nodes ---------------------------------------------------------------------------------------------------------

/// A node from its enrolment until a heartbeat reports that its runs were taken, which happens after a freeze.
struct Life {
  store::NodeNumber node{};
  bool dead = false;
  std::set<store::RunNumber> stops;
  std::set<store::RunNumber> carried;
};

std::string name_of(const Life& life, const Claim& claim) {
  return std::to_string(life.node.value) + " " + claim.id + " " + std::to_string(claim.fence.value);
}

/// For calls about a run: without a lease they are refused until a heartbeat reports whether the node is alive.
template <class T, class Ask>
Task<std::optional<T>> insist_owning(std::shared_ptr<Life> life, Ask ask) {
  while (true) {
    Result<T> answer = co_await ask();
    if (answer) co_return std::move(*answer);
    if (answer.error() == Errc::closed && life->dead) co_return std::nullopt;
    if (answer.error() != Errc::unavailable && answer.error() != Errc::closed) give_up(answer.error().describe());
    co_await sleep_for(5ms);
  }
}

store::Settlement draw_end(const Life& life, const Claim& claim, std::mt19937_64& random) {
  store::Settlement end;
  end.attempt = claim.attempt_key();
  end.error =
      std::to_string(life.node.value) + ":" + std::to_string(claim.fence.value);  // identifies the owner of this end
  constexpr std::array kEnds = {Settle::retry, Settle::retry, Settle::hand_back, Settle::failed, Settle::park};
  const std::uint64_t drawn = random() % 20;
  end.settle = drawn < kEnds.size() ? kEnds.at(drawn) : Settle::succeeded;
  if (life.stops.contains(claim.run)) end.settle = Settle::cancelled;
  if (end.settle == Settle::park && random() % 2 == 0) {
    end.park_for = std::chrono::milliseconds(20 + random() % 60);
    if (random() % 8 == 0) end.park_on = "five";
  }
  return end;
}

Task<bool> mark(Store& store, std::shared_ptr<Life> life, Claim claim, bool unsafe) {
  const auto marked =
      co_await insist_owning<bool>(life, [&] { return store.mark(life->node, claim.attempt_key(), unsafe); });
  if (marked == true && unsafe) say("marked " + name_of(*life, claim));
  co_return marked == true;
}

/// A child, which is cancelled with its parent.
Task<> submit_child(Store& store, Claim claim, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  store::NewRun child = draw_run(random);
  child.agent = "a4";
  child.session.clear();
  child.parent = claim.id;
  const auto answers = co_await insist<std::vector<Result<store::Accepted>>>([&] { return store.enqueue({child}); });
  may_conflict(answers.at(0));
  if (answers.at(0)) say("accepted " + answers[0]->id);
}

/// Short, for many events; some are always long, so that a frozen owner wakes up while its successor is at work.
Duration draw_length(const Claim& claim, std::mt19937_64& random) {
  const bool is_long = claim.input == kLong && claim.id.front() < 'm';
  return std::chrono::milliseconds(is_long ? 500 + random() % 1500 : random() % (random() % 6 == 0 ? 150 : 12));
}

/// One run: some milliseconds of waiting, and an end.
Task<> carry(Store& store, std::shared_ptr<Life> life, Claim claim, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  say("claimed " + name_of(*life, claim));
  const bool unsafe = random() % 10 == 0;
  const bool ours = !unsafe || co_await mark(store, life, claim, true);
  if (ours) {
    if (random() % 16 == 0) co_await submit_child(store, claim, random());
    co_await sleep_for(draw_length(claim, random));
    if (unsafe && random() % 2 == 0) (void)co_await mark(store, life, claim, false);
    const store::Settlement end = draw_end(*life, claim, random);
    using States = std::vector<std::optional<RunState>>;
    const auto states = co_await insist_owning<States>(life, [&] { return store.settle(life->node, {end}); });
    const auto state = states ? states->at(0) : std::nullopt;
    say((state ? "settled " : "stale ") + name_of(*life, claim) + (state ? " " + std::string(to_string(*state)) : ""));
  }
  life->carried.erase(claim.run);
  life->stops.erase(claim.run);
}

Task<> beat(Store& store, std::shared_ptr<Life> life, const bool& ended) {
  while (!ended && !life->dead) {
    const std::int64_t before = wall_ms();
    const store::Beat answer = co_await insist<store::Beat>([&] { return store.beat(life->node); });
    life->dead = !answer.alive;
    if (answer.alive) say("beat " + std::to_string(life->node.value) + " " + std::to_string(before));
    for (const store::StopAsked& stop : answer.stops) life->stops.insert(stop.attempt.run);
    co_await sleep_for(kBeat);
  }
}

/// A claim without an answer may have happened: owned() tells.
Task<std::vector<Claim>> claim(Store& store, std::shared_ptr<Life> life, std::string agent, std::uint32_t most) {
  auto claims = co_await store.claim(life->node, agent, most);
  if (claims) co_return std::move(*claims);
  if (claims.error() == Errc::closed) co_return std::vector<Claim>();  // the next heartbeat decides
  if (claims.error() != Errc::unavailable) give_up(claims.error().describe());
  const auto owned = co_await insist_owning<std::vector<Claim>>(life, [&] { return store.owned(life->node); });
  std::vector<Claim> found;
  for (const Claim& each : owned.value_or(std::vector<Claim>())) {
    if (!life->carried.contains(each.run)) found.push_back(each);
  }
  co_return found;
}

Task<std::shared_ptr<Life>> enrol(Store& store, Scope& scope, const bool& ended) {
  auto life = std::make_shared<Life>();  // shared with its runs
  life->node = co_await insist<store::NodeNumber>([&] { return store.enrol("chaos"); });
  scope.spawn(beat(store, life, ended));
  co_return life;
}

Task<> work(Store& store, std::mt19937_64& random) {
  bool ended = false;
  auto inner = [&store, &random, &ended](Scope& all) -> Task<Result<>> {
    std::shared_ptr<Life> life = co_await enrol(store, all, ended);
    while (asked_to_end == 0) {
      if (life->dead) life = co_await enrol(store, all, ended);
      if (random() % 8 == 0) (void)co_await insist<store::Ticked>([&] { return store.tick(); });
      std::vector<Claim> claims;
      const std::string agent = agent_name(static_cast<std::uint32_t>(random() % kAgents));
      const auto most = static_cast<std::uint32_t>(1 + random() % kClaimMost);
      if (life->carried.size() < kCarriedMost) claims = co_await claim(store, life, agent, most);
      for (Claim& each : claims) {
        life->carried.insert(each.run);
        all.spawn(carry(store, life, std::move(each), random()));
      }
      co_await sleep_for(claims.empty() ? 3ms : 0ms);
    }
    while (!life->carried.empty() && !life->dead) co_await sleep_for(1ms);
    ended = true;
    if (life->dead) co_return Result<>();
    must(co_await store.drain(life->node));
    must(co_await store.leave(life->node));
    co_return Result<>();
  };
  must(co_await with_scope(std::ref(inner)));
}

// ---- queries -------------------------------------------------------------------------------------------------------

Task<> print_left(Store& store) {
  std::uint64_t left = 0;
  for (const auto& [state, count] : must(co_await store.stats()).runs) left += domain::is_finished(state) ? 0 : count;
  say(std::to_string(left));
}

Task<> print_events(Store& store) {
  std::string cursor;
  while (true) {
    const store::FeedPage page = must(co_await store.feed(cursor, 1000));
    if (page.events.empty()) co_return;
    for (const store::Event& event : page.events) {
      std::printf(R"({"run":"%s","seq":%lld,"fence":%lld,"cause":"%s","state":"%s","node":%lld,"error":"%s","at":%lld})"
                  "\n",
                  event.run.c_str(), static_cast<long long>(event.seq), static_cast<long long>(event.fence.value),
                  event.cause.c_str(), event.state ? std::string(to_string(*event.state)).c_str() : "",
                  static_cast<long long>(event.node.value_or(store::NodeNumber{}).value), event.error.c_str(),
                  static_cast<long long>(event.at.time_since_epoch().count()));
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
                  static_cast<long long>(run.number.value), static_cast<long long>(run.seq));
    }
    filter.before = runs.back().number;
  }
}

// ---- main ----------------------------------------------------------------------------------------------------------

struct Call {
  std::string store, mode;
  std::int64_t count = 0;
  std::uint64_t seed = 1;
};

Call read_call(const std::vector<std::string>& words) {
  if (words.size() < 2) give_up("usage: store_node STORE define|submit|work|meddle|left|events|runs …");
  Call call{.store = words[0], .mode = words[1]};
  if (call.mode == "submit") call.count = std::atoll(words.at(2).c_str());
  if (words.size() > 2) call.seed = std::strtoull(words.back().c_str(), nullptr, 10);
  return call;
}

Task<std::unique_ptr<Store>> open(const Call& call, Reactor& reactor, const domain::System& system) {
  if (!call.store.starts_with("host=") && !call.store.starts_with("postgresql:")) {
    co_return must(store::SqliteStore::blocking_open(call.store, system));
  }
  store::PostgresOptions options;
  options.lease = kLease;
  options.random = system.random;
  // Most nodes do not detect that they slept: only the fence keeps their calls out.
  if (call.mode == "work" && call.seed % 4 != 0) options.since_boot = [] { return Duration::zero(); };
  const auto ask = [&] { return store::PostgresStore::open(reactor, call.store, options); };
  co_return co_await insist<std::unique_ptr<store::PostgresStore>>(ask);
}

Task<> run(Call call, Reactor& reactor) {
  std::mt19937_64 random(call.seed);
  const domain::System system{.wall_now = [] { return WallTime(std::chrono::milliseconds(wall_ms())); },
                              .random = [source = std::mt19937_64(random())]() mutable { return source(); }};
  const std::unique_ptr<Store> store = co_await open(call, reactor, system);
  if (call.mode == "define") {
    co_await define(*store);
  } else if (call.mode == "submit") {
    co_await submit(*store, call.count, random);
  } else if (call.mode == "work") {
    co_await work(*store, random);
  } else if (call.mode == "meddle") {
    co_await meddle(*store, random);
  } else if (call.mode == "left") {
    co_await print_left(*store);
  } else if (call.mode == "events") {
    co_await print_events(*store);
  } else if (call.mode == "runs") {
    co_await print_runs(*store);
  } else {
    give_up("no mode " + call.mode);
  }
}

int blocking_run(const std::vector<std::string>& words) {
  ::signal(SIGTERM, [](int) { asked_to_end = 1; });
  Reactor reactor;
  const Result<> ended = reactor.run(run(read_call(words), reactor));
  return ended ? 0 : 1;
}

}  // namespace
}  // namespace stint::chaos

int main(int argc, char** argv) { return stint::chaos::blocking_run({argv + 1, argv + argc}); }
