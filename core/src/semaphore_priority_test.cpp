// The semaphore's exceptions from arrival order: bypass of a large head, priorities and their aging.
#include "semaphore_test_support.hpp"

#include <algorithm>

namespace stint {
namespace {

// ---- Bypass --------------------------------------------------------------------------------------------------------

TEST(SemaphoreBypass, at_most_bypass_max_waiters_overtake_a_head_that_does_not_fit) {
  Line line(4, 0, bypass(2));
  line.permits["held"] = std::move(*line.semaphore.try_acquire(2));
  line.enter("big", 4);
  line.enter("s1");
  line.enter("s2");
  EXPECT_EQ(line.news(), (Log{"s1", "s2"}));
  line.give_back("s1");
  line.enter("s3");
  EXPECT_EQ(line.news(), Log{}) << "one is free, but the head's patience is at its end";
  EXPECT_FALSE(line.semaphore.try_acquire());
  line.give_back("s2");
  line.give_back("held");
  line.run();
  EXPECT_EQ(line.news(), Log{"big"});
}
TEST(SemaphoreBypass, the_count_restarts_for_the_next_head) {
  Line line(4, 0, bypass(1));
  line.permits["held"] = std::move(*line.semaphore.try_acquire(3));
  line.enter("big 1", 4);
  line.enter("s1");
  line.enter("big 2", 4);
  line.enter("s2");
  EXPECT_EQ(line.news(), Log{"s1"});
  line.cancel("big 1");
  line.give_back("s1");
  line.run();
  EXPECT_EQ(line.news(), (Log{"big 1: stopped", "s2"}));
}
TEST(SemaphoreBypass, waiters_may_bypass_too) {
  Line line(4, Simulator::Order::fifo, bypass(2));
  line.permits["held"] = std::move(*line.semaphore.try_acquire(4));
  line.enter("big", 3);
  line.enter("s1");
  line.enter("middle", 3);
  line.enter("s2");
  line.enter("s3");
  EXPECT_TRUE(line.permits["held"].release(2));
  line.run();
  EXPECT_EQ(line.news(), (Log{"s1", "s2"}));
  EXPECT_TRUE(line.permits["held"].release(1));
  line.run();
  EXPECT_EQ(line.news(), Log{});
}
TEST(SemaphoreBypass, the_search_past_the_head_is_bounded) {
  for (const bool too_far : {false, true}) {
    Line line(4, 0, bypass(1));
    line.permits["held"] = std::move(*line.semaphore.try_acquire(3));
    for (int i = 0; i < Semaphore::kBypassScanMax - (too_far ? 0 : 1); ++i) line.enter("big " + std::to_string(i), 2);
    line.enter("small");
    EXPECT_EQ(line.news(), too_far ? Log{} : Log{"small"});
  }
}
TEST(SemaphoreBypass, waits_for_the_debt_to_be_repaid) {
  Line line(4, 0, bypass(3));
  line.permits["held"] = std::move(*line.semaphore.try_acquire(3));
  EXPECT_TRUE(line.semaphore.set_capacity(2));
  line.enter("big", 2);
  line.enter("small");
  EXPECT_TRUE(line.permits["held"].release(1));
  line.run();
  EXPECT_EQ(line.news(), Log{});
  EXPECT_TRUE(line.permits["held"].release(1));
  line.run();
  EXPECT_EQ(line.news(), Log{"small"});
}

// ---- Priority ------------------------------------------------------------------------------------------------------

TEST(SemaphorePriority, higher_goes_first_and_equals_in_order_of_arrival) {
  Line line(1);
  line.enter("holder");
  line.enter_as("low", Semaphore::kPriorityMin);
  line.enter("normal 1");
  line.enter_as("high 1", Semaphore::kPriorityMax);
  line.enter("normal 2");
  line.enter_as("high 2", Semaphore::kPriorityMax);
  EXPECT_EQ(line.serve_all_after("holder"), (Log{"high 1", "high 2", "normal 1", "normal 2", "low"}));
}
TEST(SemaphorePriority, a_lower_priority_is_passed_over_boundedly_often) {
  Line line(1, 0, passed_over(3));
  line.enter("holder");
  line.enter_as("low 1", -1);
  line.enter_as("low 2", -1);
  for (int i = 0; i < 10; ++i) line.enter_as("high " + std::to_string(i), 1);
  const Log served = line.serve_all_after("holder");
  EXPECT_EQ(std::ranges::find(served, "low 1") - served.begin(), 3);
  EXPECT_EQ(std::ranges::find(served, "low 2") - served.begin(), 7);
}
TEST(SemaphorePriority, a_direct_hand_over_resets_the_count) {
  Line line(1, 0, passed_over(2));
  // Released from the run loop, as a coroutine does.
  const auto give_back = [&line](const std::string& name) {
    const auto task = [](Line& all, std::string whose) -> Task<> {
      all.give_back(whose);
      co_return;
    };
    line.start("release of " + name, task(line, name));
  };
  line.enter("held");
  line.enter("low 1");
  line.enter("low 2");
  line.enter_as("high 1", 3);
  give_back("held");
  give_back("high 1");
  EXPECT_EQ(line.news(), (Log{"held", "high 1", "low 1"}));
  line.enter_as("high 2", 3);
  line.enter_as("high 3", 3);
  give_back("low 1");
  give_back("high 2");
  give_back("high 3");
  EXPECT_EQ(line.news(), (Log{"high 2", "high 3", "low 2"}));
}
TEST(SemaphorePriority, the_line_passed_over_most_often_goes_first) {
  Line line(1, 0, passed_over(2));
  line.enter("holder");
  line.enter_as("lowest", -2);
  line.enter_as("high 0", 1);
  line.enter_as("high 1", 1);
  line.enter_as("high 2", 1);
  for (const char* name : {"holder", "high 0"}) {
    line.give_back(name);
    line.run();
    line.enter_as(std::string("low after ") + name, -1);
  }
  line.news();
  line.give_back("high 1");
  line.run();
  EXPECT_EQ(line.news(), Log{"lowest"});
}
TEST(SemaphorePriority, among_lines_passed_over_equally_often_the_higher_goes_first) {
  Line line(4, 0, passed_over(1));
  line.enter("holder", 4);
  line.enter("normal", 2);
  line.enter_as("low", -1, 4);
  line.enter_as("high", 1);
  EXPECT_TRUE(line.permits["holder"].release(1));
  line.run();
  EXPECT_TRUE(line.permits["holder"].release(2));
  line.run();
  EXPECT_EQ(line.log, (Log{"holder", "high", "normal"}));
}
TEST(SemaphorePriority, a_new_request_of_higher_priority_takes_what_a_large_head_leaves) {
  Line line(3);
  line.permits["held"] = std::move(*line.semaphore.try_acquire(1));
  line.enter("big", 3);
  line.enter_as("urgent", 1, 2);
  EXPECT_EQ(line.news(), Log{"urgent"});
}
TEST(SemaphorePriority, out_of_range_is_refused_whether_units_are_free_or_not) {
  Line line(1);
  line.enter_as("free", Semaphore::kPriorityMax + 1);
  line.enter_as("free too", 1000);
  line.enter("holder");
  line.enter_as("busy", Semaphore::kPriorityMin - 1);
  EXPECT_EQ(line.log, (Log{"free: invalid", "free too: invalid", "holder", "busy: invalid"}));
}

// A stream of others that fit must not starve a large request, whichever way they get past it.
TEST(SemaphorePriority, large_requests_of_a_higher_priority_do_not_reset_the_heads_bypass_count) {
  Line line(4, 0, bypass(1));
  line.permits["held"] = std::move(*line.semaphore.try_acquire(1));
  line.enter("starving", 4);
  int overtaken = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string small = "small " + std::to_string(i), large = "large " + std::to_string(i);
    line.enter(small, 2);
    line.enter_as(large, 1, 3);  // does not fit either: a new head
    const Log passed = line.news();
    overtaken += static_cast<int>(std::ranges::count(passed, small));
    if (line.permits.contains(small)) line.give_back(small);
    line.run();
    if (line.permits.contains(large)) line.give_back(large);
    line.cancel(small);
    line.run();
  }
  EXPECT_EQ(overtaken, 1);
}
TEST(SemaphorePriority, waiters_behind_a_large_request_do_not_stop_its_aging) {
  auto options = bypass(1);
  options.passed_over_max = 3;
  Line line(4, 0, options);
  line.enter_as("large 0", 1, 3);
  line.enter("starving", 4);
  line.enter_as("large 1", 1, 3);
  int larges = 1;
  for (; larges < 20 && !line.permits.contains("starving"); ++larges) {
    const std::string small = "small " + std::to_string(larges);
    line.enter(small);                                           // bypasses the large request and the starving one
    line.enter_as("large " + std::to_string(larges + 1), 1, 3);  // there is always one in line
    line.give_back(small);
    line.give_back("large " + std::to_string(larges - 1));
    line.run();
  }
  EXPECT_EQ(larges, 5);
}

}  // namespace
}  // namespace stint
