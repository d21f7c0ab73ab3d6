#include "store/sqlite_store.hpp"

#include "os/owner.hpp"
#include "os/slot_file.hpp"
#include "stint/run_on.hpp"
#include "store/sqlite_migrate.hpp"
#include "store_sql_sqlite.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>

namespace stint::store {
namespace {

namespace query = sqlite::query;

constexpr unsigned kFileMode = 0600;

/// Also under the write lock: the first process of a boot sets the anchor for all.
Result<StoreClock> open_clock(Database& database, const domain::System& system) {
  std::optional<StoreClock::Anchor> kept;
  std::optional<StoreClock::Seen> seen;
  {
    Query query(database, query::clock);
    if (query.next()) {
      const auto ms = [&](int column) { return std::chrono::milliseconds(query.number(column)); };
      kept = {.boot = query.text(0),
              .elapsed = ms(1),
              .awake = ms(2),
              .now = WallTime(ms(3)),
              .awake_now = AwakeTime(ms(4))};
      seen = {.wall = WallTime(ms(5)), .now = WallTime(ms(6)), .awake_now = AwakeTime(ms(7))};
    }
    STINT_CHECK(query.run());
  }
  StoreClock clock(system, kept, seen);
  const StoreClock::Anchor& anchor = clock.anchor();
  if (kept == anchor) return clock;
  const StoreClock::Seen now = clock.look();
  Query query(database, query::put_clock);
  query.bind(1, anchor.boot).bind(2, anchor.elapsed.count()).bind(3, anchor.awake.count()).bind(4, anchor.now);
  query.bind(5, anchor.awake_now.time_since_epoch().count()).bind(6, now.wall).bind(7, now.now);
  STINT_CHECK(query.bind(8, now.awake_now.time_since_epoch().count()).run());
  return clock;
}

/// Inputs and outputs of runs are private to their user. SQLite would create a world-readable file; its log and index
/// take the mode of the file. Only for a new file: closing an existing one would drop SQLite's locks on it.
void make_private(const std::string& path) {
  const os::Fd made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kFileMode));
}

Error unusable(const std::string& path, const Error& error) {
  const std::string owner = os::foreign_owner(path);
  return {error.code(), "cannot use the store: " + std::string(error.what()) +
                            (owner.empty() ? ". Make its directory writable for your user"
                                           : ". " + path + " belongs to " + owner +
                                                 ": use it as that user, or work in a "
                                                 "clone of your own")};
}

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::blocking_open(std::string path, const domain::System& system,
                                                                Duration patience) {
  std::error_code error;
  // The real path: SQLite keeps its log there, and a process that opens a link must find the same leases.
  if (const auto place = std::filesystem::weakly_canonical(path, error); !error) path = place.string();
  const std::string leases = path + ".nodes";
  std::filesystem::create_directories(leases, error);
  if (error) return fail(unusable(path, Error(Errc::denied, "cannot create " + leases + ": " + error.message())));
  auto opened_lock = os::open_shared_file(path + ".write-lock", kFileMode);
  if (!opened_lock) return fail(unusable(path, std::move(opened_lock.error())));
  os::Fd write_lock = *std::move(opened_lock);
  make_private(path);
  STINT_CHECK(blocking_lock_writes(write_lock, patience));
  Schema schema;
  std::optional<StoreClock> clock;
  auto opened = [&]() -> Result<Database> {
    STINT_TRY(Database database, Database::open(path, Database::Access::write, patience));
    STINT_TRY(schema, migrate_sqlite(database, path, sqlite_migrations()));
    STINT_TRY(clock, open_clock(database, system));
    return database;
  }();
  os::unlock_slot(write_lock.get());
  STINT_TRY(Database database, std::move(opened));
  STINT_TRY(Database for_reading, Database::open(path, Database::Access::read, patience));
  STINT_CHECK(read_number(for_reading, query::version));
  STINT_TRY(SqliteChanges changes, SqliteChanges::open(path));
  std::unique_ptr<SqliteStore> store(new SqliteStore(path, std::move(changes), leases, *clock));
  store->schema_ = schema;
  store->writer_ = std::make_unique<SqliteWriter>(store->writing_.reactor(), std::move(database), store->files_, leases,
                                                  std::move(write_lock), system, *clock, patience);
  store->reader_ = std::make_unique<Reader>(std::move(for_reading), leases, system, *clock);
  return store;
}

