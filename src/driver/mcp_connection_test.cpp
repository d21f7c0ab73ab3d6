// MCP sessions with a scripted server as a real process, over both transports.
#include "driver/tool_test_support.hpp"

namespace stint::driver {
namespace {

using namespace std::chrono_literals;

class McpConnectionTest : public ToolTest {
 protected:
  /// Opens a session with a server over stdio, calls `then` with it, and closes it.
  void with_stdio(const std::vector<std::string>& words, std::function<Task<>(McpConnection&, const Result<>&)> then,
                  Duration open_max = 20s) {
    std::vector<std::string> all{"stdio"};
    all.insert(all.end(), words.begin(), words.end());
    McpStdio connection(*wardens_, server(all));
    connection.set_open_max(open_max);
    play_connection(connection, std::move(then));
  }
  /// The same over HTTP.
  void with_http(const std::vector<std::string>& words, std::function<Task<>(McpConnection&, const Result<>&)> then) {
    std::vector<std::string> all{"http"};
    all.insert(all.end(), words.begin(), words.end());
    std::string port;
    Notification told;
    ToolProcess process(*wardens_, server(all), [&](std::string_view bytes) {
      port += bytes;
      told.notify();
    });
    play([&](Scope& scope) -> Task<> {
      auto served = [&]() -> Task<> { (void)co_await process.run(); };
      scope.spawn(served());
      while (!port.ends_with('\n')) co_await told.wait(told.count());
      port.pop_back();
      McpHttp connection(*client_, {.url = "http://127.0.0.1:" + port + "/mcp", .headers = {}});
      co_await both(connection, then);
      process.end(SIGKILL);
    });
  }

