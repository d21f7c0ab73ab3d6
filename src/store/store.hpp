/// Where runs live: one interface; in memory, in a SQLite file, in PostgreSQL. All follow the rules of
/// domain/run_state.hpp and pass one suite of tests.
///
/// Whoever carries runs enrols as a node and beats; what it owned when it died is lost, and goes back, or in doubt.
/// A claim gives a fence with the run, and whatever the owner later says of the run carries it: what comes from a
/// former owner is stale and changes nothing. An answer that did not come leaves open
/// whether the thing was done (Retry::unknown): everything here may be asked again without harm, except claim(), after
/// which owned() tells, and note() and append_output(), which the store asks again by itself; if that was in vain as
/// well, the text may come to be there twice. A settle() that counted is stale when it is asked again, a resolve() or
/// an answer() is a conflict: owned() and find() tell.
///
/// Time (docs/decisions/0020). Callers give lengths, never moments of their own clock: delays, back-offs, parks,
/// pauses, budgets and retention run on the store's own time, which a wall clock that jumps does not move. Only a
/// deadline is a moment of the wall clock, the store's. Moments in answers are wall times, for people to read.
///
/// One instance is used from one executor.
#pragma once

#include "domain/agent_entry.hpp"
#include "domain/budget_core.hpp"
#include "domain/run_state.hpp"
#include "domain/system.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"
#include "store/why.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stint::store {

using RunNumber = std::int64_t;  ///< inside of a store; people see the id
using NodeNumber = std::int64_t;

using domain::AgentEntry;
using domain::LimitUse;
using domain::Use;  ///< tokens and cost

struct NewRun {
  std::string id;  ///< made by the caller, so that a submit without an answer can be repeated
  std::string agent;
  std::string session;  ///< runs of a session go one after the other; empty: none
  std::string parent;   ///< the id of a running run, whose cancel reaches this one; empty: none
  std::string key;      ///< of idempotency, per agent; empty: none
  int priority = 0;
  Duration delay{};
  std::optional<WallTime> deadline;     ///< of the store's wall clock
  std::optional<Duration> deadline_in;  ///< the same, counted from when the store accepts it; the earlier one holds
  /// Of time, from the first start. Stands still while the run is parked, or ready while a limit of its agent is
  /// paused.
  std::optional<Duration> budget;
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  /// Who submits it also carries it: as long as this node lives, no other may claim it. None: anyone. Not moved to
  /// another store.
  std::optional<NodeNumber> kept_for;
  /// The heads on whose budgets of tokens or cost it draws: ids of runs above it, or of a budget that several runs
  /// share, which no run has. What it uses is added to the sum of each.
  std::vector<std::string> draws_on;
  std::string input;  ///< JSON; not looked into
};
/// The sum of a head: of a run and of all runs that draw on its budget, since the first of them was submitted; of runs
/// that share a budget without such a run, since the first of them; or of all runs on a day. One rule for all: what an
/// attempt reports counts at once, what it settled with takes the place of that, and what it reported before its owner
/// died stays. Includes what forgotten runs used. A family's sum is kept until its last run is forgotten, that of a day
/// for good.
struct FamilyUse {
  std::string head;  ///< id of a run, or of a shared budget; or kToday
  Use used;

  friend bool operator==(const FamilyUse&, const FamilyUse&) = default;
};
/// The head of the day that it is now: in UTC, by the store's clock. No id of a run looks like it.
inline constexpr std::string_view kToday = "today";
struct Accepted {
  std::string id;
  bool created = true;  ///< false: it was there, by its id or key
};

struct Claim {
  RunNumber run = 0;
  std::string id, agent, session;
  std::int64_t fence = 0;
  std::uint32_t attempt = 1;
  std::uint32_t lost = 0;
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  bool unsafe = false;                 ///< of one that is owned already
  std::optional<WallTime> expires_at;  ///< for people
  /// Of its deadline and budget, when the store answered: the host's clock may be wrong. Never negative.
  std::optional<Duration> left;
  std::string input;
};

struct Settlement {
  RunNumber run = 0;
  std::int64_t fence = 0;
  domain::Settle settle = domain::Settle::failed;
  std::string error;
  std::string result;                        ///< JSON; kept if not empty
  Duration retry_after{};                    ///< of a retry: at least so long
  std::string park_on;                       ///< of a park: the limit that is paused with it; empty: none
  std::optional<Duration> park_for;          ///< none: until a person resumes it
  std::int64_t tokens = 0, cost_micros = 0;  ///< that this attempt used; counted if the settlement is not stale
};