SqliteStore::~SqliteStore() = default;

template <class Step>
auto SqliteStore::write(Step step) -> Task<std::invoke_result_t<Step&, Ledger&>> {
  co_return co_await run_on(writing_.reactor(), writer_->write(std::move(step)));
}

template <class Step>
auto SqliteStore::write_and_notify(Step step) -> Task<std::invoke_result_t<Step&, Ledger&>> {
  auto result = co_await write(std::move(step));
  notification_.notify();
  co_return result;
}

template <class Look>
auto SqliteStore::read(Look look) -> Task<std::invoke_result_t<Look&, Reader&>> {
  auto there = [](Reader& reader, Look inner) -> Task<std::invoke_result_t<Look&, Reader&>> {
    co_return inner(reader);
  };
  co_return co_await run_on(reading_.reactor(), there(*reader_, std::move(look)));
}

Task<Result<>> SqliteStore::define(std::vector<AgentEntry> agents) {
  return write([agents = std::move(agents)](Ledger& ledger) -> Result<> {
    for (const AgentEntry& agent : agents) STINT_CHECK(ledger.define(agent));
    return {};
  });
}

Task<Result<>> SqliteStore::resize(std::string limit, std::optional<std::uint32_t> capacity) {
  return write_and_notify(
      [limit = std::move(limit), capacity](Ledger& ledger) { return ledger.resize(limit, capacity); });
}

Task<Result<>> SqliteStore::configure(std::map<std::string, std::uint32_t> capacities,
                                      std::vector<std::string> agents) {
  return write_and_notify([capacities = std::move(capacities), agents = std::move(agents)](Ledger& ledger) {
    return ledger.configure(capacities, agents);
  });
}

Task<Result<>> SqliteStore::pause(std::string limit, std::optional<Duration> length) {
  return write([limit = std::move(limit), length](Ledger& ledger) { return ledger.pause(limit, length); });
}

Task<Result<std::uint64_t>> SqliteStore::resume(std::string limit) {
  return write_and_notify([limit = std::move(limit)](Ledger& ledger) { return ledger.resume(limit); });
}

Task<Result<std::vector<LimitState>>> SqliteStore::limits(std::uint32_t listed) {
  return read([listed](Reader& reader) { return reader.ledger.limits(listed); });
}

Task<Result<NodeNumber>> SqliteStore::enrol(std::string label, NodeKind kind) {
  return write([label = std::move(label), kind](Ledger& ledger) { return ledger.enrol(label, kind); });
}

Result<std::uint64_t> SqliteStore::look() {
  STINT_CHECK(files_.check());
  return changes_.look();
}

Task<Result<Beat>> SqliteStore::beat(NodeNumber node) {
  STINT_CO_TRY(const std::uint64_t now, look());
  const bool known = now == beaten_.at && node == beaten_.node;
  if (known && os::set_written_at(SqliteRows::lease_path(leases_, node), clock_.beat_time())) co_return beaten_.beat;
  auto beat = co_await write([node](Ledger& ledger) { return ledger.beat(node); });
  if (beat && beat->alive) beaten_ = {now, node, *beat};
  co_return beat;
}

Task<Result<>> SqliteStore::drain(NodeNumber node) {
  return write([node](Ledger& ledger) { return ledger.drain(node); });
}

Task<Result<>> SqliteStore::leave(NodeNumber node) {
  return write_and_notify([node](Ledger& ledger) { return ledger.leave(node); });  // runs that it kept become claimable
}

