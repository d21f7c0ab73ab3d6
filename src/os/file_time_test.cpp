#include "os/file_time.hpp"

#include "os/fd.hpp"
#include "os/test_folder.hpp"

#include <gtest/gtest.h>

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
  }
}

}  // namespace
}  // namespace stint::os
