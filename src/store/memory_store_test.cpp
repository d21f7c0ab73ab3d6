#include "store/memory_store.hpp"

#include "store/conformance_series.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

class MemoryWorld final : public World {
 public:
  Store& store() override { return store_; }
  void kill(NodeNumber) override { advance(MemoryRows::kLease + 1ms); }

 private:
  std::uint64_t random_ = 1;
  domain::System system_ =
      clocks().system([this] { return random_ = random_ * 6364136223846793005U + 1442695040888963407U; });
  MemoryStore store_{system_};
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreTest,
                         testing::Values(WorldMaker{"memory", [] { return std::make_unique<MemoryWorld>(); }}),
                         world_name);
INSTANTIATE_TEST_SUITE_P(Memory, ClockTest,
                         testing::Values(WorldMaker{"memory", [] { return std::make_unique<MemoryWorld>(); }}),
                         world_name);
INSTANTIATE_TEST_SUITE_P(Memory, SeriesTest,
                         testing::Values(WorldMaker{"memory", [] { return std::make_unique<MemoryWorld>(); }}),
                         world_name);
INSTANTIATE_TEST_SUITE_P(Memory, SnapshotTest,
                         testing::Values(WorldMaker{"memory", [] { return std::make_unique<MemoryWorld>(); }}),
                         world_name);

TEST(Ledger, nested_runs_create_a_set_of_limits_once) {
  const domain::System system{.wall_now = [] { return WallTime(); }, .random = [] { return std::uint64_t{0}; }};
  MemoryRows rows;
  Ledger ledger(rows, system);
  AgentEntry a, both;
  a.name = "a";
  a.limits = {{"one", 1}};
  both.name = "both";
  both.limits = {{"one", 1}, {"two", 1}, {"three", 2}};
  ASSERT_TRUE(ledger.define(a) && ledger.define(both));
  const NodeNumber node = ledger.enrol("w").value();
  NewRun run;
  run.id = "aaaaaaaaaaaa";
  run.agent = "a";
  ASSERT_TRUE(ledger.enqueue(NewRun(run)));
  ASSERT_EQ(ledger.claim(node, "a", 1, {})->size(), 1U);
  run.parent = run.id;
  run.agent = "both";
  for (const char* const id : {"baaaaaaaaaaa", "caaaaaaaaaaa", "daaaaaaaaaaa"}) {
    run.id = id;
    ASSERT_TRUE(ledger.enqueue(NewRun(run)));
    EXPECT_EQ(ledger.claim(node, "both", 1, {.only = id})->size(), 1U);
    EXPECT_EQ(rows.sets_with(rows.limit("two")->number)->size(), 2U) << "the agent's, and one more";
  }
}

/// A step takes time: a timeline, from the events, adds up to the wall time of the run all the same.
TEST(Ledger, a_run_ends_at_the_time_of_its_last_event) {
  WallTime now(std::chrono::hours(1));
  const domain::System system{.wall_now = [&] { return now += 1ms; }, .random = [] { return std::uint64_t{0}; }};
  MemoryRows rows;
  Ledger ledger(rows, system);
  AgentEntry a;
  a.name = "a";
  ASSERT_TRUE(ledger.define(a));
  const NodeNumber node = ledger.enrol("w").value();
  const std::vector<std::string> ids{"succeededaaa", "cancelledaaa", "resolvedaaaa"};
  for (const std::string& id : ids) {
    NewRun run;
    run.id = id;
    run.agent = "a";
    run.on_crash = domain::OnCrash::doubt;
    ASSERT_TRUE(ledger.enqueue(std::move(run)));
  }
  for (const std::string& id : {ids[0], ids[2]}) {
    const auto claims = ledger.claim(node, "a", 1, {.only = id}).value();
    ASSERT_EQ(claims.size(), 1U);
    Settlement settlement;
    settlement.attempt = claims[0].attempt_key();
    settlement.settle = id == ids[0] ? domain::Settle::succeeded : domain::Settle::lost;
    ASSERT_TRUE(ledger.settle(node, std::move(settlement)));
  }
  ASSERT_TRUE(ledger.cancel(ids[1]));
  ASSERT_TRUE(ledger.resolve(ids[2], domain::Resolution::done));
  for (const std::string& id : ids) {
    const auto run = rows.run(std::string_view(id)).value();
    ASSERT_TRUE(run && run->run.finished_at) << id;
    const auto events = rows.events(id, 0, 100).value();
    EXPECT_EQ(events.front().at, run->run.created_at) << id;
    EXPECT_EQ(events.back().at, *run->run.finished_at) << id;
  }
}

TEST(MemoryRows, a_feed_continues_after_deleted_events_and_not_among_them) {
  WallTime now(std::chrono::hours(1));
  const domain::System system{.wall_now = [&] { return now; }, .random = [] { return std::uint64_t{0}; }};
  MemoryRows rows;
  Ledger ledger(rows, system);
  AgentEntry a;
  a.name = "a";
  ASSERT_TRUE(ledger.define(a) && ledger.resize("limit", 1));
  const NodeNumber node = ledger.enrol("w").value();
  const auto id_of = [](char first) { return std::string(1, first) + "aaaaaaaaaaa"; };
  for (const char first : std::string_view("abcdefgh")) {
    NewRun run;
    run.id = id_of(first);
    run.agent = "a";
    ASSERT_TRUE(ledger.enqueue(std::move(run)));
  }
  for (const char first : std::string_view("bcdefg")) {
    const auto claims = ledger.claim(node, "a", 1, {.only = id_of(first)}).value();
    ASSERT_EQ(claims.size(), 1U);
    Settlement settlement;
    settlement.attempt = claims[0].attempt_key();
    settlement.settle = domain::Settle::succeeded;
    ASSERT_EQ(ledger.settle(node, std::move(settlement)).value(), domain::RunState::succeeded);
    now += 1s;
  }
  const FeedPage whole = rows.feed("", 100).value();
  ASSERT_EQ(whole.events.size(), 2U + 8 + 6 * 2);
  for (const char last : std::string_view("bcdefg")) {  // in the order of their ends
    ASSERT_EQ(ledger.prune(Duration::zero(), 1).value(), 1U);
    std::vector<std::string> expected;
    int deleted = 0;
    for (const Event& event : whole.events) {
      const bool kept = !event.run.empty() && (event.run.front() == 'a' || event.run.front() > last);
      if (kept) expected.push_back(event.cursor);
      if (!kept) deleted = std::max(deleted, std::stoi(event.cursor));
    }
    std::vector<std::string> told;
    for (const Event& event : rows.feed("", 100)->events) {
      told.push_back(event.cursor);
      EXPECT_TRUE(event.run.empty() || rows.find(event.run).value()) << event.run;
    }
    EXPECT_EQ(told, expected);
    EXPECT_EQ(rows.stats().events, expected.size());
    for (const Event& event : whole.events) {  // also after the last deleted one
      const FeedPage next = rows.feed(event.cursor, 1).value();
      ASSERT_EQ(next.pruned, std::stoi(event.cursor) < deleted);
      if (next.pruned) continue;
      const auto at = std::ranges::find_if(
          expected, [&](const std::string& each) { return std::stoi(each) > std::stoi(event.cursor); });
      ASSERT_EQ(next.events.empty(), at == expected.end());
      if (!next.events.empty()) EXPECT_EQ(next.events.front().cursor, *at);
    }
  }
  EXPECT_EQ(rows.list({}).size(), 2U);
  EXPECT_EQ(rows.dump({}, 9).back().first.run.id, id_of('h'));
}

}  // namespace
}  // namespace stint::store