Task<Result<std::vector<NodeState>>> SqliteStore::nodes() {
  return read([](Reader& reader) { return reader.ledger.nodes(); });
}

Task<Result<std::vector<Result<Accepted>>>> SqliteStore::enqueue(std::vector<NewRun> runs) {
  auto answers = co_await run_on(
      writing_.reactor(),
      writer_->write_each(std::move(runs), [](Ledger& ledger, NewRun& run) { return ledger.enqueue(std::move(run)); }));
  notification_.notify();
  co_return answers;
}

Task<Result<std::vector<std::pair<std::string, domain::RunState>>>> SqliteStore::cancel(std::string id) {
  return write_and_notify([id = std::move(id)](Ledger& ledger) { return ledger.cancel(id); });
}

Task<Result<domain::RunState>> SqliteStore::resolve(std::string id, domain::Resolution how) {
  return write_and_notify([id = std::move(id), how](Ledger& ledger) { return ledger.resolve(id, how); });
}

Task<Result<>> SqliteStore::answer(std::string id) {
  return write_and_notify([id = std::move(id)](Ledger& ledger) { return ledger.answer(id); });
}

Task<Result<std::vector<Ready>>> SqliteStore::ready(std::uint32_t most) {
  STINT_CO_TRY(const std::uint64_t now, look());
  if (now == nothing_ready_) co_return std::vector<Ready>();
  auto ready = co_await read([most](Reader& reader) { return reader.ledger.ready(most); });
  if (ready && ready->empty()) nothing_ready_ = now;  // a ready run may become startable by time alone
  co_return ready;
}

Task<Result<std::vector<Claim>>> SqliteStore::claim(NodeNumber node, std::string agent, std::uint32_t most,
                                                    std::string only, std::string waited) {
  return write([node, agent = std::move(agent), most, only = std::move(only), waited = std::move(waited)](
                   Ledger& ledger) { return ledger.claim(node, agent, most, {.only = only, .waited = waited}); });
}

Task<Result<std::vector<Claim>>> SqliteStore::owned(NodeNumber node) {
  return write([node](Ledger& ledger) { return ledger.owned(node); });
}

Task<Result<std::vector<std::optional<domain::RunState>>>> SqliteStore::settle(NodeNumber node,
                                                                               std::vector<Settlement> settlements) {
  return write_and_notify([node, settlements = std::move(settlements)](
                              Ledger& ledger) mutable -> Result<std::vector<std::optional<domain::RunState>>> {
    std::vector<std::optional<domain::RunState>> states;
    for (Settlement& settlement : settlements) {
      STINT_TRY(const auto state, ledger.settle(node, std::move(settlement)));
      states.push_back(state);
    }
    return states;
  });
}

Task<Result<bool>> SqliteStore::mark(NodeNumber node, AttemptKey attempt, bool unsafe) {
  return write([node, attempt, unsafe](Ledger& ledger) { return ledger.mark(node, attempt, unsafe); });
}

Task<Result<bool>> SqliteStore::note(NodeNumber node, AttemptKey attempt, std::string cause, std::string data) {
  return write([node, attempt, cause = std::move(cause), data = std::move(data)](Ledger& ledger) mutable {
    return ledger.note(node, attempt, std::move(cause), std::move(data));
  });
}

Task<Result<bool>> SqliteStore::put_message(NodeNumber node, AttemptKey attempt, Message message) {
  return write(
      [=, message = std::move(message)](Ledger& ledger) { return ledger.put_message(node, attempt, message); });
}

Task<Result<bool>> SqliteStore::append_output(NodeNumber node, AttemptKey attempt, std::string text) {
  return write(
      [node, attempt, text = std::move(text)](Ledger& ledger) { return ledger.append_output(node, attempt, text); });
}

