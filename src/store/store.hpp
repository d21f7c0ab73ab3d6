/// The interface of a run store, with three implementations: memory, SQLite file, PostgreSQL. All follow the rules of
/// domain/run_state.hpp and pass one conformance suite.
///
/// A process that carries runs enrols as a node and sends heartbeats. When it dies, its runs are lost: tick()
/// requeues them or puts them in doubt. A claim returns the run with a fence. Every later call of the owner carries
/// that fence, and a call of a former owner is stale and changes nothing.
///
/// Retry::unknown means that the answer was lost and the call may have taken effect. Every call may then be repeated
/// without harm, with these exceptions. After claim(), call owned(). The store repeats note() and append_output() by
/// itself; if that fails as well, the text may be stored twice. A repeated settle() is stale if the first one took
/// effect, and a repeated resolve() or answer() is a conflict: check with owned() and find().
///
/// Time (docs/decisions/0020): callers pass lengths, never moments of their own clock. Delays, back-offs, parks,
/// pauses, budgets and retention run on the store's own clock, which ignores jumps of the wall clock. Only a deadline
/// is a moment of the wall clock, and that is the store's. Moments in answers are wall times, for display.
///
/// Use one instance from one executor.
#pragma once

#include "domain/agent_entry.hpp"
#include "domain/budget_core.hpp"
#include "domain/numbers.hpp"
#include "domain/run_state.hpp"
#include "domain/system.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"
#include "store/batch.hpp"
#include "store/why.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stint::store {

using domain::AgentEntry;
using domain::Fence;
using domain::LimitUse;
using domain::NodeNumber;
using domain::RunNumber;
using domain::Use;  ///< tokens and cost

struct NewRun {
  std::string id;  ///< made by the caller, so that it can repeat a submit whose answer was lost
  std::string agent;
  std::string session;  ///< runs of one session never overlap and keep their order; empty: none
  std::string parent;   ///< id of a running run; its cancellation reaches this one; empty: none
  std::string key;      ///< idempotency key, per agent; empty: none
  int priority = 0;
  Duration delay{};
  std::optional<WallTime> deadline;     ///< by the store's wall clock
  std::optional<Duration> deadline_in;  ///< the same, counted from acceptance by the store; the earlier one applies
  /// The time budget, counted from the first start. It stands still while the run is parked, and while it is ready
  /// but a limit of its agent is paused.
  std::optional<Duration> budget;
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  /// Only this node may claim the run as long as it is alive: the submitter carries the run itself. None: any node
  /// may. Not transferred to another store.
  std::optional<NodeNumber> kept_for;
  /// The heads on whose token or cost budgets it draws: ids of runs above it, or of a budget that several runs share,
  /// which no run has. Its use is added to the sum of each.
  std::vector<std::string> draws_on;
  std::string input;  ///< JSON; the store does not parse it
};
/// The sum of a head: of a run and all runs that draw on its budget, since the first of them was submitted; of runs
/// that share a budget without such a run, since the first of them; or of all runs on a day. One rule for all: reported
/// use counts at once, the settlement replaces it, and use that was reported before its owner died stays. Includes the
/// use of forgotten runs. A family's sum is kept until its last run is forgotten, that of a day for good.
struct FamilyUse {
  std::string head;  ///< id of a run, or of a shared budget; or kToday
  Use used;

  friend bool operator==(const FamilyUse&, const FamilyUse&) = default;
};
/// The head of the day that it is now: in UTC, by the store's clock. No id of a run looks like it.
inline constexpr std::string_view kToday = "today";
struct Accepted {
  std::string id;
  bool created = true;  ///< false: a run with this id or key existed already
};

/// One attempt of a run. Every call of its owner carries it.
struct AttemptKey {
  RunNumber run{};
  Fence fence{};

  friend bool operator==(const AttemptKey&, const AttemptKey&) = default;
};

struct Claim {
  RunNumber run{};
  std::string id, agent, session;
  Fence fence{};
  std::uint32_t attempt = 1;
  std::uint32_t lost = 0;
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  bool unsafe = false;                 ///< as marked by mark(), for a run that the node already owns
  std::optional<WallTime> expires_at;  ///< for display
  /// What is left of its deadline and budget when the store answered; use this, as the host's clock may be wrong.
  /// Never negative.
  std::optional<Duration> left;
  std::string input;

