#include "store/series.hpp"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Use;

EndedRun ended_run(RunState state, Duration waited, Duration worked, std::uint32_t attempt = 1) {
  const WallTime begin{std::chrono::hours(1)};
  const auto ms = [](Duration length) { return std::chrono::duration_cast<std::chrono::milliseconds>(length); };
  return {.state = state,
          .attempt = attempt,
          .created_at = begin,
          .finished_at = begin + ms(waited) + ms(worked),
          .started_at = begin + ms(waited)};
}

TEST(EndedStats, percentiles_are_values_that_occurred) {
  std::vector<EndedRun> runs;
  for (int i = 10; i >= 1; --i) runs.push_back(ended_run(RunState::succeeded, 1s * i, 1min * i));
  const EndedStats stats = summarize(runs);
  EXPECT_EQ(stats.succeeded, 10U);
  EXPECT_EQ(stats.worked_p50, 5min);
  EXPECT_EQ(stats.worked_p90, 9min);
  EXPECT_EQ(stats.waited_p50, 5s);
  EXPECT_EQ(stats.waited_p90, 9s);
  EXPECT_TRUE(stats.complete);
}

TEST(EndedStats, nothing_is_known_without_runs_that_started) {
  EndedRun never = ended_run(RunState::cancelled, 1s, 1s);
  never.started_at.reset();
  const EndedStats stats = summarize({never});
  EXPECT_EQ(stats.cancelled, 1U);
  EXPECT_FALSE(stats.worked_p50);
  EXPECT_FALSE(stats.waited_p90);
}

TEST(EndedStats, a_retried_run_tells_nothing_about_the_queue) {
  const EndedStats stats = summarize({ended_run(RunState::failed, 1h, 2s, 3), ended_run(RunState::expired, 1s, 4s)});
  EXPECT_EQ(stats.waited_p90, 1s);
  EXPECT_EQ(stats.worked_p90, 4s);
  EXPECT_EQ(stats.failed + stats.expired, 2U);
}

TEST(Series, a_step_never_has_negative_use_and_the_sum_of_all_is_what_was_used) {
  SeriesHead head;
  const WallTime hour{std::chrono::hours(5)};
  head.hour = hour;
  std::int64_t shown = 0, used = 0;
  for (const std::int64_t more : {50, -30, 10, 40, -5, 25}) {
    used += more;
    const Use step = advance_use(head, {.tokens = used}, hour, {.tokens = used});
    EXPECT_GE(step.tokens, 0);
    shown += step.tokens;
  }
  EXPECT_EQ(shown, used);
  const Use next = advance_use(head, {.tokens = used + 7}, hour + std::chrono::hours(1), {.tokens = 7});
  EXPECT_EQ(next.tokens, 7) << "in the next hour";
  EXPECT_EQ(head.counted.tokens, 7);
}

}  // namespace
}  // namespace stint::store
