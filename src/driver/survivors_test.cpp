// Who is ended by a mark, and who is not: real processes.
#include "driver/survivors.hpp"

#include "os/cgroup.hpp"
#include "os/spawn.hpp"
#include "os/terminal.hpp"
#include "stint/asio.hpp"
#include "stint/scope.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;
using Attempt = domain::Survivors::Attempt;

TEST(ParseAttempt, takes_runs_with_a_fence_only) {
  const auto attempt = parse_attempt("abc:12");
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->run, "abc");
  EXPECT_EQ(attempt->fence, 12);
  for (const char* text : {"", "abc", "abc:", ":1", "abc:0", "abc:-1", "abc:x"})
    EXPECT_FALSE(parse_attempt(text)) << text;
}

class SurvivorsTest : public testing::Test {
 protected:
  ~SurvivorsTest() override {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      os::blocking_reap(pid);
    }
  }
  /// Returns when its mark can be seen: one in the middle of its exec has none.
  pid_t start(const std::string& mark, const std::string& script = "exec sleep 60") {
    os::SpawnOptions options;
    options.program = "/bin/sh";
    options.argv = {"sh", "-c", script};
    options.environment = os::environment_with({std::string(os::kMarkVariable) + "=" + mark});
    const pid_t pid = os::spawn(options).value();
    children_.push_back(pid);
    const auto is_it = [&](const os::Marked& each) { return each.process.pid == pid; };
    while (std::ranges::none_of(os::all_marked(), is_it)) {
    }
    return pid;
  }
  static bool lives(pid_t pid) {
    const auto process = os::read_process(pid);
    return process && !process->is_zombie();
  }
  std::uint32_t end(std::vector<Attempt> attempts, std::function<bool()> hurry = [] { return false; }) {
    std::uint32_t ended = 0;
    auto body = [&]() -> Task<> { ended = co_await survivors_.end(std::move(attempts), std::move(hurry)); };
    RootScope scope(reactor_);
    scope.spawn(body());
    reactor_.run(scope);
    return ended;
  }
  /// Nobody else's.
  std::string run(char which) const { return std::string("survivors") + which + std::to_string(::getpid()); }

  Reactor reactor_;
  HostSurvivors survivors_{reactor_, 200ms};
  std::vector<pid_t> children_;
};

TEST_F(SurvivorsTest, older_attempts_of_the_run_are_ended_and_nobody_else) {
  const pid_t older = start(run('a') + ":1"), last = start(run('a') + ":2");
  const pid_t within = start(run('a') + ":2/" + run('b') + ":1");
  const pid_t newer = start(run('a') + ":3"), other = start(run('b') + ":1"), longer = start(run('a') + "0:1");
  EXPECT_EQ(end({{run('a'), 2}}), 3U);
  for (const pid_t pid : {older, last, within}) EXPECT_FALSE(lives(pid));
  for (const pid_t pid : {newer, other, longer}) EXPECT_TRUE(lives(pid));
  EXPECT_EQ(end({{run('a'), 2}}), 0U);
}

TEST_F(SurvivorsTest, a_stubborn_one_is_killed_after_its_grace_or_at_once) {
  const std::string stubborn = "trap : TERM; while :; do sleep 0.05; done";
  start(run('a') + ":1", stubborn);
  TimePoint since = reactor_.now();
  EXPECT_GE(end({{run('a'), 1}}), 1U);
  EXPECT_GE(reactor_.now() - since, 200ms);
  HostSurvivors patient(reactor_, 1h);
  start(run('b') + ":1", stubborn);
  auto body = [&]() -> Task<> {
    std::vector<Attempt> attempts{{run('b'), 1}};
    (void)co_await patient.end(std::move(attempts), [] { return true; });
  };
  RootScope scope(reactor_);
  scope.spawn(body());
  reactor_.run(scope);
  for (const pid_t pid : children_) EXPECT_FALSE(lives(pid));
}

TEST_F(SurvivorsTest, who_has_emptied_his_environment_is_found_by_the_cgroup) {
  const std::string cgroup = os::cgroup_path(os::delegated_cgroup(), run('a') + ":1");
  if (cgroup.empty() || !os::make_cgroup(cgroup)) GTEST_SKIP() << "no cgroup is delegated to this test";
  const pid_t pid = os::fork_into_cgroup(cgroup);
  if (pid == 0) {
    char* const none[] = {nullptr};
    char name[] = "sleep", seconds[] = "60";
    char* const words[] = {name, seconds, nullptr};
    ::execve("/bin/sleep", words, none);
    ::_exit(127);
  }
  children_.push_back(pid);
  EXPECT_EQ(end({{run('a'), 1}}), 0U) << "it had no mark";
  EXPECT_FALSE(lives(pid));
  EXPECT_NE(::access(cgroup.c_str(), F_OK), 0) << "the cgroup is gone as well";
}

TEST_F(SurvivorsTest, what_a_process_within_a_run_started_is_none_to_it) {
  const std::string own = run('a') + ":1";
  ::setenv(os::kMarkVariable, own.c_str(), 1);
  const pid_t ours = start(os::mark_beneath(own, run('b') + ":1"));
  EXPECT_EQ(end({{run('a'), 1}, {run('b'), 1}}), 0U);
  EXPECT_TRUE(std::ranges::none_of(survivors_.alive(), [&](const Attempt& each) { return each.run == run('b'); }));
  ::unsetenv(os::kMarkVariable);
  EXPECT_TRUE(lives(ours));
}

TEST_F(SurvivorsTest, what_is_alive_is_told_by_attempt_and_each_once) {
  start(run('a') + ":4");
  start(run('a') + ":4/" + run('b') + ":1");
  std::vector<std::string> found;
  for (const Attempt& each : survivors_.alive()) {
    if (each.run == run('a') || each.run == run('b')) found.push_back(each.run + ":" + std::to_string(each.fence));
  }
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{run('a') + ":4", run('b') + ":1"}));
}

}  // namespace
}  // namespace stint::driver