  [[nodiscard]] AttemptKey attempt_key() const noexcept { return {run, fence}; }
};

struct Settlement {
  AttemptKey attempt;
  domain::Settle settle = domain::Settle::failed;
  std::string error;
  std::string result;                        ///< JSON; kept if not empty
  std::string data;                          ///< JSON: data of the event that ends the attempt; may be empty
  Duration retry_after{};                    ///< of a retry: the shortest delay
  std::string park_on;                       ///< of a park: the limit that the settlement also pauses; empty: none
  std::optional<Duration> park_for;          ///< none: until a person resumes it
  std::int64_t tokens = 0, cost_micros = 0;  ///< used by this attempt; ignored if the settlement is stale
};

/// What a node claims.
enum class NodeKind : std::uint8_t {
  any,      ///< runs that any process submits
  one_run,  ///< only the run that it has submitted itself: `stint run`
};

/// A process that carries runs. A dead node is listed until tick() has declared it dead.
struct NodeState {
  NodeNumber number{};
  std::string label;  ///< for people
  NodeKind kind = NodeKind::any;
  std::string state;  ///< live, draining
  Duration last_beat_ago{};
  std::uint64_t runs = 0;  ///< runs that it owns
};
/// Whether the node claims runs that other processes submit.
[[nodiscard]] inline bool claims_any(const NodeState& node) {
  return node.state == "live" && node.kind == NodeKind::any;
}
struct StopAsked {
  AttemptKey attempt;
  domain::Stop stop = domain::Stop::cancelled;
};
struct Beat {
  bool alive = false;  ///< false: other nodes have taken its runs. It must end all work now
  std::vector<StopAsked> stops;
};

struct Run {
  RunNumber number{};
  std::string id, agent, session, parent, key;
  domain::RunState state = domain::RunState::queued;
  domain::Hold hold = domain::Hold::none;
  domain::Stop stop = domain::Stop::none;
  std::string error, input, result;
  std::uint32_t attempt = 0, lost = 0;
  Fence fence{};
  std::int64_t seq = 0;
  std::int64_t tokens = 0, cost_micros = 0;  ///< of all attempts, including what the running one has reported
  bool unsafe = false;
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  std::optional<NodeNumber> node;
  WallTime created_at{};
  std::optional<WallTime> not_before, deadline, expires_at, started_at, finished_at;
};

struct Event {
  std::string run;  ///< id; empty: an event of the fleet
  std::int64_t seq = 0;
  Fence fence{};
  std::string cause;
  std::optional<domain::RunState> state;
  domain::Hold hold = domain::Hold::none;
  std::optional<NodeNumber> node;
  std::string error;  ///< of the ended attempt
  std::string data;   ///< JSON of a note, a claim, the end of an attempt or an event of the fleet; may be empty
  WallTime at{};
  std::string cursor{};  ///< opaque position in the feed: the feed continues after this event
};
struct FeedPage {
  std::vector<Event> events;
  std::string cursor;   ///< start of the next page
  bool pruned = false;  ///< events after the cursor were deleted: the reader must begin again with a snapshot
};
inline constexpr std::string_view kFeedNow = "now";

/// An agent that has runs to claim, considering delays and sessions.
struct Ready {
  std::string agent;
  /// Counted up to the caller's bound. A run past its deadline counts until tick() has expired it.
  std::uint32_t runs = 0;
  std::optional<std::uint32_t> startable;  ///< of those, by the store's limits now; none: no limit applies
  std::int64_t rank_ms = 0;                ///< of its first run: the smaller rank goes first
  /// No run of it may start because its weight does not fit into a shared limit. A claim then takes or keeps the turn
  /// of that limit. Without that claim, lighter runs would be served before it forever.
  bool takes_turn = false;
  std::string blocked_by{};  ///< the limit that admits the fewest runs, if none may start; empty: some may
};
inline constexpr std::uint32_t kReadyMax =
    1000;  // 25 ms with 200 agents that have so many runs; 2 to 4 ms with 10 agents

