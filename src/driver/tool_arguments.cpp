#include "driver/tool_arguments.hpp"

#include "agent/template.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace stint::driver {
namespace {

std::string plain_text(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_double()) return fmt::format("{}", value.get_double());  // 1.5, not 1.5E0
  return value.is_null() ? "" : json::serialize(value);
}

Result<std::string> render_one(const std::string& text, const domain::ArgumentValues& values) {
  const auto parsed = agent::Template::parse(text);
  if (!parsed) return fail(Errc::invalid, "the template is wrong: " + parsed.error().message);
  return parsed->render(values);
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out;
}

/// Path segments that lead to another folder.
std::size_t dot_segments(std::string_view url) {
  std::size_t count = 0;
  url = url.substr(0, url.find_first_of("?#"));
  while (!url.empty()) {
    const std::size_t end = std::min(url.find('/'), url.size());
    const std::string_view segment = url.substr(0, end);
    count += segment == "." || segment == ".." ? 1 : 0;
    url.remove_prefix(std::min(end + 1, url.size()));
  }
  return count;
}

}  // namespace

Result<json::object> parse_arguments(std::string_view text) {
  if (text.size() > kArgumentBytesMax) {
    return fail(Errc::invalid, fmt::format("arguments of {} bytes; at most {}", text.size(), kArgumentBytesMax));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return json::object();
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) return fail(Errc::invalid, "the arguments are not JSON: " + error.message());
  if (!value.is_object()) return fail(Errc::invalid, "the arguments must be a JSON object");
  return std::move(value.get_object());
}

domain::ArgumentValues argument_values(const json::object& arguments) {
  domain::ArgumentValues out;
  for (const auto& member : arguments) {
    if (member.value().is_null()) continue;
    std::vector<std::string>& values = out[std::string(member.key())];
    if (const auto* const list = member.value().if_array()) {
      for (const json::value& item : *list) values.push_back(plain_text(item));
    } else {
      values.push_back(plain_text(member.value()));
    }
  }
  return out;
}

Result<std::vector<std::string>> render_argv(const std::vector<std::string>& command, const json::object& arguments) {
  const domain::ArgumentValues values = argument_values(arguments);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < command.size(); ++i) {
    STINT_TRY(std::string word, i == 0 ? Result<std::string>(command[0]) : render_one(command[i], values));
    if (word.find('\0') != std::string::npos) return fail(Errc::invalid, "an argument with a null byte");
    if (word.size() >= kWordBytesMax) {
      return fail(Errc::invalid, fmt::format("an argument of {} bytes; at most {}", word.size(), kWordBytesMax - 1));
    }
    out.push_back(std::move(word));
  }
  return out;
}

Result<std::string> render_url(const std::string& url, const json::object& arguments) {
  domain::ArgumentValues values = argument_values(arguments);
  for (auto& [name, list] : values) {
    std::string all;
    for (const std::string& value : list) all += (all.empty() ? "" : ",") + percent_encoded(value);
    list = {std::move(all)};
  }
  STINT_TRY(std::string out, render_one(url, values));
  if (dot_segments(out) != dot_segments(url)) return fail(Errc::invalid, "an argument that is a folder, '.' or '..'");
  return out;
}

Result<std::string> render_header(const std::string& value, const json::object& arguments) {
  STINT_TRY(std::string text, render_one(value, argument_values(arguments)));
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      return fail(Errc::invalid, "a header with a control character");
  }
  return text;
}

}  // namespace stint::driver
