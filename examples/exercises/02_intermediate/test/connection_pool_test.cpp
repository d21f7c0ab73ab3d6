// The tests of exercise 02, in the order of its steps. Angle brackets: the build decides whether your
// header or the solution is included.
#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <connection_pool.hpp>
#include <string>

namespace {

using namespace stint;
using namespace std::chrono_literals;
using Log = std::vector<std::string>;

struct Pool : testing::Test {
  /// A connect that takes 100 ms and counts itself, even if it never completes.
  Task<Result<Connection>> connect() {
    struct Count {
      ~Count() { --count; }
      int& count;
    };
    ++connecting;
    const Count at_work{connecting};
    co_await sleep_for(100ms);
    if (failures-- > 0) co_return fail(Errc::unavailable, "no route to the database");
    co_return Connection{++made};
  }

  /// Borrows, logs it, keeps the lease for a while.
  static Task<> use(Pool& test, ConnectionPool& pool, std::string caller, Duration keep, Deadline deadline = {},
                    bool breaks = false) {
    auto lease = co_await pool.borrow(deadline);
    if (!lease) {
      test.log.push_back(caller + ": " + std::string(to_string(lease.error().code())));
      co_return;
    }
    test.log.push_back(caller + " has " + std::to_string((*lease)->number));
    co_await sleep_for(keep);
    (*lease)->broken = breaks;
  }
  Deadline in(Duration time) const { return Deadline::after(simulator.now(), time); }

