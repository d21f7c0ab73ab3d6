// How a queue is divided: what could start, and what keeps each of the others.
#include "store/snapshot.hpp"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::WaitCause;

WallTime second(int number) { return WallTime(std::chrono::seconds(number)); }

AgentLine line_of(std::string agent, std::uint64_t runs, std::vector<LimitUse> limits, int oldest = 1) {
  AgentLine line;
  line.agent = std::move(agent);
  line.runs = runs;
  line.oldest = second(oldest);
  line.limits = std::move(limits);
  return line;
}

LimitState limit_of(std::string name, std::optional<std::uint32_t> capacity, std::int64_t units = 0) {
  LimitState limit;
  limit.name = std::move(name);
  limit.capacity = capacity;
  limit.units = units;
  return limit;
}

TEST(QueueSplit, without_limits_every_ready_run_could_start) {
  Snapshot snapshot;
  snapshot.lines = {line_of("a", 3, {}, 5), line_of("b", 2, {{"gpu", 1}}, 4)};
  const QueueSplit split = split_queue(snapshot, {limit_of("gpu", std::nullopt)});
  EXPECT_EQ(split.startable, 5U);
  EXPECT_TRUE(split.held.empty());
  EXPECT_EQ(split.startable_oldest, second(4));
  EXPECT_EQ(split.oldest, second(4));
}

TEST(QueueSplit, agents_share_what_is_left_of_a_limit) {
  Snapshot snapshot;
  snapshot.lines = {line_of("first", 2, {{"gpu", 1}}), line_of("second", 2, {{"gpu", 2}}, 9)};
  const QueueSplit split = split_queue(snapshot, {limit_of("gpu", 6, 2)});
  EXPECT_EQ(split.startable, 3U) << "2 of weight 1, then 1 of weight 2";
  EXPECT_EQ(split.held, (std::vector<WaitGroup>{{.cause = WaitCause::limit, .limit = "gpu", .runs = 1}}))
      << "which of the second agent's runs is the oldest is not known";
}

TEST(QueueSplit, names_the_limit_that_leaves_the_least_room) {
  Snapshot snapshot;
  snapshot.lines = {line_of("a", 4, {{"big", 1}, {"small", 1}})};
  const QueueSplit split = split_queue(snapshot, {limit_of("big", 3), limit_of("small", 1, 5)});
  EXPECT_EQ(split.startable, 0U) << "more units are held than there are after a resize: never negative";
  EXPECT_EQ(split.held,
            (std::vector<WaitGroup>{{.cause = WaitCause::limit, .limit = "small", .runs = 4, .oldest = second(1)}}));
}

TEST(QueueSplit, a_pause_goes_before_a_turn_a_probe_and_a_full_limit) {
  Snapshot snapshot;
  snapshot.lines = {line_of("a", 1, {{"full", 1}, {"paused", 1}, {"probed", 1}, {"turned", 1}})};
  LimitState paused = limit_of("paused", 9), probed = limit_of("probed", 9), turned = limit_of("turned", 9);
  probed.ramp = 1;
  probed.runs = 1;
  turned.turn_of = "b";
  std::vector<LimitState> limits = {limit_of("full", 1, 1), paused, probed, turned};
  const auto cause = [&] { return split_queue(snapshot, limits).held.front().cause; };
  EXPECT_EQ(cause(), WaitCause::probe);
  limits[1].paused = true;
  EXPECT_EQ(cause(), WaitCause::paused);
  limits[1].paused = false;
  limits[2].ramp.reset();
  EXPECT_EQ(cause(), WaitCause::limit);
  limits[0].units = 0;
  EXPECT_EQ(cause(), WaitCause::turn);
  limits[3].turn_of = "a";
  EXPECT_EQ(split_queue(snapshot, limits).startable, 1U) << "its own turn";
}

TEST(QueueSplit, groups_are_sorted_and_sum_up_over_agents) {
  Snapshot snapshot;
  snapshot.waiting = {{.cause = WaitCause::delay, .limit = {}, .runs = 7, .oldest = second(0)}};
  snapshot.lines = {line_of("a", 2, {{"gpu", 1}}, 8), line_of("b", 3, {{"gpu", 1}}, 3), line_of("c", 1, {{"disk", 1}})};
  const QueueSplit split = split_queue(snapshot, {limit_of("disk", 1, 1), limit_of("gpu", 1, 1)});
  EXPECT_EQ(split.oldest, second(1)) << "delayed runs are not due yet";
  EXPECT_EQ(split.held,
            (std::vector<WaitGroup>{{.cause = WaitCause::delay, .limit = {}, .runs = 7, .oldest = second(0)},
                                    {.cause = WaitCause::limit, .limit = "disk", .runs = 1, .oldest = second(1)},
                                    {.cause = WaitCause::limit, .limit = "gpu", .runs = 5, .oldest = second(3)}}));
}

TEST(DrainEstimate, needs_runs_that_ended_and_runs_that_move) {
  Snapshot snapshot;
  QueueSplit split;
  EXPECT_EQ(estimate_drain(snapshot, split), Duration::zero()) << "an empty queue";
  snapshot.counts[RunState::queued] = 20;
  split.startable = 20;
  EXPECT_FALSE(estimate_drain(snapshot, split)) << "nothing has ended";
  snapshot.ended = {.runs = 10, .over = 30s};
  EXPECT_EQ(estimate_drain(snapshot, split), Duration(60s));
  split.startable = 0;
  EXPECT_FALSE(estimate_drain(snapshot, split)) << "nothing can start, and nothing runs";
  snapshot.counts[RunState::running] = 1;
  EXPECT_EQ(estimate_drain(snapshot, split), Duration(60s));
  snapshot.ended.runs = 4;
  EXPECT_FALSE(estimate_drain(snapshot, split)) << "too few";
}

}  // namespace
}  // namespace stint::store
