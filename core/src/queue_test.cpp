// The bounded queue on the simulator.
#include "queue_test_support.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace stint {
namespace {

struct QueueTest : testing::Test {
  /// Starts a chain in its own scope and runs until nothing is ready.
  Scope& start(Task<> task) {
    scopes.push_back(std::make_unique<RootScope>(sim));
    scopes.back()->spawn(std::move(task));
    sim.run_ready();
    return *scopes.back();
  }
  void fill() {
    for (int item = 1; item <= 2; ++item) ASSERT_TRUE(queue.try_push(int{item}));
  }
  Log log;
  Queue<int> queue{"jobs", 2};
  std::vector<std::unique_ptr<RootScope>> scopes;
  Simulator sim{1};  // last member: destroyed first, with every frame
};

// ---- Order and the three answers to a full queue -------------------------------------------------------------------

TEST_F(QueueTest, items_are_fifo) {
  fill();
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.capacity(), 2u);
  EXPECT_EQ(drain(queue), (Ints{1, 2}));
  EXPECT_EQ(queue.try_pop(), std::nullopt);
}
TEST_F(QueueTest, a_full_queue_refuses_try_push) {
  fill();
  int item = 3;
  const auto refused = queue.try_push(std::move(item));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::full);
  EXPECT_EQ(refused.error().retry(), Retry::safe);
  EXPECT_EQ(refused.error().what(), "queue 'jobs': all 2 places are taken");
  EXPECT_EQ(drain(queue), (Ints{1, 2}));
}
TEST_F(QueueTest, a_full_queue_lets_push_wait_for_room) {
  fill();
  start(pushes(queue, 3, log));
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(queue.waiting_producers(), 1u);
  EXPECT_EQ(queue.try_pop(), 1);
  sim.run_ready();
  EXPECT_EQ(log, Log{"push 3"});
  EXPECT_EQ(drain(queue), (Ints{2, 3}));
}
TEST_F(QueueTest, a_full_queue_drops_its_oldest_item_for_push_dropping_oldest) {
  EXPECT_EQ(queue.push_dropping_oldest(1).value(), std::nullopt);
  EXPECT_EQ(queue.push_dropping_oldest(2).value(), std::nullopt);
  EXPECT_EQ(queue.push_dropping_oldest(3).value(), 1);
  EXPECT_EQ(queue.dropped(), 1u);
  EXPECT_EQ(drain(queue), (Ints{2, 3}));
}
TEST_F(QueueTest, a_waiting_producers_item_keeps_its_place) {
  fill();
  for (const int item : {3, 4, 5}) start(pushes(queue, item, log));
  EXPECT_EQ(queue.try_pop(), 1);
  EXPECT_FALSE(queue.try_push(6)) << "overtakes 4";
  const auto refused = queue.push_dropping_oldest(7);
  ASSERT_FALSE(refused) << "overtakes 4";
  EXPECT_EQ(refused.error(), Errc::full);
  EXPECT_EQ(drain(queue), (Ints{2, 3, 4, 5}));
}
TEST_F(QueueTest, consumers_are_fifo) {
  for (const char* caller : {"a", "b", "c"}) start(pops(queue, log, caller));
  EXPECT_EQ(queue.waiting_consumers(), 3u);
  for (const int item : {1, 2, 3}) ASSERT_TRUE(queue.try_push(int{item})) << "a consumer that waits is room";
  EXPECT_EQ(queue.size(), 0u);
  sim.run_ready();
  std::ranges::sort(log);  // the simulator resumes them in any order
  EXPECT_EQ(log, (Log{"a 1", "b 2", "c 3"}));
}
TEST_F(QueueTest, later_items_do_not_overtake_a_handed_over_item) {
  start(pops(queue, log));
  ASSERT_TRUE(queue.try_push(1));
  ASSERT_TRUE(queue.try_push(2));
  EXPECT_EQ(queue.try_pop(), 2) << "1 is the waiting consumer's, though it has not resumed yet";
  sim.run_ready();
  EXPECT_EQ(log, Log{"pop 1"});
}
TEST_F(QueueTest, grows_to_its_capacity_and_keeps_the_order_at_every_size) {
  Queue<int> large("large", 1000);
  int in = 0, out = 0;
  for (int round = 0; round < 400; ++round) {  // the ring wraps around while it grows
    for (int i = 0; i < 5; ++i) in += large.try_push(int{in}) ? 1 : 0;
    for (int i = 0; i < 2; ++i) ASSERT_EQ(large.try_pop(), out++);
  }
  EXPECT_EQ(large.size(), 1000u - 2u);
  while (auto item = large.try_pop()) ASSERT_EQ(*item, out++);
  EXPECT_EQ(in, out);
}
TEST_F(QueueTest, items_may_be_move_only_and_a_refused_one_is_unchanged) {
  Queue<std::unique_ptr<int>> boxes("boxes", 1);
  auto item = std::make_unique<int>(1);
  ASSERT_TRUE(boxes.try_push(std::move(item)));
  item = std::make_unique<int>(2);
  EXPECT_EQ(boxes.try_push(std::move(item)).error(), Errc::full);
  ASSERT_NE(item, nullptr);
  EXPECT_EQ(**boxes.push_dropping_oldest(std::move(item)).value(), 1);
  EXPECT_EQ(**boxes.try_pop(), 2);
}
TEST_F(QueueTest, destroys_remaining_items) {
  const auto item = std::make_shared<int>(1);
  {
    Queue<std::shared_ptr<int>> left("left", 3);
    ASSERT_TRUE(left.try_push(std::shared_ptr<int>(item)));
    EXPECT_EQ(item.use_count(), 2);
  }
  EXPECT_EQ(item.use_count(), 1);
}

