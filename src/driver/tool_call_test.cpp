// The rules of tool classes, with real commands, a scripted HTTP server and a scripted MCP server.
#include "driver/tool_test_support.hpp"

namespace stint::driver {
namespace {

using namespace std::chrono_literals;
using domain::ToolClass;
using State = ToolResult::State;

domain::Tool shell_tool(ToolClass tool_class, std::string script, const std::vector<std::string>& names = {}) {
  domain::Tool tool;
  tool.name = "t";
  tool.tool_class = tool_class;
  tool.command = {"sh", "-c", std::move(script), "sh"};
  for (const std::string& name : names) tool.command.push_back("{{" + name + "}}");
  return tool;
}

class ToolCallTest : public ToolTest {
 protected:
  /// Opens a runner with these tools, calls `then`, and closes it.
  void with_tools(std::vector<domain::Tool> tools, std::function<Task<>(ToolRunner&)> then) {
    ToolRunner::Options options;
    options.tools = std::move(tools);
    options.run = mark_;
    options.timeout = timeout_;
    options.grace = 100ms;
    options.backoff = 10ms;
    options.output_bytes_max = output_max_;
    options.effects_unknown = [this]() -> Task<Result<>> {
      marks_ += "unknown ";
      if (mark_fails_) co_return fail(Errc::conflict, "the run has another owner");
      co_return {};
    };
    options.effects_known = [this]() -> Task<Result<>> {
      marks_ += "known ";
      co_return {};
    };
    marks_.clear();
    ToolRunner runner({*wardens_, *client_, limit_}, std::move(options));
    play([&](Scope& scope) -> Task<> {
      scope.spawn(runner.run());
      const Result<> opened = co_await runner.open();
      EXPECT_TRUE(opened) << opened.error().what();
      co_await then(runner);
      runner.close();
    });
    expect_gone();
  }
  /// One call of one tool.
  ToolResult called(domain::Tool tool, std::string arguments = "{}") {
    ToolResult out;
    std::string name = tool.name;
    with_tools({std::move(tool)},
               [&](ToolRunner& runner) -> Task<> { out = co_await runner.call(name, "call-1", arguments); });
    return out;
  }
  [[nodiscard]] std::size_t runs() const {
    const std::string text = logged();
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }

