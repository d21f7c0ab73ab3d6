// The snapshot of every store: its sums are those of a naive count, and the events after its cursor bring them to the
// next one.
#include "domain/fleet_event.hpp"
#include "store/conformance.hpp"

#include <array>
#include <map>
#include <random>

namespace stint::store {

std::vector<Event> SnapshotTest::after(const std::string& cursor) {
  std::vector<Event> all;
  for (std::string at = cursor;;) {
    FeedPage page = get(store().feed(at, 7));
    EXPECT_FALSE(page.pruned);
    if (page.events.empty()) return all;
    all.insert(all.end(), page.events.begin(), page.events.end());
    at = page.cursor;
  }
}

std::vector<std::string> SnapshotTest::fleet_news(const std::string& cursor) {
  std::vector<std::string> news;
  for (const Event& event : after(cursor)) {
    if (event.run.empty()) news.push_back(event.cause + " " + event.data);
  }
  return news;
}

std::map<domain::RunState, std::uint64_t> SnapshotTest::naive_counts() {
  std::map<domain::RunState, std::uint64_t> counts;
  for (const domain::RunState state : domain::kRunStates) counts[state] = 0;
  Filter all;
  all.most = 100'000;
  for (const store::Run& run : get(store().list(all))) ++counts[run.state];
  return counts;
}

namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::RunState;
using domain::Settle;
using domain::WaitCause;
using StateCounts = std::map<RunState, std::uint64_t>;
using Ids = std::vector<std::string>;

Ids ids_of_runs(const std::vector<store::Run>& runs) {
  Ids ids;
  for (const store::Run& run : runs) ids.push_back(run.id);
  return ids;
}

TEST_P(SnapshotTest, of_an_empty_store_has_zeros_for_every_state) {
  const Snapshot empty = snapshot();
  EXPECT_EQ(empty.counts.size(), domain::kRunStates.size());
  for (const auto& [state, runs] : empty.counts) EXPECT_EQ(runs, 0U) << to_string(state);
  EXPECT_TRUE(after(empty.cursor).empty());
  EXPECT_EQ(empty.as_of, world().now());
  EXPECT_EQ(empty.needs_total(), 0U);
}

TEST_P(SnapshotTest, divides_the_queue_by_reason) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  define("b");
  get(store().resize("gpu", 2));
  const NodeNumber node = enrol();
  const auto in_session = [](NewRun& run) { run.session = "s"; };
  submit("a", in_session);
  const WallTime first = world().now();
  world().advance(1s);
  submit("a", in_session);
  submit("b", [](NewRun& run) { run.delay = 1h; });
  claim_one(node, "a");
  submit("a");
  world().advance(1s);
  submit("a");
  submit("b");
  submit("b", [&](NewRun& run) { run.kept_for = node; });
  const Snapshot now = snapshot();
  EXPECT_EQ(now.counts.at(RunState::queued), 6U);
  EXPECT_EQ(now.claimable(), 3U) << "without the one that its node keeps";
  EXPECT_EQ(now.waiting,
            (std::vector<WaitGroup>{
                {.cause = WaitCause::session, .limit = {}, .runs = 1, .oldest = first + 1s},
                {.cause = WaitCause::delay, .limit = {}, .runs = 1, .oldest = first + 1s, .until = first + 1s + 1h}}));
  const QueueSplit split = split_queue(now, now.limits);
  EXPECT_EQ(split.startable, 3U) << "one of the two that need the limit, and both others";
  ASSERT_EQ(split.held.size(), 3U);
  EXPECT_EQ(split.held[2], (WaitGroup{.cause = WaitCause::limit, .limit = "gpu", .runs = 1}));
  EXPECT_EQ(split.oldest, first + 1s);
  get(store().pause("gpu", std::nullopt));
  const Snapshot paused = snapshot();
  EXPECT_EQ(split_queue(paused, paused.limits).held[2],
            (WaitGroup{.cause = WaitCause::paused, .limit = "gpu", .runs = 2, .oldest = first + 1s}));
}

