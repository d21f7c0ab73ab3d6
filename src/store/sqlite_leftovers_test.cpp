// What ended processes leave in a SQLite store.
#include "os/slot_file.hpp"
#include "os/test_folder.hpp"
#include "store/conformance.hpp"
#include "store/sqlite_store.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

class SqliteLeftovers : public testing::Test {
 protected:
  struct Opened {
    explicit Opened(SqliteLeftovers& test)
        : system{.wall_now = [&test] { return WallTime(std::chrono::milliseconds(test.now_ms_)); },
                 .random = [] { return std::uint64_t{7}; }},
          store(SqliteStore::blocking_open(test.path_, system).value()) {}
    template <class T>
    T get(Task<Result<T>> task) {
      Result<T> result = os::blocking_run(reactor, std::move(task));
      EXPECT_TRUE(result) << result.error().describe();
      if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T();
    }
    domain::System system;
    Reactor reactor;
    std::unique_ptr<SqliteStore> store;
  };
  std::vector<std::string> lock_files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_ + ".nodes")) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }
  std::int64_t node_rows() const {
    auto database = Database::open(path_, Database::Access::write, 1s).value();
    Query query(database, "SELECT count(*) FROM node");
    return query.next() ? query.number(0) : -1;
  }

  using Names = std::vector<std::string>;
  os::TestFolder folder_;
  const std::string path_ = folder_ / "x.db";
  std::atomic<std::int64_t> now_ms_ = 1'800'000'000'000;
};

TEST_F(SqliteLeftovers, processes_that_left_or_died_leave_neither_row_nor_file) {
  NodeNumber last{};
  for (int i = 0; i < 3; ++i) {
    Opened died(*this), left(*this);
    died.get(died.store->enrol("died"));
    last = left.get(left.store->enrol("left"));
    left.get(left.store->leave(last));
  }
  Opened here(*this);
  here.get(here.store->tick());
  EXPECT_EQ(node_rows(), 0);
  EXPECT_EQ(lock_files(), Names());
  EXPECT_GT(here.get(here.store->enrol("next")), last) << "numbers are never reused";
  EXPECT_FALSE(here.get(here.store->beat(last)).alive);
}

TEST_F(SqliteLeftovers, a_run_whose_keeper_is_gone_is_for_any_node) {
  Opened here(*this);
  AgentEntry agent;
  agent.name = "a";
  here.get(here.store->define({agent}));
  const NodeNumber keeper = here.get(here.store->enrol("keeper")), other = here.get(here.store->enrol("other"));
  NewRun run;
  run.id = "aaaaaaaaaaaa";
  run.agent = "a";
  run.kept_for = keeper;
  here.get(here.store->enqueue({run}));
  EXPECT_TRUE(here.get(here.store->claim(other, "a", 1)).empty());
  here.get(here.store->drop_lease(keeper));
  here.get(here.store->tick());
  EXPECT_EQ(node_rows(), 1);
  EXPECT_EQ(here.get(here.store->claim(other, "a", 1)).size(), 1U);
}

TEST_F(SqliteLeftovers, leftover_lease_files_are_removed_by_a_prune) {
  Opened here(*this), there(*this);
  const NodeNumber lives = here.get(here.store->enrol("lives")), another = there.get(there.store->enrol("another"));
  {  // leftovers of a process that died between file and row, and of the previous version
    auto database = Database::open(path_, Database::Access::write, 1s).value();
    ASSERT_TRUE(database.run("INSERT INTO node (node_id, label, state) VALUES (77, 'old', 'dead')"));
  }
  ASSERT_TRUE(os::open_shared_file(path_ + ".nodes/4711.lock", 0600));
  ASSERT_TRUE(os::open_shared_file(path_ + ".nodes/notes.txt", 0600));
  EXPECT_EQ(here.get(here.store->prune_if_due(24h, 1h, 10)), 0U);
  EXPECT_EQ(lock_files(),
            (Names{std::to_string(lives.value) + ".lock", std::to_string(another.value) + ".lock", "notes.txt"}));
  EXPECT_EQ(node_rows(), 2);
  EXPECT_TRUE(here.get(here.store->beat(lives)).alive);
  EXPECT_TRUE(there.get(there.store->beat(another)).alive);
}

TEST_F(SqliteLeftovers, a_store_without_a_daemon_is_pruned_once_an_hour_by_any_of_its_processes) {
  Opened first(*this), second(*this);
  AgentEntry agent;
  agent.name = "a";
  first.get(first.store->define({agent}));
  NewRun run;
  run.id = "aaaaaaaaaaaa";
  run.agent = "a";
  const auto end_one = [&] {
    first.get(first.store->enqueue({run}));
    first.get(first.store->cancel(run.id));
    now_ms_ += 2000;
  };
  end_one();
  EXPECT_EQ(second.get(second.store->prune_if_due(1s, 1h, 10)), 1U);
  end_one();
  const std::uint64_t commits = first.store->commits();
  EXPECT_EQ(first.get(first.store->prune_if_due(1s, 1h, 10)), 0U);
  EXPECT_EQ(first.store->commits(), commits) << "no write if it is not due";
  now_ms_ += 3'600'000;
  EXPECT_EQ(first.get(first.store->prune_if_due(1s, 1h, 10)), 1U);
}

}  // namespace
}  // namespace stint::store
