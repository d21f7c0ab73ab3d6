// Files that other processes may have prepared.
#include "os/fd.hpp"

#include "os/test_folder.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace stint::os {
namespace {

TEST(SharedFile, is_created_with_its_mode_whatever_the_umask) {
  const TestFolder folder;
  const mode_t before = ::umask(0077);
  const auto file = open_shared_file(folder / "x", 0666);
  ::umask(before);
  ASSERT_TRUE(file);
  struct stat status{};
  ASSERT_EQ(::fstat(file->get(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0666U);
  EXPECT_NE(::fcntl(file->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SharedFile, keeps_what_is_in_it) {
  const TestFolder folder;
  folder.write("x", "text");
  EXPECT_TRUE(open_shared_file(folder / "x", 0600));
  EXPECT_EQ(folder.read("x"), "text");
}

TEST(SharedFile, is_nothing_but_a_regular_file) {
  const TestFolder folder;
  folder.write("precious", "precious");
  ASSERT_EQ(::symlink((folder / "precious").c_str(), (folder / "link").c_str()), 0);
  ASSERT_EQ(::symlink((folder / "nowhere").c_str(), (folder / "dangling").c_str()), 0);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir((folder / "folder").c_str(), 0700), 0);
  for (const char* const name : {"link", "dangling", "pipe", "folder"}) {
    const auto file = open_shared_file(folder / name, 0600);
    ASSERT_FALSE(file) << name;
    EXPECT_EQ(file.error().code(), Errc::denied) << name;
    EXPECT_NE(file.error().what().find("not a regular file"), std::string::npos) << name;
    EXPECT_FALSE(open_to_look(folder / name)) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "nowhere"));
}

TEST(SmallFile, a_pipe_without_a_writer_reads_as_empty) {
  const TestFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_small_file(folder / "pipe"), "");
}

TEST(SmallFile, is_cut_at_its_bound) {
  const TestFolder folder;
  folder.write("x", "");
  ASSERT_EQ(::truncate((folder / "x").c_str(), off_t{1} << 30), 0);
  EXPECT_LT(read_small_file(folder / "x").size(), kSmallFileMax + 4097);
}

TEST(Duplicate, is_closed_on_exec) {
  const Fd copy = duplicate(STDERR_FILENO);
  ASSERT_TRUE(copy);
  EXPECT_NE(::fcntl(copy.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(duplicate(-1));
}

TEST(StandardStreams, closed_ones_are_held_and_hidden_from_children) {
  const Fd kept = duplicate(STDIN_FILENO);
  ::close(STDIN_FILENO);
  hold_standard_streams();
  const int flags = ::fcntl(STDIN_FILENO, F_GETFD);
  const int output = ::fcntl(STDOUT_FILENO, F_GETFD);
  ::dup2(kept.get(), STDIN_FILENO);
  EXPECT_EQ(flags, FD_CLOEXEC);
  EXPECT_EQ(output & FD_CLOEXEC, 0) << "an open stream is unchanged";
}

TEST(SystemError, names_the_exhausted_resource_and_may_be_retried) {
  for (const auto& [code, what] : std::map<int, std::string>{
           {EMFILE, "file descriptor"}, {ENFILE, "file descriptor"}, {EAGAIN, "process"}, {ENOMEM, "memory"}}) {
    const Error error = system_error("cannot start x", code);
    EXPECT_EQ(error, Errc::exhausted);
    EXPECT_EQ(error.retry(), Retry::safe);
    EXPECT_NE(error.what().find(what), std::string_view::npos) << error.what();
  }
}

}  // namespace
}  // namespace stint::os
