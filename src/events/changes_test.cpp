#include "events/changes.hpp"

#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

namespace stint::events {
namespace {

using namespace std::chrono_literals;

class ChangesTest : public testing::Test {
 protected:
  Task<> follow(std::string run, std::uint64_t seen, Duration most, int& woken) {
    co_await changes_.wait(std::move(run), seen, most);
    ++woken;
  }

  Changes changes_;
  Simulator sim_;
  RootScope scope_{sim_};
};

TEST_F(ChangesTest, a_subscriber_is_woken_by_its_run_and_by_no_other) {
  int a = 0, any = 0;
  scope_.spawn(follow("a", changes_.now(), 1h, a));
  scope_.spawn(follow("", changes_.now(), 1h, any));
  sim_.run_ready();
  changes_.notify("b");
  sim_.run_ready();
  EXPECT_EQ(a, 0);
  EXPECT_EQ(any, 1);
  changes_.notify("a");
  sim_.run_ready();
  EXPECT_EQ(a, 1);
  EXPECT_EQ(changes_.subscribers(), 0U);
}

TEST_F(ChangesTest, a_change_between_the_check_and_the_wait_is_not_missed) {
  int woken = 0;
  const std::uint64_t seen = changes_.now();
  changes_.notify("a");
  scope_.spawn(follow("a", seen, 1h, woken));
  sim_.run_ready();
  EXPECT_EQ(woken, 1);
}

TEST_F(ChangesTest, an_end_subscription_ignores_progress_and_misses_nothing) {
  int woken = 0;
  {
    Changes::EndSubscription ending(changes_, "a");
    const auto wait = [&]() -> Task<> {
      co_await ending.next(1h);
      ++woken;
    };
    changes_.notify("a");  // before the wait
    scope_.spawn(wait());
    sim_.run_ready();
    EXPECT_EQ(woken, 1);
    scope_.spawn(wait());
    changes_.notify("a", Changes::Kind::progress);
    sim_.run_ready();
    EXPECT_EQ(woken, 1);
    changes_.notify("b");
    sim_.run_ready();
    EXPECT_EQ(woken, 1);
    changes_.notify("a");
    sim_.run_ready();
    EXPECT_EQ(woken, 2);
    EXPECT_EQ(changes_.subscribers(), 1U);
  }
  EXPECT_EQ(changes_.subscribers(), 0U);
}

TEST_F(ChangesTest, notify_all_wakes_every_subscriber) {
  int woken = 0, ended = 0;
  scope_.spawn(follow("a", changes_.now(), 1h, woken));
  scope_.spawn(follow("", changes_.now(), 1h, woken));
  Changes::EndSubscription ending(changes_, "b");
  auto wait = [&]() -> Task<> {
    co_await ending.next(1h);
    ++ended;
  };
  scope_.spawn(wait());
  sim_.run_ready();
  changes_.notify_all();
  sim_.run_ready();
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(ended, 1);
}

TEST_F(ChangesTest, a_wait_times_out_and_leaves_no_subscriber) {
  int woken = 0;
  scope_.spawn(follow("a", changes_.now(), 1s, woken));
  sim_.advance(2s);
  EXPECT_EQ(woken, 1);
  scope_.spawn(follow("a", changes_.now(), 1h, woken));
  sim_.run_ready();
  EXPECT_EQ(changes_.subscribers(), 1U);
  scope_.cancel();
  sim_.settle();
  EXPECT_EQ(changes_.subscribers(), 0U);
}

}  // namespace
}  // namespace stint::events
