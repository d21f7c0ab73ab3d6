#include "os/presence_file.hpp"

#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stint::os {
namespace {

TEST(PresenceFile, is_read_while_its_writer_lives) {
  const TestFolder folder;
  {
    const auto file = PresenceFile::blocking_write(folder / "x.json", "hello");
    ASSERT_TRUE(file);
    EXPECT_EQ(blocking_read_presence(folder / "x.json"), "hello");
    EXPECT_EQ(blocking_read_presence(folder / "x.json"), "hello") << "reading changes nothing";
    struct stat found{};
    ASSERT_EQ(::stat((folder / "x.json").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U);
  }
  EXPECT_EQ(blocking_read_presence(folder / "x.json"), std::nullopt);
  EXPECT_NE(::access((folder / "x.json").c_str(), F_OK), 0);
}

TEST(PresenceFile, of_a_killed_process_reads_as_none) {
  const TestFolder folder;
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t writer = ::fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    const auto file = PresenceFile::blocking_write(folder / "x.json", "hello");
    (void)!::write(told[1], "x", 1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_EQ(blocking_read_presence(folder / "x.json"), "hello");
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  EXPECT_EQ(::access((folder / "x.json").c_str(), F_OK), 0) << "the file still exists";
  EXPECT_EQ(blocking_read_presence(folder / "x.json"), std::nullopt);
  const auto next = PresenceFile::blocking_write(folder / "x.json", "next");
  ASSERT_TRUE(next);
  EXPECT_EQ(blocking_read_presence(folder / "x.json"), "next");
  ::close(told[0]);
  ::close(told[1]);
}

TEST(PresenceFile, that_is_unlocked_or_missing_reads_as_none) {
  const TestFolder folder;
  folder.write("x.json", "made up");
  ASSERT_EQ(::symlink((folder / "x.json").c_str(), (folder / "link.json").c_str()), 0);
  for (const char* const name : {"x.json", "link.json", "missing.json", "."}) {
    EXPECT_EQ(blocking_read_presence(folder / name), std::nullopt) << name;
  }
  EXPECT_FALSE(PresenceFile::blocking_write(folder / "no/such/folder.json", "x"));
}

}  // namespace
}  // namespace stint::os
