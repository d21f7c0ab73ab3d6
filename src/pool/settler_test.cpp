#include "pool/settler.hpp"

#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

#include <map>

namespace stint::pool {
namespace {

using domain::RunState;

/// Refuses, as a whole, what has a certain run in it.
class PickyStore final : public store::MemoryStore {
 public:
  static constexpr store::RunNumber kRefused = 13;

  explicit PickyStore(const domain::Ambient& ambient) : MemoryStore(ambient) {}
  Task<Result<std::vector<std::optional<RunState>>>> settle(store::WorkerNumber,
                                                            std::vector<store::Settlement> settlements) override {
    batches.push_back(settlements.size());
    if (away > 0) {
      --away;
      co_return fail(Error(Errc::unavailable, Retry::safe, "away"));
    }
    for (const store::Settlement& each : settlements) {
      if (each.run == kRefused) co_return fail(Errc::invalid, "that can't be kept");
    }
    co_return std::vector<std::optional<RunState>>(settlements.size(), RunState::succeeded);
  }

  std::vector<std::size_t> batches;
  int away = 0;
};

class SettlerTest : public testing::Test {
 protected:
  ~SettlerTest() override {
    scope_.cancel();
    sim_.settle();
  }
  void settle(store::RunNumber run, store::WorkerNumber owner = 1) {
    scope_.spawn([](SettlerTest& test, store::RunNumber number, store::WorkerNumber worker) -> Task<> {
      store::Settlement settlement;
      settlement.run = number;
      test.states_[number] = co_await test.settler_.settle(worker, std::move(settlement));
    }(*this, run, owner));
  }
  void work() {
    sim_.run_ready();  // all of them wait
    scope_.spawn(settler_.run());
    sim_.advance(std::chrono::minutes(1));
  }

  domain::Ambient ambient_{[] { return WallTime(); }, [] { return std::uint64_t{1}; }};
  Simulator sim_;
  PickyStore store_{ambient_};
  domain::NoLog no_log_;
  StoreHealth health_{sim_, no_log_};
  Settler settler_{store_, health_};
  RootScope scope_{sim_};
  std::map<store::RunNumber, std::optional<RunState>> states_;
};

TEST_F(SettlerTest, what_has_gathered_goes_together) {
  for (const store::RunNumber run : {1, 2, 3}) settle(run);
  settle(4, 2);
  work();
  EXPECT_EQ(store_.batches.size(), 2U) << "one for each owner";
  EXPECT_EQ(states_.size(), 4U);
}

TEST_F(SettlerTest, one_that_is_refused_does_not_take_the_others_along) {
  for (const store::RunNumber run : {11, 12, 13, 14}) settle(run);
  work();
  EXPECT_EQ(store_.batches, (std::vector<std::size_t>{4, 1, 1, 1, 1}));
  const std::map<store::RunNumber, std::optional<RunState>> expected = {
      {11, RunState::succeeded}, {12, RunState::succeeded}, {13, std::nullopt}, {14, RunState::succeeded}};
  EXPECT_EQ(states_, expected);
  settle(15);
  sim_.run_ready();
  EXPECT_EQ(states_[15], RunState::succeeded) << "and it goes on";
}

TEST_F(SettlerTest, a_store_that_is_away_is_asked_again) {
  store_.away = 5;
  settle(1);
  work();
  EXPECT_EQ(states_[1], RunState::succeeded);
  EXPECT_EQ(store_.batches.size(), 6U);
}

}  // namespace
}  // namespace stint::pool
