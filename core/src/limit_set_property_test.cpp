// Overlapping sets in all orders, over many seeds: caps are exact, no wait is endless, every permit is returned. A
// failing seed reproduces the failure: `explore_limit_sets<InOneOrder>(seed)`.
#include "stint/limit_set.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace stint {
namespace {

using Limits = std::vector<LimitSet::Limit>;

struct LimitSetWorld {
  static constexpr std::size_t kWorkers = 6, kRounds = 4;
  static constexpr std::int64_t kCapacity[] = {2, 1, 3};
  explicit LimitSetWorld(std::uint64_t seed) { sim.emplace(seed); }
  std::uint64_t draw(std::uint64_t below) { return sim->random()() % below; }
  /// Some limits in random order, occasionally one of them twice.
  Limits draw_limits() {
    Limits limits;
    for (std::size_t i = 0; i < 3; ++i) {
      if (draw(3) == 0) continue;
      auto units = static_cast<std::uint32_t>(1 + draw(static_cast<std::uint64_t>(kCapacity[i])));
      if (units > 1 && draw(2) == 0) limits.push_back({&semaphores[i], 1}), --units;
      limits.push_back({&semaphores[i], units});
    }
    std::ranges::shuffle(limits, sim->random());
    return limits;
  }

  Semaphore semaphores[3] = {{"a", kCapacity[0]}, {"b", kCapacity[1]}, {"c", kCapacity[2]}};
  std::int64_t used[3] = {};
  std::string wrong;
  std::vector<std::unique_ptr<RootScope>> scopes;
  std::optional<Simulator> sim;  // last member: destroyed first, with every frame
};
/// Counts the units a frame uses, for as long as it lives.
struct Use {
  Use(LimitSetWorld& where, const Limits& what) : world(where), limits(what) { count(1); }
  ~Use() { count(-1); }
  void count(std::int64_t sign) const {
    for (const auto& limit : limits) {
      const auto i = static_cast<std::size_t>(limit.semaphore - world.semaphores);
      world.used[i] += sign * std::int64_t{limit.units};
      if (world.used[i] > LimitSetWorld::kCapacity[i]) world.wrong = "more than the capacity is in use";
    }
  }
  LimitSetWorld& world;
  const Limits& limits;
};

struct InOneOrder {
  static Task<Result<PermitSet>> take(const Limits& limits, LimitSetOptions options) {
    const LimitSet set(limits);
    co_return co_await set.acquire(std::move(options));
  }
  static Task<Result<>> back_off(PermitSet& held, Duration pause) { return held.back_off(pause); }
};
/// Known-bad variant: acquires the limits in the listed order.
struct AsWritten {
  static Task<Result<std::vector<Permit>>> take(const Limits& limits, LimitSetOptions) {
    std::vector<Permit> permits;
    for (const auto& limit : limits) {
      STINT_CO_TRY(Permit permit, co_await limit.semaphore->acquire(limit.units));
      permits.push_back(std::move(permit));
    }
    co_return permits;
  }
  static Task<Result<>> back_off(std::vector<Permit>&, Duration) { co_return Result<>(); }
};

template <class Way>
Task<> explored_worker(LimitSetWorld& world) {
  for (std::size_t round = 0; round < LimitSetWorld::kRounds; ++round) {
    for (auto pause = world.draw(4); pause > 0; --pause) co_await yield();
    const Limits limits = world.draw_limits();
    LimitSetOptions options;
    options.priority = static_cast<int>(world.draw(3)) - 1;
    if (world.draw(4) == 0) options.deadline = Deadline(world.sim->now() + std::chrono::milliseconds(world.draw(20)));
    auto held = co_await Way::take(limits, std::move(options));
    for (auto backs_off = world.draw(3); held; --backs_off) {
      {
        const Use use(world, limits);
        for (auto pause = world.draw(3); pause > 0; --pause) co_await yield();
        if (world.draw(2) == 0) co_await sleep_for(std::chrono::milliseconds(1 + world.draw(10)));
      }
      if (backs_off == 0) break;
      const auto back = co_await Way::back_off(*held, std::chrono::milliseconds(world.draw(10)));
      if (!back) world.wrong = "a back-off failed";
    }
  }
}
template <class Way>
Task<> explored_troubles(LimitSetWorld& world) {
  for (int i = 0; i < 6; ++i) {
    co_await sleep_for(std::chrono::milliseconds(1 + world.draw(10)));
    if (world.draw(3) == 0) world.scopes[world.draw(LimitSetWorld::kWorkers)]->cancel();
  }
}

/// The failure found with this seed; empty if none.
template <class Way>
std::string explore_limit_sets(std::uint64_t seed) {
  LimitSetWorld world(seed);
  for (std::size_t id = 0; id <= LimitSetWorld::kWorkers; ++id)
    world.scopes.push_back(std::make_unique<RootScope>(*world.sim));
  for (std::size_t id = 0; id < LimitSetWorld::kWorkers; ++id) world.scopes[id]->spawn(explored_worker<Way>(world));
  world.scopes.back()->spawn(explored_troubles<Way>(world));
  const auto all_idle = [&world] {
    return std::ranges::all_of(world.scopes, [](auto& scope) { return scope->idle(); });
  };
  while (!all_idle()) {
    if (!world.sim->step()) return "a wait can never complete";
    if (!world.wrong.empty()) return world.wrong;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (world.semaphores[i].available() != LimitSetWorld::kCapacity[i]) return "a permit is lost";
  }
  return "";
}

TEST(LimitSetExplorer, five_thousand_seeds_of_opposite_orders_never_deadlock) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed)
    ASSERT_EQ(explore_limit_sets<InOneOrder>(seed), "") << "seed " << seed;
}
TEST(LimitSetExplorer, detects_the_deadlock_of_sets_acquired_in_listed_order) {
  int caught = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) caught += !explore_limit_sets<AsWritten>(seed).empty();
  EXPECT_GT(caught, 0);
  std::printf("  caught in %d of 200 seeds\n", caught);
}

}  // namespace
}  // namespace stint