/// A process that carries runs, or did until now: who died is here until tick() has buried it.
struct NodeState {
  NodeNumber number = 0;
  std::string label;
  std::string state;  ///< live, draining
  Duration last_beat_ago{};
  std::uint64_t runs = 0;  ///< that it owns
};
/// Ends the label of a node that carries one run, its own, and claims no other: `stint run`.
inline constexpr std::string_view kOneRunLabel = " run";
[[nodiscard]] inline bool carries_one_run(const NodeState& node) { return node.label.ends_with(kOneRunLabel); }
/// It takes runs that others submit.
[[nodiscard]] inline bool claims_any(const NodeState& node) { return node.state == "live" && !carries_one_run(node); }
struct StopAsked {
  RunNumber run = 0;
  std::int64_t fence = 0;
  domain::Stop stop = domain::Stop::cancelled;
};
struct Beat {
  bool alive = false;  ///< false: others have taken its runs. It must end all work now
  std::vector<StopAsked> stops;
};

struct Run {
  RunNumber number = 0;
  std::string id, agent, session, parent, key;
  domain::RunState state = domain::RunState::queued;
  domain::Hold hold = domain::Hold::none;
  domain::Stop stop = domain::Stop::none;
  std::string error, input, result;
  std::uint32_t attempt = 0, lost = 0;
  std::int64_t fence = 0, seq = 0;
  std::int64_t tokens = 0, cost_micros = 0;  ///< of all its attempts, with what the running one has reported
  bool unsafe = false;
  domain::OnCrash on_crash = domain::OnCrash::doubt;
  std::optional<NodeNumber> node;
  WallTime created_at{};
  std::optional<WallTime> not_before, deadline, expires_at, started_at, finished_at;
};

struct Event {
  std::string run;  ///< id; empty: of the fleet
  std::int64_t seq = 0, fence = 0;
  std::string cause;
  std::optional<domain::RunState> state;
  domain::Hold hold = domain::Hold::none;
  std::optional<NodeNumber> node;
  std::string error;  ///< of the attempt that ended
  std::string data;   ///< JSON of a note, or empty
  WallTime at{};
  std::string cursor{};  ///< in the feed: opaque; what comes after it begins there
};
struct FeedPage {
  std::vector<Event> events;
  std::string cursor;  ///< the next page begins there
};
inline constexpr std::string_view kFeedNow = "now";

/// An agent that has something to claim, as far as delays and sessions go.
struct Ready {
  std::string agent;
  /// Counted as far as was asked. One whose deadline has passed counts until tick() has seen it.
  std::uint32_t runs = 0;
  std::optional<std::uint32_t> startable;  ///< of those, as the store's limits stand now; none: no limit bounds them
  std::int64_t rank_ms = 0;                ///< of its first: smaller goes first
  /// Nothing of it may start, since its weight does not fit into a limit that it shares; a claim takes the limit's
  /// turn, or keeps it. Without that claim, lighter runs would be served before it for ever.
  bool takes_turn = false;
};
inline constexpr std::uint32_t kReadyMax = 1000;  // with 200 agents that have so many: 25 ms. With 10: 2 to 4 ms

struct Filter {
  std::vector<domain::RunState> states;  ///< one of them; empty: any
  std::string agent, session;
  std::string parent;    ///< id of a run that is still there: only its children
  RunNumber before = 0;  ///< only older ones; 0: from the newest
  std::uint32_t most = 100;
  bool texts = false;  ///< with input and result, which may be long
  /// Of texts that have more bytes, only the member is read that a list shows (brief_text.hpp); 0: no bound.
  std::uint32_t text_bytes_max = 0;
};

struct Ticked {
  std::uint64_t woken = 0, expired = 0, lost = 0;
  std::vector<NodeNumber> buried;
  std::optional<Duration> next;  ///< until the next delay or expiry is due; may be past already

  /// With a node goes that it kept runs to itself.
  [[nodiscard]] bool changed() const noexcept { return woken + expired + lost + buried.size() > 0; }
};

struct LimitState {
  std::string name;
  std::optional<std::uint32_t> capacity;
  std::int64_t units = 0, runs = 0;
  bool paused = false;
  std::optional<WallTime> paused_until;  ///< for people; none although paused: until somebody resumes it
  std::optional<Duration> paused_for;    ///< the same, as the length that is left of it
  std::optional<std::uint32_t> ramp;
  // As many of each as were asked for.
  std::vector<LimitHolder> holders;  ///< by the set that each run was claimed with; the earliest claim first
  std::vector<LimitWaiter> line;     ///< the run that is due first stands first
};

