// The streams under tests/streams/model, and what each of them means.
#include "model/stream_test_support.hpp"

#include <rapidcheck.h>

namespace stint::model {
namespace {

Usage usage_of(std::int64_t fresh, std::int64_t read, std::int64_t write, std::int64_t out,
               std::int64_t reasoning = 0) {
  return {.fresh_in = fresh, .cache_read = read, .cache_write = write, .out = out, .reasoning = reasoning};
}
OpaqueBlock opaque_of(Dialect dialect, std::string json) { return {.dialect = dialect, .json = std::move(json)}; }
ToolCall call_of(std::string id, std::string name, std::string arguments) {
  return {.id = std::move(id), .name = std::move(name), .arguments = std::move(arguments)};
}
std::string joined(const std::vector<TextDelta>& deltas) {
  std::string text;
  for (const TextDelta& each : deltas) text += each.text + "|";
  return text;
}

TEST(AnswerReader, anthropic_thinking_text_and_two_calls) {
  const ReadAnswer answer = read_named("anthropic_tools");
  EXPECT_TRUE(answer.completed);
  EXPECT_EQ(answer.events.front(), StreamEvent(MessageStarted{.id = "msg_01", .model = "claude-test-1"}));
  EXPECT_EQ(answer.events.back(), StreamEvent(AnswerCompleted()));
  EXPECT_EQ(answer.usage, usage_of(12, 400, 30, 57, 20));
  EXPECT_EQ(answer.settled, answer.usage);
  EXPECT_EQ(answer.stopped, (Stopped{.reason = StopReason::tool_use, .verbatim = "tool_use"}));
  EXPECT_EQ(answer.ignored, 0U);
  const std::vector<Block> expected{
      opaque_of(Dialect::anthropic, R"({"type":"thinking","thinking":"Both files matter.","signature":"c2ln"})"),
      opaque_of(Dialect::anthropic, R"({"type":"redacted_thinking","data":"b3BhcXVl"})"),
      TextBlock{"Reading zwei Dateien – 両方."}, call_of("toolu_01", "read", R"({"path": "a.txt"})"),
      call_of("toolu_02", "now", "{}")};
  EXPECT_EQ(answer.message.content, expected);
  EXPECT_EQ(answer.all<CallBegun>().at(1), (CallBegun{.index = 1, .id = "toolu_02", .name = "now"}));
  EXPECT_EQ(answer.all<CallArguments>().size(), 2U);
  EXPECT_FALSE(answer.all<CallComplete>().at(0).malformed);
}

TEST(AnswerReader, chat_text_with_cached_input) {
  const ReadAnswer answer = read_named("chat_text");
  EXPECT_TRUE(answer.completed);
  EXPECT_EQ(answer.text, "Grüße, all.");
  EXPECT_EQ(joined(answer.all<TextDelta>()), "Grüße|, all.|");
  EXPECT_EQ(answer.usage, usage_of(30, 64, 6, 8)) << "cached tokens are a part of the prompt there";
  EXPECT_EQ(answer.stopped, (Stopped{.reason = StopReason::end_turn, .verbatim = "stop"}));
  EXPECT_EQ(answer.ignored, 0U);
}

TEST(AnswerReader, chat_calls_in_interleaved_pieces) {
  const ReadAnswer answer = read_named("chat_tools");
  EXPECT_TRUE(answer.completed);
  EXPECT_EQ(answer.message.content,
            (std::vector<Block>{call_of("call_a", "read", R"({"path": "a.txt"})"), call_of("call_b", "now", "{}")}));
  EXPECT_EQ(answer.all<ThinkingDelta>().at(0).text, "Look first.");
  EXPECT_EQ(answer.usage, usage_of(50, 0, 0, 30, 12));
}

TEST(AnswerReader, chat_calls_that_share_an_index_are_two) {
  const ReadAnswer answer = read_named("chat_same_index");
  EXPECT_EQ(answer.message.content, (std::vector<Block>{call_of("call_1", "read", R"({"path":"a"})"),
                                                        call_of("call_2", "read", R"({"path":"b"})")}));
  EXPECT_EQ(answer.stopped->reason, StopReason::tool_use) << "although it said stop";
}

TEST(AnswerReader, responses_reasoning_text_and_interleaved_calls) {
  const ReadAnswer answer = read_named("responses_tools");
  EXPECT_TRUE(answer.completed);
  EXPECT_EQ(answer.ignored, 0U);
  ASSERT_EQ(answer.message.content.size(), 4U);
  EXPECT_EQ(std::get<OpaqueBlock>(answer.message.content[0]).dialect, Dialect::responses);
  EXPECT_NE(std::get<OpaqueBlock>(answer.message.content[0]).json.find("ZW5jcnlwdGVk"), std::string::npos);
  EXPECT_EQ(answer.message.content[1], Block(TextBlock{"Reading both."}));
  EXPECT_EQ(answer.message.content[2], Block(call_of("call_a", "read", R"({"path":"a"})")));
  EXPECT_EQ(answer.message.content[3], Block(call_of("call_b", "read", R"({"path":"b"})")));
  EXPECT_EQ(answer.usage, usage_of(40, 150, 10, 40, 25));
  EXPECT_EQ(answer.stopped->reason, StopReason::tool_use);
}

/// Two items; `place` gives the fields that say where each stands.
std::string two_items(std::string_view place_of_first, std::string_view place_of_second) {
  const auto event = [](std::string_view type, std::string_view place, std::string_view rest) {
    return std::string("data: {\"type\":\"").append(type).append("\",").append(place).append(rest).append("}\n\n");
  };
  const auto added = [](std::string_view id) {
    return std::string(R"("item":{"type":"function_call","id":")")
        .append(id)
        .append(R"(","call_id":")")
        .append(id)
        .append(R"(","name":"n"})");
  };
  constexpr std::string_view kAdded = "response.output_item.added", kDelta = "response.function_call_arguments.delta";
  return event(kAdded, place_of_second, added("b")) + event(kAdded, place_of_first, added("a")) +
         event(kDelta, place_of_first, R"("item_id":"a","delta":"{\"x\":1}")") +
         event(kDelta, place_of_second, R"("item_id":"b","delta":"{\"x\":2}")") +
         "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
}

TEST(AnswerReader, responses_items_stand_where_their_index_says) {
  const ToolCall a = call_of("a", "n", R"({"x":1})"), b = call_of("b", "n", R"({"x":2})");
  const ReadAnswer indexed = read_answer(Dialect::responses, two_items(R"("output_index":0,)", R"("output_index":1,)"));
  EXPECT_EQ(indexed.message.content, (std::vector<Block>{a, b}));
  const ReadAnswer named = read_answer(Dialect::responses, two_items("", ""));
  EXPECT_EQ(named.message.content, (std::vector<Block>{b, a})) << "without an index, in the order of their beginning";
}

TEST(AnswerReader, gemini_calls_with_and_without_an_id) {
  const ReadAnswer answer = read_named("gemini_tools");
  EXPECT_TRUE(answer.completed);
  EXPECT_EQ(answer.message.content,
            (std::vector<Block>{
                TextBlock{"Reading both."}, opaque_of(Dialect::gemini, R"({"thoughtSignature":"c2lnMQ=="})"),
                call_of("stint-gen1-0", "read", R"({"path":"a"})"), call_of("fc7", "read", R"({"path":"b"})")}));
  EXPECT_EQ(answer.usage, usage_of(34, 60, 0, 23, 9)) << "thoughts are counted beside the candidates there";
  EXPECT_EQ(answer.stopped, (Stopped{.reason = StopReason::tool_use, .verbatim = "STOP"}));
  EXPECT_EQ(answer.all<ThinkingDelta>().size(), 1U);
}

TEST(AnswerReader, gemini_keeps_a_signature_at_the_end) {
  const ReadAnswer answer = read_named("gemini_text");
  EXPECT_EQ(answer.message.content,
            (std::vector<Block>{TextBlock{"Hello."},
                                opaque_of(Dialect::gemini, R"({"text":"","thoughtSignature":"c2lnMg=="})")}));
}

TEST(AnswerReader, a_body_without_its_terminator_is_a_failure) {
  for (const std::string_view name : {"anthropic_half", "chat_half", "responses_half", "gemini_half"}) {
    const ReadAnswer answer = read_named(name);
    EXPECT_FALSE(answer.completed) << name;
    ASSERT_TRUE(answer.failure) << name;
    EXPECT_EQ(answer.failure->kind, FailureKind::ambiguous) << name;
    EXPECT_TRUE(answer.failure->after_output) << name;
    EXPECT_EQ(answer.failure->error().retry(), Retry::never) << name;
    EXPECT_TRUE(answer.settled.estimated) << name;
    EXPECT_GT(answer.settled.out, 0) << name;
    EXPECT_FALSE(answer.message.content.empty()) << name;
  }
  for (const Dialect dialect : kDialects) {
    const ReadAnswer answer = read_answer(dialect, "");
    EXPECT_EQ(answer.failure->error().retry(), Retry::unknown) << to_string(dialect);
    EXPECT_EQ(answer.settled.fresh_in, 101) << "an estimate of 400 bytes";
  }
}

TEST(AnswerReader, every_cut_of_a_complete_stream_is_a_failure) {
  for (const std::string_view name : {"anthropic_tools", "chat_text", "responses_tools"}) {
    const std::string whole = model_stream(name);
    const std::size_t last = whole.rfind("data: ");
    const Dialect dialect = *parse_dialect(name.substr(0, name.find('_')));
    for (std::size_t size = 0; size < last; size += 7) {
      EXPECT_FALSE(read_answer(dialect, std::string_view(whole).substr(0, size)).completed) << name << " " << size;
    }
  }
}

TEST(AnswerReader, the_reasons_to_stop) {
  const std::vector<std::tuple<std::string_view, StopReason, std::string_view>> expected{
      {"anthropic_pause", StopReason::pause_turn, "pause_turn"},
      {"anthropic_refusal", StopReason::refusal, "refusal"},
      {"anthropic_cut_call", StopReason::max_tokens, "max_tokens"},
      {"chat_refusal", StopReason::refusal, "stop"},
      {"chat_filtered", StopReason::content_filter, "content_filter"},
      {"chat_unknown", StopReason::other, "bored"},
      {"responses_incomplete", StopReason::max_tokens, "max_output_tokens"},
      {"gemini_blocked", StopReason::content_filter, "PROHIBITED_CONTENT"},
      {"gemini_safety", StopReason::content_filter, "SAFETY"},
      {"gemini_malformed_call", StopReason::other, "MALFORMED_FUNCTION_CALL"}};
  for (const auto& [name, reason, verbatim] : expected) {
    const ReadAnswer answer = read_named(name);
    EXPECT_TRUE(answer.completed) << name;
    EXPECT_EQ(answer.stopped, (Stopped{.reason = reason, .verbatim = std::string(verbatim)})) << name;
  }
}

TEST(AnswerReader, blocks_of_tools_that_the_provider_runs_are_kept_word_for_word) {
  const ReadAnswer answer = read_named("anthropic_pause");
  ASSERT_EQ(answer.message.content.size(), 2U);
  EXPECT_EQ(std::get<OpaqueBlock>(answer.message.content[0]).json,
            R"({"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"stint"}})");
  EXPECT_NE(std::get<OpaqueBlock>(answer.message.content[1]).json.find("ZW5j"), std::string::npos);
  EXPECT_EQ(answer.ignored, 0U);
}

TEST(AnswerReader, malformed_arguments_are_a_condition_and_the_message_stays_valid) {
  const ReadAnswer answer = read_named("anthropic_cut_call");
  EXPECT_TRUE(answer.completed);
  const CallComplete complete = answer.all<CallComplete>().at(0);
  EXPECT_EQ(complete.malformed, R"({"path": "a.txt", "text": "a very lo)");
  EXPECT_EQ(complete.call, call_of("toolu_09", "write", "{}"));
  EXPECT_EQ(answer.message.content, std::vector<Block>{complete.call});
}

TEST(AnswerReader, arguments_must_be_one_object) {
  for (const std::string_view arguments : {"[1]", "1", "null", "{} {}", "{\\\"a\\\":", "\\\"{}\\\""}) {
    const std::string stream =
        R"(data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":")" +
        std::string(arguments) + "\"}}]}}]}\n\ndata: [DONE]\n\n";
    EXPECT_TRUE(read_answer(Dialect::chat, stream).all<CallComplete>().at(0).malformed) << arguments;
  }
}

TEST(AnswerReader, errors_inside_a_stream) {
  const ReadAnswer after = read_named("anthropic_overloaded");
  EXPECT_EQ(after.failure->kind, FailureKind::overload);
  EXPECT_TRUE(after.failure->after_output);
  EXPECT_EQ(after.failure->error().retry(), Retry::never) << "content was shown";
  const ReadAnswer before = read_named("anthropic_overloaded_first");
  EXPECT_EQ(before.failure->kind, FailureKind::overload);
  EXPECT_FALSE(before.failure->after_output) << "thinking is not output";
  EXPECT_EQ(before.failure->error().retry(), Retry::safe);
  EXPECT_EQ(read_named("chat_error").failure->kind, FailureKind::overload);
  const ReadAnswer limited = read_named("responses_failed");
  EXPECT_EQ(limited.failure->kind, FailureKind::retry);
  EXPECT_EQ(limited.failure->delay, std::chrono::milliseconds(11054));
  EXPECT_EQ(read_named("responses_error").failure->kind, FailureKind::spend_limit);
  EXPECT_EQ(read_named("gemini_error").failure->kind, FailureKind::overload);
}

TEST(AnswerReader, an_unreadable_event_fails_the_answer_unless_it_only_observes) {
  const ReadAnswer strict = read_named("chat_malformed");
  EXPECT_FALSE(strict.completed);
  EXPECT_EQ(strict.failure->kind, FailureKind::ambiguous);
  const ReadAnswer tolerant = read_named("chat_malformed", {.observes = true});
  EXPECT_TRUE(tolerant.completed);
  EXPECT_EQ(tolerant.ignored, 1U);
  EXPECT_TRUE(tolerant.text.empty()) << "nothing is kept";
}

TEST(AnswerReader, what_is_unknown_is_skipped_and_counted) {
  for (const std::string_view name : {"anthropic_unknown", "chat_unknown", "responses_unknown", "gemini_unknown"}) {
    const ReadAnswer answer = read_named(name);
    EXPECT_TRUE(answer.completed) << name;
    EXPECT_GT(answer.ignored, 0U) << name;
    EXPECT_FALSE(answer.text.empty()) << name;
  }
  EXPECT_EQ(read_named("anthropic_unknown").ignored, 4U);
}

TEST(AnswerReader, an_answer_by_the_output_tool_is_text) {
  const ReadAnswer answer = read_named("anthropic_output");
  EXPECT_EQ(answer.text, R"({"verdict":"good"})") << "without what was said before it";
  EXPECT_EQ(answer.stopped, (Stopped{.reason = StopReason::end_turn, .verbatim = "tool_use"}));
  EXPECT_TRUE(answer.all<CallBegun>().empty());
  EXPECT_EQ(answer.message.content, (std::vector<Block>{TextBlock{"Here it is."}, TextBlock{R"({"verdict":"good"})"}}));
}

TEST(AnswerReader, nothing_follows_the_last_event) {
  AnswerReader reader(Dialect::chat);
  (void)reader.feed(model_stream("chat_text"));
  EXPECT_TRUE(reader.completed());
  EXPECT_TRUE(reader.feed(model_stream("chat_tools")).empty());
  EXPECT_TRUE(reader.feed("data: {").empty());
  EXPECT_TRUE(reader.finish().empty());
}

TEST(AnswerReader, an_endless_answer_has_a_bound) {
  AnswerReader reader(Dialect::chat);
  const std::string chunk =
      R"(data: {"choices":[{"index":0,"delta":{"content":")" + std::string(1 << 20, 'x') + "\"}}]}\n\n";
  for (int i = 0; i < 40; ++i) (void)reader.feed(chunk);
  ASSERT_TRUE(reader.failure());
  EXPECT_LE(reader.answer_text().size(), AnswerBuilder::kAnswerBytesMax);
  AnswerReader many(Dialect::gemini);
  for (std::size_t i = 0; i <= AnswerBuilder::kPartsMax; ++i) {
    (void)many.feed("data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"a\"}}]}}]}\n\n");
  }
  EXPECT_TRUE(many.failure());
}

