#include "driver/json_schema.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace stint::driver {
namespace {

JsonSchema compiled(std::string_view schema) {
  auto out = JsonSchema::parse(schema);
  EXPECT_TRUE(out) << schema << ": " << (out ? "" : out.error().what());
  return out ? *std::move(out) : JsonSchema();
}
std::string mismatches(std::string_view schema, std::string_view value) {
  const JsonSchema rule = compiled(schema);
  EXPECT_TRUE(rule.unsupported().empty()) << rule.unsupported().front();
  return describe(rule.check(json::parse(value)));
}

struct SchemaCase {
  std::string_view schema;
  std::vector<std::string_view> good, bad;
};

/// After the official suite of JSON Schema, in short.
const SchemaCase kSchemaCases[] = {
    {"{}", {"1", "null", "{}"}, {}},
    {"true", {"1"}, {}},
    {"false", {}, {"1", "null"}},
    {R"({"type": "integer"})", {"1", "1.0", "-3", "18446744073709551615"}, {"1.5", "\"1\"", "null", "true"}},
    {R"({"type": "number"})", {"1", "1.5"}, {"\"1\"", "[]"}},
    {R"({"type": ["string", "null"]})", {"\"\"", "null"}, {"0", "false", "{}"}},
    {R"({"const": {"a": [1, 2]}})", {R"({"a": [1.0, 2]})"}, {R"({"a": [2, 1]})", "{}"}},
    {R"({"enum": [1, "a", null]})", {"1", "1.0", "\"a\"", "null"}, {"\"b\"", "2", "false"}},
    {R"({"enum": [false]})", {"false"}, {"0", "[false]"}},
    {R"({"minimum": 1, "maximum": 3})", {"1", "3", "2.5", "\"0\""}, {"0.9", "3.1", "-1"}},
    {R"({"exclusiveMinimum": 1, "exclusiveMaximum": 3})", {"2", "1.001"}, {"1", "3"}},
    {R"({"maximum": 9007199254740993})", {"9007199254740993"}, {"9007199254740994"}},
    {R"({"multipleOf": 0.1})", {"0.3", "4.7", "12"}, {"0.35"}},
    {R"({"multipleOf": 3})", {"9", "0", "-6", "9223372036854775806"}, {"10", "3.5", "9223372036854775807"}},
    {R"({"minLength": 2, "maxLength": 3})", {"\"ab\"", "\"äöü\"", "\"😀😀\"", "1"}, {"\"a\"", "\"abcd\"", "\"😀\""}},
    {R"({"pattern": "^a+$"})", {"\"aa\"", "1"}, {"\"b\"", "\"\""}},
    {R"({"format": "email"})", {"\"not one\""}, {}},
    {R"({"items": {"type": "integer"}})", {"[]", "[1, 2]", "{}"}, {"[1, \"x\"]"}},
    {R"({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false})",
     {"[1]", "[1, \"x\"]"},
     {"[\"x\"]", "[1, \"x\", 2]"}},
    {R"({"items": [{"type": "integer"}], "additionalItems": {"type": "string"}})", {"[1, \"x\"]"}, {"[1, 2]"}},
    {R"({"minItems": 1, "maxItems": 2})", {"[1]", "[1, 2]"}, {"[]", "[1, 2, 3]"}},
    {R"({"uniqueItems": true})",
     {"[1, 2]", "[1, true]", "[{\"a\": 1}, {\"a\": 2}]", "[]"},
     {"[1, 1.0]", "[{\"a\": 1, \"b\": 2}, {\"b\": 2, \"a\": 1}]", "[[1], [1]]"}},
    {R"({"contains": {"const": 1}, "maxContains": 2})", {"[2, 1]", "[1, 1]"}, {"[]", "[2]", "[1, 1, 1]"}},
    {R"({"contains": {"const": 1}, "minContains": 0})", {"[]", "[2]"}, {}},
    {R"({"properties": {"a": {"type": "string"}}, "required": ["a"]})",
     {R"({"a": "x", "b": 1})", "1"},
     {"{}", R"({"a": 1})"}},
    {R"({"properties": {"a": {}}, "additionalProperties": false})", {R"({"a": 1})", "{}"}, {R"({"b": 1})"}},
    {R"({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}})",
     {R"({"a": "", "b": 1})"},
     {R"({"b": ""})"}},
    {R"({"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": false})",
     {R"({"x-a": 1})"},
     {R"({"x-a": ""})", R"({"y": 1})"}},
    {R"({"propertyNames": {"maxLength": 2}})", {R"({"ab": 1})"}, {R"({"abc": 1})"}},
    {R"({"minProperties": 1, "maxProperties": 1})", {R"({"a": 1})"}, {"{}", R"({"a": 1, "b": 2})"}},
    {R"({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}})",
     {"{}", R"({"a": 1, "b": 2})", R"({"c": 1, "d": 2})"},
     {R"({"a": 1})", R"({"c": 1})"}},
    {R"({"allOf": [{"minimum": 1}, {"maximum": 2}]})", {"1", "2"}, {"0", "3"}},
    {R"({"anyOf": [{"type": "string"}, {"minimum": 5}]})", {"\"\"", "6"}, {"4"}},
    {R"({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]})", {"2", "3"}, {"6", "5"}},
    {R"({"not": {"type": "null"}})", {"1"}, {"null"}},
    {R"({"if": {"const": 1}, "then": false})", {"2"}, {"1"}},
    {R"({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}})",
     {"\"ab\"", "2"},
     {"\"a\"", "1"}},
    {R"({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "integer"}}, "minimum": 2})", {"2"}, {"1", "\"\""}},
    {R"({"properties": {"next": {"$ref": "#"}}, "additionalProperties": false})",
     {R"({"next": {"next": {}}})"},
     {R"({"next": {"other": 1}})"}},
};

TEST(JsonSchema, decides_as_the_official_suite_does) {
  for (const SchemaCase& one : kSchemaCases) {
    for (const std::string_view value : one.good) EXPECT_EQ(mismatches(one.schema, value), "") << one.schema << value;
    for (const std::string_view value : one.bad) EXPECT_NE(mismatches(one.schema, value), "") << one.schema << value;
  }
}

TEST(JsonSchema, messages_name_the_place_what_was_expected_and_what_came) {
  constexpr std::string_view kSchema = R"({"type": "object", "additionalProperties": false, "required": ["to", "body"],
    "properties": {"to": {"type": "array", "items": {"type": "string", "maxLength": 3}}, "a/b": {"type": "null"},
                   "kind": {"enum": ["mail", "sms"]}, "body": {}}})";
  EXPECT_EQ(mismatches(kSchema, R"({"to": ["abc", 5, "abcd"], "kind": "fax", "a/b": [], "cc": 1})"),
            "property 'body' is missing\n"
            "/to/1: expected string, got integer 5\n"
            "/to/2: expected at most 3 characters, got 4\n"
            "/kind: expected one of \"mail\", \"sms\", got string \"fax\"\n"
            "/a~1b: expected null, got array with 0 items\n"
            "property 'cc' is not expected; known: a/b, body, kind, to");
  EXPECT_EQ(mismatches(kSchema, "3"), "expected object, got integer 3");
}

