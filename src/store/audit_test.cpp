#include "store/audit.hpp"

#include "domain/run_id.hpp"
#include "os/blocking_run.hpp"
#include "os/test_folder.hpp"
#include "store/sqlite_db.hpp"
#include "store/sqlite_store.hpp"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

/// A store with a few runs, which the test then changes directly in the database.
class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    open();
    AgentEntry agent;
    agent.name = "a";
    ask(store_->define({agent}));
    std::vector<NewRun> runs(4);
    for (NewRun& run : runs) {
      run.id = domain::new_run_id(system_);
      run.agent = "a";
    }
    runs[0].key = "k";
    runs[1].session = runs[2].session = "s";
    ask(store_->enqueue(runs));
    const NodeNumber node = ask(store_->enrol("test"));
    std::vector<Claim> claims = ask(store_->claim(node, "a", 1));
    Settlement end;
    end.attempt = claims.at(0).attempt_key();
    end.settle = domain::Settle::succeeded;
    ask(store_->settle(node, {end}));
  }

  void open() { store_ = SqliteStore::blocking_open(path_, system_).value(); }
  template <class T>
  T ask(Task<Result<T>> task) {
    Result<T> result = os::blocking_run(reactor_, std::move(task));
    if (!result) ADD_FAILURE() << result.error().describe();
    if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T();
  }
  std::vector<std::string> findings() { return ask(audit(*store_)).findings; }
  /// The findings of the audit about the run, without its id.
  std::string after(const char* sql) {
    store_.reset();
    {
      auto database = Database::open(path_, Database::Access::write, 1s);
      EXPECT_TRUE(database) << database.error().describe();
      const Result<> done = database->run(sql);
      EXPECT_TRUE(done) << done.error().describe();
    }
    open();
    std::string all;
    for (const std::string& finding : findings()) {
      all += (finding.starts_with("run ") ? finding.substr(finding.find(": ") + 2) : finding) + "\n";
    }
    return all;
  }

  os::TestFolder folder_;
  const std::string path_ = folder_ / "stint.db";
  Reactor reactor_;
  std::uint64_t random_ = 1;
  const domain::System system_{
      .wall_now = [] { return WallTime(std::chrono::milliseconds(1'800'000'000'000)); },
      .random = [this] { return random_ = random_ * 6364136223846793005U + 1442695040888963407U; }};
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(AuditTest, a_sound_store_has_no_findings) {
  const Audit found = ask(audit(*store_));
  EXPECT_EQ(found.findings, std::vector<std::string>());
  EXPECT_EQ(found.runs, 4U);
  EXPECT_EQ(found.events, 6U);
}

TEST_F(AuditTest, a_missing_last_event_is_found) {
  EXPECT_EQ(after("DELETE FROM event WHERE run_id = 1 AND seq = 2"), "it has 2 events, but its seq is 3\n");
}

TEST_F(AuditTest, a_gap_in_the_events_is_found) {
  EXPECT_EQ(after("UPDATE event SET seq = 4 WHERE run_id = 1 AND seq = 3"), "event 3 is missing\n");
}

TEST_F(AuditTest, a_state_without_its_event_is_found) {
  EXPECT_EQ(after("UPDATE run SET state = 'in_doubt' WHERE run_id = 4"),
            "it is in_doubt, but its last event records  queued\n");
}

TEST_F(AuditTest, a_transition_that_is_not_allowed_is_found) {
  EXPECT_EQ(after("UPDATE event SET cause = 'woken' WHERE run_id = 1 AND seq = 2"),
            "event 2 is not an allowed transition:  queued to running by 'woken'\n");
}

TEST_F(AuditTest, a_wrong_session_order_is_found) {
  EXPECT_EQ(after("UPDATE run SET hold = NULL WHERE run_id = 3"),
            "it does not wait for its session, but an earlier run of it is unfinished\n");
  EXPECT_EQ(after("UPDATE run SET hold = 'session' WHERE run_id IN (2, 3)"),
            "it waits for its session, but is the oldest unfinished run of it\n");
}

TEST_F(AuditTest, a_wrong_queue_counter_is_found) {
  EXPECT_EQ(after("UPDATE queue_size SET n = 7"),
            "the queue counter of 'a' is 7, but the number of queued runs is 3\n");
}

TEST_F(AuditTest, a_damaged_file_is_found) {
  const std::string found = after(
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX run_finished ON run (finished_at)' "
      "WHERE name = 'run_finished'");
  EXPECT_TRUE(found.starts_with("the file is damaged: ")) << found;
}

}  // namespace
}  // namespace stint::store
