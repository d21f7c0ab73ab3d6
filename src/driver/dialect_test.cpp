// Hand-written streams, for cases that the recorded ones do not cover.
#include "driver/dialect_test_support.hpp"

#include <algorithm>
#include <csignal>

namespace stint::driver {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::ranges::find(list, item) != list.end();
}
Launch launched(std::string_view driver, const Invocation& invocation) {
  return (*make_dialect(driver))->launch(invocation);
}
std::string claude_result(const std::string& rest) {
  return R"({"type":"result","subtype":"success","session_id":"s")" + rest + "}";
}

TEST(Dialect, the_refusal_of_an_unknown_driver_lists_the_known_ones) {
  const auto made = make_dialect("aider");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().what(), "there is no driver 'aider'; use claude, codex, gemini, command or llm");
}

TEST(Dialect, claude_is_started_with_one_retry_and_no_value_that_can_be_parsed_as_an_option) {
  Invocation invocation;
  invocation.prompt = "say \"hi\"\nand more";
  invocation.model = "opus";
  invocation.conversation = "--dangerously-skip-permissions";
  invocation.driver_args = {"--allowedTools", "Read"};
  invocation.system_prompt = "be brief";
  invocation.cost_micros_max = 2'500'000;
  invocation.turns_max = 7;
  const Launch launch = launched("claude", invocation);
  EXPECT_EQ(launch.argv[0], "claude");
  EXPECT_EQ((std::vector<std::string>{launch.argv.begin() + 2, launch.argv.begin() + 4}), invocation.driver_args);
  for (const char* const argument :
       {"-p", "--output-format=stream-json", "--input-format=stream-json", "--verbose", "--model=opus",
        "--resume=--dangerously-skip-permissions", "--append-system-prompt=be brief", "--max-budget-usd=2.500000",
        "--max-turns=7", "--permission-mode=acceptEdits"}) {
    EXPECT_TRUE(contains(launch.argv, argument)) << argument;
  }
  EXPECT_EQ(launch.stdin_text, R"({"type":"user","message":{"role":"user","content":"say \"hi\"\nand more"}})"
                               "\n");
  EXPECT_FALSE(launch.close_stdin) << "an interrupt must still get through";
  const auto value = [&](std::string_view name) {
    for (const auto& [key, content] : launch.env) {
      if (key == name) return content.value_or("(unset)");
    }
    return std::string("(absent)");
  };
  EXPECT_EQ(value("CLAUDECODE"), "(unset)");
  EXPECT_EQ(value("CLAUDE_CODE_MAX_RETRIES"), "1");
  EXPECT_EQ(value("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK"), "1");
}

TEST(Dialect, permissions_are_mapped_to_each_cli) {
  const auto has = [](std::string_view driver, Permissions permissions, const std::string& argument) {
    Invocation invocation;
    invocation.permissions = permissions;
    return contains(launched(driver, invocation).argv, argument);
  };
  EXPECT_TRUE(has("claude", Permissions::read, "--permission-mode=default"));
  EXPECT_TRUE(has("claude", Permissions::read, "--disallowedTools=Edit,Write,MultiEdit,NotebookEdit"));
  EXPECT_TRUE(has("claude", Permissions::full, "--permission-mode=bypassPermissions"));
  EXPECT_TRUE(has("codex", Permissions::read, "--sandbox=read-only"));
  EXPECT_TRUE(has("codex", Permissions::edit, "--sandbox=workspace-write"));
  EXPECT_TRUE(has("codex", Permissions::full, "--sandbox=danger-full-access"));
  EXPECT_TRUE(has("gemini", Permissions::read, "--approval-mode=default"));
  EXPECT_TRUE(has("gemini", Permissions::edit, "--approval-mode=auto_edit"));
  EXPECT_TRUE(has("gemini", Permissions::full, "--approval-mode=yolo"));
}

TEST(Dialect, a_conversation_is_continued) {
  Invocation invocation;
  invocation.prompt = "go on";
  invocation.conversation = "id-1";
  const Launch codex = launched("codex", invocation);
  EXPECT_EQ((std::vector<std::string>{codex.argv.end() - 3, codex.argv.end()}),
            (std::vector<std::string>{"resume", "id-1", "-"}));
  EXPECT_EQ(codex.stdin_text, "go on");
  EXPECT_TRUE(codex.close_stdin);
  EXPECT_TRUE(contains(launched("gemini", invocation).argv, "--resume=id-1"));
  invocation.conversation = "--yolo";
  EXPECT_FALSE(contains(launched("codex", invocation).argv, "--yolo"));
}

