// Invariants
// 1. A group is open between begin() and close(), and the closer is queued exactly while one is.
// 2. Nobody is answered before COMMIT has succeeded; if it fails, everybody of the group gets its error.
// 3. The gate is held while a group is open: a group ends soon, whatever comes in.
#include "store/sqlite_writer.hpp"

#include "os/slot_file.hpp"
#include "store_sql_sqlite.hpp"

#include <thread>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

constexpr Duration kGateNapMax = 2ms;

}  // namespace

/// Another process writes for some milliseconds at most; one that is frozen meanwhile is an error for us, no hang.
Result<> blocking_take(const os::Fd& gate, Duration patience) {
  Duration waited{};
  for (Duration nap = 50us; !os::try_lock_slot(gate.get()); nap = std::min<Duration>(nap * 2, kGateNapMax)) {
    if (waited >= patience) {
      return fail(Error(Errc::unavailable, Retry::safe, "another process holds the database's gate and does not run"));
    }
    std::this_thread::sleep_for(nap);
    waited += nap;
  }
  return {};
}

SqliteWriter::SqliteWriter(Executor& executor, Database database, std::string leases, os::Fd gate,
                           const domain::Ambient& ambient, Duration patience)
    : executor_(executor),
      database_(std::move(database)),
      gate_(std::move(gate)),
      patience_(patience),
      rows_(database_, std::move(leases)),
      ledger_(rows_, ambient) {}

void SqliteWriter::Committed::await_suspend(std::coroutine_handle<>) {
  park_shielded();
  writer_.waiting_.push_back(*this);
}

Result<> SqliteWriter::begin() {
  if (open_) return {};
  STINT_CHECK(blocking_take(gate_, patience_));
  if (Result<> begun = database_.run(sqlite::query::begin); !begun) {
    os::unlock_slot(gate_.get());
    return begun;
  }
  open_ = true;
  rows_.forget_kept();  // others may have written since
  steps_ = seen_ = 0;
  since_ = executor_.now();
  executor_.post(closer_);
  return {};
}

Result<> SqliteWriter::begin_step() { return Query(database_, sqlite::query::step).run(); }

Result<> SqliteWriter::end_step(bool keep) {
  Result<> written;
  if (keep) written = rows_.flush();
  if (!keep || !written) {
    rows_.forget_kept();
    STINT_CHECK(Query(database_, sqlite::query::undo_step).run());
  }
  STINT_CHECK(Query(database_, sqlite::query::keep_step).run());
  return written;
}

/// Behind all that was queued before: if more has come in since the last look, there may be still more.
void SqliteWriter::close_in_turn() noexcept {
  const bool more = steps_ > seen_ && steps_ < kGroupMax && executor_.now() - since_ < kGroupTime;
  seen_ = steps_;
  if (more) {
    executor_.post(closer_);
  } else {
    close();
  }
}

void SqliteWriter::close() noexcept {
  Result<> committed = database_.run(sqlite::query::commit);
  if (!committed && database_.in_transaction()) (void)database_.run(sqlite::query::roll_back);
  os::unlock_slot(gate_.get());
  open_ = false;
  ++commits_;
  while (!waiting_.empty()) {
    Committed& waiter = waiting_.front();
    waiter.Link::unlink();
    waiter.outcome_ = committed;
    waiter.complete();
  }
}

}  // namespace stint::store
