// Attempts with real processes, with a scripted stand-in for an agent's CLI that misbehaves. This program is its own
// warden, as `stint` is.
#include "driver/process_attempt.hpp"

#include "driver/frozen_test_support.hpp"
#include "driver/registry.hpp"
#include "driver/warden.hpp"
#include "os/process.hpp"
#include "stint/combinators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;

class ProcessAttemptTest : public testing::Test {
 protected:
  ProcessAttemptTest() {
    wardens_.emplace(reactor_);
    os::become_subreaper();
    options_.run = "test" + std::to_string(::getpid()) + ":1";
    options_.polite = 50ms;
    options_.grace = 100ms;
  }

  static Invocation stand_in() {
    Invocation invocation;
    invocation.command = {"python3", "-S", "-E", STINT_STAND_IN};
    return invocation;
  }
  static Invocation shell(std::string script) {
    Invocation invocation;
    invocation.command = {"sh", "-c", std::move(script)};
    return invocation;
  }
  void play(const std::string& settings) { options_.environment = {"STAND_IN=" + settings}; }

  void expect_nothing_left() {
    wardens_.reset();  // a warden that has sent its report may still be exiting
    EXPECT_TRUE(os::marked(options_.run).empty());
    EXPECT_TRUE(os::own_children().empty());
    wardens_.emplace(reactor_);
  }
  /// Runs one attempt; calls `at_first_output` with it.
  Result<ProcessReport> run(const Invocation& invocation, std::function<void(ProcessAttempt&)> at_first_output = {}) {
    auto dialect = make_ ? make_() : make_dialect("command").value();
    ProcessAttempt* running = nullptr;
    ProcessEvents events;
    heard_ = 0;
    events.raw_output = [&](std::string_view bytes) {
      heard_ += bytes.size();
      if (auto call = std::exchange(at_first_output, {})) call(*running);
    };
    ProcessAttempt process(*wardens_, *dialect, options_, std::move(events));
    running = &process;
    std::optional<Result<std::unique_ptr<ProcessReport>>> report;
    auto body = [&]() -> Task<> { report = co_await process.run(std::make_unique<Invocation>(invocation)); };
    {
      RootScope scope(reactor_);
      aside_ = &scope;
      const TimePoint since = reactor_.now();
      scope.spawn(body());
      EXPECT_TRUE(reactor_.run(scope));
      took_ = reactor_.now() - since;
    }
    expect_nothing_left();
    process.end(OutcomeKind::cancelled, "too late");  // must have no effect
    if (!report) return fail(Errc::cancelled, "stopped");
    if (!*report) return fail(report->error());
    return **std::move(*report);
  }

  std::function<std::unique_ptr<Dialect>()> make_;  // instead of the command's
  Reactor reactor_;
  std::optional<Wardens> wardens_;
  ProcessOptions options_;
  std::size_t heard_ = 0;  // bytes of output of the last attempt
  Duration took_{};
  RootScope* aside_ = nullptr;  // while it runs
};

TEST_F(ProcessAttemptTest, succeeds_with_the_output_as_its_answer) {
  play(R"({"lines": ["hello", "world"], "stdin": "all", "stderr": "noise"})");
  Invocation invocation = stand_in();
  invocation.prompt = "do it";
  const auto report = run(invocation);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::succeeded);
  EXPECT_EQ(report->outcome.text, "hello\nworld");
  EXPECT_TRUE(report->output_seen);
}

TEST_F(ProcessAttemptTest, fails_with_the_exit_status_and_the_end_of_stderr) {
  play(R"({"stdin": "none", "stderr": "out of luck", "exit": 3})");
  const auto report = run(stand_in());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::agent_error);
  EXPECT_EQ(report->outcome.exit_status, 3);
  EXPECT_NE(report->outcome.message.find("out of luck"), std::string::npos);
}

TEST_F(ProcessAttemptTest, fails_if_the_command_does_not_exist) {
  Invocation invocation;
  invocation.command = {"/nonexistent/program"};
  const auto report = run(invocation);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what().find("/nonexistent/program"), std::string::npos);
  options_.directory = "/nonexistent/folder";
  EXPECT_FALSE(run(shell("true")));
  EXPECT_FALSE(run(Invocation()));
}

