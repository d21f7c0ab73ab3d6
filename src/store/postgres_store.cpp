#include "store/postgres_store.hpp"

#include "domain/run_id.hpp"
#include "stint/combinators.hpp"
#include "store/postgres_load.hpp"
#include "store/postgres_migrate.hpp"
#include "store/record.hpp"
#include "store/words.hpp"
#include "store_sql_postgres.hpp"

#include <algorithm>
#include <charconv>
#include <set>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::Stop;
using std::chrono::milliseconds;
using Numbers = std::vector<std::optional<std::int64_t>>;
using Texts = std::vector<std::string>;
namespace query = postgres::query;

Claim read_claim(const PostgresRows& rows, int row) {
  Claim claim;
  claim.run = rows.number(row, 0);
  claim.id = rows.text(row, 1);
  claim.fence = rows.number(row, 2);
  claim.attempt = static_cast<std::uint32_t>(rows.number(row, 3));
  claim.lost = static_cast<std::uint32_t>(rows.number(row, 4));
  claim.expires_at = rows.time(row, 5);
  claim.input = rows.text(row, 6);
  claim.agent = rows.text(row, 7);
  claim.session = rows.text(row, 8);
  claim.on_crash = read_on_crash(rows.text(row, 9));
  claim.unsafe = rows.flag(row, 10);
  claim.left = to_duration(rows.maybe(row, 11));
  if (claim.left) claim.left = std::max(*claim.left, Duration::zero());
  return claim;
}

std::vector<Claim> read_claims(const PostgresRows& rows) {
  std::vector<Claim> claims;
  for (int row = 0; row < rows.size(); ++row) claims.push_back(read_claim(rows, row));
  return claims;
}

/// In the order of `columns` in sql/postgres/queries.sql.
Result<Run> read_run(const PostgresRows& rows, int row) {
  int column = 0;
  const auto text = [&] { return rows.text(row, column++); };
  const auto number = [&] { return rows.number(row, column++); };
  const auto time = [&] { return rows.time(row, column++); };
  Run run;
  run.number = number();
  run.id = text();
  run.agent = text();
  run.session = text();
  run.parent = text();
  run.key = text();
  STINT_TRY(run.state, read_state(text()));
  STINT_TRY(run.hold, read_hold(text()));
  run.stop = read_stop(text());
  run.error = text();
  run.attempt = static_cast<std::uint32_t>(number());
  run.lost = static_cast<std::uint32_t>(number());
  run.fence = number();
  run.seq = number();
  run.unsafe = rows.flag(row, column++);
  run.on_crash = read_on_crash(text());
  run.worker = rows.maybe(row, column++);
  run.created_at = time().value_or(WallTime());
  run.not_before = time();
  run.deadline = time();
  run.expires_at = time();
  run.started_at = time();
  run.finished_at = time();
  run.tokens = number();
  run.money_micros = number();
  return run;
}
constexpr int kInputColumn = 25, kResultColumn = 26;  // behind those of a run
Result<Run> read_whole_run(const PostgresRows& rows, int row) {
  STINT_TRY(Run run, read_run(rows, row));
  run.input = rows.text(row, kInputColumn);
  run.result = rows.text(row, kResultColumn);
  return run;
}

/// In the order of the view `told`.
Result<Event> read_event(const PostgresRows& rows, int row) {
  Event event;
  event.run = rows.text(row, 0);
  event.seq = rows.number(row, 2);
  event.fence = rows.number(row, 3);
  event.cause = rows.text(row, 4);
  if (!rows.is_null(row, 5)) {
    STINT_TRY(event.state, read_state(rows.text(row, 5)));
  }
  STINT_TRY(event.hold, read_hold(rows.text(row, 6)));
  event.worker = rows.maybe(row, 7);
  event.error = rows.text(row, 8);
  event.data = rows.text(row, 9);
  event.at = rows.time(row, 10).value_or(WallTime());
  return event;
}
constexpr int kXidColumn = 11, kEventColumn = 12;

/// "xid-id".
struct Cursor {
  std::uint64_t xid = 0;
  std::int64_t event = 0;

