#include "pool/store_health.hpp"

#include "pool/store_backoff.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stint::pool {
namespace {

using namespace std::chrono_literals;
using Call = StoreHealth::Call;

class StoreHealthTest : public testing::Test, protected domain::Log {
 protected:
  [[nodiscard]] bool hears(domain::LogLevel) const noexcept override { return true; }
  void say(domain::LogLevel, std::string_view what, std::vector<domain::LogField> fields) override {
    said_.push_back(std::string(what) + (fields.empty() ? "" : ": " + fields.front().value));
  }
  void fail_at(Call call, const char* why) {
    health_.heard(call, Result<>(std::unexpected(Error(Errc::exhausted, Retry::safe, why))));
  }
  void work_at(Call call) { health_.heard(call, Result<>()); }

  Simulator sim_{1};
  std::vector<std::string> said_;
  StoreHealth health_{sim_, *this, [] { return ~std::uint64_t{0}; }};
};

TEST_F(StoreHealthTest, says_once_that_it_can_not_be_used_and_once_that_it_can) {
  work_at(Call::write);
  EXPECT_TRUE(said_.empty());
  for (int i = 0; i < 20; ++i) {
    fail_at(Call::write, "the disk is full");
    work_at(Call::beat);
    sim_.advance(2s);
    EXPECT_EQ(health_.why_unusable(), "the disk is full");
  }
  EXPECT_EQ(said_, std::vector<std::string>{"the store can't be used: the disk is full"});
  work_at(Call::write);
  EXPECT_EQ(health_.why_unusable(), "");
  EXPECT_EQ(said_.size(), 2U);
  EXPECT_EQ(said_.back(), "the store can be used again");
}

TEST_F(StoreHealthTest, repeats_itself_once_a_minute_however_often_it_changes) {
  for (int i = 0; i < 180; ++i) {
    fail_at(Call::beat, "nobody answers");
    work_at(Call::beat);
    sim_.advance(1s);
  }
  EXPECT_EQ(said_.size(), 6U) << "that it can't, and that it can, in each of three minutes";
}

TEST_F(StoreHealthTest, what_nobody_has_tried_for_long_counts_no_more) {
  fail_at(Call::write, "the disk is full");
  sim_.advance(StoreHealth::kRecent - 1s);
  EXPECT_NE(health_.why_unusable(), "");
  sim_.advance(2s);
  EXPECT_EQ(health_.why_unusable(), "") << "else nobody would ever try again who asks first";
  EXPECT_EQ(said_.size(), 1U) << "but it is not known to be well";
}

TEST_F(StoreHealthTest, who_waits_to_ask_again_is_let_go_when_the_process_leaves) {
  RootScope scope(sim_);
  int asked = 0;
  auto ask = [&]() -> Task<> {
    StoreBackoff backoff;
    do {
      ++asked;
    } while (co_await backoff.wait(health_));
  };
  scope.spawn(ask());
  sim_.advance(10s);
  EXPECT_GT(asked, 5);
  const int before = asked;
  health_.give_up();
  sim_.run_ready();
  EXPECT_EQ(asked, before) << "nothing is asked again";
  EXPECT_TRUE(scope.idle());
}

}  // namespace
}  // namespace stint::pool
