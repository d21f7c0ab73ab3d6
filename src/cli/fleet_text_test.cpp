#include "cli/fleet_text.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::RunState;

const WallTime kNow{1'790'000'000'000ms};

engine::RunView view(RunState state) {
  engine::RunView view;
  view.run.id = "abcdefghijkl";
  view.run.agent = "review";
  view.run.state = state;
  view.run.created_at = kNow - 5min;
  view.input.title = "A title";
  return view;
}

std::string plain(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += line.str(false) + "\n";
  return text;
}

TEST(FleetText, ages_have_one_unit_and_are_never_negative) {
  EXPECT_EQ(age_text(-5s), "0s");
  EXPECT_EQ(age_text(59s), "59s");
  EXPECT_EQ(age_text(60s), "1m");
  EXPECT_EQ(age_text(3599s), "59m");
  EXPECT_EQ(age_text(25h), "1d");
}

TEST(FleetText, lengths_are_rounded_for_reading) {
  EXPECT_EQ(length_text(-1s), "0 ms");
  EXPECT_EQ(length_text(340ms), "340 ms");
  EXPECT_EQ(length_text(1500ms), "1.5s");
  EXPECT_EQ(length_text(75s + 300ms), "1m15s");
  EXPECT_EQ(length_text(90min + 5s), "1h30m");
}

TEST(FleetText, costs) {
  Usage usage;
  EXPECT_EQ(cost_text(usage), "-");
  usage.cost_micros = 1'234'567;
  EXPECT_EQ(cost_text(usage), "$1.23");
  usage.cost_micros = 1'200;
  usage.estimated = true;
  EXPECT_EQ(cost_text(usage), "~$0.0012");
}

TEST(FleetText, a_table_is_aligned_and_shortens_the_title_to_fit) {
  std::vector<engine::RunView> runs = {view(RunState::queued), view(RunState::succeeded)};
  runs[1].input.title = "Another one that is so long that it does not fit here whole";
  runs[1].memo.usage.cost_micros = 12'340'000;
  EXPECT_EQ(plain(runs_table(runs, kNow).lines(60, kRunsElastic)),
            "ID            AGENT   STATE      AGE  TITLE             COST\n"
            "abcdefghijkl  review  queued      5m  A title              -\n"
            "abcdefghijkl  review  succeeded   5m  Another one t…  $12.34\n");
}

TEST(FleetText, a_long_title_does_not_fill_a_pipe_with_spaces) {
  std::vector<engine::RunView> runs = {view(RunState::queued), view(RunState::queued)};
  runs[1].input.title = std::string(100'000, 'x');
  const std::vector<Line> lines = runs_table(runs, kNow).lines(0, kRunsElastic);
  for (const Line& line : lines) EXPECT_LT(line.width(), 160);
  EXPECT_GT(lines.back().width(), 80 + 12) << "but 80 columns of it are kept";
}

TEST(FleetText, a_hostile_title_is_harmless) {
  std::vector<engine::RunView> runs = {view(RunState::queued)};
  runs[0].input.title = "\033]0;owned\a\033[2Jx\ny";
  const std::string text = plain(runs_table(runs, kNow).lines(0, kRunsElastic));
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

TEST(FleetText, why_is_never_empty) {
  for (const RunState state : domain::kRunStates) {
    if (state == RunState::parked) continue;  // it always has a reason
    EXPECT_FALSE(why_lines({"id", state, {}}, kNow, true).empty()) << to_string(state);
  }
  EXPECT_NE(why_lines({"id", RunState::queued, {}}, kNow, false).front().find("stint serve"), std::string::npos);
}

/// A run is also parked when the host lacks descriptors: then it has no account. `why` and the error name what is
/// missing.
TEST(FleetText, a_parked_run_does_not_blame_an_account_that_it_may_not_have) {
  store::Run run = view(RunState::parked).run;
  run.hold = Hold::quota;
  EXPECT_EQ(state_text(run).find("account"), std::string::npos) << state_text(run);
}

TEST(FleetText, a_run_that_waits_for_a_person_names_the_commands_that_settle_it) {
  store::Run run = view(RunState::in_doubt).run;
  EXPECT_EQ(next_steps(run).size(), 4U);
  run.state = RunState::parked;
  run.hold = Hold::quota;
  EXPECT_EQ(next_steps(run).size(), 1U);
  run.hold = Hold::person;
  EXPECT_NE(next_steps(run)[1].find("stint answer abcdefghijkl"), std::string::npos);
  run.state = RunState::succeeded;
  EXPECT_TRUE(next_steps(run).empty());
}

TEST(FleetText, a_receipt_counts_what_was_ended) {
  engine::Receipt receipt;
  receipt.run = view(RunState::cancelled);
  receipt.time = 120ms;
  EXPECT_EQ(receipt_text(receipt), "abcdefghijkl: cancelled (120 ms)");
  receipt.run.memo.processes_ended = 3;
  receipt.run.memo.ending = 80ms;
  receipt.reached = {"x"};
  EXPECT_EQ(receipt_text(receipt),
            "abcdefghijkl: cancelled; 3 processes ended in 80 ms; and 1 child run with it (120 ms)");
  receipt.permits_returned = {"gpu"};
  EXPECT_EQ(
      receipt_text(receipt),
      "abcdefghijkl: cancelled; 3 processes ended in 80 ms; permit of gpu returned; and 1 child run with it (120 ms)");
  receipt.run = view(RunState::succeeded);
  EXPECT_EQ(receipt_text(receipt).substr(0, 35), "abcdefghijkl: has ended, succeeded;");
}

TEST(FleetText, a_timeline_names_waits_and_work) {
  engine::Timeline timeline;
  EXPECT_TRUE(timeline_lines(timeline).empty());
  timeline.waiting = 9s;
  timeline.working = 5s;
  timeline.segments = {{domain::SpanKind::queue, "", WallTime(0s), 1s, 0},
                       {domain::SpanKind::limit, "gpu", WallTime(1s), 8s, 0},
                       {domain::SpanKind::model_call, "opus", WallTime(9s), 5s, 2}};
  const auto lines = timeline_lines(timeline);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].str(false), "  9.0s waiting, 5.0s working");
  EXPECT_EQ(lines[2].str(false), "       +1s      8.0s  limit gpu");
  EXPECT_EQ(lines[3].str(false), "       +9s      5.0s  model call opus, attempt 2");
  timeline.segments.resize(1000, timeline.segments.front());
  EXPECT_EQ(timeline_lines(timeline).size(), 42U);
}

TEST(FleetText, a_span_shows_kind_name_and_length) {
  domain::Span span{
      .kind = domain::SpanKind::tool, .name = "Bash", .length = std::chrono::milliseconds(1234), .usage = {}};
  EXPECT_EQ(span_text(span), "tool Bash, 1.2s");
  span.kind = domain::SpanKind::model_call;
  span.usage.out = 950;
  EXPECT_EQ(span_text(span), "model_call Bash, 1.2s, 950 tokens");
}

}  // namespace
}  // namespace stint::cli
