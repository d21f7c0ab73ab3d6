#include "store/sqlite_store.hpp"

#include "os/file_time.hpp"
#include "os/slot_file.hpp"
#include "os/test_folder.hpp"
#include "store/conformance_series.hpp"
#include "store/sqlite_opened.hpp"

#include <csignal>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

class SqliteWorld final : public World {
 public:
  SqliteWorld() : store_(SqliteStore::blocking_open(folder_ / "stint.db", system_).value()) {}

  Store& store() override { return *store_; }
  void kill(NodeNumber node) override { EXPECT_TRUE(run(store_->drop_lease(node))); }

 private:
  os::TestFolder folder_;
  std::atomic<std::uint64_t> random_ = 1;
  domain::System system_ =
      clocks().system([this] { return random_ = random_ * 6364136223846793005U + 1442695040888963407U; });
  std::unique_ptr<SqliteStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreTest,
                         testing::Values(WorldMaker{"sqlite", [] { return std::make_unique<SqliteWorld>(); }}),
                         world_name);
INSTANTIATE_TEST_SUITE_P(Sqlite, ClockTest,
                         testing::Values(WorldMaker{"sqlite", [] { return std::make_unique<SqliteWorld>(); }}),
                         world_name);
INSTANTIATE_TEST_SUITE_P(Sqlite, SeriesTest,
                         testing::Values(WorldMaker{"sqlite", [] { return std::make_unique<SqliteWorld>(); }}),
                         world_name);
INSTANTIATE_TEST_SUITE_P(Sqlite, SnapshotTest,
                         testing::Values(WorldMaker{"sqlite", [] { return std::make_unique<SqliteWorld>(); }}),
                         world_name);

// ---- file ----------------------------------------------------------------------------------------------------------

TEST(SqliteFile, after_a_restart_accepted_runs_are_stored_and_running_ones_lost) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  std::string waiting, running;
  {
    Opened first(path);
    first.define();
    running = first.submit(1)->id;
    waiting = first.submit(2)->id;
    const NodeNumber node = first.run(first.store().enrol("w")).value();
    EXPECT_EQ(first.run(first.store().claim(node, "a", 1))->size(), 1U);
  }
  Opened second(path);
  EXPECT_EQ(second.run(second.store().find(waiting)).value()->input, std::string(300, 'x'));
  EXPECT_EQ(second.run(second.store().find(running)).value()->state, domain::RunState::running);
  EXPECT_EQ(second.run(second.store().tick())->lost, 1U);
  EXPECT_EQ(second.run(second.store().find(running)).value()->state, domain::RunState::in_doubt);
}

TEST(SqliteFile, answered_submits_survive_a_kill_at_any_moment) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  {
    Opened(path).define();
  }
  std::uint64_t next = 1;
  for (int round = 0; round < 8; ++round) {
    int answers[2];
    ASSERT_EQ(::pipe(answers), 0);
    const pid_t child = start([&] {
      Opened store(path);
      for (std::uint64_t number = next;; ++number) {
        if (!store.submit(number)) return 1;
        (void)!::write(answers[1], &number, sizeof number);
      }
    });
    ::close(answers[1]);
    std::uint64_t last = 0;
    for (int i = 0; i < 5 + 7 * round; ++i) ASSERT_EQ(::read(answers[0], &last, sizeof last), 8);
    ::kill(child, SIGKILL);
    while (::read(answers[0], &last, sizeof last) == sizeof last) {
    }
    ::close(answers[0]);
    ::waitpid(child, nullptr, 0);
    Opened after(path);
    ASSERT_TRUE(after.ok());
    for (std::uint64_t number = 1; number <= last; ++number) {
      ASSERT_FALSE(after.submit(number)->created) << number << " was answered, but is lost";
    }
    next = last + 1;  // it may have been committed without an answer
  }
}

// ---- killed between the commit and the answer ----------------------------------------------------------------------

/// A store with runs in all states, and every writing call except tick(), whose steps are those of others.
class Called {
 public:
  explicit Called(const std::string& path) : opened_(path) {}