  [[nodiscard]] std::string text() const { return std::to_string(xid) + "-" + std::to_string(event); }
};
Result<Cursor> read_place(const std::string& text) {
  Cursor cursor;
  if (text.empty()) return cursor;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, cursor.xid);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '-') {
    const auto second = std::from_chars(first.ptr + 1, end, cursor.event);
    if (second.ec == std::errc() && second.ptr == end) return cursor;
  }
  return fail(no_such_cursor(text));
}

}  // namespace

// ---- opening -------------------------------------------------------------------------------------------------------

Task<Result<std::unique_ptr<PostgresStore>>> PostgresStore::open(Reactor& reactor, std::string url,
                                                                 PostgresOptions options) {
  const Deadline deadline = Deadline::after(reactor.now(), options.migration);
  STINT_CO_TRY(const Schema schema, co_await with_deadline(deadline, migrate_postgres(reactor, url, options.patience)));
  std::unique_ptr<PostgresStore> store(new PostgresStore(reactor, url, options));
  store->schema_ = schema;
  STINT_CO_CHECK(co_await store->look_at_clock());
  co_return std::move(store);
}

Task<Result<>> PostgresStore::write(std::string_view sql, Parameters parameters) {
  STINT_CO_CHECK(co_await writing_.run(sql, std::move(parameters)));
  co_return Result<>();
}

Task<Result<std::int64_t>> PostgresStore::write_number(std::string_view sql, Parameters parameters) {
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(sql, std::move(parameters)));
  co_return rows.number(0, 0);
}

Task<Result<PostgresRows>> PostgresStore::read(std::string_view sql, Parameters parameters) {
  return reading_.run(sql, std::move(parameters), PostgresLane::Repeat::always);
}

// ---- agents and limits ---------------------------------------------------------------------------------------------

Task<Result<>> PostgresStore::define(std::vector<AgentEntry> agents) {
  for (const AgentEntry& agent : agents) {
    Texts limits;
    Numbers weights;
    for (const LimitUse& use : agent.limits) {
      if (use.weight == 0) co_return fail(Errc::invalid, agent.name + ": a weight is at least 1");
      if (std::ranges::find(limits, use.limit) != limits.end()) {
        co_return fail(Errc::invalid, agent.name + ": names the limit '" + use.limit + "' twice");
      }
      limits.push_back(use.limit);
      weights.emplace_back(use.weight);
    }
    Parameters parameters;
    parameters.text(agent.name).texts(limits).numbers(weights).number(std::int64_t{agent.queued_max});
    parameters.number(std::int64_t{agent.attempts_max}).number(std::int64_t{agent.lost_max});
    parameters.number(to_ms(agent.backoff_base)).number(to_ms(agent.backoff_cap));
    STINT_CO_CHECK(co_await writing_.run(query::define, std::move(parameters), PostgresLane::Repeat::always));
  }
  co_return Result<>();
}

Task<Result<>> PostgresStore::resize(std::string limit, std::optional<std::uint32_t> capacity) {
  if (capacity == 0U) co_return fail(Errc::invalid, limit + ": a capacity is at least 1");
  STINT_CO_CHECK(co_await write(query::resize, Parameters().text(limit).number(wide(capacity))));
  bell_.ring();
  co_return Result<>();
}

Task<Result<>> PostgresStore::configure(std::map<std::string, std::uint32_t> capacities,
                                        std::vector<std::string> agents) {
  Texts limits;
  Numbers numbers;
  for (const auto& [name, capacity] : capacities) {
    if (capacity == 0) co_return fail(Errc::invalid, name + ": a capacity is at least 1");
    limits.push_back(name);
    numbers.emplace_back(capacity);
  }
  Parameters parameters;
  parameters.texts(limits).numbers(numbers).texts(agents);
  STINT_CO_CHECK(co_await writing_.run(query::configure, std::move(parameters), PostgresLane::Repeat::always));
  bell_.ring();
  co_return Result<>();
}

Task<Result<>> PostgresStore::pause(std::string limit, std::optional<Duration> length) {
  return write(query::pause, expect(Parameters().text(limit).number(maybe_ms(length))));
}

Task<Result<std::uint64_t>> PostgresStore::resume(std::string limit) {
  STINT_CO_TRY(const std::int64_t woken, co_await write_number(query::resume, expect(Parameters().text(limit))));
  bell_.ring();
  co_return static_cast<std::uint64_t>(woken);
}

