#include "http/request.hpp"

#include "http/text.hpp"

namespace stint::http {

std::optional<std::string_view> Request::header(std::string_view name) const noexcept {
  for (const Field& field : headers) {
    if (equal_nocase(field.name, name)) return field.value;
  }
  return std::nullopt;
}

std::optional<std::string_view> Request::parameter(std::string_view name) const noexcept {
  for (const Field& field : parts.query) {
    if (field.name == name) return field.value;
  }
  return std::nullopt;
}

std::optional<std::string_view> Request::bearer() const noexcept {
  constexpr std::string_view kScheme = "Bearer ";
  const auto value = header("authorization");
  if (!value || !starts_with_nocase(*value, kScheme)) return std::nullopt;
  std::string_view token = value->substr(kScheme.size());
  while (token.starts_with(' ')) token.remove_prefix(1);
  return token;
}

void Request::clear() {
  method = target = host = {};
  parts.authority = parts.path = {};
  parts.segments.clear();
  parts.query.clear();
  headers.clear();
  if (body.capacity() > kKeptBytesMax) std::string().swap(body);  // an assignment would keep its memory
  body.clear();
  text_.clear();
  decoded_.clear();
  version = 11;
  keep_alive = has_body = expects_continue = false;
}

}  // namespace stint::http
