#include "store/sqlite_store.hpp"

#include "os/test_folder.hpp"
#include "store/conformance.hpp"

namespace stint::store {
namespace {

using namespace std::chrono_literals;

class SqliteWorld final : public World {
 public:
  SqliteWorld() : store_(SqliteStore::blocking_open(folder_ / "stint.db", ambient_).value()) {}

  Store& store() override { return *store_; }
  WallTime now() override { return WallTime(std::chrono::milliseconds(now_ms_)); }
  void advance(Duration by) override { now_ms_ += std::chrono::ceil<std::chrono::milliseconds>(by).count(); }
  void kill(WorkerNumber worker) override { EXPECT_TRUE(run(store_->drop_lease(worker))); }

 private:
  os::TestFolder folder_;
  std::atomic<std::int64_t> now_ms_ = 1'800'000'000'000;
  std::atomic<std::uint64_t> random_ = 1;
  domain::Ambient ambient_{
      .wall_now = [this] { return now(); },
      .random = [this] { return random_ = random_ * 6364136223846793005U + 1442695040888963407U; }};
  std::unique_ptr<SqliteStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreTest,
                         testing::Values(WorldMaker{"sqlite", [] { return std::make_unique<SqliteWorld>(); }}),
                         world_name);

}  // namespace
}  // namespace stint::store
