// Compiles a schema to a list of nodes that refer to each other by index. A list of schemas to do takes the place of
// recursion, so that neither depth nor cycles of references matter here.
#include "driver/dialect_support.hpp"
#include "driver/json_schema.hpp"
#include "driver/json_schema_types.hpp"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace stint::driver {
namespace {

constexpr std::size_t kShownBytes = 120;  // of a place or a reason in unsupported()

std::optional<long double> number_of(const json::value& value) {
  if (const auto* const whole = value.if_int64()) return static_cast<long double>(*whole);
  if (const auto* const large = value.if_uint64()) return static_cast<long double>(*large);
  if (const auto* const real = value.if_double(); real != nullptr && std::isfinite(*real))
    return static_cast<long double>(*real);
  return std::nullopt;
}

std::string decoded_fragment(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) -> int {
      const char c = at < text.size() ? text[at] : ' ';
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      if (c >= 'A' && c <= 'F') return c - 'A' + 10;
      return -1;
    };
    if (text[i] == '%' && digit(i + 1) >= 0 && digit(i + 2) >= 0) {
      out += static_cast<char>(digit(i + 1) * 16 + digit(i + 2));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string unescaped_step(std::string_view step) {
  std::string out;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool escape = step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1');
    out += !escape ? step[i] : step[i + 1] == '0' ? '~' : '/';
    if (escape) ++i;
  }
  return out;
}

std::string escaped_step(std::string_view step) {
  std::string out;
  for (const char c : step) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

/// Follows a JSON pointer; null if it leads nowhere.
const json::value* find_pointer(const json::value& root, std::string_view pointer) {
  const json::value* at = &root;
  while (!pointer.empty()) {
    if (!pointer.starts_with('/')) return nullptr;
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string step = unescaped_step(pointer.substr(0, end));
    pointer.remove_prefix(end);
    if (const auto* const object = at->if_object()) {
      at = object->if_contains(step);
    } else if (const auto* const array = at->if_array()) {
      std::size_t index = 0;
      if (step.empty() || step.size() > 6 || step.find_first_not_of("0123456789") != std::string::npos) return nullptr;
      for (const char c : step) index = index * 10 + static_cast<std::size_t>(c - '0');
      at = array->if_contains(index);
    } else {
      return nullptr;
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

}  // namespace

class SchemaCompiler {
 public:
  using Index = JsonSchema::Index;
  using Node = JsonSchema::Node;

  explicit SchemaCompiler(const json::value& root) : root_(root) {}

  Result<JsonSchema> compile() {
    (void)index_of(root_, "");
    for (std::size_t i = 0; i < todo_.size() && !error_; ++i) {
      at_ = i;
      place_ = todo_[i].place;
      Node node;
      read(*todo_[i].schema, node);
      out_.nodes_.push_back(std::move(node));
    }
    if (error_) return fail(*error_);
    return std::move(out_);
  }

 private:
  struct Todo {
    const json::value* schema;
    std::string place;
  };

  void refuse(std::string_view what) {
    if (!error_)
      error_ = Error(Errc::invalid, one_line(fmt::format("{}: {}", place_, what), JsonSchema::kMessageBytesMax));
  }
  void note(std::string_view keyword, std::string_view why) {
    if (out_.unsupported_.size() >= JsonSchema::kUnsupportedMax) return;
    out_.unsupported_.push_back(
        fmt::format("{}/{}: {}", one_line(place_, kShownBytes), keyword, one_line(why, kShownBytes)));
  }

  Index index_of(const json::value& schema, std::string_view step) {
    const auto [found, added] = known_.emplace(&schema, static_cast<Index>(todo_.size()));
    if (!added) return found->second;
    if (todo_.size() >= JsonSchema::kNodesMax) {
      refuse(fmt::format("more than {} schemas in a schema", JsonSchema::kNodesMax));
      return 0;
    }
    std::string place = at_ ? shortened(todo_[*at_].place, kShownBytes) + "/" + std::string(step) : "";
    todo_.push_back({&schema, std::move(place)});
    return found->second;
  }

  void read(const json::value& schema, Node& node) {
    if (const bool* const always = schema.if_bool()) {
      node.never = !*always;
      return;
    }
    const json::object* const object = schema.if_object();
    if (object == nullptr) return refuse("a schema must be an object, true or false");
    object_ = object;
    read_types(node);
    read_values(node);
    read_numbers(node.numbers);
    read_range("minLength", "maxLength", node.length);
    read_pattern(node);
    read_object(node.object);
    read_array(node.array);
    read_combinations(node);
    read_reference(node);
    for (const std::string_view keyword : {"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef",
                                           "dependencies", "contentSchema"}) {
      if (object->contains(keyword)) note(keyword, "is not supported");
    }
  }

  const json::value* find(std::string_view keyword) const { return object_->if_contains(keyword); }

  void read_types(Node& node) {
    const json::value* const type = find("type");
    if (type == nullptr) return;
    node.types = 0;
    const auto add = [&](const json::value& name) {
      const auto* const text = name.if_string();
      const auto known =
          text == nullptr ? kSchemaTypes.end() : std::ranges::find(kSchemaTypes, std::string_view(*text));
      if (known == kSchemaTypes.end()) return refuse("type names no type of JSON");
      node.types |= static_cast<std::uint8_t>(1U << (known - kSchemaTypes.begin()));
    };
    if (const auto* const list = type->if_array()) {
      for (const json::value& name : *list) add(name);
    } else {
      add(*type);
    }
    if ((node.types & kNumber) != 0) node.types |= kInteger;
  }

  void read_values(Node& node) {
    if (const json::value* const constant = find("const")) {
      node.values = {*constant};
      node.has_values = true;
    }
    const json::value* const values = find("enum");
    if (values == nullptr) return;
    if (!values->is_array()) return refuse("enum must be a list");
    if (node.has_values) return note("enum", "const stands beside it and is checked instead");
    node.values.assign(values->get_array().begin(), values->get_array().end());
    node.has_values = true;
  }

  void read_number(std::string_view keyword, std::optional<long double>& out) {
    const json::value* const value = find(keyword);
    if (value == nullptr) return;
    out = number_of(*value);
    if (!out) note(keyword, value->is_bool() ? "is a number since draft 6" : "is not a number");
  }
  void read_numbers(JsonSchema::Numbers& out) {
    read_number("minimum", out.least);
    read_number("maximum", out.most);
    read_number("exclusiveMinimum", out.above);
    read_number("exclusiveMaximum", out.below);
    read_number("multipleOf", out.multiple_of);
    if (out.multiple_of && *out.multiple_of <= 0) {
      note("multipleOf", "must be greater than 0");
      out.multiple_of.reset();
    }
  }

  void read_count(std::string_view keyword, std::uint64_t& out) {
    std::optional<long double> value;
    read_number(keyword, value);
    if (!value) return;
    if (*value < 0 || std::floor(*value) != *value) return note(keyword, "is not a count");
    out = *value >= 1e18L ? JsonSchema::kUnbounded : static_cast<std::uint64_t>(*value);
  }
  void read_range(std::string_view least, std::string_view most, JsonSchema::Range& out) {
    read_count(least, out.least);
    read_count(most, out.most);
  }

  Index pattern_of(std::string_view keyword, std::string_view text) {
    auto pattern = TextPattern::compile(text);
    if (!pattern) {
      note(keyword, std::string(pattern.error().what()) + " is not supported");
      return JsonSchema::kNone;
    }
    out_.patterns_.push_back(*std::move(pattern));
    return static_cast<Index>(out_.patterns_.size() - 1);
  }
  void read_pattern(Node& node) {
    const json::value* const pattern = find("pattern");
    if (pattern == nullptr) return;
    if (!pattern->is_string()) return note("pattern", "is not a text");
    node.pattern = pattern_of("pattern", pattern->get_string());
  }

  Index child(std::string_view keyword) {
    const json::value* const schema = find(keyword);
    return schema == nullptr ? JsonSchema::kNone : index_of(*schema, keyword);
  }
  std::vector<Index> children(std::string_view keyword) {
    std::vector<Index> out;
    const json::value* const list = find(keyword);
    if (list == nullptr) return out;
    if (!list->is_array()) {
      refuse(fmt::format("{} must be a list", keyword));
      return out;
    }
    for (std::size_t i = 0; i < list->get_array().size(); ++i) {
      out.push_back(index_of(list->get_array()[i], fmt::format("{}/{}", keyword, i)));
    }
    return out;
  }
  /// Calls `take(name, value)` for the members of a keyword whose value is an object.
  template <class Take>
  void each_member(std::string_view keyword, Take take) {
    const json::value* const map = find(keyword);
    if (map == nullptr) return;
    if (!map->is_object()) return refuse(fmt::format("{} must be an object", keyword));
    for (const auto& member : map->get_object()) take(std::string_view(member.key()), member.value());
  }
  std::vector<std::string> names_in(const json::value& list, std::string_view keyword) {
    std::vector<std::string> out;
    if (!list.is_array()) {
      note(keyword, "is not a list of names");
      return out;
    }
    for (const json::value& name : list.get_array()) {
      if (name.is_string()) out.emplace_back(name.get_string());
    }
    return out;
  }

  void read_object(JsonSchema::Object& out) {
    read_range("minProperties", "maxProperties", out.size);
    if (const json::value* const required = find("required")) out.required = names_in(*required, "required");
    each_member("properties", [&](std::string_view name, const json::value& schema) {
      out.properties.emplace_back(name, index_of(schema, fmt::format("properties/{}", escaped_step(name))));
    });
    std::ranges::sort(out.properties);
    each_member("patternProperties", [&](std::string_view pattern, const json::value& schema) {
      const Index compiled = pattern_of("patternProperties", pattern);
      if (compiled != JsonSchema::kNone) out.patterns.emplace_back(compiled, index_of(schema, "patternProperties"));
      inexact_ = inexact_ || compiled == JsonSchema::kNone;
    });
    // Names that an unsupported pattern may allow can't be told from the others.
    if (std::exchange(inexact_, false)) {
      if (find("additionalProperties") != nullptr) note("additionalProperties", "a pattern beside it is not supported");
    } else {
      out.others = child("additionalProperties");
    }
    out.names = child("propertyNames");
    each_member("dependentRequired", [&](std::string_view name, const json::value& names) {
      out.required_with.emplace_back(name, names_in(names, "dependentRequired"));
    });
    each_member("dependentSchemas", [&](std::string_view name, const json::value& schema) {
      out.with.emplace_back(name, index_of(schema, "dependentSchemas"));
    });
  }

  void read_array(JsonSchema::Array& out) {
    read_range("minItems", "maxItems", out.size);
    if (const json::value* const unique = find("uniqueItems")) out.unique = unique->is_bool() && unique->get_bool();
    const json::value* const items = find("items");
    if (items != nullptr && items->is_array()) {  // before draft 2020-12
      out.first = children("items");
      out.rest = child("additionalItems");
    } else {
      out.first = children("prefixItems");
      out.rest = child("items");
    }
    out.contains = child("contains");
    read_range("minContains", "maxContains", out.contained);
  }

  void read_combinations(Node& node) {
    node.all = children("allOf");
    node.any = children("anyOf");
    node.one = children("oneOf");
    node.no = child("not");
    node.condition = child("if");
    node.then = child("then");
    node.otherwise = child("else");
  }

  void read_reference(Node& node) {
    const json::value* const reference = find("$ref");
    if (reference == nullptr) return;
    const auto* const text = reference->if_string();
    if (text == nullptr || !text->starts_with('#')) return note("$ref", "only references within the schema, '#/…'");
    const json::value* const target = find_pointer(root_, decoded_fragment(std::string_view(*text).substr(1)));
    if (target == nullptr) return note("$ref", fmt::format("leads nowhere: {}", std::string_view(*text)));
    node.reference = index_of(*target, "$ref");
  }

  const json::value& root_;
  JsonSchema out_;
  std::vector<Todo> todo_;
  std::map<const json::value*, Index> known_;
  std::optional<std::size_t> at_;  // in todo_, of the schema that is read
  std::string place_;              // of that schema, for messages
  const json::object* object_ = nullptr;
  bool inexact_ = false;
  std::optional<Error> error_;
};

Result<JsonSchema> JsonSchema::compile(const json::value& schema) { return SchemaCompiler(schema).compile(); }

Result<JsonSchema> JsonSchema::parse(std::string_view text) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  boost::system::error_code error;
  const json::value schema = json::parse(text, error, {}, options);
  if (error) return fail(Errc::invalid, "the schema is not JSON: " + error.message());
  return compile(schema);
}

}  // namespace stint::driver
