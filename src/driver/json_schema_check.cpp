// Invariants: 1. enter() counts every schema that is applied and every value that is compared, and ends the check at
// kStepsMax; 2. recursion goes as deep as kDepthMax, then the check ends; 3. a check that was ended reports that, so an
// unfinished check never passes.
#include "driver/dialect_support.hpp"
#include "driver/json_schema.hpp"
#include "driver/json_schema_types.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace stint::driver {
namespace {

constexpr std::size_t kValueShown = 60;       // bytes of a value in a message
constexpr std::size_t kSerializedMax = 4096;  // a larger value is described instead of shown
constexpr std::size_t kNamesShown = 10;       // names of properties that a message lists

std::uint8_t type_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return kNull;
    case json::kind::bool_: return kBoolean;
    case json::kind::object: return kObject;
    case json::kind::array: return kArray;
    case json::kind::string: return kString;
    case json::kind::int64:
    case json::kind::uint64: return kInteger | kNumber;
    case json::kind::double_: {
      const double real = value.get_double();
      return std::isfinite(real) && std::floor(real) == real ? kInteger | kNumber : kNumber;
    }
  }
  return 0;
}

long double as_number(const json::value& value) {
  if (const auto* const whole = value.if_int64()) return static_cast<long double>(*whole);
  if (const auto* const large = value.if_uint64()) return static_cast<long double>(*large);
  return static_cast<long double>(value.get_double());
}

std::string_view type_name(const json::value& value) {
  const std::uint8_t type = type_of(value);
  if ((type & kInteger) != 0) return "integer";
  for (std::size_t i = 0; i < kSchemaTypes.size(); ++i) {
    if (type == 1U << i) return kSchemaTypes[i];
  }
  return "value";
}

/// "integer 5", "object with 3 properties", "string \"abc…\"".
std::string shown(const json::value& value) {
  if (const auto* const object = value.if_object()) return fmt::format("object with {} properties", object->size());
  if (const auto* const array = value.if_array()) return fmt::format("array with {} items", array->size());
  if (value.is_null()) return "null";
  if (value.is_double()) return fmt::format("{} {}", type_name(value), value.get_double());
  if (const auto* const text = value.if_string(); text != nullptr && text->size() > kSerializedMax) {
    return fmt::format("string of {} bytes", text->size());
  }
  return fmt::format("{} {}", type_name(value), shortened(json::serialize(value), kValueShown));
}

std::string shown_types(std::uint8_t types) {
  if ((types & kNumber) != 0) types &= static_cast<std::uint8_t>(~kInteger);
  std::string out;
  for (std::size_t i = 0; i < kSchemaTypes.size(); ++i) {
    if ((types >> i & 1U) != 0) out += (out.empty() ? "" : " or ") + std::string(kSchemaTypes[i]);
  }
  return out.empty() ? "nothing" : out;
}

std::string shown_name(std::string_view name) { return "'" + one_line(name, kValueShown) + "'"; }

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

class SchemaCheck {
 public:
  using Index = JsonSchema::Index;
  using Node = JsonSchema::Node;

  explicit SchemaCheck(const JsonSchema& schema) : schema_(schema) {}

  std::vector<SchemaMismatch> run(const json::value& value) {
    Mismatches found;
    apply(0, value, {}, found);
    if (ended_) return {{"", ended_}};
    if (found.left_out > 0) found.list.push_back({"", fmt::format("{} more mismatches", found.left_out)});
    return std::move(found.list);
  }

 private:
  /// The place of a value, as a list on the stack.
  struct Place {
    const Place* above = nullptr;
    std::string_view name{};
    std::size_t index = 0;
    bool is_item = false;
    int depth = 0;

    [[nodiscard]] Place member(std::string_view key) const { return {this, key, 0, false, depth + 1}; }
    [[nodiscard]] Place item(std::size_t at) const { return {this, {}, at, true, depth + 1}; }
    [[nodiscard]] Place same() const {
      Place out = *this;
      ++out.depth;
      return out;
    }
    [[nodiscard]] std::string pointer() const {
      if (above == nullptr) return "";
      std::string step;
      if (is_item) {
        step = std::to_string(index);
      } else {
        for (const char c : name.substr(0, JsonSchema::kPointerBytesMax)) {
          step += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
        }
      }
      return above->pointer() + "/" + step;
    }
  };
  struct Mismatches {
    std::vector<SchemaMismatch> list{};
    std::size_t left_out = 0;

