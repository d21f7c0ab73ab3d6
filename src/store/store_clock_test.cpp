#include "store/store_clock.hpp"

#include "os/test_folder.hpp"
#include "store/conformance.hpp"
#include "store/sqlite_store.hpp"

namespace stint::store {
namespace {

using namespace std::chrono_literals;

std::uint64_t no_chance() { return 1; }

TEST(StoreClock, begins_as_the_wall_clock_and_does_not_jump_with_it) {
  TestClocks clocks;
  const domain::System system = clocks.system(no_chance);
  const StoreClock clock(system);
  const WallTime begin = clocks.wall();
  EXPECT_EQ(clock.now(), begin);
  clocks.jump(24h);
  EXPECT_EQ(clock.now(), begin);
  EXPECT_EQ(clock.shown(begin), begin + 24h);
  EXPECT_EQ(clock.kept(begin + 24h), begin);
  clocks.advance(1s);
  EXPECT_EQ(clock.now(), begin + 1s);
  clocks.suspend(1h);
  EXPECT_EQ(clock.now(), begin + 1s + 1h);
  EXPECT_EQ(clock.awake(), AwakeTime(begin.time_since_epoch()) + 1s);
}

TEST(StoreClock, displayed_times_ignore_the_drift_of_a_clock) {
  TestClocks clocks;
  const domain::System system = clocks.system(no_chance);
  const StoreClock clock(system);
  const WallTime shown = clock.shown(clock.now()), then = clock.now();
  clocks.jump(700ms);
  EXPECT_EQ(clock.shown(then), shown);
  clocks.jump(700ms);
  EXPECT_EQ(clock.shown(then), shown + 1400ms);
}

TEST(StoreClock, processes_display_a_moment_alike) {
  TestClocks clocks;
  const domain::System system = clocks.system(no_chance);
  const StoreClock first(system, std::nullopt, std::nullopt);
  const WallTime then = first.now();
  clocks.jump(1ms);  // between the two readings
  const StoreClock second(system, first.anchor(), first.look());
  EXPECT_EQ(second.shown(then), first.shown(then));
  EXPECT_EQ(second.look().wall - second.look().now, first.look().wall - first.look().now);
}

TEST(StoreClock, processes_of_one_boot_agree_across_a_jump_of_the_wall_clock) {
  TestClocks clocks;
  const domain::System system = clocks.system(no_chance);
  const StoreClock first(system, std::nullopt, std::nullopt);
  const StoreClock::Seen seen = first.look();
  clocks.advance(5s);
  clocks.jump(-24h);
  const StoreClock second(system, first.anchor(), seen);
  EXPECT_EQ(second.now(), first.now());
  EXPECT_EQ(second.awake(), first.awake());
  EXPECT_TRUE(second.is_stale(seen)) << "the jump must be recorded for the next boot";
  EXPECT_FALSE(second.is_stale(second.look()));
}

TEST(StoreClock, continues_by_the_wall_clock_after_a_reboot_and_never_backwards) {
  for (const Duration off : {Duration(1h), Duration(-1h)}) {
    TestClocks clocks;
    const domain::System before = clocks.system(no_chance);
    const StoreClock old(before, std::nullopt, std::nullopt);
    const StoreClock::Seen seen = old.look();
    const WallTime now = old.now();
    TestClocks next;  // the clocks of a boot start over
    next.jump(off);
    domain::System after = next.system(no_chance);
    after.boot = "another";
    const StoreClock clock(after, old.anchor(), seen);
    EXPECT_EQ(clock.now(), off > Duration::zero() ? now + 1h : now);
    EXPECT_EQ(clock.awake(), seen.awake_now);
    next.advance(1s);
    EXPECT_EQ(clock.awake(), seen.awake_now + 1s);
  }
}

/// A machine with a store on its disk, which is switched off and on.
class Machine {
 public:
  explicit Machine(const std::string& path) : path_(path) { boot("first"); }
  void boot(const std::string& name) {
    store_.reset();
    system_ = clocks_.system(no_chance);
    system_.boot = name;
    system_.elapsed = [this, off = clocks_.elapsed()] { return clocks_.elapsed() - off + 20s; };
    system_.awake = [this, off = clocks_.awake()] { return clocks_.awake() - off + 10s; };
    store_ = SqliteStore::blocking_open(path_, system_).value();
  }
  template <class T>
  T get(Task<Result<T>> task) {
    Result<T> result = os::blocking_run(reactor_, std::move(task));
    if (!result) ADD_FAILURE() << result.error().describe();
    if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T();
  }
  Store& store() { return *store_; }
  TestClocks& clocks() { return clocks_; }
  const domain::System& system() { return system_; }

 private:
  const std::string path_;
  TestClocks clocks_;
  domain::System system_;
  Reactor reactor_;
  std::unique_ptr<SqliteStore> store_;
};

TEST(SqliteClock, continues_across_a_reboot_and_budgets_stop) {
  const os::TestFolder folder;
  Machine machine(folder / "x.db");
  AgentEntry agent;
  agent.name = "a";
  machine.get(machine.store().define({agent}));
  const NodeNumber node = machine.get(machine.store().enrol("w"));
  std::vector<NewRun> runs(2);
  runs[0].id = "aaaaaaaaaaaa";
  runs[0].budget = 10min;
  runs[0].on_crash = domain::OnCrash::rerun;
  runs[1].id = "baaaaaaaaaaa";
  runs[1].delay = 2h;
  runs[0].agent = runs[1].agent = "a";
  machine.get(machine.store().enqueue(runs));
  ASSERT_EQ(machine.get(machine.store().claim(node, "a", 1)).size(), 1U);
  machine.clocks().advance(4min);
  machine.get(machine.store().tick());
  machine.clocks().jump(-24h);  // seen by the tick, so it does not count as elapsed time
  machine.get(machine.store().tick());
  machine.clocks().suspend(1h);  // it is off
  machine.boot("second");
  EXPECT_EQ(machine.get(machine.store().tick()).lost, 1U);
  EXPECT_EQ(machine.get(machine.store().find(runs[1].id))->hold, domain::Hold::delay);
  const NodeNumber next = machine.get(machine.store().enrol("w"));
  const std::vector<Claim> again = machine.get(machine.store().claim(next, "a", 2));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].left, Duration(6min));
  machine.clocks().advance(56min - 1ms);
  EXPECT_EQ(machine.get(machine.store().tick()).woken, 0U);
  machine.clocks().advance(1ms);
  EXPECT_EQ(machine.get(machine.store().tick()).woken, 1U) << "an hour of power off counts for a delay";
}

}  // namespace
}  // namespace stint::store
