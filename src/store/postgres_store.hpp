/// The store of a fleet, in PostgreSQL 13 or newer: for all processes of all machines. What a call does is one function
/// of the database (sql/postgres), in one transaction, by the store's clock: the database's, made up
/// for its jumps, which whoever ticks sees by its own clock (docs/decisions/0020). No host's wall clock is asked.
///
/// Five connections, made when they are needed and again when they were lost: one to write, one to claim, so that the
/// next runs are claimed while the ends of the last are written, one to look, one for beats alone, so that nothing else
/// can cost a lease, and one on which wait() listens. No session state but that: a pooler in transaction mode may stand
/// between, and then wait() is a poll.
#pragma once

#include "stint/notification.hpp"
#include "store/postgres_client.hpp"
#include "store/store.hpp"

namespace stint::store {

class PostgresStore final : public Store {
 public:
  static constexpr int kServerMin = 13;
  static constexpr std::int64_t kBatchMax = 1000;              // runs woken or expired in one step
  static constexpr int kBuriedMax = 100;                       // nodes buried by one tick()
  static constexpr Duration kFar = std::chrono::hours(1);      // no lease is given for longer
  static constexpr Duration kJump = std::chrono::seconds(10);  // of the database's clock; less is taken for time

  /// Connects, makes the tables or brings them up to date. `denied`: the server is too old, the tables were made by a
  /// newer Stint, or we may not.
  static Task<Result<std::unique_ptr<PostgresStore>>> open(Reactor& reactor, std::string url,
                                                           PostgresOptions options = {});

  Task<Result<>> define(std::vector<AgentEntry> agents) override;
  Task<Result<>> resize(std::string limit, std::optional<std::uint32_t> capacity) override;
  Task<Result<>> configure(std::map<std::string, std::uint32_t> capacities, std::vector<std::string> agents) override;
  Task<Result<>> pause(std::string limit, std::optional<Duration> length) override;
  Task<Result<std::uint64_t>> resume(std::string limit) override;
  Task<Result<std::vector<LimitState>>> limits(std::uint32_t listed = 0) override;
  Task<Result<NodeNumber>> enrol(std::string label) override;
  Task<Result<Beat>> beat(NodeNumber node) override;
  Task<Result<>> drain(NodeNumber node) override;
  Task<Result<>> leave(NodeNumber node) override;
  Task<Result<std::vector<NodeState>>> nodes() override;
  Task<Result<std::vector<Result<Accepted>>>> enqueue(std::vector<NewRun> runs) override;
  Task<Result<std::vector<std::pair<std::string, domain::RunState>>>> cancel(std::string id) override;
  Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) override;
  Task<Result<>> answer(std::string id) override;
  Task<Result<std::vector<Ready>>> ready(std::uint32_t most) override;
  Task<Result<std::vector<Claim>>> claim(NodeNumber node, std::string agent, std::uint32_t most,
                                         std::string only = {}) override;
  Task<Result<std::vector<Claim>>> owned(NodeNumber node) override;
  Task<Result<std::vector<std::optional<domain::RunState>>>> settle(NodeNumber node,
                                                                    std::vector<Settlement> settlements) override;
  Task<Result<bool>> mark(NodeNumber node, RunNumber run, std::int64_t fence, bool unsafe) override;
  Task<Result<bool>> note(NodeNumber node, RunNumber run, std::int64_t fence, std::string cause,
                          std::string data) override;
  Task<Result<bool>> append_output(NodeNumber node, RunNumber run, std::int64_t fence, std::string text) override;
  Task<Result<bool>> answered(NodeNumber node, RunNumber run, std::int64_t fence) override;
  Task<Result<std::optional<std::vector<FamilyUse>>>> report(NodeNumber node, RunNumber run, std::int64_t fence,
                                                             Use so_far) override;
  Task<Result<Ticked>> tick() override;
  Task<Result<std::uint64_t>> wait(std::uint64_t seen, Duration most) override;
  Task<Result<std::optional<Run>>> find(std::string id) override;
  Task<Result<std::vector<Run>>> list(Filter filter) override;
  Task<Result<std::vector<Run>>> with_key(std::string agent, std::string key) override;
  Task<Result<std::vector<FamilyUse>>> used(std::vector<std::string> heads) override;
  Task<Result<std::vector<Event>>> events(std::string id, std::int64_t after, std::uint32_t most) override;
  Task<Result<FeedPage>> feed(std::string cursor, std::uint32_t most) override;
  Task<Result<std::vector<Why>>> why(std::string id) override;
  Task<Result<Output>> output(std::string id) override;
  Task<Result<Stats>> stats() override;
  Task<Result<std::vector<QueueState>>> queues() override;
  Task<Result<std::vector<Spent>>> spent(WallTime since) override;
  Task<Result<std::uint64_t>> prune(Duration older_than, std::uint32_t most) override;
  Task<Result<std::uint64_t>> prune_if_due(Duration keep, Duration every, std::uint32_t most) override;
  Task<Result<std::vector<AgentEntry>>> agents() override;
  Task<Result<std::vector<RunRecord>>> dump(RunNumber after, std::uint32_t most) override;
  Task<Result<std::uint64_t>> load(std::vector<RunRecord> records) override;
  Task<Result<std::vector<std::string>>> check() override;
  [[nodiscard]] Schema schema() const override { return schema_; }

