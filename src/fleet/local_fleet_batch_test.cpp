// Batches over a store that is slow and loses answers, carried by processes that die at random moments: every matched
// run is acted on exactly once, or reported as failed.
#include "domain/run_id.hpp"
#include "engine/engine_world.hpp"
#include "fleet/local_fleet.hpp"
#include "fleet/request_digest.hpp"

#include <random>
#include <set>

namespace stint::fleet {
namespace {

using namespace engine;
using store::BatchAction;
using store::BatchState;

/// Slow, and some answers are lost: the call was done.
class SlowStore final : public store::MemoryStore {
 public:
  SlowStore(const domain::System& system, std::mt19937_64& random) : MemoryStore(system), random_(random) {}
  double lost = 0;  ///< share of answers

  Task<Result<std::vector<Result<store::Accepted>>>> enqueue(std::vector<store::NewRun> runs) override {
    return pass(MemoryStore::enqueue(std::move(runs)));
  }
  Task<Result<std::vector<std::pair<std::string, RunState>>>> cancel(std::string id) override {
    return pass(MemoryStore::cancel(std::move(id)));
  }
  Task<Result<std::optional<store::Run>>> find(std::string id) override {
    return pass(MemoryStore::find(std::move(id)));
  }
  Task<Result<std::optional<store::BatchClaim>>> claim_batch(store::NodeNumber node) override {
    return pass(MemoryStore::claim_batch(node));
  }
  Task<Result<std::optional<store::BatchClaim>>> advance_batch(store::BatchClaim claim,
                                                               store::BatchStep step) override {
    return pass(MemoryStore::advance_batch(std::move(claim), std::move(step)));
  }

 private:
  template <class T>
  Task<Result<T>> pass(Task<Result<T>> call) {
    co_await sleep_for(std::chrono::milliseconds(random_() % 20));
    Result<T> answer = co_await std::move(call);
    co_await sleep_for(std::chrono::milliseconds(random_() % 20));
    if (std::uniform_real_distribution<>(0, 1)(random_) < lost) {
      co_return fail(Error(Errc::unavailable, Retry::unknown, "the answer was lost"));
    }
    co_return answer;
  }

