#include "store/sqlite_stillness.hpp"

#include "os/fd.hpp"
#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using Look = SqliteStillness::Look;

class StillnessTest : public testing::Test {
 protected:
  Look look(Duration after) { return still_.look(start_ + after); }

  const os::TestFolder folder_;
  const std::string path_ = folder_ / "x.db";
  const os::Fd log_ = os::open_shared_file(path_ + "-wal", 0600).value();
  const TimePoint start_{1h};
  SqliteStillness still_{path_};
};

TEST_F(StillnessTest, settles_when_a_change_could_not_hide_any_more) {
  os::say_written(log_.get(), WallTime(1234ms));
  const Look first = look(0s);
  EXPECT_FALSE(first.settled);
  EXPECT_EQ(look(SqliteStillness::kSettles - 1ns), first);
  const Look settled = look(SqliteStillness::kSettles);
  EXPECT_TRUE(settled.settled);
  EXPECT_EQ(look(1h), settled);
  ASSERT_EQ(::write(log_.get(), "x", 1), 1);
  const Look written = look(2h);
  EXPECT_FALSE(written.settled);
  EXPECT_GT(written.changes, settled.changes);
  EXPECT_TRUE(look(3h).settled);
}

TEST_F(StillnessTest, a_file_system_that_dates_by_the_second_takes_longer) {
  os::say_written(log_.get(), WallTime(1000ms));
  EXPECT_FALSE(look(0s).settled);
  EXPECT_FALSE(look(SqliteStillness::kSettlesCoarse - 1ns).settled);
  EXPECT_TRUE(look(SqliteStillness::kSettlesCoarse).settled);
}

}  // namespace
}  // namespace stint::store
