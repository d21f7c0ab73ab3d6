#include "store/postgres_store.hpp"

#include "stint/combinators.hpp"
#include "store/conformance_series.hpp"
#include "store/postgres_migrate.hpp"
#include "store/postgres_world.hpp"
#include "store_sql_postgres_test.hpp"

#include <array>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;
using domain::Stop;
namespace query = postgres_test::query;

std::vector<WorldMaker> makers() {
  if (!PostgresServer::why_not().empty()) return {};
  return {WorldMaker{"postgres", [] { return std::make_unique<PostgresWorld>(); }}};
}

std::vector<WorldMaker> pooled_makers() {
  const bool foreign = std::getenv(PostgresServer::kVariable) != nullptr;
  if (!PostgresServer::why_not().empty() || foreign || !std::filesystem::exists(PostgresWorld::kPooler)) return {};
  return {WorldMaker{"pooled", [] { return std::make_unique<PostgresWorld>(true); }}};
}

INSTANTIATE_TEST_SUITE_P(Postgres, StoreTest, testing::ValuesIn(makers()), world_name);
INSTANTIATE_TEST_SUITE_P(Postgres, ClockTest, testing::ValuesIn(makers()), world_name);
INSTANTIATE_TEST_SUITE_P(Postgres, SeriesTest, testing::ValuesIn(makers()), world_name);
INSTANTIATE_TEST_SUITE_P(Postgres, SnapshotTest, testing::ValuesIn(makers()), world_name);
INSTANTIATE_TEST_SUITE_P(PostgresPooled, StoreTest, testing::ValuesIn(pooled_makers()), world_name);

/// Tests of this store only.
class PostgresStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = PostgresServer::why_not(); !reason.empty()) {
      GTEST_SKIP() << "PostgreSQL store not tested: " << reason;
    }
    world_ = std::make_unique<PostgresWorld>();
  }
  PostgresWorld& world() { return *world_; }
  PostgresStore& store() { return world_->store(); }
  template <class T>
  T get(Task<Result<T>> task) {
    Result<T> result = world_->run(std::move(task));
    if (!result) ADD_FAILURE() << result.error().describe();
    if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T();
  }

  void define(const std::string& name, std::vector<LimitUse> limits = {}) {
    AgentEntry entry;
    entry.name = name;
    entry.limits = std::move(limits);
    get(store().define({entry}));
  }
  static std::string id_of(int number) {
    std::string id = "aaaaaaaaaaaa";
    for (std::size_t i = id.size(); number > 0; number /= 26) id[--i] = static_cast<char>('a' + number % 26);
    return id;
  }
  std::string submit(const std::string& agent, const std::string& session = {}) {
    NewRun run;
    run.id = id_of(++ids_);
    run.agent = agent;
    run.session = session;
    run.on_crash = domain::OnCrash::rerun;
    const auto answers = get(store().enqueue({run}));
    EXPECT_TRUE(answers.size() == 1 && answers.front());
    return run.id;
  }

  std::optional<RunState> succeed(NodeNumber node, const Claim& claim) {
    Settlement end;
    end.attempt = claim.attempt_key();
    end.settle = Settle::succeeded;
    const auto states = get(store().settle(node, {end}));
    return states.empty() ? std::nullopt : states.front();
  }

  /// Runs both at once: the second is sent before the first has committed; the first commits when the second waits
  /// for it or has ended.
  std::pair<int, int> overlap(std::string_view sql, const Parameters& first, const Parameters& second) {
    const auto one = world().connect(), other = world().connect();
    world().sql(*one, "BEGIN");
    const int of_one = world().sql(*one, sql, first).size();
    int of_other = 0;
    bool ended = false;
    auto ask = [&]() -> Task<Result<>> {
      STINT_CO_TRY(const PostgresRows rows, co_await other->run(sql, second));
      of_other = rows.size();
      ended = true;
      co_return Result<>();
    };
    auto commit = [&]() -> Task<Result<>> {
      STINT_CO_CHECK(co_await until_blocked(ended));
      STINT_CO_CHECK(co_await one->run("COMMIT", {}));
      co_return Result<>();
    };
    auto both = [&]() -> Task<Result<>> {
      STINT_CO_CHECK(co_await all(ask(), commit()));
      co_return Result<>();
    };
    get(both());
    return {of_one, of_other};
  }
  /// Waits until this many statements wait for a lock.
  Task<Result<>> until_blocked(const bool& or_ended, std::int64_t count = 1) {
    while (!or_ended) {
      STINT_CO_TRY(const PostgresRows rows, co_await world().admin().run(query::count_blocked, {}));
      if (rows.number(0, 0) >= count) break;
      co_await sleep_for(1ms);
    }
    co_return Result<>();
  }

 private:
  std::unique_ptr<PostgresWorld> world_;
  int ids_ = 0;
};

