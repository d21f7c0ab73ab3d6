#include "model/message_codec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::model {
namespace {

void expect_refused(std::string_view text, std::string_view part) {
  const Result<Message> message = read_message(text);
  ASSERT_FALSE(message) << text;
  EXPECT_EQ(message.error().code(), Errc::invalid);
  EXPECT_NE(message.error().describe().find(part), std::string::npos) << message.error().describe();
}

TEST(MessageCodec, what_was_stored_is_read_again) {
  const Message message{.role = Role::assistant,
                        .content = {TextBlock{"Grüße\n\"all\""},
                                    OpaqueBlock{.dialect = Dialect::gemini, .json = R"({"thoughtSignature":"x"})"},
                                    ToolCall{.id = "call_1", .name = "read", .arguments = R"({ "path": 1e2 })"},
                                    ToolResult{.call = "call_0", .content = std::string("a\0b", 3), .is_error = true}}};
  EXPECT_EQ(read_message(to_json(message)).value(), message);
  EXPECT_EQ(read_message(to_json(Message())).value(), Message());
}

TEST(MessageCodec, the_form_in_the_store_does_not_change) {
  EXPECT_EQ(
      to_json({.role = Role::user, .content = {ToolResult{.call = "c", .content = "4", .is_error = false}}}),
      R"({"version":1,"role":"user","content":[{"type":"tool_result","call":"c","content":"4","is_error":false}]})");
}

TEST(MessageCodec, a_newer_version_is_refused_and_named) {
  expect_refused(R"({"version":2,"role":"user","content":[]})", "version: 2 is not known here");
  expect_refused(R"({"version":1,"role":"user","content":[],"mood":1})", "mood: unknown field");
  expect_refused(R"({"version":1,"role":"user","content":[{"type":"text","text":"a","cited":[]}]})", "cited");
  expect_refused(R"({"version":1,"role":"user","content":[{"type":"picture"}]})", "unknown block 'picture'");
  expect_refused(R"({"version":1,"role":"user","content":[{"type":"opaque","dialect":"next","json":"{}"}]})", "'next'");
}

TEST(MessageCodec, damage_is_refused) {
  expect_refused("", "not a JSON object");
  expect_refused("[]", "not a JSON object");
  expect_refused(R"({"role":"user","content":[]})", "version");
  expect_refused(R"({"version":1,"role":"system","content":[]})", "role");
  expect_refused(R"({"version":1,"role":"user","content":{}})", "content");
  expect_refused(R"({"version":1,"role":"user","content":[1]})", "block");
  expect_refused(R"({"version":1,"role":"user","content":[{"type":"text"}]})", "text: must be a string");
  expect_refused(R"({"version":1,"role":"user","content":[{"type":"tool_call","id":"","name":"","arguments":"[]"}]})",
                 "arguments");
  expect_refused(
      R"({"version":1,"role":"user","content":[{"type":"tool_result","call":"","content":"","is_error":0}]})",
      "is_error");
}

TEST(MessageCodec, bytes_that_are_not_text_are_replaced) {
  const Message message{.role = Role::user, .content = {TextBlock{"a\xFFz"}}};
  EXPECT_EQ(std::get<TextBlock>(read_message(to_json(message)).value().content.at(0)).text, "a\xEF\xBF\xBDz");
}

Block any_block(std::uint8_t kind, const std::string& a, const std::string& b) {
  switch (kind % 4) {
    case 0: return TextBlock{a};
    case 1: return ToolCall{.id = a, .name = b, .arguments = R"({"n":)" + std::to_string(a.size()) + "}"};
    case 2: return ToolResult{.call = a, .content = b, .is_error = kind > 100};
    default: return OpaqueBlock{.dialect = kDialects[kind / 4 % 4], .json = b};
  }
}

TEST(MessageCodecProperty, every_message_survives) {
  // Characters of one to four bytes, and those that JSON escapes.
  const auto text_of = [](const std::vector<std::uint8_t>& choices) {
    const std::vector<std::string> letters{"a", "\"", "\\", "\n", "\x01", "ß", "語", "😀", "{", " "};
    std::string text;
    for (const std::uint8_t choice : choices) text += letters[choice % letters.size()];
    return text;
  };
  using Choice = std::tuple<std::uint8_t, std::vector<std::uint8_t>, std::vector<std::uint8_t>>;
  EXPECT_TRUE(rc::check([&](bool is_user, const std::vector<Choice>& choices) {
    Message message{.role = is_user ? Role::user : Role::assistant, .content = {}};
    for (const auto& [kind, a, b] : choices) message.content.push_back(any_block(kind, text_of(a), text_of(b)));
    RC_ASSERT(read_message(to_json(message)).value() == message);
  }));
}

TEST(Conversation, calls_without_a_result_are_found) {
  const ToolCall one{.id = "1", .name = "a", .arguments = "{}"}, two{.id = "2", .name = "b", .arguments = "{}"};
  std::vector<Message> messages{{.role = Role::assistant, .content = {one, two}}};
  EXPECT_EQ(unanswered_calls(messages), (std::vector{one, two}));
  messages.push_back({.role = Role::user, .content = {ToolResult{.call = "1", .content = "", .is_error = false}}});
  EXPECT_EQ(unanswered_calls(messages), std::vector{two});
  messages.push_back({.role = Role::user, .content = {ToolResult{.call = "2", .content = "", .is_error = true}}});
  EXPECT_TRUE(unanswered_calls(messages).empty());
}

}  // namespace
}  // namespace stint::model