TEST_P(SnapshotTest, parked_runs_are_grouped_with_the_moment_when_the_first_goes_on) {
  define("a");
  const NodeNumber node = enrol();
  const auto park = [&](std::string limit, std::optional<Duration> length) {
    submit("a");
    settle(node, claim_one(node, "a"), Settle::park, [&](Settlement& end) {
      end.park_on = std::move(limit);
      end.park_for = length;
    });
  };
  const WallTime first = world().now();
  park("account", 2h);
  world().advance(1s);
  get(store().beat(node));
  park("account", 1h);
  park("", 5s);
  park("", std::nullopt);
  submit("a", [](NewRun& run) { run.delay = 3h; });
  const Snapshot now = snapshot();
  EXPECT_EQ(now.parked,
            (std::vector<WaitGroup>{
                {.cause = WaitCause::quota, .runs = 1, .oldest = first + 1s, .until = first + 6s},
                {.cause = WaitCause::quota, .limit = "account", .runs = 2, .oldest = first, .until = first + 1s + 1h},
                {.cause = WaitCause::person, .runs = 1, .oldest = first + 1s}}));
  EXPECT_EQ(split_queue(now, now.limits).oldest, std::nullopt) << "a run whose start time is to come does not wait";
}

TEST_P(SnapshotTest, a_run_that_was_claimed_before_waits_since_it_came_back) {
  define("a");
  const NodeNumber node = enrol();
  submit("a");
  world().advance(5s);
  get(store().beat(node));
  const Claim claim = claim_one(node, "a");
  get(store().beat(node));
  world().advance(5s);
  settle(node, claim, Settle::hand_back);
  const Snapshot now = snapshot();
  ASSERT_EQ(now.lines.size(), 1U);
  EXPECT_EQ(now.lines[0].oldest, world().now());
}

TEST_P(SnapshotTest, lists_what_runs_what_needs_a_person_and_what_failed_last) {
  define("a");
  const NodeNumber node = enrol();
  const std::string works = submit("a", [](NewRun& run) { run.input = R"({"title":"t"})"; });
  claim_one(node, "a");
  const std::string asks = submit("a"), waits = submit("a"), doubts = submit("a"), fails = submit("a");
  settle(node, claim_one(node, "a"), Settle::park);
  settle(node, claim_one(node, "a"), Settle::park, [](Settlement& end) { end.park_for = 1h; });
  const Claim unsafe = claim_one(node, "a");
  get(store().mark(node, unsafe.attempt_key(), true));
  settle(node, unsafe, Settle::hand_back);
  settle(node, claim_one(node, "a"), Settle::failed, [](Settlement& end) { end.error = "broken"; });
  world().advance(1s);
  const std::string fails_later = submit("a");
  settle(node, claim_one(node, "a"), Settle::failed, [](Settlement& end) { end.cost_micros = 5; });
  const std::string ends = submit("a");
  settle(node, claim_one(node, "a"), Settle::succeeded, [](Settlement& end) { end.tokens = 7; });
  const Snapshot now = snapshot();
  EXPECT_EQ(ids_of_runs(now.running), Ids{works});
  EXPECT_EQ(now.running[0].input, R"({"title":"t"})");
  EXPECT_EQ(ids_of_runs(now.needs), (Ids{asks, doubts})) << "the oldest first, without the one that goes on by itself";
  EXPECT_EQ(now.needs_total(), 2U);
  EXPECT_EQ(ids_of_runs(now.failures), (Ids{fails_later, fails}));
  EXPECT_EQ(now.failures[1].error, "broken");
  ASSERT_EQ(now.nodes.size(), 1U);
  EXPECT_EQ(now.nodes[0].runs, 1U);
  EXPECT_EQ(now.today.tokens, 7);
  EXPECT_EQ(now.today.cost_micros, 5);
  EXPECT_EQ(now.ended.runs, 3U) << "succeeded or failed";
  EXPECT_EQ(now.ended.over, Duration(1s));
  EXPECT_EQ(now.counts, naive_counts());
  EXPECT_FALSE(ids_of_runs(now.needs) == Ids{waits});
  EXPECT_FALSE(ends.empty());
}

