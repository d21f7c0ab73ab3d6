#include "wire/log_line.hpp"

#include "wire/time_text.hpp"
#include "wire/values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stint::wire {
namespace {

/// One value, in quotes if it has spaces, quotes or control characters.
std::string value_text(const std::string& value) {
  const bool plain = std::ranges::none_of(value, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte == 0x7F || byte >= 0x80 || c == '"' || c == '=';
  });
  return plain ? value : json::serialize(text_value(value));
}

}  // namespace

std::string to_json(const LogLine& line) {
  json::object object{{"time", time_text(line.at)}, {"level", to_string(line.level)}, {"event", text_value(line.what)}};
  for (const domain::LogField& field : line.fields) {
    if (field.value.empty()) continue;
    object[field.name] = field.is_number ? json::parse(field.value) : json::value(text_value(field.value));
  }
  return json::serialize(object);
}

std::string to_text(const LogLine& line) {
  std::string text = fmt::format("{} {:7} {}", time_text(line.at), to_string(line.level), line.what);
  for (const domain::LogField& field : line.fields) {
    if (!field.value.empty()) text += fmt::format(" {}={}", field.name, value_text(field.value));
  }
  return text;
}

}  // namespace stint::wire
