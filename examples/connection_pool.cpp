// A semaphore limits how many connections are in use; it does not reuse one. A pool does both.
//
// Compare the two ways to query: the same limit of 3, the same 24 queries. With the semaphore every query opens a
// connection; with the pool three are created, one more after a connection broke, and the rest are reused. Virtual
// time: the program runs at once.
#include "stint/object_pool.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <cstdio>

using namespace stint;
using namespace std::chrono_literals;

struct Connection {
  int number = 0;
  int queries = 0;
  bool broken = false;
};

struct Database {
  int connects = 0;
  Task<Result<Connection>> connect() {
    co_await sleep_for(50ms);  // a handshake, a login
    co_return Connection{++connects};
  }
  Task<> query(Connection& connection) {
    co_await sleep_for(10ms);
    ++connection.queries;
    if (connection.number == 2 && connection.queries == 3) connection.broken = true;  // the network fails
  }
};

// [limit]
Task<Result<>> query_with_semaphore(Database& database, Semaphore& limit) {
  STINT_CO_TRY(const Permit permit, co_await limit.acquire());
  STINT_CO_TRY(Connection connection, co_await database.connect());
  co_await database.query(connection);
  co_return Result<>();
}
// [/limit]

// [reuse]
Task<Result<>> query_with_pool(Database& database, ObjectPool<Connection>& pool) {
  STINT_CO_TRY(auto lease, co_await pool.borrow());
  co_await database.query(*lease);
  if (lease->broken) lease.discard();  // otherwise it returns to the pool, for the next query
  co_return Result<>();
}
// [/reuse]

template <class Query>
Duration run_queries(Query query) {
  Simulator simulator;
  RootScope scope(simulator);
  for (int i = 0; i < 24; ++i) scope.spawn(query());
  simulator.settle();
  return simulator.now() - TimePoint();
}

int in_ms(Duration duration) { return static_cast<int>(duration / 1ms); }

int main() {
  Database by_semaphore, by_pool;
  Semaphore limit("connections", 3);
  const Duration slow = run_queries([&] { return query_with_semaphore(by_semaphore, limit); });
  std::printf("semaphore: 24 queries, %2d connects, %4d ms\n", by_semaphore.connects, in_ms(slow));

  ObjectPool<Connection>::Options options;
  options.max_size = 3;
  ObjectPool<Connection> pool("connections", [&] { return by_pool.connect(); }, options);
  const Duration quick = run_queries([&] { return query_with_pool(by_pool, pool); });
  const auto counts = pool.counts();
  std::printf("pool:      24 queries, %2d connects, %4d ms: %d reused, %d discarded, %d idle\n", by_pool.connects,
              in_ms(quick), static_cast<int>(counts.reused), static_cast<int>(counts.discarded),
              static_cast<int>(counts.idle));
  pool.close();
  return by_semaphore.connects == 24 && by_pool.connects == 4 && quick < slow ? 0 : 1;
}