Task<Result<bool>> SqliteStore::provider_answered(NodeNumber node, AttemptKey attempt) {
  return write_and_notify([node, attempt](Ledger& ledger) { return ledger.provider_answered(node, attempt); });
}

Task<Result<std::optional<std::vector<FamilyUse>>>> SqliteStore::report(NodeNumber node, AttemptKey attempt,
                                                                        Use so_far) {
  return write([node, attempt, so_far](Ledger& ledger) { return ledger.report(node, attempt, so_far); });
}

/// A deadline follows the wall clock: after a jump of that, the cached answer is invalid.
bool SqliteStore::is_nothing_due(std::uint64_t now) const {
  if (now != nothing_due_.at) return false;
  const StoreClock::Seen& then = nothing_due_.seen;
  const Duration gone = clock_.now() - then.now, wall_gone = clock_.wall() - then.wall;
  if (std::chrono::abs(wall_gone - gone) > StoreClock::kJump) return false;
  if (gone - (clock_.awake() - then.awake_now) > StoreClock::kJump) return false;  // the machine slept
  return !nothing_due_.next || std::max(gone, wall_gone) < std::min(*nothing_due_.next, Duration(kDueMax));
}

Task<Result<Ticked>> SqliteStore::tick() {
  STINT_CO_TRY(const std::uint64_t now, look());
  if (is_nothing_due(now)) {
    Ticked nothing;
    if (nothing_due_.next) nothing.next = *nothing_due_.next - (clock_.now() - nothing_due_.seen.now);
    co_return nothing;
  }
  nothing_due_ = {};
  bool alone = false;
  auto ticked = co_await write([this, &alone](Ledger& ledger) -> Result<Ticked> {
    STINT_TRY(Ticked done, ledger.tick());
    STINT_CHECK(writer_->rows().see_clock(ledger.clock()));
    STINT_TRY(alone, writer_->rows().are_all_own());
    return done;
  });
  if (ticked && ticked->changed()) {
    notification_.notify();
  } else if (ticked && alone) {
    nothing_due_ = {now, ticked->next, clock_.look()};
  }
  co_return ticked;
}

/// A notification reports commits of this process; a look reports those of others.
Task<Result<std::uint64_t>> SqliteStore::wait(std::uint64_t seen, Duration most) {
  for (Duration left = most; left > Duration::zero();) {
    STINT_CO_TRY(const std::uint64_t now, look());
    const bool changed = std::exchange(waited_, now) != now;
    const bool by_sample = changed && std::exchange(sampled_, false);
    if (changed) notification_.notify();
    const Duration pause = std::min(left, look_every_);
    if (co_await notification_.wait(seen, pause) != seen) {
      if (!by_sample) look_every_ = kLookEveryMin;
      break;
    }
    left -= pause;
    look_every_ = std::min(2 * look_every_, kLookEveryMax);
  }
  co_return notification_.count();
}

Task<Result<std::optional<Run>>> SqliteStore::find(std::string id) {
  return read([id = std::move(id)](Reader& reader) -> Result<std::optional<Run>> {
    STINT_TRY(std::optional<RunRow> row, reader.rows.find(id));
    if (!row) return std::nullopt;
    STINT_TRY(Run run, reader.ledger.shown(std::move(*row)));
    return std::move(run);
  });
}

Task<Result<std::vector<Run>>> SqliteStore::list(Filter filter) {
  return read([filter = std::move(filter)](Reader& reader) -> Result<std::vector<Run>> {
    STINT_TRY(std::vector<RunRow> rows, reader.rows.list(reader.ledger.kept(filter)));
    return reader.ledger.shown(std::move(rows));
  });
}

Task<Result<Matches>> SqliteStore::match(Filter filter) {
  return read([filter = std::move(filter)](Reader& reader) { return reader.rows.match(reader.ledger.kept(filter)); });
}

Task<Result<Accepted>> SqliteStore::begin_batch(NewBatch batch) {
  return write([batch = std::move(batch)](Ledger& ledger) mutable { return ledger.begin_batch(std::move(batch)); });
}