Task<Result<std::vector<LimitState>>> PostgresStore::limits() {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::limits, {}));
  std::vector<LimitState> found;
  for (int row = 0; row < rows.size(); ++row) {
    LimitState state;
    state.name = rows.text(row, 0);
    state.capacity = small(rows.maybe(row, 1));
    state.units = rows.number(row, 2);
    state.runs = rows.number(row, 3);
    state.paused = rows.flag(row, 4);
    state.paused_until = rows.time(row, 5);
    state.ramp = small(rows.maybe(row, 6));
    state.paused_for = to_duration(rows.maybe(row, 7));
    found.push_back(std::move(state));
  }
  co_return found;
}

// ---- workers -------------------------------------------------------------------------------------------------------

Task<Result<WorkerNumber>> PostgresStore::enrol(std::string label) {
  const Duration asked_at = options_.since_boot();
  STINT_CO_TRY(const std::int64_t worker,
               co_await write_number(query::enrol, Parameters().text(label).number(to_ms(options_.lease))));
  renew(worker, asked_at);
  co_return worker;
}

Task<Result<Beat>> PostgresStore::beat(WorkerNumber worker) {
  const Duration asked_at = options_.since_boot();
  Parameters parameters;
  parameters.number(worker).number(to_ms(options_.lease));
  STINT_CO_TRY(const PostgresRows rows,
               co_await beating_.run(query::beat, std::move(parameters), PostgresLane::Repeat::always));
  Beat beat;
  for (int row = 0; row < rows.size(); ++row) {
    beat.alive = rows.flag(row, 0);
    if (rows.is_null(row, 1) || !beat.alive) continue;
    beat.stops.push_back({rows.number(row, 1), rows.number(row, 2), read_stop(rows.text(row, 3))});
  }
  if (beat.alive) renew(worker, asked_at);
  co_return beat;
}

PostgresLane::Guard PostgresStore::while_leased(WorkerNumber worker) const {
  return [this, worker]() -> Result<> {
    const auto lease = leases_.find(worker);
    if (lease == leases_.end() || options_.since_boot() < lease->second) return {};
    return fail(Errc::closed,
                "the lease of this worker is over: it slept, or was cut off; a beat tells what is left to it");
  };
}

Task<Result<>> PostgresStore::drain(WorkerNumber worker) { return write(query::drain, Parameters().number(worker)); }

Task<Result<>> PostgresStore::leave(WorkerNumber worker) {
  STINT_CO_CHECK(co_await write(query::leave, Parameters().number(worker)));
  claims_.erase(worker);
  leases_.erase(worker);
  bell_.ring();  // what it kept is for all
  co_return Result<>();
}

Task<Result<std::vector<WorkerState>>> PostgresStore::workers() {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::workers, Parameters().number(to_ms(options_.lease))));
  std::vector<WorkerState> found;
  for (int row = 0; row < rows.size(); ++row) {
    found.push_back({.number = rows.number(row, 0),
                     .label = rows.text(row, 1),
                     .state = rows.text(row, 2),
                     .last_beat_ago = milliseconds(rows.number(row, 3)),
                     .runs = static_cast<std::uint64_t>(rows.number(row, 4))});
  }
  co_return found;
}

// ---- from outside --------------------------------------------------------------------------------------------------

