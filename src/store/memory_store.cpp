#include "store/memory_store.hpp"

namespace stint::store {

Task<Result<>> MemoryStore::define(std::vector<AgentEntry> agents) {
  for (const AgentEntry& agent : agents) STINT_CO_CHECK(ledger_.define(agent));
  co_return Result<>();
}

Task<Result<>> MemoryStore::resize(std::string limit, std::optional<std::uint32_t> capacity) {
  co_return notify(ledger_.resize(limit, capacity));
}

Task<Result<>> MemoryStore::configure(std::map<std::string, std::uint32_t> capacities,
                                      std::vector<std::string> agents) {
  co_return notify(ledger_.configure(capacities, agents));
}

Task<Result<>> MemoryStore::pause(std::string limit, std::optional<Duration> length) {
  co_return ledger_.pause(limit, length);
}

Task<Result<std::uint64_t>> MemoryStore::resume(std::string limit) { co_return notify(ledger_.resume(limit)); }

Task<Result<std::vector<LimitState>>> MemoryStore::limits(std::uint32_t listed) { co_return ledger_.limits(listed); }

Task<Result<NodeNumber>> MemoryStore::enrol(std::string label, NodeKind kind) { co_return ledger_.enrol(label, kind); }

Task<Result<Beat>> MemoryStore::beat(NodeNumber node) { co_return ledger_.beat(node); }

Task<Result<>> MemoryStore::drain(NodeNumber node) { co_return ledger_.drain(node); }

Task<Result<>> MemoryStore::leave(NodeNumber node) { co_return notify(ledger_.leave(node)); }

Task<Result<std::vector<NodeState>>> MemoryStore::nodes() { co_return ledger_.nodes(); }

Task<Result<std::vector<Result<Accepted>>>> MemoryStore::enqueue(std::vector<NewRun> runs) {
  std::vector<Result<Accepted>> answers;
  answers.reserve(runs.size());
  for (NewRun& run : runs) answers.push_back(ledger_.enqueue(std::move(run)));
  co_return notify(std::move(answers));
}

Task<Result<std::vector<std::pair<std::string, domain::RunState>>>> MemoryStore::cancel(std::string id) {
  co_return notify(ledger_.cancel(id));
}

Task<Result<domain::RunState>> MemoryStore::resolve(std::string id, domain::Resolution how) {
  co_return notify(ledger_.resolve(id, how));
}

Task<Result<>> MemoryStore::answer(std::string id) { co_return notify(ledger_.answer(id)); }

Task<Result<std::vector<Ready>>> MemoryStore::ready(std::uint32_t most) { co_return ledger_.ready(most); }

Task<Result<std::vector<Claim>>> MemoryStore::claim(NodeNumber node, std::string agent, std::uint32_t most,
                                                    std::string only, std::string waited) {
  co_return ledger_.claim(node, agent, most, {.only = only, .waited = waited});
}

Task<Result<std::vector<Claim>>> MemoryStore::owned(NodeNumber node) { co_return ledger_.owned(node); }

Task<Result<std::vector<std::optional<domain::RunState>>>> MemoryStore::settle(NodeNumber node,
                                                                               std::vector<Settlement> settlements) {
  std::vector<std::optional<domain::RunState>> states;
  for (Settlement& settlement : settlements) {
    STINT_CO_TRY(const auto state, ledger_.settle(node, std::move(settlement)));
    states.push_back(state);
  }
  co_return notify(std::move(states));
}

Task<Result<bool>> MemoryStore::mark(NodeNumber node, AttemptKey attempt, bool unsafe) {
  co_return ledger_.mark(node, attempt, unsafe);
}

Task<Result<bool>> MemoryStore::note(NodeNumber node, AttemptKey attempt, std::string cause, std::string data) {
  co_return ledger_.note(node, attempt, std::move(cause), std::move(data));
}

Task<Result<bool>> MemoryStore::put_message(NodeNumber node, AttemptKey attempt, Message message) {
  co_return ledger_.put_message(node, attempt, message);
}
Task<Result<bool>> MemoryStore::append_output(NodeNumber node, AttemptKey attempt, std::string text) {
  co_return ledger_.append_output(node, attempt, text);
}

Task<Result<bool>> MemoryStore::provider_answered(NodeNumber node, AttemptKey attempt) {
  co_return notify(ledger_.provider_answered(node, attempt));
}

Task<Result<std::optional<std::vector<FamilyUse>>>> MemoryStore::report(NodeNumber node, AttemptKey attempt,
                                                                        Use so_far) {
  co_return ledger_.report(node, attempt, so_far);
}

Task<Result<Ticked>> MemoryStore::tick() {
  STINT_CO_TRY(Ticked ticked, ledger_.tick());
  if (ticked.changed()) notification_.notify();
  co_return ticked;
}

Task<Result<std::uint64_t>> MemoryStore::wait(std::uint64_t seen, Duration most) {
  co_return co_await notification_.wait(seen, most);
}

Task<Result<std::optional<Run>>> MemoryStore::find(std::string id) {
  Result<std::optional<RunRow>> row = rows_.find(id);
  if (!row) co_return fail(std::move(row).error());
  if (!*row) co_return std::nullopt;
  co_return ledger_.shown(std::move(**row));
}

Task<Result<std::vector<Run>>> MemoryStore::list(Filter filter) {
  co_return ledger_.shown(rows_.list(ledger_.kept(std::move(filter))));
}

Task<Result<Matches>> MemoryStore::match(Filter filter) { co_return rows_.match(ledger_.kept(std::move(filter))); }

Task<Result<Accepted>> MemoryStore::begin_batch(NewBatch batch) { co_return ledger_.begin_batch(std::move(batch)); }

Task<Result<std::optional<Batch>>> MemoryStore::batch(std::string id) { co_return ledger_.batch(id); }

Task<Result<std::vector<Batch>>> MemoryStore::batches(BatchNumber before, std::uint32_t most) {
  co_return ledger_.batches(before, most);
}

Task<Result<std::optional<BatchClaim>>> MemoryStore::claim_batch(NodeNumber node) {
  co_return ledger_.claim_batch(node);
}

Task<Result<std::optional<BatchClaim>>> MemoryStore::advance_batch(BatchClaim claim, BatchStep step) {
  co_return ledger_.advance_batch(claim, step);
}

Task<Result<>> MemoryStore::release_batch(BatchClaim claim) { co_return ledger_.release_batch(claim); }

Task<Result<std::optional<Batch>>> MemoryStore::stop_batch(std::string id) { co_return ledger_.stop_batch(id); }

Task<Result<std::vector<Run>>> MemoryStore::with_key(std::string agent, std::string key) {
  co_return ledger_.shown(rows_.with_key(agent, key));
}

Task<Result<std::vector<FamilyUse>>> MemoryStore::used(std::vector<std::string> heads) {
  co_return ledger_.used(heads);
}

Task<Result<std::vector<Event>>> MemoryStore::events(std::string id, std::int64_t after, std::uint32_t most) {
  STINT_CO_TRY(std::vector<Event> found, rows_.events(id, after, most));
  co_return ledger_.shown(std::move(found));
}

Task<Result<FeedPage>> MemoryStore::feed(std::string cursor, std::uint32_t most) {
  STINT_CO_TRY(FeedPage page, rows_.feed(cursor, most));
  page.events = ledger_.shown(std::move(page.events));
  co_return page;
}

Task<Result<std::vector<Why>>> MemoryStore::why(std::string id) {
  STINT_CO_TRY(const auto place, rows_.place(id, kPlaceMax));
  co_return ledger_.why(id, place);
}

Task<Result<Output>> MemoryStore::output(std::string id) { co_return rows_.output(id); }
Task<Result<std::vector<std::string>>> MemoryStore::messages(std::string id, std::uint32_t from,
                                                             std::size_t bytes_max) {
  co_return rows_.messages(id, from, bytes_max);
}

Task<Result<Stats>> MemoryStore::stats() { co_return rows_.stats(); }
Task<Result<Snapshot>> MemoryStore::snapshot(std::uint32_t listed, std::uint32_t text_bytes_max) {
  co_return ledger_.snapshot(listed, text_bytes_max);
}
Task<Result<>> MemoryStore::announce(NodeNumber node, std::string cause, std::string data) {
  co_return ledger_.announce(node, std::move(cause), std::move(data));
}
Task<Result<std::vector<QueueState>>> MemoryStore::queues() { co_return rows_.queues(); }

Task<Result<std::vector<Spent>>> MemoryStore::spent(WallTime since, SpentBy by) { co_return rows_.spent(since, by); }

Task<Result<std::vector<EndedRun>>> MemoryStore::ended(std::string agent, Duration within, std::uint32_t most) {
  co_return ledger_.ended(agent, within, most);
}

Task<Result<Duration>> MemoryStore::sample(NodeNumber node, Sample sample) { co_return ledger_.sample(node, sample); }

Task<Result<Series>> MemoryStore::series(SeriesQuery query) { co_return ledger_.series(query); }

Task<Result<std::uint64_t>> MemoryStore::prune(Duration older_than, std::uint32_t most) {
  co_return ledger_.prune(older_than, most);
}

Task<Result<std::uint64_t>> MemoryStore::prune_if_due(Duration keep, Duration every, std::uint32_t most) {
  co_return ledger_.prune_if_due(keep, every, most);
}

Task<Result<std::vector<AgentEntry>>> MemoryStore::agents() { co_return ledger_.agents(); }

Task<Result<std::vector<RunRecord>>> MemoryStore::dump(RunNumber after, std::uint32_t most) {
  co_return ledger_.shown(rows_.dump(after, most));
}

Task<Result<std::uint64_t>> MemoryStore::load(std::vector<RunRecord> records) {
  std::uint64_t added = 0;
  for (const RunRecord& record : records) {
    STINT_CO_TRY(const bool fresh, ledger_.load(record));
    if (fresh) ++added;
  }
  co_return notify(added);
}

Task<Result<std::vector<std::string>>> MemoryStore::check() { co_return std::vector<std::string>(); }

}  // namespace stint::store
