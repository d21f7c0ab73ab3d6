// Task: lazy, exceptions, results, depth.
#include "stint/task.hpp"

#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

struct TaskTest : testing::Test {
  void settle() { sim.settle(); }
  Log log;
  Simulator sim{1};
  RootScope scope{sim};
};

TEST_F(TaskTest, a_simulator_knows_what_is_left_to_do) {
  EXPECT_TRUE(sim.is_idle());
  scope.spawn(awaited(sleep_for(std::chrono::seconds(1))));
  EXPECT_TRUE(sim.is_ready());
  sim.run_ready();
  EXPECT_FALSE(sim.is_ready());
  EXPECT_FALSE(sim.is_idle()) << "a timer is armed";
  settle();
  EXPECT_TRUE(sim.is_idle());
  EXPECT_FALSE(sim.step());
}

TEST_F(TaskTest, is_lazy) {
  bool ran = false;
  {
    auto task = note([&ran] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

Task<> child() { co_return; }
Task<> many_awaits(std::uintptr_t& span) {
  std::uintptr_t low = UINTPTR_MAX, high = 0;
  for (int i = 0; i < 10'000'000; ++i) {
    co_await child();
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    low = std::min(low, here);
    high = std::max(high, here);
  }
  span = high - low;
}
TEST_F(TaskTest, ten_million_awaits_do_not_grow_the_stack) {
  std::uintptr_t span = UINTPTR_MAX;
  scope.spawn(many_awaits(span));
  settle();
  EXPECT_LT(span, 4096u);
}

Task<> rethrows(Log& log) {
  try {
    (void)co_await throws();
  } catch (const std::runtime_error& error) {
    log.push_back(error.what());
  }
}
TEST_F(TaskTest, exceptions_propagate_through_await) {
  scope.spawn(rethrows(log));
  settle();
  EXPECT_EQ(log, Log{"boom"});
}

struct MoveOnly {
  explicit MoveOnly(int number) : value(std::make_unique<int>(number)) {}
  std::unique_ptr<int> value;
};
Task<MoveOnly> gives_move_only() {
  co_await yield();
  co_return MoveOnly(7);
}
Task<std::string> gives_text(bool early) {
  std::string text = "a string that is too long for the small string buffer";
  if (early) co_return text;
  co_await yield();
  co_return std::move(text) + "!";
}
Task<> takes_values(Log& log) {
  log.push_back(std::to_string(*(co_await gives_move_only()).value));
  log.push_back(co_await gives_text(true));
  log.push_back(co_await gives_text(false));
}
TEST_F(TaskTest, returns_values_including_move_only_ones) {
  scope.spawn(takes_values(log));
  settle();
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[0], "7");
  EXPECT_EQ(log[1] + "!", log[2]);
}
TEST_F(TaskTest, an_unused_result_is_destroyed) {
  auto task = [](Log& to) -> Task<std::unique_ptr<Trace>> {
    co_return std::unique_ptr<Trace>(new Trace{to, "value gone"});
  };
  const auto drops = [&](Log& to) -> Task<> {
    (void)co_await task(to);
    to.push_back("after");
  };
  scope.spawn(drops(log));
  settle();
  EXPECT_EQ(log, (Log{"value gone", "after"}));
}

Task<> goes_down(int depth, SlowLeaf*& leaf) {
  if (depth == 0) {
    co_await SlowLeaf(leaf);
  } else {
    co_await goes_down(depth - 1, leaf);
  }
}
Task<> goes_down_and_up(int depth) {
  if (depth > 0) co_await goes_down_and_up(depth - 1);
}
TEST_F(TaskTest, a_chain_of_100000_frames_is_stopped_without_recursion) {
  SlowLeaf* leaf = nullptr;
  scope.spawn(goes_down(100'000, leaf));
  settle();
  scope.cancel();
  leaf->handler_ran();
  settle();
  EXPECT_TRUE(scope.idle());
}
TEST_F(TaskTest, a_chain_of_100000_frames_returns) {
  scope.spawn(goes_down_and_up(100'000));
  settle();
  EXPECT_TRUE(scope.idle());
}
TEST(TaskExecutor, a_chain_of_100000_frames_is_destroyed_with_its_executor) {
  auto sim = std::make_unique<Simulator>(1);
  RootScope scope(*sim);
  SlowLeaf* leaf = nullptr;
  scope.spawn(goes_down(100'000, leaf));
  sim->settle();
  sim.reset();
}

TEST_F(TaskTest, sleeps_end_in_order_whatever_the_seed) {
  for (const int second : {5, 1, 3600, 2, 100'000}) {
    scope.spawn([](Log& to, int seconds) -> Task<> {
      co_await sleep_for(std::chrono::seconds(seconds));
      to.push_back(std::to_string(seconds));
    }(log, second));
  }
  settle();
  EXPECT_EQ(log, (Log{"1", "2", "5", "3600", "100000"}));
}
TEST_F(TaskTest, sleeps_of_zero_and_maximum_duration_are_defined) {
  const auto sleeps = [](Log& to, Duration duration) -> Task<> {
    co_await sleep_for(duration);
    to.push_back("woke");
  };
  scope.spawn(sleeps(log, Duration::zero()));
  scope.spawn(sleeps(log, Duration::min() / 2));
  scope.spawn(sleeps(log, Duration::max()));
  sim.advance(24h);
  EXPECT_EQ(log.size(), 2u);
  scope.cancel();
  settle();
  EXPECT_TRUE(scope.idle());
}

// ---- Misuse --------------------------------------------------------------------------------------------------------

using TaskDeathTest = TaskTest;

Task<int> answers_one() { co_return 1; }
Task<> awaits_twice() {
  Task<int> task = answers_one();
  (void)co_await task;
  (void)co_await task;
}
Task<> awaits_what_was_moved() {
  Task<int> task = answers_one();
  const Task<int> taken = std::move(task);
  (void)co_await task;  // NOLINT(bugprone-use-after-move): that is what is tested
}
Task<> spawns_what_it_awaited(Scope& scope) {
  Task<> task = child();
  co_await task;
  scope.spawn(std::move(task));
}
Task<> awaits_none() { co_await Task<>(); }
TEST_F(TaskDeathTest, a_task_is_awaited_once) {
  EXPECT_DEATH((scope.spawn(awaits_twice()), settle()), "awaited before");
  EXPECT_DEATH((scope.spawn(spawns_what_it_awaited(scope)), settle()), "awaited before");
}
TEST_F(TaskDeathTest, awaiting_an_empty_task_asserts_with_a_message) {
  EXPECT_DEATH((scope.spawn(awaits_none()), settle()), "the task is empty");
  EXPECT_DEATH((scope.spawn(awaits_what_was_moved()), settle()), "the task is empty");
  EXPECT_DEATH(scope.spawn(Task<>()), "the task is empty");
}

}  // namespace
}  // namespace stint