 private:
  static Task<> both(McpConnection& connection, std::function<Task<>(McpConnection&, const Result<>&)> then) {
    auto use = [&]() -> Task<> {
      const Result<> opened = co_await connection.opened();
      co_await then(connection, opened);
      connection.close();
    };
    co_await all(connection.run(), use());
  }
  void play_connection(McpConnection& connection, std::function<Task<>(McpConnection&, const Result<>&)> then) {
    play([&](Scope&) -> Task<> { co_await both(connection, then); });
  }
};

TEST_F(McpConnectionTest, calls_tools_over_stdio_and_leaves_no_process) {
  for (const char* const option : {"garbage", "pages", "children", "stubborn"}) {
    with_stdio({option}, [&](McpConnection& connection, const Result<>& opened) -> Task<> {
      EXPECT_TRUE(opened) << option << ": " << opened.error().what();
      EXPECT_EQ(connection.session().tools().size(), 9U);
      const auto answer = co_await connection.call("echo", {{"text", "hi"}}, "");
      EXPECT_TRUE(answer) << option;
      if (answer) EXPECT_EQ(answer->text, "echo: hi");
    });
    EXPECT_EQ(living(), 0U) << option;
  }
}

TEST_F(McpConnectionTest, a_server_that_never_answers_is_given_up_and_ended) {
  with_stdio(
      {"silent", "stubborn"},
      [](McpConnection&, const Result<>& opened) -> Task<> {
        EXPECT_EQ(opened.error(), Errc::timed_out);
        co_return;
      },
      300ms);
}

TEST_F(McpConnectionTest, a_server_that_does_not_start_is_reported) {
  McpStdio connection(*wardens_, {.command = {"/nonexistent/server"}, .run = mark_});
  play([&](Scope& scope) -> Task<> {
    scope.spawn(connection.run());
    const Result<> opened = co_await connection.opened();
    EXPECT_EQ(opened.error().retry(), Retry::safe);
    EXPECT_NE(opened.error().what().find("/nonexistent/server"), std::string::npos);
  });
}

TEST_F(McpConnectionTest, calls_are_answered_each_for_itself) {
  with_stdio({log_option()}, [&](McpConnection& connection, const Result<>&) -> Task<> {
    const auto answers = co_await all(connection.call("echo", {{"text", "1"}}, ""), connection.call("wrong", {}, ""),
                                      connection.call("fail", {}, ""), connection.call("ask", {}, ""));
    EXPECT_TRUE(answers);
    if (!answers) co_return;
    EXPECT_EQ(std::get<0>(*answers).text, "echo: 1");
    EXPECT_EQ(std::get<1>(*answers).text, "wrong: None");
    EXPECT_TRUE(std::get<2>(*answers).is_error);
    EXPECT_EQ(connection.session().ignored(), 1U);
    co_await until_logged("reply {\"code\": -32601");
  });
}

TEST_F(McpConnectionTest, a_server_that_dies_leaves_its_calls_unknown) {
  with_stdio({}, [](McpConnection& connection, const Result<>&) -> Task<> {
    const auto answer = co_await connection.call("die", {}, "");
    EXPECT_FALSE(answer);
    if (answer) co_return;
    EXPECT_EQ(answer.error().retry(), Retry::unknown);
    EXPECT_EQ(answer.error().what(), "MCP server: ended with exit status 7");
    const auto later = co_await connection.call("echo", {}, "");
    EXPECT_EQ(later.error().retry(), Retry::safe);
  });
}

TEST_F(McpConnectionTest, a_message_without_bound_ends_the_session) {
  with_stdio({}, [](McpConnection& connection, const Result<>&) -> Task<> {
    const auto answer = co_await connection.call("huge", {}, "");
    EXPECT_FALSE(answer);
    if (!answer) EXPECT_EQ(answer.error().what(), "MCP server: a message that is too long");
  });
}

TEST_F(McpConnectionTest, a_call_that_is_stopped_is_cancelled_at_the_server) {
  const auto body = [&](McpConnection& connection, const Result<>& opened) -> Task<> {
    EXPECT_TRUE(opened);
    auto slow = [&]() -> Task<> {
      const auto answer = co_await connection.call("slow", {}, "");
      ADD_FAILURE() << "answered" << answer.has_value();
    };
    auto wait = [&]() -> Task<> { co_await until_logged("run slow"); };
    co_await race(slow(), wait());
    co_await until_logged("notifications/cancelled");
    const auto answer = co_await connection.call("echo", {{"text", "still there"}}, "");
    EXPECT_TRUE(answer);
  };
  with_stdio({log_option()}, body);
  std::filesystem::remove(log_file());
  with_http({log_option()}, body);
}

TEST_F(McpConnectionTest, a_stop_in_any_phase_leaves_nothing) {
  for (const char* const until : {"initialize", "tools/list", "run slow"}) {
    std::filesystem::remove(log_file());
    const std::string silent = until == std::string_view("initialize") ? "silent" : "pages";
    McpStdio connection(*wardens_, server({"stdio", log_option(), silent, "children", "stubborn"}));
    play([&](Scope&) -> Task<> {
      auto use = [&]() -> Task<> {
        const Result<> opened = co_await connection.opened();
        if (opened) (void)co_await connection.call("slow", {}, "");
      };
      auto work = [&]() -> Task<> { co_await all(connection.run(), use()); };
      auto wait = [&]() -> Task<> { co_await until_logged(until); };
      co_await race(work(), wait());
    });
    EXPECT_EQ(living(), 0U) << until;
  }
}

TEST_F(McpConnectionTest, calls_tools_over_http_in_every_form) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"json"}, {"stateless"}, {"lingers"}, {"json", "pages"}, {"pages", "lingers"}}) {
    with_http(words, [&](McpConnection& connection, const Result<>& opened) -> Task<> {
      EXPECT_TRUE(opened) << opened.error().what();
      EXPECT_EQ(connection.session().tools().size(), 9U);
      const auto answer = co_await connection.call("echo", {{"text", "hi"}}, "");
      EXPECT_TRUE(answer);
      if (answer) EXPECT_EQ(answer->text, "echo: hi");
    });
  }
}

TEST_F(McpConnectionTest, an_http_session_is_ended_with_its_id) {
  with_http({log_option()}, [&](McpConnection&, const Result<>& opened) -> Task<> {
    EXPECT_TRUE(opened);
    co_return;
  });
  EXPECT_NE(logged().find("DELETE session-1"), std::string::npos) << logged();
}

TEST_F(McpConnectionTest, an_address_without_a_server_is_reported) {
  McpHttp connection(*client_, {.url = "http://127.0.0.1:1/mcp", .headers = {}});
  play([&](Scope& scope) -> Task<> {
    scope.spawn(connection.run());
    const Result<> opened = co_await connection.opened();
    EXPECT_EQ(opened.error(), Errc::unavailable);
  });
}

}  // namespace
}  // namespace stint::driver