// ---- rules and known-bad variants ----------------------------------------------------------------------------------

TEST_F(PostgresStoreTest, its_next_state_matches_the_domain_rule) {
  std::vector<domain::SettleFacts> all_facts;
  domain::SettleFacts facts;
  facts.attempts_max = facts.lost_max = 2;
  using domain::OnCrash;
  for (const Settle settle : domain::kSettles) {
    facts.settle = settle;
    for (const Stop stop : domain::kStops) {
      facts.stop = stop;
      for (const OnCrash on_crash : {OnCrash::resume, OnCrash::rerun, OnCrash::doubt}) {
        facts.on_crash = on_crash;
        for (unsigned bits = 0; bits < 32; ++bits) {
          facts.unsafe = (bits & 1U) != 0;
          facts.attempt = (bits & 2U) != 0 ? 2 : 1;
          facts.lost = (bits & 4U) != 0 ? 1 : 0;
          facts.expires_first = (bits & 8U) != 0;
          facts.deadline_first = (bits & 16U) != 0;
          all_facts.push_back(facts);
        }
      }
    }
  }
  std::vector<std::string> settles, stops, unsafe, on_crash, expires, deadline;
  std::vector<std::optional<std::int64_t>> attempts, lost;
  const auto flag = [](bool value) { return std::string(value ? "t" : "f"); };
  for (const domain::SettleFacts& each : all_facts) {
    settles.emplace_back(to_string(each.settle));
    stops.emplace_back(to_string(each.stop));
    on_crash.emplace_back(to_string(each.on_crash));
    unsafe.push_back(flag(each.unsafe));
    expires.push_back(flag(each.expires_first));
    deadline.push_back(flag(each.deadline_first));
    attempts.emplace_back(each.attempt);
    lost.emplace_back(each.lost);
  }
  Parameters parameters;
  parameters.texts(settles).texts(stops).texts(unsafe).texts(on_crash).numbers(attempts).numbers(lost);
  parameters.texts(expires).texts(deadline);
  const PostgresRows rows = world().sql(query::next_states, parameters);
  ASSERT_EQ(rows.size(), std::ssize(all_facts));
  for (int i = 0; i < rows.size(); ++i) {
    const domain::SettleFacts& each = all_facts[static_cast<std::size_t>(i)];
    EXPECT_EQ(rows.text(i, 0), to_string(domain::after_settle(each)))
        << to_string(each.settle) << ' ' << to_string(each.stop) << " case " << i;
  }
}

TEST_F(PostgresStoreTest, a_limit_holds_under_two_concurrent_claims_and_breaks_with_each_known_mistake) {
  world().script(query::patient_claims);
  define("a", {{"gpu", 1}});
  define("b", {{"gpu", 1}});
  get(store().resize("gpu", 1));
  const auto claimed_at_once = [&] {
    submit("a");
    submit("b");
    const NodeNumber one = get(store().enrol("one")), other = get(store().enrol("other"));
    Parameters first, second;
    first.number(one).text("a");
    second.number(other).text("b");
    const auto [of_one, of_other] = overlap(query::claim_of, first, second);
    for (const NodeNumber node : {one, other}) {
      for (const Claim& claim : get(store().owned(node))) {
        succeed(node, claim);
      }
    }
    return of_one + of_other;
  };
  EXPECT_EQ(claimed_at_once(), 1);
  world().script(query::count_then_claim);
  EXPECT_EQ(claimed_at_once(), 2) << "must fail: stale count";
  world().script(query::lock_and_count_in_one_statement);
  EXPECT_EQ(claimed_at_once(), 2) << "must fail: the count is older than the lock";
}

TEST_F(PostgresStoreTest, a_session_has_one_head_when_two_submit_at_once_and_two_without_its_lock) {
  define("a");
  const NodeNumber node = get(store().enrol("w"));
  submit("a", "s");
  for (const Claim& claim : get(store().claim(node, "a", 1))) {
    succeed(node, claim);
  }
  int ids = 1000;
  const auto heads_at_once = [&] {
    Parameters first, second;
    const std::string one = id_of(++ids), other = id_of(++ids);
    first.text(one).text("a").text("s");
    second.text(other).text("a").text("s");
    overlap(query::enqueue_one, first, second);
    const std::int64_t heads = world().sql(query::heads).number(0, 0);
    get(store().cancel(other));
    get(store().cancel(one));
    return heads;
  };
  EXPECT_EQ(heads_at_once(), 1);
  world().script(query::session_without_lock);
  EXPECT_EQ(heads_at_once(), 2) << "must fail: neither sees the other";
}

