// Reading /proc, and signalling the right process.
#include "os/process.hpp"

#include "os/spawn.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <set>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace stint::os {
namespace {

constexpr char kAfterName[] = " S 41 42 43 0 -1 4194304 1 2 3 4 50 60 7 8 20 0 1 0 9000 1 2";

pid_t sleeper() {
  SpawnOptions options;
  options.program = "/bin/sleep";
  options.argv = {"sleep", "60"};
  options.environment = environment_with({std::string(kMarkVariable) + "=outer:1/inner:2"});
  return spawn(options).value();
}

TEST(ProcessStat, is_parsed_after_the_last_bracket_of_the_name) {
  for (const std::string name : {"(sh)", "(a b)", "(a) (b)", "(a) R 1 1 (b)", "())", "(\n)", "()"}) {
    const auto process = parse_process(7, "7 " + name + kAfterName);
    ASSERT_TRUE(process) << name;
    EXPECT_EQ(process->pid, 7);
    EXPECT_EQ(process->parent, 41) << name;
    EXPECT_EQ(process->group, 42) << name;
    EXPECT_EQ(process->state, 'S') << name;
    EXPECT_EQ(process->cpu_ticks, 110U) << name;
    EXPECT_EQ(process->start, 9000U) << name;
  }
}

TEST(ProcessStat, a_cut_line_is_no_process) {
  const std::string whole = std::string("7 (sh)") + kAfterName;
  const std::size_t enough = whole.find(" 9000");
  for (std::size_t length = 0; length <= enough; ++length) {
    EXPECT_FALSE(parse_process(7, std::string_view(whole).substr(0, length))) << length;
  }
}

TEST(ProcessStat, garbage_never_crashes) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    (void)parse_process(1, text);
    (void)parse_process(1, "1 (" + text + ") " + text);
  }));
}

TEST(ProcessStat, a_program_name_may_contain_anything) {
  char before[16] = {};
  ::prctl(PR_GET_NAME, before);
  ::prctl(PR_SET_NAME, ") R 1 1 (");
  const auto self = read_process(::getpid());
  ::prctl(PR_SET_NAME, before);
  ASSERT_TRUE(self);
  EXPECT_EQ(self->parent, ::getppid());
}

