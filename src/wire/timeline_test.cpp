#include "wire/timeline.hpp"

#include <gtest/gtest.h>

namespace stint::wire {
namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::RunState;
using domain::SpanKind;

TEST(TimelineJson, survives_a_round_trip) {
  engine::Timeline timeline;
  timeline.run = "abcdefghijkl";
  timeline.state = RunState::failed;
  timeline.begun = WallTime(1000s);
  timeline.until = WallTime(1010s);
  timeline.waiting = 4s;
  timeline.working = 6s;
  timeline.segments = {{SpanKind::limit, "model:\"opus\"", WallTime(1000s), 4s, 0},
                       {SpanKind::working, "", WallTime(1004s), 6s, 1}};
  engine::AttemptLane lane;
  lane.fence = domain::Fence{3};
  lane.node = domain::NodeNumber{7};
  lane.begun = WallTime(1004s);
  lane.ended = WallTime(1010s);
  lane.cause = "failed";
  lane.state = RunState::failed;
  lane.error = "no";
  lane.spans.push_back({SpanKind::model_call, "opus", WallTime(1005s), WallTime(1007s), {.fresh_in = 7, .out = 3}});
  lane.verdict = domain::VerdictRecord{.rule = domain::VerdictRule::transient,
                                       .attempt = 1,
                                       .attempts_max = 3,
                                       .after = 5s,
                                       .limit = "account:x",
                                       .resumes = true};
  timeline.attempts.push_back(lane);
  timeline.sums = {{SpanKind::limit, 4s, 0}, {SpanKind::working, 6s, 0}};
  timeline.spans_left_out = 2;
  timeline.charged = 8s;
  timeline.budget.attempts = 3;
  timeline.used = {.tokens = 10, .cost_micros = 20};
  const auto read = read_timeline(to_json(timeline));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(timeline));
  EXPECT_EQ(read->used.cost_micros, 20);
  EXPECT_EQ(read->segments, timeline.segments);
  EXPECT_EQ(read->attempts[0].spans[0].usage.out, 3);
  EXPECT_EQ(read->attempts[0].verdict, lane.verdict);
  EXPECT_EQ(read->sums, timeline.sums);
  EXPECT_TRUE(to_json(timeline).contains(R"("until_at":1015000)"));
  EXPECT_FALSE(read_timeline("[]"));
}

TEST(TimelineJson, a_transcript_has_only_what_belongs_to_each_item) {
  engine::Transcript page;
  page.items.emplace_back().text = "hello";
  engine::TranscriptItem& gap = page.items.emplace_back();
  gap.kind = engine::TranscriptItem::Kind::left_out;
  gap.byte = 5;
  gap.bytes = 1000;
  engine::TranscriptItem& tool = page.items.emplace_back();
  tool.kind = engine::TranscriptItem::Kind::tool_end;
  tool.seq = 4;
  tool.at = WallTime(9s);
  tool.name = "Bash";
  tool.length = 12ms;
  page.next = {.seq = 4, .byte = 1005};
  page.bytes = 1005;
  EXPECT_EQ(to_json(page, "abcdefghijkl"),
            R"({"id":"abcdefghijkl","items":[{"kind":"text","byte":0,"text":"hello"},)"
            R"({"kind":"left_out","byte":5,"bytes":1000},)"
            R"({"kind":"tool_end","byte":0,"seq":4,"at":9000,"fence":0,"name":"Bash","ms":12}],)"
            R"("next":"4.1005","more":false,"bytes":1005})");
}

}  // namespace
}  // namespace stint::wire
