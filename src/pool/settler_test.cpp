#include "pool/settler.hpp"

#include "stint/combinators.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

#include <map>

namespace stint::pool {
namespace {

using domain::RunState;

/// Refuses a batch that contains a certain text, and every batch while `away` or `asleep`.
class PickyStore final : public store::MemoryStore {
 public:
  static constexpr std::string_view kRefused = "can't be kept";

  explicit PickyStore(const domain::System& system) : MemoryStore(system) {}
  Task<Result<std::vector<std::optional<RunState>>>> settle(store::NodeNumber,
                                                            std::vector<store::Settlement> settlements) override {
    batches.push_back(settlements.size());
    if (away > 0) {
      --away;
      co_return fail(Error(Errc::unavailable, Retry::safe, "away"));
    }
    if (asleep > 0) {
      --asleep;
      co_return fail(Errc::closed, "the lease is over, as far as is known");
    }
    std::vector<std::optional<RunState>> states;
    for (const store::Settlement& each : settlements) {
      if (each.result == kRefused || each.error == kRefused) co_return fail(Errc::invalid, "no such text\x80");
      states.emplace_back(each.settle == domain::Settle::succeeded ? RunState::succeeded : RunState::failed);
    }
    for (store::Settlement& each : settlements) taken[each.attempt.run.value] = std::move(each);
    co_return states;
  }

  std::vector<std::size_t> batches;
  std::map<std::int64_t, store::Settlement> taken;
  int away = 0, asleep = 0;
};

class SettlerTest : public testing::Test {
 protected:
  ~SettlerTest() override {
    scope_.cancel();
    sim_.settle();
  }
  void settle(std::int64_t run, std::int64_t owner = 1, domain::Settle how = domain::Settle::succeeded,
              std::string_view result = {}) {
    store::Settlement settlement;
    settlement.attempt.run = store::RunNumber{run};
    settlement.settle = how;
    settlement.result = result;
    scope_.spawn([](SettlerTest& test, store::NodeNumber worker, store::Settlement each) -> Task<> {
      const std::int64_t number = each.attempt.run.value;
      test.states_[number] = co_await test.settler_.settle(worker, std::move(each));
    }(*this, store::NodeNumber{owner}, std::move(settlement)));
  }
  void work() {
    sim_.run_ready();  // all of them wait
    scope_.spawn(settler_.run());
    sim_.advance(std::chrono::minutes(1));
  }

  domain::System system_{[] { return WallTime(); }, [] { return std::uint64_t{1}; }};
  Simulator sim_;
  PickyStore store_{system_};
  domain::NoLog no_log_;
  StoreHealth health_{sim_, no_log_, [] { return ~std::uint64_t{0}; }};
  Settler settler_{store_, health_, no_log_};
  RootScope scope_{sim_};
  std::map<std::int64_t, std::optional<RunState>> states_;
};

TEST_F(SettlerTest, settles_in_one_batch_per_owner) {
  for (const std::int64_t run : {1, 2, 3}) settle(run);
  settle(4, 2);
  work();
  EXPECT_EQ(store_.batches.size(), 2U) << "one for each owner";
  EXPECT_EQ(states_.size(), 4U);
}

TEST_F(SettlerTest, a_refused_settlement_does_not_fail_the_others_of_its_batch) {
  for (const std::int64_t run : {11, 12}) settle(run);
  settle(13, 1, domain::Settle::succeeded, PickyStore::kRefused);
  settle(14);
  work();
  EXPECT_EQ(store_.batches, (std::vector<std::size_t>{4, 1, 1, 1, 1, 1}));
  const std::map<std::int64_t, std::optional<RunState>> expected = {
      {11, RunState::succeeded}, {12, RunState::succeeded}, {13, RunState::failed}, {14, RunState::succeeded}};
  EXPECT_EQ(states_, expected) << "the refused one is settled too";
  EXPECT_TRUE(store_.taken[13].error.contains("no such text?")) << store_.taken[13].error;
  EXPECT_TRUE(health_.why_unusable().empty()) << "one refused text is not a failure of the store";
  settle(15);
  sim_.run_ready();
  EXPECT_EQ(states_[15], RunState::succeeded) << "and it goes on";
}

TEST_F(SettlerTest, a_refused_settlement_of_a_run_that_would_go_on_becomes_a_lost_one) {
  for (const domain::Settle how : domain::kSettles) {
    settle(static_cast<std::int64_t>(how) + 1, 1, how, PickyStore::kRefused);
  }
  work();
  using enum domain::Settle;
  const std::map<domain::Settle, domain::Settle> expected = {
      {succeeded, failed}, {failed, failed}, {cancelled, cancelled}, {expired, expired},
      {retry, lost},       {park, lost},     {hand_back, lost},      {lost, lost}};
  for (const auto& [asked, taken] : expected) {
    EXPECT_EQ(store_.taken[static_cast<std::int64_t>(asked) + 1].settle, taken) << to_string(asked);
  }
}

TEST_F(SettlerTest, after_a_sleep_it_retries_until_the_heartbeat_decides) {
  store_.asleep = 5;
  settle(1);
  work();
  EXPECT_EQ(states_[1], RunState::succeeded);
  EXPECT_TRUE(health_.why_unusable().empty());
}

/// Seed 4747 of the simulator: a node that leaves gives up waiting for settlements after a while.
TEST_F(SettlerTest, a_caller_may_be_cancelled_while_the_store_settles_its_batch) {
  store_.away = 3;
  auto leaves = [](Settler& settler, store::Settlement each) -> Task<> {
    const auto settled =
        co_await with_timeout(std::chrono::milliseconds(10), settler.settle(store::NodeNumber{1}, std::move(each)));
    EXPECT_FALSE(settled);
  };
  store::Settlement settlement;
  settlement.attempt.run = store::RunNumber{1};
  settlement.settle = domain::Settle::succeeded;
  scope_.spawn(leaves(settler_, settlement));
  settle(2);
  work();
  EXPECT_EQ(states_[2], RunState::succeeded);
  EXPECT_TRUE(store_.taken.contains(1)) << "the store may have had it already";
}

TEST_F(SettlerTest, does_not_retry_for_a_fenced_owner) {
  store_.asleep = 1'000'000;
  settle(1);
  work();
  EXPECT_FALSE(states_.contains(1));
  settler_.give_up(store::NodeNumber{1});
  sim_.advance(std::chrono::seconds(5));
  EXPECT_EQ(states_.at(1), std::nullopt);
}

TEST_F(SettlerTest, retries_while_the_store_is_unavailable) {
  store_.away = 5;
  settle(1);
  work();
  EXPECT_EQ(states_[1], RunState::succeeded);
  EXPECT_EQ(store_.batches.size(), 6U);
}

}  // namespace
}  // namespace stint::pool
