#include "engine/timeline_core.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stint::engine {
namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::RunState;
using domain::SpanKind;

WallTime at(std::chrono::milliseconds since) { return WallTime(1'000'000s) + since; }

class TimelineTest : public ::testing::Test {
 protected:
  TimelineFact& add(std::chrono::milliseconds when, std::string cause, RunState state, Hold hold = Hold::none) {
    TimelineFact& fact = facts_.emplace_back();
    fact.at = at(when);
    fact.cause = std::move(cause);
    fact.state = state;
    fact.hold = hold;
    return fact;
  }
  void add_span(std::chrono::milliseconds when, SpanKind kind, std::string name, Duration length) {
    add(when, "span", RunState::running).span = {.kind = kind, .name = std::move(name), .length = length, .usage = {}};
  }
  [[nodiscard]] Timeline timeline(std::chrono::milliseconds now = 1h, std::vector<domain::LimitWait> waits = {}) const {
    return make_timeline(facts_, at(now), std::move(waits));
  }
  /// "queue 0+5, limit gpu 5+10, working#1 15+3"
  [[nodiscard]] static std::string text(const Timeline& timeline) {
    std::string out;
    for (const Segment& each : timeline.segments) {
      if (!out.empty()) out += ", ";
      out += to_string(each.kind);
      if (!each.name.empty()) out += " " + each.name;
      if (each.attempt != 0) out += fmt::format("#{}", each.attempt);
      out += fmt::format(" {}+{}", (each.at - at(0ms)).count(), each.length.count());
    }
    return out;
  }

  std::vector<TimelineFact> facts_;
};

TEST_F(TimelineTest, splits_a_wait_by_the_limits_that_the_claim_names) {
  add(0ms, "enqueued", RunState::queued, Hold::session);
  add(100ms, "promoted", RunState::queued);
  add(200ms, "claimed", RunState::running).waits = {{"gpu", 500ms, 450ms}, {"model", 30ms, 20ms}};
  add(260ms, "succeeded", RunState::succeeded);
  const Timeline got = timeline();
  EXPECT_EQ(text(got),
            "session 0+100, limit gpu 100+50, queue 150+20, limit model 170+20, queue 190+10, working#1 200+60");
  EXPECT_EQ(got.waiting, 200ms);
  EXPECT_EQ(got.working, 60ms);
  EXPECT_EQ(got.until, at(260ms));
}

TEST_F(TimelineTest, the_span_that_began_last_decides) {
  add(0ms, "enqueued", RunState::queued);
  add(0ms, "claimed", RunState::running);
  add_span(30ms, SpanKind::model_call, "opus", 20ms);
  add_span(80ms, SpanKind::tool, "inner", 20ms);
  add_span(100ms, SpanKind::tool, "outer", 60ms);
  add(120ms, "failed", RunState::failed).error = "no";
  const Timeline got = timeline();
  EXPECT_EQ(text(got),
            "working#1 0+10, model_call opus#1 10+20, working#1 30+10, tool outer#1 40+20, tool inner#1 60+20, "
            "tool outer#1 80+20, working#1 100+20");
  ASSERT_EQ(got.attempts.size(), 1U);
  EXPECT_EQ(got.attempts[0].spans.size(), 3U);
  EXPECT_EQ(got.attempts[0].cause, "failed");
  EXPECT_EQ(got.attempts[0].error, "no");
}

TEST_F(TimelineTest, an_attempt_that_does_not_count_gives_its_number_to_the_next) {
  add(0ms, "enqueued", RunState::queued, Hold::delay);
  add(5ms, "woken", RunState::queued);
  add(10ms, "claimed", RunState::running);
  add(20ms, "retry", RunState::queued, Hold::backoff).error = "429";
  add(30ms, "woken", RunState::queued);
  add(30ms, "claimed", RunState::running);
  add(40ms, "park", RunState::parked, Hold::quota);
  add(50ms, "woken", RunState::queued);
  add(55ms, "claimed", RunState::running);
  add(60ms, "lost", RunState::in_doubt);
  add(70ms, "resolved_done", RunState::succeeded);
  const Timeline got = timeline();
  EXPECT_EQ(text(got),
            "delay 0+5, queue 5+5, working#1 10+10, backoff 20+10, working#2 30+10, quota 40+10, queue 50+5, "
            "working#2 55+5, person 60+10");
  EXPECT_EQ(got.charged, 40ms) << "neither before the first start nor while it is parked";
  ASSERT_EQ(got.attempts.size(), 3U);
  EXPECT_EQ(got.attempts[0].hold, Hold::backoff);
  EXPECT_EQ(got.attempts[2].state, RunState::in_doubt);
}

TEST_F(TimelineTest, ending_begins_with_the_request_and_covers_the_rest) {
  add(0ms, "enqueued", RunState::queued);
  add(0ms, "claimed", RunState::running);
  add(50ms, "cancel_asked", RunState::running);
  add_span(80ms, SpanKind::tool, "late", 60ms);
  add_span(90ms, SpanKind::ending, "", 30ms);
  add(100ms, "cancelled", RunState::cancelled);
  EXPECT_EQ(text(timeline()), "working#1 0+20, tool late#1 20+30, ending#1 50+50");
}

TEST_F(TimelineTest, an_open_run_lasts_until_now_and_names_what_it_waits_for) {
  add(0ms, "enqueued", RunState::queued);
  EXPECT_EQ(text(timeline(100ms, {{"gpu", 60ms, 60ms}})), "queue 0+40, limit gpu 40+60");
  add(100ms, "claimed", RunState::running);
  EXPECT_EQ(text(timeline(130ms)), "queue 0+100, working#1 100+30");
  EXPECT_EQ(text(timeline(90ms)), "queue 0+100") << "a clock behind the store's";
}

TEST_F(TimelineTest, facts_after_the_end_and_clocks_that_were_set_back_change_nothing) {
  EXPECT_EQ(text(timeline()), "");
  add(0ms, "enqueued", RunState::queued);
  add(-50ms, "claimed", RunState::running);
  add(10ms, "succeeded", RunState::succeeded);
  add(500ms, "loaded", RunState::succeeded);
  EXPECT_EQ(text(timeline()), "working#1 0+10");
}

TEST_F(TimelineTest, keeps_the_longest_spans_and_counts_the_others) {
  add(0ms, "enqueued", RunState::queued);
  add(0ms, "claimed", RunState::running);
  for (int i = 1; i <= 2000; ++i) {
    add_span(std::chrono::milliseconds(10 * i), SpanKind::tool, "t", std::chrono::milliseconds(i % 4 == 0 ? 5 : 2));
  }
  add(20'001ms, "succeeded", RunState::succeeded);
  const Timeline got = timeline();
  EXPECT_EQ(got.spans_left_out, 1500U);
  EXPECT_EQ(got.attempts[0].spans.size(), Timeline::kSpansMax);
  EXPECT_EQ(got.working, 20'001ms);
  EXPECT_EQ(got.segments.size(), 1001U);
}

}  // namespace
}  // namespace stint::engine
