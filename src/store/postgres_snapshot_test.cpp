// The snapshot of PostgreSQL while other transactions are under way: it sees those that have committed, and its cursor
// leaves out exactly these.
#include "store/postgres_server.hpp"
#include "store/postgres_world.hpp"
#include "store/snapshot.hpp"
#include "store_sql_postgres_test.hpp"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

namespace query = postgres_test::query;
using domain::RunState;

class PostgresSnapshot : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = PostgresServer::why_not(); !reason.empty()) {
      GTEST_SKIP() << "PostgreSQL store not tested: " << reason;
    }
    world_ = std::make_unique<PostgresWorld>();
    AgentEntry entry;
    entry.name = "a";
    get(world_->store().define({entry}));
  }
  template <class T>
  T get(Task<Result<T>> task) {
    Result<T> result = world_->run(std::move(task));
    if (!result) ADD_FAILURE() << result.error().describe();
    if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T();
  }
  void submit(char last) {
    NewRun run;
    run.id = "aaaaaaaaaaa" + std::string(1, last);
    run.agent = "a";
    get(world_->store().enqueue({run}));
  }
  std::vector<std::string> after(const std::string& cursor) {
    std::vector<std::string> runs;
    for (std::string at = cursor;;) {
      const FeedPage page = get(world_->store().feed(at, 1));
      if (page.events.empty()) return runs;
      runs.push_back(page.events.front().run);
      at = page.cursor;
    }
  }

  std::unique_ptr<PostgresWorld> world_;
};

TEST_F(PostgresSnapshot, what_it_has_counted_does_not_come_again_and_what_it_has_not_comes_once) {
  const auto slow = world_->connect();
  world_->sql(*slow, query::begin);
  Parameters late;
  late.text("aaaaaaaaaaal").text("a").text("");
  world_->sql(*slow, query::enqueue_one, late);
  submit('b');
  const Snapshot seen = get(world_->store().snapshot(0, 0));
  EXPECT_EQ(seen.count(RunState::queued), 1U) << "the one that has committed";
  EXPECT_NE(seen.cursor.find(':'), std::string::npos) << seen.cursor;
  submit('c');
  EXPECT_TRUE(after(seen.cursor).empty()) << "below the transaction that is under way nothing is final";
  world_->sql(*slow, query::commit);
  EXPECT_EQ(after(seen.cursor), (std::vector<std::string>{"aaaaaaaaaaal", "aaaaaaaaaaac"})) << "b was counted";
  const Snapshot later = get(world_->store().snapshot(0, 0));
  EXPECT_EQ(later.count(RunState::queued), 3U);
  EXPECT_TRUE(after(later.cursor).empty());
}

}  // namespace
}  // namespace stint::store
