// Sleep, jumps of clocks, and waiting for work.
#include "stint/combinators.hpp"
#include "store/postgres_world.hpp"
#include "store_sql_postgres_test.hpp"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
namespace query = postgres_test::query;

/// Two stores of two machines on the same database.
class TwoMachines : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = PostgresServer::why_not(); !reason.empty()) GTEST_SKIP() << reason;
    world_ = std::make_unique<PostgresWorld>();
    other_ = world_->run(PostgresStore::open(world_->reactor(), world_->url(), world_->options())).value();
    AgentEntry agent;
    agent.name = "a";
    get(store().define({agent}));
  }
  void TearDown() override { other_.reset(); }
  PostgresWorld& world() { return *world_; }
  PostgresStore& store() { return world_->store(); }
  PostgresStore& other() { return *other_; }
  template <class T>
  T get(Task<Result<T>> task) {
    Result<T> result = world_->run(std::move(task));
    if (!result) ADD_FAILURE() << result.error().describe();
    if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T();
  }
  std::string submit(PostgresStore& to) {
    NewRun run;
    run.id = "aaaaaaaaaaa" + std::string(1, static_cast<char>('a' + ids_++));
    run.agent = "a";
    run.on_crash = domain::OnCrash::rerun;
    EXPECT_TRUE(get(to.enqueue({run})).at(0));
    return run.id;
  }
  Claim claim_one(PostgresStore& from, NodeNumber node) {
    const std::vector<Claim> claims = get(from.claim(node, "a", 1));
    EXPECT_EQ(claims.size(), 1U);
    return claims.empty() ? Claim() : claims[0];
  }
  Result<std::optional<RunState>> succeed(NodeNumber node, const Claim& claim) {
    Settlement end;
    end.attempt = claim.attempt_key();
    end.settle = domain::Settle::succeeded;
    auto states = world_->run(store().settle(node, {end}));
    if (!states) return fail(states.error());
    return states->at(0);
  }
  template <class T>
  void expect_refused(Task<Result<T>> task) {
    const Result<T> result = world_->run(std::move(task));
    EXPECT_TRUE(!result && result.error() == Errc::closed);
  }

 private:
  std::unique_ptr<PostgresWorld> world_;
  std::unique_ptr<PostgresStore> other_;
  int ids_ = 0;
};
using PostgresClock = TwoMachines;
using PostgresWait = TwoMachines;

TEST_F(PostgresClock, after_two_hours_asleep_a_node_without_lease_writes_nothing) {
  world().script(query::settle_without_fence);  // so that nothing but the lease prevents it
  const std::string id = submit(store());
  const NodeNumber sleeper = get(store().enrol("sleeper"));
  const Claim claim = claim_one(store(), sleeper);
  world().advance(2h);
  EXPECT_EQ(get(other().tick()).lost, 1U);
  claim_one(other(), get(other().enrol("next")));
  EXPECT_EQ(succeed(sleeper, claim).error(), Errc::closed);
  expect_refused(store().mark(sleeper, claim.attempt_key(), true));
  expect_refused(store().note(sleeper, claim.attempt_key(), "said", ""));
  expect_refused(store().append_output(sleeper, claim.attempt_key(), "x"));
  expect_refused(store().claim(sleeper, "a", 1));
  EXPECT_FALSE(get(store().beat(sleeper)).alive);
  const store::Run run = get(store().find(id)).value_or(store::Run());
  EXPECT_EQ(run.state, RunState::running) << "the state of its new owner";
  EXPECT_FALSE(run.unsafe);
  EXPECT_EQ(get(store().output(id)).bytes, 0U);
}

TEST_F(PostgresClock, a_sleeping_node_that_was_not_buried_continues_after_a_heartbeat) {
  submit(store());
  const NodeNumber sleeper = get(store().enrol("sleeper"));
  const Claim claim = claim_one(store(), sleeper);
  world().advance(2h);
  EXPECT_EQ(succeed(sleeper, claim).error(), Errc::closed) << "it cannot know";
  EXPECT_TRUE(get(store().beat(sleeper)).alive);
  EXPECT_EQ(succeed(sleeper, claim).value(), RunState::succeeded);
}

TEST_F(PostgresClock, a_jump_of_the_databases_clock_buries_only_dead_nodes) {
  submit(store());
  submit(store());
  const NodeNumber live = get(store().enrol("live")), dead = get(store().enrol("dead"));
  const Claim claim = claim_one(store(), live);
  claim_one(store(), dead);
  get(other().tick());
  for (const Duration jump : {Duration(24h), Duration(-24h), Duration(-24h)}) {
    world().jump(jump);
    EXPECT_TRUE(get(other().tick()).dead.empty()) << jump.count();
    EXPECT_TRUE(get(store().beat(live)).alive);
  }
  std::vector<NodeNumber> declared;
  for (int i = 0; i < 8 && declared.empty(); ++i) {
    world().advance(4s);
    EXPECT_TRUE(get(store().beat(live)).alive);
    declared = get(other().tick()).dead;
  }
  EXPECT_EQ(declared, std::vector<NodeNumber>{dead});
  EXPECT_EQ(succeed(live, claim).value(), RunState::succeeded);
}

// ---- jumps of the clock: the promises of every store are in conformance_clock_test.cpp -----------------------------