Task<Result<std::vector<Result<Accepted>>>> PostgresStore::enqueue(std::vector<NewRun> runs) {
  Texts ids, agents, sessions, parents, keys, on_crash, inputs, draws_on;
  Numbers priorities, delays, deadlines, deadlines_in, budgets, keepers;
  std::vector<Result<Accepted>> answers(runs.size(), fail(Errc::failed, "there was no answer"));
  std::vector<std::size_t> asked;  // what has an answer already is not asked
  for (std::size_t i = 0; i < runs.size(); ++i) {
    NewRun& run = runs[i];
    if (!domain::is_run_id(run.id)) {
      answers[i] = fail(Errc::invalid, "'" + run.id + "' is no id of a run");
      continue;
    }
    if (std::abs(run.priority) > domain::kPriorityMax) {
      answers[i] = fail(Errc::invalid, "a priority is from -1000 to 1000");
      continue;
    }
    asked.push_back(i);
    ids.push_back(std::move(run.id));
    agents.push_back(std::move(run.agent));
    sessions.push_back(std::move(run.session));
    parents.push_back(std::move(run.parent));
    keys.push_back(std::move(run.key));
    on_crash.emplace_back(to_string(run.on_crash));
    inputs.push_back(std::move(run.input));
    priorities.emplace_back(run.priority);
    delays.emplace_back(to_ms(std::max(run.delay, Duration::zero())));
    deadlines.push_back(maybe_unix_ms(run.deadline));
    deadlines_in.push_back(maybe_ms(run.deadline_in));
    budgets.push_back(maybe_ms(run.budget));
    keepers.push_back(run.kept_for);
    std::string& heads = draws_on.emplace_back();
    for (const std::string& head : run.draws_on) heads += (heads.empty() ? "" : " ") + head;
  }
  if (asked.empty()) co_return answers;
  Parameters parameters;
  parameters.texts(ids).texts(agents).texts(sessions).texts(parents).texts(keys).numbers(priorities);
  parameters.numbers(delays).numbers(deadlines).numbers(budgets).texts(on_crash).texts(inputs).numbers(deadlines_in);
  expect(parameters);
  const bool kept = std::ranges::any_of(keepers, [](const auto& keeper) { return keeper.has_value(); }) ||
                    std::ranges::any_of(draws_on, [](const std::string& heads) { return !heads.empty(); });
  if (kept) parameters.numbers(keepers).texts(draws_on);
  STINT_CO_TRY(const PostgresRows rows,
               co_await writing_.run(kept ? query::enqueue_kept : query::enqueue, std::move(parameters)));
  bell_.ring();
  for (int row = 0; row < rows.size(); ++row) {
    Result<Accepted>& answer = answers[asked[static_cast<std::size_t>(row)]];
    if (rows.is_null(row, 2)) {
      answer = Accepted{rows.text(row, 0), rows.flag(row, 1)};
    } else {
      answer = fail(postgres_error(rows.text(row, 2), rows.text(row, 3)));
    }
  }
  co_return answers;
}

Task<Result<std::vector<std::pair<std::string, RunState>>>> PostgresStore::cancel(std::string id) {
  std::vector<std::pair<std::string, RunState>> reached;
  while (true) {  // ends: what has been asked to stop takes no more children
    STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::cancel, expect(Parameters().text(id)),
                                                                PostgresLane::Repeat::if_not_done));
    if (rows.empty()) co_return reached;
    bell_.ring();
    for (int row = 0; row < rows.size(); ++row) {
      STINT_CO_TRY(const RunState state, read_state(rows.text(row, 1)));
      reached.emplace_back(rows.text(row, 0), state);
    }
  }
}

Task<Result<RunState>> PostgresStore::resolve(std::string id, domain::Resolution how) {
  const RunState state = domain::after_resolution(how);
  STINT_CO_CHECK(
      co_await write(query::resolve, expect(Parameters().text(id).text(to_string(how)).text(to_string(state)))));
  bell_.ring();
  co_return state;
}

Task<Result<>> PostgresStore::answer(std::string id) {
  STINT_CO_CHECK(co_await write(query::answer, expect(Parameters().text(id))));
  bell_.ring();
  co_return Result<>();
}

// ---- from the owner ------------------------------------------------------------------------------------------------

Task<Result<std::vector<Ready>>> PostgresStore::ready(std::uint32_t most) {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::ready, expect(Parameters().number(std::int64_t{most}))));
  std::vector<Ready> found;
  for (int row = 0; row < rows.size(); ++row) {
    found.push_back({.agent = rows.text(row, 0),
                     .runs = static_cast<std::uint32_t>(rows.number(row, 1)),
                     .startable = small(rows.maybe(row, 2)),
                     .rank_ms = rows.number(row, 3),
                     .takes_turn = rows.flag(row, 4)});
  }
  co_return found;
}

