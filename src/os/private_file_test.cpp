#include "os/private_file.hpp"

#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace stint::os {
namespace {

TEST(PrivateFile, reads_what_was_written_for_this_user_alone) {
  const TestFolder folder;
  ASSERT_TRUE(blocking_write_private(folder / "key", "secret\n"));
  const Result<std::string> text = blocking_read_private(folder / "key");
  ASSERT_TRUE(text) << text.error().describe();
  EXPECT_EQ(*text, "secret\n");
}

TEST(PrivateFile, refuses_a_file_that_others_can_read_or_change) {
  const TestFolder folder;
  for (const unsigned mode : {0640U, 0604U, 0620U, 0602U}) {
    ASSERT_TRUE(blocking_write_private(folder / "key", "secret"));
    std::filesystem::permissions(folder / "key", static_cast<std::filesystem::perms>(mode));
    const Result<std::string> text = blocking_read_private(folder / "key");
    ASSERT_FALSE(text) << mode;
    EXPECT_EQ(text.error(), Errc::denied);
    EXPECT_EQ(text.error().describe().find("secret"), std::string::npos);
  }
}

TEST(PrivateFile, refuses_what_is_missing_too_large_or_no_file) {
  const TestFolder folder;
  EXPECT_FALSE(blocking_read_private(folder / "none"));
  EXPECT_EQ(blocking_read_private(folder.path()).error(), Errc::denied);
  ASSERT_TRUE(blocking_write_private(folder / "large", std::string(kPrivateFileMax + 1, 'x')));
  EXPECT_FALSE(blocking_read_private(folder / "large"));
}

}  // namespace
}  // namespace stint::os
