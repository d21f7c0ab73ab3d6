// What /proc says, and whom a signal hits.
#include "os/process.hpp"

#include "os/spawn.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <csignal>
#include <sys/prctl.h>
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

TEST(ProcessStat, is_read_behind_the_last_bracket_of_the_name) {
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

TEST(ProcessStat, a_program_may_call_itself_anything) {
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

TEST(Signals, hit_no_process_that_only_has_the_number) {
  const pid_t child = sleeper();
  Process other = read_process(child).value();
  other.start += 1;  // as if the number had been given to another
  EXPECT_FALSE(signal_process(other, SIGKILL));
  EXPECT_FALSE(try_reap(child));
  EXPECT_TRUE(signal_process(read_process(child).value(), SIGKILL));
  EXPECT_EQ(blocking_reap(child) & 0x7f, SIGKILL);
  EXPECT_FALSE(signal_process(other, SIGKILL));
}

TEST(Subreaper, hears_of_its_children_although_the_caller_ignored_them) {
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