TEST(Dialect, each_has_its_polite_end) {
  const PoliteEnd claude = (*make_dialect("claude"))->polite_end();
  EXPECT_NE(claude.stdin_bytes.find(R"("subtype":"interrupt")"), std::string::npos);
  EXPECT_TRUE(claude.stdin_bytes.ends_with("}\n"));
  EXPECT_TRUE(claude.close_stdin);
  EXPECT_EQ(claude.signal, 0);
  EXPECT_EQ((*make_dialect("codex"))->polite_end().signal, SIGINT);
  EXPECT_EQ((*make_dialect("gemini"))->polite_end().signal, SIGINT);
  EXPECT_EQ((*make_dialect("command"))->polite_end().signal, SIGTERM);
}

TEST(Dialect, claude_a_result_before_the_kill_counts) {
  const std::string done = claude_result(R"(,"is_error":false,"result":"done")");
  const Played played = play("claude", {done}, killed_by_us());
  EXPECT_EQ(played.outcome.kind, OutcomeKind::succeeded) << "Stint only ended a process that did not exit";
  EXPECT_EQ(played.outcome.text, "done");
  EXPECT_EQ(played.outcome.signal, 15);
}

TEST(Dialect, claude_a_second_result_replaces_the_first_only_if_it_is_a_success) {
  const std::string first = claude_result(R"(,"is_error":false,"result":"one")");
  const std::string second = claude_result(R"(,"is_error":false,"result":"two")");
  const std::string error = R"({"type":"result","subtype":"error_during_execution","is_error":true})";
  EXPECT_EQ(play("claude", {first, error}, exited(1)).outcome.text, "one");
  EXPECT_EQ(play("claude", {first, error}, exited(1)).outcome.kind, OutcomeKind::succeeded);
  EXPECT_EQ(play("claude", {first, second}, exited(0)).outcome.text, "two");
  EXPECT_EQ(play("claude", {error, second}, exited(0)).outcome.text, "two");
}

TEST(Dialect, claude_exit_status_alone_never_decides) {
  EXPECT_EQ(play("claude", {}, exited(0)).outcome.kind, OutcomeKind::crashed);
  EXPECT_EQ(play("codex", {}, exited(0)).outcome.kind, OutcomeKind::crashed);
  EXPECT_EQ(play("gemini", {}, exited(0)).outcome.kind, OutcomeKind::crashed);
  const std::string done = claude_result(R"(,"is_error":false,"result":"done")");
  EXPECT_EQ(play("claude", {done}, exited(1)).outcome.kind, OutcomeKind::succeeded);
}

TEST(Dialect, claude_only_a_rejection_is_exhaustion) {
  const auto limited = [](const std::string& status) {
    const std::string info = R"({"type":"rate_limit_event","rate_limit_info":{"status":")" + status +
                             R"(","resets_at":1999999999,"rate_limit_type":"seven_day"}})";
    const std::string failed = claude_result(R"(,"is_error":true,"result":"I could not do it")");
    return play("claude", {info, failed}, exited(1)).outcome;
  };
  EXPECT_EQ(limited("rejected").kind, OutcomeKind::rate_limited);
  EXPECT_EQ(limited("rejected").resets_at, WallTime(std::chrono::seconds(1999999999)));
  EXPECT_EQ(limited("allowed_warning").kind, OutcomeKind::agent_error);
}

TEST(Dialect, claude_as_root_fails_with_a_remedy) {
  const Outcome outcome =
      play("claude", {}, exited(1, "--dangerously-skip-permissions cannot be used with root/sudo privileges")).outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::permission_denied);
  EXPECT_NE(outcome.message.find("IS_SANDBOX=1"), std::string::npos);
}