  Semaphore limit_{"tools", kToolsAtOnce};
  std::string marks_;
  bool mark_fails_ = false;
  Duration timeout_ = 20s;
  std::size_t output_max_ = 64 << 10;
};

TEST_F(ToolCallTest, a_command_gets_words_stdin_and_the_call_id) {
  domain::Tool tool = shell_tool(ToolClass::read, "cat; printf '%s|' \"$@\" $STINT_CALL_ID", {"a", "b"});
  const ToolResult result = called(tool, R"~({"a": "x y; $(id)", "b": 2})~");
  EXPECT_EQ(result.state, State::done);
  EXPECT_FALSE(result.is_error);
  EXPECT_EQ(result.text, "{\"a\":\"x y; $(id)\",\"b\":2}\nx y; $(id)|2|call-1|");
  EXPECT_EQ(marks_, "");
}

TEST_F(ToolCallTest, an_exit_status_is_an_answer_with_the_end_of_stderr) {
  const ToolResult result = called(shell_tool(ToolClass::once, "echo out; echo why >&2; exit 3"));
  EXPECT_EQ(result.state, State::done);
  EXPECT_TRUE(result.is_error);
  EXPECT_EQ(result.text, "out\n\n[exit status 3]\nwhy\n");
  EXPECT_EQ(marks_, "unknown known ");
}

TEST_F(ToolCallTest, an_invalid_call_is_answered_and_not_run) {
  domain::Tool tool = shell_tool(ToolClass::once, "echo ran >>" + log_file());
  tool.input = R"({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})";
  for (const char* const arguments : {"{}", R"({"n": "x"})", "[]", "{"}) {
    const ToolResult result = called(tool, arguments);
    EXPECT_EQ(result.state, State::not_started) << arguments;
    EXPECT_TRUE(result.is_error);
  }
  EXPECT_EQ(called(tool).text, "the arguments do not fit the tool's schema; it was not run:\nproperty 'n' is missing");
  EXPECT_EQ(marks_ + logged(), "");
  with_tools({tool}, [](ToolRunner& runner) -> Task<> {
    const ToolResult result = co_await runner.call("other", "1", "{}");
    EXPECT_EQ(result.text, "there is no tool 'other'");
  });
}

TEST_F(ToolCallTest, once_is_never_repeated_and_unknown_after_a_death) {
  const ToolResult result = called(shell_tool(ToolClass::once, "echo ran >>" + log_file() + "; kill -9 $$"));
  EXPECT_EQ(result.state, State::unknown);
  EXPECT_EQ(result.text, "the tool was ended by signal 9; whether it took effect is unknown, and it is not repeated");
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(marks_, "unknown ");
}

TEST_F(ToolCallTest, other_classes_are_repeated_with_the_same_call_id) {
  for (const ToolClass tool_class : {ToolClass::read, ToolClass::idempotent, ToolClass::keyed}) {
    std::filesystem::remove(log_file());
    const std::string log = log_file();
    const ToolResult result = called(shell_tool(tool_class, "echo $STINT_CALL_ID >>" + log + "; [ $(wc -l <" + log +
                                                                ") -gt 2 ] && echo at last || kill -9 $$"));
    EXPECT_EQ(result.state, State::done);
    EXPECT_EQ(result.text, "at last\n");
    EXPECT_EQ(logged(), "call-1\ncall-1\ncall-1\n");
  }
  const ToolResult failed = called(shell_tool(ToolClass::read, "kill -9 $$"));
  EXPECT_EQ(failed.state, State::failed);
  EXPECT_EQ(failed.text, "the tool was ended by signal 9, after 3 tries");
}

TEST_F(ToolCallTest, a_time_limit_ends_the_processes) {
  timeout_ = 300ms;
  const std::string script =
      "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60' & echo ran >>" + log_file() + "; sleep 60";
  EXPECT_EQ(called(shell_tool(ToolClass::once, script)).state, State::unknown);
  EXPECT_EQ(marks_, "unknown ");
  EXPECT_EQ(called(shell_tool(ToolClass::idempotent, script)).state, State::failed);
  EXPECT_EQ(runs(), 2U);
  domain::Tool own = shell_tool(ToolClass::read, "sleep 60");
  own.timeout = 100ms;
  timeout_ = 60s;
  EXPECT_EQ(called(own).state, State::failed);
}

TEST_F(ToolCallTest, a_stop_ends_the_processes_and_leaves_the_effects_unknown) {
  with_tools({shell_tool(ToolClass::once, "trap '' TERM; echo ran >>" + log_file() + "; sleep 60 & wait; sleep 60")},
             [&](ToolRunner& runner) -> Task<> {
               auto call = [&]() -> Task<> { (void)co_await runner.call("t", "1", "{}"); };
               auto wait = [&]() -> Task<> { co_await until_logged("ran"); };
               co_await race(call(), wait());
               EXPECT_EQ(living(), 0U);
             });
  EXPECT_EQ(marks_, "unknown ");
  EXPECT_EQ(limit_.available(), kToolsAtOnce);
}

TEST_F(ToolCallTest, without_a_mark_in_the_store_a_once_tool_is_not_run) {
  mark_fails_ = true;
  const ToolResult result = called(shell_tool(ToolClass::once, "echo ran >>" + log_file()));
  EXPECT_EQ(result.state, State::not_started);
  EXPECT_EQ(result.text, "not run: the run has another owner");
  EXPECT_EQ(logged(), "");
}

TEST_F(ToolCallTest, a_program_that_does_not_exist_was_not_started) {
  domain::Tool tool;
  tool.name = "t";
  tool.command = {"/nonexistent/tool"};
  EXPECT_EQ(called(tool).state, State::not_started);
  EXPECT_EQ(marks_, "unknown known ");
}

TEST_F(ToolCallTest, output_is_bounded_by_its_beginning_and_end) {
  output_max_ = 100;
  const ToolResult result = called(shell_tool(ToolClass::read, "yes | head -c 100000; echo end"));
  EXPECT_NE(result.text.find("\n[99904 bytes left out]\n"), std::string::npos) << result.text;
  EXPECT_TRUE(result.text.ends_with("end\n"));
}

TEST_F(ToolCallTest, no_more_calls_at_once_than_permits) {
  Semaphore two("two", 2);
  ToolRunner runner(
      {*wardens_, *client_, two},
      {.tools = {shell_tool(ToolClass::read, "mkdir " + folder_.string() + "/$STINT_CALL_ID; sleep 0.1; ls " +
                                                 folder_.string() + " | wc -l; rmdir " + folder_.string() +
                                                 "/$STINT_CALL_ID")},
       .run = mark_});
  play([&](Scope& scope) -> Task<> {
    EXPECT_TRUE(co_await runner.open());
    for (int i = 0; i < 6; ++i) {
      scope.spawn([&runner, i]() -> Task<> {
        const ToolResult result = co_await runner.call("t", "c" + std::to_string(i), "{}");
        EXPECT_TRUE(result.text == "1\n" || result.text == "2\n") << result.text;
      });
    }
  });
}

TEST_F(ToolCallTest, mcp_tools_have_the_class_of_a_trusted_servers_annotations) {
  domain::Tool server;
  server.name = "far";
  server.mcp = domain::McpServer{.command = server_argv({"stdio", log_option()}), .trusted = true};
  with_tools({server}, [&](ToolRunner& runner) -> Task<> {
    EXPECT_EQ(runner.offers().size(), 9U);
    EXPECT_EQ(runner.offers().front().name, "far__echo");
    EXPECT_EQ(runner.offers().front().tool_class, ToolClass::read);
    ToolResult result = co_await runner.call("far__echo", "1", R"({"text": "hi"})");
    EXPECT_EQ(result.text, "echo: hi");
    EXPECT_EQ(marks_, "");
    result = co_await runner.call("far__fail", "1", "{}");
    EXPECT_TRUE(result.is_error && result.state == State::done);
    result = co_await runner.call("far__echo", "1", R"({"text": 1})");
    EXPECT_EQ(result.state, State::not_started);
    result = co_await runner.call("far__die", "2", "{}");
    EXPECT_EQ(result.state, State::unknown);
    result = co_await runner.call("far__once", "3", "{}");
    EXPECT_EQ(result.state, State::not_started);
  });
  EXPECT_EQ(marks_, "unknown known unknown unknown known ");
  server.mcp->trusted = false;
  with_tools({server}, [&](ToolRunner& runner) -> Task<> {
    EXPECT_EQ(runner.offers().front().tool_class, ToolClass::once);
    co_return;
  });
}

TEST_F(ToolCallTest, http_tools_send_the_key_and_repeat_as_their_class_allows) {
  std::string port;
  Notification told;
  ToolProcess process(*wardens_, server({"http", log_option()}), [&](std::string_view bytes) {
    port += bytes;
    told.notify();
  });
  play([&](Scope& scope) -> Task<> {
    auto served = [&]() -> Task<> { (void)co_await process.run(); };
    scope.spawn(served());
    while (!port.ends_with('\n')) co_await told.wait(told.count());
    port.pop_back();
    domain::Tool tool;
    tool.name = "t";
    tool.http = domain::HttpTool{.url = "http://127.0.0.1:" + port + "/tool", .headers = {{"X-Mode", "{{mode}}", ""}}};
    struct HttpCase {
      ToolClass tool_class;
      const char* mode;
      State state;
      std::size_t requests;
    };
    for (const HttpCase& one :
         {HttpCase{ToolClass::once, "fine", State::done, 1}, HttpCase{ToolClass::keyed, "fine", State::done, 1},
          HttpCase{ToolClass::once, "broken", State::unknown, 1},
          HttpCase{ToolClass::keyed, "broken", State::failed, 3}, HttpCase{ToolClass::once, "bad", State::done, 1}}) {
      tool.tool_class = one.tool_class;
      std::filesystem::remove(log_file());
      ToolRunner runner({*wardens_, *client_, limit_}, {.tools = {tool}, .run = mark_, .backoff = 1ms});
      EXPECT_TRUE(co_await runner.open());
      const ToolResult result = co_await runner.call("t", "key-1", R"({"mode": ")" + std::string(one.mode) + "\"}");
      EXPECT_EQ(result.state, one.state) << one.mode;
      EXPECT_EQ(runs(), one.requests) << logged();
      const std::string key = one.tool_class == ToolClass::once ? "None" : "key-1";
      EXPECT_TRUE(logged().starts_with("tool " + key + " " + one.mode)) << logged();
    }
    process.end(SIGKILL);
  });
}

}  // namespace
}  // namespace stint::driver
