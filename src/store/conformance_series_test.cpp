// What every store keeps over time: points of the whole fleet with their gaps and marks, sums by hour, ended runs.
#include "store/conformance_series.hpp"

#include <array>
#include <map>
#include <random>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;

TEST_P(SeriesTest, a_step_without_a_sample_is_a_gap_and_what_happened_in_it_is_unknown) {
  EXPECT_TRUE(points().empty());
  sample({.startable = 3});
  next({.startable = 4});
  pass(3 * kStep);
  carry(Settle::succeeded);
  sample({.startable = 5});
  next({.startable = 6});
  const Series found = series();
  EXPECT_EQ(found.as_of, world().now());
  ASSERT_EQ(found.points.size(), 4U);
  const WallTime first = found.points[0].at;
  EXPECT_EQ(found.points[1].at, first + kStep);
  EXPECT_EQ(found.points[2].at, first + 4 * kStep) << "nothing in between";
  EXPECT_EQ(found.points[3].at, first + 5 * kStep);
  EXPECT_FALSE(found.points[0].counts) << "no sample at its beginning";
  EXPECT_EQ(found.points[1].counts, SeriesCounts());
  EXPECT_FALSE(found.points[2].counts) << "the run may have ended in any of the missing steps";
  EXPECT_EQ(found.points[3].counts, SeriesCounts()) << "and is not counted later";
  EXPECT_EQ(found.points[3].most.startable, 6);
}

TEST_P(SeriesTest, a_step_counts_starts_and_ends_by_outcome_and_use) {
  sample();
  carry(Settle::succeeded, 5);
  carry(Settle::succeeded);
  carry(Settle::failed, 2);
  get(store().cancel(submit("a")));
  const std::string again = submit("a", [](NewRun& run) { run.on_crash = domain::OnCrash::doubt; });
  settle(node_, claim_one(node_, "a"), Settle::hand_back);
  settle(node_, claim_one(node_, "a"), Settle::lost);
  next();
  get(store().resolve(again, domain::Resolution::discard));
  next();
  const std::vector<SeriesPoint> found = points();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(
      found[1].counts,
      (SeriesCounts{
          .started = 5, .succeeded = 2, .failed = 1, .cancelled = 1, .in_doubt = 1, .tokens = 7, .cost_micros = 70}));
  ASSERT_TRUE(found[2].counts);
  EXPECT_EQ(found[2].counts->started + found[2].counts->in_doubt, 0);
  EXPECT_EQ(found[2].counts->failed + found[2].counts->cancelled, 1) << "the end of the doubt";
}

TEST_P(SeriesTest, a_step_has_one_point_with_the_pools_of_all_living_nodes) {
  const NodeNumber other = enrol();
  sample({.startable = 1, .busy = 3, .workers = 10});
  get(store().sample(other, {.startable = 2, .busy = 2, .workers = 5}));
  carry(Settle::succeeded, 4);
  pass(kStep);
  get(store().sample(other, {.startable = 7, .busy = 1, .workers = 5}));
  sample({.startable = 6, .busy = 4, .workers = 10});
  sample({.startable = 6, .busy = 4, .workers = 10});  // repeated, as after a lost answer
  std::vector<SeriesPoint> found = points();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].most, (Sample{.startable = 2, .busy = 5, .workers = 15}));
  EXPECT_EQ(found[1].most, (Sample{.startable = 7, .busy = 5, .workers = 15}));
  EXPECT_EQ(found[1].samples, 1);
  EXPECT_EQ(found[1].counts, (SeriesCounts{.started = 1, .succeeded = 1, .tokens = 4, .cost_micros = 40})) << "once";
  get(store().leave(other));
  next({.busy = 4, .workers = 10});
  EXPECT_EQ(points().back().most.workers, 10) << "a node that has left has no pool";
}

TEST_P(SeriesTest, sample_returns_the_time_until_the_next_step) {
  EXPECT_EQ(sample(), kStep);
  pass(4s);
  EXPECT_EQ(sample(), 6s);
  EXPECT_EQ(points().size(), 1U);
}

TEST_P(SeriesTest, longer_steps_have_the_largest_values_and_the_sums) {
  sample({.held = 1});
  for (int i = 1; i <= 12; ++i) {
    carry(Settle::succeeded, 1);
    next({.held = i == 3 ? 50 : 2});
  }
  const std::vector<SeriesPoint> minutes = points(1min);
  ASSERT_EQ(minutes.size(), 3U) << "the sample at a full minute ends it";
  EXPECT_EQ(minutes[0].samples, 1);
  EXPECT_EQ(minutes[1].samples, 6);
  EXPECT_EQ(minutes[1].most.held, 50);
  EXPECT_EQ(minutes[2].most.held, 2);
  EXPECT_EQ(minutes[1].counts, (SeriesCounts{.started = 6, .succeeded = 6, .tokens = 6, .cost_micros = 60}));
  EXPECT_EQ(minutes[2].at - minutes[1].at, 1min);
  EXPECT_EQ(points(1h).size(), 1U) << "an hour that is not over is not shown";
}