TEST(Marks, have_parts_and_grow_inwards) {
  EXPECT_EQ(mark_parts(""), std::vector<std::string>());
  EXPECT_EQ(mark_parts("a:1"), std::vector<std::string>{"a:1"});
  EXPECT_EQ(mark_parts("/a:1//b:2/"), (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(mark_beneath("", "a:1"), "a:1");
  EXPECT_EQ(mark_beneath("a:1", "b:2"), "a:1/b:2");
}

TEST(Marks, are_found_by_whole_parts_only) {
  become_subreaper();
  const pid_t child = sleeper();
  const auto has = [&](std::string_view run) { return std::ranges::count(marked(run), child, &Process::pid) == 1; };
  // A process in the middle of its exec has no environment yet.
  for (int tries = 0; tries < 100'000 && !has("outer:1"); ++tries) {
  }
  EXPECT_TRUE(has("outer:1"));
  EXPECT_TRUE(has("inner:2"));
  EXPECT_FALSE(has("outer:"));
  EXPECT_FALSE(has("outer:1/inner:2"));
  EXPECT_FALSE(has(""));
  ::kill(child, SIGKILL);
  blocking_reap(child);
}

TEST(Signals, hit_no_process_with_a_reused_pid) {
  const pid_t child = sleeper();
  Process other = read_process(child).value();
  other.start += 1;  // as if the pid had been reused
  EXPECT_FALSE(signal_process(other, SIGKILL));
  EXPECT_FALSE(try_reap(child));
  EXPECT_TRUE(signal_process(read_process(child).value(), SIGKILL));
  EXPECT_EQ(blocking_reap(child) & 0x7f, SIGKILL);
  EXPECT_FALSE(signal_process(other, SIGKILL));
}

/// Descendants of the test process: ended and reaped with the test.
class Descendants : public testing::Test {
 protected:
  Descendants() { become_subreaper(); }
  ~Descendants() override {
    do {
      signal_all(scan_descendants_of(::getpid()), SIGKILL);
    } while (reap_all(0).any_left);
  }

  static pid_t shell(const std::string& script) {
    SpawnOptions options;
    options.program = "/bin/sh";
    options.argv = {"sh", "-c", script};
    options.environment = environment_with({});
    return spawn(options).value();
  }
  using Pids = std::set<pid_t>;
  static Pids pids(const std::vector<Process>& processes) {
    Pids pids;
    for (const Process& process : processes) EXPECT_TRUE(pids.insert(process.pid).second) << "twice: " << process.pid;
    return pids;
  }
  /// Waits until there are this many, and walk and scan agree.
  static Pids below(pid_t ancestor, std::size_t count, const std::vector<pid_t>& except = {}) {
    Pids walked, scanned;
    for (int tries = 0; tries < 10'000; ++tries) {
      walked = pids(descendants_of(ancestor, except));
      scanned = pids(scan_descendants_of(ancestor, except));
      if (walked == scanned && walked.size() == count) break;
    }
    EXPECT_EQ(walked, scanned);
    EXPECT_EQ(walked.size(), count);
    return walked;
  }
};

TEST_F(Descendants, are_found_at_every_level) {
  const pid_t top = shell("sh -c 'sh -c \"sleep 60 & sleep 60 & wait\" & sleep 60 & wait' & sleep 60 & wait");
  const Pids all = below(::getpid(), 7);
  EXPECT_TRUE(all.contains(top));
  const Pids six = below(top, 6);
  EXPECT_FALSE(six.contains(top));
  below(*six.rbegin(), 0);
  below(::getpid(), 0, {top});
  EXPECT_TRUE(descendants_of(0).empty());
}

TEST_F(Descendants, of_every_thread_are_found) {
  std::promise<pid_t> started;
  std::promise<void> seen;
  std::thread parent([&] {
    started.set_value(sleeper());
    seen.get_future().wait();
  });
  const pid_t child = started.get_future().get();
  EXPECT_EQ(below(::getpid(), 1), Pids{child});
  seen.set_value();
  parent.join();
  EXPECT_EQ(below(::getpid(), 1), Pids{child}) << "another thread is its parent now";
}

TEST_F(Descendants, are_listed_until_they_are_reaped) {
  const pid_t child = shell("exit 3");
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto found = descendants_of(::getpid());
  ASSERT_EQ(pids(found), Pids{child});
  EXPECT_TRUE(found.front().is_zombie());
  blocking_reap(child);
  below(::getpid(), 0);
}

TEST_F(Descendants, of_an_ended_process_become_own_children) {
  blocking_reap(shell("sleep 60 & setsid sleep 60 & (setsid sh -c 'sleep 60 & exit' &) & wait $!"));
  const auto is_ours = [](const Process& process) { return process.parent == ::getpid(); };
  std::vector<Process> left;
  for (int tries = 0; tries < 10'000; ++tries) {
    (void)reap_all(0);  // those in the middle become own children when their parents end
    left = descendants_of(::getpid());
    if (left.size() == 3 && std::ranges::all_of(left, is_ours)) break;
  }
  EXPECT_EQ(left.size(), 3U);
  EXPECT_TRUE(std::ranges::all_of(left, is_ours));
}

TEST_F(Descendants, are_all_found_while_others_come_and_go) {
  const Pids stay = {sleeper(), sleeper(), sleeper()};
  const pid_t restless = shell("while :; do (sleep 0 & sleep 0 & wait) & wait; done");
  for (int looks = 0; looks < 200; ++looks) {
    Pids missing = stay;
    for (int tries = 0; tries < 10 && !missing.empty(); ++tries) {
      for (const Process& process : descendants_of(::getpid())) missing.erase(process.pid);
    }
    EXPECT_TRUE(missing.empty());
  }
  EXPECT_EQ(read_process(restless).value().parent, ::getpid());
}

TEST(Subreaper, reaps_its_children_although_sigchld_was_ignored) {
  ::signal(SIGCHLD, SIG_IGN);
  EXPECT_TRUE(ignores(SIGCHLD));
  EXPECT_TRUE(become_subreaper());
  EXPECT_FALSE(ignores(SIGCHLD));
  const pid_t child = sleeper();
  EXPECT_EQ(own_children(), std::vector<pid_t>{child});
  ::kill(child, SIGTERM);
  EXPECT_EQ(blocking_reap(child) & 0x7f, SIGTERM);
  EXPECT_TRUE(own_children().empty());
}

}  // namespace
}  // namespace stint::os
