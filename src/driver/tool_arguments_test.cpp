#include "driver/tool_arguments.hpp"

#include "agent/template.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::driver {
namespace {

using Words = std::vector<std::string>;

TEST(ToolArguments, are_a_json_object) {
  EXPECT_EQ(parse_arguments("").value(), json::object());
  EXPECT_EQ(parse_arguments(R"({"a": 1})").value().size(), 1U);
  for (const char* const text : {"[]", "1", "{", "null", R"({"a": 1} x)"}) EXPECT_FALSE(parse_arguments(text)) << text;
  EXPECT_FALSE(parse_arguments(std::string(kArgumentBytesMax + 1, ' ')));
  EXPECT_FALSE(parse_arguments(R"({"a":)" + std::string(1000, '[') + std::string(1000, ']') + "}"));
}

TEST(ToolArguments, values_of_every_type_become_words) {
  const json::object arguments =
      json::parse(R"({"t": "x y", "n": 1.5, "b": true, "l": ["a", 2], "o": {"k": []}, "z": null})").as_object();
  EXPECT_EQ(render_argv({"p", "{{t}}", "{{n}}", "{{b}}", "{{l}}", "{{o}}", "[{{z}}]", "{{#each l}}<{{this}}>{{/each}}"},
                        arguments)
                .value(),
            (Words{"p", "x y", "1.5", "true", "a, 2", R"({"k":[]})", "[]", "<a><2>"}));
  EXPECT_FALSE(render_argv({"p", "{{t}}"}, {{"t", json::string_view("a\0b", 3)}}));
  EXPECT_FALSE(render_argv({"p", "{{t}}"}, {{"t", std::string(kWordBytesMax, 'x')}}));
}

TEST(ToolArguments, an_address_keeps_its_shape) {
  EXPECT_EQ(render_url("https://h/a/{{x}}?q={{y}}", {{"x", "../b?c#d"}, {"y", "1&z=2 ä"}}).value(),
            "https://h/a/..%2Fb%3Fc%23d?q=1%26z%3D2%20%C3%A4");
  EXPECT_EQ(render_url("https://h/{{x}}", {{"x", json::array{"a", "b c"}}}).value(), "https://h/a,b%20c");
  EXPECT_FALSE(render_url("https://h/a/{{x}}/", {{"x", ".."}}));
  EXPECT_FALSE(render_url("https://h/a/.{{x}}", {{"x", "."}}));
  EXPECT_TRUE(render_url("https://h/a/../{{x}}", {{"x", "b"}}));
  EXPECT_EQ(render_header("v {{x}}", {{"x", "1"}}).value(), "v 1");
  EXPECT_FALSE(render_header("{{x}}", {{"x", "a\r\nEvil: 1"}}));
}

TEST(ToolArgumentsProperty, a_value_is_one_word_whatever_it_is) {
  EXPECT_TRUE(rc::check("copied byte for byte", [] {
    const auto value = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("{}#/ \"'\\$`;|&*?\n-abif")));
    const json::object arguments{{"x", value}, {"y", "{{x}}"}};
    const Words words = render_argv({"p", "{{x}}", "a{{x}}b", "{{y}}"}, arguments).value();
    RC_ASSERT(words == (Words{"p", value, "a" + value + "b", "{{x}}"}));
    const std::string url = render_url("https://h/a{{x}}/e", arguments).value();
    const std::string part = url.substr(10, url.size() - 12);
    RC_ASSERT(part.find_first_of("/?#&= \n\"'") == std::string::npos);
  }));
}

}  // namespace
}  // namespace stint::driver