TEST_F(ProcessAttemptTest, a_held_process_is_not_stalled_and_loses_no_output) {
  options_.idle_timeout = 600ms;
  ProcessAttempt* held = nullptr;
  const auto later = [&]() -> Task<> {
    co_await sleep_for(1500ms);
    held->hold(false);
  };
  const auto report = run(shell("seq 1 200000"), [&](ProcessAttempt& it) {
    held = &it;
    it.hold(true);
    aside_->spawn(later());
  });
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::succeeded) << report->outcome.message;
  EXPECT_EQ(heard_, 6U * 200'000 + 88'895U) << "one to six digits, and the ends of the lines";
  EXPECT_GE(took_, 1500ms);
}

TEST_F(ProcessAttemptTest, a_hold_delays_neither_the_end_nor_the_last_output) {
  const auto ended = run(shell("yes"), [](ProcessAttempt& it) {
    it.hold(true);
    it.end(OutcomeKind::cancelled, "by test");
  });
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome.kind, OutcomeKind::cancelled);
  EXPECT_LT(took_, 2s);
  const auto last = run(shell("echo first; sleep 0.1; echo last"), [](ProcessAttempt& it) { it.hold(true); });
  ASSERT_TRUE(last);
  EXPECT_EQ(last->outcome.text, "first\nlast");
}

TEST_F(ProcessAttemptTest, a_process_that_ignores_term_is_killed_after_the_grace) {
  play(
      R"({"lines": ["up", "never"], "stdin": "none", "ignore": ["TERM", "INT", "HUP"], "hang_after": 1, "children": 2})");
  const auto report = run(stand_in(), [](ProcessAttempt& it) { it.end(OutcomeKind::cancelled, "by test"); });
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::cancelled);
  EXPECT_EQ(report->outcome.message, "by test");
  EXPECT_EQ(report->outcome.signal, SIGKILL);
  EXPECT_EQ(report->processes_ended, 3U);
  EXPECT_GE(report->ending, options_.grace);
  EXPECT_LT(report->ending, options_.grace + 2s);
}

TEST_F(ProcessAttemptTest, a_second_end_skips_the_grace) {
  options_.grace = 1h;
  play(R"({"lines": ["up", "never"], "stdin": "none", "ignore": ["TERM"], "hang_after": 1})");
  const auto report = run(stand_in(), [](ProcessAttempt& it) {
    it.end(OutcomeKind::over_budget, "first");
    it.end(OutcomeKind::cancelled, "second");
  });
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::over_budget) << "the first reason counts";
}

TEST_F(ProcessAttemptTest, escapees_that_hold_the_pipes_are_ended_with_it) {
  play(R"({"lines": ["done"], "stdin": "none", "children": 1, "escapees": 2})");
  const auto report = run(stand_in());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::succeeded);
  EXPECT_EQ(report->outcome.text, "done");
  EXPECT_GE(report->processes_ended, 3U);
}

TEST_F(ProcessAttemptTest, a_line_that_is_too_long_is_skipped_and_the_next_one_read) {
  play(R"({"stdin": "none", "flood": 1000000, "long_line": 20000000, "lines": ["after"]})");
  const auto report = run(stand_in());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::succeeded);
  EXPECT_TRUE(report->outcome.text.ends_with("\nafter"));
  EXPECT_LE(report->outcome.text.size(), Outcome::kTextMax);
}

TEST_F(ProcessAttemptTest, silence_is_a_stall) {
  options_.idle_timeout = 300ms;
  play(R"({"lines": ["up"], "stdin": "none", "hang_after": 1})");
  const auto report = run(stand_in());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::stalled);
}

