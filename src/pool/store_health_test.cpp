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
  [[nodiscard]] bool is_enabled(domain::LogLevel) const noexcept override { return true; }
  void write(domain::LogLevel, std::string_view what, std::vector<domain::LogField> fields) override {
    logged_.push_back(std::string(what) + (fields.empty() ? "" : ": " + fields.front().value));
  }
  void fail_at(Call call, const char* why) {
    health_.record(call, Result<>(std::unexpected(Error(Errc::exhausted, Retry::safe, why))));
  }
  void work_at(Call call) { health_.record(call, Result<>()); }

  Simulator sim_{1};
  std::vector<std::string> logged_;
  StoreHealth health_{sim_, *this, [] { return ~std::uint64_t{0}; }};
};

TEST_F(StoreHealthTest, logs_once_that_the_store_failed_and_once_that_it_recovered) {
  work_at(Call::write);
  EXPECT_TRUE(logged_.empty());
  for (int i = 0; i < 20; ++i) {
    fail_at(Call::write, "the disk is full");
    work_at(Call::beat);
    sim_.advance(2s);
    EXPECT_EQ(health_.why_unusable(), "the disk is full");
  }
  EXPECT_EQ(logged_, std::vector<std::string>{"the store can't be used: the disk is full"});
  work_at(Call::write);
  EXPECT_EQ(health_.why_unusable(), "");
  EXPECT_EQ(logged_.size(), 2U);
  EXPECT_EQ(logged_.back(), "the store can be used again");
}

TEST_F(StoreHealthTest, logs_at_most_once_a_minute_however_often_it_changes) {
  for (int i = 0; i < 180; ++i) {
    fail_at(Call::beat, "no answer");
    work_at(Call::beat);
    sim_.advance(1s);
  }
  EXPECT_EQ(logged_.size(), 6U) << "one failure and one recovery in each of three minutes";
}

TEST_F(StoreHealthTest, forgets_a_failure_that_is_not_recent) {
  fail_at(Call::write, "the disk is full");
  sim_.advance(StoreHealth::kRecent - 1s);
  EXPECT_NE(health_.why_unusable(), "");
  sim_.advance(2s);
  EXPECT_EQ(health_.why_unusable(), "") << "otherwise callers that check first would never try again";
  EXPECT_EQ(logged_.size(), 1U) << "no recovery was seen";
}

TEST_F(StoreHealthTest, give_up_ends_every_back_off) {
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
  EXPECT_EQ(asked, before) << "no call is retried";
  EXPECT_TRUE(scope.idle());
}

}  // namespace
}  // namespace stint::pool
