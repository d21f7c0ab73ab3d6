/// The store of a fleet, in PostgreSQL 13 or newer, for all processes on all machines. A call is one function of the
/// database (sql/postgres) in one transaction. It uses the store's clock: the database's clock, corrected for jumps,
/// which tick() detects by the caller's clock (docs/decisions/0020). No wall clock of a host is used.
///
/// Five connections, opened on demand and reopened when lost: one to write; one to claim, so that the next runs are
/// claimed while the outcomes of the last are written; one to read; one for heartbeats alone, so that no other
/// statement can cost a lease; and one on which wait() listens. Only the last keeps session state: behind a pooler in
/// transaction mode everything works, and wait() becomes a poll.
#pragma once

#include "stint/notification.hpp"
#include "store/postgres_client.hpp"
#include "store/store.hpp"

namespace stint::store {

class PostgresStore final : public Store {
 public:
  static constexpr int kServerMin = 13;
  static constexpr std::int64_t kBatchMax = 1000;          // runs woken or expired in one step
  static constexpr int kDeadMax = 100;                     // nodes declared dead by one tick()
  static constexpr Duration kFar = std::chrono::hours(1);  // the longest lease
  static constexpr Duration kJump =
      std::chrono::seconds(10);  // of the database's clock; a smaller difference is not treated as a jump

  /// Connects, and creates or migrates the tables. `denied`: the server is too old, the tables are of a newer Stint,
  /// or the user lacks rights.
  static Task<Result<std::unique_ptr<PostgresStore>>> open(Reactor& reactor, std::string url,
                                                           PostgresOptions options = {});

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
  [[nodiscard]] Schema schema() const override { return schema_; }

 private:
  /// The claims of a node. A claim whose answer was lost, or whose caller was cancelled, may still take effect:
  /// owned() then begins a new round, in which that claim is either visible or refused.
  struct Claims {
    std::int64_t round = 0;
    int unanswered = 0;  // in this round
  };

  Task<Result<>> cut_at_conversations(std::vector<RunRecord>& records);

  PostgresStore(Reactor& reactor, const std::string& url, const PostgresOptions& options)
      : options_(options),
        reactor_(reactor),
        url_(url),
        writing_(reactor, "postgres writing", url, options),
        claiming_(reactor, "postgres claiming", url, options),
        reading_(reactor, "postgres reading", url, options),
        beating_(reactor, "postgres beating", url, options) {}
  /// The two clocks at the last tick(), and until when tick() declares no node dead: after a jump of the database's
  /// clock every lease looks expired until its node has sent a heartbeat.
  struct Clocks {
    std::optional<WallTime> database;
    Duration ours{}, since{};
    Duration trusted_from{};
  };
  [[nodiscard]] bool trusts_leases(WallTime database_now);
  /// The last reading of the store's clock, with the own clock at that moment.
  struct ClockReading {
    WallTime store{};
    Duration ours{}, error{};  ///< the own clock at the reading, and the uncertainty of the reading
    std::int64_t moved = 0;
  };
  /// Reads the clocks and corrects a jump of the database's. Returns the database's wall time.
  Task<Result<WallTime>> look_at_clock();
  /// The expected reading of the store's clock now; none: there was no reading yet.
  [[nodiscard]] std::optional<std::int64_t> expected_ms() const;
  Parameters& expect(Parameters& parameters) const {
    return parameters.late([this] { return expected_ms(); });
  }
  [[nodiscard]] Parameters expect(Parameters&& parameters) const { return std::move(expect(parameters)); }
  /// After a long sleep other nodes may have taken this node's runs: nothing is sent for it before a heartbeat is
  /// answered.
  [[nodiscard]] PostgresClient::Guard while_leased(NodeNumber node) const;
  void renew(NodeNumber node, Duration asked_at) { leases_[node] = asked_at + options_.lease; }
  [[nodiscard]] std::int64_t next_word(Fence fence) { return fence.value << 32 | (++words_ & 0xFFFF'FFFF); }
  Task<Result<>> listen();
  Task<Result<>> write(std::string_view sql, Parameters parameters);
  Task<Result<PostgresRows>> read(std::string_view sql, Parameters parameters);
  Task<Result<std::int64_t>> write_number(std::string_view sql, Parameters parameters);

  const PostgresOptions options_;
  Reactor& reactor_;
  const std::string url_;
  Schema schema_;
  PostgresClient writing_, claiming_, reading_, beating_;
  std::unique_ptr<PostgresConnection> listening_;  // opened by the first wait()
  Semaphore listeners_{"postgres listening", 1};
  Notification notification_;
  Clocks clocks_;
  std::optional<ClockReading> clock_reading_;
  std::uint64_t feed_known_ = 0;  // transactions up to this one may already be in the feed
  std::map<NodeNumber, Duration>
      leases_;  // ends of the leases of nodes that enrolled or sent heartbeats here; since boot
  std::int64_t words_ = 0;
  std::map<NodeNumber, Claims> claims_;  // of the nodes that claimed here
};

}  // namespace stint::store
