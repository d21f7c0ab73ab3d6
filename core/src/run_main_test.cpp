#include "stint/asio.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>

namespace stint {
namespace {

using namespace std::chrono_literals;

Task<Result<int>> gives(int value) {
  co_await yield();
  co_return value;
}
Task<Result<>> fails() {
  co_await yield();
  co_return stint::fail(Error(Errc::unavailable, "no fuel").because(Error(Errc::closed, "the station is shut")));
}
Task<> returns_nothing() { co_await yield(); }

TEST(RunTest, returns_the_tasks_result) {
  EXPECT_EQ(run(gives(3)).value(), 3);
  EXPECT_TRUE(run(returns_nothing()));
  EXPECT_EQ(run(fails()).error(), Errc::unavailable);
  EXPECT_THROW((void)run(throws()), std::runtime_error);
}

TEST(RunTest, a_reactor_runs_one_task_after_another) {
  Reactor reactor;
  EXPECT_EQ(reactor.run(gives(1)).value(), 1);
  EXPECT_EQ(reactor.run(gives(2)).value(), 2);
  EXPECT_THROW((void)reactor.run(throws()), std::runtime_error);
  EXPECT_TRUE(reactor.run(returns_nothing()));
}

TEST(RunTest, running_a_scope_returns_its_outcome) {
  Reactor reactor;
  RootScope good(reactor);
  good.spawn(returns_nothing());
  EXPECT_TRUE(reactor.run(good));

  RootScope bad(reactor);
  bad.spawn(fails());
  EXPECT_EQ(reactor.run(bad).error(), Errc::unavailable);

  const auto sleeps = []() -> Task<> { co_await sleep_for(1h); };
  RootScope cancelled(reactor);
  cancelled.spawn(sleeps());
  cancelled.cancel(Reason::user, "no longer wanted");
  EXPECT_EQ(reactor.run(cancelled).error().what(), "the scope was cancelled: no longer wanted");

  ScopeOptions options;
  options.deadline = Deadline(reactor.now());
  RootScope late(reactor, options);
  late.spawn(sleeps());
  EXPECT_EQ(reactor.run(late).error(), Errc::timed_out);
}

TEST(RunMainTest, the_result_is_the_exit_status) {
  EXPECT_EQ(run_main(gives(7)), 7);
  EXPECT_EQ(run_main(returns_nothing()), 0);
  const auto plain = []() -> Task<int> { co_return 4; };
  EXPECT_EQ(run_main(plain()), 4);
}

TEST(RunMainTest, a_failure_is_printed_and_is_status_1) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_main(fails()), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: no fuel: the station is shut\n");
}

TEST(RunMainTest, a_signal_cancels_the_program_and_its_cleanup_runs) {
  for (const int signal : {SIGINT, SIGTERM}) {
    bool cleaned = false;
    const auto cleanup = [&]() -> Task<> {
      co_await yield();
      cleaned = true;
    };
    const auto sleeps = [signal]() -> Task<> {
      EXPECT_EQ(std::raise(signal), 0);
      co_await sleep_for(1h);
      ADD_FAILURE() << "the signal must have ended the sleep";
    };
    const auto program = [&]() -> Task<> { co_await finally_do(sleeps(), cleanup(), 1s); };
    EXPECT_EQ(run_main(program()), 128 + signal);
    EXPECT_TRUE(cleaned);
  }
}

TEST(RunMainDeathTest, a_second_signal_ends_the_process) {
  const auto ignores_the_first = [] {
    const auto cleanup = []() -> Task<> {
      std::raise(SIGTERM);
      co_await sleep_for(1h);
    };
    const auto sleeps = []() -> Task<> {
      std::raise(SIGTERM);
      co_await sleep_for(1h);
    };
    const auto program = [&]() -> Task<> { co_await finally_do(sleeps(), cleanup(), 1h); };
    run_main(program());
  };
  EXPECT_EXIT(ignores_the_first(), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace stint
