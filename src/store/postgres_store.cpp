#include "store/postgres_store.hpp"

#include "domain/run_id.hpp"
#include "stint/combinators.hpp"
#include "store/column_codec.hpp"
#include "store/errors.hpp"
#include "store/postgres_migrate.hpp"
#include "store/postgres_read.hpp"
#include "store/search_text.hpp"
#include "store_sql_postgres.hpp"

#include <algorithm>

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
  claim.run = RunNumber{rows.number(row, 0)};
  claim.id = rows.text(row, 1);
  claim.fence = Fence{rows.number(row, 2)};
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

}  // namespace

Task<Result<std::unique_ptr<PostgresStore>>> PostgresStore::open(Reactor& reactor, std::string url,
                                                                 PostgresOptions options) {
  const Deadline deadline = Deadline::after(reactor.now(), options.migration);
  STINT_CO_TRY(const Schema schema, co_await with_deadline(deadline, migrate_postgres(reactor, url, options.patience,
                                                                                      postgres_migrations())));
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
  return reading_.run(sql, std::move(parameters), PostgresClient::Repeat::always);
}

Task<Result<>> PostgresStore::define(std::vector<AgentEntry> agents) {
  for (const AgentEntry& agent : agents) {
    Texts limits;
    Numbers weights;
    for (const LimitUse& use : agent.limits) {
      if (use.weight == 0) co_return fail(Errc::invalid, agent.name + ": the weight must be at least 1");
      if (std::ranges::find(limits, use.limit) != limits.end()) {
        co_return fail(Errc::invalid,
                       agent.name + ": limit '" + use.limit + "' is listed twice. List it once, with a weight");
      }
      limits.push_back(use.limit);
      weights.emplace_back(use.weight);
    }
    Parameters parameters;
    parameters.text(agent.name).texts(limits).numbers(weights).number(std::int64_t{agent.queued_max});
    parameters.number(std::int64_t{agent.attempts_max}).number(std::int64_t{agent.lost_max});
    STINT_CO_CHECK(co_await writing_.run(query::define, std::move(parameters), PostgresClient::Repeat::always));
  }
  co_return Result<>();
}

Task<Result<>> PostgresStore::resize(std::string limit, std::optional<std::uint32_t> capacity) {
  if (capacity == 0U) co_return fail(Errc::invalid, limit + ": the capacity must be at least 1");
  STINT_CO_CHECK(co_await write(query::resize, Parameters().text(limit).number(wide(capacity))));
  notification_.notify();
  co_return Result<>();
}

Task<Result<>> PostgresStore::configure(std::map<std::string, std::uint32_t> capacities,
                                        std::vector<std::string> agents) {
  Texts limits;
  Numbers numbers;
  for (const auto& [name, capacity] : capacities) {
    if (capacity == 0) co_return fail(Errc::invalid, name + ": the capacity must be at least 1");
    limits.push_back(name);
    numbers.emplace_back(capacity);
  }
  Parameters parameters;
  parameters.texts(limits).numbers(numbers).texts(agents);
  STINT_CO_CHECK(co_await writing_.run(query::configure, std::move(parameters), PostgresClient::Repeat::always));
  notification_.notify();
  co_return Result<>();
}

Task<Result<>> PostgresStore::pause(std::string limit, std::optional<Duration> length) {
  return write(query::pause, expect(Parameters().text(limit).number(maybe_ms(length))));
}

Task<Result<std::uint64_t>> PostgresStore::resume(std::string limit) {
  STINT_CO_TRY(const std::int64_t woken, co_await write_number(query::resume, expect(Parameters().text(limit))));
  notification_.notify();
  co_return static_cast<std::uint64_t>(woken);
}

Task<Result<NodeNumber>> PostgresStore::enrol(std::string label, NodeKind kind) {
  const Duration asked_at = options_.since_boot();
  Parameters parameters;
  parameters.text(label).number(to_ms(options_.lease)).flag(kind == NodeKind::one_run);
  STINT_CO_TRY(const std::int64_t number, co_await write_number(query::enrol, std::move(parameters)));
  const NodeNumber node{number};
  renew(node, asked_at);
  co_return node;
}