  /// r1 queued, r2 and r3 running, r4 parked, r5 in doubt, r6 ended.
  void prepare() {
    AgentEntry agent;
    agent.name = "a";
    agent.limits = {{"gpu", 1}};
    must(run(store().define({agent})));
    must(run(store().resize("gpu", 10)));
    must(run(store().enrol("w")));
    must(run(store().enrol("idle")));
    for (int i = 6; i >= 1; --i) {
      NewRun fresh;
      fresh.id = id_of(i);
      fresh.agent = "a";
      must(run(store().enqueue({fresh})));
      if (i > 1) must(run(store().claim(kNode, "a", 1)));
      if (i == 4) must(run(store().settle(kNode, {end_of(i, domain::Settle::park)})));
      if (i == 5) must(run(store().mark(kNode, attempt_of(i), true)));
      if (i == 5) must(run(store().settle(kNode, {end_of(i, domain::Settle::retry)})));
      if (i == 6) must(run(store().settle(kNode, {end_of(i, domain::Settle::succeeded)})));
    }
  }
  static constexpr int kCalls = 18;
  static constexpr int kRepeatable = 15;  // the calls that may be repeated without harm
  void call(int which) {
    NewRun fresh;
    fresh.id = id_of(7);
    fresh.agent = "a";
    switch (which) {
      case 0: return must(run(store().define({AgentEntry{.name = "b", .limits = {{"own", 2}}}})));
      case 1: return must(run(store().resize("gpu", 9)));
      case 2: return must(run(store().pause("gpu", 1h)));
      case 3: return must(run(store().resume("gpu")));
      case 4: return must(run(store().enrol("other")));
      case 5: return must(run(store().beat(kNode)));
      case 6: return must(run(store().drain(kNode)));
      case 7: return must(run(store().enqueue({fresh})));
      case 8: return must(run(store().cancel(id_of(2))));
      case 9: return must(run(store().resolve(id_of(5), domain::Resolution::rerun)));
      case 10: return must(run(store().answer(id_of(4))));
      case 11: return must(run(store().settle(kNode, {end_of(2, domain::Settle::succeeded)})));
      case 12: return must(run(store().mark(kNode, attempt_of(3), true)));
      case 13: return must(run(store().prune(-1h, 10)));
      case 14: return must(run(store().leave(kIdle)));
      case 15: return must(run(store().claim(kNode, "a", 1)));
      case 16: return must(run(store().note(kNode, attempt_of(2), "said", "")));
      default: return must(run(store().append_output(kNode, attempt_of(2), "text")));
    }
  }
  /// Ends this process at the moment of the commit, before any answer.
  [[noreturn]] void call_and_die(int which) {
    const std::uint64_t before = store().commits();
    std::thread killer([this, before] {
      while (store().commits() == before) ::sched_yield();
      ::kill(::getpid(), SIGKILL);
    });
    call(which);
    killer.join();
    std::abort();
  }
  std::string snapshot() {
    std::string out;
    for (const store::Run& each : run(store().list({})).value()) {
      const auto events = run(store().events(each.id, 0, 100)).value();
      out += each.id + " " + std::string(to_string(each.state)) + " fence " + std::to_string(each.fence.value) +
             " seq " + std::to_string(each.seq) + " of " + std::to_string(events.size()) + " stop " +
             std::string(to_string(each.stop)) + (each.unsafe ? " unsafe" : "") + " output " +
             std::to_string(run(store().output(each.id))->bytes) + "\n";
    }
    for (const LimitState& limit : run(store().limits()).value()) {
      out += limit.name + " " + std::to_string(limit.units) + " of " + std::to_string(limit.capacity.value_or(0)) +
             (limit.paused ? " paused\n" : "\n");
    }
    return out;
  }

 private:
  static constexpr NodeNumber kNode{1}, kIdle{2};
  template <class T>
  Result<T> run(Task<Result<T>> task) {
    return opened_.run(std::move(task));
  }
  /// A conflict means that it was done.
  template <class T>
  static void must(const Result<T>& result) {
    EXPECT_TRUE(result || result.error() == Errc::conflict) << result.error().describe();
  }
  SqliteStore& store() { return opened_.store(); }
  static std::string id_of(int i) { return "aaaaaaaaaaa" + std::string(1, static_cast<char>('a' + i)); }
  static AttemptKey attempt_of(int i) { return {RunNumber{7 - i}, Fence{1}}; }
  static Settlement end_of(int i, domain::Settle how) {
    Settlement end;
    end.attempt = attempt_of(i);
    end.settle = how;
    return end;
  }
  Opened opened_;
};

