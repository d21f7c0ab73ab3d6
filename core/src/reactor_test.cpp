// The reactor.
#include "stint/asio.hpp"
#include "test_support.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace stint {
namespace {

struct Counter final : Runnable {
  explicit Counter(int& counter) : count(counter) {}
  void run() noexcept override { ++count; }
  int& count;
};
TEST(ReactorTest, a_burst_of_posts_to_an_idle_reactor_wakes_it_once) {
  asio::io_context io;
  Reactor reactor(io);
  int count = 0;
  std::deque<Counter> counters;
  for (int i = 0; i < 2000; ++i) counters.emplace_back(count);
  for (const std::size_t burst : {1, 2}) {
    const std::uint64_t before = reactor.wakes();
    std::thread([&] {
      for (std::size_t i = 0; i < 1000; ++i) reactor.post(counters[(burst - 1) * 1000 + i]);
    }).join();
    EXPECT_EQ(reactor.wakes(), before + 1);
    while (count < static_cast<int>(burst) * 1000) io.poll();
    io.restart();
  }
}
/// Records its number, and the first time yields to the back of the queue.
struct Twice final : Runnable {
  Twice(Reactor& on, std::vector<int>& to, int number) : reactor(on), log(to), id(number) {}
  void run() override {
    log.push_back(id);
    if (!std::exchange(again, true)) reactor.post(*this);
  }
  Reactor& reactor;
  std::vector<int>& log;
  int id;
  bool again = false;
};
TEST(ReactorTest, a_queue_of_many_batches_keeps_its_order) {
  Reactor reactor;
  std::vector<int> log, wanted;
  std::deque<Twice> queue;
  for (int i = 0; i < 1000; ++i) queue.emplace_back(reactor, log, i);
  for (Twice& twice : queue) reactor.post(twice);
  reactor.run_until([&] { return log.size() == 2000; });
  for (int i = 0; i < 2000; ++i) wanted.push_back(i % 1000);
  EXPECT_EQ(log, wanted);

  log.clear();
  queue[300].again = false;  // the only runnable; nothing new is queued when the first batch ends
  for (Twice& twice : queue) reactor.post(twice);
  reactor.run_until([&] { return log.size() == 1001; });
  wanted.resize(1000);
  wanted.push_back(300);
  EXPECT_EQ(log, wanted);
}
TEST(ReactorTest, posts_to_an_awake_reactor_cause_no_wake_up) {
  Reactor reactor;
  int count = 0;
  std::deque<Counter> counters;
  for (int i = 0; i < 1000; ++i) counters.emplace_back(count);
  std::thread([&] {
    for (Counter& counter : counters) reactor.post(counter);
  }).join();
  reactor.run_until([&] { return count == 1000; });
  EXPECT_EQ(reactor.wakes(), 0u);
}
TEST(ReactorTest, a_post_between_the_last_check_and_the_sleep_is_not_missed) {
  Reactor reactor;
  int count = 0, asked = 0;
  Counter counter(count);
  reactor.run_until([&] {
    if (++asked == 2)
      std::thread([&] { reactor.post(counter); }).join();  // called before each sleep: nothing was ready
    return count == 1;
  });
  EXPECT_EQ(reactor.wakes(), 0u);
}
TEST(ReactorTest, no_post_to_a_reactor_about_to_sleep_is_lost) {
  constexpr int kRounds = 20'000;
  Reactor reactor;
  std::atomic<int> asked = 0;
  int count = 0;
  std::deque<Counter> counters;
  for (int i = 0; i < kRounds; ++i) counters.emplace_back(count);
  std::thread poster([&] {
    for (int round = 0; round < kRounds; ++round) {
      for (int spins = 0; asked <= round; ++spins) {    // spins: the post must meet the reactor on its way to sleep
        if (spins > 10'000) std::this_thread::yield();  // but not for a whole time slice, if both share a core
      }
      for (volatile int delay = round % 512; delay > 0; delay = delay - 1) {
      }
      if (round % 4 == 0) {  // when it stops spinning; the next time it sleeps at once
        const TimePoint end = Clock::now() + 2 * Reactor::kSpinMax / 3 + std::chrono::nanoseconds(round * 37 % 20'000);
        while (Clock::now() < end) {
        }
      }
      reactor.post(counters[static_cast<std::size_t>(round)]);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    asked = round + 1;
    reactor.run_until([&] { return count > round; });
  }
  poster.join();
  EXPECT_EQ(count, kRounds);
}

/// Posts `count` times, each `after` the previous one has run → how often the reactor spun.
std::uint64_t spins_with_posts(int count, Duration after) {
  Reactor reactor;
  int ran = 0;
  std::atomic<int> seen = 0;
  std::deque<Counter> counters;
  for (int i = 0; i < count; ++i) counters.emplace_back(ran);
  std::thread poster([&] {
    for (int i = 0; i < count; ++i) {
      while (seen < i) std::this_thread::yield();
      for (const TimePoint when = Clock::now() + after; Clock::now() < when;) std::this_thread::yield();
      reactor.post(counters[static_cast<std::size_t>(i)]);
    }
  });
  reactor.run_until([&] {
    seen = ran;
    return ran == count;
  });
  poster.join();
  return reactor.spins();
}
TEST(ReactorTest, spins_less_and_less_if_posts_arrive_too_late) {
  const std::uint64_t spins = spins_with_posts(400, 10 * Reactor::kSpinMax);
  EXPECT_GT(spins, 0U);
  EXPECT_LT(spins, 100U) << "about 11; more only if the thread is kept from running";
}
TEST(ReactorTest, does_not_spin_if_other_threads_post_nothing) {
  Reactor reactor;
  RootScope scope(reactor);
  const auto naps = []() -> Task<> {
    for (int i = 0; i < 20; ++i) co_await sleep_for(1ms);
  };
  scope.spawn(naps);
  EXPECT_TRUE(reactor.run(scope));
  EXPECT_EQ(reactor.spins(), 0U);
}

Task<> waits_for_io(asio::steady_timer& timer, bool& done) {
  (void)co_await timer.async_wait(use_task);
  done = true;
}
Task<> spins(bool& done, std::int64_t& count) {
  while (!done && ++count < 20'000'000) co_await yield();
}
TEST(ReactorTest, a_full_run_queue_does_not_starve_io) {
  Reactor reactor;
  RootScope scope(reactor);
  asio::steady_timer timer(reactor.io(), 1ms);
  bool done = false;
  std::int64_t count = 0;
  scope.spawn(waits_for_io(timer, done));
  scope.spawn(spins(done, count));
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_LT(count, 20'000'000);
}
TEST(ReactorTest, endless_io_does_not_starve_the_run_queue) {
  Reactor reactor;
  RootScope scope(reactor);
  std::int64_t handlers = 0, count = 0;
  bool done = false;
  const std::function<void()> flood = [&] {
    if (++handlers < 5'000'000) asio::post(reactor.io(), flood);
  };
  flood();
  scope.spawn(spins(done, count));
  reactor.run_until([&] { return count > 10'000; });
  EXPECT_LT(handlers, 5'000'000);
  done = true;
  reactor.run_until([&] { return scope.idle(); });
}

Task<> sleeps(Reactor& reactor, Duration duration, std::vector<int>& order, int id) {
  const TimePoint due = reactor.now() + duration;
  co_await sleep_until(due);
  EXPECT_GE(reactor.now(), due) << "early";
  order.push_back(id);
}
TEST(ReactorTest, timers_fire_in_order_and_never_early) {
  Reactor reactor;
  RootScope scope(reactor);
  std::vector<int> order;
  for (const int id : {3, 1, 90, 70, 2}) scope.spawn(sleeps(reactor, id * 2ms, order, id));
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_EQ(order, (std::vector{1, 2, 3, 70, 90}));
}

Task<> reads(asio::ip::tcp::socket socket, Log& log) {
  const Trace trace{log, "frame gone"};
  char byte = 0;
  (void)co_await socket.async_read_some(asio::buffer(&byte, 1), use_task);
  log.push_back("ran on");
}
struct Connected {
  explicit Connected(asio::io_context& io) : near(io), far(io) {
    asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    near.connect(acceptor.local_endpoint());
    far = acceptor.accept();
  }
  asio::ip::tcp::socket near, far;
};
TEST(ReactorTest, a_cancel_from_another_thread_ends_an_asio_operation) {
  Reactor reactor;
  RootScope scope(reactor);
  Log log;
  Connected pair(reactor.io());
  scope.spawn(reads(std::move(pair.near), log));
  std::thread canceller([&] { scope.cancel(); });
  reactor.run_until([&] { return scope.idle(); });
  canceller.join();
  EXPECT_LE(log.size(), 1u);
}
struct ManualOperation {  // an Asio operation whose end the test decides
  auto start() {
    return asio::async_initiate<const UseTask, void(boost::system::error_code)>(
        [this](auto handler) {
          asio::get_associated_cancellation_slot(handler).assign([this](asio::cancellation_type) { asked = true; });
          finish = std::move(handler);
        },
        use_task);
  }
  bool asked = false;
  std::function<void(boost::system::error_code)> finish;
};
Task<> awaits(ManualOperation& operation, Log& log) {
  const Trace trace{log, "frame gone"};
  (void)co_await operation.start();
  log.push_back("ran on");
}
TEST(ReactorTest, a_cancelled_asio_operation_keeps_its_frame_until_its_handler_has_run) {
  Reactor reactor;
  RootScope scope(reactor);
  Log log;
  ManualOperation operation;
  scope.spawn(awaits(operation, log));
  reactor.run_until([&] { return operation.finish != nullptr; });
  scope.cancel();
  int turns = 0;
  asio::post(reactor.io(), [&] { ++turns; });
  reactor.run_until([&] { return turns > 0; });
  EXPECT_TRUE(operation.asked);
  EXPECT_EQ(log, Log{});
  operation.finish(asio::error::operation_aborted);
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_EQ(log, Log{"frame gone"});
}
Task<> awaits_an_operation_that_throws(Log& log) {
  const auto refuse = [](auto) { throw std::runtime_error("refused"); };
  try {
    (void)co_await asio::async_initiate<const UseTask, void(boost::system::error_code)>(refuse, use_task);
  } catch (const std::runtime_error& error) {
    log.push_back(error.what());
  }
}
Task<> cancels_after_a_failed_start(Scope& scope, Log& log) {
  co_await awaits_an_operation_that_throws(log);
  scope.cancel();  // must not reach the leaf, which was destroyed with its frame
  co_await yield();
  log.push_back("ran on");
}
TEST(ReactorTest, an_asio_operation_that_throws_at_its_start_leaves_nothing_behind) {
  Reactor reactor;
  RootScope scope(reactor);
  Log log;
  scope.spawn(cancels_after_a_failed_start(scope, log));
  reactor.run_until([&] { return scope.idle(); });
  EXPECT_EQ(log, Log{"refused"});
}
TEST(ReactorTest, may_be_destroyed_with_an_asio_operation_in_flight) {
  Log log;
  auto reactor = std::make_unique<Reactor>();
  auto pair = std::make_unique<Connected>(reactor->io());
  RootScope scope(*reactor);
  scope.spawn(reads(std::move(pair->near), log));
  bool turned = false;
  asio::post(reactor->io(), [&] { turned = true; });
  reactor->run_until([&] { return turned; });
  pair.reset();
  reactor.reset();
  EXPECT_EQ(log, Log{"frame gone"});
}

struct Late final : Runnable {
  void run() noexcept override { ran = true; }
  void dropped() noexcept override { was_dropped = true; }
  bool ran = false, was_dropped = false;
};
Task<> posts_at_its_end(Reactor& reactor, Late& late) {
  struct AtEnd {
    ~AtEnd() {
      std::thread([this] { reactor.post(late); }).join();
    }
    Reactor& reactor;
    Late& late;
  } const at_end{reactor, late};
  co_await sleep_for(1h);
}
TEST(ReactorTest, queued_and_late_posts_are_dropped_when_it_is_destroyed) {
  Late queued, here, meanwhile;
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  scope.spawn(posts_at_its_end(*reactor, meanwhile));
  bool turned = false;
  asio::post(reactor->io(), [&] { turned = true; });
  reactor->run_until([&] { return turned; });
  reactor->post(here);
  std::thread([&] { reactor->post(queued); }).join();
  reactor.reset();  // destroys the child's frame, which posts
  for (const Late* late : {&queued, &here, &meanwhile}) {
    EXPECT_TRUE(late->was_dropped);
    EXPECT_FALSE(late->ran);
  }
}

Task<> throws_out() {
  co_await yield();
  throw std::runtime_error("out");
}
TEST(ReactorTest, run_rethrows_an_exception_of_a_child) {
  Reactor reactor;
  RootScope scope(reactor);
  scope.spawn(throws_out());
  EXPECT_THROW((void)reactor.run(scope), std::runtime_error);
}

}  // namespace
}  // namespace stint
