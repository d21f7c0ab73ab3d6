// The pool of reusable objects.
#include "stint/object_pool.hpp"

#include "stint/asio.hpp"
#include "stint/testing.hpp"
#include "test_support.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace stint {
namespace {

/// An expensive object; counts how many exist.
class Connection {
 public:
  struct Factory {
    std::atomic<int> made = 0, alive = 0, most = 0;
  };
  explicit Connection(Factory& factory) : factory_(&factory), number(++factory.made) {
    const int now = ++factory.alive;
    for (int seen = factory.most; now > seen && !factory.most.compare_exchange_weak(seen, now);) {
    }
  }
  Connection(Connection&& other) noexcept
      : factory_(std::exchange(other.factory_, nullptr)), number(other.number), broken(other.broken) {}
  ~Connection() {
    if (factory_ != nullptr) --factory_->alive;
  }

 private:
  Factory* factory_;

 public:
  int number;
  bool broken = false;
};
using ConnectionPool = ObjectPool<Connection>;

struct ObjectPoolTest : testing::Test {
  static ConnectionPool::Options of_size(std::uint32_t max_size) {
    ConnectionPool::Options options;
    options.max_size = max_size;
    return options;
  }
  Task<Result<Connection>> connect() {
    if (connecting_takes > 0s) co_await sleep_for(connecting_takes);
    if (refuses) co_return fail(Errc::unavailable, "connection refused");
    co_return Connection(factory);
  }
  ConnectionPool::Make maker() {
    return [this] { return connect(); };
  }
  /// Starts a chain in its own scope and runs until nothing is ready.
  Scope& start(Task<> task) {
    scopes.push_back(std::make_unique<RootScope>(sim));
    scopes.back()->spawn(std::move(task));
    sim.run_ready();
    return *scopes.back();
  }
  /// Borrows an object and keeps the lease.
  Task<> borrows(std::string caller = "") {
    auto lease = co_await pool->borrow();
    log.push_back(caller + (lease ? std::to_string((*lease)->number) : std::string(lease.error().what())));
    if (lease) leases.push_back(std::move(*lease));
  }
  ConnectionPool::Lease take() {
    start(borrows());
    ConnectionPool::Lease lease = std::move(leases.back());
    leases.pop_back();
    return lease;
  }