TEST_F(PostgresClock, two_machines_that_see_one_jump_correct_it_once) {
  const auto ahead = [&] { return Duration(std::chrono::milliseconds(world().sql(query::store_clock).number(0, 0))); };
  const auto moved = [&] { return world().sql(query::store_clock).number(0, 1); };
  world().jump(24h);
  get(store().tick());
  get(other().tick());
  EXPECT_EQ(ahead(), -24h);
  EXPECT_EQ(moved(), 1);
  world().jump(-48h);
  get(other().tick());
  get(store().tick());
  EXPECT_EQ(ahead(), 24h);
  EXPECT_EQ(moved(), 2);
  world().jump(1s);
  get(store().tick());
  EXPECT_EQ(moved(), 2) << "any number may follow";
}

TEST_F(PostgresClock, a_process_that_starts_during_a_jump_does_not_undo_its_correction) {
  NewRun run;
  run.id = "cccccccccccc";
  run.agent = "a";
  run.delay = 1min;
  get(store().enqueue({run}));
  world().jump(24h);
  const auto late = world().run(PostgresStore::open(world().reactor(), world().url(), world().options())).value();
  EXPECT_EQ(get(store().tick()).woken, 0U);
  EXPECT_EQ(get(late->tick()).woken, 0U);
  EXPECT_EQ(world().sql(query::store_clock).number(0, 1), 1);
  world().advance(1min);
  EXPECT_EQ(get(late->tick()).woken, 1U);
}

TEST_F(PostgresClock, a_machine_whose_own_clock_stopped_does_not_set_back_the_stores_clock) {
  NewRun run;
  run.id = "cccccccccccc";
  run.agent = "a";
  run.delay = 1h;
  get(store().enqueue({run}));
  PostgresOptions options = world().options();
  Duration frozen{};  // like that of a virtual machine that was paused
  options.elapsed = [&] { return world().clocks().elapsed() - frozen; };
  const auto paused = world().run(PostgresStore::open(world().reactor(), world().url(), options)).value();
  get(paused->tick());
  for (int i = 0; i < 120; ++i) {
    world().advance(30s);
    if (i % 2 == 0) get(other().tick());
  }
  world().advance(1s);
  EXPECT_EQ(get(other().tick()).woken, 1U);
  frozen = 1h;
  run.id = "dddddddddddd";
  get(paused->enqueue({run}));
  EXPECT_EQ(get(paused->tick()).woken, 0U);
  EXPECT_EQ(world().sql(query::store_clock).number(0, 1), 0);
  world().advance(1h - 1s);
  EXPECT_EQ(get(other().tick()).woken, 0U) << "its delay is kept";
  world().advance(1s);
  EXPECT_EQ(get(other().tick()).woken, 1U);
}

TEST_F(PostgresClock, a_fleet_that_was_down_continues_by_the_databases_clock) {
  NewRun run;
  run.id = "cccccccccccc";
  run.agent = "a";
  run.delay = 2h;
  get(store().enqueue({run}));
  world().advance(2h);
  const auto late = world().run(PostgresStore::open(world().reactor(), world().url(), world().options())).value();
  EXPECT_EQ(get(late->tick()).woken, 1U);
}

// ---- waiting for work ----------------------------------------------------------------------------------------------

TEST_F(PostgresWait, a_submit_on_another_machine_ends_the_wait_before_the_poll) {
  std::uint64_t seen = get(store().wait(0, 1s));  // it listens now
  const TimePoint begin = world().reactor().now();
  auto both = [&]() -> Task<Result<>> {
    auto submit_there = [&]() -> Task<Result<>> {
      co_await sleep_for(5ms);
      NewRun run;
      run.id = "bbbbbbbbbbbb";
      run.agent = "a";
      STINT_CO_CHECK(co_await other().enqueue({run}));
      co_return Result<>();
    };
    STINT_CO_CHECK(co_await all(store().wait(seen, 20s), submit_there()));
    co_return Result<>();
  };
  get(both());
  const Duration took = world().reactor().now() - begin;
  EXPECT_LT(took, 8s);
  RecordProperty("took_ms", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
}

TEST_F(PostgresWait, a_submit_between_two_waits_is_not_missed) {
  const std::uint64_t seen = get(store().wait(0, 1s));
  submit(other());
  get([]() -> Task<Result<>> {  // the notification has arrived by then
    co_await sleep_for(100ms);
    co_return Result<>();
  }());
  const TimePoint begin = world().reactor().now();
  get(store().wait(seen, 20s));
  EXPECT_LT(world().reactor().now() - begin, 8s);
}

TEST_F(PostgresWait, a_submit_without_notification_is_found_by_the_poll) {
  world().script(query::announce_nothing);
  const std::uint64_t seen = get(store().wait(0, 1s));
  submit(other());
  EXPECT_EQ(get(store().wait(seen, 40ms)), seen) << "no notification";
  claim_one(store(), get(store().enrol("w")));
}

TEST_F(PostgresWait, listens_again_when_its_connection_was_lost) {
  get(store().wait(0, 1s));
  world().sql(query::end_listeners);
  std::uint64_t seen = get(store().wait(0, 1s));
  for (int i = 0; i < 50 && world().sql(query::count_listeners).number(0, 0) == 0; ++i) {
    seen = get(store().wait(seen, 100ms));
  }
  submit(other());
  const TimePoint begin = world().reactor().now();
  get(store().wait(seen, 20s));
  EXPECT_LT(world().reactor().now() - begin, 8s);
}

}  // namespace
}  // namespace stint::store
