#include "driver/mcp_core.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace stint::driver {
namespace {

using Phase = McpSession::Phase;

json::object sent(const std::string& text) { return json::parse(text).as_object(); }

/// A session and the ids of what it sent.
struct OpenSession {
  McpSession session;

  explicit OpenSession(std::string_view tools = R"([{"name": "add", "inputSchema": {"type": "object"}}])") {
    (void)session.open();
    const auto opened = session.take(
        R"({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s"}}})");
    EXPECT_EQ(opened.replies.size(), 2U);
    (void)session.take(R"({"jsonrpc":"2.0","id":2,"result":{"tools":)" + std::string(tools) + "}}");
  }
};

TEST(McpSession, opens_with_the_newest_revision_and_takes_the_servers) {
  McpSession session;
  const json::object open = sent(session.open());
  EXPECT_EQ(open.at("method"), "initialize");
  EXPECT_EQ(open.at("params").at("protocolVersion"), "2025-11-25");
  EXPECT_EQ(open.at("jsonrpc"), "2.0");
  const auto opened =
      session.take(R"({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}})");
  ASSERT_EQ(opened.replies.size(), 2U);
  EXPECT_EQ(opened.replies[0], R"({"method":"notifications/initialized","jsonrpc":"2.0"})");
  EXPECT_EQ(sent(opened.replies[1]).at("method"), "tools/list");
  EXPECT_EQ(session.phase(), Phase::listing);
  EXPECT_EQ(session.revision(), "2024-11-05");
}

TEST(McpSession, fails_if_there_is_no_common_revision_or_the_server_refuses) {
  McpSession other;
  (void)other.open();
  (void)other.take(R"({"id":1,"result":{"protocolVersion":"1999-01-01","capabilities":{}}})");
  ASSERT_EQ(other.phase(), Phase::failed);
  EXPECT_EQ(other.error()->what(),
            "MCP server: wants revision '1999-01-01' of the protocol; known: 2024-11-05 to 2025-11-25");
  McpSession refused;
  (void)refused.open();
  (void)refused.take(R"({"id":1,"error":{"code":-32602,"message":"no"}})");
  EXPECT_EQ(refused.error()->what(), "MCP server: refused the session: no (-32602)");
  EXPECT_FALSE(refused.call("add", {}));
}

TEST(McpSession, a_server_without_tools_is_ready_at_once) {
  McpSession session;
  (void)session.open();
  const auto opened = session.take(R"({"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}})");
  EXPECT_EQ(opened.replies.size(), 1U);
  EXPECT_EQ(session.phase(), Phase::ready);
  EXPECT_TRUE(session.tools().empty());
}

TEST(McpSession, lists_tools_page_by_page) {
  McpSession session;
  (void)session.open();
  (void)session.take(R"({"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}})");
  const auto first = session.take(R"({"id":2,"result":{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"p2"}})");
  ASSERT_EQ(first.replies.size(), 1U);
  EXPECT_EQ(sent(first.replies[0]).at("params"), json::value({{"cursor", "p2"}}));
  EXPECT_EQ(session.phase(), Phase::listing);
  (void)session.take(R"({"id":3,"result":{"tools":[{"name":"b","description":"B","inputSchema":{"type":"object"},
    "annotations":{"readOnlyHint":true}}]}})");
  EXPECT_EQ(session.phase(), Phase::ready);
  ASSERT_EQ(session.tools().size(), 2U);
  EXPECT_EQ(session.tools()[1].description, "B");
  EXPECT_TRUE(session.tools()[1].read_only);
}

TEST(McpSession, listing_ends_even_if_the_server_does_not_end_it) {
  McpSession same;
  (void)same.open();
  (void)same.take(R"({"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}})");
  (void)same.take(R"({"id":2,"result":{"tools":[],"nextCursor":"x"}})");
  (void)same.take(R"({"id":3,"result":{"tools":[],"nextCursor":"x"}})");
  EXPECT_EQ(same.phase(), Phase::failed);
  McpSession endless;
  (void)endless.open();
  (void)endless.take(R"({"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}})");
  for (int id = 2; id < 200 && endless.phase() == Phase::listing; ++id) {
    const std::string n = std::to_string(id);
    (void)endless.take(R"({"id":)" + n + R"(,"result":{"tools":[],"nextCursor":")" + n + R"("}})");
  }
  EXPECT_EQ(endless.error()->what(), "MCP server: more than 50 pages of tools");
}