TEST_P(SnapshotTest, an_end_long_ago_says_nothing_about_the_rate) {
  define("a");
  const NodeNumber node = enrol();
  submit("a");
  settle(node, claim_one(node, "a"), Settle::succeeded);
  world().advance(kRateWindow + 1s);
  EXPECT_EQ(snapshot().ended.runs, 0U);
}

TEST_P(SnapshotTest, the_feed_tells_changes_of_limits_and_nodes) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"gpu", 1}}; });
  get(store().resize("gpu", 2));
  const std::string start = snapshot().cursor;
  get(store().resize("gpu", 3));
  get(store().resize("gpu", 3));
  get(store().pause("gpu", 5s));
  get(store().pause("gpu", 2s));
  get(store().pause("gpu", std::nullopt));
  get(store().resume("gpu"));
  get(store().resume("gpu"));
  EXPECT_EQ(fleet_news(start),
            (Ids{R"(resized {"limit":"gpu","capacity":3})", R"(paused {"limit":"gpu","for_ms":5000})",
                 R"(paused {"limit":"gpu","for_ms":null})", R"(resumed {"limit":"gpu","woken":0})"}))
      << "what changes nothing is not told";
  const std::string middle = snapshot().cursor;
  const NodeNumber node = get(store().enrol("host \"1\""));
  const NodeNumber alone = get(store().enrol("run", NodeKind::one_run));
  get(store().announce(node, std::string(domain::kPoolScaled), domain::scale_data(4)));
  get(store().drain(node));
  get(store().leave(node));
  get(store().leave(alone));
  EXPECT_EQ(fleet_news(middle),
            (Ids{R"(node_joined {"label":"host \"1\"","lost":0})", R"(scaled {"workers":4})",
                 R"(draining {"phase":"finishing"})", R"(node_left {"label":"host \"1\"","lost":0})"}));
  EXPECT_EQ(after(middle).front().node, node);
}

TEST_P(SnapshotTest, the_feed_tells_that_a_limit_was_paused_by_a_run_and_that_a_node_died) {
  define("a", [](AgentEntry& agent) { agent.limits = {{"account:x", 1}}; });
  const NodeNumber node = enrol();
  submit("a");
  submit("a");
  const Claim first = claim_one(node, "a");
  claim_one(node, "a");
  const std::string start = snapshot().cursor;
  settle(node, first, Settle::park, [](Settlement& end) {
    end.park_on = "account:x";
    end.park_for = 1min;
  });
  EXPECT_EQ(fleet_news(start), (Ids{R"(paused {"limit":"account:x","for_ms":60000})"}));
  const std::string middle = snapshot().cursor;
  world().kill(node);
  EXPECT_EQ(tick().dead, std::vector<NodeNumber>{node});
  EXPECT_EQ(fleet_news(middle), (Ids{R"(node_dead {"label":"test","lost":1})"}));
}

TEST_P(SnapshotTest, a_cursor_before_what_was_pruned_is_told) {
  define("a");
  const std::string start = snapshot().cursor;
  const NodeNumber node = enrol();
  submit("a");
  settle(node, claim_one(node, "a"), Settle::succeeded);
  const std::string end = snapshot().cursor;
  submit("a");
  const std::string last = snapshot().cursor;
  world().advance(1h);
  get(store().beat(node));
  EXPECT_FALSE(get(store().feed(start, 10)).pruned);
  EXPECT_EQ(get(store().prune(30min, 100)), 1U);
  const FeedPage page = get(store().feed(start, 10));
  EXPECT_TRUE(page.pruned);
  EXPECT_TRUE(page.events.empty());
  EXPECT_EQ(page.cursor, start);
  EXPECT_FALSE(get(store().feed("", 10)).pruned) << "from the oldest that is kept";
  EXPECT_EQ(get(store().feed("", 10)).events.size(), 1U)
      << "the event of the waiting run; those of the fleet went, too";
  EXPECT_FALSE(get(store().feed(end, 10)).pruned) << "after all that was deleted";
  EXPECT_EQ(get(store().feed(end, 10)).events.size(), 1U);
  EXPECT_TRUE(after(last).empty());
}

