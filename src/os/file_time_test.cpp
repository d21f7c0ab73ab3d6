#include "os/file_time.hpp"

#include "os/fd.hpp"
#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <unistd.h>

namespace stint::os {
namespace {

TEST(FileTime, what_was_said_is_read_to_the_millisecond) {
  const TestFolder folder;
  const std::string path = folder / "x";
  EXPECT_FALSE(written_at(path));
  const Fd file = open_shared_file(path, 0600).value();
  for (const std::int64_t ms : {1'800'000'000'123L, 999L, 0L, -1L}) {
    const WallTime said{std::chrono::milliseconds(ms)};
    say_written(file.get(), said);
    EXPECT_EQ(written_at(path), said);
    say_written(path, said + std::chrono::milliseconds(1));
    EXPECT_EQ(written_at(path), said + std::chrono::milliseconds(1));
  }
}

TEST(FileStamp, differs_after_a_write_and_for_another_file) {
  const TestFolder folder;
  const std::string path = folder / "x";
  EXPECT_EQ(file_stamp(path), FileStamp());
  const Fd file = open_shared_file(path, 0600).value();
  const FileStamp empty = file_stamp(path);
  EXPECT_NE(empty, FileStamp());
  EXPECT_EQ(file_stamp(path), empty);
  ASSERT_EQ(::write(file.get(), "x", 1), 1);
  EXPECT_NE(file_stamp(path), empty);
  const FileStamp written = file_stamp(path);
  say_written(file.get(), WallTime(std::chrono::milliseconds(1)));
  EXPECT_NE(file_stamp(path), written) << "the same size at another time";
  ASSERT_EQ(::rename(path.c_str(), (folder / "y").c_str()), 0);
  EXPECT_EQ(file_stamp(path), FileStamp());
}

}  // namespace
}  // namespace stint::os