Task<Result<std::vector<Claim>>> PostgresStore::claim(WorkerNumber worker, std::string agent, std::uint32_t most,
                                                      std::string only) {
  const std::int64_t round = claims_[worker].round;
  ++claims_[worker].unanswered;
  Parameters parameters;
  parameters.number(worker).number(round).text(agent).number(std::int64_t{most}).text(only);
  expect(parameters);
  auto rows = co_await claiming_.run(query::claim, std::move(parameters), PostgresLane::Repeat::if_not_done,
                                     while_leased(worker));
  Claims& claims = claims_[worker];
  if (claims.round == round && (rows || rows.error().retry() != Retry::unknown)) --claims.unanswered;
  if (!rows && rows.error() == Errc::conflict) co_return std::vector<Claim>();  // a shared limit is busy: later
  if (!rows) co_return fail(std::move(rows.error()));
  co_return read_claims(*rows);
}

Task<Result<std::vector<Claim>>> PostgresStore::owned(WorkerNumber worker) {
  if (const auto found = claims_.find(worker); found != claims_.end() && found->second.unanswered > 0) {
    STINT_CO_TRY(const std::int64_t round, co_await write_number(query::new_round, Parameters().number(worker)));
    claims_[worker] = {.round = round, .unanswered = 0};
  }
  STINT_CO_TRY(const PostgresRows rows,
               co_await writing_.run(query::owned, expect(Parameters().number(worker)), PostgresLane::Repeat::always));
  co_return read_claims(rows);
}

Task<Result<std::vector<std::optional<RunState>>>> PostgresStore::settle(WorkerNumber worker,
                                                                         std::vector<Settlement> settlements) {
  Texts settles, errors, results, park_on;
  Numbers runs, fences, retries, parks, tokens, money;
  for (Settlement& settlement : settlements) {
    runs.emplace_back(settlement.run);
    fences.emplace_back(settlement.fence);
    settles.emplace_back(to_string(settlement.settle));
    errors.push_back(std::move(settlement.error));
    results.push_back(std::move(settlement.result));
    retries.emplace_back(to_ms(settlement.retry_after));
    park_on.push_back(std::move(settlement.park_on));
    parks.push_back(maybe_ms(settlement.park_for));
    tokens.emplace_back(settlement.tokens);
    money.emplace_back(settlement.money_micros);
  }
  Parameters parameters;
  parameters.number(worker).numbers(runs).numbers(fences).texts(settles).texts(errors).texts(results);
  parameters.numbers(retries).texts(park_on).numbers(parks).numbers(tokens).numbers(money);
  expect(parameters);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::settle, std::move(parameters),
                                                              PostgresLane::Repeat::if_not_done, while_leased(worker)));
  bell_.ring();
  std::vector<std::optional<RunState>> states(settlements.size());
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(const RunState state, read_state(rows.text(row, 1)));
    states.at(static_cast<std::size_t>(rows.number(row, 0) - 1)) = state;
  }
  co_return states;
}

Task<Result<bool>> PostgresStore::mark(WorkerNumber worker, RunNumber run, std::int64_t fence, bool unsafe) {
  Parameters parameters;
  parameters.number(worker).number(run).number(fence).flag(unsafe);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::mark, std::move(parameters),
                                                              PostgresLane::Repeat::always, while_leased(worker)));
  co_return rows.flag(0, 0);
}

Task<Result<bool>> PostgresStore::note(WorkerNumber worker, RunNumber run, std::int64_t fence, std::string cause,
                                       std::string data) {
  Parameters parameters;
  parameters.number(worker).number(run).number(fence).number(next_word(fence)).text(cause).text(data);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::note, std::move(parameters),
                                                              PostgresLane::Repeat::always, while_leased(worker)));
  co_return rows.flag(0, 0);
}

Task<Result<bool>> PostgresStore::append_output(WorkerNumber worker, RunNumber run, std::int64_t fence,
                                                std::string text) {
  Parameters parameters;
  parameters.number(worker).number(run).number(fence).number(next_word(fence)).bytes(std::move(text));
  parameters.number(std::int64_t{kOutputHeadMax}).number(std::int64_t{kOutputTailMax});
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::append_output, std::move(parameters),
                                                              PostgresLane::Repeat::always, while_leased(worker)));
  co_return rows.flag(0, 0);
}

Task<Result<bool>> PostgresStore::answered(WorkerNumber worker, RunNumber run, std::int64_t fence) {
  Parameters parameters;
  parameters.number(worker).number(run).number(fence);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::answered, std::move(parameters),
                                                              PostgresLane::Repeat::if_not_done, while_leased(worker)));
  bell_.ring();
  co_return rows.flag(0, 0);
}