TEST(SqliteFile, a_step_killed_between_commit_and_answer_is_done_and_may_be_repeated) {
  for (int which = 0; which < Called::kCalls; ++which) {
    SCOPED_TRACE(which);
    const os::TestFolder folder;
    const std::string path = folder / "x.db", twin = folder / "y.db";
    const pid_t child = start([&] -> int {
      Called called(path);
      called.prepare();
      called.call_and_die(which);
    });
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    Called undisturbed(twin), after(path);
    undisturbed.prepare();
    undisturbed.call(which);
    EXPECT_EQ(after.snapshot(), undisturbed.snapshot()) << "it was committed";
    if (which < Called::kRepeatable) after.call(which);
    EXPECT_EQ(after.snapshot(), undisturbed.snapshot()) << "repeated";
  }
}

TEST(SqliteFile, several_processes_share_it_and_none_starves) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  {
    Opened(path).define();
  }
  constexpr std::uint64_t kProcesses = 4, kEach = 60;
  std::vector<pid_t> children;
  for (std::uint64_t self = 0; self < kProcesses; ++self) {
    children.push_back(start([&] {
      Opened store(path);
      const auto node = store.run(store.store().enrol("w"));
      if (!node) return 1;
      std::uint64_t done = 0;
      for (std::uint64_t i = 0; i < kEach; ++i) {
        if (!store.submit(1 + self * kEach + i)) return 2;
        const auto claims = store.run(store.store().claim(*node, "a", 1));
        if (!claims) return 3;
        for (const Claim& claim : *claims) {
          Settlement end;
          end.attempt = claim.attempt_key();
          end.settle = domain::Settle::succeeded;
          const auto states = store.run(store.store().settle(*node, {end}));
          if (!states || !states->front()) return 4;
          ++done;
        }
      }
      return done == kEach ? 0 : 5;  // each call saw at least its own run
    }));
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Opened after(path);
  EXPECT_EQ(after.run(after.store().stats())->runs.at(domain::RunState::succeeded), kProcesses * kEach);
  EXPECT_GE(after.run(after.store().stats())->events, kProcesses * kEach * 3 + kProcesses) << "and those of the nodes";
}

TEST(SqliteFile, steps_that_arrive_together_are_committed_together) {
  const os::TestFolder folder;
  Opened opened(folder / "x.db");
  opened.define();
  std::vector<NewRun> runs(200);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].id = std::string(10, 'a') + static_cast<char>('a' + i / 26) + static_cast<char>('a' + i % 26);
    runs[i].agent = i == 100 ? "unknown" : "a";
  }
  int accepted = 0, refused = 0;
  auto one = [&](NewRun run) -> Task<> {
    const auto answers = co_await opened.store().enqueue({std::move(run)});
    EXPECT_TRUE(answers);
    ++(answers->front() ? accepted : refused);
  };
  Reactor reactor;
  RootScope scope(reactor);
  for (const NewRun& run : runs) scope.spawn(one(run));
  EXPECT_TRUE(reactor.run(scope));
  EXPECT_EQ(accepted, 199);
  EXPECT_EQ(refused, 1) << "only this one: the others succeed";
  EXPECT_LT(opened.store().commits(), 60U);
}

TEST(SqliteFile, a_wait_ends_on_a_submit_of_another_process) {
  const os::TestFolder folder;
  Opened here(folder / "x.db"), there(folder / "x.db");
  here.define();
  auto seen = here.run(here.store().wait(0, 30ms)).value();
  seen = here.run(here.store().wait(seen, 30ms)).value();
  EXPECT_TRUE(there.submit(1));
  EXPECT_NE(here.run(here.store().wait(seen, 10s)).value(), seen);
}

// ---- idle ----------------------------------------------------------------------------------------------------------

