// The stored submission of a run survives a round trip.
#include "wire/run_codec.hpp"

#include <gtest/gtest.h>

namespace stint::wire {
namespace {

TEST(RunCodec, a_submission_comes_back_as_it_was_written) {
  domain::RunInput input;
  input.args["text"] = {"a \"b\""};
  input.args["several"] = {"a", "b \"c\"", ""};
  input.args["none"] = {};
  input.prompt = "p";
  input.driver = "claude";
  input.model = "opus";
  input.program = "/bin/x";
  input.title = "t";
  input.directory = "/d";
  input.retry_of = "abcdefghijkl";
  input.trace = "0123";
  input.budget.tokens = 7;
  input.priority = -3;
  input.budgets_above.push_back({"head", {.tokens = 100, .cost_micros = 5}});
  input.budgets_above.push_back({"parent", {.cost_micros = 3}});
  const RunCodec run_codec;
  const auto read = run_codec.read_input(run_codec.write(input));
  ASSERT_TRUE(read);
  EXPECT_EQ(run_codec.write(*read), run_codec.write(input));
  EXPECT_EQ(read->args, input.args);
  EXPECT_EQ(read->budget.tokens, 7);
  EXPECT_EQ(read->directory, "/d");
  EXPECT_EQ(read->priority, -3);
  ASSERT_EQ(read->budgets_above.size(), 2U);
  EXPECT_EQ(read->budgets_above[0].run, "head");
  EXPECT_EQ(read->budgets_above[0].budget, input.budgets_above[0].budget);
  EXPECT_EQ(read->budgets_above[1].budget, input.budgets_above[1].budget);
}

TEST(RunCodec, an_invalid_budget_is_refused) {
  const RunCodec run_codec;
  EXPECT_FALSE(run_codec.read_input(R"({"args":{},"budgets_above":[{"run":"x"}]})"));
  EXPECT_FALSE(run_codec.read_input(R"({"args":{},"budgets_above":["x"]})"));
}

TEST(RunCodec, waits_survive_a_round_trip) {
  const RunCodec run_codec;
  const std::vector<domain::LimitWait> waits = {{"model:\"opus\"", std::chrono::seconds(9), std::chrono::seconds(4)},
                                                {"gpu", std::chrono::milliseconds(5), std::chrono::milliseconds(5)}};
  EXPECT_EQ(run_codec.read_waits(run_codec.write_waits(waits)), waits);
  EXPECT_TRUE(run_codec.read_waits("").empty());
  EXPECT_TRUE(run_codec.read_waits(R"({"waits":7})").empty());
  const auto hostile = run_codec.read_waits(R"({"waits":[1,{"limit":"a","ago_ms":9223372036854775807,"ms":-5}]})");
  ASSERT_EQ(hostile.size(), 1U);
  EXPECT_EQ(hostile[0].length, Duration::zero());
  EXPECT_GT(hostile[0].ago, std::chrono::hours(1));
}

TEST(RunCodec, a_verdict_survives_a_round_trip) {
  const RunCodec run_codec;
  for (const domain::VerdictRule rule : domain::kVerdictRules) {
    const domain::VerdictRecord plain{.rule = rule, .attempt = 2, .attempts_max = 3};
    EXPECT_EQ(run_codec.read_verdict(run_codec.write_verdict(plain)), plain);
  }
  const domain::VerdictRecord full{.rule = domain::VerdictRule::quota,
                                   .attempt = 1,
                                   .attempts_max = 1,
                                   .after = std::chrono::seconds(7),
                                   .limit = "account:x",
                                   .resumes = true};
  EXPECT_EQ(run_codec.read_verdict(run_codec.write_verdict(full)), full);
  for (const char* const other : {"", "{", "[]", "{}", R"({"verdict":1})", R"({"verdict":{"rule":"newer"}})"}) {
    EXPECT_FALSE(run_codec.read_verdict(other)) << other;
  }
}

TEST(RunCodec, the_permits_of_a_receipt_survive_a_round_trip) {
  const RunCodec run_codec;
  domain::RunMemo memo;
  memo.permits_returned = {"agent:a", "gpu"};
  memo.permits_held = {"disk"};
  const auto read = run_codec.read_memo(run_codec.write(memo));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->permits_returned, memo.permits_returned);
  EXPECT_EQ(read->permits_held, memo.permits_held);
}

TEST(RunCodec, a_note_has_its_place_in_the_output) {
  const RunCodec run_codec;
  const std::string data = run_codec.write_note_at("Bash ls", 1234);
  EXPECT_EQ(run_codec.read_note(data), "Bash ls");
  EXPECT_EQ(run_codec.read_output_at(data), 1234U);
  EXPECT_EQ(run_codec.read_output_at(run_codec.write_note("Bash ls")), std::nullopt);
  EXPECT_EQ(run_codec.read_output_at(R"({"output_at":-1})"), std::nullopt);
}

TEST(RunCodec, a_span_survives_a_round_trip) {
  const RunCodec run_codec;
  for (const domain::SpanKind kind : domain::kSpanKinds) {
    domain::Span span{.kind = kind, .name = "a \"b\"", .length = std::chrono::milliseconds(1234), .usage = {}};
    if (kind == domain::SpanKind::model_call) span.usage = {.fresh_in = 7, .out = 3};
    span.text = kind == domain::SpanKind::tool ? "ok" : "";
    if (kind == domain::SpanKind::tool) span.output_at = 77;
    const auto read = run_codec.read_span(run_codec.write_span(span));
    ASSERT_TRUE(read) << to_string(kind);
    EXPECT_EQ(read->kind, span.kind);
    EXPECT_EQ(read->name, span.name);
    EXPECT_EQ(read->length, span.length);
    EXPECT_EQ(read->usage, span.usage);
    EXPECT_EQ(read->text, span.text);
    EXPECT_EQ(read->output_at, span.output_at);
  }
  EXPECT_FALSE(run_codec.read_span(run_codec.write_note("tool")));
  EXPECT_FALSE(run_codec.read_span("garbled"));
}

}  // namespace
}  // namespace stint::wire
