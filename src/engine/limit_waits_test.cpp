#include "engine/limit_waits.hpp"

#include <gtest/gtest.h>

namespace stint::engine {
namespace {

using namespace std::chrono_literals;
using domain::LimitWait;

class LimitWaitsTest : public ::testing::Test {
 protected:
  [[nodiscard]] static TimePoint at(Duration since) { return TimePoint(1h) + since; }

  LimitWaits waits_;
};

TEST_F(LimitWaitsTest, remembers_a_line_that_was_left_and_one_that_goes_on) {
  waits_.in_line("a", "gpu", at(0s));
  waits_.out_of_line("a", at(2s));
  waits_.in_line("a", "model", at(2s));
  EXPECT_EQ(waits_.of("a", at(5s)), (std::vector<LimitWait>{{"gpu", 5s, 2s}, {"model", 3s, 3s}}));
  EXPECT_TRUE(waits_.of("b", at(5s)).empty());
}

TEST_F(LimitWaitsTest, a_wait_goes_on_while_runs_ahead_take_the_permits) {
  waits_.in_line("a", "gpu", at(0s));
  waits_.out_of_line("a", at(2s));
  waits_.in_line("a", "gpu", at(2s + LimitWaits::kSameWait));
  EXPECT_EQ(waits_.of("a", at(5s)), (std::vector<LimitWait>{{"gpu", 5s, 5s}}));
  waits_.out_of_line("a", at(5s));
  waits_.in_line("a", "gpu", at(7s));
  EXPECT_EQ(waits_.of("a", at(8s)), (std::vector<LimitWait>{{"gpu", 8s, 5s}, {"gpu", 1s, 1s}}));
}

TEST_F(LimitWaitsTest, what_the_store_says_counts_only_while_it_is_asked) {
  waits_.blocked("a", "gpu", at(0s));
  waits_.blocked("a", "gpu", at(1s));
  waits_.stop_looking(at(3s));
  EXPECT_EQ(waits_.of("a", at(9s)), (std::vector<LimitWait>{{"gpu", 9s, 3s}}));
  waits_.blocked("a", "gpu", at(9s));
  waits_.not_blocked("a", at(10s));
  EXPECT_EQ(waits_.of("a", at(11s)), (std::vector<LimitWait>{{"gpu", 11s, 3s}, {"gpu", 2s, 1s}}));
}

TEST_F(LimitWaitsTest, a_line_of_the_host_goes_before_the_store) {
  waits_.in_line("a", "gpu", at(0s));
  waits_.blocked("a", "account", at(1s));
  waits_.not_blocked("a", at(1s));
  waits_.stop_looking(at(2s));
  EXPECT_EQ(waits_.of("a", at(3s)), (std::vector<LimitWait>{{"gpu", 3s, 3s}}));
  waits_.out_of_line("a", at(3s));
  waits_.blocked("a", "account", at(3s));
  EXPECT_EQ(waits_.of("a", at(4s)), (std::vector<LimitWait>{{"gpu", 4s, 3s}, {"account", 1s, 1s}}));
}

TEST_F(LimitWaitsTest, forgets_agents_without_ready_runs_and_the_oldest_waits) {
  waits_.blocked("a", "gpu", at(0s));
  waits_.in_line("b", "gpu", at(0s));
  waits_.keep_if([](const std::string&) { return false; });
  EXPECT_TRUE(waits_.of("a", at(1s)).empty());
  EXPECT_EQ(waits_.of("b", at(1s)).size(), 1U) << "it is in line";
  for (int i = 0; i < 100; ++i) waits_.blocked("c", i % 2 == 0 ? "gpu" : "model", at(std::chrono::seconds(i)));
  const auto kept = waits_.of("c", at(100s));
  EXPECT_EQ(kept.size(), LimitWaits::kWaitsMax);
  EXPECT_EQ(kept.back(), (LimitWait{"model", 1s, 1s}));
}

}  // namespace
}  // namespace stint::engine
