// set_capacity: growth, debt, pause, and requests that become impossible.
#include "semaphore_test_support.hpp"

#include <set>

namespace stint {
namespace {

TEST(SemaphoreResize, growth_grants_in_order_in_one_pass) {
  Line line(2, Simulator::Order::fifo);
  line.enter("holder", 2);
  for (const char* name : {"a", "b", "c"}) line.enter(name);
  line.enter("two", 2);
  line.enter("d");
  line.news();
  EXPECT_TRUE(line.semaphore.set_capacity(6));
  EXPECT_EQ(line.semaphore.waiting(), 2u) << "the next needs two, and one is left";
  line.run();
  EXPECT_EQ(line.news(), (Log{"a", "b", "c"}));
  EXPECT_EQ(line.semaphore.available(), 1);
}

TEST(SemaphoreResize, a_capacity_below_the_held_units_creates_a_debt_that_is_repaid_first) {
  Line line(4);
  for (const char* name : {"a", "b", "c", "d", "waits"}) line.enter(name);
  EXPECT_TRUE(line.semaphore.set_capacity(2));
  EXPECT_EQ(line.semaphore.available(), -2);
  EXPECT_EQ(line.permits.size(), 4u) << "no permit is revoked";
  line.news();
  for (const char* name : {"a", "b"}) {
    line.give_back(name);
    line.run();
    EXPECT_EQ(line.news(), Log{});
  }
  EXPECT_EQ(line.semaphore.available(), 0);
  line.give_back("c");
  line.run();
  EXPECT_EQ(line.news(), Log{"waits"});
}
TEST(SemaphoreResize, new_requests_wait_while_there_is_a_debt) {
  Line line(3);
  line.enter("a", 3);
  EXPECT_TRUE(line.semaphore.set_capacity(2));
  EXPECT_TRUE(line.permits["a"].release(1));
  EXPECT_EQ(line.semaphore.available(), 0);
  EXPECT_FALSE(line.semaphore.try_acquire());
  EXPECT_TRUE(line.permits["a"].release(1));
  EXPECT_TRUE(line.semaphore.try_acquire().has_value());
}

TEST(SemaphoreResize, shrinking_and_growing_again_never_overgrants) {
  Line line(10);
  for (int i = 0; i < 10; ++i) line.enter("holder " + std::to_string(i));
  for (int i = 0; i < 5; ++i) line.enter("waiter " + std::to_string(i));
  line.news();
  EXPECT_TRUE(line.semaphore.set_capacity(2));
  EXPECT_TRUE(line.semaphore.set_capacity(5));
  line.run();
  EXPECT_EQ(line.news(), Log{});
  EXPECT_EQ(line.semaphore.available(), -5);
  EXPECT_TRUE(line.semaphore.set_capacity(12));
  line.run();
  EXPECT_EQ(line.news().size(), 2u);
}

TEST(SemaphoreResize, zero_pauses_and_growth_resumes) {
  Line line(5);
  line.enter("a", 2);
  line.enter("big", 4);
  EXPECT_TRUE(line.semaphore.set_capacity(0));
  line.give_back("a");
  line.enter("small");
  line.enter("leaves");
  line.run();
  EXPECT_EQ(line.news(), Log{"a"});
  EXPECT_EQ(line.semaphore.available(), 0);
  line.cancel("leaves");
  line.run();
  EXPECT_EQ(line.news(), Log{"leaves: stopped"});
  EXPECT_TRUE(line.semaphore.set_capacity(5));
  line.run();
  const Log news = line.news();
  EXPECT_EQ(std::set<std::string>(news.begin(), news.end()), (std::set<std::string>{"big", "small"}));
  EXPECT_EQ(line.semaphore.available(), 0);
}

TEST(SemaphoreResize, requests_that_became_impossible_fail_at_once) {
  Line line(5);
  line.permits["held"] = std::move(*line.semaphore.try_acquire(5));
  line.enter("three", 3);
  line.enter("five", 5);
  line.enter_as("four", 2, 4);
  EXPECT_TRUE(line.semaphore.set_capacity(3));
  line.run();
  const Log news = line.news();
  EXPECT_EQ(std::set<std::string>(news.begin(), news.end()), (std::set<std::string>{"five: invalid", "four: invalid"}));
  EXPECT_EQ(line.semaphore.waiting(), 1u);
}
TEST(SemaphoreResize, an_impossible_head_that_fails_wakes_waiters_behind_it) {
  Line line(4);
  line.permits["held"] = std::move(*line.semaphore.try_acquire(1));
  line.enter("all", 4);
  line.enter("two", 2);
  EXPECT_TRUE(line.semaphore.set_capacity(3));
  line.run();
  const Log news = line.news();
  EXPECT_EQ(std::set<std::string>(news.begin(), news.end()), (std::set<std::string>{"all: invalid", "two"}));
}
TEST(SemaphoreResize, a_request_fails_after_a_pause_if_the_new_capacity_is_too_small) {
  Line line(0);
  line.enter("three", 3);
  line.enter("one", 1);
  EXPECT_TRUE(line.semaphore.set_capacity(2));
  line.run();
  const Log news = line.news();
  EXPECT_EQ(std::set<std::string>(news.begin(), news.end()), (std::set<std::string>{"three: invalid", "one"}));
}
TEST(SemaphoreResize, a_permit_that_is_forgotten_can_make_a_request_impossible) {
  Line line(3);
  line.enter("a", 2);
  line.enter("three", 3);
  line.enter("one", 1);
  line.news();
  line.permits["a"].forget();
  line.run();
  const Log news = line.news();
  EXPECT_EQ(std::set<std::string>(news.begin(), news.end()), (std::set<std::string>{"three: invalid", "one"}));
}

TEST(SemaphoreResize, out_of_range_is_refused_and_changes_nothing) {
  Line line(2);
  for (const std::int64_t capacity : {std::int64_t{-1}, std::int64_t{Semaphore::kCapacityMax} + 1}) {
    const auto refused = line.semaphore.set_capacity(capacity);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error(), Errc::invalid);
    EXPECT_NE(refused.error().what().find(std::to_string(capacity)), std::string_view::npos);
  }
  EXPECT_EQ(line.semaphore.capacity(), 2u);
  EXPECT_EQ(line.semaphore.available(), 2);
}

TEST(SemaphoreResize, never_waits_for_held_permits) {
  Line line(Semaphore::kUnlimited);
  line.enter("a", 1'000'000);
  EXPECT_TRUE(line.semaphore.set_capacity(1)) << "returns though a million are out";
  EXPECT_EQ(line.semaphore.available(), 1 - 1'000'000);
}
TEST(SemaphoreResize, repeated_resizes_between_unlimited_and_small) {
  Line line(Semaphore::kUnlimited);
  for (int i = 0; i < 10; ++i) {
    const std::string first = "a " + std::to_string(i), second = "b " + std::to_string(i);
    line.enter(first, 5);
    EXPECT_TRUE(line.semaphore.set_capacity(5));
    EXPECT_EQ(line.semaphore.available(), 0);
    line.enter(second, 5);
    EXPECT_EQ(line.news(), Log{first});
    EXPECT_TRUE(line.semaphore.set_capacity(Semaphore::kUnlimited));
    line.run();
    EXPECT_EQ(line.news(), Log{second});
    line.give_back(first);
    line.give_back(second);
    EXPECT_EQ(line.semaphore.available(), std::int64_t{Semaphore::kUnlimited});
  }
}

}  // namespace
}  // namespace stint