TEST_F(ProcessAttemptTest, work_without_output_is_not_a_stall) {
  options_.idle_timeout = 1s;  // less, and a busy machine may keep it from working for as long
  const auto report = run(shell("i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done; echo worked"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.text, "worked");
}

TEST_F(ProcessAttemptTest, an_end_before_the_start_starts_nothing) {
  auto dialect = make_dialect("command").value();
  ProcessAttempt process(*wardens_, *dialect, options_, {});
  process.end(OutcomeKind::cancelled, "too early");
  EXPECT_TRUE(process.ending());
  auto body = [&]() -> Task<> {
    const auto report = co_await process.run(std::make_unique<Invocation>(shell("true")));
    EXPECT_FALSE(report);
    EXPECT_EQ(report.error().code(), Errc::cancelled);
  };
  RootScope scope(reactor_);
  scope.spawn(body());
  EXPECT_TRUE(reactor_.run(scope));
}

TEST_F(ProcessAttemptTest, a_stop_of_the_awaiting_chain_passes_on_when_the_process_is_gone) {
  play(R"({"lines": ["up", "never"], "stdin": "none", "ignore": ["TERM"], "hang_after": 1, "escapees": 1})");
  auto dialect = make_dialect("command").value();
  RootScope scope(reactor_);
  ProcessEvents events;
  bool done = false;
  events.raw_output = [&](std::string_view) { scope.cancel(); };
  ProcessAttempt process(*wardens_, *dialect, options_, std::move(events));
  auto body = [&]() -> Task<> {
    (void)co_await process.run(std::make_unique<Invocation>(stand_in()));
    done = true;
  };
  scope.spawn(body());
  EXPECT_EQ(reactor_.run(scope).error(), Errc::cancelled);
  EXPECT_FALSE(done);
  expect_nothing_left();
  process.end(OutcomeKind::cancelled, "too late");
}

TEST_F(ProcessAttemptTest, a_killed_warden_leaves_doubt_and_no_process) {
  play(R"({"lines": ["up", "never"], "stdin": "none", "ignore": ["TERM"], "hang_after": 1, "escapees": 1})");
  const auto report = run(stand_in(), [](ProcessAttempt&) {
    for (const pid_t child : os::own_children()) ::kill(child, SIGKILL);
  });
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::in_doubt);
}

TEST_F(ProcessAttemptTest, an_end_while_it_ends_by_itself_is_harmless) {
  for (int round = 0; round < 20; ++round) {
    const auto report = run(shell("echo bye"), [](ProcessAttempt& it) { it.end(OutcomeKind::cancelled, "at once"); });
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->outcome.kind == OutcomeKind::succeeded || report->outcome.kind == OutcomeKind::cancelled);
  }
}

TEST_F(ProcessAttemptTest, the_mark_includes_that_of_the_enclosing_run) {
  ::setenv(os::kMarkVariable, "outer:7", 1);
  const auto report = run(shell("echo $STINT_RUN"));
  ::unsetenv(os::kMarkVariable);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.text, "outer:7/" + options_.run);
}

TEST_F(ProcessAttemptTest, inherits_its_streams_and_no_other_descriptor) {
  const int stray = ::dup(STDERR_FILENO);  // as a caller of stint may have left it open
  const auto report = run(shell("cd /proc/self/fd; echo *"));
  ::close(stray);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.text, "0 1 2 3") << "3 is the listing's own";
}