/// Random operations. A reader keeps the counts of a snapshot up to date with the feed: at every further snapshot both
/// agree, no event comes twice, and none is missing.
class FeedSubscriber {
 public:
  explicit FeedSubscriber(const Snapshot& snapshot) : counts_(snapshot.counts), cursor_(snapshot.cursor) {}

  void take(const std::vector<Event>& events) {
    for (const Event& event : events) {
      if (event.run.empty()) continue;
      std::int64_t& seen = seq_[event.run];
      ASSERT_TRUE(seen == 0 || event.seq == seen + 1) << event.run << " " << event.seq << " after " << seen;
      seen = event.seq;
      if (!event.state) continue;
      if (event.seq > 1) {
        ASSERT_TRUE(state_.contains(event.run)) << "the reader began with an empty store";
        --counts_[state_[event.run]];
      }
      state_[event.run] = *event.state;
      ++counts_[*event.state];
    }
    if (!events.empty()) cursor_ = events.back().cursor;
  }
  [[nodiscard]] const StateCounts& counts() const { return counts_; }
  [[nodiscard]] const std::string& cursor() const { return cursor_; }

 private:
  StateCounts counts_;
  std::string cursor_;
  std::map<std::string, std::int64_t> seq_;
  std::map<std::string, RunState> state_;
};

void check_parts(const Snapshot& now) {
  const QueueSplit split = split_queue(now, now.limits);
  std::uint64_t queued = split.startable, parked = 0;
  for (const WaitGroup& group : split.held) queued += group.runs;
  ASSERT_EQ(queued, now.counts.at(RunState::queued));
  for (const WaitGroup& group : now.parked) parked += group.runs;
  ASSERT_EQ(parked, now.counts.at(RunState::parked));
}

TEST_P(SnapshotTest, its_counts_and_the_feed_after_it_agree_through_random_operations) {
  define("a", [](AgentEntry& agent) {
    agent.limits = {{"gpu", 1}};
    agent.queued_max = 40;
  });
  define("b");
  get(store().resize("gpu", 3));
  const NodeNumber node = enrol();
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return random() % end; };
  FeedSubscriber reader(snapshot());
  std::vector<Claim> held;
  Ids all;
  constexpr std::array kEnds = {Settle::succeeded, Settle::failed,    Settle::retry,
                                Settle::park,      Settle::hand_back, Settle::cancelled};
  const int steps = GetParam().name == "postgres" ? 100 : 400;  // each costs round trips there
  for (int step = 0; step < steps; ++step) {
    switch (below(8)) {
      case 0:
      case 1:
      case 2: {
        const auto accepted = try_submit([&] {
          NewRun run = fresh(below(2) == 0 ? "a" : "b");
          if (below(3) == 0) run.session = "s" + std::to_string(below(3));
          if (below(4) == 0) run.delay = 3s;
          return run;
        }());
        if (accepted) all.push_back(accepted->id);
        break;
      }
      case 3:
      case 4:
        for (const Claim& each : claim(node, below(2) == 0 ? "a" : "b", 3)) held.push_back(each);
        break;
      case 5:
      case 6: {
        if (held.empty()) break;
        const std::size_t which = below(held.size());
        if (below(4) == 0) get(store().mark(node, held[which].attempt_key(), true));
        settle(node, held[which], kEnds[below(kEnds.size())]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        break;
      }
      default:
        world().advance(1s);
        get(store().beat(node));
        tick();
        if (!all.empty() && below(2) == 0) (void)ask(store().cancel(all[below(all.size())]));
    }
    if (below(4) > 0) continue;
    const Snapshot now = snapshot();
    reader.take(after(reader.cursor()));
    ASSERT_EQ(now.counts, naive_counts()) << "step " << step;
    ASSERT_EQ(now.counts, reader.counts()) << "step " << step;
    EXPECT_TRUE(after(now.cursor).empty()) << "step " << step;
    check_parts(now);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(get(store().check()), Ids());
}

}  // namespace
}  // namespace stint::store
