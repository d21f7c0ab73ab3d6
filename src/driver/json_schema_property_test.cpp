// For generated schemas and values: combinations agree with the logic of their parts, leaves with a naive reading, and
// a schema that is reached through a reference decides as the schema itself.
#include "driver/json_schema.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::driver {
namespace {

json::value random_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0: return nullptr;
    case 1: return *rc::gen::arbitrary<bool>();
    case 2: return *rc::gen::inRange(-2, 4);
    case 3: return *rc::gen::inRange(-4, 8) / 2.0;
    case 4: return json::value(*rc::gen::element("", "a", "b", "ab", "ä"));
    case 5: {
      json::array out;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) out.push_back(random_value(depth - 1));
      return out;
    }
    default: {
      json::object out;
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) out[*rc::gen::element("a", "b", "c")] = random_value(depth - 1);
      return out;
    }
  }
}

json::value random_schema(int depth) {
  json::object out;
  const int kind = *rc::gen::inRange(0, depth > 0 ? 14 : 9);
  const auto inner = [&] { return random_schema(depth - 1); };
  switch (kind) {
    case 0: return *rc::gen::arbitrary<bool>();
    case 1: out["type"] = *rc::gen::element("null", "boolean", "object", "array", "number", "string", "integer"); break;
    case 2: out["minimum"] = *rc::gen::inRange(-2, 4); break;
    case 3: out["multipleOf"] = *rc::gen::inRange(1, 4) / 2.0; break;
    case 4: out["maxLength"] = *rc::gen::inRange(0, 3); break;
    case 5: out["enum"] = json::array{random_value(1), random_value(0)}; break;
    case 6: out["uniqueItems"] = true; break;
    case 7: out["required"] = json::array{*rc::gen::element("a", "b")}; break;
    case 8: out["pattern"] = *rc::gen::element("^a", "b$", "^.?$"); break;
    case 9: out["properties"] = json::object{{"a", inner()}, {"b", inner()}}; break;
    case 10: out["items"] = inner(); break;
    case 11: out["additionalProperties"] = inner(); break;
    case 12: out["anyOf"] = json::array{inner(), inner()}; break;
    default: out["not"] = inner(); break;
  }
  return out;
}

bool fits(const json::value& schema, const json::value& value) {
  const auto compiled = JsonSchema::compile(schema);
  RC_ASSERT(compiled);
  RC_ASSERT(compiled->unsupported().empty());
  return compiled->check(value).empty();
}

TEST(JsonSchemaProperty, combinations_follow_from_their_parts) {
  EXPECT_TRUE(rc::check("logic", [] {
    const json::value a = random_schema(2);
    const json::value b = random_schema(2);
    const json::value c = random_schema(1);
    const json::value value = random_value(2);
    RC_LOG() << json::serialize(a) << " " << json::serialize(b) << " " << json::serialize(value) << "\n";
    const bool in_a = fits(a, value);
    const bool in_b = fits(b, value);
    const bool in_c = fits(c, value);
    RC_ASSERT(fits(json::object{{"not", a}}, value) == !in_a);
    RC_ASSERT(fits(json::object{{"allOf", {a, b}}}, value) == (in_a && in_b));
    RC_ASSERT(fits(json::object{{"anyOf", {a, b}}}, value) == (in_a || in_b));
    RC_ASSERT(fits(json::object{{"oneOf", {a, b, c}}}, value) == (in_a + in_b + in_c == 1));
    RC_ASSERT(fits(json::object{{"if", a}, {"then", b}, {"else", c}}, value) == (in_a ? in_b : in_c));
    RC_ASSERT(fits(json::object{{"$ref", "#/$defs/x"}, {"$defs", {{"x", a}}}}, value) == in_a);
    RC_ASSERT(fits(json::object{{"items", a}, {"minItems", 1}, {"type", "array"}}, json::array{value}) == in_a);
    RC_ASSERT(fits(json::object{{"properties", {{"k", a}}}}, json::object{{"k", value}}) == in_a);
    RC_ASSERT(fits(json::object{{"patternProperties", {{"^k", a}}}}, json::object{{"k", value}}) == in_a);
    RC_ASSERT(fits(json::object{{"contains", a}}, json::array{value}) == in_a);
  }));
}

TEST(JsonSchemaProperty, a_value_conforms_to_itself_and_is_unique_with_another) {
  EXPECT_TRUE(rc::check("const and uniqueItems", [] {
    const json::value a = random_value(3);
    const json::value b = random_value(3);
    RC_ASSERT(fits(json::object{{"const", a}}, a));
    const bool equal = fits(json::object{{"const", a}}, b);
    RC_ASSERT(fits(json::object{{"uniqueItems", true}}, json::array{a, b}) == !equal);
    RC_ASSERT(fits(json::object{{"enum", json::array{b, a}}}, a));
  }));
}

/// The types in the words of the specification.
bool naive_type(const json::value& value, std::string_view name) {
  if (name == "integer")
    return value.is_int64() || (value.is_double() && value.get_double() == static_cast<int>(value.get_double()));
  if (name == "number") return value.is_number();
  if (name == "boolean") return value.is_bool();
  return to_string(value.kind()) == name;
}

TEST(JsonSchemaProperty, leaves_agree_with_a_naive_reading) {
  EXPECT_TRUE(rc::check("leaves", [] {
    const json::value value = random_value(1);
    for (const char* const type : {"null", "boolean", "object", "array", "number", "string", "integer"}) {
      RC_ASSERT(fits(json::object{{"type", type}}, value) == naive_type(value, type));
    }
    const int bound = *rc::gen::inRange(-2, 3);
    const double number = value.is_number() ? value.to_number<double>() : 0;
    RC_ASSERT(fits(json::object{{"minimum", bound}}, value) == (!value.is_number() || number >= bound));
    RC_ASSERT(fits(json::object{{"exclusiveMaximum", bound}}, value) == (!value.is_number() || number < bound));
    const std::size_t size = value.is_array() ? value.get_array().size() : 0;
    RC_ASSERT(fits(json::object{{"maxItems", 1}}, value) == (size <= 1));
  }));
}

}  // namespace
}  // namespace stint::driver
