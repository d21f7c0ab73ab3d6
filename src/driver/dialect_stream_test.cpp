// Streams recorded from the real CLIs against the simulated provider (tests/streams describes how).
#include "driver/dialect_test_support.hpp"

namespace stint::driver {
namespace {

struct StreamCase {
  std::string driver, stream;
  ProcessEnd end;
  OutcomeKind kind;
  std::optional<int> http_status = {};
  std::string message = {};  // a part of it
};

const std::vector<StreamCase> kCases{
    {"claude", "success", exited(0), OutcomeKind::succeeded},
    {"claude", "tool", exited(0), OutcomeKind::succeeded},
    {"claude", "partial", exited(0), OutcomeKind::succeeded},
    {"claude", "retried", exited(0), OutcomeKind::succeeded},
    {"claude", "rate_allowed", exited(0), OutcomeKind::succeeded},
    {"claude", "denied", exited(0), OutcomeKind::succeeded, {}, "2 calls were refused"},
    {"claude", "unauthorized", exited(1), OutcomeKind::not_logged_in, 401, "Invalid API key"},
    {"claude", "not_logged_in", exited(1), OutcomeKind::not_logged_in, {}, "/login"},
    {"claude", "rate_limited", exited(1), OutcomeKind::rate_limited, 429, "exceed your rate limit"},
    {"claude", "session_limit", exited(1), OutcomeKind::rate_limited, 429, "session limit"},
    {"claude", "spend_limit", exited(1), OutcomeKind::api_error, 429, "spend limit"},
    {"claude", "overloaded", exited(1), OutcomeKind::api_error, 529, "Overloaded"},
    {"claude", "server_error", exited(1), OutcomeKind::api_error, 500, "API Error"},
    {"claude", "error_event", exited(1), OutcomeKind::api_error, 529, "Overloaded"},
    {"claude", "half_stream", exited(1), OutcomeKind::api_error, {}, "Stream ended"},
    {"claude", "connection_reset", exited(1), OutcomeKind::api_error, {}, "ECONNRESET"},
    {"claude", "connection_refused", exited(1), OutcomeKind::api_error, {}, "ConnectionRefused"},
    {"claude", "prompt_too_long", exited(1), OutcomeKind::api_error, 400, "too long"},
    {"claude", "max_turns", exited(1), OutcomeKind::agent_error, {}, "maximum number of turns"},
    {"claude", "max_budget", exited(1), OutcomeKind::over_budget, {}, "maximum budget"},
    {"claude", "unknown_conversation", exited(1), OutcomeKind::agent_error, {}, "No conversation found"},
    {"claude", "interrupted", killed_by_us(1), OutcomeKind::cancelled},
    {"claude", "interrupted_tool", killed_by_us(1), OutcomeKind::cancelled},
    {"claude", "stalled", killed_by_us(1), OutcomeKind::cancelled},
    {"claude", "sigint", killed_by_us(0), OutcomeKind::cancelled},
    {"claude", "terminated", killed_by_us(143), OutcomeKind::cancelled},
    {"claude", "terminated", exited(143), OutcomeKind::crashed, {}, "143"},
    {"codex", "success", exited(0), OutcomeKind::succeeded},
    {"codex", "tool", exited(0), OutcomeKind::succeeded},
    {"codex", "unauthorized", exited(1), OutcomeKind::not_logged_in, 401, "invalid x-api-key"},
    {"codex", "no_key", exited(1), OutcomeKind::not_logged_in, {}, "OPENAI_API_KEY"},
    {"codex", "rate_limited", exited(1), OutcomeKind::rate_limited, 429, "429"},
    {"codex", "quota", exited(1), OutcomeKind::api_error, 429, "Quota exceeded"},
    {"codex", "server_error", exited(1), OutcomeKind::api_error, 500, "high demand"},
    {"codex", "unavailable", exited(1), OutcomeKind::api_error, 503, "503"},
    {"codex", "half_stream", exited(1), OutcomeKind::api_error, {}, "stream disconnected"},
    {"codex", "error_event", exited(1), OutcomeKind::api_error, {}, "Overloaded"},
    {"codex", "interrupted", killed_by_us(1), OutcomeKind::cancelled},
    {"codex", "interrupted", exited(1), OutcomeKind::crashed},
    {"gemini", "success", exited(0), OutcomeKind::succeeded},
    {"gemini", "tool", exited(0), OutcomeKind::succeeded},
    {"gemini", "denied", exited(0), OutcomeKind::succeeded, {}, "1 calls were refused"},
    {"gemini", "unauthorized", exited(145), OutcomeKind::not_logged_in, 401, "invalid x-api-key"},
    {"gemini", "quota", exited(173), OutcomeKind::rate_limited, 429, "daily quota"},
    {"gemini", "loop", exited(0), OutcomeKind::agent_error, {}, "Loop detected"},
    {"gemini", "interrupted", killed_by_us(0), OutcomeKind::cancelled},
    {"gemini", "interrupted", exited(0), OutcomeKind::crashed, {}, "without a result"},
};

TEST(DialectStream, every_recorded_stream_is_classified) {
  for (const StreamCase& test : kCases) {
    SCOPED_TRACE(test.driver + "/" + test.stream);
    const Played played = play(test.driver, recorded(test.driver + "/" + test.stream), test.end);
    EXPECT_EQ(to_string(played.outcome.kind), to_string(test.kind)) << played.outcome.message;
    EXPECT_EQ(played.outcome.http_status, test.http_status);
    EXPECT_NE(played.outcome.message.find(test.message), std::string::npos) << played.outcome.message;
    EXPECT_EQ(played.outcome.exit_status, test.end.exit_status);
    if (test.kind == OutcomeKind::succeeded) {
      EXPECT_TRUE(played.result_seen);
      EXPECT_FALSE(played.outcome.text.empty());
      EXPECT_GT(played.outcome.usage.fresh_in, 0);
      EXPECT_GT(played.outcome.usage.out, 0);
      EXPECT_FALSE(played.outcome.usage.estimated);
    }
    EXPECT_FALSE(played.outcome.conversation.empty());
  }
}

TEST(DialectStream, claude_reports_progress) {
  const Played played = play("claude", recorded("claude/tool"), exited(0));
  EXPECT_EQ(played.texts(ProgressKind::text), "I look.|All done.|");
  EXPECT_EQ(played.texts(ProgressKind::thinking), "hm|");
  EXPECT_EQ(played.texts(ProgressKind::tool_start), "Bash echo hello > out.txt; cat out.txt|");
  EXPECT_EQ(played.texts(ProgressKind::tool_end), "hello|");
  EXPECT_EQ(played.outcome.text, "All done.");
  EXPECT_EQ(played.outcome.usage.fresh_in, 38598);
  EXPECT_EQ(played.outcome.usage.out, 8);
  EXPECT_EQ(played.outcome.usage.cost_micros, 193190);
}

TEST(DialectStream, the_end_of_a_tool_names_its_call) {
  for (const auto& [driver, tool] :
       {std::pair{"claude", "Bash"}, {"codex", "command_execution"}, {"gemini", "run_shell_command"}}) {
    SCOPED_TRACE(driver);
    const Played played = play(driver, recorded(std::string(driver) + "/tool"), exited(0));
    const auto begin = std::ranges::find(played.progress, ProgressKind::tool_start, &Progress::kind);
    const auto end = std::ranges::find(played.progress, ProgressKind::tool_end, &Progress::kind);
    ASSERT_TRUE(begin != played.progress.end() && end != played.progress.end());
    EXPECT_EQ(begin->tool, tool);
    EXPECT_NE(begin->call, "");
    EXPECT_EQ(end->call, begin->call);
  }
}

TEST(DialectStream, a_refused_call_comes_with_the_line_that_would_allow_it) {
  const Outcome claude = play("claude", recorded("claude/denied"), exited(0)).outcome;
  ASSERT_EQ(claude.denials.size(), 2);
  EXPECT_EQ(claude.denials[0],
            (Denial{"Bash", "curl -s http://127.0.0.1:1/", R"x(driver_args: ["--allowedTools","Bash(curl:*)"])x"}));
  EXPECT_EQ(claude.denials[1].allow, R"(driver_args: ["--allowedTools","WebFetch"])");
  Invocation reads;
  reads.permissions = Permissions::read;
  const std::vector<std::string> outside = recorded("claude/denied_write");
  EXPECT_EQ(play("claude", outside, exited(0), reads).outcome.denials.at(0).allow, "permissions: edit");
  EXPECT_EQ(play("claude", outside, exited(0)).outcome.denials.at(0).allow, R"(driver_args: ["--add-dir","/etc"])");
  const Outcome gemini = play("gemini", recorded("gemini/denied"), exited(0)).outcome;
  EXPECT_EQ(gemini.denials.at(0), (Denial{"run_shell_command", "touch x", "permissions: full"}));
}

TEST(DialectStream, tokens_are_counted_though_the_result_has_zero) {
  const Usage budget = play("claude", recorded("claude/max_budget"), exited(1)).outcome.usage;
  EXPECT_EQ(budget.fresh_in, 19263);
  EXPECT_EQ(budget.cost_micros, 96365);
  const Usage cut = play("claude", recorded("claude/interrupted"), killed_by_us(1)).outcome.usage;
  EXPECT_EQ(cut.fresh_in, 19243);
  EXPECT_TRUE(cut.estimated);
}

TEST(DialectStream, the_reset_time_of_a_rate_limit_is_read) {
  const Outcome outcome = play("claude", recorded("claude/session_limit"), exited(1)).outcome;
  ASSERT_TRUE(outcome.resets_at);
  EXPECT_EQ(*outcome.resets_at, WallTime(std::chrono::seconds(1999999999)));
  EXPECT_TRUE(outcome.text.empty()) << "an error is not an answer";
  EXPECT_FALSE(play("claude", recorded("claude/rate_allowed"), exited(0)).outcome.resets_at);
}

TEST(DialectStream, codex_and_gemini_report_progress) {
  const Played codex = play("codex", recorded("codex/tool"), exited(0));
  EXPECT_EQ(codex.texts(ProgressKind::text), "I look.|All done.|");
  EXPECT_EQ(codex.texts(ProgressKind::tool_start), "/bin/bash -lc 'echo hello'|");
  EXPECT_EQ(codex.texts(ProgressKind::tool_end), "/bin/bash -lc 'echo hello' → 0|");
  EXPECT_EQ(codex.outcome.text, "All done.");
  EXPECT_EQ(codex.outcome.usage.fresh_in, 28047);
  const Played gemini = play("gemini", recorded("gemini/tool"), exited(0));
  EXPECT_EQ(gemini.outcome.text, "All done.");
  EXPECT_EQ(gemini.texts(ProgressKind::tool_end), "run_shell_command → success|");
  EXPECT_EQ(gemini.outcome.usage.fresh_in, 23612);
}

}  // namespace
}  // namespace stint::driver
