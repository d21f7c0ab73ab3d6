// Runs the demo's garage on the simulator, in virtual time.
#include "cli/demo_garage.hpp"

#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <map>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using wire::DemoEvent;
using wire::DemoEventKind;

struct Seen {
  std::vector<DemoEvent> events;
  std::map<DemoEventKind, int> counts;
  wire::DemoSummary summary;
};

Seen play(const DemoOptions& options) {
  Seen seen;
  Simulator simulator(options.seed, Simulator::Order::fifo);  // as the reactor runs it
  Garage garage(simulator, options, 1.0, [&seen](const DemoEvent& event) {
    seen.events.push_back(event);
    ++seen.counts[event.kind];
  });
  RootScope scope(simulator);
  scope.spawn(garage.run());
  EXPECT_TRUE(simulator.run_until([&] { return scope.idle(); })) << "a worker waits for ever";
  seen.summary = garage.summary();
  return seen;
}

TEST(DemoGarage, shows_everything_it_promises_whatever_the_seed) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    DemoOptions options;
    options.seed = seed;
    Seen seen = play(options);
    for (int kind = 0; kind <= static_cast<int>(DemoEventKind::closes); ++kind) {
      // A few seeds find the line empty at closing time; the default seed does not.
      if (seed != 1 && static_cast<DemoEventKind>(kind) == DemoEventKind::sent_home) continue;
      EXPECT_GT(seen.counts[static_cast<DemoEventKind>(kind)], 0)
          << "seed " << seed << " shows no " << to_string(static_cast<DemoEventKind>(kind));
    }
    EXPECT_GT(seen.summary.debt_max, 0u) << "seed " << seed << " shows no debt";
    EXPECT_LE(seen.summary.took, options.length + 4s) << "seed " << seed;
  }
}

TEST(DemoGarage, never_lets_in_more_than_the_limit_and_ends_empty) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    DemoOptions options;
    options.seed = seed;
    options.capacity = static_cast<std::uint32_t>(1 + seed % 32);
    options.workers = static_cast<std::uint32_t>(1 + seed * 7 % 200);
    const Seen seen = play(options);
    EXPECT_EQ(seen.summary.over_limit, 0u) << "seed " << seed;
    EXPECT_EQ(seen.summary.permits_out, 0u) << "seed " << seed;
    EXPECT_LE(seen.summary.inside_max, options.capacity) << "seed " << seed;
    EXPECT_EQ(seen.events.back().inside, 0u) << "seed " << seed;
    for (const DemoEvent& event : seen.events) {
      if (event.kind == DemoEventKind::enters) EXPECT_LE(event.inside, event.capacity) << "seed " << seed;
    }
  }
}

TEST(DemoGarage, every_guest_ends_exactly_once) {
  const Seen seen = play(DemoOptions());
  std::map<std::string, DemoEventKind> last;
  for (const DemoEvent& event : seen.events) {
    if (event.who.empty()) continue;
    const auto before = last.find(event.who);
    const bool here =
        before != last.end() && (before->second == DemoEventKind::waits || before->second == DemoEventKind::enters);
    if (event.kind == DemoEventKind::waits) EXPECT_FALSE(here) << event.who;
    if (event.kind == DemoEventKind::leaves) EXPECT_EQ(before->second, DemoEventKind::enters) << event.who;
    if (event.kind == DemoEventKind::gives_up) EXPECT_EQ(before->second, DemoEventKind::waits) << event.who;
    last[event.who] = event.kind;
  }
  for (const auto& [who, kind] : last) {
    EXPECT_TRUE(kind != DemoEventKind::waits && kind != DemoEventKind::enters) << who << " never left";
  }
}

TEST(DemoGarage, the_cancel_of_a_large_head_lets_those_behind_it_in_at_the_same_moment) {
  const Seen seen = play(DemoOptions());
  const auto cancelled = std::ranges::find_if(seen.events, [](const DemoEvent& event) {
    return event.kind == DemoEventKind::cancelled && event.who == "coach";
  });
  ASSERT_NE(cancelled, seen.events.end());
  ASSERT_NE(cancelled + 1, seen.events.end());
  EXPECT_EQ((cancelled + 1)->kind, DemoEventKind::enters);
  EXPECT_EQ((cancelled + 1)->at, cancelled->at);
}

TEST(DemoGarage, a_cancel_at_any_moment_leaves_no_guest_and_no_permit) {
  for (int tenths = 0; tenths < 250; ++tenths) {
    Simulator simulator(1, Simulator::Order::fifo);
    Garage garage(simulator, DemoOptions(), 1.0, [](const DemoEvent&) {});
    RootScope scope(simulator);
    scope.spawn(garage.run());
    simulator.advance(tenths * 100ms);
    const TimePoint before = simulator.now();
    scope.cancel(Reason::user, "Ctrl-C");
    ASSERT_TRUE(simulator.run_until([&] { return scope.idle(); }));
    EXPECT_EQ(simulator.now(), before) << "the cancel took time";
    EXPECT_TRUE(garage.look().parked.empty());
    EXPECT_TRUE(garage.look().line.empty());
    EXPECT_EQ(garage.summary().permits_out, 0u);
  }
}

TEST(DemoGarage, shows_the_state_of_the_semaphore) {
  Simulator simulator(1, Simulator::Order::fifo);
  Garage garage(simulator, DemoOptions(), 1.0, [](const DemoEvent&) {});
  RootScope scope(simulator);
  scope.spawn(garage.run());
  simulator.advance(3s);
  const GarageView view = garage.look();
  EXPECT_EQ(view.parked.size(), 4u);
  EXPECT_EQ(view.capacity, 4u);
  EXPECT_FALSE(view.line.empty());
  EXPECT_TRUE(std::ranges::is_sorted(view.line, std::greater{}, &GarageView::Waiting::waited));
  scope.cancel();
  simulator.run_ready();
}

}  // namespace
}  // namespace stint::cli
