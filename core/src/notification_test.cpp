#include "stint/notification.hpp"

#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

using namespace std::chrono_literals;

TEST(Notification, wakes_every_waiter) {
  Simulator sim;
  Notification notification;
  int woken = 0;
  RootScope scope(sim);
  const auto waiter = [&]() -> Task<> {
    co_await notification.wait(notification.count());
    ++woken;
  };
  for (int i = 0; i < 3; ++i) scope.spawn(waiter());
  sim.run_ready();
  EXPECT_EQ(woken, 0);
  notification.notify();
  sim.run_ready();
  EXPECT_EQ(woken, 3);
}

TEST(Notification, a_notify_between_check_and_wait_is_not_missed) {
  Simulator sim;
  Notification notification;
  bool resumed = false;
  RootScope scope(sim);
  const auto waiter = [&]() -> Task<> {
    const std::uint64_t seen = notification.count();
    notification.notify();
    co_await notification.wait(seen);
    resumed = true;
  };
  scope.spawn(waiter());
  sim.run_ready();
  EXPECT_TRUE(resumed);
}

TEST(Notification, a_wait_is_bounded_and_cancellable) {
  Simulator sim;
  Notification notification;
  int timed_out = 0;
  RootScope scope(sim);
  const auto waiter = [&](Duration most) -> Task<> {
    (void)co_await notification.wait(0, most);
    ++timed_out;
  };
  scope.spawn(waiter(1s));
  scope.spawn(waiter(10s));
  sim.advance(2s);
  EXPECT_EQ(timed_out, 1);
  scope.cancel();
  sim.settle();
  EXPECT_EQ(timed_out, 1);
  notification.notify();  // no waiter
}

TEST(Notification, a_notified_waiter_does_not_time_out_as_well) {
  Simulator sim;
  Notification notification;
  std::vector<std::uint64_t> counts;
  RootScope scope(sim);
  const auto waiter = [&]() -> Task<> {
    for (int i = 0; i < 2; ++i) counts.push_back(co_await notification.wait(notification.count(), 10s));
  };
  scope.spawn(waiter());
  sim.advance(9s);
  notification.notify();
  sim.advance(9s);  // beyond the end of the first wait
  EXPECT_EQ(counts, std::vector<std::uint64_t>{1});
  sim.advance(2s);
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{1, 1}));
}

}  // namespace
}  // namespace stint