struct Stats {
  std::map<domain::RunState, std::uint64_t> runs;
  std::uint64_t ready = 0;  ///< of the queued: anyone could claim them now
  std::uint64_t events = 0, nodes = 0;
  std::uint64_t bytes = 0;  ///< on disk
};
/// The queue of an agent: all that is queued, whether it is due or not, and how much may be.
struct QueueState {
  std::string agent;
  std::uint64_t queued = 0, queued_max = 0;
};
/// What the attempts of an agent used on one day, by the rule of FamilyUse: the parts of that day's sum. What differs
/// between a report and its settlement counts on the day of the settlement.
struct Spent {
  std::string day;  ///< in UTC, by the store's clock: 2026-11-15
  std::string agent;
  std::int64_t runs = 0;  ///< attempts that were settled on that day
  std::int64_t tokens = 0, cost_micros = 0;
};
/// The version of the tables.
struct Schema {
  std::int64_t found = 0;  ///< when it was opened; 0: there were none
  std::int64_t now = 0;
};

/// Both ends of an output are kept; the middle of a long one is not.
struct Output {
  std::string head, tail;
  std::uint64_t bytes = 0;  ///< all that was written; head and tail are less if something is missing
};
inline constexpr std::size_t kOutputHeadMax = 64 << 10, kOutputTailMax = 192 << 10;

/// A run with all that belongs to it, as one store hands it to another.
struct RunRecord {
  Run run;                ///< whole; its number is that of the store it comes from
  std::int64_t rank = 0;  ///< when it is due, less ten minutes for each step of priority; in ms
  std::optional<Duration> budget, budget_left;
  std::optional<WallTime> budget_until;
  std::string parked_on;
  std::vector<FamilyUse> families;  ///< to which it belongs, by head
  std::vector<Event> events;        ///< all of them, by seq
  Output output;
};

class Store {
 public:
  Store() = default;
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Agents and limits.
  /// Adds or changes. Limits that are new have no capacity: resize() gives them one.
  virtual Task<Result<>> define(std::vector<AgentEntry> agents) = 0;
  virtual Task<Result<>> resize(std::string limit, std::optional<std::uint32_t> capacity) = 0;
  /// What a configuration says of limits, by name. A number that differs from the one that was configured last becomes
  /// the capacity; else a capacity that resize() gave since then stays. Limits that only `agents` use, that were
  /// configured before and are not named any more, have no capacity from now on.
  virtual Task<Result<>> configure(std::map<std::string, std::uint32_t> capacities,
                                   std::vector<std::string> agents) = 0;
  /// None: until resume(). A pause that is there already is made longer, never shorter.
  virtual Task<Result<>> pause(std::string limit, std::optional<Duration> length) = 0;
  /// Ends a pause, and wakes what was parked on it. How many were.
  virtual Task<Result<std::uint64_t>> resume(std::string limit) = 0;
  /// By name. `listed`: how many holders and waiting runs of each limit are listed, at most kLimitListMax.
  virtual Task<Result<std::vector<LimitState>>> limits(std::uint32_t listed = 0) = 0;

  // Nodes.
  virtual Task<Result<NodeNumber>> enrol(std::string label) = 0;
  virtual Task<Result<Beat>> beat(NodeNumber node) = 0;
  /// It claims no more.
  virtual Task<Result<>> drain(NodeNumber node) = 0;
  /// It has nothing left and ends.
  virtual Task<Result<>> leave(NodeNumber node) = 0;
  virtual Task<Result<std::vector<NodeState>>> nodes() = 0;  ///< by number

  // Runs: from outside.
  /// One answer for each, in their order.
  virtual Task<Result<std::vector<Result<Accepted>>>> enqueue(std::vector<NewRun> runs) = 0;
  /// The run and all below it. Those it reached, with their states: running ones end when their owner has ended them.
  virtual Task<Result<std::vector<std::pair<std::string, domain::RunState>>>> cancel(std::string id) = 0;
  /// Conflict: it is not in doubt.
  virtual Task<Result<domain::RunState>> resolve(std::string id, domain::Resolution how) = 0;
  /// One that is parked, for whatever it is: it is queued again. A pause of its limit is not ended by that; resume()
  /// does. Conflict: it is not parked.
  virtual Task<Result<>> answer(std::string id) = 0;

