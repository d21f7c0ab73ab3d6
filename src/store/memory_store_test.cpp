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

}  // namespace
}  // namespace stint::store