TEST_P(SeriesTest, points_are_bounded_and_outlive_prune) {
  sample();
  next();
  get(store().prune(-1s, 100));
  EXPECT_EQ(points().size(), 2U);
  pass(kSeriesSteps[0].kept);
  sample();
  EXPECT_EQ(series(kStep, 48h).points.size(), 1U);
  EXPECT_EQ(series(1min, 48h).points.size(), 2U) << "minutes are kept longer";
  pass(kSeriesSteps[2].kept);
  sample();
  EXPECT_EQ(series(kStep, 24h * 40).points.size(), 1U);
  EXPECT_TRUE(series(1min, 24h * 40).points.empty()) << "the present one is not complete";
  EXPECT_TRUE(series(1h, 24h * 40).points.empty());
}

TEST_P(SeriesTest, use_never_shrinks_a_step_below_zero) {
  sample();
  submit("a");
  const Claim claim = claim_one(node_, "a");
  report(node_, claim, 50);
  next();
  settle(node_, claim, Settle::succeeded, [](Settlement& end) { end.tokens = 40; });
  next();
  carry(Settle::succeeded, 30);
  next();
  const std::vector<SeriesPoint> found = points();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[1].counts->tokens, 50);
  EXPECT_EQ(found[2].counts->tokens, 0);
  EXPECT_EQ(found[3].counts->tokens, 20) << "the sum is what was used";
}

TEST_P(SeriesTest, use_is_counted_across_the_end_of_an_hour) {
  pass(1h - 2 * kStep);
  sample();
  carry(Settle::succeeded, 1);
  next();
  carry(Settle::succeeded, 2);
  pass(kStep / 2);
  carry(Settle::succeeded, 4);
  pass(kStep / 2);
  carry(Settle::succeeded, 8);
  sample();
  carry(Settle::succeeded, 16);
  next();
  const std::vector<SeriesPoint> found = points();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[1].counts->tokens, 1);
  EXPECT_EQ(found[2].counts->tokens, 14);
  EXPECT_EQ(found[3].counts->tokens, 16);
}

TEST_P(SeriesTest, a_jump_of_the_wall_clock_makes_no_gap_and_counts_nothing_twice) {
  for (const Duration by : {Duration(24h), Duration(-24h)}) {
    renew();
    define("a");
    node_ = enrol();
    sample();
    carry(Settle::succeeded, 3);
    world().jump(by);
    tick();
    world().advance(kStep);
    get(store().beat(node_));
    sample();
    next();
    const std::vector<SeriesPoint> found = points();
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[1].at - found[0].at, kStep);
    EXPECT_EQ(found[2].at - found[1].at, kStep);
    ASSERT_TRUE(found[1].counts);
    EXPECT_EQ(found[1].counts->succeeded, 1);
    EXPECT_EQ(found[2].counts, SeriesCounts());
    EXPECT_EQ(series().as_of, found[2].at) << "by the wall clock as it is now";
  }
}

TEST_P(SeriesTest, marks_are_the_events_of_the_fleet_in_that_time) {
  const auto resized = [&](Duration span) {
    std::vector<std::string> found;
    for (const Event& mark : series(kStep, span).marks) {
      if (mark.cause == "resized") found.push_back(mark.data);
      EXPECT_TRUE(mark.run.empty());
    }
    return found;
  };
  get(store().resize("gpu", 2));
  pass(30min);
  submit("a");
  get(store().resize("gpu", 3));
  EXPECT_EQ(resized(1h),
            (std::vector<std::string>{R"({"limit":"gpu","capacity":2})", R"({"limit":"gpu","capacity":3})"}));
  EXPECT_EQ(resized(10min).size(), 1U);
  EXPECT_EQ(series(kStep, 10min).marks.back().at, world().now());
}

