#include "store/sqlite_store.hpp"

#include "os/slot_file.hpp"
#include "stint/run_on.hpp"
#include "store_sql_sqlite.hpp"

#include <filesystem>

namespace stint::store {
namespace {

namespace query = sqlite::query;

constexpr unsigned kFileMode = 0600;
constexpr std::int64_t kApplication = 0x53544E54;  // `STNT`, in the file's header

Result<std::int64_t> ask(Database& database, std::string_view sql) {
  Query query(database, sql);
  std::int64_t answer = 0;
  if (query.next()) answer = query.number(0);
  STINT_CHECK(query.run());
  return answer;
}

/// Under the gate, so that two processes that start at once do not both do it.
Result<Schema> migrate(Database& database, const std::string& path) {
  constexpr auto kNewest = static_cast<std::int64_t>(sqlite::kMigrations.size());
  STINT_TRY(const std::int64_t version, ask(database, query::version));
  STINT_TRY(const std::int64_t application, ask(database, query::application));
  STINT_TRY(const std::int64_t tables, ask(database, query::count_tables));
  if (application != kApplication && (tables > 0 || version > 0)) {
    return fail(Errc::denied,
                path + " is no database of Stint, but of another program. Move it away, and a new one is made");
  }
  if (version > kNewest) {
    STINT_TRY(const std::int64_t oldest, ask(database, query::oldest_program));
    if (oldest <= kNewest) return Schema{version, version};
    return fail(Errc::denied, path + " was made by a newer Stint (schema " + std::to_string(version) +
                                  ", this one knows " + std::to_string(kNewest) + "). Install that one");
  }
  if (version == kNewest) return Schema{version, version};
  STINT_CHECK(database.run(query::begin));
  for (std::int64_t next = version; next < kNewest; ++next) {
    if (Result<> done = database.run(sqlite::kMigrations[static_cast<std::size_t>(next)]); !done) {
      (void)database.run(query::roll_back);
      return fail(std::move(done.error()));
    }
  }
  STINT_CHECK(database.run(std::string(query::set_version) + std::to_string(kNewest)));
  STINT_CHECK(database.run(std::string(query::set_application) + std::to_string(kApplication)));
  STINT_CHECK(database.run(query::commit));
  return Schema{version, kNewest};
}

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::blocking_open(std::string path, const domain::Ambient& ambient,
                                                                Duration patience) {
  std::error_code error;
  // Where it lies: SQLite has its log there, and who comes by a link must find the same leases.
  if (const auto place = std::filesystem::weakly_canonical(path, error); !error) path = place.string();
  const std::string leases = path + ".workers";
  std::filesystem::create_directories(leases, error);
  if (error) {
    return fail(Errc::denied,
                "cannot make " + leases + ": " + error.message() + ". Make its directory writable for you");
  }
  STINT_TRY(os::Fd gate, os::open_shared_file(path + ".gate", kFileMode));
  STINT_CHECK(blocking_take(gate, patience));
  Schema schema;
  auto opened = [&]() -> Result<Database> {
    STINT_TRY(Database database, Database::open(path, Database::Access::write, patience));
    STINT_TRY(schema, migrate(database, path));
    return database;
  }();
  os::unlock_slot(gate.get());
  STINT_TRY(Database database, std::move(opened));
  STINT_TRY(Database for_reading, Database::open(path, Database::Access::read, patience));
  std::unique_ptr<SqliteStore> store(new SqliteStore(path, leases, ambient));
  store->schema_ = schema;
  store->writer_ = std::make_unique<SqliteWriter>(store->writing_.reactor(), std::move(database), leases,
                                                  std::move(gate), ambient, patience);
  store->reader_ = std::make_unique<Reader>(std::move(for_reading), leases, ambient);
  return store;
}

SqliteStore::~SqliteStore() = default;

template <class Step>
auto SqliteStore::write(Step step) -> Task<std::invoke_result_t<Step&, Ledger&>> {
  co_return co_await run_on(writing_.reactor(), writer_->write(std::move(step)));
}

template <class Step>
auto SqliteStore::write_and_ring(Step step) -> Task<std::invoke_result_t<Step&, Ledger&>> {
  auto result = co_await write(std::move(step));
  bell_.ring();
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
  return write_and_ring(
      [limit = std::move(limit), capacity](Ledger& ledger) { return ledger.resize(limit, capacity); });
}

Task<Result<>> SqliteStore::pause(std::string limit, std::optional<WallTime> until) {
  return write([limit = std::move(limit), until](Ledger& ledger) { return ledger.pause(limit, until); });
}

Task<Result<std::uint64_t>> SqliteStore::resume(std::string limit) {
  return write_and_ring([limit = std::move(limit)](Ledger& ledger) { return ledger.resume(limit); });
}

Task<Result<std::vector<LimitState>>> SqliteStore::limits() {
  return read([](Reader& reader) { return reader.ledger.limits(); });
}

Task<Result<WorkerNumber>> SqliteStore::enrol(std::string label) {
  return write([label = std::move(label)](Ledger& ledger) { return ledger.enrol(label); });
}

Task<SqliteStillness::Look> SqliteStore::look() {
  co_return stillness_.look((co_await current_token()).executor().now());
}

Task<Result<Beat>> SqliteStore::beat(WorkerNumber worker) {
  const SqliteStillness::Look now = co_await look();
  if (now.settled && now == beaten_.at && worker == beaten_.worker) {
    os::say_written(SqliteRows::lease_path(leases_, worker), ambient_.wall_now());
    co_return beaten_.beat;
  }
  auto beat = co_await write([worker](Ledger& ledger) { return ledger.beat(worker); });
  if (beat && beat->alive) beaten_ = {now, worker, *beat};
  co_return beat;
}

Task<Result<>> SqliteStore::drain(WorkerNumber worker) {
  return write([worker](Ledger& ledger) { return ledger.drain(worker); });
}

Task<Result<>> SqliteStore::leave(WorkerNumber worker) {
  return write_and_ring([worker](Ledger& ledger) { return ledger.leave(worker); });  // what it kept is for all
}

Task<Result<std::vector<WorkerState>>> SqliteStore::workers() {
  return read([](Reader& reader) { return reader.ledger.workers(); });
}

Task<Result<std::vector<Result<Accepted>>>> SqliteStore::enqueue(std::vector<NewRun> runs) {
  auto answers = co_await run_on(
      writing_.reactor(),
      writer_->write_each(std::move(runs), [](Ledger& ledger, NewRun& run) { return ledger.enqueue(std::move(run)); }));
  bell_.ring();
  co_return answers;
}

Task<Result<std::vector<std::pair<std::string, domain::RunState>>>> SqliteStore::cancel(std::string id) {
  return write_and_ring([id = std::move(id)](Ledger& ledger) { return ledger.cancel(id); });
}

Task<Result<domain::RunState>> SqliteStore::resolve(std::string id, domain::Resolution how) {
  return write_and_ring([id = std::move(id), how](Ledger& ledger) { return ledger.resolve(id, how); });
}

Task<Result<>> SqliteStore::answer(std::string id) {
  return write_and_ring([id = std::move(id)](Ledger& ledger) { return ledger.answer(id); });
}

Task<Result<std::vector<Ready>>> SqliteStore::ready(std::uint32_t most) {
  const SqliteStillness::Look now = co_await look();
  if (now.settled && now == nothing_ready_) co_return std::vector<Ready>();
  auto ready = co_await read([most](Reader& reader) { return reader.ledger.ready(most); });
  if (ready && ready->empty()) nothing_ready_ = now;  // what is there may become startable by time alone
  co_return ready;
}

Task<Result<std::vector<Claim>>> SqliteStore::claim(WorkerNumber worker, std::string agent, std::uint32_t most,
                                                    std::string only) {
  return write([worker, agent = std::move(agent), most, only = std::move(only)](Ledger& ledger) {
    return ledger.claim(worker, agent, most, only);
  });
}

Task<Result<std::vector<Claim>>> SqliteStore::owned(WorkerNumber worker) {
  return write([worker](Ledger& ledger) { return ledger.owned(worker); });
}

Task<Result<std::vector<std::optional<domain::RunState>>>> SqliteStore::settle(WorkerNumber worker,
                                                                               std::vector<Settlement> settlements) {
  return write_and_ring([worker, settlements = std::move(settlements)](
                            Ledger& ledger) mutable -> Result<std::vector<std::optional<domain::RunState>>> {
    std::vector<std::optional<domain::RunState>> states;
    for (Settlement& settlement : settlements) {
      STINT_TRY(const auto state, ledger.settle(worker, std::move(settlement)));
      states.push_back(state);
    }
    return states;
  });
}

Task<Result<bool>> SqliteStore::mark(WorkerNumber worker, RunNumber run, std::int64_t fence, bool unsafe) {
  return write([worker, run, fence, unsafe](Ledger& ledger) { return ledger.mark(worker, run, fence, unsafe); });
}

Task<Result<bool>> SqliteStore::note(WorkerNumber worker, RunNumber run, std::int64_t fence, std::string cause,
                                     std::string data) {
  return write([worker, run, fence, cause = std::move(cause), data = std::move(data)](Ledger& ledger) mutable {
    return ledger.note(worker, run, fence, std::move(cause), std::move(data));
  });
}

Task<Result<bool>> SqliteStore::append_output(WorkerNumber worker, RunNumber run, std::int64_t fence,
                                              std::string text) {
  return write([worker, run, fence, text = std::move(text)](Ledger& ledger) {
    return ledger.append_output(worker, run, fence, text);
  });
}

Task<Result<Ticked>> SqliteStore::tick() {
  const SqliteStillness::Look now = co_await look();
  if (now.settled && now == nothing_due_.at && (!nothing_due_.next || *nothing_due_.next > ambient_.wall_now())) {
    Ticked nothing;
    nothing.next = nothing_due_.next;
    co_return nothing;
  }
  nothing_due_ = {};
  bool alone = false;
  auto ticked = co_await write([this, &alone](Ledger& ledger) -> Result<Ticked> {
    STINT_TRY(Ticked done, ledger.tick());
    STINT_TRY(alone, writer_->rows().are_all_own());
    return done;
  });
  if (ticked && ticked->changed()) {
    bell_.ring();
  } else if (ticked && alone) {
    nothing_due_ = {now, ticked->next};
  }
  co_return ticked;
}

/// In this process the bell tells; of others, only that the file was written to.
Task<Result<std::uint64_t>> SqliteStore::wait(std::uint64_t seen, Duration most) {
  for (Duration left = most; left > Duration::zero();) {
    const SqliteStillness::Look now = co_await look();
    if (std::exchange(waited_, now) != now) bell_.ring();
    const Duration pause = std::min(left, look_every_);
    if (co_await bell_.hear(seen, pause) != seen) {
      look_every_ = kLookEvery;
      break;
    }
    left -= pause;
    look_every_ = std::min(2 * look_every_, kLookSeldom);
  }
  co_return bell_.rings();
}

Task<Result<std::optional<Run>>> SqliteStore::find(std::string id) {
  return read([id = std::move(id)](Reader& reader) { return reader.rows.find(id); });
}

Task<Result<std::vector<Run>>> SqliteStore::list(Filter filter) {
  return read([filter = std::move(filter)](Reader& reader) { return reader.rows.list(filter); });
}

Task<Result<std::vector<Event>>> SqliteStore::events(std::string id, std::int64_t after, std::uint32_t most) {
  return read([id = std::move(id), after, most](Reader& reader) { return reader.rows.events(id, after, most); });
}

Task<Result<FeedPage>> SqliteStore::feed(std::string cursor, std::uint32_t most) {
  return read([cursor = std::move(cursor), most](Reader& reader) { return reader.rows.feed(cursor, most); });
}

Task<Result<std::vector<Why>>> SqliteStore::why(std::string id) {
  return read([id = std::move(id)](Reader& reader) -> Result<std::vector<Why>> {
    STINT_TRY(const auto place, reader.rows.place(id, kPlaceMax));
    return reader.ledger.why(id, place);
  });
}

Task<Result<Output>> SqliteStore::output(std::string id) {
  return read([id = std::move(id)](Reader& reader) { return reader.rows.output(id); });
}

Task<Result<Stats>> SqliteStore::stats() {
  return read([](Reader& reader) { return reader.rows.stats(); });
}

Task<Result<std::vector<Spent>>> SqliteStore::spent(WallTime since) {
  return read([since](Reader& reader) { return reader.rows.spent(since); });
}

Task<Result<std::uint64_t>> SqliteStore::prune(WallTime before, std::uint32_t most) {
  return write([before, most](Ledger& ledger) { return ledger.prune(before, most); });
}

Task<Result<std::vector<AgentEntry>>> SqliteStore::agents() {
  return read([](Reader& reader) { return reader.ledger.agents(); });
}

Task<Result<std::vector<RunRecord>>> SqliteStore::dump(RunNumber after, std::uint32_t most) {
  return read([after, most](Reader& reader) { return reader.rows.dump(after, most); });
}

Task<Result<std::uint64_t>> SqliteStore::load(std::vector<RunRecord> records) {
  return write_and_ring([records = std::move(records)](Ledger& ledger) -> Result<std::uint64_t> {
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

Task<Result<>> SqliteStore::drop_lease(WorkerNumber worker) {
  nothing_due_ = {};  // what the lock of a worker of ours tells is not looked at
  return write([this, worker](Ledger&) -> Result<> {
    writer_->rows().drop_lease(worker);
    return {};
  });
}

}  // namespace stint::store