/// A shell starts a background job with SIGINT and SIGQUIT ignored, nohup adds SIGHUP. An agent that inherits that does
/// not end politely: some end by SIGINT only.
TEST_F(ProcessAttemptTest, inherits_no_ignored_signal) {
  constexpr std::array kIgnored{SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE, SIGCHLD};
  std::array<sighandler_t, kIgnored.size()> before{};
  for (std::size_t i = 0; i < kIgnored.size(); ++i) before[i] = ::signal(kIgnored[i], SIG_IGN);
  const auto report = run(shell("grep SigIgn /proc/self/status"));
  for (std::size_t i = 0; i < kIgnored.size(); ++i) ::signal(kIgnored[i], before[i]);
  ASSERT_TRUE(report);
  constexpr std::string_view kBefore = "SigIgn:\t";
  ASSERT_TRUE(report->outcome.text.starts_with(kBefore)) << report->outcome.text;
  const std::uint64_t found = std::stoull(report->outcome.text.substr(kBefore.size()), nullptr, 16);
  constexpr std::uint64_t kOfTheLibrary = 3ULL << 31U;  // 32 and 33: glibc changes them for no caller
  EXPECT_EQ(found & ~kOfTheLibrary, 0U) << report->outcome.text;
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST_F(ProcessAttemptTest, concurrent_outputs_are_not_mixed) {
  constexpr std::size_t kBytes = 1 << 20;  // more than a pipe holds, and than is read at once
  std::array<std::size_t, 4> right{}, wrong{};
  auto one = [&](std::size_t number) -> Task<> {
    const char letter = static_cast<char>('a' + number);
    auto dialect = make_dialect("command").value();
    ProcessEvents events;
    events.raw_output = events.raw_errors = [&, letter, number](std::string_view bytes) {
      const auto own = static_cast<std::size_t>(std::ranges::count(bytes, letter));
      right[number] += own;
      wrong[number] += bytes.size() - own;
    };
    ProcessAttempt process(*wardens_, *dialect, options_, std::move(events));
    const std::string say = "head -c " + std::to_string(kBytes) + " /dev/zero | tr '\\0' " + letter;
    (void)co_await process.run(std::make_unique<Invocation>(shell("{ " + say + " >&2; } & " + say + "; wait")));
  };
  {
    RootScope scope(reactor_);
    for (std::size_t number = 0; number < right.size(); ++number) scope.spawn(one(number));
    EXPECT_TRUE(reactor_.run(scope));
  }
  for (const std::size_t bytes : right) EXPECT_EQ(bytes, 2 * kBytes);
  for (const std::size_t bytes : wrong) EXPECT_EQ(bytes, 0U);
  expect_nothing_left();
}

TEST_F(ProcessAttemptTest, a_process_that_no_signal_ends_is_given_up_in_doubt_and_named) {
  const Freezer freezer;
  if (!freezer.works()) GTEST_SKIP() << "no process can be frozen here";
  options_.killed_max = 200ms;
  auto dialect = make_dialect("command").value();
  ProcessEvents events;
  std::string said;
  events.raw_output = [&](std::string_view bytes) {
    said += bytes;
    if (!said.ends_with('\n')) return;
    freezer.freeze(std::stoi(said));
    for (const pid_t child : os::own_children()) ::kill(child, SIGKILL);  // the warden
  };
  ProcessAttempt process(*wardens_, *dialect, options_, std::move(events));
  std::unique_ptr<ProcessReport> report;
  auto body = [&]() -> Task<> {
    auto ended = co_await process.run(std::make_unique<Invocation>(shell("echo $$; exec sleep 60")));
    if (ended) report = std::move(*ended);
  };
  {
    RootScope scope(reactor_);
    scope.spawn(body());
    EXPECT_TRUE(reactor_.run(scope));
  }
  ASSERT_NE(report, nullptr);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::in_doubt);
  EXPECT_TRUE(report->left.contains("pid " + std::to_string(std::stoi(said)))) << report->left;
  freezer.thaw();
  os::blocking_reap(std::stoi(said));  // it was killed already
  expect_nothing_left();
}

/// A CLI that announces its own retries on stderr, and its waits on stdout.
class RetryingDialect final : public Dialect {
 public:
  Launch launch(const Invocation& invocation) override {
    Launch launch;
    launch.argv = invocation.command;
    return launch;
  }
  void read(std::string_view line, std::vector<Progress>& out) override {
    waits_ = line == "waiting";
    out.emplace_back();
  }
  void read_error(std::string_view line) override { again_ = again_ || line == "again"; }
  bool gives_up() const override { return again_; }
  std::string waits_for() const override { return waits_ ? "no route" : std::string(); }
  bool result_seen() const override { return false; }
  PoliteEnd polite_end() override {
    PoliteEnd end;
    end.signal = SIGINT;
    return end;
  }
  Outcome finish(const ProcessEnd& end) override {
    Outcome outcome;
    outcome.kind = again_ ? OutcomeKind::api_error : OutcomeKind::cancelled;
    outcome.message = again_ ? "503" : "ended";
    EXPECT_TRUE(end.killed_by_us);
    return outcome;
  }

