/// The store without a disk: for simulations and tests, and as the model with which the others are compared.
#pragma once

#include "stint/notification.hpp"
#include "store/ledger.hpp"
#include "store/memory_rows.hpp"

namespace stint::store {

class MemoryStore : public Store {
 public:
  explicit MemoryStore(const domain::System& system) : ledger_(rows_, system) {}

  Task<Result<>> define(std::vector<AgentEntry> agents) override;
  Task<Result<>> resize(std::string limit, std::optional<std::uint32_t> capacity) override;
  Task<Result<>> configure(std::map<std::string, std::uint32_t> capacities, std::vector<std::string> agents) override;
  Task<Result<>> pause(std::string limit, std::optional<Duration> length) override;
  Task<Result<std::uint64_t>> resume(std::string limit) override;
  Task<Result<std::vector<LimitState>>> limits(std::uint32_t listed = 0) override;
  Task<Result<NodeNumber>> enrol(std::string label, NodeKind kind = NodeKind::any) override;
  Task<Result<Beat>> beat(NodeNumber node) override;
  Task<Result<>> drain(NodeNumber node) override;
  Task<Result<>> leave(NodeNumber node) override;
  Task<Result<std::vector<NodeState>>> nodes() override;
  Task<Result<>> announce(NodeNumber node, std::string cause, std::string data) override;
  Task<Result<std::vector<Result<Accepted>>>> enqueue(std::vector<NewRun> runs) override;
  Task<Result<std::vector<std::pair<std::string, domain::RunState>>>> cancel(std::string id) override;
  Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) override;
  Task<Result<>> answer(std::string id) override;
  Task<Result<std::vector<Ready>>> ready(std::uint32_t most) override;
  Task<Result<std::vector<Claim>>> claim(NodeNumber node, std::string agent, std::uint32_t most, std::string only = {},
                                         std::string waited = {}) override;
  Task<Result<std::vector<Claim>>> owned(NodeNumber node) override;
  Task<Result<std::vector<std::optional<domain::RunState>>>> settle(NodeNumber node,
                                                                    std::vector<Settlement> settlements) override;
  Task<Result<bool>> mark(NodeNumber node, AttemptKey attempt, bool unsafe) override;
  Task<Result<bool>> note(NodeNumber node, AttemptKey attempt, std::string cause, std::string data) override;
  Task<Result<bool>> append_output(NodeNumber node, AttemptKey attempt, std::string text) override;
  Task<Result<bool>> put_message(NodeNumber node, AttemptKey attempt, Message message) override;
  Task<Result<bool>> provider_answered(NodeNumber node, AttemptKey attempt) override;
  Task<Result<std::optional<std::vector<FamilyUse>>>> report(NodeNumber node, AttemptKey attempt, Use so_far) override;
  Task<Result<Ticked>> tick() override;
  Task<Result<std::uint64_t>> wait(std::uint64_t seen, Duration most) override;
  Task<Result<Accepted>> begin_batch(NewBatch batch) override;
  Task<Result<std::optional<Batch>>> batch(std::string id) override;
  Task<Result<std::vector<Batch>>> batches(BatchNumber before, std::uint32_t most) override;
  Task<Result<std::optional<BatchClaim>>> claim_batch(NodeNumber node) override;
  Task<Result<std::optional<BatchClaim>>> advance_batch(BatchClaim claim, BatchStep step) override;
  Task<Result<>> release_batch(BatchClaim claim) override;
  Task<Result<std::optional<Batch>>> stop_batch(std::string id) override;
  Task<Result<std::optional<Run>>> find(std::string id) override;
  Task<Result<std::vector<Run>>> list(Filter filter) override;
  Task<Result<Matches>> match(Filter filter) override;
  Task<Result<std::vector<Run>>> with_key(std::string agent, std::string key) override;
  Task<Result<std::vector<FamilyUse>>> used(std::vector<std::string> heads) override;
  Task<Result<std::vector<Event>>> events(std::string id, std::int64_t after, std::uint32_t most) override;
  Task<Result<FeedPage>> feed(std::string cursor, std::uint32_t most) override;
  Task<Result<std::vector<Why>>> why(std::string id) override;
  Task<Result<Output>> output(std::string id) override;
  Task<Result<std::vector<std::string>>> messages(std::string id, std::uint32_t from, std::size_t bytes_max) override;
  Task<Result<Stats>> stats() override;
  Task<Result<Snapshot>> snapshot(std::uint32_t listed, std::uint32_t text_bytes_max) override;
  Task<Result<std::vector<QueueState>>> queues() override;
  Task<Result<std::vector<Spent>>> spent(WallTime since, SpentBy by) override;
  Task<Result<std::vector<EndedRun>>> ended(std::string agent, Duration within, std::uint32_t most) override;
  Task<Result<Duration>> sample(NodeNumber node, Sample sample) override;
  Task<Result<Series>> series(SeriesQuery query) override;
  Task<Result<std::uint64_t>> prune(Duration older_than, std::uint32_t most) override;
  Task<Result<std::uint64_t>> prune_if_due(Duration keep, Duration every, std::uint32_t most) override;
  Task<Result<std::vector<AgentEntry>>> agents() override;
  Task<Result<std::vector<RunRecord>>> dump(RunNumber after, std::uint32_t most) override;
  Task<Result<std::uint64_t>> load(std::vector<RunRecord> records) override;
  Task<Result<std::vector<std::string>>> check() override;
  [[nodiscard]] Schema schema() const override { return {.found = 1, .now = 1}; }

 private:
  /// For calls that may make a run ready.
  template <class T>
  T notify(T result) {
    notification_.notify();
    return result;
  }

  MemoryRows rows_;
  Ledger ledger_;
  Notification notification_;
};

}  // namespace stint::store