// ---- waiting for work ----------------------------------------------------------------------------------------------

/// One of those who wait holds the connection; whoever hears something rings for all. Without a connection, or behind a
/// pooler that passes nothing on, this never ends, and the wait is a poll.
Task<Result<>> PostgresStore::listen() {
  STINT_CO_TRY(const Permit turn, co_await listeners_.acquire());
  while (true) {
    if (!listening_ || !listening_->is_usable()) {
      auto fresh = co_await PostgresConnection::open(reactor_, url_);
      if (fresh) listening_ = std::move(*fresh);
      const auto heard =
          fresh ? co_await listening_->run(query::listen, {}) : Result<PostgresRows>(fail(fresh.error()));
      if (!heard) co_await sleep_for(PostgresLane::kBackoffCap);
      if (!heard) continue;
      bell_.ring();  // what came before we listened
    }
    if (co_await listening_->hear()) bell_.ring();
  }
}

/// Between half and the whole of `most`, so that a fleet does not ask at once.
Task<Result<std::uint64_t>> PostgresStore::wait(std::uint64_t seen, Duration most) {
  const double share = options_.random ? static_cast<double>(options_.random() >> 11U) * 0x1p-53 : 1.0;
  const Duration jittered =
      most / 2 + Duration(static_cast<Duration::rep>(static_cast<double>((most / 2).count()) * share));
  (void)co_await race(bell_.hear(seen, jittered), listen());  // the number of rings is the answer
  co_return bell_.rings();
}

// ---- looking -------------------------------------------------------------------------------------------------------

Task<Result<std::optional<Run>>> PostgresStore::find(std::string id) {
  if (id.empty()) co_return std::nullopt;
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::by_prefix, Parameters().text(id)));
  if (rows.empty()) co_return std::nullopt;
  STINT_CO_TRY(Run run, read_whole_run(rows, 0));
  if (rows.size() > 1 && run.id != id) co_return fail(Errc::invalid, "more than one run begins with '" + id + "'");
  co_return std::move(run);
}

Task<Result<std::vector<Run>>> PostgresStore::list(Filter filter) {
  Parameters parameters;
  Texts states;
  for (const RunState state : filter.states) states.emplace_back(to_string(state));
  parameters.texts(states).text(filter.agent).text(filter.session).number(filter.before);
  parameters.number(std::int64_t{filter.most}).text(filter.parent);
  if (filter.texts) parameters.number(std::int64_t{filter.text_bytes_max});
  STINT_CO_TRY(const PostgresRows rows,
               co_await read(filter.texts ? query::list_with_texts : query::list, std::move(parameters)));
  std::vector<Run> runs;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(runs.emplace_back(), filter.texts ? read_whole_run(rows, row) : read_run(rows, row));
  }
  co_return runs;
}

Task<Result<std::vector<Run>>> PostgresStore::with_key(std::string agent, std::string key) {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::with_key, Parameters().text(agent).text(key)));
  std::vector<Run> runs;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(runs.emplace_back(), read_whole_run(rows, row));
  }
  co_return runs;
}

Task<Result<std::vector<Event>>> PostgresStore::events(std::string id, std::int64_t after, std::uint32_t most) {
  Parameters parameters;
  parameters.text(id).number(after).number(std::int64_t{most});
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::events, std::move(parameters)));
  std::vector<Event> events;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(events.emplace_back(), read_event(rows, row));
  }
  co_return events;
}

Task<Result<FeedPage>> PostgresStore::feed(std::string cursor, std::uint32_t most) {
  STINT_CO_TRY(Cursor at, cursor == kFeedNow ? Cursor() : read_place(cursor));
  // A cursor that may be ahead is looked at before its page: what was given out is never more than what was then told.
  if (cursor == kFeedNow || at.xid > feed_known_) {
    STINT_CO_TRY(const PostgresRows rows, co_await read(query::feed_now, Parameters()));
    const Cursor now{.xid = static_cast<std::uint64_t>(rows.number(0, 0)), .event = rows.number(0, 1)};
    feed_known_ = std::max(feed_known_, now.xid);
    if (cursor == kFeedNow) co_return FeedPage{{}, now.text()};
    if (at.xid > now.xid) co_return fail(cursor_ahead(cursor));
  }
  Parameters parameters;
  parameters.text(std::to_string(at.xid)).number(at.event).number(std::int64_t{most});
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::feed, std::move(parameters)));
  FeedPage page;
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(Event event, read_event(rows, row));
    at = {.xid = static_cast<std::uint64_t>(rows.number(row, kXidColumn)), .event = rows.number(row, kEventColumn)};
    event.cursor = at.text();
    page.events.push_back(std::move(event));
  }
  page.cursor = at.text();
  co_return page;
}

