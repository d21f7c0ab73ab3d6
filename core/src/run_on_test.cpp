// Work on another executor: two reactors on two threads.
#include "stint/run_on.hpp"

#include "stint/asio.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace stint {
namespace {

/// A reactor on its own thread that runs until it is asked to end.
class Elsewhere {
 public:
  Elsewhere()
      : thread_([this] {
          Reactor reactor;
          {
            const std::lock_guard lock(mutex_);
            reactor_ = &reactor;
          }
          ready_.notify_one();
          reactor.run_until([this] { return end_.reached; });
        }) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return reactor_ != nullptr; });
  }
  ~Elsewhere() {
    if (thread_.joinable()) end();
  }
  void end() {
    end_soon();
    thread_.join();
  }
  /// Its reactor may be destroyed at any time from here on.
  void end_soon() {
    if (reactor_ != nullptr) std::exchange(reactor_, nullptr)->post(end_);
  }
  Reactor& reactor() { return *reactor_; }
  std::thread::id id() const { return thread_.get_id(); }

 private:
  /// A post, not a flag: a thread that saw the flag first would end before the post that wakes it.
  struct End final : Runnable {
    void run() noexcept override { reached = true; }
    bool reached = false;
  } end_;
  std::mutex mutex_;
  std::condition_variable ready_;
  Reactor* reactor_ = nullptr;
  std::thread thread_;
};

/// Runs ready work of `reactor`, then waits for other threads.
void run_then_await(Reactor& reactor, const std::atomic<bool>& flag) {
  struct Mark final : Runnable {
    void run() noexcept override { reached = true; }
    bool reached = false;
  } mark;
  reactor.post(mark);
  reactor.run_until([&mark] { return mark.reached; });
  while (!flag) std::this_thread::yield();
}

struct GoneOn {
  ~GoneOn() { id = std::this_thread::get_id(); }
  std::thread::id& id;
};

Task<std::thread::id> where(std::thread::id& gone_on) {
  const GoneOn gone{gone_on};
  co_await yield();
  co_return std::this_thread::get_id();
}
Task<> asks(Reactor& there, std::thread::id& ran_on, std::thread::id& back_on, std::thread::id& gone_on) {
  const auto answer = co_await run_on(there, where(gone_on));
  ran_on = answer.value();
  back_on = std::this_thread::get_id();
}
TEST(RunOn, runs_on_the_other_executor_and_resumes_on_its_own) {
  Elsewhere elsewhere;
  Reactor reactor;
  RootScope scope(reactor);
  std::thread::id ran_on, back_on, gone_on;
  scope.spawn(asks(elsewhere.reactor(), ran_on, back_on, gone_on));
  EXPECT_TRUE(reactor.run(scope));
  EXPECT_EQ(ran_on, elsewhere.id());
  EXPECT_EQ(gone_on, elsewhere.id());
  EXPECT_EQ(back_on, std::this_thread::get_id());
}

Task<> sleeps_for_ever(std::atomic<bool>& started, std::thread::id& gone_on) {
  const GoneOn gone{gone_on};
  started = true;
  co_await sleep_for(1h);
}
Task<> calls(Reactor& there, std::atomic<bool>& started, std::thread::id& gone_on) {
  (void)co_await run_on(there, sleeps_for_ever(started, gone_on));
  ADD_FAILURE() << "a stop passes on";
}
TEST(RunOn, a_cancel_ends_the_remote_work_before_the_scope_is_idle) {
  Elsewhere elsewhere;
  Reactor reactor;
  for (int round = 0; round < 200; ++round) {
    RootScope scope(reactor);
    std::atomic<bool> started = false;
    std::thread::id gone_on;
    scope.spawn(calls(elsewhere.reactor(), started, gone_on));
    if (round % 2 == 0) run_then_await(reactor, started);
    scope.cancel();
    EXPECT_EQ(reactor.run(scope).error(), Errc::cancelled);
    if (started) {
      EXPECT_EQ(gone_on, elsewhere.id());
    }
  }
}

Task<int> throws_there() {
  co_await yield();
  throw std::runtime_error("there");
}
Task<> catches(Reactor& there, Log& log) {
  try {
    (void)co_await run_on(there, throws_there());
  } catch (const std::runtime_error& error) {
    log.push_back(error.what());
  }
}
TEST(RunOn, an_exception_propagates_to_the_caller) {
  Elsewhere elsewhere;
  Reactor reactor;
  RootScope scope(reactor);
  Log log;
  scope.spawn(catches(elsewhere.reactor(), log));
  EXPECT_TRUE(reactor.run(scope));
  EXPECT_EQ(log, Log{"there"});
}