Task<Result<Beat>> PostgresStore::beat(NodeNumber node) {
  const Duration asked_at = options_.since_boot();
  Parameters parameters;
  parameters.number(node).number(to_ms(options_.lease));
  STINT_CO_TRY(const PostgresRows rows,
               co_await beating_.run(query::beat, std::move(parameters), PostgresClient::Repeat::always));
  Beat beat;
  for (int row = 0; row < rows.size(); ++row) {
    beat.alive = rows.flag(row, 0);
    if (rows.is_null(row, 1) || !beat.alive) continue;
    beat.stops.push_back({{RunNumber{rows.number(row, 1)}, Fence{rows.number(row, 2)}}, read_stop(rows.text(row, 3))});
  }
  if (beat.alive) renew(node, asked_at);
  co_return beat;
}

PostgresClient::Guard PostgresStore::while_leased(NodeNumber node) const {
  return [this, node]() -> Result<> {
    const auto lease = leases_.find(node);
    if (lease == leases_.end() || options_.since_boot() < lease->second) return {};
    return fail(Errc::closed,
                "the lease of this node is over: it was suspended or disconnected. Its next heartbeat decides which "
                "runs it keeps");
  };
}

Task<Result<>> PostgresStore::drain(NodeNumber node) { return write(query::drain, Parameters().number(node)); }

Task<Result<>> PostgresStore::leave(NodeNumber node) {
  STINT_CO_CHECK(co_await write(query::leave, Parameters().number(node)));
  claims_.erase(node);
  leases_.erase(node);
  notification_.notify();  // runs that it kept become claimable
  co_return Result<>();
}

Task<Result<std::vector<NodeState>>> PostgresStore::nodes() {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::nodes, {}));
  co_return read_nodes(rows);
}

Task<Result<>> PostgresStore::announce(NodeNumber node, std::string cause, std::string data) {
  return write(query::announce, Parameters().number(node).text(cause).text(data));
}

Task<Result<std::vector<Result<Accepted>>>> PostgresStore::enqueue(std::vector<NewRun> runs) {
  Texts ids, agents, sessions, parents, keys, on_crash, inputs, search, draws_on;
  Numbers priorities, delays, deadlines, deadlines_in, budgets, keepers;
  std::vector<Result<Accepted>> answers(runs.size(), fail(Errc::failed, "the database returned no row for this run"));
  std::vector<std::size_t> asked;  // runs without an answer yet
  for (std::size_t i = 0; i < runs.size(); ++i) {
    NewRun& run = runs[i];
    if (!domain::is_run_id(run.id)) {
      answers[i] = fail(Errc::invalid, "'" + run.id + "' is not a run id");
      continue;
    }
    if (std::abs(run.priority) > domain::kPriorityMax) {
      answers[i] = fail(Errc::invalid, "the priority must be between -1000 and 1000");
      continue;
    }
    asked.push_back(i);
    ids.push_back(std::move(run.id));
    agents.push_back(std::move(run.agent));
    sessions.push_back(std::move(run.session));
    parents.push_back(std::move(run.parent));
    keys.push_back(std::move(run.key));
    on_crash.emplace_back(to_string(run.on_crash));
    search.push_back(search_text(agents.back(), run.input));
    inputs.push_back(std::move(run.input));
    priorities.emplace_back(run.priority);
    delays.emplace_back(to_ms(std::max(run.delay, Duration::zero())));
    deadlines.push_back(maybe_unix_ms(run.deadline));
    deadlines_in.push_back(maybe_ms(run.deadline_in));
    budgets.push_back(maybe_ms(run.budget));
    keepers.push_back(domain::value_of(run.kept_for));
    std::string& heads = draws_on.emplace_back();
    for (const std::string& head : run.draws_on) heads += (heads.empty() ? "" : " ") + head;
  }
  if (asked.empty()) co_return answers;
  Parameters parameters;
  parameters.texts(ids).texts(agents).texts(sessions).texts(parents).texts(keys).numbers(priorities);
  parameters.numbers(delays).numbers(deadlines).numbers(budgets).texts(on_crash).texts(inputs).numbers(deadlines_in);
  expect(parameters).texts(search);
  const bool kept = std::ranges::any_of(keepers, [](const auto& keeper) { return keeper.has_value(); }) ||
                    std::ranges::any_of(draws_on, [](const std::string& heads) { return !heads.empty(); });
  if (kept) parameters.numbers(keepers).texts(draws_on);
  STINT_CO_TRY(const PostgresRows rows,
               co_await writing_.run(kept ? query::enqueue_kept : query::enqueue, std::move(parameters)));
  notification_.notify();
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
  while (true) {  // terminates: a run with a stop accepts no more children
    STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::cancel, expect(Parameters().text(id)),
                                                                PostgresClient::Repeat::if_not_done));
    if (rows.empty()) co_return reached;
    notification_.notify();
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
  notification_.notify();
  co_return state;
}