// ---- Cancel --------------------------------------------------------------------------------------------------------

TEST_F(QueueTest, a_cancelled_push_leaves_nothing) {
  fill();
  Scope& third = start(pushes(queue, 3, log));
  start(pushes(queue, 4, log));
  third.cancel();
  EXPECT_EQ(queue.waiting_producers(), 1u) << "gone from the line at once";
  sim.run_ready();
  EXPECT_EQ(drain(queue), (Ints{1, 2, 4}));
}
TEST_F(QueueTest, a_push_cancelled_before_it_resumes_withdraws_its_item_and_admits_the_next) {
  fill();
  Scope& third = start(pushes(queue, 3, log));
  start(pushes(queue, 4, log));
  EXPECT_EQ(queue.try_pop(), 1);  // 3 was accepted, its producer has not resumed
  third.cancel();
  sim.run_ready();
  EXPECT_EQ(log, Log{"push 4"});
  EXPECT_EQ(drain(queue), (Ints{2, 4}));
}
TEST_F(QueueTest, a_cancelled_push_whose_item_was_consumed_counts) {
  fill();
  Scope& third = start(pushes(queue, 3, log));
  EXPECT_EQ(drain(queue), (Ints{1, 2, 3}));
  third.cancel();
  sim.run_ready();
  EXPECT_EQ(log, Log{}) << "its producer is stopped";
  EXPECT_EQ(queue.size(), 0u);
}
TEST_F(QueueTest, a_gap_left_by_a_cancelled_push_is_skipped) {
  fill();
  Scope& third = start(pushes(queue, 3, log));
  start(pushes(queue, 4, log));
  EXPECT_EQ(queue.try_pop(), 1);
  EXPECT_EQ(queue.try_pop(), 2);  // 3 and 4 were accepted
  third.cancel();
  sim.run_ready();
  EXPECT_EQ(queue.size(), 1u);
  ASSERT_TRUE(queue.try_push(5));
  EXPECT_EQ(drain(queue), (Ints{4, 5}));
}
TEST_F(QueueTest, a_cancelled_pop_leaves_the_line) {
  Scope& first = start(pops(queue, log, "a"));
  start(pops(queue, log, "b"));
  first.cancel();
  EXPECT_EQ(queue.waiting_consumers(), 1u);
  ASSERT_TRUE(queue.try_push(1));
  sim.run_ready();
  EXPECT_EQ(log, Log{"b 1"});
}
TEST_F(QueueTest, a_pop_cancelled_before_it_resumes_hands_its_item_to_the_next_consumer) {
  Scope& first = start(pops(queue, log, "a"));
  start(pops(queue, log, "b"));
  ASSERT_TRUE(queue.try_push(1));
  first.cancel();
  sim.run_ready();
  EXPECT_EQ(log, Log{"b 1"});
}
TEST_F(QueueTest, a_pop_cancelled_before_it_resumes_puts_its_item_back_in_front) {
  Scope& first = start(pops(queue, log));
  for (const int item : {1, 2, 3}) ASSERT_TRUE(queue.try_push(int{item}));
  first.cancel();
  sim.run_ready();
  EXPECT_EQ(queue.size(), 3u) << "one above the capacity";
  EXPECT_FALSE(queue.try_push(4));
  EXPECT_EQ(queue.try_pop(), 1);
  EXPECT_FALSE(queue.try_push(4)) << "still full";
  EXPECT_EQ(drain(queue), (Ints{2, 3}));
}
TEST_F(QueueTest, items_of_several_cancelled_consumers_are_returned_in_order) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Queue<int> refilled("jobs", 2);
    Simulator random(seed);
    RootScope scope(random);
    for (int i = 0; i < 5; ++i) scope.spawn(pops(refilled, log));
    random.run_ready();
    for (const int item : {1, 2, 3, 4, 5, 6}) ASSERT_TRUE(refilled.try_push(int{item}));
    scope.cancel();
    random.run_ready();
    ASSERT_EQ(drain(refilled), (Ints{1, 2, 3, 4, 5, 6})) << "seed " << seed;
  }
}
TEST_F(QueueTest, a_chain_that_is_cancelled_already_neither_pushes_nor_pops) {
  ASSERT_TRUE(queue.try_push(1));
  Scope& scope = start(note([] {}));
  scope.cancel();
  scope.spawn(pushes(queue, 2, log));
  scope.spawn(pops(queue, log));
  const auto late = [](Scope& own, Queue<int>& jobs, Log& seen) -> Task<> {
    own.cancel();  // between two awaits
    co_await pops(jobs, seen);
  };
  RootScope other(sim);
  other.spawn(late(other, queue, log));
  sim.run_ready();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(drain(queue), Ints{1});
}
TEST_F(QueueTest, a_hundred_thousand_waiting_consumers_are_cancelled_without_recursion) {
  RootScope scope(sim);
  for (int i = 0; i < 100'000; ++i) scope.spawn(pops(queue, log));
  sim.run_ready();
  EXPECT_EQ(queue.waiting_consumers(), 100'000u);
  scope.cancel();
  sim.run_ready();
  EXPECT_EQ(queue.waiting_consumers(), 0u);
  EXPECT_TRUE(scope.idle());
}
Task<> names_its_deadline(Queue<int>& queue, std::vector<TimePoint>& deadlines) {
  const auto item = co_await queue.pop();
  CancelToken& token = co_await current_token();
  deadlines.push_back(token.deadline().when());
}
TEST_F(QueueTest, a_consumer_resumes_under_its_own_token_not_the_producers) {
  std::vector<TimePoint> deadlines;
  const auto consumer = [](Queue<int>& jobs, std::vector<TimePoint>& seen) -> Task<> {
    (void)co_await with_deadline(Deadline(TimePoint(7s)), names_its_deadline(jobs, seen));
  };
  const auto producer = [](Queue<int>& jobs, Log& seen) -> Task<> {
    (void)co_await with_deadline(Deadline(TimePoint(3s)), pushes(jobs, 1, seen));
  };
  start(consumer(queue, deadlines));
  start(producer(queue, log));
  EXPECT_EQ(deadlines, std::vector{TimePoint(7s)});
}

// ---- Deadlines -----------------------------------------------------------------------------------------------------

Task<> pushes_until(Queue<int>& queue, int item, TimePoint when, Log& log) {
  const auto pushed = co_await queue.push_until(when, item);
  log.push_back(pushed ? "pushed" : std::string(pushed.error().what()));
}
Task<> pops_until(Queue<int>& queue, TimePoint when, Log& log) {
  const auto item = co_await queue.pop_until(when);
  log.push_back(item ? "popped" : std::string(item.error().what()));
}
TEST_F(QueueTest, a_timed_push_times_out_and_leaves_no_item) {
  fill();
  start(pushes_until(queue, 3, TimePoint(2s), log));
  start(pushes(queue, 4, log));
  sim.advance(1999ms);
  EXPECT_EQ(log, Log{});
  sim.advance(1ms);
  EXPECT_EQ(log, Log{"queue 'jobs': neither room nor item in time"});
  EXPECT_EQ(drain(queue), (Ints{1, 2, 4}));
}
TEST_F(QueueTest, a_timed_pop_times_out_at_its_deadline) {
  start(pops_until(queue, TimePoint(2s), log));
  start(pops(queue, log));
  sim.advance(2s);
  EXPECT_EQ(log, Log{"queue 'jobs': neither room nor item in time"});
  ASSERT_TRUE(queue.try_push(1));
  sim.settle();
  EXPECT_EQ(log.back(), "pop 1");
}
TEST_F(QueueTest, operations_that_need_not_wait_succeed_after_the_deadline) {
  sim.advance(1h);
  start(pushes_until(queue, 1, TimePoint(1s), log));
  start(pops_until(queue, TimePoint(1s), log));
  EXPECT_EQ(log, (Log{"pushed", "popped"}));
}
TEST_F(QueueTest, a_deadline_after_the_hand_over_has_no_effect) {
  start(pops_until(queue, TimePoint(2s), log));
  ASSERT_TRUE(queue.try_push(1));
  sim.advance(1h);
  EXPECT_EQ(log, Log{"popped"});
}

// ---- Close ---------------------------------------------------------------------------------------------------------

TEST_F(QueueTest, close_fails_producers_and_lets_consumers_drain_the_queue) {
  fill();
  start(pushes(queue, 3, log));
  queue.close();
  queue.close();
  sim.run_ready();
  EXPECT_EQ(log, Log{"push 3 closed"});
  EXPECT_EQ(queue.try_push(4).error(), Errc::closed);
  EXPECT_EQ(queue.push_dropping_oldest(4).error(), Errc::closed);
  start(pushes(queue, 4, log));
  for (int i = 0; i < 3; ++i) start(pops(queue, log));
  EXPECT_EQ(log, (Log{"push 3 closed", "push 4 closed", "pop 1", "pop 2", "pop closed"}));
  EXPECT_TRUE(queue.closed());
}
TEST_F(QueueTest, close_fails_every_waiting_consumer) {
  RootScope scope(sim);
  for (int i = 0; i < 100; ++i) scope.spawn(pops(queue, log));  // more than one batch of wake-ups
  sim.run_ready();
  queue.close();
  sim.run_ready();
  EXPECT_EQ(log, Log(100, "pop closed"));
}
TEST_F(QueueTest, an_item_returned_after_close_is_drained_like_the_rest) {
  Scope& first = start(pops(queue, log));
  ASSERT_TRUE(queue.try_push(1));
  queue.close();
  first.cancel();
  sim.run_ready();
  start(pops(queue, log));
  start(pops(queue, log));
  EXPECT_EQ(log, (Log{"pop 1", "pop closed"}));
}
TEST_F(QueueTest, a_cancel_that_comes_after_close_still_stops) {
  Scope& first = start(pops(queue, log));
  queue.close();
  first.cancel();
  sim.run_ready();
  EXPECT_EQ(log, Log{});
}
using QueueDeathTest = QueueTest;
TEST_F(QueueDeathTest, must_not_be_destroyed_with_waiters_and_needs_a_capacity) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(Queue<int>("none", 0), "room for one item");
  EXPECT_DEATH(
      {
        auto doomed = std::make_unique<Queue<int>>("doomed", 1);
        start(pops(*doomed, log));
        doomed.reset();
      },
      "this queue still has waiting consumers");
}

}  // namespace
}  // namespace stint