TEST_F(PostgresStoreTest, a_zombie_is_refused_by_its_fence_and_by_nothing_else) {
  define("a");
  const auto zombie_wins = [&] {
    submit("a");
    const NodeNumber zombie = get(store().enrol("zombie"));
    const std::vector<Claim> claims = get(store().claim(zombie, "a", 1));
    world().kill(zombie);
    const NodeNumber next = get(store().enrol("next"));
    get(store().tick());
    const std::vector<Claim> again = get(store().claim(next, "a", 1));
    EXPECT_EQ(again.size(), 1U);
    const bool won = succeed(zombie, claims.front()).has_value();
    succeed(next, again.front());
    return won;
  };
  EXPECT_FALSE(zombie_wins());
  world().script(query::settle_without_fence);
  EXPECT_TRUE(zombie_wins()) << "must fail: its settlement is accepted";
}

TEST_F(PostgresStoreTest, an_unsafe_run_whose_owner_died_is_not_repeated_unless_the_rule_is_broken) {
  define("a");
  const auto after_death = [&] {
    const std::string id = submit("a");
    const NodeNumber node = get(store().enrol("w"));
    const std::vector<Claim> claims = get(store().claim(node, "a", 1));
    EXPECT_EQ(claims.size(), 1U);
    get(store().mark(node, claims.front().attempt_key(), true));
    world().kill(node);
    get(store().tick());
    return get(store().find(id))->state;
  };
  EXPECT_EQ(after_death(), RunState::in_doubt);
  world().script(query::repeat_unsafe);
  EXPECT_EQ(after_death(), RunState::queued) << "must fail: it is started twice";
}

// ---- a lost claim --------------------------------------------------------------------------------------------------

TEST_F(PostgresStoreTest, owned_sees_a_claim_under_way_whose_caller_was_cancelled) {
  world().script(query::patient_claims);
  define("a", {{"gpu", 1}});
  define("b", {{"gpu", 1}});
  get(store().resize("gpu", 1));
  const NodeNumber node = get(store().enrol("w"));
  const auto found_after_loss = [&] {
    submit("a");
    const auto blocker = world().connect();
    world().sql(*blocker, "BEGIN");
    world().sql(*blocker, query::lock_limit, Parameters().text("gpu"));
    std::vector<Claim> found;
    auto body = [&]() -> Task<Result<>> {
      bool ended = false;
      const auto first = co_await race(store().claim(node, "a", 1), until_blocked(ended));
      EXPECT_EQ(first.index(), 1U) << "the caller is cancelled; the server is not";
      auto ask = [&]() -> Task<Result<>> {
        STINT_CO_TRY(found, co_await store().owned(node));
        ended = true;
        co_return Result<>();
      };
      auto let_go = [&]() -> Task<Result<>> {
        STINT_CO_CHECK(co_await until_blocked(ended, 2));
        STINT_CO_CHECK(co_await blocker->run("COMMIT", {}));
        co_return Result<>();
      };
      STINT_CO_CHECK(co_await all(ask(), let_go()));
      co_return Result<>();
    };
    get(body());
    return found;
  };
  const std::vector<Claim> found = found_after_loss();
  ASSERT_EQ(found.size(), 1U);
  succeed(node, found[0]);
  submit("a");
  EXPECT_EQ(get(store().claim(node, "a", 1)).size(), 1U) << "in the new round";
  Parameters late;
  late.number(node).text("a");
  EXPECT_TRUE(world().sql(query::claim_of, late).empty()) << "refused: of the old round";
  for (const Claim& claim : get(store().owned(node))) {
    succeed(node, claim);
  }
  world().script(query::owned_without_round);
  EXPECT_TRUE(found_after_loss().empty()) << "must fail: the claim is not seen";
}

// ---- daily use -----------------------------------------------------------------------------------------------------

TEST_F(PostgresStoreTest, use_of_nodes_on_a_past_day_is_merged_into_one_row) {
  define("a");
  const auto carry = [&](std::int64_t tokens) {
    submit("a");
    const NodeNumber node = get(store().enrol("w"));
    const std::vector<Claim> claims = get(store().claim(node, "a", 1));
    Settlement end;
    end.attempt = claims.at(0).attempt_key();
    end.tokens = tokens;
    EXPECT_TRUE(get(store().settle(node, {end})).at(0));
  };
  const auto rows = [&] {
    const PostgresRows found = world().sql(query::count_spent);
    return std::array{found.number(0, 0), found.number(0, 1), found.number(0, 2)};
  };
  using Rows = std::array<std::int64_t, 3>;
  for (const std::int64_t tokens : {1, 20, 300}) carry(tokens);
  get(store().prune(0s, 100));
  EXPECT_EQ(rows(), (Rows{3, 3, 321})) << "the day is not over";
  world().advance(24h);
  carry(4000);
  for (int i = 0; i < 2; ++i) {
    get(store().prune(0s, 100));
    EXPECT_EQ(rows(), (Rows{2, 4, 4321})) << "merged rows stay";
  }
}