/// A store that has been read and not written since.
class SqliteIdle : public testing::Test {
 protected:
  void SetUp() override {
    here_.define();
    node_ = here_.run(here_.store().enrol("here")).value();
    come_to_rest();
  }
  /// Two rounds: the first one finds what was written before it.
  void come_to_rest() {
    ask();
    ask();
  }
  void ask() {
    EXPECT_TRUE(here_.run(here_.store().beat(node_))->alive);
    EXPECT_FALSE(here_.run(here_.store().tick())->changed());
    EXPECT_TRUE(here_.run(here_.store().ready(kReadyMax)));
  }

  const os::TestFolder folder_;
  const std::string path_ = folder_ / "x.db";
  Opened here_{path_};
  NodeNumber node_{};
};

TEST_F(SqliteIdle, an_idle_store_answers_from_its_cache) {
  const std::uint64_t commits = here_.store().commits();
  for (int i = 0; i < 5; ++i) ask();
  EXPECT_EQ(here_.store().commits(), commits);
}

TEST_F(SqliteIdle, a_heartbeat_without_a_database_call_is_seen_by_others) {
  Opened there(path_);
  const std::string lease = path_ + ".nodes/" + std::to_string(node_.value) + ".lock";
  os::set_written_at(lease, WallTime(1ms));
  const std::uint64_t commits = here_.store().commits();
  ask();
  EXPECT_EQ(here_.store().commits(), commits);
  EXPECT_EQ(there.run(there.store().nodes())->front().last_beat_ago, Duration::zero());
}

TEST_F(SqliteIdle, a_commit_of_another_process_is_seen_by_the_next_call) {
  Opened there(path_);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    EXPECT_TRUE(here_.run(here_.store().ready(kReadyMax))->empty());
    const std::string id = there.submit(number)->id;
    EXPECT_EQ(here_.run(here_.store().ready(kReadyMax))->size(), 1U);
    EXPECT_EQ(here_.run(here_.store().claim(node_, "a", 1))->size(), 1U);
    come_to_rest();
    EXPECT_TRUE(here_.run(here_.store().beat(node_))->stops.empty());
    EXPECT_TRUE(there.run(there.store().cancel(id)));
    const auto stops = here_.run(here_.store().beat(node_))->stops;
    ASSERT_EQ(stops.size(), 1U);
    Settlement over;
    over.attempt = stops.front().attempt;
    over.settle = domain::Settle::cancelled;
    EXPECT_TRUE(here_.run(here_.store().settle(node_, {over})));
    come_to_rest();
  }
}

TEST_F(SqliteIdle, a_linked_database_has_its_watch_and_leases_at_its_real_path) {
  const std::string link = folder_ / "link.db";
  ASSERT_EQ(::symlink(path_.c_str(), link.c_str()), 0);
  Opened linked(link);
  EXPECT_TRUE(linked.run(linked.store().tick())->dead.empty());
  std::uint64_t seen = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(linked.run(linked.store().ready(kReadyMax))->empty());
    seen = linked.run(linked.store().wait(seen, 10ms)).value();
  }
  EXPECT_TRUE(here_.submit(1));
  EXPECT_EQ(linked.run(linked.store().ready(kReadyMax))->size(), 1U);
}

TEST_F(SqliteIdle, the_death_of_another_process_is_seen_by_the_next_tick) {
  {
    Opened there(path_);
    const NodeNumber other = there.run(there.store().enrol("there")).value();
    EXPECT_TRUE(there.submit(1));
    EXPECT_EQ(there.run(there.store().claim(other, "a", 1))->size(), 1U);
    come_to_rest();
  }
  EXPECT_EQ(here_.run(here_.store().tick())->lost, 1U);
}

TEST(SqliteFile, a_run_becomes_due_in_time_without_any_write) {
  SqliteWorld world;
  AgentEntry agent;
  agent.name = "a";
  ASSERT_TRUE(world.run(world.store().define({agent})));
  NewRun run;
  run.id = "aaaaaaaaaaaa";
  run.agent = "a";
  run.delay = 1min;
  ASSERT_TRUE(world.run(world.store().enqueue({run})));
  std::uint64_t seen = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(world.run(world.store().tick())->next, Duration(1min));
    seen = world.run(world.store().wait(seen, 10ms)).value();
  }
  world.advance(1min);
  EXPECT_EQ(world.run(world.store().tick())->woken, 1U);
  EXPECT_EQ(world.run(world.store().ready())->size(), 1U);
}