TEST(McpSession, tools_that_can_not_be_used_are_left_out) {
  std::string many = "[";
  for (int i = 0; i < 600; ++i) many += R"({"name":"t)" + std::to_string(i) + R"(","inputSchema":{}},)";
  const OpenSession crowd(many + "1]");
  EXPECT_EQ(crowd.session.tools().size(), McpSession::kToolsMax);
  EXPECT_EQ(crowd.session.ignored(), 101U);
  EXPECT_LE(crowd.session.notes().size(), McpSession::kNotesMax);
  const OpenSession odd(R"([{"name":"a b","inputSchema":{}}, {"name":"ok"}, {"inputSchema":{}}, 3,
    {"name":"x","inputSchema":{}}, {"name":"x","inputSchema":{}}, {"name":"big","inputSchema":{"description":")" +
                        std::string(70'000, 'x') + R"("}}])");
  ASSERT_EQ(odd.session.tools().size(), 1U);
  EXPECT_EQ(odd.session.tools()[0].name, "x");
}

TEST(McpSession, annotations_decide_the_class_of_a_trusted_servers_tools_only) {
  using domain::ToolClass;
  const OpenSession open(R"([{"name":"r","inputSchema":{},"annotations":{"readOnlyHint":true}},
    {"name":"i","inputSchema":{},"annotations":{"idempotentHint":true,"destructiveHint":true}},
    {"name":"n","inputSchema":{}}, {"name":"both","inputSchema":{},"annotations":{"readOnlyHint":true,"destructiveHint":true}},
    {"name":"word","inputSchema":{},"annotations":{"readOnlyHint":"true"}}])");
  std::vector<ToolClass> trusted;
  for (const McpTool& tool : open.session.tools()) {
    trusted.push_back(mcp_class(tool, true));
    EXPECT_EQ(mcp_class(tool, false), ToolClass::once);
  }
  EXPECT_EQ(trusted,
            (std::vector{ToolClass::read, ToolClass::idempotent, ToolClass::once, ToolClass::once, ToolClass::once}));
}

TEST(McpSession, answers_belong_to_the_calls_that_wait_for_them_once) {
  OpenSession open;
  McpSession& session = open.session;
  const auto one = session.call("add", {{"a", 1}}).value();
  const auto two = session.call("add", {{"a", 2}}).value();
  EXPECT_EQ(sent(one.text).at("params").at("arguments"), json::value({{"a", 1}}));
  const std::string answer =
      R"({"id":)" + std::to_string(two.id) + R"(,"result":{"content":[{"type":"text","text":"3"}]}})";
  const auto received = session.take(answer);
  ASSERT_EQ(received.answers.size(), 1U);
  EXPECT_EQ(received.answers[0].call, two.id);
  EXPECT_EQ(received.answers[0].text, "3");
  EXPECT_TRUE(session.take(answer).answers.empty());
  EXPECT_TRUE(session.take(R"({"id":99,"result":{"content":[]}})").answers.empty());
  EXPECT_EQ(session.ignored(), 2U);
  const json::object cancel = sent(session.cancel(one.id, "too late"));
  EXPECT_EQ(cancel.at("method"), "notifications/cancelled");
  EXPECT_EQ(cancel.at("params"), json::value({{"requestId", one.id}, {"reason", "too late"}}));
  EXPECT_TRUE(session.take(R"({"id":)" + std::to_string(one.id) + R"(,"result":{}})").answers.empty());
}

TEST(McpSession, content_other_than_text_is_described) {
  OpenSession open;
  const auto call = open.session.call("add", {}).value();
  const auto received =
      open.session.take(R"({"id":)" + std::to_string(call.id) + R"(,"result":{"isError":true,"content":[
    {"type":"text","text":"one"}, {"type":"image","mimeType":"image/png","data":"AAAAAAAA"},
    {"type":"resource","resource":{"uri":"file:///a","text":"inside"}},
    {"type":"resource","resource":{"uri":"file:///b","mimeType":"x/y","blob":"AAAA"}},
    {"type":"resource_link","uri":"file:///c","name":"c"}, {"type":"hologram"}, 5]}})");
  ASSERT_EQ(received.answers.size(), 1U);
  EXPECT_TRUE(received.answers[0].is_error);
  EXPECT_EQ(received.answers[0].text,
            "one\n[image image/png, 6 bytes]\n[resource file:///a]\ninside\n[resource file:///b x/y, 3 bytes]\n"
            "[resource c file:///c]\n[content of the unknown type 'hologram']");
}

