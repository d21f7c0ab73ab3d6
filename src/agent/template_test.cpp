#include "agent/template.hpp"

#include <gtest/gtest.h>

namespace stint::agent {
namespace {

using Values = domain::ArgumentValues;

std::string rendered(std::string_view text, const Values& values = {}) {
  const auto parsed = Template::parse(text);
  if (!parsed) return "error: " + parsed.error().message;
  return parsed->render(values).value();
}

TemplateError refused(std::string_view text) {
  const auto parsed = Template::parse(text);
  EXPECT_FALSE(parsed.has_value()) << text;
  return parsed ? TemplateError() : parsed.error();
}

TEST(Template, puts_values_in_place) {
  EXPECT_EQ(rendered("Review {{pr}} of {{ repo }}.", {{"pr", {"42"}}, {"repo", {"x/y"}}}), "Review 42 of x/y.");
  EXPECT_EQ(rendered("{{{pr}}}", {{"pr", {"<&>"}}}), "<&>");
  EXPECT_EQ(rendered(R"({"pr":{{pr}}})", {{"pr", {"1"}}}), R"({"pr":1})");
  EXPECT_EQ(rendered("[{{missing}}]"), "[]");
  EXPECT_EQ(rendered("{{xs}}", {{"xs", {"a", "b"}}}), "a, b");
}

TEST(Template, values_are_data_and_never_expanded_again) {
  const Values values{{"a", {"{{b}} \\{{ {{#if b}}"}}, {"b", {"secret"}}};
  EXPECT_EQ(rendered("{{a}}", values), "{{b}} \\{{ {{#if b}}");
  EXPECT_EQ(rendered("{{#each a}}{{this}}{{/each}}", values), "{{b}} \\{{ {{#if b}}");
}

TEST(Template, branches_on_whether_a_value_was_given) {
  const std::string_view text = "{{#if x}}yes {{x}}{{else}}no{{/if}}{{#unless x}}!{{/unless}}";
  EXPECT_EQ(rendered(text, {{"x", {"1"}}}), "yes 1");
  EXPECT_EQ(rendered(text), "no!");
  EXPECT_EQ(rendered(text, {{"x", {""}}}), "no!");
  EXPECT_EQ(rendered(text, {{"x", {"false"}}}), "yes false");  // a value is data, even this one
}

TEST(Template, repeats_for_each_value) {
  const std::string_view text = "{{#each xs}}<{{this}}{{#if y}}{{y}}{{/if}}>{{else}}none{{/each}}";
  EXPECT_EQ(rendered(text, {{"xs", {"a", "b"}}, {"y", {"!"}}}), "<a!><b!>");
  EXPECT_EQ(rendered(text, {{"xs", {"a"}}}), "<a>");
  EXPECT_EQ(rendered(text), "none");
  EXPECT_EQ(rendered("{{#each a}}{{#each b}}{{this}}{{/each}}{{this}} {{/each}}", {{"a", {"1", "2"}}, {"b", {"x"}}}),
            "x1 x2 ");
}

TEST(Template, a_tag_alone_on_its_line_leaves_no_line_behind) {
  EXPECT_EQ(rendered("a\n{{#if x}}\nb\n{{/if}}\nc\n", {{"x", {"1"}}}), "a\nb\nc\n");
  EXPECT_EQ(rendered("a\n  {{#if x}}  \nb\n  {{else}}\nd\n{{/if}}", {}), "a\nd\n");
  EXPECT_EQ(rendered("a {{#if x}}\nb{{/if}}\n", {{"x", {"1"}}}), "a \nb\n");
  EXPECT_EQ(rendered("a\n{{! a remark }}\nb"), "a\nb");
  EXPECT_EQ(rendered("a {{!-- with }} in it --}}b"), "a b");
  EXPECT_EQ(rendered("a\n{{x}}\nb", {{"x", {""}}}), "a\n\nb");  // a value keeps its line
}

TEST(Template, a_backslash_makes_it_literal) {
  EXPECT_EQ(rendered(R"(\{{x}} {{x}})", {{"x", {"1"}}}), "{{x}} 1");
  EXPECT_EQ(rendered(R"(\\{{x}})", {{"x", {"1"}}}), R"(\1)");
  EXPECT_EQ(rendered(R"(\\\{{x}})", {{"x", {"1"}}}), R"(\{{x}})");
  EXPECT_EQ(rendered(R"(a\b }} { {)"), R"(a\b }} { {)");
}

TEST(Template, errors_name_line_and_column) {
  const TemplateError open = refused("one\ntwo {{#if x}} three");
  EXPECT_EQ(open.line, 2);
  EXPECT_EQ(open.column, 5);
  EXPECT_EQ(open.message, "{{#if x}} is not closed");
  EXPECT_EQ(open.suggestion, "end it with {{/if}}");
  EXPECT_EQ(refused("{{#if x}}\n{{/each}}").line, 2);
  EXPECT_EQ(refused("{{#if x}}\n{{/each}}").message, "found {{/each}} where {{/if}} is expected");
  EXPECT_EQ(refused("{{#if x}}{{else}}{{else}}{{/if}}").message, "found {{else}} where {{/if}} is expected");
  EXPECT_EQ(refused("{{/if}}").message, "{{/if}} closes no block");
  EXPECT_EQ(refused("{{else}}").message, "{{else}} closes no block");
  EXPECT_EQ(refused("\n\n {{this}}").column, 2);
  EXPECT_EQ(refused("${{ secrets.KEY }}").suggestion, "write \\{{ for a literal {{");
  EXPECT_EQ(refused("a {{ b").message, "'{{' is not closed by '}}'");
  EXPECT_FALSE(Template::parse("{{}}"));
  EXPECT_FALSE(Template::parse("{{#if}}{{/if}}"));
  EXPECT_FALSE(Template::parse("{{#with x}}{{/with}}"));
  EXPECT_FALSE(Template::parse("{{~x~}}"));
}

TEST(Template, lists_the_names_it_uses) {
  const auto parsed = Template::parse("{{a}}\n {{#if b}}{{#each c}}{{this}}{{/each}}\n{{a}}{{/if}}");
  ASSERT_TRUE(parsed);
  std::string all;
  for (const Template::Name& name : parsed->names()) {
    all += name.name + "@" + std::to_string(name.line) + ":" + std::to_string(name.column) + " ";
  }
  EXPECT_EQ(all, "a@1:1 b@2:2 c@2:11 a@3:1 ");
}

TEST(Template, nesting_tags_and_output_are_bounded) {
  std::string deep, closing;
  for (int i = 0; i <= Template::kDepthMax; ++i) {
    deep += "{{#if x}}";
    closing += "{{/if}}";
  }
  EXPECT_NE(refused(deep + closing).message.find("nested blocks"), std::string::npos);
  EXPECT_TRUE(Template::parse(deep.substr(9) + closing.substr(7)));

  std::string many;
  for (std::size_t i = 0; i <= Template::kTagsMax; ++i) many += "{{x}}";
  EXPECT_NE(refused(many).message.find("tags"), std::string::npos);

  const Values values{{"x", std::vector<std::string>(1000, "0123456789")}};
  const auto large = Template::parse("{{#each x}}{{#each x}}{{this}}{{/each}}{{/each}}");
  ASSERT_TRUE(large);
  EXPECT_FALSE(large->render(values));
  // Nothing is written, but the loop would take forever.
  const Values empty{{"x", std::vector<std::string>(10'000, "")}};
  const auto idle = Template::parse("{{#each x}}{{#each x}}{{#each x}}{{this}}{{/each}}{{/each}}{{/each}}");
  ASSERT_TRUE(idle);
  EXPECT_FALSE(idle->render(empty));
}

}  // namespace
}  // namespace stint::agent
