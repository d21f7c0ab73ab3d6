// How faults of a provider are handled: one table, CLI × fault → verdict, own retries, account, text, from streams that
// were recorded from the real CLIs. tests/integration/cli_faults_test.py runs the same table with the CLIs themselves.
#include "domain/verdict.hpp"
#include "driver/dialect_test_support.hpp"

#include <fmt/format.h>

namespace stint::driver {
namespace {

using namespace std::chrono_literals;

struct Row {
  std::string driver, stream;
  int exit = 1;  ///< its status, unless it is ended because it would retry by itself
  bool gives_up = false;
  std::string verdict;  ///< succeeded; final; attempt: uses one up; parked: for a time; asks: until a person acts
  std::string text;     ///< a part of it
  Duration wait{};      ///< of one that is parked for a time
};

/// As ProcessAttempt does it: nothing is read after the dialect gave up.
Played play_row(const Row& row) {
  Played played;
  Result<std::unique_ptr<Dialect>> dialect = make_dialect(row.driver);
  Invocation invocation;
  invocation.prompt = "Say it.";
  played.launch = (*dialect)->launch(invocation);
  constexpr std::size_t kBeforeErrors = 2;  // lines that name the session and repeat the prompt
  std::size_t lines = 0;
  for (const std::string& line : recorded(row.driver + "/" + row.stream)) {
    if (lines++ == kBeforeErrors) {
      for (const std::string& error : recorded_errors(row.driver + "/" + row.stream)) (*dialect)->read_error(error);
    }
    if (!(*dialect)->gives_up()) (*dialect)->read(line, played.progress);
  }
  if (lines <= kBeforeErrors) {
    for (const std::string& error : recorded_errors(row.driver + "/" + row.stream)) (*dialect)->read_error(error);
  }
  EXPECT_EQ((*dialect)->gives_up(), row.gives_up);
  EXPECT_EQ((*dialect)->waits_for().empty(), !row.gives_up) << "`stint why` shows that it waits for the network";
  played.result_seen = (*dialect)->result_seen();
  played.outcome = (*dialect)->finish(row.gives_up ? killed_by_us() : exited(row.exit));
  return played;
}

std::string name_of(const domain::Verdict& verdict) {
  using domain::Settle;
  if (verdict.settle == Settle::succeeded) return "succeeded";
  if (verdict.settle == Settle::park) return verdict.park_for ? "parked" : "asks";
  if (verdict.settle == Settle::retry) return verdict.in_doubt ? "in doubt" : "attempt";
  return verdict.settle == Settle::failed ? "final" : "other";
}

TEST(DialectTable, a_fault_of_a_provider_has_the_same_verdict_for_every_cli) {
  const std::vector<Row> rows{
      {"claude", "unauthorized", 1, false, "asks", "Invalid API key"},
      {"claude", "forbidden", 1, false, "final", "403"},
      {"claude", "not_found", 1, false, "final", "issue with the selected model"},
      {"claude", "spend_limit", 1, false, "final", "spend limit"},
      {"claude", "rate_limited", 1, false, "parked", "rate limit", 60s},
      {"claude", "retry_after", 1, true, "parked", "HTTP 429", 30s},
      {"claude", "failing", 1, false, "attempt", "500"},
      {"claude", "failing_once", 0, false, "succeeded", ""},
      {"claude", "overloaded", 1, false, "attempt", "Overloaded"},
      {"claude", "reset", 1, false, "attempt", "ECONNRESET"},
      {"claude", "connection_reset", 1, false, "attempt", "ECONNRESET"},
      {"claude", "reset_once", 0, false, "succeeded", ""},
      {"claude", "reset_stream", 1, false, "attempt", "ECONNRESET"},
      {"claude", "truncated", 1, false, "attempt", "StreamTruncated"},
      {"claude", "half_stream", 1, false, "attempt", "Stream ended"},
      {"claude", "refused", 1, false, "parked", "Connection refused", 15s},
      {"claude", "connection_refused", 1, false, "parked", "ConnectionRefused", 15s},
      {"codex", "unauthorized", 1, false, "asks", "invalid x-api-key"},
      {"codex", "forbidden", 1, true, "final", "403"},
      {"codex", "not_found", 1, true, "final", "404"},
      {"codex", "spend_limit", 1, false, "final", "Quota exceeded"},
      {"codex", "rate_limited", 1, false, "parked", "429", 60s},
      {"codex", "retry_after", 1, true, "parked", "429", 60s},
      {"codex", "failing", 1, true, "attempt", "high demand"},
      {"codex", "failing_once", 0, false, "succeeded", ""},
      {"codex", "reset", 1, true, "attempt", "error sending request"},
      {"codex", "reset_stream", 1, false, "attempt", "stream disconnected"},
      {"codex", "half_stream_once", 0, false, "succeeded", ""},
      {"codex", "websocket", 0, false, "succeeded", ""},
      {"codex", "websocket_failing", 1, true, "attempt", "high demand"},
      {"codex", "no_network", 1, true, "parked", "Connection failed", 15s},
      {"gemini", "unauthorized", 145, false, "asks", "invalid x-api-key"},
      {"gemini", "forbidden", 147, false, "final", "403"},
      {"gemini", "not_found", 1, false, "final", "no such thing"},
      {"gemini", "quota", 173, false, "parked", "daily quota", 60s},
      {"gemini", "rate_limited", 1, true, "parked", "rate limit", 60s},
      {"gemini", "failing", 1, true, "attempt", "500"},
      {"gemini", "failing_once", 0, false, "succeeded", ""},
      {"gemini", "reset", 1, true, "parked", "fetch failed", 15s},
      {"gemini", "no_network", 1, true, "parked", "fetch failed", 15s},
      {"gemini", "half_stream", 0, false, "attempt", "stream ended"},
      {"gemini", "reset_stream", 1, false, "attempt", "terminated"},
      {"gemini", "half_stream_once", 0, false, "succeeded", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.driver + "/" + row.stream);
    const Outcome outcome = play_row(row).outcome;
    const domain::Verdict verdict = domain::judge(outcome, {});
    EXPECT_EQ(name_of(verdict), row.verdict) << to_string(outcome.kind) << ": " << outcome.message;
    EXPECT_EQ(verdict.pauses_account, row.verdict == "parked" || row.verdict == "asks");
    EXPECT_NE(outcome.message.find(row.text), std::string::npos) << outcome.message;
    if (row.verdict == "parked") EXPECT_EQ(verdict.park_for, row.wait);
    EXPECT_EQ(outcome.message.starts_with("the provider can't be reached: "), row.wait == Duration(15s));
  }
}

TEST(DialectTable, a_call_that_breaks_in_mid_stream_counts_its_input) {
  for (const auto& [driver, stream, gives_up] :
       std::vector<std::tuple<std::string, std::string, bool>>{{"claude", "reset_stream", false},
                                                               {"claude", "truncated", false},
                                                               {"codex", "reset_stream", false},
                                                               {"gemini", "half_stream", false},
                                                               {"gemini", "reset_stream", false}}) {
    SCOPED_TRACE(driver + "/" + stream);
    const Usage usage = play_row({driver, stream, 1, gives_up, "", ""}).outcome.usage;
    EXPECT_GT(usage.fresh_in, 0);
  }
  const Usage both = play_row({"claude", "reset_stream", 1, false, "", ""}).outcome.usage;
  EXPECT_EQ(both.fresh_in, 2 * 12039) << "of both calls, though the result counts one";
  EXPECT_EQ(play_row({"codex", "forbidden", 1, true, "", ""}).outcome.usage.tokens(), 0) << "a refusal costs nothing";
}

TEST(DialectTable, codex_enforces_the_budget_that_it_is_given) {
  Invocation invocation;
  invocation.tokens_max = 12000;
  for (const std::string stream : {"codex/budget_reached", "codex/budget_exhausted"}) {
    const Played played = play("codex", recorded(stream), exited(1), invocation);
    EXPECT_EQ(played.outcome.kind, OutcomeKind::over_budget) << stream;
    EXPECT_EQ(played.outcome.usage.tokens(), 12000);
    EXPECT_TRUE(played.outcome.usage.estimated);
  }
  // With a price, the cost decides: output tokens are weighted by their price.
  invocation.tokens_max.reset();
  invocation.cost_micros_max = 30'000;
  invocation.price = {.input = 3'000'000, .output = 15'000'000};
  std::string words;
  for (const std::string& word : (*make_dialect("codex"))->launch(invocation).argv) words += word + " ";
  EXPECT_NE(words.find("limit_tokens=10000,"), std::string::npos) << words;
  EXPECT_NE(words.find("sampling_token_weight=5.000"), std::string::npos) << words;
}

TEST(DialectTable, repeated_text_of_gemini_is_dropped) {
  const Played once = play_row({"gemini", "half_stream_once", 0, false, "", ""});
  EXPECT_EQ(once.outcome.text, "I have read it twice, slowly. It is ") << "the repetition is dropped";
  std::string shown;
  for (const Progress& progress : once.progress) {
    if (progress.kind != ProgressKind::text) continue;
    EXPECT_TRUE(progress.is_part);
    shown += progress.text;
  }
  EXPECT_EQ(shown, once.outcome.text);
  EXPECT_EQ(play_row({"gemini", "half_stream", 0, false, "", ""}).outcome.text, "Thank you for ");
}

std::string delta(int ms, std::string_view text) {
  return fmt::format(R"({{"type":"message","timestamp":"2026-11-18T02:17:{:02}.{:03}Z","role":"assistant",)"
                     R"("content":"{}","delta":true}})",
                     ms / 1000, ms % 1000, text);
}

TEST(DialectTable, text_that_only_looks_like_a_repetition_is_kept) {
  const std::string done = R"({"type":"result","status":"success","stats":{}})";
  const auto text = [&](std::vector<std::string> lines) {
    lines.push_back(done);
    return play("gemini", lines, exited(0)).outcome.text;
  };
  EXPECT_EQ(text({delta(0, "ha "), delta(10, "ha ")}), "ha ha ") << "without a pause nothing broke";
  EXPECT_EQ(text({delta(0, "one "), delta(10, "two "), delta(2000, "one "), delta(2010, "three")}),
            "one two one three");
  EXPECT_EQ(text({delta(0, "one "), delta(10, "two "), delta(2000, "one ")}), "one two one ");
  EXPECT_EQ(text({delta(0, "one "), delta(10, "two "), delta(2000, "one two three")}), "one two three");
  EXPECT_EQ(text({delta(0, "#"), delta(2000, "# Title")}), "## Title") << "too short to be a repetition";
  EXPECT_EQ(text({delta(0, "1"), delta(2000, "1")}), "11");
}

}  // namespace
}  // namespace stint::driver