  Log log;
  Connection::Factory factory;
  Duration connecting_takes{};
  bool refuses = false;
  std::optional<ConnectionPool> pool;
  std::vector<ConnectionPool::Lease> leases;
  std::vector<std::unique_ptr<RootScope>> scopes;
  Simulator sim{1};  // last member: destroyed first, with every frame
};

// ---- Limiting is not reuse -----------------------------------------------------------------------------------------

TEST_F(ObjectPoolTest, a_semaphore_limits_and_a_pool_also_reuses) {
  const auto with_semaphore = [](Semaphore& slots, Connection::Factory& made) -> Task<> {
    for (int i = 0; i < 10; ++i) {
      const auto permit = co_await slots.acquire();
      const Connection connection(made);  // a permit is not a connection: each acquisition creates one
    }
  };
  Connection::Factory limited;
  Semaphore slots("slots", 2);
  for (int i = 0; i < 4; ++i) start(with_semaphore(slots, limited));
  EXPECT_EQ(limited.made, 40);

  pool.emplace("connections", maker(), of_size(2));
  const auto with_pool = [](ConnectionPool& from) -> Task<> {
    for (int i = 0; i < 10; ++i) {
      const auto lease = co_await from.borrow();
      co_await yield();
    }
  };
  for (int i = 0; i < 4; ++i) start(with_pool(*pool));
  sim.settle();
  EXPECT_EQ(factory.made, 1) << "one after another: one connection serves them all";
  for (int i = 0; i < 4; ++i) scopes[0]->spawn(with_pool(*pool));
  sim.settle();
  EXPECT_EQ(factory.made, 2);
  EXPECT_EQ(factory.most, 2);
  EXPECT_EQ(pool->counts().made, 2u);
  EXPECT_EQ(pool->counts().reused, 80u - 2u);
}
TEST_F(ObjectPoolTest, creates_objects_lazily_and_only_as_many_as_needed) {
  pool.emplace("connections", maker(), of_size(5));
  EXPECT_EQ(factory.made, 0);
  auto first = take();
  auto second = take();
  EXPECT_EQ(factory.made, 2);
  EXPECT_EQ(pool->counts().leased, 2u);
  first.release();
  second = take();
  EXPECT_EQ(factory.made, 2);
}
TEST_F(ObjectPoolTest, the_most_recently_returned_object_is_reused_first) {
  pool.emplace("connections", maker(), of_size(3));
  std::vector<ConnectionPool::Lease> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(take());
  for (const std::size_t i : {1u, 2u, 0u}) taken[i].release();
  EXPECT_EQ(pool->counts().idle, 3u);
  Log numbers;
  for (int i = 0; i < 3; ++i) numbers.push_back(std::to_string((taken[static_cast<std::size_t>(i)] = take())->number));
  EXPECT_EQ(numbers, (Log{"1", "3", "2"}));
}
TEST_F(ObjectPoolTest, borrowers_wait_in_line_and_get_returned_objects) {
  pool.emplace("connections", maker(), of_size(1));
  auto lease = take();
  log.clear();
  for (const char* caller : {"a", "b"}) start(borrows(caller));
  EXPECT_EQ(pool->counts().waiting, 2u);
  lease.release();
  sim.run_ready();
  EXPECT_EQ(log, Log{"a1"});
  leases.clear();
  sim.run_ready();
  EXPECT_EQ(log, (Log{"a1", "b1"}));
}
TEST_F(ObjectPoolTest, borrowers_have_a_label_and_a_priority) {
  ConnectionPool::Options options = of_size(1);
  options.track_holders = true;
  options.clock = &sim;
  pool.emplace("connections", maker(), std::move(options));
  const auto as = [this](std::string caller, int priority) -> Task<> {
    auto lease = co_await pool->borrow({.priority = priority, .label = caller});
    if (lease) leases.push_back(std::move(*lease));
  };
  sim.advance(1s);
  for (const auto& [caller, priority] : {std::pair("a", 0), std::pair("b", 0), std::pair("c", 3)}) {
    start(as(caller, priority));
  }
  ASSERT_EQ(pool->places().holders().size(), 1u);
  EXPECT_EQ(pool->places().holders()[0].label, "a");
  EXPECT_EQ(pool->places().holders()[0].since, TimePoint(1s));
  ASSERT_EQ(pool->places().waiters().size(), 2u);
  EXPECT_EQ(pool->places().waiters()[0].label, "c");
  EXPECT_EQ(pool->places().waiters()[1].label, "b");
  leases.clear();
  sim.run_ready();
  EXPECT_EQ(pool->places().holders()[0].label, "c");
}
TEST_F(ObjectPoolTest, keeps_at_most_max_idle_objects) {
  ConnectionPool::Options options = of_size(3);
  options.max_idle = 1;
  pool.emplace("connections", maker(), options);
  for (int i = 0; i < 3; ++i) start(borrows());
  EXPECT_EQ(factory.alive, 3);
  leases.clear();
  EXPECT_EQ(factory.alive, 1);
  EXPECT_EQ(pool->counts().idle, 1u);
}

// ---- Leases --------------------------------------------------------------------------------------------------------

TEST_F(ObjectPoolTest, assigning_a_lease_returns_the_object_it_held) {
  pool.emplace("connections", maker(), of_size(2));
  auto first = take();
  Connection* const object = &*first;
  auto moved = std::move(first);
  EXPECT_FALSE(first);  // NOLINT: what is left of a lease is empty
  EXPECT_EQ(&*moved, object) << "the object stays where it is";
  moved = take();
  EXPECT_EQ(pool->counts().idle, 1u);
  EXPECT_EQ(pool->counts().leased, 1u);
  auto& self = moved;
  moved = std::move(self);
  EXPECT_EQ(moved->number, 2);
  moved.release();
  moved.release();
  moved.discard();
  EXPECT_EQ(pool->counts().leased, 0u);
  EXPECT_EQ(pool->counts().idle, 2u);
}
TEST_F(ObjectPoolTest, a_discarded_object_is_destroyed_and_its_place_is_free) {
  pool.emplace("connections", maker(), of_size(1));
  auto lease = take();
  lease.discard();
  EXPECT_EQ(factory.alive, 0);
  EXPECT_EQ(pool->counts().discarded, 1u);
  EXPECT_EQ(take()->number, 2);
}

// ---- Validation ----------------------------------------------------------------------------------------------------

TEST_F(ObjectPoolTest, a_broken_idle_object_is_destroyed_and_the_next_is_tried) {
  ConnectionPool::Options options = of_size(3);
  options.is_good = [](const Connection& connection) { return !connection.broken; };
  pool.emplace("connections", maker(), options);
  for (int i = 0; i < 3; ++i) start(borrows());
  leases[1]->broken = leases[2]->broken = true;
  leases.clear();
  EXPECT_EQ(take()->number, 1);
  EXPECT_EQ(factory.alive, 1);
  EXPECT_EQ(pool->counts().discarded, 2u);
}
TEST_F(ObjectPoolTest, a_new_object_is_created_if_every_idle_object_is_broken) {
  ConnectionPool::Options options = of_size(2);
  options.validate = [](Connection& connection) -> Task<bool> {
    co_await sleep_for(1s);  // a ping
    co_return !connection.broken;
  };
  pool.emplace("connections", maker(), options);
  auto lease = take();
  EXPECT_EQ(sim.now(), TimePoint()) << "what was just made is not validated";
  lease->broken = true;
  lease.release();
  log.clear();
  start(borrows());
  sim.settle();
  EXPECT_EQ(log, Log{"2"});
  EXPECT_EQ(sim.now(), TimePoint(1s));
  EXPECT_EQ(factory.alive, 1);
}
TEST_F(ObjectPoolTest, a_cancel_while_an_object_is_validated_destroys_it_and_frees_its_place) {
  ConnectionPool::Options options = of_size(1);
  options.validate = [](Connection&) -> Task<bool> {
    co_await sleep_for(1h);
    co_return true;
  };
  pool.emplace("connections", maker(), options);
  take().release();
  Scope& scope = start(borrows());
  scope.cancel();
  sim.run_ready();
  EXPECT_EQ(factory.alive, 0) << "half a ping may be on its way";
  EXPECT_EQ(pool->counts().leased, 0u);
}

// ---- Making --------------------------------------------------------------------------------------------------------

TEST_F(ObjectPoolTest, a_failing_factory_returns_its_error_and_frees_the_place) {
  pool.emplace("connections", maker(), of_size(1));
  refuses = true;
  start(borrows());
  EXPECT_EQ(log, Log{"connection refused"});
  EXPECT_EQ(pool->counts().leased, 0u);
  refuses = false;
  start(borrows());
  EXPECT_EQ(log.back(), "1");
}
TEST_F(ObjectPoolTest, a_throwing_factory_frees_the_place) {
  pool.emplace(
      "connections",
      []() {
        return []() -> Task<Result<Connection>> {
          co_await yield();
          throw std::runtime_error("boom");
        }();
      },
      of_size(1));
  Scope& scope = start(borrows());
  EXPECT_TRUE(scope.exception());
  EXPECT_EQ(pool->counts().leased, 0u);
}
TEST_F(ObjectPoolTest, a_cancelled_creation_passes_its_place_to_the_next_borrower) {
  connecting_takes = 1s;
  pool.emplace("connections", maker(), of_size(1));
  Scope& first = start(borrows("a"));
  start(borrows("b"));
  first.cancel();
  sim.settle();
  EXPECT_EQ(log, Log{"b1"});
}
TEST_F(ObjectPoolTest, a_cancelled_borrower_leaves_the_line) {
  pool.emplace("connections", maker(), of_size(1));
  const auto lease = take();
  Scope& waiting = start(borrows());
  waiting.cancel();
  sim.run_ready();
  EXPECT_EQ(pool->counts().waiting, 0u);
  EXPECT_EQ(pool->counts().leased, 1u);
}
TEST_F(ObjectPoolTest, a_deadline_covers_waiting_and_creation) {
  connecting_takes = 5s;
  pool.emplace("connections", maker(), of_size(1));
  const auto borrows_until = [](ConnectionPool& from, TimePoint when, Log& seen) -> Task<> {
    const auto lease = co_await from.borrow_until(when);
    seen.push_back(lease ? std::to_string((*lease)->number) : std::string(to_string(lease.error().code())));
    co_await sleep_until(TimePoint(1h));
  };
  start(borrows_until(*pool, TimePoint(2s), log));
  sim.advance(2s);
  EXPECT_EQ(log, Log{"timed out"}) << "while it was made";
  start(borrows_until(*pool, TimePoint(10s), log));
  sim.advance(5s);
  EXPECT_EQ(log.back(), "1");
  start(borrows_until(*pool, TimePoint(12s), log));
  sim.advance(4s);
  EXPECT_EQ(log.size(), 2u);
  sim.advance(1s);
  EXPECT_EQ(log.back(), "timed out") << "in the line";
  EXPECT_EQ(pool->counts().leased, 1u);
}

// ---- Close and death -----------------------------------------------------------------------------------------------

TEST_F(ObjectPoolTest, close_destroys_idle_objects_and_keeps_leases_valid) {
  pool.emplace("connections", maker(), of_size(2));
  auto kept = take();
  take().release();
  ASSERT_EQ(factory.alive, 2);
  pool->close();
  pool->close();
  EXPECT_EQ(factory.alive, 1);
  EXPECT_EQ(kept->number, 1) << "a lease that is out stays good";
  log.clear();
  start(borrows());
  EXPECT_EQ(log, Log{"semaphore 'connections': closed"});
  kept.release();
  EXPECT_EQ(factory.alive, 0);
  EXPECT_EQ(pool->counts().leased, 0u);
}
TEST_F(ObjectPoolTest, close_fails_waiting_and_creating_borrowers) {
  connecting_takes = 1s;
  pool.emplace("connections", maker(), of_size(1));
  start(borrows("making: "));
  start(borrows("waiting: "));
  pool->close();
  sim.settle();
  EXPECT_EQ(log, (Log{"waiting: semaphore 'connections': closed", "making: pool 'connections': closed"}));
  EXPECT_EQ(factory.alive, 0);
}
TEST_F(ObjectPoolTest, leases_and_places_are_returned_when_their_executor_is_destroyed) {
  pool.emplace("connections", maker(), of_size(3));
  const auto keeps = [](ConnectionPool& from) -> Task<> {
    const auto lease = co_await from.borrow();
    co_await sleep_until(TimePoint::max());
  };
  std::optional<Simulator> mortal(1);
  RootScope scope(*mortal);
  scope.spawn(keeps(*pool));
  mortal->run_ready();
  connecting_takes = 1h;
  for (int i = 0; i < 3; ++i) scope.spawn(keeps(*pool));  // two are creating, one waits
  mortal->run_ready();
  EXPECT_EQ(pool->counts().leased, 3u);
  EXPECT_EQ(pool->counts().waiting, 1u);
  mortal.reset();
  EXPECT_EQ(pool->counts().leased, 0u);
  EXPECT_EQ(pool->counts().waiting, 0u);
  EXPECT_EQ(pool->counts().idle, 1u);
}

// ---- Any order, any thread -----------------------------------------------------------------------------------------

Task<> uses(ConnectionPool& pool, std::mt19937_64& random, bool& wrong) {
  for (int round = 0; round < 6; ++round) {
    for (auto pause = random() % 4; pause > 0; --pause) co_await yield();
    auto lease = co_await pool.borrow();
    if (!lease) continue;
    wrong |= (*lease)->broken;
    for (auto pause = random() % 4; pause > 0; --pause) co_await yield();
    if (random() % 6 == 0) (*lease)->broken = true;
    if (random() % 6 == 0) lease->discard();
  }
}
TEST_F(ObjectPoolTest, never_more_than_max_size_exist_over_two_thousand_seeds) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Connection::Factory counted;
    bool wrong = false;
    Simulator random(seed);
    ConnectionPool::Options options = of_size(3);
    options.max_idle = 1 + seed % 3;
    options.validate = [](Connection& connection) -> Task<bool> {
      co_await yield();
      co_return !connection.broken;
    };
    const auto make = [&]() -> Task<Result<Connection>> {
      co_await yield();
      if (random.random()() % 8 == 0) co_return fail(Errc::unavailable, "refused");
      co_return Connection(counted);
    };
    ConnectionPool explored("explored", make, options);
    std::vector<std::unique_ptr<RootScope>> own;
    for (int i = 0; i < 8; ++i) {
      own.push_back(std::make_unique<RootScope>(random));
      own.back()->spawn(uses(explored, random.random(), wrong));
    }
    while (random.step()) {
      if (random.random()() % 40 == 0) own[random.random()() % own.size()]->cancel();
      const auto counts = explored.counts();
      ASSERT_LE(counted.alive, 3) << "seed " << seed;
      ASSERT_LE(counts.idle, options.max_idle) << "seed " << seed;
    }
    ASSERT_FALSE(wrong) << "a broken object went out, seed " << seed;
    ASSERT_EQ(explored.counts().leased, 0u) << "seed " << seed;
    ASSERT_EQ(static_cast<std::size_t>(counted.alive), explored.counts().idle) << "seed " << seed;
  }
}

Task<> borrows_often(ConnectionPool& pool, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    auto lease = co_await pool.borrow();
    STINT_ASSERT(lease.has_value());
    if (random() % 4 == 0) co_await yield();
    if (random() % 16 == 0) lease->discard();
  }
}
TEST(ObjectPoolThreads, stress_of_borrow_and_discard_on_two_threads) {
  Connection::Factory factory;
  ConnectionPool::Options options;
  options.max_size = 3;
  ConnectionPool pool("stressed", [&]() -> Task<Result<Connection>> { co_return Connection(factory); }, options);
  std::vector<std::thread> threads;
  for (std::uint64_t id = 0; id < 2; ++id) {
    threads.emplace_back([&, id] {
      Reactor reactor;
      RootScope scope(reactor);
      for (std::uint64_t i = 0; i < 4; ++i) scope.spawn(borrows_often(pool, id * 10 + i));
      EXPECT_TRUE(reactor.run(scope));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(factory.most, 3);
  EXPECT_EQ(pool.counts().leased, 0u);
  EXPECT_EQ(pool.counts().made + pool.counts().reused, 2u * 4u * 3000u);
}

}  // namespace
}  // namespace stint