struct Filter {
  std::vector<domain::RunState> states;  ///< any of these; empty: all
  std::vector<domain::Hold> holds;       ///< any of these; `none`: not held back; empty: all
  std::string agent, session;
  std::vector<std::string> also_agents;  ///< with `agent`: or of any of these
  std::string parent;                    ///< id of a run that still exists: only its children
  /// Only runs whose id begins with it, or whose search text (search_text.hpp) or error contains it. As fold_search()
  /// returns it; empty: all.
  std::string search;
  std::optional<WallTime> since, until;  ///< created at that moment or later; before that moment
  std::vector<RunNumber> only;           ///< exactly these, whatever else is asked for; empty: all
  RunNumber before{};                    ///< only older runs; 0: from the newest
  std::uint32_t most = 100;
  bool texts = false;  ///< include input and result, which may be long
  /// For longer texts, only the member is read that a list shows (brief_text.hpp); 0: no bound.
  std::uint32_t text_bytes_max = 0;
};

/// A page of match().
struct Matches {
  struct Match {
    RunNumber number{};
    std::string id;
  };
  std::vector<Match> runs;        ///< newest first
  std::optional<RunNumber> next;  ///< `before` of the next page; none: there are no more
};
/// Runs that one call of match() examines, so that a search without a match ends in bounded steps.
inline constexpr std::uint32_t kExamineMax = 20'000;

struct Ticked {
  std::uint64_t woken = 0, expired = 0, lost = 0;
  std::vector<NodeNumber> dead;  ///< nodes that this call declared dead
  std::optional<Duration> next;  ///< until the next delay or expiry is due; may be in the past

  /// A dead node counts: the runs that were kept for it become claimable.
  [[nodiscard]] bool changed() const noexcept { return woken + expired + lost + dead.size() > 0; }
};

struct LimitState {
  std::string name;
  std::optional<std::uint32_t> capacity;
  std::int64_t units = 0, runs = 0;
  /// The ready runs whose agents use the limit, whether or not units are free: the length of the whole line, however
  /// much of it is listed. Runs that are held back otherwise (delay, session, parked) are not in line.
  std::uint64_t waiting = 0;
  bool paused = false;
  std::optional<WallTime> paused_until;  ///< for display; none while paused: until resume()
  std::optional<Duration> paused_for;    ///< the same, as the remaining length
  std::optional<std::uint32_t> ramp;
  std::string turn_of;  ///< the agent that is served first now; empty: none
  // Each list is as long as the caller asked for.
  std::vector<LimitHolder> holders;  ///< by the set that each run was claimed with; earliest claim first
  std::vector<LimitWaiter> line;     ///< the run that is due first comes first
};

struct Stats {
  std::map<domain::RunState, std::uint64_t> runs;
  std::uint64_t ready = 0;  ///< the queued runs that any node could claim now
  std::uint64_t events = 0, nodes = 0;
  std::uint64_t bytes = 0;  ///< on disk
};
struct Snapshot;
/// The queue of an agent: the number of queued runs, whether due or not, and its bound.
struct QueueState {
  std::string agent;
  std::uint64_t queued = 0, queued_max = 0;
};
/// The use of an agent's attempts on one day or in one hour, by the rule of FamilyUse: the parts of that day's sum. A
/// difference between a report and its settlement counts at the time of the settlement.
struct Spent {
  std::string day;         ///< in UTC, by the store's wall clock: 2026-11-15
  std::uint32_t hour = 0;  ///< of the day, in sums by hour
  std::string agent;
  std::int64_t runs = 0;  ///< attempts that were settled in that time
  std::int64_t tokens = 0, cost_micros = 0;
};
// series.hpp
enum class SpentBy : std::uint8_t;
struct EndedRun;
struct Sample;
struct Series;
struct SeriesQuery;
/// The schema version of the store.
struct Schema {
  std::int64_t found = 0;  ///< when it was opened; 0: there were no tables
  std::int64_t now = 0;
};

/// The beginning and the end of an output are kept; the middle of a long one is dropped.
struct Output {
  std::string head, tail;
  std::uint64_t bytes = 0;  ///< bytes written; head and tail are shorter if the middle was dropped
};
inline constexpr std::size_t kOutputHeadMax = 64 << 10, kOutputTailMax = 192 << 10;

