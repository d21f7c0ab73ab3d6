/// The store in a SQLite file: the default. Durable (WAL, synchronous=FULL), for all processes of one machine. One
/// thread writes, with group commit; another reads. A call whose answer no commit can have changed
/// (sqlite_changes.hpp) uses neither: an idle process wakes none of them. The store accepts nothing while its files
/// are deleted or moved (sqlite_files.hpp).
///
/// Files beside the database: `<file>.write-lock`, the write lock by which the writers of several processes take turns,
/// and
/// `<file>.nodes/`, the leases of their nodes. Not for network file systems.
#pragma once

#include "stint/notification.hpp"
#include "store/side_thread.hpp"
#include "store/sqlite_changes.hpp"
#include "store/sqlite_files.hpp"
#include "store/sqlite_writer.hpp"
#include "store/store.hpp"

namespace stint::store {

class SqliteStore final : public Store {
 public:
  /// Other processes send no notifications: the store polls, less often while nothing changes.
  static constexpr Duration kLookEveryMin = std::chrono::milliseconds(20), kLookEveryMax = std::chrono::seconds(1);
  /// After a reboot, running budgets continue from the last tick that wrote: one at least this often.
  static constexpr Duration kDueMax = std::chrono::minutes(1);

  /// Creates the file and its tables, or migrates them. Blocks: call it before the reactor runs. `system` is used on
  /// other threads and must outlive the store. `patience`: for other programs that hold the file.
  static Result<std::unique_ptr<SqliteStore>> blocking_open(std::string path, const domain::System& system,
                                                            Duration patience = std::chrono::seconds(10));
  ~SqliteStore() override;

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

  // Only tests use these two. Neither can be had from a second connection: it sees that something was committed, not
  // in how many groups; and a lock that this process holds is freed by its end, or from within.
  /// The number of committed groups of steps.
  [[nodiscard]] std::uint64_t commits() const noexcept { return writer_->commits(); }
  /// As if the process that enrolled the node were gone.
  Task<Result<>> drop_lease(NodeNumber node);

 private:
  /// State of the reading thread.
  struct Reader {
    Reader(Database from, const std::string& leases, const domain::System& system, StoreClock clock)
        : database(std::move(from)), rows(database, leases), ledger(rows, system, std::move(clock)) {}
    Database database;
    SqliteRows rows;
    Ledger ledger;
  };
  SqliteStore(const std::string& path, SqliteChanges changes, std::string leases, StoreClock clock)
      : clock_(std::move(clock)), leases_(std::move(leases)), files_(path), changes_(std::move(changes)) {}
  /// Call it before reading anything that is cached. Fails if the paths do not lead to the open files.
  Result<std::uint64_t> look();
  [[nodiscard]] bool is_nothing_due(std::uint64_t now) const;
  template <class Step>
  auto write(Step step) -> Task<std::invoke_result_t<Step&, Ledger&>>;
  /// A step that may make a run ready.
  template <class Step>
  auto write_and_notify(Step step) -> Task<std::invoke_result_t<Step&, Ledger&>>;
  template <class Look>
  auto read(Look look) -> Task<std::invoke_result_t<Look&, Reader&>>;

  Schema schema_;
  std::unique_ptr<SqliteWriter> writer_;  // used on the writing thread …
  std::unique_ptr<Reader> reader_;        // … and on the reading thread
  const StoreClock clock_;                // for the thread that uses the store
  const std::string leases_;
  const SqliteFiles files_;
  SqliteChanges changes_;
  // Cached answers, valid while look() returns the number from before they were read. A look is never 0.
  struct {
    std::uint64_t at = 0;
    NodeNumber node{};
    Beat beat;
  } beaten_;
  struct {
    std::uint64_t at = 0;
    std::optional<Duration> next;  // counted from `seen`
    StoreClock::Seen seen;
  } nothing_due_;
  std::uint64_t nothing_ready_ = 0, waited_ = 0;
  Notification notification_;
  Duration look_every_ = kLookEveryMin;
  bool sampled_ = false;          // a commit since the last look was a sample, which announces no work: the pace stays
  SideThread writing_, reading_;  // destroyed before the members that they use
};

}  // namespace stint::store