  Simulator simulator{1, Simulator::Order::fifo};
  int made = 0, connecting = 0, failures = 0;
  Log log;
  std::function<Task<Result<Connection>>()> connect_here = [this] { return connect(); };
};

TEST_F(Pool, step1_nothing_is_created_before_the_first_borrow) {
  ConnectionPool pool(2, connect_here);
  RootScope scope(simulator);
  simulator.settle();
  EXPECT_EQ(made, 0);
  scope.spawn(use(*this, pool, "van", 0ms));
  simulator.settle();
  EXPECT_EQ(log, (Log{"van has 1"}));
  EXPECT_EQ(made, 1);
}

TEST_F(Pool, step2_returned_connections_are_reused) {
  ConnectionPool pool(2, connect_here);
  RootScope scope(simulator);
  for (const char* const caller : {"van", "cab", "jeep"}) {
    scope.spawn(use(*this, pool, caller, 10ms));
    simulator.settle();
    EXPECT_EQ(pool.idle(), 1u);
  }
  EXPECT_EQ(log, (Log{"van has 1", "cab has 1", "jeep has 1"}));
  EXPECT_EQ(made, 1);
}

TEST_F(Pool, step2_a_moved_lease_returns_its_connection_once) {
  ConnectionPool pool(2, connect_here);
  RootScope scope(simulator);
  auto moves = [&]() -> Task<> {
    auto first = co_await pool.borrow();
    if (!first) co_return;
    ConnectionPool::Lease second = std::move(*first);
    ConnectionPool::Lease third;
    third = std::move(second);
    log.push_back("has " + std::to_string(third->number));
    EXPECT_EQ(pool.idle(), 0u);
  };
  scope.spawn(moves());
  simulator.settle();
  EXPECT_EQ(log, (Log{"has 1"}));
  EXPECT_EQ(pool.idle(), 1u);
}

TEST_F(Pool, step3_never_more_than_max_at_a_time_and_first_come_first_served) {
  ConnectionPool pool(2, connect_here);
  RootScope scope(simulator);
  Duration keep = 1s;
  for (const char* const caller : {"van", "cab", "jeep", "bus", "ute"})
    scope.spawn(use(*this, pool, caller, keep += 10ms));
  simulator.advance(500ms);
  EXPECT_EQ(log, (Log{"van has 1", "cab has 2"}));
  simulator.settle();
  EXPECT_EQ(log, (Log{"van has 1", "cab has 2", "jeep has 1", "bus has 2", "ute has 1"}));
  EXPECT_EQ(made, 2) << "the next waiter must find the returned connection";
}

TEST_F(Pool, step4_a_broken_connection_is_not_reused) {
  ConnectionPool pool(1, connect_here);
  RootScope scope(simulator);
  scope.spawn(use(*this, pool, "van", 10ms, {}, true));
  simulator.settle();
  EXPECT_EQ(pool.idle(), 0u);
  scope.spawn(use(*this, pool, "cab", 10ms));
  simulator.settle();
  EXPECT_EQ(log, (Log{"van has 1", "cab has 2"}));
}

TEST_F(Pool, step4_a_failed_connect_frees_its_place) {
  failures = 1;
  ConnectionPool pool(1, connect_here);
  RootScope scope(simulator);
  scope.spawn(use(*this, pool, "van", 10ms));
  scope.spawn(use(*this, pool, "cab", 10ms));
  simulator.settle();
  EXPECT_EQ(log, (Log{"van: unavailable", "cab has 1"}));
}

TEST_F(Pool, step5_the_deadline_covers_the_wait) {
  ConnectionPool pool(1, connect_here);
  RootScope scope(simulator);
  scope.spawn(use(*this, pool, "van", 1h));
  scope.spawn(use(*this, pool, "cab", 0ms, in(5s)));
  simulator.advance(4999ms);
  EXPECT_EQ(log, (Log{"van has 1"}));
  simulator.advance(1ms);
  EXPECT_EQ(log, (Log{"van has 1", "cab: timed out"}));
  simulator.settle();
}

TEST_F(Pool, step5_the_deadline_covers_the_creation_and_stops_it) {
  ConnectionPool pool(1, connect_here);
  RootScope scope(simulator);
  scope.spawn(use(*this, pool, "van", 0ms, in(50ms)));
  simulator.advance(50ms);
  EXPECT_EQ(log, (Log{"van: timed out"}));
  EXPECT_EQ(connecting, 0) << "this connection is no longer needed";
  scope.spawn(use(*this, pool, "cab", 0ms));
  simulator.settle();
  EXPECT_EQ(log.back(), "cab has 1") << "the place must be free again";
}

TEST_F(Pool, step5_a_cancelled_borrow_leaves_nothing_behind) {
  ConnectionPool pool(1, connect_here);
  RootScope cancelled(simulator), scope(simulator);
  cancelled.spawn(use(*this, pool, "van", 0ms));
  cancelled.spawn(use(*this, pool, "cab", 0ms));
  scope.spawn(use(*this, pool, "jeep", 0ms));
  simulator.advance(50ms);  // van connects, cab and jeep wait
  EXPECT_EQ(connecting, 1);
  cancelled.cancel();
  simulator.settle();
  EXPECT_EQ(log, (Log{"jeep has 1"}));
  EXPECT_EQ(pool.idle(), 1u);
}

TEST_F(Pool, step6_after_close_borrow_fails_and_nothing_is_kept) {
  ConnectionPool pool(2, connect_here);
  RootScope scope(simulator);
  scope.spawn(use(*this, pool, "van", 1s));
  scope.spawn(use(*this, pool, "cab", 10s));
  simulator.advance(2s);  // van's connection is idle, cab's is borrowed
  EXPECT_EQ(pool.idle(), 1u);
  pool.close();
  EXPECT_EQ(pool.idle(), 0u);
  scope.spawn(use(*this, pool, "jeep", 0ms));
  simulator.settle();
  EXPECT_EQ(log, (Log{"van has 1", "cab has 2", "jeep: closed"}));
  EXPECT_EQ(pool.idle(), 0u) << "cab's connection was returned to a closed pool";
}

TEST_F(Pool, step6_close_fails_waiting_borrowers) {
  ConnectionPool pool(1, connect_here);
  RootScope scope(simulator);
  scope.spawn(use(*this, pool, "van", 10s));
  scope.spawn(use(*this, pool, "cab", 0ms));
  simulator.advance(1s);
  pool.close();
  simulator.run_ready();
  EXPECT_EQ(log, (Log{"van has 1", "cab: closed"}));
  simulator.settle();
}

}  // namespace
