// What a cgroup reports about its processes, also when it is gone or unreadable.
#include "os/cgroup.hpp"

#include "os/fd.hpp"
#include "os/process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <sys/resource.h>
#include <unistd.h>

namespace stint::os {
namespace {

/// Prevents this process from opening anything during its lifetime.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = cgroup_path(delegated_cgroup(), run_);
    if (path_.empty() || !make_cgroup(path_)) GTEST_SKIP() << "no cgroup is delegated to this test";
  }
  void TearDown() override {
    end();
    remove_cgroup(path_);
  }
  /// A process in the cgroup, without an environment.
  void start() {
    pid_ = fork_into_cgroup(path_);
    if (pid_ != 0) return;
    char* const none[] = {nullptr};
    char name[] = "sleep", seconds[] = "60";
    char* const words[] = {name, seconds, nullptr};
    ::execve("/bin/sleep", words, none);
    ::_exit(127);
  }
  void end() {
    if (pid_ <= 0) return;  // -1, if there was no process, would mean all
    ::kill(pid_, SIGKILL);
    blocking_reap(std::exchange(pid_, 0));
  }

  const std::string run_ = "cgrouptest" + std::to_string(::getpid()) + ":1";
  std::string path_;
  pid_t pid_ = 0;
};

TEST_F(CgroupTest, is_populated_as_long_as_a_process_is_in_it) {
  EXPECT_FALSE(is_populated(path_));
  start();
  EXPECT_TRUE(is_populated(path_));
  end();
  EXPECT_FALSE(is_populated(path_));
}

TEST_F(CgroupTest, that_is_gone_has_no_processes) {
  remove_cgroup(path_);
  EXPECT_FALSE(is_populated(path_));
}

TEST_F(CgroupTest, that_is_unreadable_may_have_processes) {
  const NoDescriptors none;
  EXPECT_TRUE(is_populated(path_));
}

TEST_F(CgroupTest, knows_a_process_that_has_emptied_its_environment) {
  start();
  const auto found = marked(run_);
  EXPECT_EQ(std::ranges::count(found, pid_, &Process::pid), 1);
  const Marks marks = all_marked();
  const auto ours = std::ranges::find(marks.found, pid_, [](const Marked& each) { return each.process.pid; });
  ASSERT_NE(ours, marks.found.end());
  EXPECT_EQ(cgroup_directory(ours->cgroup, run_), path_);
  EXPECT_EQ(std::ranges::count(cgroup_runs_below(delegated_cgroup()), run_), 1);
}

TEST(Marks, are_incomplete_when_no_process_can_be_read) {
  EXPECT_TRUE(all_marked().complete);
  const NoDescriptors none;
  EXPECT_FALSE(all_marked().complete);
}

TEST(CgroupPath, of_the_second_version_is_taken_from_its_line) {
  EXPECT_EQ(cgroup_line("0::/a/b\n"), "/a/b");
  EXPECT_EQ(cgroup_line("4:memory:/x\n1:cpu:/\n0::/"), "/");
  EXPECT_EQ(cgroup_line("4:memory:/x\n"), "");
  EXPECT_EQ(cgroup_line(""), "");
}

TEST(CgroupPath, names_the_runs_that_it_goes_through) {
  using Runs = std::vector<std::string>;
  EXPECT_EQ(runs_in_cgroup_path("/user.slice/stint-a:1/x/stint-b:2"), (Runs{"a:1", "b:2"}));
  EXPECT_EQ(runs_in_cgroup_path("/"), Runs());
  EXPECT_EQ(runs_in_cgroup_path("/constint-a:1"), Runs());
  EXPECT_TRUE(cgroup_directory("/stint-a:1/stint-b:2", "b:2").ends_with("/stint-a:1/stint-b:2"));
  EXPECT_TRUE(cgroup_directory("/stint-a:1/stint-b:2", "a:1").ends_with("/stint-a:1"));
  EXPECT_EQ(cgroup_directory("/stint-a:12", "a:1"), "");
  EXPECT_EQ(cgroup_directory("", "a:1"), "");
}

}  // namespace
}  // namespace stint::os
