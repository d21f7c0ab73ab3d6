// Several stores at once on one database, as of several processes, with an auditor that checks continuously: no limit
// is ever exceeded, no session has two running runs, everything ends, and there is no deadlock.
#include "stint/combinators.hpp"
#include "store/postgres_world.hpp"
#include "store_sql_postgres_test.hpp"

#include <algorithm>
#include <map>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;
namespace query = postgres_test::query;

constexpr int kSharedRuns = 150, kSessions = 6, kNodes = 4;

class Fleet {
 public:
  explicit Fleet(PostgresWorld& world) : world_(world) {
    for (int i = 0; i < kNodes; ++i) {
      stores_.push_back(world.run(PostgresStore::open(world.reactor(), world.url())).value());
    }
  }

  Task<Result<>> run() {
    const auto agent = [](const char* name, std::vector<LimitUse> limits) {
      AgentEntry entry;
      entry.name = name;
      entry.limits = std::move(limits);
      entry.attempts_max = 100;
      return entry;
    };
    STINT_CO_CHECK(
        co_await stores_[0]->define({agent("light", {{"gpu", 1}, {"own", 1}}), agent("heavy", {{"gpu", 2}})}));
    STINT_CO_CHECK(co_await stores_[0]->resize("gpu", 3));
    STINT_CO_CHECK(co_await stores_[0]->resize("own", 2));
    auto body = [this](Scope& scope) -> Task<Result<>> {
      for (int i = 0; i < kNodes; ++i) scope.spawn(work(*stores_[static_cast<std::size_t>(i)]));
      for (int i = 0; i < 2; ++i)
        scope.spawn(submit(*stores_[static_cast<std::size_t>(i)], i * kSharedRuns / 2, kSharedRuns / 2));
      scope.spawn(audit(world_.store()));
      co_return Result<>();
    };
    co_return co_await with_scope(std::ref(body));
  }

 private:
  Task<Result<>> submit(PostgresStore& store, int first, int count) {
    for (int i = first; i < first + count; i += 5) {
      std::vector<NewRun> batch(5);
      for (int j = 0; j < 5; ++j) {
        NewRun& run = batch[static_cast<std::size_t>(j)];
        run.id =
            "aaaaaaaaaa" + std::string{static_cast<char>('a' + (i + j) / 26), static_cast<char>('a' + (i + j) % 26)};
        run.agent = (i + j) % 3 == 0 ? "heavy" : "light";
        if ((i + j) % 2 == 0) run.session = "s" + std::to_string((i * 7 + j) % kSessions);
        run.on_crash = domain::OnCrash::rerun;
      }
      const std::string one = batch[0].id;
      STINT_CO_TRY(const auto answers, co_await store.enqueue(std::move(batch)));
      for (const auto& answer : answers) {
        if (!answer) co_return fail(answer.error());
      }
      if (i % 4 == 0) STINT_CO_CHECK(co_await store.cancel(one));
      if (i % 7 == 0) STINT_CO_CHECK(co_await store.tick());
    }
    co_return Result<>();
  }

  Task<Result<>> work(PostgresStore& store) {
    STINT_CO_TRY(const NodeNumber node, co_await store.enrol("node"));
    for (int turn = 0; !done_; ++turn) {
      STINT_CO_TRY(const auto claims, co_await store.claim(node, turn % 2 == 0 ? "light" : "heavy", 2));
      std::vector<Settlement> ends(claims.size());
      for (std::size_t i = 0; i < claims.size(); ++i) {
        ends[i].attempt = claims[i].attempt_key();
        ends[i].settle = (turn + static_cast<int>(i)) % 5 == 0 ? Settle::hand_back : Settle::succeeded;
      }
      STINT_CO_CHECK(co_await store.beat(node));
      if (ends.empty()) co_await sleep_for(1ms);
      if (ends.empty()) continue;
      STINT_CO_TRY(const auto states, co_await store.settle(node, std::move(ends)));
      EXPECT_TRUE(std::ranges::all_of(states, [](const auto& state) { return state.has_value(); }));
    }
    co_return Result<>();
  }

  /// Each answer is one snapshot of the database.
  Task<Result<>> audit(PostgresStore& store) {
    std::uint64_t ended = 0;
    while (ended < kSharedRuns) {
      STINT_CO_TRY(const auto limits, co_await store.limits());
      for (const LimitState& limit : limits) EXPECT_LE(limit.units, std::int64_t{*limit.capacity}) << limit.name;
      Filter running;
      running.states = {RunState::running};
      STINT_CO_TRY(const auto runs, co_await store.list(running));
      std::map<std::string, int> of_session;
      for (const store::Run& run : runs)
        EXPECT_TRUE(run.session.empty() || ++of_session[run.session] == 1) << run.session;
      STINT_CO_TRY(const Stats stats, co_await store.stats());
      ended = 0;
      for (const auto& [state, count] : stats.runs) ended += domain::is_finished(state) ? count : 0;
    }
    done_ = true;
    co_return Result<>();
  }

  PostgresWorld& world_;
  std::vector<std::unique_ptr<PostgresStore>> stores_;
  bool done_ = false;
};

TEST(PostgresFleet, keeps_its_limits_and_sessions_at_every_moment) {
  if (const std::string reason = PostgresServer::why_not(); !reason.empty()) GTEST_SKIP() << reason;
  PostgresWorld world;
  world.script(query::go_on);  // a turn that its agent no longer needs must expire
  {
    Fleet fleet(world);
    const auto done = world.run(fleet.run());
    if (!done) ADD_FAILURE() << done.error().describe();
  }
  EXPECT_EQ(world.sql(query::count_deadlocks).number(0, 0), 0);
  EXPECT_EQ(world.sql(query::gapless).number(0, 0), 0) << "runs with a gap in their events";
  EXPECT_EQ(world.sql(query::ends).number(0, 0), 0) << "runs that ended twice";
}

}  // namespace
}  // namespace stint::store
