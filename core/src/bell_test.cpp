#include "stint/bell.hpp"

#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

using namespace std::chrono_literals;

TEST(Bell, a_ring_wakes_all_who_listen) {
  Simulator sim;
  Bell bell;
  int woken = 0;
  RootScope scope(sim);
  const auto listen = [&]() -> Task<> {
    co_await bell.hear(bell.rings());
    ++woken;
  };
  for (int i = 0; i < 3; ++i) scope.spawn(listen());
  sim.run_ready();
  EXPECT_EQ(woken, 0);
  bell.ring();
  sim.run_ready();
  EXPECT_EQ(woken, 3);
}

TEST(Bell, a_ring_between_the_look_and_the_wait_is_not_missed) {
  Simulator sim;
  Bell bell;
  bool heard = false;
  RootScope scope(sim);
  const auto listen = [&]() -> Task<> {
    const std::uint64_t seen = bell.rings();
    bell.ring();
    co_await bell.hear(seen);
    heard = true;
  };
  scope.spawn(listen());
  sim.run_ready();
  EXPECT_TRUE(heard);
}

TEST(Bell, a_wait_has_an_end_and_can_be_cancelled) {
  Simulator sim;
  Bell bell;
  int timed_out = 0;
  RootScope scope(sim);
  const auto listen = [&](Duration most) -> Task<> {
    (void)co_await bell.hear(0, most);
    ++timed_out;
  };
  scope.spawn(listen(1s));
  scope.spawn(listen(10s));
  sim.advance(2s);
  EXPECT_EQ(timed_out, 1);
  scope.cancel();
  sim.settle();
  EXPECT_EQ(timed_out, 1);
  bell.ring();  // nobody is there
}

TEST(Bell, who_heard_it_in_time_is_not_woken_again) {
  Simulator sim;
  Bell bell;
  std::vector<std::uint64_t> heard;
  RootScope scope(sim);
  const auto listen = [&]() -> Task<> {
    for (int i = 0; i < 2; ++i) heard.push_back(co_await bell.hear(bell.rings(), 10s));
  };
  scope.spawn(listen());
  sim.advance(9s);
  bell.ring();
  sim.advance(9s);  // beyond the end of the first wait
  EXPECT_EQ(heard, std::vector<std::uint64_t>{1});
  sim.advance(2s);
  EXPECT_EQ(heard, (std::vector<std::uint64_t>{1, 1}));
}

}  // namespace
}  // namespace stint