TEST(Dialect, claude_usage_counts_each_message_once_and_all_subagents) {
  const auto message = [](const std::string& id, int input) {
    return R"({"type":"assistant","message":{"id":")" + id + R"(","model":"m","usage":{"input_tokens":)" +
           std::to_string(input) +
           R"(,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1},)"
           R"("content":[]}})";
  };
  const Usage parts =
      play("claude", {message("a", 10), message("a", 10), message("b", 20)}, killed_by_us()).outcome.usage;
  EXPECT_EQ(parts.fresh_in, 30);
  EXPECT_EQ(parts.cache_read, 10);
  EXPECT_EQ(parts.cache_write, 4);
  EXPECT_EQ(parts.out, 2);
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i) many.push_back(message("m" + std::to_string(i), 1));
  EXPECT_EQ(play("claude", many, killed_by_us()).outcome.usage.fresh_in, 1000) << "also of those no longer listed";
  const std::string total = claude_result(
      R"(,"is_error":false,"result":"x","total_cost_usd":0.5,"usage":{"input_tokens":3,"output_tokens":4},"modelUsage":{)"
      R"("a":{"inputTokens":3,"outputTokens":4,"cacheReadInputTokens":1},"b":{"inputTokens":100,"outputTokens":7}})");
  const Usage all = play("claude", {total}, exited(0)).outcome.usage;
  EXPECT_EQ(all.fresh_in, 103);
  EXPECT_EQ(all.out, 11);
  EXPECT_EQ(all.cost_micros, 500'000);
}

TEST(Dialect, cached_tokens_are_subtracted_from_an_input_that_includes_them) {
  const std::string codex =
      R"({"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,"cache_write_input_tokens":10,)"
      R"("output_tokens":9,"reasoning_output_tokens":4}})";
  const Usage usage = play("codex", {codex}, exited(0)).outcome.usage;
  EXPECT_EQ(usage.fresh_in, 30);
  EXPECT_EQ(usage.cache_read, 60);
  EXPECT_EQ(usage.cache_write, 10);
  EXPECT_EQ(usage.tokens(), 109);
  EXPECT_EQ(usage.reasoning, 4);
  const std::string gemini =
      R"({"type":"result","status":"success","stats":{"input_tokens":100,"cached":60,"output_tokens":9}})";
  EXPECT_EQ(play("gemini", {gemini}, exited(0)).outcome.usage.fresh_in, 40);
}

TEST(Dialect, codex_usage_of_earlier_attempts_is_subtracted) {
  Invocation invocation;
  invocation.conversation = "id-1";
  invocation.usage_before.fresh_in = 70;
  invocation.usage_before.out = 5;
  const std::string total = R"({"type":"turn.completed","usage":{"input_tokens":100,"output_tokens":9}})";
  const Usage usage = play("codex", {total}, exited(0), invocation).outcome.usage;
  EXPECT_EQ(usage.fresh_in, 30);
  EXPECT_EQ(usage.out, 4);
  invocation.usage_before.out = 50;
  EXPECT_EQ(play("codex", {total}, exited(0), invocation).outcome.usage.out, 0) << "never negative";
}

TEST(Dialect, numbers_out_of_range_count_as_zero) {
  const std::string odd =
      claude_result(R"(,"is_error":false,"result":"x","total_cost_usd":-3,"api_error_status":99999,)"
                    R"("usage":{"input_tokens":-5,"output_tokens":1e300,"cache_read_input_tokens":"many"})");
  const Outcome outcome = play("claude", {odd}, exited(0)).outcome;
  EXPECT_EQ(outcome.usage.tokens(), 0);
  EXPECT_EQ(outcome.usage.cost_micros, 0);
  EXPECT_FALSE(outcome.http_status);
}

TEST(Dialect, lines_without_json_are_notes_and_unknown_events_are_heartbeats) {
  for (const char* const driver : {"claude", "codex", "gemini"}) {
    const Played played = play(
        driver, {"[SandboxDebug] hello", R"({"type":"new_in_2027","x":[1]})", "", "[]", "{\"a\":"}, killed_by_us());
    EXPECT_EQ(played.texts(ProgressKind::note).substr(0, 21), "[SandboxDebug] hello|") << driver;
    EXPECT_EQ(played.texts(ProgressKind::heartbeat), "new_in_2027|") << driver;
    EXPECT_FALSE(played.result_seen);
  }
}

