#include "store/memory_store.hpp"

#include "store/conformance.hpp"

namespace stint::store {
namespace {

using namespace std::chrono_literals;

class MemoryWorld final : public World {
 public:
  Store& store() override { return store_; }
  WallTime now() override { return now_; }
  void advance(Duration by) override { now_ += std::chrono::ceil<std::chrono::milliseconds>(by); }
  void kill(WorkerNumber) override { advance(MemoryRows::kLease + 1ms); }

 private:
  WallTime now_{std::chrono::milliseconds(1'800'000'000'000)};
  std::uint64_t random_ = 1;
  domain::Ambient ambient_{
      .wall_now = [this] { return now_; },
      .random = [this] { return random_ = random_ * 6364136223846793005U + 1442695040888963407U; }};
  MemoryStore store_{ambient_};
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreTest,
                         testing::Values(WorldMaker{"memory", [] { return std::make_unique<MemoryWorld>(); }}),
                         world_name);

TEST(Ledger, nested_runs_make_a_set_of_limits_once) {
  const domain::Ambient ambient{.wall_now = [] { return WallTime(); }, .random = [] { return std::uint64_t{0}; }};
  MemoryRows rows;
  Ledger ledger(rows, ambient);
  AgentEntry a, both;
  a.name = "a";
  a.limits = {{"one", 1}};
  both.name = "both";
  both.limits = {{"one", 1}, {"two", 1}, {"three", 2}};
  ASSERT_TRUE(ledger.define(a) && ledger.define(both));
  const WorkerNumber worker = ledger.enrol("w").value();
  NewRun run;
  run.id = "aaaaaaaaaaaa";
  run.agent = "a";
  ASSERT_TRUE(ledger.enqueue(run));
  ASSERT_EQ(ledger.claim(worker, "a", 1, {})->size(), 1U);
  run.parent = run.id;
  run.agent = "both";
  for (const char* const id : {"baaaaaaaaaaa", "caaaaaaaaaaa", "daaaaaaaaaaa"}) {
    run.id = id;
    ASSERT_TRUE(ledger.enqueue(run));
    EXPECT_EQ(ledger.claim(worker, "both", 1, id)->size(), 1U);
    EXPECT_EQ(rows.sets_with(rows.gate("two")->number)->size(), 2U) << "the agent's, and one";
  }
}

}  // namespace
}  // namespace stint::store
