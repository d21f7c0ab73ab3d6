// Detecting changes cheaply.
#include "os/watch.hpp"

#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

namespace stint::os {
namespace {

constexpr std::int64_t kNowMs = 1'700'000'000'000;

void set_time(const std::string& path, std::int64_t ms, long extra_ns = 1) {
  const timespec time{.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000 + extra_ns};
  const timespec both[2] = {time, time};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), both, 0), 0);
}

TEST(DirectoryStamp, an_unchanged_directory_is_the_same) {
  const TestFolder folder;
  set_time(folder.path(), kNowMs - 1000);
  DirectoryStamp stamp;
  EXPECT_FALSE(stamp.is_same(folder.path(), kNowMs)) << "the first look";
  EXPECT_TRUE(stamp.is_same(folder.path(), kNowMs));
  folder.write("x", "");
  EXPECT_FALSE(stamp.is_same(folder.path(), kNowMs)) << "an entry was added";
}

TEST(DirectoryStamp, a_very_recent_timestamp_is_not_trusted) {
  const TestFolder folder;
  set_time(folder.path(), kNowMs - 50);
  DirectoryStamp stamp;
  for (int looks = 0; looks < 3; ++looks) EXPECT_FALSE(stamp.is_same(folder.path(), kNowMs));
}

TEST(DirectoryStamp, a_timestamp_of_whole_seconds_is_not_trusted) {
  const TestFolder folder;
  set_time(folder.path(), kNowMs - 2000, 0);
  DirectoryStamp stamp;
  for (int looks = 0; looks < 3; ++looks) EXPECT_FALSE(stamp.is_same(folder.path(), kNowMs));
}

TEST(DirectoryStamp, a_replaced_directory_is_not_the_same) {
  const TestFolder folder;
  const std::string path = folder / "d";
  DirectoryStamp stamp;
  for (const char* const old : {"a", "b"}) {
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    set_time(path, kNowMs - 1000);
    EXPECT_FALSE(stamp.is_same(path, kNowMs));
    EXPECT_TRUE(stamp.is_same(path, kNowMs));
    ASSERT_EQ(::rename(path.c_str(), (folder / old).c_str()), 0);  // it keeps its inode
  }
  EXPECT_FALSE(stamp.is_same(path, kNowMs)) << "it does not exist";
}

TEST(Watch, drains_more_than_one_read_takes) {
  const TestFolder folder;
  folder.write("x", "");
  Watch watch;
  ASSERT_TRUE(watch.start());
  ASSERT_TRUE(watch.add_close(folder / "x"));
  EXPECT_FALSE(watch.drain());
  // Equal events in a row are merged: so writable and read-only descriptors alternate.
  for (int i = 0; i < 1000; ++i) Fd(::open((folder / "x").c_str(), i % 2 == 0 ? O_RDONLY : O_WRONLY)).reset();
  EXPECT_TRUE(watch.drain());
  EXPECT_FALSE(watch.drain()) << "all of them were read";
}

}  // namespace
}  // namespace stint::os