    void add(const Place& place, std::string_view message) {
      if (list.size() >= JsonSchema::kMismatchesMax) {
        ++left_out;
        return;
      }
      list.push_back(
          {one_line(place.pointer(), JsonSchema::kPointerBytesMax), one_line(message, JsonSchema::kMessageBytesMax)});
    }
    [[nodiscard]] bool empty() const noexcept { return list.empty(); }
  };

  /// Counts work. False: the check has ended.
  bool enter(int depth, std::size_t steps = 1) {
    steps_ += steps;
    if (depth > JsonSchema::kDepthMax) ended_ = "not checked: nested too deeply, or its schema refers to itself";
    if (steps_ > JsonSchema::kStepsMax) ended_ = "not checked: that would take too long";
    return ended_ == nullptr;
  }

  void apply(Index index, const json::value& value, const Place& place, Mismatches& out) {
    if (!enter(place.depth)) return;
    const Node& node = schema_.nodes_[index];
    if (node.never) return out.add(place, "expected to be absent, got " + shown(value));
    if (node.reference != JsonSchema::kNone) apply(node.reference, value, place.same(), out);
    if ((node.types & type_of(value)) == 0) {
      return out.add(place, fmt::format("expected {}, got {}", shown_types(node.types), shown(value)));
    }
    if (node.has_values) check_values(node, value, place, out);
    switch (value.kind()) {
      case json::kind::object: check_object(node.object, value, place, out); break;
      case json::kind::array: check_array(node.array, value.get_array(), place, out); break;
      case json::kind::string: check_text(node, value, place, out); break;
      case json::kind::int64:
      case json::kind::uint64:
      case json::kind::double_: check_number(node.numbers, value, place, out); break;
      default: break;
    }
    check_combinations(node, value, place, out);
  }

  bool conforms(Index index, const json::value& value, const Place& place) {
    Mismatches found;
    apply(index, value, place.same(), found);
    return found.empty();
  }

  void check_values(const Node& node, const json::value& value, const Place& place, Mismatches& out) {
    for (const json::value& allowed : node.values) {
      if (equal(allowed, value, place.depth)) return;
    }
    std::string list;
    for (std::size_t i = 0; i < node.values.size() && i < kNamesShown; ++i) {
      list += (i == 0 ? "" : ", ") + (node.values[i].is_string()
                                          ? json::serialize(node.values[i].get_string()).substr(0, kValueShown)
                                          : shown(node.values[i]));
    }
    if (node.values.size() > kNamesShown) list += ", …";
    out.add(place, fmt::format("expected {}{}, got {}", node.values.size() == 1 ? "" : "one of ", list, shown(value)));
  }

  void check_number(const JsonSchema::Numbers& rule, const json::value& value, const Place& place, Mismatches& out) {
    const long double number = as_number(value);
    const auto expect = [&](const std::optional<long double>& bound, bool holds, std::string_view what) {
      if (bound && !holds) {
        out.add(place, fmt::format("expected a number {} {}, got {}", what, static_cast<double>(*bound), shown(value)));
      }
    };
    expect(rule.least, number >= rule.least.value_or(0), "of at least");
    expect(rule.most, number <= rule.most.value_or(0), "of at most");
    expect(rule.above, number > rule.above.value_or(0), "above");
    expect(rule.below, number < rule.below.value_or(0), "below");
    expect(rule.multiple_of, !rule.multiple_of || is_multiple(number, *rule.multiple_of), "that is a multiple of");
  }
  /// Exact for integers. 0.3 counts as a multiple of 0.1, although no double is exactly either.
  static bool is_multiple(long double number, long double of) {
    if (std::floor(number) == number && std::floor(of) == of) return std::fmod(number, of) == 0;
    const long double quotient = number / of;
    const long double tolerance = std::max(1.0L, std::fabs(quotient)) * 1e-12L;
    return std::isfinite(quotient) && std::fabs(quotient - std::round(quotient)) <= tolerance;
  }

  static void expect_size(std::size_t size, const JsonSchema::Range& rule, std::string_view unit, const Place& place,
                          Mismatches& out) {
    if (size >= rule.least && size <= rule.most) return;
    const bool few = size < rule.least;
    out.add(place, fmt::format("expected at {} {} {}, got {}", few ? "least" : "most", few ? rule.least : rule.most,
                               unit, size));
  }

