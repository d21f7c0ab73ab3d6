#include "agent/fields.hpp"

#include "agent/quantity.hpp"
#include "agent/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::agent {
namespace {

bool is_scalar(const YamlNode& node) noexcept { return node.kind == YamlNode::Kind::scalar; }

}  // namespace

Fields::Fields(const YamlNode& map, std::string where, ProblemList& problems, bool any_case)
    : map_(map), where_(std::move(where)), problems_(problems), any_case_(any_case) {}

std::string Fields::path(std::string_view key) const {
  return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
}

const YamlNode* Fields::find(std::string_view key) {
  known_.emplace(key);
  if (const YamlNode* const exact = map_.find(key); exact != nullptr || !any_case_) return exact;
  for (const YamlNode& item : map_.items) {
    if (snake_case(item.key) == key) return &item;
  }
  return nullptr;
}

void Fields::expected(const YamlNode& node, std::string_view key, std::string_view what, std::string suggestion) {
  problems_.error(node.place, path(key), fmt::format("expected {}, found {}", what, node.found()),
                  std::move(suggestion));
}

std::optional<std::string> Fields::text(std::string_view key) {
  const YamlNode* const node = find(key);
  if (node == nullptr) return std::nullopt;
  if (is_scalar(*node)) return node->text;
  expected(*node, key, "text");
  return std::nullopt;
}

std::optional<bool> Fields::flag(std::string_view key) {
  const YamlNode* const node = find(key);
  if (node == nullptr) return std::nullopt;
  if (is_scalar(*node) && !node->quoted && (node->text == "true" || node->text == "false")) return node->text == "true";
  expected(*node, key, "true or false");
  return std::nullopt;
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t least, std::int64_t most,
                                            std::string_view hint) {
  const YamlNode* const node = find(key);
  if (node == nullptr) return std::nullopt;
  if (!is_scalar(*node) || node->quoted) {
    expected(*node, key, "a whole number", node->quoted ? "write it without quotes" : "");
    return std::nullopt;
  }
  const Result<std::int64_t> value = parse_integer(node->text, least, most);
  if (value) return *value;
  problems_.error(node->place, path(key), std::string(value.error().what()), std::string(hint));
  return std::nullopt;
}

template <class Parse>
std::optional<std::int64_t> Fields::amount(std::string_view key, std::string_view expectation, Parse parse) {
  const YamlNode* const node = find(key);
  if (node == nullptr) return std::nullopt;
  if (!is_scalar(*node)) {
    expected(*node, key, expectation);
    return std::nullopt;
  }
  const Result<std::int64_t> value = parse(node->text);
  if (value && *value > 0) return *value;
  problems_.error(
      node->place, path(key),
      value ? fmt::format("must be more than 0, found '{}'", node->text) : std::string(value.error().what()),
      "leave it out for no bound");
  return std::nullopt;
}

std::optional<Duration> Fields::duration(std::string_view key) {
  const auto value = amount(key, "a duration such as 20m", [](std::string_view text) -> Result<std::int64_t> {
    STINT_TRY(const Duration duration, parse_duration(text));
    return std::int64_t{duration.count()};
  });
  return value ? std::optional(Duration(*value)) : std::nullopt;
}
std::optional<std::int64_t> Fields::count(std::string_view key) {
  return amount(key, "a whole number such as 400k", parse_count);
}
std::optional<std::int64_t> Fields::bytes(std::string_view key) {
  return amount(key, "an amount of memory such as 4G", parse_bytes);
}
std::optional<std::int64_t> Fields::cost(std::string_view key) {
  return amount(key, "a cost such as 2.50", parse_cost);
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view key) {
  const YamlNode* const node = list(key);
  if (node == nullptr) return std::nullopt;
  std::vector<std::string> out;
  for (const YamlNode& item : node->items) {
    if (!is_scalar(item)) {
      expected(item, fmt::format("{}[{}]", key, out.size()), "text");
      return std::nullopt;
    }
    out.push_back(item.text);
  }
  return out;
}

std::optional<std::size_t> Fields::choice(std::string_view key, std::span<const std::string_view> words) {
  const YamlNode* const node = find(key);
  if (node == nullptr) return std::nullopt;
  if (is_scalar(*node)) {
    const auto found = std::ranges::find(words, node->text);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  }
  expected(*node, key, one_of(words), is_scalar(*node) ? did_you_mean(node->text, words) : "");
  return std::nullopt;
}

const YamlNode* Fields::list(std::string_view key) {
  const YamlNode* const node = find(key);
  if (node == nullptr || node->kind == YamlNode::Kind::list) return node;
  expected(*node, key, "a list", is_scalar(*node) ? fmt::format("write [{}]", excerpt(node->text)) : "");
  return nullptr;
}

const YamlNode* Fields::map(std::string_view key) {
  const YamlNode* const node = find(key);
  if (node == nullptr || node->kind == YamlNode::Kind::map) return node;
  expected(*node, key, "a mapping such as {name: value}");
  return nullptr;
}

void Fields::ignore(std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    ignored_.emplace(key);
    if (const auto asked = known_.find(key); asked != known_.end()) known_.erase(asked);
  }
}

void Fields::finish() {
  std::vector<std::string> candidates(known_.begin(), known_.end());
  candidates.insert(candidates.end(), ignored_.begin(), ignored_.end());
  for (const YamlNode& item : map_.items) {
    const std::string key = any_case_ ? snake_case(item.key) : item.key;
    if (known_.contains(key) || ignored_.contains(key)) continue;
    const std::string field = path(excerpt(item.key));
    std::optional<std::string> meant = closest(key, candidates);
    if (!meant && known_.contains(snake_case(key))) meant = snake_case(key);
    if (!meant) {
      problems_.warning(item.key_place, field, "unknown key, ignored");
    } else if (ignored_.contains(*meant)) {
      problems_.warning(item.key_place, field, "unknown key, ignored", fmt::format("did you mean '{}'?", *meant));
    } else {
      problems_.error(item.key_place, field, "unknown key", fmt::format("did you mean '{}'?", *meant));
    }
  }
}

}  // namespace stint::agent