TEST(JsonSchema, advises_by_the_nearest_alternative) {
  constexpr std::string_view kSchema = R"({"anyOf": [{"type": "null"}, {"type": "object", "required": ["x"],
    "properties": {"x": {"type": "integer"}}}]})";
  EXPECT_EQ(mismatches(kSchema, R"({"x": "1"})"),
            "fits none of 2 alternatives; the nearest:\n/x: expected integer, got string \"1\"");
}

TEST(JsonSchema, lists_what_it_can_not_honour_and_ignores_what_it_does_not_know) {
  const JsonSchema schema = compiled(R"~({"$ref": "https://example.org/other.json", "title": "t", "nullable": true,
    "properties": {"a": {"pattern": "(?=x)"}, "b": {"exclusiveMinimum": true, "minimum": 1}, "c": {"$ref": "#/no"}},
    "patternProperties": {"\\p{L}": {}}, "additionalProperties": false, "unevaluatedProperties": false})~");
  std::string all;
  for (const std::string& line : schema.unsupported()) all += line + "\n";
  EXPECT_EQ(all,
            "/patternProperties: a Unicode property '\\p' at byte 2 of the pattern is not supported\n"
            "/additionalProperties: a pattern beside it is not supported\n"
            "/$ref: only references within the schema, '#/…'\n"
            "/unevaluatedProperties: is not supported\n"
            "/properties/a/pattern: lookaround '(?…' at byte 1 of the pattern is not supported\n"
            "/properties/b/exclusiveMinimum: is a number since draft 6\n"
            "/properties/c/$ref: leads nowhere: #/no\n");
  EXPECT_TRUE(schema.check(json::parse(R"({"a": "", "ä": 1})")).empty());
  EXPECT_FALSE(schema.check(json::parse(R"({"b": 0})")).empty());
}

TEST(JsonSchema, refuses_what_is_no_schema) {
  for (const char* const text : {"1", "[]", "{", R"({"type": "strng"})", R"({"properties": []})", R"({"items": 3})",
                                 R"({"anyOf": {}})", R"({"enum": 1})", R"({"not": "x"})"}) {
    EXPECT_FALSE(JsonSchema::parse(text)) << text;
  }
  const auto failed = JsonSchema::parse(R"({"properties": {"a": {"type": "strng"}}})");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what(), "/properties/a: type names no type of JSON");
}

