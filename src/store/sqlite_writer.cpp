// Invariants
// 1. A group is open between begin() and close(), and the closer is queued exactly while one is.
// 2. No step is answered before COMMIT has succeeded; if it fails, every step of the group gets its error.
// 3. The write lock is held while a group is open; a group ends soon even under constant load.
// 4. SQLite rolls back the whole transaction when a statement meets an I/O error, and may do so when disk or memory
//    is full. The group is then abandoned: a savepoint would begin a new transaction, so no further step runs, and
//    every step of the group gets the error.
// 5. Leases of rolled-back nodes are released before the write lock: another process gets their numbers next.
#include "store/sqlite_writer.hpp"

#include "os/slot_file.hpp"
#include "store_sql_sqlite.hpp"

#include <thread>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLockNapMax = 2ms;

}  // namespace

/// A process writes for some milliseconds at most. If it is frozen meanwhile, this fails instead of hanging.
Result<> blocking_lock_writes(const os::Fd& write_lock, Duration patience) {
  Duration waited{};
  for (Duration nap = 50us; !os::try_lock_slot(write_lock.get()); nap = std::min<Duration>(nap * 2, kLockNapMax)) {
    if (waited >= patience) {
      return fail(Error(Errc::unavailable, Retry::safe,
                        "another process holds the write lock of the database and does not run. Resume or end it"));
    }
    std::this_thread::sleep_for(nap);
    waited += nap;
  }
  return {};
}

SqliteWriter::SqliteWriter(Executor& executor, Database database, const SqliteFiles& files, std::string leases,
                           os::Fd write_lock, const domain::System& system, StoreClock clock, Duration patience)
    : executor_(executor),
      database_(std::move(database)),
      files_(files),
      write_lock_(std::move(write_lock)),
      patience_(patience),
      rows_(database_, std::move(leases)),
      ledger_(rows_, system, std::move(clock)) {}

void SqliteWriter::Committed::await_suspend(std::coroutine_handle<>) {
  park_shielded();
  writer_.waiting_.push_back(*this);
}

Result<> SqliteWriter::begin() {
  if (open_) return {};
  STINT_CHECK(files_.check());
  STINT_CHECK(blocking_lock_writes(write_lock_, patience_));
  if (Result<> begun = database_.run(sqlite::query::begin); !begun) {
    os::unlock_slot(write_lock_.get());
    if (begun.error().retry() != Retry::unknown) return begun;
    return fail(Error(begun.error().code(), Retry::safe, begun.error().describe()));  // nothing was written
  }
  open_ = true;
  broken_.reset();
  rows_.begin_group();
  steps_ = seen_ = 0;
  since_ = executor_.now();
  executor_.post(closer_);
  return {};
}

Result<> SqliteWriter::begin_step() {
  if (broken_) return fail(*broken_);
  rows_.begin_step();
  return savepoint(sqlite::query::step);
}

Result<> SqliteWriter::end_step(const Error* failed) {
  Result<> written;
  if (failed == nullptr) written = rows_.flush();
  if (!written) failed = &written.error();
  if (failed == nullptr) return savepoint(sqlite::query::keep_step);
  rows_.undo_step();
  if (!database_.in_transaction()) return break_off(*failed);
  STINT_CHECK(savepoint(sqlite::query::undo_step));
  STINT_CHECK(savepoint(sqlite::query::keep_step));
  return written;
}

Result<> SqliteWriter::savepoint(std::string_view statement) {
  Result<> done = Query(database_, statement).run();
  if (done) return done;
  rows_.undo_step();
  return break_off(done.error());
}

std::unexpected<Error> SqliteWriter::break_off(const Error& why) {
  broken_.emplace(why.code(), Retry::safe, why.describe());
  return fail(*broken_);
}

/// Runs after everything that was queued before. If steps have arrived since the last check, more may be coming.
void SqliteWriter::close_in_turn() noexcept {
  const bool more = steps_ > seen_ && steps_ < kGroupMax && executor_.now() - since_ < kGroupTime;
  seen_ = steps_;
  if (more) {
    executor_.post(closer_);
  } else {
    close();
  }
}

Result<> SqliteWriter::commit() noexcept {
  Result<> committed = broken_ ? Result<>(fail(*broken_)) : database_.run(sqlite::query::commit);
  if (!committed && database_.in_transaction()) (void)database_.run(sqlite::query::roll_back);
  return committed;
}

void SqliteWriter::close() noexcept {
  Result<> committed = commit();
  rows_.end_group(committed.has_value());
  if (committed) {
    // A file that was moved meanwhile contains the commit and may be put back: the outcome is unknown.
    if (const Result<> found = files_.check(); !found) {
      committed = fail(Error(found.error().code(), Retry::unknown, std::string(found.error().what())));
    }
  }
  os::unlock_slot(write_lock_.get());
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
