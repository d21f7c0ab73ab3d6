// Which processes are found and ended by their mark, with real processes.
#include "driver/survivors.hpp"

#include "driver/frozen_test_support.hpp"
#include "driver/ward.hpp"
#include "os/blocking_run.hpp"
#include "os/cgroup.hpp"
#include "os/spawn.hpp"
#include "os/terminal.hpp"
#include "os/test_descriptors.hpp"
#include "stint/asio.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;
using domain::Fence;
using Leftover = domain::Survivors::Leftover;

TEST(ParseAttempt, accepts_only_runs_with_a_fence) {
  const auto leftover = parse_leftover("abc:12");
  ASSERT_TRUE(leftover);
  EXPECT_EQ(leftover->run, "abc");
  EXPECT_EQ(leftover->fence, Fence{12});
  for (const char* text : {"", "abc", "abc:", ":1", "abc:0", "abc:-1", "abc:x"})
    EXPECT_FALSE(parse_leftover(text)) << text;
}

class SurvivorsTest : public testing::Test {
 protected:
  ~SurvivorsTest() override {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      os::blocking_reap(pid);
    }
  }
  /// Returns when the mark is visible: a process in the middle of exec has none. So `sleep` is started without a shell,
  /// which would exec once more.
  pid_t start(const std::string& mark, const std::string& script = "") {
    os::SpawnOptions options;
    options.program = script.empty() ? "/bin/sleep" : "/bin/sh";
    options.argv =
        script.empty() ? std::vector<std::string>{"sleep", "60"} : std::vector<std::string>{"sh", "-c", script};
    options.environment = os::environment_with({std::string(os::kMarkVariable) + "=" + mark});
    const pid_t pid = os::spawn(options).value();
    children_.push_back(pid);
    const auto is_it = [&](const os::Marked& each) { return each.process.pid == pid; };
    while (std::ranges::none_of(os::all_marked().found, is_it)) {
    }
    return pid;
  }
  static bool lives(pid_t pid) {
    const auto process = os::read_process(pid);
    return process && !process->is_zombie();
  }
  /// Runs end() together with `beside`, until it is done.
  domain::Survivors::Ending end_with(HostSurvivors& survivors, std::vector<Leftover> leftovers,
                                     std::function<bool()> hurry, Task<> beside) {
    domain::Survivors::Ending ending;
    auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(std::move(beside));
      ending = co_await survivors.end(std::move(leftovers), std::move(hurry));
      scope.cancel();
    };
    auto all = [&]() -> Task<> { (void)co_await with_scope(std::ref(body)); };
    RootScope scope(reactor_);
    scope.spawn(all());
    EXPECT_TRUE(reactor_.run(scope));
    return ending;
  }
  static Task<> nothing() { co_return; }
  std::uint32_t end(std::vector<Leftover> leftovers) {
    const auto ending = end_with(survivors_, std::move(leftovers), [] { return false; }, nothing());
    EXPECT_EQ(ending.left, "");
    return ending.processes;
  }
  std::vector<Leftover> found() { return os::blocking_run(reactor_, survivors_.find()).value(); }
  std::string trace_of(const std::string& name, Fence fence) {
    using Trace = domain::Survivors::Trace;
    for (const Leftover& each : found()) {
      if (each.run != name || each.fence != fence) continue;
      return each.trace == Trace::kept ? "kept" : each.trace == Trace::orphaned ? "orphaned" : "empty";
    }
    return "none";
  }
  /// A run id that no other process uses.
  std::string run(char which) const { return std::string("survivors") + which + std::to_string(::getpid()); }

  Reactor reactor_;
  HostSurvivors survivors_{reactor_, 200ms};
  std::vector<pid_t> children_;
};