Task<Result<std::optional<Batch>>> SqliteStore::batch(std::string id) {
  return read([id = std::move(id)](Reader& reader) { return reader.ledger.batch(id); });
}

Task<Result<std::vector<Batch>>> SqliteStore::batches(BatchNumber before, std::uint32_t most) {
  return read([before, most](Reader& reader) { return reader.ledger.batches(before, most); });
}

/// Asks the reader first: nearly always there is none, and then nothing is written.
Task<Result<std::optional<BatchClaim>>> SqliteStore::claim_batch(NodeNumber node) {
  STINT_CO_TRY(const bool any, co_await read([node](Reader& reader) { return reader.ledger.has_batch_for(node); }));
  if (!any) co_return std::nullopt;
  co_return co_await write([node](Ledger& ledger) { return ledger.claim_batch(node); });
}

Task<Result<std::optional<BatchClaim>>> SqliteStore::advance_batch(BatchClaim claim, BatchStep step) {
  return write(
      [claim = std::move(claim), step = std::move(step)](Ledger& ledger) { return ledger.advance_batch(claim, step); });
}

Task<Result<>> SqliteStore::release_batch(BatchClaim claim) {
  return write([claim = std::move(claim)](Ledger& ledger) { return ledger.release_batch(claim); });
}

Task<Result<std::optional<Batch>>> SqliteStore::stop_batch(std::string id) {
  return write([id = std::move(id)](Ledger& ledger) { return ledger.stop_batch(id); });
}

Task<Result<std::vector<Run>>> SqliteStore::with_key(std::string agent, std::string key) {
  return read([agent = std::move(agent), key = std::move(key)](Reader& reader) -> Result<std::vector<Run>> {
    STINT_TRY(std::vector<RunRow> rows, reader.rows.with_key(agent, key));
    return reader.ledger.shown(std::move(rows));
  });
}

Task<Result<std::vector<FamilyUse>>> SqliteStore::used(std::vector<std::string> heads) {
  return read([heads = std::move(heads)](Reader& reader) { return reader.ledger.used(heads); });
}

Task<Result<std::vector<Event>>> SqliteStore::events(std::string id, std::int64_t after, std::uint32_t most) {
  return read([id = std::move(id), after, most](Reader& reader) -> Result<std::vector<Event>> {
    STINT_TRY(std::vector<Event> found, reader.rows.events(id, after, most));
    return reader.ledger.shown(std::move(found));
  });
}

Task<Result<FeedPage>> SqliteStore::feed(std::string cursor, std::uint32_t most) {
  return read([cursor = std::move(cursor), most](Reader& reader) -> Result<FeedPage> {
    STINT_TRY(FeedPage page, reader.rows.feed(cursor, most));
    page.events = reader.ledger.shown(std::move(page.events));
    return page;
  });
}

Task<Result<std::vector<Why>>> SqliteStore::why(std::string id) {
  return read([id = std::move(id)](Reader& reader) -> Result<std::vector<Why>> {
    STINT_TRY(const auto place, reader.rows.place(id, kPlaceMax));
    return reader.ledger.why(id, place);
  });
}

Task<Result<std::vector<std::string>>> SqliteStore::messages(std::string id, std::uint32_t from,
                                                             std::size_t bytes_max) {
  return read(
      [id = std::move(id), from, bytes_max](Reader& reader) { return reader.rows.messages(id, from, bytes_max); });
}

Task<Result<Output>> SqliteStore::output(std::string id) {
  return read([id = std::move(id)](Reader& reader) { return reader.rows.output(id); });
}

/// One read transaction: its first statement fixes what all of them see.
Task<Result<Snapshot>> SqliteStore::snapshot(std::uint32_t listed, std::uint32_t text_bytes_max) {
  return read([listed, text_bytes_max](Reader& reader) -> Result<Snapshot> {
    STINT_CHECK(reader.rows.begin_read());
    Result<Snapshot> snapshot = reader.ledger.snapshot(listed, text_bytes_max);
    STINT_CHECK(reader.rows.end_read());
    return snapshot;
  });
}

