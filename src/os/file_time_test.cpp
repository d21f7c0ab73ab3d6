#include "os/file_time.hpp"

#include "os/fd.hpp"
#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <unistd.h>

namespace stint::os {
namespace {

TEST(FileTime, is_set_and_read_to_the_millisecond) {
  const TestFolder folder;
  const std::string path = folder / "x";
  EXPECT_FALSE(written_at(path));
  const Fd file = open_shared_file(path, 0600).value();
  for (const std::int64_t ms : {1'800'000'000'123L, 999L, 0L, -1L}) {
    const WallTime time{std::chrono::milliseconds(ms)};
    set_written_at(file.get(), time);
    EXPECT_EQ(written_at(path), time);
    set_written_at(path, time + std::chrono::milliseconds(1));
    EXPECT_EQ(written_at(path), time + std::chrono::milliseconds(1));
  }
}

TEST(FileTime, of_a_file_that_is_missing_is_not_set) {
  const TestFolder folder;
  EXPECT_FALSE(set_written_at(folder / "x", WallTime(std::chrono::milliseconds(1))));
}

TEST(FileIdentity, is_that_of_the_file_and_not_of_the_path) {
  const TestFolder folder;
  const std::string path = folder / "x";
  EXPECT_EQ(file_identity(path), std::nullopt);
  const Fd file = open_shared_file(path, 0600).value();
  const auto first = file_identity(path);
  ASSERT_TRUE(first);
  ASSERT_EQ(::write(file.get(), "x", 1), 1);
  EXPECT_EQ(file_identity(path), first);
  ASSERT_EQ(::rename(path.c_str(), (folder / "y").c_str()), 0);
  EXPECT_EQ(file_identity(path), std::nullopt);
  EXPECT_EQ(file_identity(folder / "y"), first);
  const Fd other = open_shared_file(path, 0600).value();
  EXPECT_NE(file_identity(path), first);
}

}  // namespace
}  // namespace stint::os
