// The files of the SQLite store under interference: no descriptors left, deleted, moved.
#include "os/test_descriptors.hpp"
#include "os/test_folder.hpp"
#include "store/sqlite_opened.hpp"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/wait.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;

int exit_status(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Opens all descriptors that this process may have, except `spare`.
std::vector<os::Fd> use_up_descriptors(std::size_t spare) {
  const rlimit few = {.rlim_cur = 200, .rlim_max = 200};
  ::setrlimit(RLIMIT_NOFILE, &few);
  std::vector<os::Fd> all;
  while (true) {
    os::Fd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!next) break;
    all.push_back(std::move(next));
  }
  all.resize(all.size() - std::min(all.size(), spare));
  return all;
}

/// The other process owns a run and is alive; this one ticks with 0, 1, … descriptors left.
TEST(SqliteProcesses, a_process_without_descriptors_takes_no_run_from_another) {
  if (os::kSanitizerNeedsDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  {
    Opened first(path);
    first.define();
    ASSERT_TRUE(first.submit(1));
  }
  int claimed[2], end[2];
  ASSERT_EQ(::pipe2(claimed, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(end, O_CLOEXEC), 0);
  const pid_t owner = start([&] {
    ::close(end[1]);
    Opened opened(path);
    const NodeNumber node = opened.run(opened.store().enrol("owner")).value();
    const auto claims = opened.run(opened.store().claim(node, "a", 1)).value();
    (void)!::write(claimed[1], "x", 1);
    char byte = 0;
    (void)!::read(end[0], &byte, 1);  // until the other end is closed
    Settlement over;
    over.attempt = claims.at(0).attempt_key();
    over.settle = domain::Settle::succeeded;
    return opened.run(opened.store().settle(node, {over}))->at(0) == RunState::succeeded ? 0 : 1;
  });
  char byte = 0;
  ASSERT_EQ(::read(claimed[0], &byte, 1), 1);
  const pid_t poor = start([&] {
    Opened opened(path);
    bool refused = false;
    for (std::size_t spare = 0; spare < 8; ++spare) {
      const auto kept = use_up_descriptors(spare);
      const auto ticked = opened.run(opened.store().tick());
      if (ticked && (ticked->lost != 0 || !ticked->dead.empty())) return 10 + static_cast<int>(spare);
      if (!ticked && ticked.error().retry() != Retry::safe) return 2;
      refused = refused || !ticked;
    }
    if (!refused) return 3;  // the scenario did not happen
    return opened.run(opened.store().tick()) ? 0 : 4;
  });
  EXPECT_EQ(exit_status(poor), 0);
  ::close(end[1]);
  EXPECT_EQ(exit_status(owner), 0);
  ::close(claimed[0]);
  ::close(claimed[1]);
  ::close(end[0]);
}

TEST(SqliteProcesses, without_descriptors_a_store_is_not_opened_and_the_error_names_the_reason) {
  if (os::kSanitizerNeedsDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  {
    Opened(path).define();
  }
  const pid_t child = start([&] {
    for (std::size_t spare = 0; spare < 12; ++spare) {
      const auto kept = use_up_descriptors(spare);
      auto database = Database::open(path, Database::Access::write, 1s);
      if (database) return spare > 0 ? 0 : 1;
      if (database.error() != Errc::exhausted || database.error().retry() != Retry::safe) return 2;
    }
    return 3;
  });
  EXPECT_EQ(exit_status(child), 0);
}

TEST(SqliteProcesses, a_deleted_lease_file_is_created_again_by_the_next_heartbeat) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db", leases = path + ".nodes";
  Opened here(path), there(path);
  here.define();
  const NodeNumber node = here.run(here.store().enrol("here")).value();
  EXPECT_TRUE(here.submit(1));
  EXPECT_EQ(here.run(here.store().claim(node, "a", 1))->size(), 1U);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(here.run(here.store().beat(node))->alive);
    EXPECT_TRUE(here.run(here.store().beat(node))->alive);  // this answer is cached
    std::filesystem::remove_all(round == 0 ? leases + "/" + std::to_string(node.value) + ".lock" : leases);
    EXPECT_TRUE(here.run(here.store().beat(node))->alive);
    const Ticked ticked = there.run(there.store().tick()).value();
    EXPECT_EQ(ticked.lost, 0U);
    EXPECT_TRUE(ticked.dead.empty());
  }
  EXPECT_TRUE(there.run(there.store().enrol("there")));
}

// ---- files that vanish ---------------------------------------------------------------------------------------------

class SqliteFilesGone : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    opened_.define();
    ASSERT_TRUE(opened_.submit(1));
    node_ = opened_.run(opened_.store().enrol("w")).value();
    EXPECT_TRUE(opened_.run(opened_.store().beat(node_)));
  }
  template <class T>
  void expect_refused(const Result<T>& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error(), Errc::unavailable);
    EXPECT_EQ(answer.error().retry(), Retry::safe);
    EXPECT_NE(answer.error().describe().find(victim_), std::string::npos) << answer.error().describe();
    EXPECT_NE(answer.error().describe().find("Put the file back"), std::string::npos);
  }
  void expect_all_refused() {
    expect_refused(opened_.submit(2));
    expect_refused(opened_.run(opened_.store().beat(node_)));
    expect_refused(opened_.run(opened_.store().tick()));
    expect_refused(opened_.run(opened_.store().ready(kReadyMax)));
    expect_refused(opened_.run(opened_.store().claim(node_, "a", 1)));
    expect_refused(opened_.run(opened_.store().wait(0, 10ms)));
  }

  const os::TestFolder folder_;
  const std::string path_ = folder_ / "x.db", victim_ = path_ + GetParam();
  Opened opened_{path_};
  NodeNumber node_{};
};

TEST_P(SqliteFilesGone, a_store_whose_files_were_moved_accepts_nothing_until_they_are_back) {
  std::filesystem::rename(victim_, folder_ / "away");
  expect_all_refused();
  std::filesystem::rename(folder_ / "away", victim_);
  EXPECT_TRUE(opened_.submit(2));
  EXPECT_TRUE(opened_.run(opened_.store().beat(node_))->alive);
  EXPECT_EQ(opened_.run(opened_.store().ready(kReadyMax))->size(), 1U);
}

TEST_P(SqliteFilesGone, a_store_whose_files_were_replaced_accepts_nothing) {
  std::filesystem::copy_file(victim_, folder_ / "copy");
  std::filesystem::rename(folder_ / "copy", victim_);
  expect_all_refused();
}

TEST_P(SqliteFilesGone, a_store_whose_files_were_deleted_accepts_nothing) {
  std::filesystem::remove(victim_);
  expect_all_refused();
}

INSTANTIATE_TEST_SUITE_P(Sqlite, SqliteFilesGone, testing::Values("", "-wal", "-shm"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return *info.param == 0 ? std::string("database") : std::string(info.param).substr(1);
                         });

}  // namespace
}  // namespace stint::store