TEST_F(SurvivorsTest, ends_older_attempts_of_the_run_and_no_other_process) {
  const pid_t older = start(run('a') + ":1"), last = start(run('a') + ":2");
  const pid_t within = start(run('a') + ":2/" + run('b') + ":1");
  const pid_t newer = start(run('a') + ":3"), other = start(run('b') + ":1"), longer = start(run('a') + "0:1");
  EXPECT_EQ(end({{run('a'), Fence{2}}}), 3U);
  for (const pid_t pid : {older, last, within}) EXPECT_FALSE(lives(pid));
  for (const pid_t pid : {newer, other, longer}) EXPECT_TRUE(lives(pid));
  EXPECT_EQ(end({{run('a'), Fence{2}}}), 0U);
}

TEST_F(SurvivorsTest, a_stubborn_one_is_killed_after_its_grace_or_at_once) {
  const std::string stubborn = "trap : TERM; while :; do sleep 0.05; done";
  start(run('a') + ":1", stubborn);
  TimePoint since = reactor_.now();
  EXPECT_GE(end({{run('a'), Fence{1}}}), 1U);
  EXPECT_GE(reactor_.now() - since, 200ms);
  HostSurvivors patient(reactor_, 1h);
  start(run('b') + ":1", stubborn);
  (void)end_with(patient, {{run('b'), Fence{1}}}, [] { return true; }, nothing());
  for (const pid_t pid : children_) EXPECT_FALSE(lives(pid));
}

TEST_F(SurvivorsTest, a_process_with_an_empty_environment_is_found_by_its_cgroup) {
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
  EXPECT_EQ(trace_of(run('a'), Fence{1}), "orphaned");
  EXPECT_EQ(end({{run('a'), Fence{1}}}), 1U);
  EXPECT_FALSE(lives(pid));
  EXPECT_NE(::access(cgroup.c_str(), F_OK), 0) << "the cgroup is gone as well";
}

/// Acts like a warden: removes the cgroup of its command as soon as it is empty.
Task<> remove_when_empty(std::string cgroup) {
  while (os::is_populated(cgroup)) co_await sleep_for(1ms);
  os::remove_cgroup(cgroup);
}

/// A random process tree: it ignores a polite signal, exits late, empties its environment or forks twice.
std::string draw_script(std::mt19937& random) {
  const auto draw = [&](auto... options) {
    const std::vector<std::string> all{options...};
    return all[random() % all.size()];
  };
  const std::string manner = draw("", "trap '' TERM; ", "trap 'sleep 0.1; exit' TERM; ");
  const std::string away = draw("", "env -i ", "setsid ", "env -i setsid ");
  const std::string work = "sh -c \"" + manner + "while :; do sleep 0.02; done\"";
  const std::string generations = draw("exec @", "@ & wait", "(@ &) & wait", "((@ &) &) ; exec sleep 60");
  const auto at = generations.find('@');
  return manner + generations.substr(0, at) + away + work + generations.substr(at + 1);
}

TEST_F(SurvivorsTest, any_tree_is_ended_although_its_warden_removes_the_cgroup_meanwhile) {
  const auto seed = static_cast<std::uint32_t>(::getpid());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  os::become_subreaper();
  for (int round = 0; round < 6; ++round) {
    const std::string attempt = run('a') + ":" + std::to_string(round + 1);
    const std::string cgroup = os::cgroup_path(os::delegated_cgroup(), attempt);
    if (cgroup.empty() || !os::make_cgroup(cgroup)) GTEST_SKIP() << "no cgroup is delegated to this test";
    const std::string script = draw_script(random);
    SCOPED_TRACE(script);
    const pid_t pid = os::fork_into_cgroup(cgroup);
    if (pid == 0) {
      ::setenv(os::kMarkVariable, attempt.c_str(), 1);
      ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
      ::_exit(127);
    }
    while (os::argument_of(pid, 0) == os::argument_of(::getpid(), 0)) {
    }
    const bool removed = random() % 2 == 0;
    const auto ending = end_with(
        survivors_, {{run('a'), Fence{round + 1}}}, [] { return false; },
        removed ? remove_when_empty(cgroup) : nothing());
    EXPECT_EQ(ending.left, "");
    EXPECT_TRUE(os::marked(attempt).empty());
    EXPECT_NE(::access(cgroup.c_str(), F_OK), 0);
    (void)os::reap_all(0);
  }
}