Task<> sees_the_end(Reactor& there, std::atomic<bool>& started, std::thread::id& gone_on, Log& log) {
  const auto result = co_await run_on(there, sleeps_for_ever(started, gone_on));
  log.push_back(result ? "ok" : std::string(to_string(result.error().code())));
}
TEST(RunOn, a_destroyed_executor_gives_closed) {
  Elsewhere elsewhere;
  Reactor reactor;
  RootScope scope(reactor);
  Log log;
  std::atomic<bool> started = false;
  std::thread::id gone_on;
  scope.spawn(sees_the_end(elsewhere.reactor(), started, gone_on, log));
  run_then_await(reactor, started);
  elsewhere.end();
  EXPECT_TRUE(reactor.run(scope));
  EXPECT_EQ(log, Log{"closed"});
}

Task<> never_runs(bool& ran) {
  ran = true;
  co_return;
}
Task<> sees_no_start(Executor& there, bool& ran, Log& log) {
  const auto result = co_await run_on(there, never_runs(ran));
  log.push_back(result ? "ok" : std::string(to_string(result.error().code())));
}
TEST(RunOn, an_executor_destroyed_before_the_task_started_gives_closed) {
  for (const bool cancelled : {false, true}) {
    std::unique_ptr<Reactor> there;
    std::atomic<bool> made = false, posted = false;
    std::thread other([&] {
      there = std::make_unique<Reactor>();  // its thread never runs it
      made = true;
      while (!posted) std::this_thread::yield();
      there.reset();
    });
    while (!made) std::this_thread::yield();
    Reactor reactor;
    RootScope scope(reactor);
    Log log;
    bool ran = false;
    scope.spawn(sees_no_start(*there, ran, log));
    struct Mark final : Runnable {
      void run() noexcept override { reached = true; }
      bool reached = false;
    } mark;
    reactor.post(mark);  // behind the child, which has asked by then
    reactor.run_until([&mark] { return mark.reached; });
    if (cancelled) scope.cancel();
    posted = true;
    const TimePoint limit = reactor.now() + 30s;
    reactor.run_until([&] { return scope.idle() || reactor.now() > limit; });
    other.join();
    ASSERT_TRUE(scope.idle()) << "it waits for an executor that is gone";
    EXPECT_FALSE(ran);
    EXPECT_EQ(log, cancelled ? Log{} : Log{"closed"});
  }
}
Task<> calls_idle_executor(Executor& there, std::atomic<int>& answers) {
  std::atomic<bool> started = false;
  std::thread::id gone_on;
  const auto result = co_await run_on(there, sleeps_for_ever(started, gone_on));
  EXPECT_EQ(result.error(), Errc::closed);
  ++answers;
}
TEST(RunOn, an_executor_destroyed_during_calls_and_cancels_answers_all_of_them) {
  constexpr int kRounds = 300, kCalls = 8;
  Reactor reactor;
  for (int round = 0; round < kRounds; ++round) {
    RootScope scope(reactor), cancelled(reactor);
    std::atomic<int> answers = 0;
    {
      auto elsewhere = std::make_unique<Elsewhere>();
      for (int i = 0; i < kCalls; ++i) {
        scope.spawn(calls_idle_executor(elsewhere->reactor(), answers));
        cancelled.spawn(calls_idle_executor(elsewhere->reactor(), answers));
      }
      struct Mark final : Runnable {
        void run() noexcept override { reached = true; }
        bool reached = false;
      } mark;
      reactor.post(mark);
      reactor.run_until([&mark] { return mark.reached; });
      elsewhere->end_soon();  // its thread ends while this one cancels
      cancelled.cancel();
    }
    reactor.run_until([&] { return scope.idle() && cancelled.idle(); });
    ASSERT_GE(answers, kCalls);
  }
}
TEST(RunOn, a_cancel_before_the_start_is_not_lost) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {  // one executor for both: any order of start and cancel
    SCOPED_TRACE(seed);
    Simulator sim(seed);
    RootScope scope(sim);
    std::atomic<bool> started = false;
    std::thread::id gone_on;
    const auto asks_itself = [](Executor& there, std::atomic<bool>& flag, std::thread::id& id) -> Task<> {
      (void)co_await run_on(there, sleeps_for_ever(flag, id));
    };
    scope.spawn(asks_itself(sim, started, gone_on));
    sim.step();
    scope.cancel();
    sim.run_ready();
    ASSERT_TRUE(scope.idle());
  }
}

Task<> passes_deadline(Reactor& there, Deadline deadline, Deadline& seen) {
  const auto inner = [](Reactor& to, Deadline& out) -> Task<> { (void)co_await run_on(to, sees_deadline(out)); };
  (void)co_await with_deadline(deadline, inner(there, seen));
}
TEST(RunOn, the_callers_deadline_applies) {
  Elsewhere elsewhere;
  Reactor reactor;
  RootScope scope(reactor);
  const Deadline deadline = Deadline::after(reactor.now(), 1h);
  Deadline seen;
  scope.spawn(passes_deadline(elsewhere.reactor(), deadline, seen));
  EXPECT_TRUE(reactor.run(scope));
  EXPECT_EQ(seen, deadline);
}

}  // namespace
}  // namespace stint