TEST(AnswerReaderProperty, any_cut_gives_the_same_answer) {
  for (const NamedStream& stream : named_streams()) {
    const std::string bytes = model_stream(stream.name);
    const ReadAnswer whole = read_answer(stream.dialect, bytes);
    EXPECT_EQ(read_in_pieces(stream.dialect, bytes, [](std::size_t) { return 1; }), whole) << stream.name;
    EXPECT_TRUE(rc::check([&](std::uint32_t seed) {
      const auto cut = [&seed](std::size_t) {
        seed = seed * 1664525 + 1013904223;
        return (seed >> 16) % 50;
      };
      RC_ASSERT(read_in_pieces(stream.dialect, bytes, cut) == whole);
    })) << stream.name;
  }
}

/// Streams with changed bytes, by every dialect: no crash, one last event, a message that can be sent back.
TEST(AnswerReaderProperty, changed_bytes) {
  EXPECT_TRUE(rc::check([](std::uint32_t seed) {
    const auto random = [&seed](std::size_t most) {
      seed = seed * 1664525 + 1013904223;
      return (seed >> 8) % most;
    };
    const NamedStream& stream = named_streams()[random(named_streams().size())];
    std::string bytes = model_stream(stream.name);
    for (std::size_t i = random(6); i > 0; --i) bytes[random(bytes.size())] = static_cast<char>(random(256));
    const Dialect dialect = random(4) == 0 ? kDialects[random(4)] : stream.dialect;
    const ReadAnswer answer = read_answer(dialect, bytes);
    RC_ASSERT(answer.completed != answer.failure.has_value());
    RC_ASSERT(answer.all<AnswerCompleted>().size() + answer.all<AnswerFailed>().size() == 1U);
    RC_ASSERT(answer.usage.fresh_in >= 0 && answer.usage.out >= answer.usage.reasoning);
    if (answer.failure) RC_ASSERT(answer.failure->message.size() <= Failure::kMessageMax);
    RC_ASSERT(read_in_pieces(dialect, bytes, [&](std::size_t) { return random(90); }) == answer);
  }));
}

}  // namespace
}  // namespace stint::model