TEST_P(SeriesTest, sums_by_hour_add_up_to_those_of_days_and_are_merged_when_they_are_old) {
  const auto sums = [&](SpentBy by) {
    std::vector<std::string> found;
    for (const Spent& one : get(store().spent(WallTime(), by))) {
      found.push_back(one.day + " " + std::to_string(one.hour) + " " + std::to_string(one.runs) + " " +
                      std::to_string(one.tokens));
    }
    return found;
  };
  using Lines = std::vector<std::string>;
  carry(Settle::succeeded, 1);  // at 08:00 of 2027-01-15
  pass(1h + 1min);
  carry(Settle::failed, 2);
  carry(Settle::failed, 4);
  EXPECT_EQ(sums(SpentBy::hour), (Lines{"2027-01-15 8 1 1", "2027-01-15 9 2 6"}));
  EXPECT_EQ(sums(SpentBy::day), Lines{"2027-01-15 0 3 7"});
  EXPECT_EQ(get(store().spent(world().now(), SpentBy::hour)).size(), 1U) << "from its hour on";
  get(store().prune(24h, 10));
  EXPECT_EQ(sums(SpentBy::hour).size(), 2U);
  pass(24h * 10);
  get(store().prune(24h, 10));
  EXPECT_EQ(sums(SpentBy::hour), Lines{"2027-01-15 0 3 7"});
  EXPECT_EQ(sums(SpentBy::day), Lines{"2027-01-15 0 3 7"});
}

/// Proves that no view of cost differs from another, whatever happens to attempts. `attempts` is the model: what each
/// of them has reported or settled last.
TEST_P(SeriesTest, the_cost_of_a_run_is_that_of_its_attempts_and_all_runs_together_cost_what_hours_and_days_say) {
  const std::uint64_t seed = testing::UnitTest::GetInstance()->random_seed() + 1U;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  std::map<std::string, std::map<std::int64_t, std::int64_t>> attempts;  // cost by run and fence
  std::vector<std::string> ids;
  std::optional<Claim> running;
  constexpr std::array kEnds = {Settle::succeeded, Settle::failed, Settle::retry, Settle::hand_back, Settle::cancelled};
  for (int i = 0; i < 120; ++i) {
    if (!running && pick(2) == 0) ids.push_back(submit("a"));
    pass(std::chrono::minutes(pick(4)));
    tick();
    if (!running) {
      std::vector<Claim> claims = claim(node_, "a");
      if (!claims.empty()) running = claims.front();
      continue;
    }
    std::int64_t& cost = attempts[running->id][running->fence.value];
    switch (pick(5)) {
      case 0: get(store().cancel(ids.at(static_cast<std::size_t>(pick(std::ssize(ids)))))); break;
      case 1:  // its process dies: what it has reported stays
        world().kill(node_);
        tick();
        node_ = enrol();
        running.reset();
        break;
      case 2: {
        const Settle end = kEnds.at(static_cast<std::size_t>(pick(std::ssize(kEnds))));
        const std::int64_t whole = pick(1000);
        if (settle(node_, *running, end, [&](Settlement& settlement) { settlement.cost_micros = whole; })) cost = whole;
        running.reset();
        break;
      }
      default: {
        const std::int64_t so_far = cost + pick(100);
        if (report(node_, *running, 0, so_far)) cost = so_far;
      }
    }
  }
  std::int64_t all = 0, by_hour = 0, by_day = 0;
  for (const std::string& id : ids) {
    std::int64_t sum = 0;
    for (const auto& [fence, cost] : attempts[id]) sum += cost;
    EXPECT_EQ(look(id).cost_micros, sum) << id;
    all += sum;
  }
  for (const Spent& hour : get(store().spent(WallTime(), SpentBy::hour))) by_hour += hour.cost_micros;
  for (const Spent& day : get(store().spent(WallTime(), SpentBy::day))) by_day += day.cost_micros;
  EXPECT_GT(all, 0);
  EXPECT_EQ(by_hour, all);
  EXPECT_EQ(by_day, all);
}

TEST_P(SeriesTest, ended_runs_of_an_agent_tell_how_long_they_waited_and_worked) {
  define("b");
  submit("a");
  pass(2s);
  const Claim first = claim_one(node_, "a");
  pass(3s);
  settle(node_, first, Settle::succeeded);
  submit("b");
  settle(node_, claim_one(node_, "b"), Settle::failed);
  get(store().cancel(submit("a")));
  const std::vector<EndedRun> found = get(store().ended("a", 24h, 10));
  ASSERT_EQ(found.size(), 2U) << "not of the other agent";
  EXPECT_EQ(found[0].state, RunState::cancelled) << "the last first";
  EXPECT_FALSE(found[0].started_at);
  EXPECT_EQ(found[1].state, RunState::succeeded);
  EXPECT_EQ(found[1].attempt, 1U);
  EXPECT_EQ(*found[1].started_at - found[1].created_at, 2s);
  EXPECT_EQ(found[1].finished_at - *found[1].started_at, 3s);
  EXPECT_EQ(get(store().ended("a", 24h, 1)).size(), 1U);
  EXPECT_TRUE(get(store().ended("missing", 24h, 10)).empty());
  pass(25h);
  EXPECT_TRUE(get(store().ended("a", 24h, 10)).empty());
}

}  // namespace
}  // namespace stint::store