TEST(Dialect, codex_an_error_before_a_completed_turn_is_not_a_failure) {
  const Played played = play("codex",
                             {R"({"type":"error","message":"Reconnecting... 1/5"})",
                              R"({"type":"item.completed","item":{"type":"agent_message","text":"done"}})",
                              R"({"type":"turn.completed","usage":{}})"},
                             exited(0));
  EXPECT_EQ(played.outcome.kind, OutcomeKind::succeeded);
  EXPECT_EQ(played.outcome.text, "done");
}

TEST(Dialect, a_delay_is_read_from_a_sentence) {
  using namespace std::chrono_literals;
  const auto wait = [](const std::string& sentence) {
    const std::string failed = R"({"type":"turn.failed","error":{"message":"rate limit: )" + sentence + "\"}}";
    return play("codex", {failed}, exited(1)).outcome.retry_after;
  };
  EXPECT_EQ(wait("Try again in 3 days 2 hours 5 minutes."), 74h + 5min);
  EXPECT_EQ(wait("Please retry in 38.5s."), 38500ms);
  EXPECT_EQ(wait("please try again in 250ms"), 250ms);
  EXPECT_EQ(wait("try again in 1 hour, 2 minutes and 3 seconds"), 1h + 2min + 3s);
  for (const char* const nothing : {"later", "try again in a while", "try again in 5 apples", "try again in",
                                    "try again in 1e300 days", "try again in -5s"}) {
    EXPECT_FALSE(wait(nothing)) << nothing;
  }
}

TEST(Dialect, gemini_exit_statuses_have_a_meaning) {
  EXPECT_EQ(play("gemini", {}, exited(41, "you must specify the GEMINI_API_KEY")).outcome.kind,
            OutcomeKind::not_logged_in);
  const Outcome turns = play("gemini", {}, exited(53)).outcome;
  EXPECT_EQ(turns.kind, OutcomeKind::agent_error);
  EXPECT_NE(turns.message.find("turn limit"), std::string::npos);
}

TEST(Dialect, out_of_memory_and_signals_are_distinguished) {
  ProcessEnd end;
  end.signal = SIGKILL;
  for (const char* const driver : {"claude", "codex", "gemini", "command"}) {
    end.oom = false;
    EXPECT_EQ(play(driver, {}, end).outcome.kind, OutcomeKind::crashed) << driver;
    EXPECT_NE(play(driver, {}, end).outcome.message.find("signal 9"), std::string::npos) << driver;
    end.oom = true;
    EXPECT_EQ(play(driver, {}, end).outcome.kind, OutcomeKind::out_of_memory) << driver;
  }
}

TEST(Dialect, a_commands_output_is_its_answer_and_its_status_the_result) {
  Invocation invocation;
  invocation.command = {"./review.sh", "42"};
  invocation.prompt = "the prompt";
  const Played good = play("command", {"one\ntw", "o\n\n"}, exited(0), invocation);
  EXPECT_EQ(good.launch.argv, invocation.command);
  EXPECT_EQ(good.launch.stdin_text, "the prompt");
  EXPECT_EQ(good.outcome.kind, OutcomeKind::succeeded);
  EXPECT_EQ(good.outcome.text, "one\ntwo");
  const Played bad = play("command", {"one"}, exited(3, "no such pull request\n"), invocation);
  EXPECT_EQ(bad.outcome.kind, OutcomeKind::agent_error);
  EXPECT_EQ(bad.outcome.message, "./review.sh ended with exit status 3: no such pull request");
  EXPECT_EQ(play("command", {}, killed_by_us(143), invocation).outcome.kind, OutcomeKind::cancelled);
}

TEST(Dialect, long_texts_are_cut_between_characters) {
  std::string umlauts;
  for (int i = 0; i < 200'000; ++i) umlauts += "ä";
  const std::string answer = claude_result(R"(,"is_error":false,"result":")" + umlauts + "\"");
  const Outcome outcome = play("claude", {answer}, exited(0)).outcome;
  EXPECT_LE(outcome.text.size(), Outcome::kTextMax);
  EXPECT_TRUE(outcome.text.ends_with("ä…"));
  const Outcome command = play("command", std::vector<std::string>(20, umlauts), exited(0)).outcome;
  EXPECT_LE(command.text.size(), Outcome::kTextMax);
  EXPECT_TRUE(command.text.starts_with("…ä")) << "of a command, the end is kept";
}

}  // namespace
}  // namespace stint::driver
