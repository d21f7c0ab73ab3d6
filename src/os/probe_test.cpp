#include "os/probe.hpp"

#include "os/fd.hpp"
#include "os/process.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stint::os {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr Duration kLong = 30s;  // never reached
constexpr Duration kShort = 2s;  // always reached, and long enough for a shell to start on a busy machine

class Probe : public testing::Test {
 protected:
  Probe() {
    std::string pattern = (fs::temp_directory_path() / "stint-probe-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Probe() override { fs::remove_all(folder_); }
  static Answer ask(const std::string& script, Duration most = kLong) {
    return blocking_ask({{{"/bin/sh", "-c", script}, "/"}}, most).front();
  }
  /// Waits for it: a killed process takes a moment to die.
  static bool ends(pid_t pid) {
    const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd ready = {handle.get(), POLLIN, 0};
    constexpr int kMostMs = 10'000;
    return !handle || ::poll(&ready, 1, kMostMs) == 1;
  }
  fs::path folder_;
};

TEST_F(Probe, a_local_directory_supports_locks_and_inotify_and_stays_clean) {
  const DirectoryProbe probe = blocking_probe_directory(folder_.string());
  EXPECT_EQ(probe.problem, "");
  EXPECT_TRUE(probe.exists);
  EXPECT_TRUE(probe.locks);
  EXPECT_TRUE(probe.notices || probe.no_more_instances);
  EXPECT_NE(probe.file_system, "");
  EXPECT_GT(probe.free_bytes, 0U);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Probe, a_missing_directory_is_probed_where_it_would_be_created) {
  const DirectoryProbe probe = blocking_probe_directory((folder_ / "a" / "b").string());
  EXPECT_FALSE(probe.exists);
  EXPECT_EQ(probe.tried, folder_.string());
  EXPECT_EQ(probe.problem, "");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Probe, a_file_in_the_way_is_a_problem) {
  std::ofstream(folder_ / "file") << "x";
  const DirectoryProbe probe = blocking_probe_directory((folder_ / "file" / "limits").string());
  EXPECT_EQ(probe.problem, "Not a directory");
}

TEST(FileSystemName, known_ones_by_name_others_by_number) {
  EXPECT_EQ(file_system_name(0x6969), "nfs");
  EXPECT_EQ(file_system_name(0x01021997), "9p");
  EXPECT_EQ(file_system_name(0x12345), "0x12345");
}

TEST_F(Probe, an_answer_has_both_streams_and_the_status) {
  const Answer answer = ask("echo out; echo err >&2; exit 3");
  EXPECT_EQ(answer.end, Answer::End::exited);
  EXPECT_EQ(answer.status, 3);
  EXPECT_EQ(answer.text, "out\nerr\n");
}

TEST_F(Probe, a_program_that_waits_for_input_gets_none) { EXPECT_EQ(ask("cat; echo end").text, "end\n"); }

TEST_F(Probe, a_program_that_never_ends_is_killed_with_its_group) {
  const std::string file = (folder_ / "pid").string();
  const Answer answer = ask("sleep 1000 & echo $! > '" + file + "'; echo ready; wait", kShort);
  EXPECT_EQ(answer.end, Answer::End::late);
  EXPECT_EQ(answer.text, "ready\n");
  pid_t child = 0;
  std::ifstream(file) >> child;
  ASSERT_GT(child, 0);
  EXPECT_TRUE(ends(child)) << "a sent signal does not prove an end";
}

TEST_F(Probe, a_child_that_keeps_the_output_open_does_not_block) {
  const Answer answer = ask("echo 1.2.3; sleep 1000 &");
  EXPECT_EQ(answer.end, Answer::End::exited);
  EXPECT_EQ(answer.text, "1.2.3\n");
}

TEST_F(Probe, endless_output_is_cut) {
  const Answer answer = ask("head -c 1000000 /dev/zero | tr '\\0' x");
  EXPECT_EQ(answer.end, Answer::End::exited);
  EXPECT_EQ(answer.text.size(), kAnswerMax);
}

TEST_F(Probe, a_program_that_cannot_be_started_reports_why) {
  const Answer answer = blocking_ask({{{"/nowhere/claude", "--version"}, ""}}, kLong).front();
  EXPECT_EQ(answer.end, Answer::End::not_started);
  EXPECT_NE(answer.text.find("/nowhere/claude"), std::string::npos);
}

TEST_F(Probe, several_programs_run_at_once_with_answers_in_order) {
  const auto answers = blocking_ask({{{"/bin/sh", "-c", "sleep 1000"}, ""}, {{"/bin/echo", "b"}, ""}}, kShort);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].end, Answer::End::late);
  EXPECT_EQ(answers[1].text, "b\n");
}

TEST_F(Probe, output_from_before_the_first_read_is_kept) {
  const std::vector<Question> many(40, {{"/bin/echo", "here"}, ""});  // the first end before the last are started
  for (const Answer& answer : blocking_ask(many, kLong)) EXPECT_EQ(answer.text, "here\n");
}

TEST_F(Probe, processes_that_left_their_group_are_ended_and_awaited) {
  EXPECT_EXIT(
      {
        become_subreaper();
        const std::string file = (folder_ / "pid").string();
        ask("setsid sh -c 'echo $$ > " + file + "; exec sleep 1000' & while [ ! -s " + file + " ]; do :; done");
        pid_t child = 0;
        std::ifstream(file) >> child;
        const bool lived = child > 0 && ::kill(child, 0) == 0;
        const bool gone = blocking_end_leftovers() && ::kill(child, 0) != 0;
        std::_Exit(lived && gone ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Probe, a_program_is_found_only_in_absolute_parts_of_the_path) {
  std::ofstream(folder_ / "claude") << "#!/bin/sh\n";
  EXPECT_EQ(find_program("claude", folder_.string()), "") << "not executable";
  fs::permissions(folder_ / "claude", fs::perms::owner_all);
  EXPECT_EQ(find_program("claude", "/nowhere::.:" + folder_.string()), (folder_ / "claude").string());
  EXPECT_EQ(find_program("claude", ""), "");
  EXPECT_EQ(find_program("claude", fs::relative(folder_).string()), "");
}

}  // namespace
}  // namespace stint::os