Task<Result<>> PostgresStore::answer(std::string id) {
  STINT_CO_CHECK(co_await write(query::answer, expect(Parameters().text(id))));
  notification_.notify();
  co_return Result<>();
}

Task<Result<std::vector<Ready>>> PostgresStore::ready(std::uint32_t most) {
  STINT_CO_TRY(const PostgresRows rows, co_await read(query::ready, expect(Parameters().number(std::int64_t{most}))));
  std::vector<Ready> found;
  for (int row = 0; row < rows.size(); ++row) {
    found.push_back({.agent = rows.text(row, 0),
                     .runs = static_cast<std::uint32_t>(rows.number(row, 1)),
                     .startable = small(rows.maybe(row, 2)),
                     .rank_ms = rows.number(row, 3),
                     .takes_turn = rows.flag(row, 4),
                     .blocked_by = rows.text(row, 5)});
  }
  co_return found;
}

Task<Result<std::vector<Claim>>> PostgresStore::claim(NodeNumber node, std::string agent, std::uint32_t most,
                                                      std::string only, std::string waited) {
  const std::int64_t round = claims_[node].round;
  ++claims_[node].unanswered;
  Parameters parameters;
  parameters.number(node).number(round).text(agent).number(std::int64_t{most}).text(only).text(waited);
  expect(parameters);
  auto rows = co_await claiming_.run(query::claim, std::move(parameters), PostgresClient::Repeat::if_not_done,
                                     while_leased(node));
  Claims& claims = claims_[node];
  if (claims.round == round && (rows || rows.error().retry() != Retry::unknown)) --claims.unanswered;
  if (!rows && rows.error() == Errc::conflict) co_return std::vector<Claim>();  // a shared limit is busy: try later
  if (!rows) co_return fail(std::move(rows.error()));
  co_return read_claims(*rows);
}

Task<Result<std::vector<Claim>>> PostgresStore::owned(NodeNumber node) {
  if (const auto found = claims_.find(node); found != claims_.end() && found->second.unanswered > 0) {
    STINT_CO_TRY(const std::int64_t round, co_await write_number(query::new_round, Parameters().number(node)));
    claims_[node] = {.round = round, .unanswered = 0};
  }
  STINT_CO_TRY(const PostgresRows rows,
               co_await writing_.run(query::owned, expect(Parameters().number(node)), PostgresClient::Repeat::always));
  co_return read_claims(rows);
}

Task<Result<std::vector<std::optional<RunState>>>> PostgresStore::settle(NodeNumber node,
                                                                         std::vector<Settlement> settlements) {
  Texts settles, errors, results, park_on, data;
  Numbers runs, fences, retries, parks, tokens, cost;
  for (Settlement& settlement : settlements) {
    runs.emplace_back(settlement.attempt.run.value);
    fences.emplace_back(settlement.attempt.fence.value);
    settles.emplace_back(to_string(settlement.settle));
    errors.push_back(std::move(settlement.error));
    results.push_back(std::move(settlement.result));
    retries.emplace_back(to_ms(settlement.retry_after));
    park_on.push_back(std::move(settlement.park_on));
    parks.push_back(maybe_ms(settlement.park_for));
    tokens.emplace_back(settlement.tokens);
    cost.emplace_back(settlement.cost_micros);
    data.push_back(std::move(settlement.data));
  }
  Parameters parameters;
  parameters.number(node).numbers(runs).numbers(fences).texts(settles).texts(errors).texts(results);
  parameters.numbers(retries).texts(park_on).numbers(parks).numbers(tokens).numbers(cost).texts(data);
  expect(parameters);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::settle, std::move(parameters),
                                                              PostgresClient::Repeat::if_not_done, while_leased(node)));
  notification_.notify();
  std::vector<std::optional<RunState>> states(settlements.size());
  for (int row = 0; row < rows.size(); ++row) {
    STINT_CO_TRY(const RunState state, read_state(rows.text(row, 1)));
    states.at(static_cast<std::size_t>(rows.number(row, 0) - 1)) = state;
  }
  co_return states;
}