TEST(McpSession, structured_content_is_kept_and_stands_for_missing_text) {
  OpenSession open;
  const auto call = open.session.call("add", {}).value();
  const auto received =
      open.session.take(R"({"id":)" + std::to_string(call.id) + R"(,"result":{"structuredContent":{"sum":3}}})");
  ASSERT_EQ(received.answers.size(), 1U);
  EXPECT_EQ(received.answers[0].structured, json::value({{"sum", 3}}));
  EXPECT_EQ(received.answers[0].text, R"({"sum":3})");
}

TEST(McpSession, an_error_that_precedes_the_tool_is_a_refusal) {
  for (const auto& [code, refusal] :
       {std::pair(-32602, true), std::pair(-32601, true), std::pair(-32603, false), std::pair(1, false)}) {
    OpenSession open;
    const auto call = open.session.call("add", {}).value();
    const auto received = open.session.take(R"({"id":)" + std::to_string(call.id) + R"(,"error":{"code":)" +
                                            std::to_string(code) + R"(,"message":"m"}})");
    ASSERT_EQ(received.answers.size(), 1U);
    EXPECT_TRUE(received.answers[0].is_error);
    EXPECT_EQ(received.answers[0].is_refusal, refusal) << code;
  }
}

TEST(McpSession, answers_pings_and_refuses_every_other_request) {
  OpenSession open;
  const auto ping = open.session.take(R"({"jsonrpc":"2.0","id":"p","method":"ping"})");
  EXPECT_EQ(ping.replies, std::vector<std::string>{R"({"id":"p","result":{},"jsonrpc":"2.0"})"});
  for (const char* const method : {"sampling/createMessage", "elicitation/create", "roots/list", "anything"}) {
    const auto refused = open.session.take(R"({"id":7,"method":")" + std::string(method) + R"(","params":{}})");
    ASSERT_EQ(refused.replies.size(), 1U);
    EXPECT_EQ(sent(refused.replies[0]).at("error").at("code"), -32601);
  }
  EXPECT_TRUE(open.session.take(R"({"id":{},"method":"ping"})").replies.empty());
}

TEST(McpSession, notifications_are_taken_up) {
  OpenSession open;
  const auto call = open.session.call("add", {}).value();
  const std::string token = std::to_string(call.id);
  EXPECT_EQ(
      open.session.take(R"({"method":"notifications/progress","params":{"progressToken":)" + token + "}}").progress,
      std::vector<std::int64_t>{call.id});
  EXPECT_TRUE(
      open.session.take(R"({"method":"notifications/progress","params":{"progressToken":77}})").progress.empty());
  (void)open.session.take(R"({"method":"notifications/message","params":{"level":"info","data":"warm"}})");
  EXPECT_EQ(open.session.notes().back(), "log: warm");
  EXPECT_FALSE(open.session.tools_changed());
  (void)open.session.take(R"({"method":"notifications/tools/list_changed"})");
  EXPECT_TRUE(open.session.tools_changed());
  const std::string id = std::to_string(sent(open.session.list_again()).at("id").as_int64());
  EXPECT_EQ(open.session.phase(), Phase::ready);
  (void)open.session.take(R"({"id":)" + id + R"(,"result":{"tools":[]}})");
  EXPECT_TRUE(open.session.tools().empty());
}

TEST(McpSession, garbage_is_counted_and_a_flood_ends_the_session) {
  OpenSession open;
  for (const char* const text : {"hello", "1", "[1]", "{}", R"({"id":1})", R"({"method":3})",
                                 "{\"id\":", R"({"id":5,"result":{},"error":{}})", R"({"id":1.0,"result":{}})"}) {
    const auto received = open.session.take(text);
    EXPECT_TRUE(received.replies.empty() && received.answers.empty()) << text;
  }
  EXPECT_EQ(open.session.ignored(), 9U);
  EXPECT_EQ(open.session.take(R"([{"id":1,"method":"ping"},{"id":2,"method":"ping"}])").replies.size(), 2U);
  EXPECT_EQ(open.session.take("  \r\n").replies.size(), 0U);
  (void)open.session.take(std::string(McpSession::kMessageBytesMax + 1, ' '));
  EXPECT_EQ(open.session.phase(), Phase::failed);
  EXPECT_TRUE(open.session.take(R"({"id":1,"method":"ping"})").replies.empty());
}

TEST(McpSession, calls_under_way_are_bounded) {
  OpenSession open;
  for (std::size_t i = 0; i < McpSession::kCallsMax; ++i) EXPECT_TRUE(open.session.call("add", {}));
  const auto failed = open.session.call("add", {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::full);
}

}  // namespace
}  // namespace stint::driver