  // Runs: from their owner.
  /// The agents that have something for anyone to claim, by the rank of their first. Nothing is promised: another may
  /// be quicker.
  /// `most`: how far the runs of each are counted, which is the price.
  virtual Task<Result<std::vector<Ready>>> ready(std::uint32_t most = kReadyMax) = 0;
  /// `only`: the id of the one run that is wanted; empty: whatever is first. A run that is named neither waits for
  /// limits that running runs above it hold (its parent, the parent of that, ...), nor is it counted there; they may be
  /// waiting for it. Pauses of these limits hold it up.
  virtual Task<Result<std::vector<Claim>>> claim(NodeNumber node, std::string agent, std::uint32_t most,
                                                 std::string only = {}) = 0;
  virtual Task<Result<std::vector<Claim>>> owned(NodeNumber node) = 0;
  /// The new state of each, in their order; none: stale, its result counts for nothing.
  virtual Task<Result<std::vector<std::optional<domain::RunState>>>> settle(NodeNumber node,
                                                                            std::vector<Settlement> settlements) = 0;
  /// Before a call that may not be repeated is begun, and when its outcome is known. False: stale, do not begin it.
  virtual Task<Result<bool>> mark(NodeNumber node, RunNumber run, std::int64_t fence, bool unsafe) = 0;
  /// An event of the owner's. False: stale.
  virtual Task<Result<bool>> note(NodeNumber node, RunNumber run, std::int64_t fence, std::string cause,
                                  std::string data) = 0;
  virtual Task<Result<bool>> append_output(NodeNumber node, RunNumber run, std::int64_t fence, std::string text) = 0;
  /// The provider answers the run: limits that are probed after a pause let more runs start, as after a success. Once
  /// for each attempt; asked twice it widens twice. False: stale.
  virtual Task<Result<bool>> answered(NodeNumber node, RunNumber run, std::int64_t fence) = 0;
  /// What the attempt has used so far; settle() has the last word on it, and what an attempt reported before its owner
  /// died stays counted. The sums of the families to which the run belongs, and of its own. None: stale.
  virtual Task<Result<std::optional<std::vector<FamilyUse>>>> report(NodeNumber node, RunNumber run, std::int64_t fence,
                                                                     Use so_far) = 0;

  /// What is due: wakes, expires, buries nodes whose lease is over. Any process, often.
  virtual Task<Result<Ticked>> tick() = 0;
  /// Until there may be something new to claim, and at most about so long; claim() tells. `seen` is what it answered
  /// before, at first 0: what came since then is not slept through.
  virtual Task<Result<std::uint64_t>> wait(std::uint64_t seen, Duration most) = 0;

  // Looking.
  virtual Task<Result<std::optional<Run>>> find(std::string id) = 0;  ///< or a prefix that only one has
  virtual Task<Result<std::vector<Run>>> list(Filter filter) = 0;     ///< newest first
  /// Runs with this key of idempotency: of one agent, or, if `agent` is empty, of any. With input and result.
  virtual Task<Result<std::vector<Run>>> with_key(std::string agent, std::string key) = 0;
  /// The sum of each head, in their order. Of a run on which no other draws: its own. Of none: nothing.
  virtual Task<Result<std::vector<FamilyUse>>> used(std::vector<std::string> heads) = 0;
  virtual Task<Result<std::vector<Event>>> events(std::string id, std::int64_t after, std::uint32_t most) = 0;
  /// Empty: from the beginning. kFeedNow: nothing yet, and from here on.
  virtual Task<Result<FeedPage>> feed(std::string cursor, std::uint32_t most) = 0;
  virtual Task<Result<std::vector<Why>>> why(std::string id) = 0;
  virtual Task<Result<Output>> output(std::string id) = 0;
  virtual Task<Result<Stats>> stats() = 0;
  virtual Task<Result<std::vector<QueueState>>> queues() = 0;  ///< of all agents, by name
  /// From the day of `since` on, by day and agent. Kept when runs are forgotten; not moved to another store.
  virtual Task<Result<std::vector<Spent>>> spent(WallTime since) = 0;

  /// Forgets runs that ended longer ago than that, with their events and output. How many.
  virtual Task<Result<std::uint64_t>> prune(Duration older_than, std::uint32_t most) = 0;
  /// The same for runs that ended longer ago than `keep`, unless a process has already done so within `every`: the
  /// store remembers when nothing was left to forget. Cheap if it is not due. How many.
  virtual Task<Result<std::uint64_t>> prune_if_due(Duration keep, Duration every, std::uint32_t most) = 0;

  // From one store to another: transfer.hpp.
  virtual Task<Result<std::vector<AgentEntry>>> agents() = 0;  ///< by name
  /// In the order in which they came; only those with a higher number than `after`.
  virtual Task<Result<std::vector<RunRecord>>> dump(RunNumber after, std::uint32_t most) = 0;
  /// Adds what dump() gave; those that are here already stay as they are. How many were added. What was accepted once
  /// is accepted: no bound of a queue applies. Conflict: one is running, or its key is taken; asked again without it,
  /// the rest comes.
  virtual Task<Result<std::uint64_t>> load(std::vector<RunRecord> records) = 0;
  /// What is wrong with the medium itself, one line each; what is wrong with the runs in it: audit.hpp.
  virtual Task<Result<std::vector<std::string>>> check() = 0;
  [[nodiscard]] virtual Schema schema() const = 0;
};

}  // namespace stint::store