Task<Result<bool>> PostgresStore::mark(NodeNumber node, AttemptKey attempt, bool unsafe) {
  Parameters parameters;
  parameters.number(node).number(attempt.run).number(attempt.fence).flag(unsafe);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::mark, std::move(parameters),
                                                              PostgresClient::Repeat::always, while_leased(node)));
  co_return rows.flag(0, 0);
}

Task<Result<bool>> PostgresStore::note(NodeNumber node, AttemptKey attempt, std::string cause, std::string data) {
  Parameters parameters;
  parameters.number(node)
      .number(attempt.run)
      .number(attempt.fence)
      .number(next_word(attempt.fence))
      .text(cause)
      .text(data);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::note, std::move(parameters),
                                                              PostgresClient::Repeat::always, while_leased(node)));
  co_return rows.flag(0, 0);
}

Task<Result<bool>> PostgresStore::append_output(NodeNumber node, AttemptKey attempt, std::string text) {
  Parameters parameters;
  parameters.number(node)
      .number(attempt.run)
      .number(attempt.fence)
      .number(next_word(attempt.fence))
      .bytes(std::move(text));
  parameters.number(std::int64_t{kOutputHeadMax}).number(std::int64_t{kOutputTailMax});
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::append_output, std::move(parameters),
                                                              PostgresClient::Repeat::always, while_leased(node)));
  co_return rows.flag(0, 0);
}

Task<Result<bool>> PostgresStore::put_message(NodeNumber node, AttemptKey attempt, Message message) {
  Parameters parameters;
  parameters.number(node)
      .number(attempt.run)
      .number(attempt.fence)
      .number(std::int64_t{message.at})
      .bytes(std::move(message.body));
  parameters.number(std::int64_t{kConversationMax}).number(std::int64_t{kMessagesMax});
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::put_message, std::move(parameters),
                                                              PostgresClient::Repeat::always, while_leased(node)));
  const std::string answer = rows.text(0, 0);
  if (answer == "missing") co_return fail(message_missing(message.at));
  if (answer == "long") co_return fail(conversation_too_long());
  co_return answer == "stored";
}

Task<Result<bool>> PostgresStore::provider_answered(NodeNumber node, AttemptKey attempt) {
  Parameters parameters;
  parameters.number(node).number(attempt.run).number(attempt.fence);
  STINT_CO_TRY(const PostgresRows rows, co_await writing_.run(query::provider_answered, std::move(parameters),
                                                              PostgresClient::Repeat::if_not_done, while_leased(node)));
  notification_.notify();
  co_return rows.flag(0, 0);
}

/// One of the waiting calls holds the connection; a notification wakes all. Without a connection, or behind a pooler
/// that passes no notifications, this never returns, and the wait is a poll.
Task<Result<>> PostgresStore::listen() {
  STINT_CO_TRY(const Permit turn, co_await listeners_.acquire());
  while (true) {
    if (!listening_ || !listening_->is_usable()) {
      auto fresh = co_await PostgresConnection::open(reactor_, url_);
      if (fresh) listening_ = std::move(*fresh);
      const auto subscribed =
          fresh ? co_await listening_->run(query::listen, {}) : Result<PostgresRows>(fail(fresh.error()));
      if (!subscribed) co_await sleep_for(PostgresClient::kBackoff.cap);
      if (!subscribed) continue;
      notification_.notify();  // for changes before the LISTEN
    }
    if (co_await listening_->wait_for_notification()) notification_.notify();
  }
}

/// Waits between half and all of `most`, so that the nodes of a fleet do not poll at once.
Task<Result<std::uint64_t>> PostgresStore::wait(std::uint64_t seen, Duration most) {
  const double share = options_.random ? static_cast<double>(options_.random() >> 11U) * 0x1p-53 : 1.0;
  const Duration jittered =
      most / 2 + Duration(static_cast<Duration::rep>(static_cast<double>((most / 2).count()) * share));
  (void)co_await race(notification_.wait(seen, jittered), listen());  // returns the number of notifications
  co_return notification_.count();
}

}  // namespace stint::store