Task<Result<std::vector<Why>>> PostgresStore::why(std::string id) {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::why, expect(Parameters().text(id))));
  std::vector<Why> reasons;
  for (int row = 0; row < rows.size(); ++row) {
    reasons.push_back({rows.text(row, 0), rows.text(row, 1), rows.time(row, 2)});
  }
  co_return reasons;
}

Task<Result<Output>> PostgresStore::output(std::string id) {
  STINT_CO_TRY(const PostgresRows rows,
               co_await read(query::output, Parameters().text(id).number(std::int64_t{kOutputHeadMax})));
  Output output;
  output.bytes = static_cast<std::uint64_t>(rows.number(0, 0));
  output.head = rows.bytes(0, 1);
  output.tail = rows.bytes(0, 2);
  if (output.tail.size() > kOutputTailMax) output.tail.erase(0, output.tail.size() - kOutputTailMax);
  co_return output;
}

Task<Result<Stats>> PostgresStore::stats() {
  STINT_CO_TRY(const PostgresRows sums, co_await read(query::sums, {}));
  STINT_CO_TRY(const PostgresRows counts, co_await read(query::counts, {}));
  Stats stats;
  for (int row = 0; row < sums.size(); ++row) {
    STINT_CO_TRY(const RunState state, read_state(sums.text(row, 0)));
    stats.runs[state] = static_cast<std::uint64_t>(sums.number(row, 1));
  }
  stats.ready = static_cast<std::uint64_t>(counts.number(0, 0));
  stats.events = static_cast<std::uint64_t>(counts.number(0, 1));
  stats.workers = static_cast<std::uint64_t>(counts.number(0, 2));
  stats.bytes = static_cast<std::uint64_t>(counts.number(0, 3));
  co_return stats;
}

Task<Result<std::vector<QueueState>>> PostgresStore::queues() {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::queues, {}));
  std::vector<QueueState> found;
  for (int row = 0; row < rows.size(); ++row) {
    found.push_back({rows.text(row, 0), static_cast<std::uint64_t>(rows.number(row, 1)),
                     static_cast<std::uint64_t>(rows.number(row, 2))});
  }
  co_return found;
}

Task<Result<std::vector<Spent>>> PostgresStore::spent(WallTime since) {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::spent, Parameters().time(since)));
  std::vector<Spent> found;
  for (int row = 0; row < rows.size(); ++row) {
    found.push_back({.day = rows.text(row, 0),
                     .agent = rows.text(row, 1),
                     .runs = rows.number(row, 2),
                     .tokens = rows.number(row, 3),
                     .money_micros = rows.number(row, 4)});
  }
  co_return found;
}

Task<Result<std::uint64_t>> PostgresStore::prune(Duration older_than, std::uint32_t most) {
  STINT_CO_TRY(
      const std::int64_t forgotten,
      co_await write_number(query::prune, expect(Parameters().number(to_ms(older_than)).number(std::int64_t{most}))));
  co_return static_cast<std::uint64_t>(forgotten);
}

// ---- from one store to another -------------------------------------------------------------------------------------

Task<Result<std::vector<AgentEntry>>> PostgresStore::agents() {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::agents, {}));
  std::vector<AgentEntry> agents;
  for (int row = 0; row < rows.size(); ++row) {  // one for each of its limits, or one
    if (agents.empty() || agents.back().name != rows.text(row, 0)) {
      const auto number = [&](int column) { return static_cast<std::uint32_t>(rows.number(row, column)); };
      agents.push_back({.name = rows.text(row, 0),
                        .limits = {},
                        .queued_max = number(1),
                        .attempts_max = number(2),
                        .lost_max = number(3),
                        .backoff_base = milliseconds(rows.number(row, 4)),
                        .backoff_cap = milliseconds(rows.number(row, 5))});
    }
    if (rows.is_null(row, 6)) continue;
    agents.back().limits.push_back({rows.text(row, 6), static_cast<std::uint32_t>(rows.number(row, 7))});
  }
  co_return agents;
}