Task<Result<>> SqliteStore::announce(NodeNumber node, std::string cause, std::string data) {
  return write([node, cause = std::move(cause), data = std::move(data)](Ledger& ledger) {
    return ledger.announce(node, cause, data);
  });
}

Task<Result<Stats>> SqliteStore::stats() {
  return read([](Reader& reader) { return reader.rows.stats(); });
}

Task<Result<std::vector<QueueState>>> SqliteStore::queues() {
  return read([](Reader& reader) { return reader.rows.queues(); });
}

Task<Result<std::vector<Spent>>> SqliteStore::spent(WallTime since, SpentBy by) {
  return read([since, by](Reader& reader) { return reader.rows.spent(since, by); });
}

Task<Result<std::vector<EndedRun>>> SqliteStore::ended(std::string agent, Duration within, std::uint32_t most) {
  return read(
      [agent = std::move(agent), within, most](Reader& reader) { return reader.ledger.ended(agent, within, most); });
}

Task<Result<Duration>> SqliteStore::sample(NodeNumber node, Sample sample) {
  // With the clock, which the next tick would write otherwise: one commit of an idle daemon instead of two.
  auto next = co_await write([this, node, sample](Ledger& ledger) -> Result<Duration> {
    STINT_TRY(const Duration left, ledger.sample(node, sample));
    STINT_CHECK(writer_->rows().see_clock(ledger.clock()));
    return left;
  });
  sampled_ = true;
  co_return next;
}

Task<Result<Series>> SqliteStore::series(SeriesQuery query) {
  return read([query](Reader& reader) { return reader.ledger.series(query); });
}

Task<Result<std::uint64_t>> SqliteStore::prune(Duration older_than, std::uint32_t most) {
  return write([older_than, most](Ledger& ledger) { return ledger.prune(older_than, most); });
}

/// Asks the reader first whether it is due: a process that has nothing to delete writes nothing.
Task<Result<std::uint64_t>> SqliteStore::prune_if_due(Duration keep, Duration every, std::uint32_t most) {
  STINT_CO_TRY(const bool due, co_await read([every](Reader& reader) { return reader.ledger.is_prune_due(every); }));
  if (!due) co_return 0;
  co_return co_await write([keep, every, most](Ledger& ledger) { return ledger.prune_if_due(keep, every, most); });
}

Task<Result<std::vector<AgentEntry>>> SqliteStore::agents() {
  return read([](Reader& reader) { return reader.ledger.agents(); });
}

Task<Result<std::vector<RunRecord>>> SqliteStore::dump(RunNumber after, std::uint32_t most) {
  return read([after, most](Reader& reader) -> Result<std::vector<RunRecord>> {
    STINT_TRY(auto rows, reader.rows.dump(after, most));
    return reader.ledger.shown(std::move(rows));
  });
}

Task<Result<std::uint64_t>> SqliteStore::load(std::vector<RunRecord> records) {
  return write_and_notify([records = std::move(records)](Ledger& ledger) -> Result<std::uint64_t> {
    std::uint64_t added = 0;
    for (const RunRecord& record : records) {
      STINT_TRY(const bool fresh, ledger.load(record));
      if (fresh) ++added;
    }
    return added;
  });
}

Task<Result<std::vector<std::string>>> SqliteStore::check() {
  return read([](Reader& reader) { return reader.rows.check(); });
}

Task<Result<>> SqliteStore::drop_lease(NodeNumber node) {
  nothing_due_ = {};  // the cached answer ignores locks of this process's nodes
  return write([this, node](Ledger&) -> Result<> {
    writer_->rows().drop_lease(node);
    return {};
  });
}

}  // namespace stint::store