/// One message of a conversation that a driver keeps in the store. The store does not interpret it.
struct Message {
  std::uint32_t at = 0;  ///< from 0
  std::string body;
};
/// Twice the largest request that a provider accepts (32 MB): no model can read a longer conversation.
inline constexpr std::size_t kConversationMax = 64 << 20;
inline constexpr std::uint32_t kMessagesMax = 100'000;
inline constexpr std::size_t kMessagesPageMax = 4 << 20;  ///< of a read by a driver

/// A run with everything that belongs to it, in the form in which stores exchange it.
struct RunRecord {
  Run run;                ///< complete; its number is that of the source store
  std::int64_t rank = 0;  ///< when it is due, minus ten minutes per step of priority; in ms
  std::optional<Duration> budget, budget_left;
  std::optional<WallTime> budget_until;
  std::string parked_on;
  std::vector<FamilyUse> families;  ///< the families it belongs to, by head
  std::vector<Event> events;        ///< all of them, by seq
  Output output;
  std::vector<std::string> conversation;  ///< its messages, in order
};

class Store {
 public:
  Store() = default;
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Agents and limits.
  /// Adds or changes agents. New limits have no capacity until resize().
  virtual Task<Result<>> define(std::vector<AgentEntry> agents) = 0;
  virtual Task<Result<>> resize(std::string limit, std::optional<std::uint32_t> capacity) = 0;
  /// Applies the limits of a configuration, by name. A capacity that differs from the last configured one is applied;
  /// otherwise a capacity that resize() set since then stays. A limit that only `agents` use, and that was configured
  /// before but is no longer named, loses its capacity.
  virtual Task<Result<>> configure(std::map<std::string, std::uint32_t> capacities,
                                   std::vector<std::string> agents) = 0;
  /// None: until resume(). Extends an existing pause, never shortens it.
  virtual Task<Result<>> pause(std::string limit, std::optional<Duration> length) = 0;
  /// Ends a pause and wakes the runs parked on it. Returns how many.
  virtual Task<Result<std::uint64_t>> resume(std::string limit) = 0;
  /// By name. `listed`: how many holders and waiting runs to list per limit, at most kLimitListMax.
  virtual Task<Result<std::vector<LimitState>>> limits(std::uint32_t listed = 0) = 0;

  // Nodes.
  virtual Task<Result<NodeNumber>> enrol(std::string label, NodeKind kind = NodeKind::any) = 0;
  virtual Task<Result<Beat>> beat(NodeNumber node) = 0;
  /// The node claims no more runs.
  virtual Task<Result<>> drain(NodeNumber node) = 0;
  /// Removes a node that owns no runs and ends.
  virtual Task<Result<>> leave(NodeNumber node) = 0;
  virtual Task<Result<std::vector<NodeState>>> nodes() = 0;  ///< by number
  /// Adds an event of the fleet that concerns this node: its pool, its project (domain/fleet_event.hpp). The store
  /// itself adds those of limits, and that a node joined, drains, left or died.
  virtual Task<Result<>> announce(NodeNumber node, std::string cause, std::string data) = 0;

