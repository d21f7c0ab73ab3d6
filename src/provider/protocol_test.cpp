#include "provider/protocol.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::provider {
namespace {

Ask read(Protocol protocol, std::string_view body, std::string_view target = "") {
  Result<Ask> ask = read_ask(protocol, target, body);
  EXPECT_TRUE(ask) << ask.error().what();
  return ask ? std::move(*ask) : Ask();
}

TEST(ProviderProtocol, the_prompt_is_the_last_user_message_and_turns_count_from_there) {
  const Ask ask = read(Protocol::messages, R"({"model": "m", "messages": [
      {"role": "user", "content": "old"},
      {"role": "assistant", "content": "yes"},
      {"role": "user", "content": [
        {"type": "text", "text": "<system-reminder>not this</system-reminder>"}, {"type": "text", "text": "new"},
        {"type": "text", "text": "more"}]},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "done"},
        {"type": "text", "text": "<system-reminder>nor this</system-reminder>"}]}]})");
  EXPECT_EQ(ask.prompt, "new\nmore");
  EXPECT_EQ(ask.turn, 1);
  EXPECT_FALSE(ask.stream);
}

TEST(ProviderProtocol, a_prompt_that_begins_with_a_tag_is_used_if_it_is_the_only_one) {
  const Ask ask =
      read(Protocol::chat, R"({"model": "m", "messages": [{"role": "user", "content": "<task>do it</task>"}]})");
  EXPECT_EQ(ask.prompt, "<task>do it</task>");
}

TEST(ProviderProtocol, several_items_in_a_row_are_one_turn_of_responses) {
  const Ask ask = read(Protocol::responses, R"({"model": "m", "stream": true, "input": [
      {"role": "user", "content": "go"},
      {"type": "reasoning", "summary": []},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "on it"}]},
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
      {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "1", "output": "x"},
      {"type": "function_call_output", "call_id": "2", "output": "y"}]})");
  EXPECT_EQ(ask.prompt, "go");
  EXPECT_EQ(ask.turn, 1);
  EXPECT_TRUE(ask.stream);
}

TEST(ProviderProtocol, gemini_names_its_model_and_method_in_the_path) {
  const std::string_view body = R"({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})";
  const Ask ask = read(Protocol::gemini, body, "/v1beta/models/g-pro:streamGenerateContent");
  EXPECT_EQ(ask.model, "g-pro");
  EXPECT_TRUE(ask.stream);
  EXPECT_FALSE(read(Protocol::gemini, body, "/v1beta/models/g-pro:generateContent").stream);
  EXPECT_FALSE(read_ask(Protocol::gemini, "/v1beta/nothing", body));
}

TEST(ProviderProtocol, each_protocol_bounds_its_answer_by_its_own_name) {
  struct Row {
    Protocol protocol;
    std::string_view before, after;
  };
  constexpr Row kRows[] = {
      {Protocol::messages, R"({"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": )", "}"},
      {Protocol::chat, R"({"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": )", "}"},
      {Protocol::chat, R"({"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": )",
       "}"},
      {Protocol::responses, R"({"model": "m", "input": "hi", "max_output_tokens": )", "}"},
      {Protocol::gemini, R"({"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"maxOutputTokens": )",
       "}}"},
  };
  for (const Row& row : kRows) {
    const auto with = [&row](std::string_view value) {
      return read_ask(row.protocol, "/v1beta/models/m:generateContent",
                      std::string(row.before) + std::string(value) + std::string(row.after));
    };
    EXPECT_EQ(with("7")->output_max, 7U) << row.before;
    EXPECT_EQ(with("null")->output_max, std::nullopt);
    EXPECT_EQ(with("99999999999999")->output_max, UINT32_MAX);
    for (const std::string_view bad : {"0", "-1", "1.5", "\"7\"", "[]"}) EXPECT_FALSE(with(bad)) << row.before << bad;
  }
}

TEST(ProviderProtocol, chat_sends_usage_only_if_asked) {
  const auto wants = [](std::string_view options) {
    return read(Protocol::chat,
                R"({"model": "m", "messages": [{"role": "user", "content": "hi"}])" + std::string(options) + "}")
        .wants_usage;
  };
  EXPECT_FALSE(wants(""));
  EXPECT_TRUE(wants(R"(, "stream_options": {"include_usage": true})"));
}

TEST(ProviderProtocol, schemas_may_nest_deep_but_not_without_end) {
  const auto nested = [](int depth) {
    return R"({"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": )" + std::string(depth, '[') +
           std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(read_ask(Protocol::messages, "", nested(60)));
  EXPECT_FALSE(read_ask(Protocol::messages, "", nested(100'000)));
}

TEST(ProviderProtocol, an_event_is_a_name_and_one_line_of_data) {
  EXPECT_EQ(sse("a", "{}"), "event: a\ndata: {}\n\n");
  EXPECT_EQ(sse("", "[DONE]"), "data: [DONE]\n\n");
  Ask ask;
  ask.model = "m";
  Block block;
  const std::string event = make_encoder(ask, 1)->piece(0, block, "two\nlines\r\n");
  EXPECT_NE(event.find(R"(two\nlines\r\n)"), std::string::npos) << "a line feed in the data would start a new field";
}

TEST(ProviderProtocol, any_body_is_read_or_refused) {
  constexpr std::string_view kPath = "/models/m:generateContent";
  EXPECT_TRUE(rc::check([kPath](const std::string& text) {
    for (const Protocol protocol : {Protocol::messages, Protocol::chat, Protocol::responses, Protocol::gemini}) {
      (void)read_ask(protocol, kPath, text);
      (void)read_ask(protocol, text, R"({"messages": [{"role": "user"}], "input": [{}], "contents": [{}]})");
    }
  }));
  for (const std::string_view part : {"1", "null", "[]", "{}", "\"x\"", "[1]", "[[]]", "[null]", R"([{"role": 1}])",
                                      R"([{"role": "user", "content": 1}])", R"([{"role": "user", "content": [1]}])",
                                      R"([{"role": "user", "parts": [1]}])"}) {
    const std::string body = R"({"model": "m", "messages": )" + std::string(part) + R"(, "input": )" +
                             std::string(part) + R"(, "contents": )" + std::string(part) + "}";
    for (const Protocol protocol : {Protocol::messages, Protocol::chat, Protocol::responses, Protocol::gemini}) {
      (void)read_ask(protocol, kPath, body);
    }
  }
}

}  // namespace
}  // namespace stint::provider