/// Its lease is a lock, which no clock ends.
TEST(SqliteFile, neither_sleep_nor_a_clock_that_jumps_takes_a_run_from_a_live_process) {
  SqliteWorld world;
  AgentEntry agent;
  agent.name = "a";
  ASSERT_TRUE(world.run(world.store().define({agent})));
  NewRun run;
  run.id = "aaaaaaaaaaaa";
  run.agent = "a";
  ASSERT_TRUE(world.run(world.store().enqueue({run})));
  const NodeNumber node = world.run(world.store().enrol("w")).value();
  const std::vector<Claim> claims = world.run(world.store().claim(node, "a", 1)).value();
  ASSERT_EQ(claims.size(), 1U);
  world.clocks().suspend(2h);
  for (const Duration jump : {Duration(0h), Duration(24h), Duration(-48h), Duration(24h)}) {
    world.jump(jump);
    EXPECT_EQ(world.run(world.store().tick())->lost, 0U);
    EXPECT_TRUE(world.run(world.store().beat(node))->alive);
  }
  Settlement end;
  end.attempt = claims[0].attempt_key();
  end.settle = domain::Settle::succeeded;
  EXPECT_EQ(world.run(world.store().settle(node, {end}))->at(0), domain::RunState::succeeded);
}

// ---- bad files -----------------------------------------------------------------------------------------------------

TEST(SqliteFile, a_file_that_is_not_a_database_is_refused_with_the_next_step) {
  const os::TestFolder folder;
  folder.write("x.db", "this is no database, and it is long enough to have a header of its own, which is not one: " +
                           std::string(4096, 'y'));
  const Opened opened(folder / "x.db");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errc::failed);
  EXPECT_NE(opened.error().describe().find("x.db"), std::string::npos);
  EXPECT_NE(opened.error().describe().find("Move it away"), std::string::npos);
}

TEST(SqliteFile, an_unwritable_path_is_named) {
  const os::TestFolder folder;
  folder.write("file", "");
  const Opened opened(folder / "file/x.db");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errc::denied);
  EXPECT_NE(opened.error().describe().find("writable"), std::string::npos);
}

TEST(SqliteFile, a_frozen_holder_of_the_write_lock_is_an_error) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  Opened opened(path, 50ms);
  opened.define();
  {
    const os::Fd write_lock = os::open_shared_file(path + ".write-lock", 0600).value();
    ASSERT_TRUE(os::try_lock_slot(write_lock.get()));
    const auto refused = opened.submit(1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), Errc::unavailable);
    EXPECT_EQ(refused.error().retry(), Retry::safe);
  }
  EXPECT_TRUE(opened.submit(1)) << "continues when the holder is gone";
  auto tool = Database::open(path, Database::Access::write, 1s);
  ASSERT_TRUE(tool->run("BEGIN IMMEDIATE"));
  EXPECT_EQ(opened.submit(2).error(), Errc::unavailable) << "another program writes";
  ASSERT_TRUE(tool->run("ROLLBACK"));
  EXPECT_TRUE(opened.submit(2));
}

TEST(SqliteFile, a_full_disk_refuses_writes_and_loses_nothing) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  {
    Opened(path).define();
  }
  const pid_t child = start([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    Opened store(path);
    const rlimit tight = {.rlim_cur = 400'000, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &tight);
    std::uint64_t accepted = 0;
    while (store.submit(accepted + 1) && accepted < 10'000) ++accepted;
    if (accepted == 0 || accepted == 10'000) return 1;
    const rlimit wide = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &wide);
    for (std::uint64_t i = 1; i <= accepted; ++i) {
      if (const auto again = store.submit(i); !again || again->created) return 2;
    }
    return store.submit(accepted + 1) ? 0 : 3;
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace stint::store