// ---- opening -------------------------------------------------------------------------------------------------------

TEST_F(PostgresStoreTest, two_concurrent_opens_create_the_tables_once) {
  world().script("DROP SCHEMA stint_v1 CASCADE; DROP SCHEMA stint CASCADE");
  auto both = [&]() -> Task<Result<>> {
    STINT_CO_CHECK(co_await all(PostgresStore::open(world().reactor(), world().url()),
                                PostgresStore::open(world().reactor(), world().url())));
    co_return Result<>();
  };
  get(both());
  define("a");
  submit("a");
}

TEST_F(PostgresStoreTest, a_newer_schema_is_used_only_if_marked_compatible) {
  const auto open = [&] { return world().run(PostgresStore::open(world().reactor(), world().url())); };
  world().sql(query::set_schema_version, Parameters().text("version").number(999));
  EXPECT_TRUE(open());
  world().sql(query::set_schema_version, Parameters().text("oldest_program").number(998));
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::denied);
  EXPECT_TRUE(refused.error().what().contains("newer Stint")) << refused.error().describe();
}

TEST_F(PostgresStoreTest, tables_of_an_unreleased_version_are_refused_with_the_next_step_and_unchanged) {
  const std::string id = (define("a"), submit("a"));
  const auto open = [&] { return world().run(PostgresStore::open(world().reactor(), world().url())); };
  const auto version = newest_version(postgres_migrations());
  world().sql(query::set_schema_version, Parameters().text("version").number(3));
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::denied);
  EXPECT_TRUE(refused.error().what().contains("unreleased version of Stint (schema 3)")) << refused.error().describe();
  EXPECT_TRUE(refused.error().what().contains("stint store export")) << refused.error().describe();
  world().sql(query::set_schema_version, Parameters().text("version").number(version));
  EXPECT_TRUE(open());
  EXPECT_TRUE(get(store().find(id)));
}

TEST_F(PostgresStoreTest, tables_of_the_previous_version_are_migrated_and_its_program_continues) {
  constexpr const char* kNext[] = {"CREATE TABLE stint.extra (x bigint)", "ALTER TABLE stint.run ADD COLUMN y bigint"};
  std::vector<Migration> migrations(postgres_migrations().begin(), postgres_migrations().end());
  migrations.emplace_back(kNext);
  const Schema schema = get(migrate_postgres(world().reactor(), world().url(), 10s, migrations));
  EXPECT_EQ(schema.found, newest_version(migrations) - 1);
  EXPECT_EQ(schema.now, newest_version(migrations));
  define("a");
  const std::string id = submit("a");
  const NodeNumber node = get(store().enrol("w"));
  const std::vector<Claim> claims = get(store().claim(node, "a", 1));
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_EQ(claims[0].id, id);
}

TEST_F(PostgresStoreTest, nested_runs_create_a_set_of_limits_once) {
  define("a", {{"one", 1}});
  define("both", {{"one", 1}, {"two", 1}, {"three", 2}});
  const NodeNumber node = get(store().enrol("w"));
  NewRun nested;
  nested.parent = submit("a");
  nested.agent = "both";
  get(store().claim(node, "a", 1));
  for (int i = 0; i < 3; ++i) {
    nested.id = id_of(100 + i);
    get(store().enqueue({nested}));
    EXPECT_EQ(get(store().claim(node, "both", 1, nested.id)).size(), 1U);
    EXPECT_EQ(world().sql(query::count_sets).number(0, 0), 3) << "those of the agents, and one more";
  }
}

TEST_F(PostgresStoreTest, a_login_that_cannot_succeed_fails_at_once) {
  const auto open = [&](const std::string& url) {
    return world().run(PostgresStore::open(world().reactor(), url)).error();
  };
  EXPECT_EQ(open(world().url() + " dbname=nowhere"), Errc::denied);
  EXPECT_EQ(open("postgresql://[broken"), Errc::invalid);
  EXPECT_EQ(open("host=/nowhere-at-all dbname=x"), Errc::unavailable);
  EXPECT_EQ(open("postgresql://localhost:1/x"), Errc::unavailable) << "a name that must be resolved";
}

}  // namespace
}  // namespace stint::store
