// The bounded queue across threads, and with executors that are destroyed.
#include "queue_test_support.hpp"
#include "stint/asio.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

namespace stint {
namespace {

TEST(QueueThreads, items_are_returned_in_order_when_an_executor_is_destroyed) {
  Queue<int> queue("jobs", 2);
  Log log;
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  for (int i = 0; i < 4; ++i) scope.spawn(pops(queue, log));
  reactor->run_until([&] { return queue.waiting_consumers() == 4; });
  std::thread([&] {
    for (const int item : {1, 2, 3}) EXPECT_TRUE(queue.try_push(int{item}));
  }).join();  // three are handed over and wait in the inbox; one consumer stays parked
  reactor.reset();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(queue.waiting_consumers(), 0u);
  EXPECT_EQ(drain(queue), (Ints{1, 2, 3}));
}
TEST(QueueThreads, waiters_of_a_destroyed_executor_are_removed) {
  Queue<int> queue("jobs", 1);
  Log log;
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  for (int i = 0; i < 2; ++i) scope.spawn(pops(queue, log));
  reactor->run_until([&] { return queue.waiting_consumers() == 2; });
  reactor.reset();
  EXPECT_EQ(queue.waiting_consumers(), 0u);
  EXPECT_TRUE(queue.try_push(1)) << "into the queue: there is no consumer";
  EXPECT_EQ(queue.size(), 1u);
}
TEST(QueueThreads, producers_of_a_destroyed_executor_leave_no_item) {
  Queue<int> queue("jobs", 1);
  Log log;
  ASSERT_TRUE(queue.try_push(1));
  auto reactor = std::make_unique<Reactor>();
  RootScope scope(*reactor);
  for (const int item : {2, 3}) scope.spawn(pushes(queue, item, log));
  reactor->run_until([&] { return queue.waiting_producers() == 2; });
  std::thread([&] { EXPECT_EQ(queue.try_pop(), 1); }).join();  // 2 was accepted, its producer has not resumed
  EXPECT_EQ(queue.size(), 1u);
  reactor.reset();
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.waiting_producers(), 0u);
}
Task<> reports_thread(Queue<int>& queue, std::thread::id& resumed_on) {
  (void)co_await queue.pop();
  resumed_on = std::this_thread::get_id();
}
TEST(QueueThreads, a_consumer_resumes_on_its_own_thread) {
  Queue<int> queue("jobs", 1);
  Reactor reactor;
  RootScope scope(reactor);
  std::thread::id resumed_on;
  scope.spawn(reports_thread(queue, resumed_on));
  std::thread producer([&] {
    while (queue.waiting_consumers() == 0) std::this_thread::yield();
    EXPECT_TRUE(queue.try_push(1));
  });
  EXPECT_TRUE(reactor.run(scope));
  producer.join();
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
}

/// Every producer pushes its numbers in order, by all kinds of push, some of them cancelled. The outcome of each is
/// compared with what the consumers received.
struct QueueStress {
  static constexpr int kThreads = 2, kProducers = 3, kItems = 10'000;
  enum class Fate : std::uint8_t { unknown, pushed, refused };
  struct Item {
    int producer, number;
  };
  struct Record {
    Fate fate = Fate::unknown;      // a cancelled push: accepted or not
    std::atomic<int> received = 0;  // by any consumer
  };
  Record& record(Item item) { return records[static_cast<std::size_t>(item.producer * kItems + item.number)]; }

  Queue<Item> queue{"stressed", 3};
  std::vector<Record> records{kThreads * kProducers * kItems};
  std::atomic<int> producing = kThreads * kProducers;
};
Task<Result<>> sends(QueueStress& stress, QueueStress::Item item, std::uint64_t how, Executor& executor) {
  if (how == 0) co_return stress.queue.try_push(std::move(item));
  if (how == 1) co_return co_await stress.queue.push_until(executor.now() + std::chrono::microseconds(200), item);
  co_return co_await stress.queue.push(item);
}
Task<> produces(QueueStress& stress, int id, Executor& executor) {
  std::mt19937_64 random(static_cast<std::uint64_t>(id));
  for (int number = 0; number < QueueStress::kItems; ++number) {
    const QueueStress::Item item{id, number};
    const auto outcome = co_await race(sends(stress, item, random() % 4, executor), yields(1 + random() % 32));
    if (outcome.index() == 1) continue;
    stress.record(item).fate = std::get<0>(outcome) ? QueueStress::Fate::pushed : QueueStress::Fate::refused;
  }
  if (--stress.producing == 0) stress.queue.close();
}
Task<Result<QueueStress::Item>> receives(QueueStress& stress) { co_return co_await stress.queue.pop(); }
Task<> consumes(QueueStress& stress, std::uint64_t seed, bool alone) {
  std::mt19937_64 random(seed);
  std::map<int, int> last;
  while (true) {
    const auto winner = co_await race(receives(stress), yields(1 + random() % 16));  // a loser may have an item in hand
    if (winner.index() == 1) continue;
    const auto& item = std::get<0>(winner);
    if (!item) co_return;
    ++stress.record(*item).received;
    const auto [before, first] = last.try_emplace(item->producer, item->number);
    // With several consumers, a cancelled one may return its item after later ones were taken.
    STINT_ASSERT(first || !alone || item->number > before->second);
    before->second = item->number;
  }
}
void run_stress(int consumers) {
  QueueStress stress;
  std::vector<std::thread> threads;
  for (int id = 0; id < QueueStress::kThreads; ++id) {
    threads.emplace_back([&, id] {
      Reactor reactor;
      RootScope scope(reactor);
      for (int i = 0; i < QueueStress::kProducers; ++i)
        scope.spawn(produces(stress, id * QueueStress::kProducers + i, reactor));
      if (id < consumers) scope.spawn(consumes(stress, static_cast<std::uint64_t>(100 + id), consumers == 1));
      EXPECT_TRUE(reactor.run(scope));
    });
  }
  for (auto& thread : threads) thread.join();
  while (auto item = stress.queue.try_pop()) ++stress.record(*item).received;
  int pushed = 0, refused = 0, unknown = 0;
  for (const auto& record : stress.records) {
    ASSERT_LE(record.received, 1) << "doubled";
    if (record.fate == QueueStress::Fate::pushed) ASSERT_EQ(record.received, 1) << "lost";
    if (record.fate == QueueStress::Fate::refused) ASSERT_EQ(record.received, 0) << "a refused item stayed";
    pushed += record.fate == QueueStress::Fate::pushed;
    refused += record.fate == QueueStress::Fate::refused;
    unknown += record.fate == QueueStress::Fate::unknown;
  }
  EXPECT_GT(pushed, 0);
  EXPECT_GT(refused, 0);
  std::printf("  pushed %d, refused %d, cancelled %d\n", pushed, refused, unknown);
}
TEST(QueueThreads, stress_of_push_pop_cancel_and_timeout_loses_and_duplicates_nothing) { run_stress(2); }
TEST(QueueThreads, stress_with_one_consumer_keeps_every_producers_order) { run_stress(1); }

}  // namespace
}  // namespace stint