  std::mt19937_64& random_;
};

class BatchWorld {
 public:
  explicit BatchWorld(std::uint64_t seed) : random_(seed), sim_(seed) {
    for (const char* const name : {"a", "gone"}) {
      AgentSpec spec;
      spec.agent.name = spec.entry.name = name;
      spec.entry.queued_max = 10'000;
      entries_.push_back(spec.entry);
      if (std::string_view(name) != "gone") registry_[name] = std::move(spec);
    }
    (void)get(store_.define(entries_));
  }
  ~BatchWorld() {
    scope_.cancel();
    sim_.settle();
  }
  template <class T>
  Result<T> get(Task<Result<T>> task) {
    std::optional<Result<T>> answer;
    auto body = [&]() -> Task<> { answer.emplace(co_await std::move(task)); };
    scope_.spawn(body());
    EXPECT_TRUE(sim_.run_until([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
  std::string submit(const std::string& agent) {
    store::NewRun run;
    run.id = domain::new_run_id(system_);
    run.agent = agent;
    run.input = "0";
    EXPECT_TRUE(get(store_.enqueue({run}))->front());
    return run.id;
  }
  std::string ended(const std::string& agent) {
    std::string id = submit(agent);
    EXPECT_TRUE(get(store_.cancel(id)));
    return id;
  }
  LocalFleet make_fleet() {
    return LocalFleet(
        {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, nullptr}, {});
  }
  /// A process that carries the batch and is killed after `lives`.
  void carry_for(const std::string& id, Duration lives) {
    LocalFleet fleet = make_fleet();
    RootScope process{sim_};
    auto body = [&]() -> Task<> { (void)co_await fleet.follow_batch(id, {}); };
    process.spawn(body());
    sim_.advance(lives);
    process.cancel();
    sim_.settle();
    sim_.advance(store::MemoryRows::kLease + 1s);  // its lease ends
    (void)get(store_.tick());
  }
  std::map<std::string, RunState> states() {
    store::Filter all;
    all.most = 100'000;
    std::map<std::string, RunState> found;
    const auto runs = get(store_.list(all));
    for (const store::Run& run : *runs) found[run.id] = run.state;
    return found;
  }

  std::mt19937_64 random_;
  Simulator sim_;
  domain::System system_{.wall_now = [this] { return WallTime(1'700'000'000'000ms) + since(); },
                         .random = [this] { return random_(); },
                         .elapsed = [this] { return sim_.now().time_since_epoch(); },
                         .awake = [this] { return sim_.now().time_since_epoch(); }};
  SlowStore store_{system_, random_};
  PlainRunCodec run_codec_;
  AgentRegistry registry_;
  std::vector<store::AgentEntry> entries_;
  RootScope scope_{sim_};

 private:
  [[nodiscard]] std::chrono::milliseconds since() const {
    return std::chrono::floor<std::chrono::milliseconds>(sim_.now().time_since_epoch());
  }
};

engine::BatchRequest request_of(BatchAction action, std::uint64_t expect) {
  engine::BatchRequest request;
  request.action = action;
  request.expect = expect;
  request.filter.states = action == BatchAction::retry ? std::vector{RunState::cancelled}
                                                       : std::vector{RunState::queued, RunState::in_doubt};
  return request;
}

class BatchCrashes : public testing::TestWithParam<BatchAction> {};

TEST_P(BatchCrashes, every_run_is_acted_on_once_or_reported) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    BatchWorld world(seed);
    const bool retry = GetParam() == BatchAction::retry;
    const std::size_t count = 1 + world.random_() % 130;
    std::set<std::string> set, doomed;  // doomed: these must fail
    const auto node = world.get(world.store_.enrol("dies"));
    for (std::size_t i = 0; i < count; ++i) {
      const bool bad = world.random_() % 8 == 0;
      const std::string agent = retry && bad ? "gone" : "a";
      const std::string id = retry ? world.ended(agent) : world.submit(agent);
      set.insert(id);
      if (bad) doomed.insert(id);
      if (bad && !retry) EXPECT_EQ(world.get(world.store_.claim(*node, "a", 1, id))->size(), 1U);
    }
    world.sim_.advance(store::MemoryRows::kLease + 1s);
    (void)world.get(world.store_.tick());  // claimed runs are in doubt now
    world.store_.lost = 0.1;
    LocalFleet fleet = world.make_fleet();
    Result<BatchAnswer> begun = fail(Errc::unavailable, "not yet");
    engine::BatchRequest request = request_of(GetParam(), count);
    request.key = "key";
    while (!begun) begun = world.get(fleet.begin_batch(request));
    ASSERT_TRUE(begun->batch);
    const std::string id = begun->batch->id;
    world.store_.lost = 0;
    const std::string late = retry ? world.ended("a") : world.submit("a");
    world.store_.lost = 0.1;
    for (int crash = 0; crash < 3; ++crash) world.carry_for(id, std::chrono::milliseconds(world.random_() % 3000));
    world.store_.lost = 0;
    const Result<store::Batch> done = world.get(fleet.follow_batch(id, {}));
    ASSERT_TRUE(done) << done.error().describe();
    EXPECT_EQ(done->state, BatchState::done);
    EXPECT_EQ(done->acted(), count);
    std::set<std::string> failed;
    for (const store::BatchFailure& failure : done->failures) failed.insert(failure.run);
    EXPECT_EQ(failed, doomed);
    EXPECT_EQ(done->failed, doomed.size());
    const auto states = world.states();
    std::size_t made = 0;
    for (const std::string& run : set) {
      if (retry) {
        made += states.contains(derived_id(id, run)) ? 1U : 0U;
      } else {
        EXPECT_EQ(states.at(run), doomed.contains(run) ? RunState::in_doubt : RunState::cancelled);
      }
    }
    if (retry) {
      EXPECT_EQ(made, done->done);
      EXPECT_EQ(states.size(), set.size() + 1 + done->done) << "no retry is doubled";
    } else {
      EXPECT_EQ(states.at(late), RunState::queued) << "a run that was submitted later is not in the set";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Actions, BatchCrashes, testing::Values(BatchAction::cancel, BatchAction::retry),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Batch, is_refused_for_nothing_and_for_another_number) {
  BatchWorld world(1);
  world.submit("a");
  LocalFleet fleet = world.make_fleet();
  engine::BatchRequest request;
  request.expect = 1;
  const auto empty = world.get(fleet.begin_batch(request));
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error(), Errc::invalid);
  request = request_of(BatchAction::cancel, 2);
  const auto differs = world.get(fleet.begin_batch(request));
  ASSERT_TRUE(differs);
  EXPECT_EQ(differs->matched, 1U);
  EXPECT_FALSE(differs->batch);
  request.dry_run = true;
  EXPECT_EQ(world.get(fleet.begin_batch(request))->matched, 1U);
  EXPECT_TRUE(world.get(fleet.batches(store::BatchNumber(), 10))->empty()) << "nothing has begun";
  request = request_of(BatchAction::retry, 0);
  request.filter.states = {RunState::queued};
  EXPECT_EQ(world.get(fleet.begin_batch(request)).error(), Errc::invalid) << "no such run can be retried";
}

TEST(Batch, begins_once_for_one_idempotency_key) {
  BatchWorld world(1);
  world.submit("a");
  LocalFleet fleet = world.make_fleet();
  engine::BatchRequest request = request_of(BatchAction::cancel, 1);
  request.key = "k";
  const auto first = world.get(fleet.begin_batch(request));
  ASSERT_TRUE(first && first->batch && first->created);
  ASSERT_TRUE(world.get(fleet.follow_batch(first->batch->id, {})));
  const auto again = world.get(fleet.begin_batch(request));
  ASSERT_TRUE(again && again->batch) << "although no run matches any more";
  EXPECT_FALSE(again->created);
  EXPECT_EQ(again->batch->id, first->batch->id);
  EXPECT_EQ(again->batch->state, BatchState::done);
  request.expect = 7;
  EXPECT_EQ(world.get(fleet.begin_batch(request)).error(), Errc::conflict);
}

TEST(Search, pages_reach_every_match_and_totals_are_bounded) {
  BatchWorld world(1);
  for (int i = 0; i < 30; ++i) world.submit("a");
  LocalFleet fleet = world.make_fleet();
  Search search;
  search.filter.agent = "a";
  search.filter.most = 7;
  search.total = true;
  std::set<std::string> seen;
  while (true) {
    const auto page = world.get(fleet.search(search));
    ASSERT_TRUE(page);
    EXPECT_EQ(page->total->count, 30U);
    EXPECT_TRUE(page->total->exact);
    for (const RunView& view : page->runs) EXPECT_TRUE(seen.insert(view.run.id).second);
    if (page->next.empty()) break;
    search.cursor = page->next;
  }
  EXPECT_EQ(seen.size(), 30U);
  search.cursor = "x";
  EXPECT_EQ(world.get(fleet.search(search)).error(), Errc::invalid);
}

TEST_F(EngineTest, a_daemon_carries_batches_and_gives_one_back_when_it_drains) {
  add_agent("a", OnCrash::rerun);
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  start(4);
  domain::NoLog log;
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  scope_.spawn(fleet.carry_batches(log));
  for (int i = 0; i < 120; ++i) submit("a");
  sim_.advance(1s);
  EXPECT_EQ(alive_, 4);
  engine::BatchRequest request;
  request.filter.agent = "a";
  request.expect = 120;
  const BatchAnswer begun = get(fleet.begin_batch(request));
  ASSERT_TRUE(begun.batch);
  const store::Batch done = get(fleet.follow_batch(begun.batch->id, {}));
  EXPECT_EQ(done.done, 120U);
  EXPECT_EQ(alive_, 0) << "a cancel is done when the work is gone";
  EXPECT_EQ(count(RunState::cancelled), 120U);
  EXPECT_EQ(get(fleet.status()).batch_runs.done, 120U);

  engine_->drain(10s);
  request.filter.states = {RunState::cancelled};
  request.action = store::BatchAction::retry;
  const BatchAnswer waits = get(fleet.begin_batch(request));
  ASSERT_TRUE(waits.batch);
  sim_.advance(30s);
  EXPECT_EQ(get(fleet.batch(waits.batch->id))->acted(), 0U) << "a draining daemon begins no batch";
}

TEST_F(EngineTest, a_daemon_that_begins_carries_the_batch_of_the_one_before_it_at_once) {
  add_agent("a", OnCrash::rerun);
  make_engine(4);
  domain::NoLog log;
  LocalFleet fleet(
      {sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()}, {});
  scope_.spawn(fleet.carry_batches(log));
  sim_.advance(100ms);  // it has looked, and does not serve yet
  run_engine();
  decide_ = [](const domain::WorkOrder&) { return Script{.takes = 1h, .outcome = {}}; };
  submit("a");
  store::NewBatch left;  // of another process: this one is not notified
  left.id = domain::new_run_id(system_);
  left.runs = {get(store_.list({})).front().id};
  (void)get(store_.begin_batch(left));
  sim_.advance(1s);
  EXPECT_TRUE(get(store_.batch(left.id))->ended_at);
}

}  // namespace
}  // namespace stint::fleet