 private:
  /// A node's claims. A claim that was not answered, or whose asker was stopped, may still be carried out: owned()
  /// then begins a new round, in which it is either seen or refused.
  struct Claims {
    std::int64_t round = 0;
    int unanswered = 0;  // of this round
  };

  PostgresStore(Reactor& reactor, const std::string& url, const PostgresOptions& options)
      : options_(options),
        reactor_(reactor),
        url_(url),
        writing_(reactor, "postgres writing", url, options),
        claiming_(reactor, "postgres claiming", url, options),
        reading_(reactor, "postgres reading", url, options),
        beating_(reactor, "postgres beating", url, options) {}
  /// The two clocks when tick() looked last, and until when it buries nobody: a jump of the database's clock makes
  /// every lease look over, until its node has beaten again.
  struct Clocks {
    std::optional<WallTime> database;
    Duration ours{}, since{};
    Duration trusted_from{};
  };
  [[nodiscard]] bool trusts_leases(WallTime database_now);
  /// The store's clock as it was seen last, and how far it is from that by our own.
  struct Sight {
    WallTime store{};
    Duration ours{}, error{};  ///< ours when it was seen, and by how much that may be wrong
    std::int64_t moved = 0;
  };
  /// Looks at the clocks; makes up for a jump of the database's. When that was: its wall time.
  Task<Result<WallTime>> look_at_clock();
  /// Where the store's clock should be now; none: it was not seen yet.
  [[nodiscard]] std::optional<std::int64_t> expected_ms() const;
  Parameters& expect(Parameters& parameters) const {
    return parameters.late([this] { return expected_ms(); });
  }
  [[nodiscard]] Parameters expect(Parameters&& parameters) const { return std::move(expect(parameters)); }
  /// After a long sleep others may have taken a node's runs: nothing of it is sent before a beat has told.
  [[nodiscard]] PostgresClient::Guard while_leased(NodeNumber node) const;
  void renew(NodeNumber node, Duration asked_at) { leases_[node] = asked_at + options_.lease; }
  [[nodiscard]] std::int64_t next_word(std::int64_t fence) { return fence << 32 | (++words_ & 0xFFFF'FFFF); }
  Task<Result<>> listen();
  Task<Result<>> write(std::string_view sql, Parameters parameters);
  Task<Result<PostgresRows>> read(std::string_view sql, Parameters parameters);
  Task<Result<std::int64_t>> write_number(std::string_view sql, Parameters parameters);

  const PostgresOptions options_;
  Reactor& reactor_;
  const std::string url_;
  Schema schema_;
  PostgresClient writing_, claiming_, reading_, beating_;
  std::unique_ptr<PostgresConnection> listening_;  // made by the first wait()
  Semaphore listeners_{"postgres listening", 1};
  Notification notification_;
  Clocks clocks_;
  std::optional<Sight> sight_;
  std::uint64_t feed_known_ = 0;           // transactions up to this one may have been told of
  std::map<NodeNumber, Duration> leases_;  // of those that were enrolled or have beaten here: until when, since boot
  std::int64_t words_ = 0;
  std::map<NodeNumber, Claims> claims_;  // of the nodes that claimed here
};

}  // namespace stint::store