  // Runs: calls of submitters and people.
  /// One answer per run, in order.
  virtual Task<Result<std::vector<Result<Accepted>>>> enqueue(std::vector<NewRun> runs) = 0;
  /// Cancels the run and its descendants. Returns those it reached, with their states: a running one ends when its
  /// owner has ended it.
  virtual Task<Result<std::vector<std::pair<std::string, domain::RunState>>>> cancel(std::string id) = 0;
  /// Conflict: the run is not in doubt.
  virtual Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) = 0;
  /// Queues a parked run again, whatever it is parked for. Does not end a pause of its limit; resume() does.
  /// Conflict: the run is not parked.
  virtual Task<Result<>> answer(std::string id) = 0;

  // Runs: calls of the nodes that carry them.
  /// The agents that have runs any node may claim, by the rank of their first run. Not a reservation: another node
  /// may claim first. `most`: the bound up to which the runs of each agent are counted; the cost grows with it.
  virtual Task<Result<std::vector<Ready>>> ready(std::uint32_t most = kReadyMax) = 0;
  /// `only`: the id of the one wanted run; empty: the first. A run claimed by id neither waits for limits that its
  /// running ancestors hold nor counts there, because they may be waiting for it. Pauses of these limits still delay
  /// it. `waited`: JSON of what the runs of the agent waited for, kept as the data of each claim's event; may be empty.
  virtual Task<Result<std::vector<Claim>>> claim(NodeNumber node, std::string agent, std::uint32_t most,
                                                 std::string only = {}, std::string waited = {}) = 0;
  virtual Task<Result<std::vector<Claim>>> owned(NodeNumber node) = 0;
  /// The new state of each run, in order; none: stale, the settlement was rejected.
  virtual Task<Result<std::vector<std::optional<domain::RunState>>>> settle(NodeNumber node,
                                                                            std::vector<Settlement> settlements) = 0;
  /// Call it before an operation that must not be repeated, and again when the outcome is known. False: stale, do not
  /// begin.
  virtual Task<Result<bool>> mark(NodeNumber node, AttemptKey attempt, bool unsafe) = 0;
  /// Adds an event of the owner. False: stale.
  virtual Task<Result<bool>> note(NodeNumber node, AttemptKey attempt, std::string cause, std::string data) = 0;
  virtual Task<Result<bool>> append_output(NodeNumber node, AttemptKey attempt, std::string text) = 0;
  /// Sets message `at` of the run's conversation and removes all later ones, so that a driver appends with the next
  /// number, and shortens with an earlier one. May be repeated. Fails with Errc::invalid if an earlier message is
  /// missing, and with Errc::exhausted above kConversationMax or kMessagesMax. False: stale.
  virtual Task<Result<bool>> put_message(NodeNumber node, AttemptKey attempt, Message message) = 0;
  /// The provider answers the run: limits that are probed after a pause admit more runs, as after a success. Call it
  /// once per attempt: a second call widens again. False: stale.
  virtual Task<Result<bool>> provider_answered(NodeNumber node, AttemptKey attempt) = 0;
  /// Sets the use of the attempt so far; settle() sets the final value, and the use of an attempt whose owner died
  /// stays counted. Returns the use of the run's families and its own. None: stale.
  virtual Task<Result<std::optional<std::vector<FamilyUse>>>> report(NodeNumber node, AttemptKey attempt,
                                                                     Use so_far) = 0;

  /// Does what is due: wakes and expires runs, declares dead the nodes whose lease is over. Any process may call it,
  /// often.
  virtual Task<Result<Ticked>> tick() = 0;
  /// Waits until there may be something new to claim, at most about `most`; then call claim(). `seen` is the previous
  /// return value, at first 0: changes since then are not missed.
  virtual Task<Result<std::uint64_t>> wait(std::uint64_t seen, Duration most) = 0;

  // Batches.
  /// Not created: a batch with this id or key existed. `full`: kBatchesOpenMax have not ended.
  virtual Task<Result<Accepted>> begin_batch(NewBatch batch) = 0;
  virtual Task<Result<std::optional<Batch>>> batch(std::string id) = 0;
  /// Newest first, without their failures. 0: from the newest.
  virtual Task<Result<std::vector<Batch>>> batches(BatchNumber before, std::uint32_t most) = 0;
  /// The oldest batch that this node carries already, or that no living node carries. From now on the node carries it.
  /// None: there is none, or the node is not live. Cheap if there is none.
  virtual Task<Result<std::optional<BatchClaim>>> claim_batch(NodeNumber node) = 0;
  /// Records what came of runs of the claim, and returns the next. None: the batch has ended, or another node carries
  /// it. A repeated call records nothing.
  virtual Task<Result<std::optional<BatchClaim>>> advance_batch(BatchClaim claim, BatchStep step) = 0;
  /// The node carries it no longer; another may.
  virtual Task<Result<>> release_batch(BatchClaim claim) = 0;
  /// Ends a batch before its last run. One that has ended stays as it is. None: there is no such batch.
  virtual Task<Result<std::optional<Batch>>> stop_batch(std::string id) = 0;

  // Queries.
  virtual Task<Result<std::optional<Run>>> find(std::string id) = 0;  ///< or by a unique prefix
  virtual Task<Result<std::vector<Run>>> list(Filter filter) = 0;     ///< newest first
  /// The numbers and ids of the runs that list() would return. Examines at most kExamineMax runs, so that a page may
  /// have fewer than `most` although more follow.
  virtual Task<Result<Matches>> match(Filter filter) = 0;
  /// The runs with this idempotency key: of one agent, or of all if `agent` is empty. With input and result.
  virtual Task<Result<std::vector<Run>>> with_key(std::string agent, std::string key) = 0;
  /// The sum of each head, in their order. A run on which no other draws: its own use. An unknown head: zero.
  virtual Task<Result<std::vector<FamilyUse>>> used(std::vector<std::string> heads) = 0;
  virtual Task<Result<std::vector<Event>>> events(std::string id, std::int64_t after, std::uint32_t most) = 0;
  /// Empty cursor: from the oldest event that is kept. kFeedNow: an empty page that ends at the newest event.
  virtual Task<Result<FeedPage>> feed(std::string cursor, std::uint32_t most) = 0;
  virtual Task<Result<std::vector<Why>>> why(std::string id) = 0;
  virtual Task<Result<Output>> output(std::string id) = 0;
  /// The messages of the run's conversation from number `from` on, in order: as many as `bytes_max` allows, but at
  /// least one if there is one. Kept as long as the run.
  virtual Task<Result<std::vector<std::string>>> messages(std::string id, std::uint32_t from,
                                                          std::size_t bytes_max) = 0;
  virtual Task<Result<Stats>> stats() = 0;
  /// The whole fleet in one transaction: snapshot.hpp. `listed` as in limits(); texts of runs as in Filter.
  virtual Task<Result<Snapshot>> snapshot(std::uint32_t listed, std::uint32_t text_bytes_max) = 0;
  virtual Task<Result<std::vector<QueueState>>> queues() = 0;  ///< of all agents, by name
  /// From the day or hour of `since` on, by that and agent. Survives prune(), which merges old hours into their days;
  /// not transferred to another store.
  virtual Task<Result<std::vector<Spent>>> spent(WallTime since, SpentBy by = {}) = 0;
  /// The runs of the agent that finished within this time; the last first, at most `most`.
  virtual Task<Result<std::vector<EndedRun>>> ended(std::string agent, Duration within, std::uint32_t most) = 0;

  // Time series: series.hpp.
  /// Adds what a node observes to the present step. Returns how long that step still takes: call it again then.
  virtual Task<Result<Duration>> sample(NodeNumber node, Sample sample) = 0;
  virtual Task<Result<Series>> series(SeriesQuery query) = 0;

  /// Deletes runs that ended longer ago than `older_than`, with their events and output, and events of the fleet and
  /// ended batches that are as old. Returns how many runs.
  virtual Task<Result<std::uint64_t>> prune(Duration older_than, std::uint32_t most) = 0;
  /// The same with `keep`, unless a process has completed a prune within `every`: the store records when nothing was
  /// left to delete. Cheap if it is not due. Returns how many.
  virtual Task<Result<std::uint64_t>> prune_if_due(Duration keep, Duration every, std::uint32_t most) = 0;

  // Transfer between stores: transfer.hpp.
  virtual Task<Result<std::vector<AgentEntry>>> agents() = 0;  ///< by name
  /// In the order of submission; only those with a number higher than `after`. Fewer than `most` if their
  /// conversations have more than kConversationMax bytes together; none: there are no more.
  virtual Task<Result<std::vector<RunRecord>>> dump(RunNumber after, std::uint32_t most) = 0;
  /// Adds the records of dump(); runs that exist here stay as they are. Returns how many were added. Bounds of queues
  /// do not apply, as the runs were accepted before. Conflict: a run is running, or its key is taken; repeat without
  /// it to load the rest.
  virtual Task<Result<std::uint64_t>> load(std::vector<RunRecord> records) = 0;
  /// Findings about the storage itself, one line each. Findings about runs: audit.hpp.
  virtual Task<Result<std::vector<std::string>>> check() = 0;
  [[nodiscard]] virtual Schema schema() const = 0;
};

}  // namespace stint::store