Task<Result<std::vector<RunRecord>>> PostgresStore::dump(RunNumber after, std::uint32_t most) {
  std::vector<RunRecord> records;
  std::map<RunNumber, std::size_t> places;
  STINT_CO_TRY(const PostgresRows runs,
               co_await read(query::dump, Parameters().number(after).number(std::int64_t{most})));
  for (int row = 0; row < runs.size(); ++row) {
    RunRecord record;
    STINT_CO_TRY(record.run, read_whole_run(runs, row));
    int column = kResultColumn + 1;
    record.rank = runs.number(row, column++);
    record.budget = to_duration(runs.maybe(row, column++));
    record.budget_left = to_duration(runs.maybe(row, column++));
    record.budget_until = runs.time(row, column++);
    record.parked_on = runs.text(row, column++);
    places.emplace(record.run.number, records.size());
    records.push_back(std::move(record));
  }
  if (records.empty()) co_return records;
  const auto range = [&] { return Parameters().number(records.front().run.number).number(records.back().run.number); };
  STINT_CO_TRY(const PostgresRows events, co_await read(query::dump_events, range()));
  for (int row = 0; row < events.size(); ++row) {
    const auto place = places.find(events.number(row, 1));
    if (place == places.end()) continue;  // it came meanwhile
    STINT_CO_TRY(Event event, read_event(events, row));
    records[place->second].events.push_back(std::move(event));
  }
  STINT_CO_TRY(const PostgresRows families, co_await read(query::dump_families, range()));
  for (int row = 0; row < families.size(); ++row) {
    const auto place = places.find(families.number(row, 0));
    if (place == places.end()) continue;
    const Use used{.tokens = families.number(row, 2), .money_micros = families.number(row, 3)};
    records[place->second].families.push_back({.head = families.text(row, 1), .used = used});
  }
  STINT_CO_TRY(const PostgresRows chunks, co_await read(query::dump_output, range()));
  for (int row = 0; row < chunks.size(); ++row) {
    const auto place = places.find(chunks.number(row, 0));
    if (place == places.end()) continue;
    Output& output = records[place->second].output;
    output.bytes = static_cast<std::uint64_t>(chunks.number(row, 1));
    (chunks.number(row, 2) < std::int64_t{kOutputHeadMax} ? output.head : output.tail) += chunks.bytes(row, 3);
  }
  for (RunRecord& record : records) {
    std::string& tail = record.output.tail;
    if (tail.size() > kOutputTailMax) tail.erase(0, tail.size() - kOutputTailMax);
  }
  co_return records;
}

Task<Result<std::uint64_t>> PostgresStore::load(std::vector<RunRecord> records) {
  PostgresLoad load;
  std::set<std::string_view> ids;
  for (const RunRecord& record : records) {
    STINT_CO_CHECK(check_record(record));
    if (ids.insert(record.run.id).second) load.add(record);
  }
  if (records.empty()) co_return 0;
  STINT_CO_TRY(const PostgresRows rows,
               co_await writing_.run(query::load, load.parameters(), PostgresLane::Repeat::always));
  bell_.ring();
  co_return static_cast<std::uint64_t>(rows.number(0, 0));
}

Task<Result<std::vector<std::string>>> PostgresStore::check() {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::wrong_indexes, {}));
  std::vector<std::string> findings;
  for (int row = 0; row < rows.size(); ++row) {
    findings.push_back("the index " + rows.text(row, 0) + " is not valid: REINDEX INDEX stint." + rows.text(row, 0));
  }
  STINT_CO_TRY(const PostgresRows names, co_await read(query::wrong_names, {}));
  for (int row = 0; row < names.size(); ++row) {
    findings.push_back("run " + names.text(row, 0) + ": its id leads to another run, or to none");
  }
  co_return findings;
}

}  // namespace stint::store
