// For any output of a CLI, a dialect neither crashes nor keeps more than its bounds.
#include "driver/dialect_test_support.hpp"

#include <rapidcheck.h>

namespace stint::driver {
namespace {

constexpr const char* kDrivers[] = {"claude", "codex", "gemini", "command"};

void check_bounds(const Played& played) {
  RC_ASSERT(played.outcome.text.size() <= Outcome::kTextMax);
  RC_ASSERT(played.outcome.message.size() <= Outcome::kMessageMax);
  RC_ASSERT(played.outcome.denials.size() <= Outcome::kDenialsMax);
  RC_ASSERT(played.outcome.usage.fresh_in >= 0 && played.outcome.usage.out >= 0);
  for (const Progress& progress : played.progress) RC_ASSERT(progress.text.size() <= Progress::kTextMax);
}

/// The same bytes on stderr, where Gemini CLI announces its retries.
Played play_errors(std::string_view driver, const std::vector<std::string>& lines) {
  Played played;
  const std::unique_ptr<Dialect> dialect = make_dialect(driver).value();
  played.launch = dialect->launch(Invocation());
  for (const std::string& line : lines) {
    dialect->read_error(line);
    dialect->read_error("Attempt 1 failed with status 500. Retrying with backoff... " + line);
    dialect->read_error("Attempt 2 failed: " + line + ". Retrying after " + line + "ms...");
    dialect->read(line, played.progress);
    RC_ASSERT(dialect->waits_for().size() <= Outcome::kMessageMax);
  }
  played.outcome = dialect->finish(killed_by_us());
  return played;
}

TEST(DialectProperty, any_bytes) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& lines, const std::string& tail) {
    for (const char* const driver : kDrivers) {
      check_bounds(play(driver, lines, exited(1, tail)));
      check_bounds(play_errors(driver, lines));
    }
  }));
}

/// Every recorded line, cut anywhere and with bytes changed: most of them are still nearly right.
TEST(DialectProperty, recorded_lines_cut_and_changed) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> streams{
      {"claude", recorded("claude/denied")},
      {"claude", recorded("claude/session_limit")},
      {"codex", recorded("codex/tool")},
      {"codex", recorded("codex/unauthorized")},
      {"gemini", recorded("gemini/tool")},
      {"gemini", recorded("gemini/unauthorized")},
      {"claude", recorded("claude/reset_stream")},
      {"codex", recorded("codex/websocket_failing")},
      {"gemini", recorded("gemini/half_stream_once")}};
  EXPECT_TRUE(rc::check([&](std::uint32_t seed) {
    for (const auto& [driver, lines] : streams) {
      std::vector<std::string> changed = lines;
      for (std::string& line : changed) {
        seed = seed * 1664525 + 1013904223;
        const std::size_t at = line.empty() ? 0 : (seed >> 8) % line.size();
        if (seed % 3 == 0) line.resize(at);
        if (seed % 3 == 1) line[at] = static_cast<char>(seed >> 24);
      }
      check_bounds(play(driver, changed, exited(0)));
      check_bounds(play(driver, changed, killed_by_us()));
      check_bounds(play_errors(driver, changed));
    }
  }));
}

/// The right names with values of the wrong kind.
TEST(DialectProperty, known_names_with_any_values) {
  const std::vector<std::string> names{"type",
                                       "subtype",
                                       "message",
                                       "content",
                                       "usage",
                                       "result",
                                       "is_error",
                                       "errors",
                                       "item",
                                       "error",
                                       "stats",
                                       "status",
                                       "tool_input",
                                       "session_id",
                                       "modelUsage",
                                       "permission_denials",
                                       "rate_limit_info",
                                       "api_error_status"};
  const std::vector<std::string> values{"null",
                                        "1",
                                        "-1e308",
                                        "true",
                                        "\"\"",
                                        "[]",
                                        "{}",
                                        "[[]]",
                                        "[{}]",
                                        "\"result\"",
                                        "\"assistant\"",
                                        "{\"content\":[1]}",
                                        "[null]",
                                        "\"success\"",
                                        "\"item.completed\"",
                                        "{\"a\":{\"inputTokens\":-1}}"};
  EXPECT_TRUE(rc::check([&](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& fields, std::uint8_t kind) {
    const std::vector<std::string> types{"system",           "assistant",      "user",        "result",
                                         "rate_limit_event", "turn.completed", "turn.failed", "item.completed",
                                         "message",          "tool_use",       "tool_result", "error"};
    std::string line = R"({"type":")" + types[kind % types.size()] + "\"";
    for (const auto& [name, value] : fields) {
      line += ",\"" + names[name % names.size()] + "\":" + values[value % values.size()];
    }
    for (const char* const driver : kDrivers) check_bounds(play(driver, {line + "}", line + "}"}, exited(0)));
  }));
}

TEST(DialectProperty, many_and_huge_lines_keep_to_the_bounds) {
  const std::string huge(Dialect::kLineMax + 1, 'x');
  const std::string refusals = [] {
    std::string list;
    for (int i = 0; i < 1000; ++i) list += std::string(i == 0 ? "" : ",") + R"({"tool_name":"Bash","tool_input":{}})";
    return R"({"type":"result","is_error":false,"permission_denials":[)" + list + "]}";
  }();
  for (const char* const driver : kDrivers) {
    const Played played = play(driver, {huge, "{\"type\":\"" + huge + "\"}", refusals}, exited(0));
    EXPECT_LE(played.outcome.text.size(), Outcome::kTextMax);
    EXPECT_LE(played.outcome.denials.size(), Outcome::kDenialsMax);
    if (std::string_view(driver) != "command") {
      EXPECT_EQ(played.progress.at(1).kind, ProgressKind::note) << "not parsed";
    }
    for (const Progress& progress : played.progress) EXPECT_LE(progress.text.size(), Progress::kTextMax);
  }
}

}  // namespace
}  // namespace stint::driver