 private:
  bool again_ = false, waits_ = false;
};

TEST_F(ProcessAttemptTest, a_cli_that_would_retry_by_itself_is_ended_with_its_error_as_the_outcome) {
  make_ = [] { return std::make_unique<RetryingDialect>(); };
  const auto report = run(shell("printf aga >&2; echo in >&2; sleep 60"));  // a line that comes in parts
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome.kind, OutcomeKind::api_error);
  EXPECT_EQ(report->outcome.message, "503");
  EXPECT_LT(took_, 20s);
  // A cancel meanwhile makes the outcome `cancelled`.
  const auto cancelled = run(shell("trap '' INT; echo again >&2; echo x; sleep 60"), [&](ProcessAttempt& it) {
    it.end(OutcomeKind::cancelled, "enough");
    it.end(OutcomeKind::cancelled, "enough");
  });
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->outcome.kind, OutcomeKind::cancelled);
}

TEST_F(ProcessAttemptTest, silence_while_waiting_for_the_network_is_an_api_error) {
  make_ = [] { return std::make_unique<RetryingDialect>(); };
  options_.idle_timeout = 400ms;
  std::optional<domain::WaitReason> waits;
  ProcessAttempt* waiting = nullptr;
  const auto look = [&]() -> Task<> {
    co_await sleep_for(50ms);
    waits = waiting->waits_for();
  };
  const auto report = run(shell("echo waiting; sleep 60"), [&](ProcessAttempt& it) {
    waiting = &it;
    aside_->spawn(look());
  });
  ASSERT_TRUE(report);
  ASSERT_TRUE(waits);
  EXPECT_EQ(*waits, (domain::WaitReason{.cause = domain::WaitCause::network, .detail = "no route"}));
  EXPECT_EQ(report->outcome.kind, OutcomeKind::api_error);
  EXPECT_TRUE(report->outcome.unreachable);
  EXPECT_EQ(report->outcome.message,
            "no output and no work for 400 ms; it waits for the network or its provider (no route)");
}

TEST_F(ProcessAttemptTest, processes_that_outlive_the_command_get_a_short_grace) {
  options_.grace = 30s;
  const auto left = run(shell("trap '' TERM; sleep 60 & exit 0"));
  ASSERT_TRUE(left);
  EXPECT_EQ(left->outcome.kind, OutcomeKind::succeeded);
  EXPECT_LT(took_, 15s);
  const auto cancelled = run(shell("(trap '' TERM; exec sleep 60) & echo x; exec sleep 60"),
                             [](ProcessAttempt& it) { it.end(OutcomeKind::cancelled, "enough"); });
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->outcome.kind, OutcomeKind::cancelled);
  EXPECT_LT(took_, 15s) << "the same when the end had begun before its own";
}

TEST_F(ProcessAttemptTest, a_hundred_at_once_leave_no_process_and_no_descriptor) {
  ASSERT_TRUE(run(shell("true")));  // what is made once is there now
  const std::size_t before = open_descriptors();
  int succeeded = 0;
  auto one = [&]() -> Task<> {
    auto dialect = make_dialect("command").value();
    ProcessAttempt process(*wardens_, *dialect, options_, {});
    const auto report = co_await process.run(std::make_unique<Invocation>(shell("setsid sleep 60 & cat; echo x")));
    succeeded += report && (*report)->outcome.kind == OutcomeKind::succeeded ? 1 : 0;
  };
  {
    RootScope scope(reactor_);
    for (int i = 0; i < 100; ++i) scope.spawn(one());
    EXPECT_TRUE(reactor_.run(scope));
  }
  EXPECT_EQ(succeeded, 100);
  EXPECT_EQ(open_descriptors(), before);
  expect_nothing_left();
}

}  // namespace
}  // namespace stint::driver
