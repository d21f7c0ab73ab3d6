#include "model/upstreams.hpp"

#include "model/upstream_test_support.hpp"

#include <vector>

namespace stint::model {
namespace {

using namespace std::chrono_literals;

class UpstreamsTest : public ::testing::Test {
 protected:
  struct Told {
    std::string account;
    std::optional<WallTime> until;
    PauseCause cause{};
  };
  ~UpstreamsTest() override { world_.sim.settle(); }
  std::shared_ptr<Upstream> at(const std::string& account, const std::string& model_class) {
    const auto found = upstreams_.at({.provider = "p", .account = account, .model_class = model_class}, {});
    EXPECT_TRUE(found);
    return found ? *found : nullptr;
  }
  void fail(const std::shared_ptr<Upstream>& upstream, const Failure& failure) {
    scope_.spawn([upstream, failure]() -> Task<> {
      auto admission = co_await upstream->admit({});
      if (admission) admission->failed(failure);
    });
    world_.sim.run_ready();
  }

  SimulatedSystem world_{1, Simulator::Order::fifo};
  std::vector<Told> told_;
  Upstreams upstreams_{world_.sim, world_.system,
                       [this](const std::string& account, std::optional<WallTime> until, const Pause& why) {
                         told_.push_back({account, until, why.cause});
                       },
                       3};
  RootScope scope_{world_.sim, ScopeOptions{.cancel_on_error = false}};
};

TEST_F(UpstreamsTest, a_quota_pauses_the_account_and_a_throttle_one_class_of_models) {
  const auto big = at("a", "big");
  const auto small = at("a", "small");
  const auto other = at("b", "big");
  fail(big, throttled(10s));
  EXPECT_TRUE(big->pause());
  EXPECT_FALSE(small->pause());
  fail(small, failure_of(FailureKind::quota, 429, 1h));
  EXPECT_EQ(big->pause()->until, world_.sim.now() + 1h);
  EXPECT_FALSE(other->pause());
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_EQ(told_[0].cause, PauseCause::throttle);
  EXPECT_EQ(told_[1].cause, PauseCause::quota);
  EXPECT_EQ(told_[1].until, world_.system.wall_now() + 1h);
}

TEST_F(UpstreamsTest, a_pause_from_outside_reaches_all_and_those_made_later_and_is_not_reported) {
  const auto big = at("a", "big");
  upstreams_.pause_until("a", world_.system.wall_now() + 10min, "another program was told to wait");
  ASSERT_TRUE(big->pause());
  EXPECT_EQ(big->pause()->cause, PauseCause::outside);
  const auto small = at("a", "small");
  ASSERT_TRUE(small->pause());
  EXPECT_EQ(small->pause()->until, world_.sim.now() + 10min);
  EXPECT_TRUE(told_.empty());
  upstreams_.resume("a");
  EXPECT_EQ(big->pause()->until, world_.sim.now()) << "the next call is the probe";
  EXPECT_FALSE(at("b", "big")->pause());
}

TEST_F(UpstreamsTest, forgets_only_idle_ones_without_a_user) {
  const auto used = at("a", "1");
  (void)at("a", "2");
  (void)at("a", "3");
  EXPECT_FALSE(upstreams_.at({.provider = "p", .account = "a", .model_class = "4"}, {})) << "used just now";
  world_.sim.advance(Upstream::kIdleAfter);
  (void)at("a", "2");
  EXPECT_TRUE(at("a", "4"));
  ASSERT_EQ(upstreams_.all().size(), 3U);
  EXPECT_EQ(at("a", "1"), used);
}

}  // namespace
}  // namespace stint::model
