#include "playground/presets/lessons.hpp"

namespace stint::playground::lesson {

using namespace std::chrono_literals;

// [show]
static Task<> query_alone(Semaphore& slots, Server& database, std::string name) {
  const Result<Permit> slot = co_await slots.acquire({.label = name});  //@ waits granted slots
  const Connection connection(database);  // made for this query, and thrown away after it //@ made database
  co_await sleep_for(1s);
}  //@ released discarded slots database

static Task<> query_pooled(ConnectionPool& pool, std::string name) {
  const auto connection = co_await pool.borrow({.label = name});  //@ waits granted made reused pool
  co_await sleep_for(1s);
}  //@ released pool

void limit_or_reuse(Stage& stage) {
  Semaphore& slots = stage.semaphore("slots", 2);
  Server& database = stage.server("database");
  ConnectionPool& pool = stage.pool("pool", 2);
  for (const char* name : {"a1", "b1", "c1", "d1", "e1", "f1"}) stage.spawn(name, query_alone(slots, database, name));
  stage.advance(4s);
  for (const char* name : {"a2", "b2", "c2", "d2", "e2", "f2"}) stage.spawn(name, query_pooled(pool, name));
  stage.run();
}
// [/show]

}  // namespace stint::playground::lesson