TEST_F(SurvivorsTest, attempts_without_a_living_warden_are_orphaned) {
  os::become_subreaper();
  Wardens wardens(reactor_);
  WardOptions options;
  options.run = run('b') + ":1";
  options.command = {"sleep", "60"};
  // The warden of a run within a run has both marks, and watches only the inner one.
  options.environment =
      os::environment_with({std::string(os::kMarkVariable) + "=" + os::mark_beneath(run('a') + ":1", options.run)});
  options.own_group = true;
  const auto ward = Ward::start(wardens, options).value();
  while (os::marked(options.run).size() < 2 || trace_of(run('b'), Fence{1}) == "empty") {
  }
  EXPECT_EQ(trace_of(run('b'), Fence{1}), "kept");
  EXPECT_EQ(trace_of(run('a'), Fence{1}), "orphaned");
  ::kill(ward->pid(), SIGKILL);
  while (trace_of(run('b'), Fence{1}) == "kept") {
  }
  EXPECT_EQ(trace_of(run('b'), Fence{1}), "orphaned");
  auto body = [&]() -> Task<> { EXPECT_TRUE((co_await ward->ended()).by_stint); };
  RootScope scope(reactor_);
  scope.spawn(body());
  EXPECT_TRUE(reactor_.run(scope));
  EXPECT_EQ(trace_of(run('b'), Fence{1}), "none");
}

TEST_F(SurvivorsTest, a_process_that_no_signal_ends_is_given_up_and_named) {
  const Freezer freezer;
  if (!freezer.works()) GTEST_SKIP() << "no process can be frozen here";
  const pid_t pid = start(run('a') + ":1");
  freezer.freeze(pid);
  HostSurvivors brief(reactor_, 10ms, 100ms);
  const auto ending = end_with(brief, {{run('a'), Fence{1}}}, [] { return false; }, nothing());
  EXPECT_TRUE(ending.left.contains("pid " + std::to_string(pid))) << ending.left;
  freezer.thaw();
  EXPECT_EQ(end({{run('a'), Fence{1}}}), 0U);
}

TEST_F(SurvivorsTest, kill_does_not_wait) {
  const pid_t over = start(run('a') + ":1", "trap '' TERM; while :; do sleep 0.05; done"),
              other = start(run('b') + ":1");
  auto kill = [&]() -> Task<> { co_await survivors_.kill({{run('a'), Fence{1}}}); };
  os::blocking_run(reactor_, kill());
  while (lives(over)) {
  }
  EXPECT_TRUE(lives(other));
}

TEST_F(SurvivorsTest, without_descriptors_nothing_counts_as_gone) {
  if (os::kSanitizerNeedsDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const pid_t pid = start(run('a') + ":1");
  HostSurvivors brief(reactor_, 10ms, 50ms);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_NOFILE, &none);
  const auto ending = end_with(brief, {{run('a'), Fence{1}}}, [] { return false; }, nothing());
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(ending.left, "");
  EXPECT_TRUE(lives(pid));
}

TEST_F(SurvivorsTest, processes_of_the_own_run_are_not_survivors) {
  const std::string own = run('a') + ":1";
  ::setenv(os::kMarkVariable, own.c_str(), 1);
  const pid_t ours = start(os::mark_beneath(own, run('b') + ":1"));
  EXPECT_EQ(end({{run('a'), Fence{1}}, {run('b'), Fence{1}}}), 0U);
  EXPECT_TRUE(std::ranges::none_of(found(), [&](const Leftover& each) { return each.run == run('b'); }));
  ::unsetenv(os::kMarkVariable);
  EXPECT_TRUE(lives(ours));
}

TEST_F(SurvivorsTest, lists_each_attempt_once) {
  start(run('a') + ":4");
  start(run('a') + ":4/" + run('b') + ":1");
  std::vector<std::string> names;
  for (const Leftover& each : found()) {
    if (each.run == run('a') || each.run == run('b'))
      names.push_back(each.run + ":" + std::to_string(each.fence.value));
  }
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{run('a') + ":4", run('b') + ":1"}));
}

}  // namespace
}  // namespace stint::driver
