// Bodies of requests: numbers reach a command exactly as written, and ambiguous requests are refused.
#include "wire/fleet.hpp"
#include "wire/fleet_read.hpp"
#include "wire/values.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace stint::wire {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

/// Any number that JSON's grammar allows, however large, small or oddly spelled.
rc::Gen<std::string> number_text() {
  const auto digits = rc::gen::container<std::string>(rc::gen::inRange('0', static_cast<char>('9' + 1)));
  const auto some_digits = rc::gen::map(digits, [](std::string text) { return text.empty() ? "0"s : text; });
  const auto whole = rc::gen::map(digits, [](const std::string& text) {
    const std::size_t first = text.find_first_not_of('0');
    return first == std::string::npos ? "0"s : text.substr(first);
  });
  const auto fraction =
      rc::gen::oneOf(rc::gen::just(""s), rc::gen::map(some_digits, [](const std::string& text) { return "." + text; }));
  const auto power = rc::gen::oneOf(
      rc::gen::just(""s),
      rc::gen::map(rc::gen::tuple(rc::gen::element("e"s, "E"s, "e+"s, "E-"s, "e-"s), rc::gen::inRange(0, 1'000'000)),
                   [](const auto& parts) { return std::get<0>(parts) + std::to_string(std::get<1>(parts)); }));
  return rc::gen::map(rc::gen::tuple(rc::gen::element(""s, "-"s), whole, fraction, power), [](const auto& parts) {
    return std::get<0>(parts) + std::get<1>(parts) + std::get<2>(parts) + std::get<3>(parts);
  });
}

RC_GTEST_PROP(RequestProperty, a_number_reaches_the_command_as_it_was_written, ()) {
  const std::string number = *number_text(), other = *number_text();
  const std::string args = R"({"x": )" + number + R"(,"xs":[)" + other + "," + number + "]}";
  const domain::ArgumentValues expected = {{"x", {number}}, {"xs", {other, number}}};
  const auto submitted = read_submit(R"({"agent":"a","args":)" + args + R"(,"priority":1})");
  RC_ASSERT(submitted.has_value());
  RC_ASSERT(submitted->submission.args == expected);
  RC_ASSERT(submitted->submission.priority == std::optional(1));
  const auto line = read_arguments(args);
  RC_ASSERT(line.has_value());
  RC_ASSERT(*line == expected);
}

RC_GTEST_PROP(RequestProperty, any_text_reaches_the_command_or_is_refused_by_name, ()) {
  const std::string text = *rc::gen::arbitrary<std::string>();
  json::object object{{"agent", "a"}};
  object["args"] = json::object{{"x", text_value(text)}};
  const auto read = read_submit(json::serialize(object));
  if (text.find('\0') == std::string::npos) {
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->submission.args.at("x").front() == std::string(text_value(text)));
  } else {
    RC_ASSERT(!read.has_value());
    RC_ASSERT(read.error().what().find("'x'") != std::string::npos);
  }
}

std::string refusal(const std::string& body) {
  const auto read = read_submit(body);
  return read ? std::string() : std::string(read.error().what());
}

TEST(FleetRequest, numbers_that_were_rewritten) {
  for (const char* const number : {"0.5", "100.0", "1e400", "-0", "1E2", "12345678901234567890123", "0.10"}) {
    const auto read = read_submit(R"({"agent":"a","args":{"x":)" + std::string(number) + "}}");
    ASSERT_TRUE(read) << number;
    EXPECT_EQ(read->submission.args.at("x").front(), number);
  }
}

TEST(FleetRequest, a_repeated_member_is_refused_at_any_depth) {
  EXPECT_NE(refusal(R"({"agent":"a","agent":"b"})").find("'agent' was sent twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"agent":"a","args":{"x":1,"y":2,"x":3}})").find("'x' was sent twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"agent":"a","args":{"x":1,"\u0078":3}})").find("'x' was sent twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"agent":"a","budget":{"tokens":1,"tokens":2}})").find("'tokens'"), std::string::npos);
  EXPECT_EQ(refusal(R"({"agent":"a","args":{"agent":1,"args":3}})"), "") << "the same name in another object";
}

TEST(FleetRequest, no_member_may_be_null_and_the_refusal_names_it) {
  for (const char* const name : {"agent", "args", "words", "prompt", "session", "parent", "priority", "budget",
                                 "deadline", "deadline_ms", "delay_ms", "driver", "model", "wait"}) {
    const std::string body = R"({"prompt":"p",")" + std::string(name) + R"(":null})";
    const std::string said = refusal(name == "prompt"s ? R"({"prompt":null})" : body);
    EXPECT_NE(said.find("'" + std::string(name) + "' is null"), std::string::npos) << name << ": " << said;
  }
  EXPECT_NE(refusal(R"({"agent":"a","budget":{"tokens":null}})").find("budget.tokens"), std::string::npos);
  EXPECT_NE(refusal(R"({"agent":"a","args":{"x":null}})").find("'x'"), std::string::npos);
  for (const char* const body : {R"({"workers":null})", R"({"min":null})", R"({"max":null,"workers":1})"}) {
    EXPECT_FALSE(read_scale(body)) << body;
  }
  EXPECT_FALSE(read_capacity(R"({"capacity":null})"));
  EXPECT_FALSE(read_drain(R"({"timeout_ms":null})"));
  EXPECT_FALSE(read_drain(R"({"hurry":null})"));
  EXPECT_FALSE(read_length(R"({"for_ms":null})", "for_ms"));
}

TEST(FleetRequest, a_whole_number_may_be_written_with_a_point) {
  const auto read = read_submit(R"({"agent":"a","priority":-3.0,"budget":{"attempts":2e0},"delay_ms":5.0e3})");
  ASSERT_TRUE(read) << read.error().describe();
  EXPECT_EQ(read->submission.priority, -3);
  EXPECT_EQ(read->submission.budget.attempts, 2);
  EXPECT_EQ(read->submission.delay, Duration(5s));
  EXPECT_EQ(*read_capacity(R"({"capacity":4.0})"), 4U);
  for (const char* const wrong : {"1.5", "1e400", "-1e400", "1e300", "9007199254740994.0", "\"1\"", "true"}) {
    EXPECT_FALSE(read_capacity(R"({"capacity":)" + std::string(wrong) + "}")) << wrong;
  }
}

TEST(FleetRequest, alternative_fields_can_not_be_combined) {
  EXPECT_NE(refusal(R"({"agent":"a","deadline":"2026-11-16T03:00:00Z","deadline_ms":1})").find("send one of them"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"agent":"a","deadline":""})").find("'deadline' must be a time"), std::string::npos);
  EXPECT_NE(refusal(R"({"agent":"a","args":{"x":1},"words":[]})").find("send one of them"), std::string::npos);
}

TEST(FleetRequest, malformed_json_is_refused_with_its_position) {
  EXPECT_NE(refusal(R"({"agent":"a"} x)").find("at byte 14"), std::string::npos) << refusal(R"({"agent":"a"} x)");
  for (const std::string& body : {""s, "{"s, "[]"s, "1"s, "{\"agent\":\"\xff\"}"s, R"({"agent":"\ud800"})"s,
                                  R"({"agent":01})"s, R"({agent:"a"})"s, "{\"agent\":\"a\0\"}"s}) {
    EXPECT_NE(refusal(body), "") << body;
  }
  EXPECT_NE(refusal(std::string(100, '[')).find("invalid JSON"), std::string::npos);
  EXPECT_NE(refusal(R"({"a\u0000":1})").find("NUL"), std::string::npos);
}

}  // namespace
}  // namespace stint::wire