TEST(JsonSchema, references_that_lead_to_themselves_end) {
  EXPECT_EQ(mismatches(R"({"$ref": "#"})", "1"), "not checked: nested too deeply, or its schema refers to itself");
  EXPECT_NE(
      mismatches(R"({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})", "1"),
      "");
}

TEST(JsonSchema, work_is_bounded) {
  // Each level doubles the work, and no level takes a step in the value.
  EXPECT_EQ(mismatches(R"({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {
    "a": {"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/c"}, {"$ref": "#/$defs/c"}]},
    "c": {"items": {"$ref": "#"}}}})",
                       std::string(12, '[') + std::string(12, ']')),
            "not checked: that would take too long");
  std::string same = "[0";
  for (int i = 1; i < 20'000; ++i) same += "," + std::to_string(i);
  EXPECT_EQ(mismatches(R"({"uniqueItems": true, "items": {"type": "integer"}})", same + "]"), "");
  EXPECT_NE(mismatches(R"~({"pattern": "(a|b|ab|ba|.{1,500})*c"})~", "\"" + std::string(100'000, 'a') + "\""), "");
  std::string many = "{";
  for (int i = 0; i < 6000; ++i) many += "\"" + std::to_string(i) + "\":{},";
  EXPECT_FALSE(JsonSchema::parse(R"({"properties": )" + many + R"("x": {}}})"));
}

TEST(JsonSchema, messages_are_bounded_in_number_and_length) {
  std::string value = "[";
  for (int i = 0; i < 100; ++i) value += (i == 0 ? "\"" : ",\"") + std::string(5000, 'x') + "\"";
  const auto found = compiled(R"({"items": {"type": "integer"}})").check(json::parse(value + "]"));
  ASSERT_EQ(found.size(), JsonSchema::kMismatchesMax + 1);
  EXPECT_EQ(found.back().message, "90 more mismatches");
  for (const SchemaMismatch& mismatch : found) EXPECT_LE(mismatch.message.size(), JsonSchema::kMessageBytesMax + 3);
  const auto deep = compiled(R"({"additionalProperties": {"type": "null"}})")
                        .check(json::parse("{\"" + std::string(10'000, 'k') + "\": 1}"));
  ASSERT_EQ(deep.size(), 1U);
  EXPECT_LE(deep[0].pointer.size(), JsonSchema::kPointerBytesMax + 3);
}

/// Files of the official suite whose keywords we honour.
constexpr std::array kSuiteFiles{"additionalProperties",
                                 "allOf",
                                 "anyOf",
                                 "boolean_schema",
                                 "const",
                                 "contains",
                                 "dependentRequired",
                                 "dependentSchemas",
                                 "enum",
                                 "exclusiveMaximum",
                                 "exclusiveMinimum",
                                 "if-then-else",
                                 "infinite-loop-detection",
                                 "items",
                                 "maxContains",
                                 "maxItems",
                                 "maxLength",
                                 "maxProperties",
                                 "maximum",
                                 "minContains",
                                 "minItems",
                                 "minLength",
                                 "minProperties",
                                 "minimum",
                                 "multipleOf",
                                 "not",
                                 "oneOf",
                                 "pattern",
                                 "patternProperties",
                                 "prefixItems",
                                 "properties",
                                 "propertyNames",
                                 "ref",
                                 "required",
                                 "type",
                                 "uniqueItems"};

TEST(JsonSchema, agrees_with_the_official_suite_where_it_is_installed) {
  const std::filesystem::path suite = "/usr/share/json-schema-test-suite/tests";
  if (!std::filesystem::exists(suite)) GTEST_SKIP() << "Debian's package json-schema-test-suite is not installed";
  const bool is_new = std::filesystem::exists(suite / "draft2020-12");
  const std::filesystem::path folder = suite / (is_new ? "draft2020-12" : "draft7");
  std::size_t compared = 0;
  std::size_t left_out = 0;
  for (const char* const name : kSuiteFiles) {
    if (!is_new && name == std::string_view("ref")) continue;  // until draft 7 it hid the keywords beside it
    std::ifstream file(folder / (std::string(name) + ".json"));
    if (!file) continue;  // a keyword of later drafts
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (const json::value& group : json::parse(text).as_array()) {
      const auto schema = JsonSchema::compile(group.at("schema"));
      if (!schema || !schema->unsupported().empty()) {  // it says itself that it can't honour it all
        ++left_out;
        continue;
      }
      for (const json::value& test : group.at("tests").as_array()) {
        ++compared;
        const auto found = schema->check(test.at("data"));
        EXPECT_EQ(found.empty(), test.at("valid").as_bool())
            << name << ": " << group.at("description") << ": " << test.at("description") << "\n"
            << describe(found);
      }
    }
  }
  EXPECT_GT(compared, 300U);
  EXPECT_LT(left_out, 30U);
}

}  // namespace
}  // namespace stint::driver