  void check_text(const Node& node, const json::value& value, const Place& place, Mismatches& out) {
    const std::string_view text = value.get_string();
    if (!enter(place.depth, text.size() / 64)) return;
    expect_size(code_points(text), node.length, "characters", place, out);
    if (node.pattern != JsonSchema::kNone && !matches(node.pattern, text, place.depth)) {
      out.add(place, "expected a text that matches the schema's pattern, got " + shown(value));
    }
  }
  bool matches(Index pattern, std::string_view text, int depth) {
    const TextPattern& compiled = schema_.patterns_[pattern];
    // A character costs as many steps as the pattern has states, at most.
    return enter(depth, (text.size() + 1) * (compiled.states() / 8 + 1)) && compiled.is_found_in(text);
  }

  void check_object(const JsonSchema::Object& rule, const json::value& value, const Place& place, Mismatches& out) {
    const json::object& object = value.get_object();
    expect_size(object.size(), rule.size, "properties", place, out);
    for (const std::string& name : rule.required) {
      if (!object.contains(name)) out.add(place, fmt::format("property {} is missing", shown_name(name)));
    }
    for (const auto& [name, others] : rule.required_with) {
      if (!object.contains(name)) continue;
      for (const std::string& other : others) {
        if (!object.contains(other)) {
          out.add(place, fmt::format("property {} is missing beside {}", shown_name(other), shown_name(name)));
        }
      }
    }
    for (const auto& [name, schema] : rule.with) {
      if (object.contains(name)) apply(schema, value, place.same(), out);
    }
    for (const auto& member : object) {
      if (ended_ != nullptr) return;
      check_member(rule, member.key(), member.value(), place, out);
    }
  }

  void check_member(const JsonSchema::Object& rule, std::string_view name, const json::value& value, const Place& place,
                    Mismatches& out) {
    const Place inner = place.member(name);
    if (rule.names != JsonSchema::kNone) apply(rule.names, json::value(name), inner, out);
    bool known = false;
    const auto listed = std::ranges::lower_bound(
        rule.properties, name, std::less<>(), [](const auto& property) -> std::string_view { return property.first; });
    if (listed != rule.properties.end() && listed->first == name) {
      known = true;
      apply(listed->second, value, inner, out);
    }
    for (const auto& [pattern, schema] : rule.patterns) {
      if (!matches(pattern, name, place.depth)) continue;
      known = true;
      apply(schema, value, inner, out);
    }
    if (known || rule.others == JsonSchema::kNone) return;
    if (!schema_.nodes_[rule.others].never) return apply(rule.others, value, inner, out);
    std::string names;
    for (std::size_t i = 0; i < rule.properties.size() && i < kNamesShown; ++i) {
      names += (i == 0 ? "" : ", ") + one_line(rule.properties[i].first, kValueShown);
    }
    out.add(place, fmt::format("property {} is not expected; known: {}{}", shown_name(name),
                               names.empty() ? "none" : names, rule.properties.size() > kNamesShown ? ", …" : ""));
  }

  void check_array(const JsonSchema::Array& rule, const json::array& array, const Place& place, Mismatches& out) {
    expect_size(array.size(), rule.size, "items", place, out);
    std::size_t contained = 0;
    for (std::size_t i = 0; i < array.size() && ended_ == nullptr; ++i) {
      const Index schema = i < rule.first.size() ? rule.first[i] : rule.rest;
      if (schema != JsonSchema::kNone) apply(schema, array[i], place.item(i), out);
      if (rule.contains != JsonSchema::kNone) contained += conforms(rule.contains, array[i], place.item(i)) ? 1 : 0;
    }
    if (rule.contains != JsonSchema::kNone)
      expect_size(contained, rule.contained, "items as in 'contains'", place, out);
    if (rule.unique) check_unique(array, place, out);
  }

  void check_unique(const json::array& array, const Place& place, Mismatches& out) {
    std::unordered_multimap<std::size_t, std::size_t> seen;
    for (std::size_t i = 0; i < array.size(); ++i) {
      const std::size_t hash = hash_of(array[i], place.depth);
      const auto [first, last] = seen.equal_range(hash);
      for (auto other = first; other != last; ++other) {
        if (!equal(array[other->second], array[i], place.depth)) continue;
        return out.add(place, fmt::format("expected different items, but items {} and {} are equal", other->second, i));
      }
      if (ended_ != nullptr) return;
      seen.emplace(hash, i);
    }
  }

