#include "model/json.hpp"

#include "agent/text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cctype>

namespace stint::model {
namespace {

constexpr std::int64_t kCountMax = std::int64_t{1} << 48;  // as in a budget: a larger number is an error
constexpr std::string_view kCut = "…";

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }
int lower_of(char c) { return std::tolower(static_cast<unsigned char>(c)); }

}  // namespace

std::optional<json::value> parse_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  options.allow_invalid_utf8 = true;
  boost::system::error_code error;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return std::nullopt;
  return value;
}

std::optional<json::object> parse_object(std::string_view text) {
  std::optional<json::value> value = parse_json(text);
  if (!value || !value->is_object()) return std::nullopt;
  return std::move(value->get_object());
}

std::string write_json(const json::value& value) { return json::serialize(value); }

std::string_view text_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}
const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}
const json::array* array_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}
bool truth_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}
std::optional<std::int64_t> count_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double real = value->to_number<double>();
  if (!(real >= 0 && real < static_cast<double>(kCountMax))) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (const std::optional<std::size_t> at = agent::utf8_error(text)) {
    out.append(text.substr(0, *at)).append("\xEF\xBF\xBD");
    text.remove_prefix(*at + 1);
  }
  return out.append(text);
}

std::string one_line(std::string_view text, std::size_t most) {
  std::string out = valid_utf8(text.substr(0, most + kCut.size()));
  std::ranges::replace_if(out, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7F'; }, ' ');
  if (text.size() > most || out.size() > most) {
    std::size_t size = std::min(out.size(), most - kCut.size());
    while (size > 0 && is_continuation(out[size])) --size;
    out.resize(size);
    out += kCut;
  }
  const std::size_t first = std::min(out.find_first_not_of(' '), out.size());
  return out.substr(first, out.find_last_not_of(' ') + 1 - first);
}

bool contains(std::string_view text, std::string_view part) {
  return !std::ranges::search(text, part, [](char a, char b) { return lower_of(a) == lower_of(b); }).empty();
}

}  // namespace stint::model
