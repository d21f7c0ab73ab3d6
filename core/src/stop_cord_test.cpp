#include "stint/stop_cord.hpp"

#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

/// A cord and what the tasks on it gave.
struct Bench {
  Task<> hang(Task<int> task) {
    const Result<int> result = co_await on_cord(cord, std::move(task));
    log.push_back(result ? std::to_string(*result) : std::string(result.error().what()));
  }
  Task<int> number(Duration length, int value) {
    const Trace trace{log, "gone"};
    log.push_back("began");
    co_await sleep_for(length);
    co_return value;
  }
  StopCord cord{Errc::closed, "pulled"};
  Log log;
};

TEST(StopCord, what_ends_by_itself_gives_its_result) {
  Simulator sim;
  Bench bench;
  RootScope scope(sim);
  scope.spawn(bench.hang(bench.number(1s, 7)));
  sim.run_ready();
  EXPECT_TRUE(bench.cord.held());
  sim.settle();
  EXPECT_FALSE(bench.cord.held());
  EXPECT_EQ(bench.log, (Log{"began", "gone", "7"}));
  bench.cord.pull();  // nobody is there
}

TEST(StopCord, a_pull_stops_all_who_hang_on_it_and_they_are_gone_by_then) {
  Simulator sim;
  Bench bench;
  RootScope scope(sim);
  for (int i = 0; i < 2; ++i) scope.spawn(bench.hang(bench.number(1h, i)));
  sim.run_ready();
  bench.cord.pull();
  sim.run_ready();
  EXPECT_TRUE(scope.idle());
  EXPECT_EQ(std::ranges::count(bench.log, "pulled"), 2);
  EXPECT_EQ(std::ranges::count(bench.log, "gone"), 2);
  EXPECT_EQ(bench.log.back(), "pulled");
}

TEST(StopCord, waits_for_work_that_takes_its_time_to_stop) {
  Simulator sim;
  Bench bench;
  RootScope scope(sim);
  SlowLeaf* leaf = nullptr;
  const auto slow = [&]() -> Task<int> {
    co_await SlowLeaf(leaf);
    co_return 1;
  };
  scope.spawn(bench.hang(slow()));
  sim.run_ready();
  bench.cord.pull();
  sim.run_ready();
  EXPECT_TRUE(leaf->asked);
  EXPECT_TRUE(bench.log.empty());
  leaf->handler_ran();
  sim.run_ready();
  EXPECT_EQ(bench.log, Log{"pulled"});
}

TEST(StopCord, once_pulled_nothing_begins) {
  Simulator sim;
  Bench bench;
  RootScope scope(sim);
  bench.cord.pull();
  scope.spawn(bench.hang(bench.number(1s, 7)));
  sim.settle();
  EXPECT_EQ(bench.log, Log{"pulled"});
}

TEST(StopCord, a_result_that_is_there_before_the_pull_wins) {
  Simulator sim;
  Bench bench;
  RootScope scope(sim);
  const auto pull_at_the_end = [&]() -> Task<int> {
    struct Pull {
      ~Pull() { cord.pull(); }
      StopCord& cord;
    };
    co_await yield();
    const Pull pull{bench.cord};
    co_return 7;
  };
  scope.spawn(bench.hang(pull_at_the_end()));
  sim.settle();
  EXPECT_EQ(bench.log, Log{"7"});
}

TEST(StopCord, a_stop_from_above_passes_through) {
  Simulator sim;
  Bench bench;
  RootScope scope(sim);
  scope.spawn(bench.hang(bench.number(1h, 7)));
  sim.run_ready();
  scope.cancel();
  sim.settle();
  EXPECT_TRUE(scope.idle());
  EXPECT_FALSE(bench.cord.held());
  EXPECT_EQ(bench.log, (Log{"began", "gone"}));
}

TEST(StopCord, an_exception_passes_through) {
  Simulator sim;
  Bench bench;
  RootScope scope(sim);
  const auto fails = [&]() -> Task<int> {
    co_await yield();
    throw std::runtime_error("boom");
  };
  const auto catches = [&]() -> Task<> {
    try {
      (void)co_await on_cord(bench.cord, fails());
    } catch (const std::runtime_error& error) {
      bench.log.emplace_back(error.what());
    }
  };
  scope.spawn(catches());
  sim.settle();
  EXPECT_EQ(bench.log, Log{"boom"});
}

}  // namespace
}  // namespace stint