  void check_combinations(const Node& node, const json::value& value, const Place& place, Mismatches& out) {
    for (const Index index : node.all) apply(index, value, place.same(), out);
    if (!node.any.empty()) check_alternatives(node.any, false, value, place, out);
    if (!node.one.empty()) check_alternatives(node.one, true, value, place, out);
    if (node.no != JsonSchema::kNone && conforms(node.no, value, place)) {
      out.add(place, "expected a value that the schema under 'not' refuses, got " + shown(value));
    }
    if (node.condition == JsonSchema::kNone) return;
    const Index then = conforms(node.condition, value, place) ? node.then : node.otherwise;
    if (then != JsonSchema::kNone) apply(then, value, place.same(), out);
  }

  /// If none fits, the mismatches of the alternative with the fewest are the best advice.
  void check_alternatives(const std::vector<Index>& schemas, bool exactly_one, const json::value& value,
                          const Place& place, Mismatches& out) {
    std::size_t fitting = 0;
    std::optional<Mismatches> nearest;
    for (const Index index : schemas) {
      Mismatches found;
      apply(index, value, place.same(), found);
      if (ended_ != nullptr) return;
      if (found.empty()) {
        if (++fitting > 1 || !exactly_one) break;
      } else if (!nearest || rank(found, place) < rank(*nearest, place)) {
        nearest = std::move(found);
      }
    }
    if (fitting == 1 || (fitting > 0 && !exactly_one)) return;
    if (fitting > 1) return out.add(place, "expected to fit exactly one alternative of 'oneOf', fits several");
    out.add(place, fmt::format("fits none of {} alternatives; the nearest:", schemas.size()));
    for (SchemaMismatch& mismatch : nearest->list) {
      if (out.list.size() < JsonSchema::kMismatchesMax) out.list.push_back(std::move(mismatch));
    }
  }
  /// An alternative that is wrong inside is nearer than one of another type.
  static std::pair<bool, std::size_t> rank(const Mismatches& found, const Place& place) {
    const bool outside = found.list.front().pointer == one_line(place.pointer(), JsonSchema::kPointerBytesMax) &&
                         found.list.front().message.starts_with("expected ");
    return {outside, found.list.size() + found.left_out};
  }

  /// As JSON Schema has it: 1 and 1.0 are equal.
  bool equal(const json::value& a, const json::value& b, int depth) {
    if (!enter(depth)) return false;
    if (a.is_number() && b.is_number()) return as_number(a) == as_number(b);
    if (a.kind() != b.kind()) return false;
    if (const auto* const object = a.if_object()) {
      const json::object& other = b.get_object();
      if (object->size() != other.size()) return false;
      return std::ranges::all_of(*object, [&](const auto& member) {
        const json::value* const found = other.if_contains(member.key());
        return found != nullptr && equal(member.value(), *found, depth + 1);
      });
    }
    if (const auto* const array = a.if_array()) {
      const json::array& other = b.get_array();
      if (array->size() != other.size()) return false;
      for (std::size_t i = 0; i < array->size(); ++i) {
        if (!equal((*array)[i], other[i], depth + 1)) return false;
      }
      return true;
    }
    return a == b;
  }

  /// Equal values have equal hashes.
  std::size_t hash_of(const json::value& value, int depth) {
    if (!enter(depth)) return 0;
    if (value.is_number()) return std::hash<long double>()(as_number(value) + 0.0L);
    if (const auto* const text = value.if_string()) return std::hash<std::string_view>()(*text);
    std::size_t out = static_cast<std::size_t>(value.kind()) + 1;
    if (const auto* const object = value.if_object()) {
      for (const auto& member : *object) {  // in any order
        out += std::hash<std::string_view>()(member.key()) ^ (hash_of(member.value(), depth + 1) * 31);
      }
    } else if (const auto* const array = value.if_array()) {
      for (const json::value& item : *array) out = out * 1'000'003 + hash_of(item, depth + 1);
    } else if (const bool* const truth = value.if_bool()) {
      out += *truth ? 1000 : 2000;
    }
    return out;
  }

  const JsonSchema& schema_;
  std::size_t steps_ = 0;
  const char* ended_ = nullptr;
};

std::vector<SchemaMismatch> JsonSchema::check(const json::value& value) const { return SchemaCheck(*this).run(value); }

std::string describe(std::span<const SchemaMismatch> mismatches) {
  std::string out;
  for (const SchemaMismatch& mismatch : mismatches) {
    out += out.empty() ? "" : "\n";
    if (!mismatch.pointer.empty()) out += mismatch.pointer + ": ";
    out += mismatch.message;
  }
  return out;
}

}  // namespace stint::driver
