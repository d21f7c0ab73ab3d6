#include "model/dialect.hpp"

#include "model/conversation.hpp"
#include "model/dialects.hpp"
#include "stint/assert.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace stint::model {
namespace {

bool same_name(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

Result<> check_request(const ModelRequest& request) {
  if (request.model.empty()) return fail(Errc::invalid, "a model call needs the name of a model");
  if (request.messages.empty()) return fail(Errc::invalid, "a model call needs at least one message");
  if (request.output_tokens_max == 0) return fail(Errc::invalid, "the bound of output tokens must be at least 1");
  std::set<std::string_view> names;
  for (const ToolDefinition& tool : request.tools) {
    if (tool.name.empty()) return fail(Errc::invalid, "a tool needs a name");
    if (tool.name == kOutputTool) {
      return fail(Errc::invalid, "the tool name " + tool.name + " is reserved: choose another one");
    }
    if (!names.insert(tool.name).second) {
      return fail(Errc::invalid, "two tools are named " + one_line(tool.name, 100) + ": rename one");
    }
  }
  return {};
}

/// The first segment of a path like `/v1/messages`, if it is a version.
std::string_view version_of(std::string_view path) {
  if (!path.starts_with("/v") || path.size() < 3 || std::isdigit(static_cast<unsigned char>(path[2])) == 0) return {};
  return path.substr(0, path.find('/', 1));
}

}  // namespace

const DialectParts& parts_of(Dialect dialect) noexcept {
  switch (dialect) {
    case Dialect::anthropic: return kAnthropicParts;
    case Dialect::chat: return kChatParts;
    case Dialect::responses: return kResponsesParts;
    case Dialect::gemini: return kGeminiParts;
  }
  STINT_ASSERT(false);
}

std::string_view to_string(Dialect dialect) noexcept { return parts_of(dialect).name; }

std::optional<Dialect> parse_dialect(std::string_view name) noexcept {
  for (const Dialect dialect : kDialects) {
    if (to_string(dialect) == name) return dialect;
  }
  return std::nullopt;
}

std::optional<std::string_view> header(const Headers& headers, std::string_view name) noexcept {
  const auto found = std::ranges::find_if(headers, [name](const auto& each) { return same_name(each.first, name); });
  return found == headers.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

Result<HttpRequest> write_request(Dialect dialect, const ModelRequest& request) {
  STINT_CHECK(check_request(request));
  STINT_TRY(HttpRequest out, parts_of(dialect).write(request));
  out.headers.emplace_back("content-type", "application/json");
  out.headers.emplace_back("accept", "text/event-stream");
  return out;
}

std::pair<std::string, std::string> credential(Dialect dialect, std::string_view key) {
  const DialectParts& parts = parts_of(dialect);
  return {std::string(parts.key_header), std::string(parts.key_prefix).append(key)};
}

std::string request_url(std::string_view base, std::string_view path) {
  while (base.ends_with('/')) base.remove_suffix(1);
  const std::string_view version = version_of(path);
  if (!version.empty() && base.ends_with(version)) path.remove_prefix(version.size());
  return std::string(base).append(path);
}

std::optional<Dialect> dialect_of_path(std::string_view path) noexcept {
  path = path.substr(0, path.find('?'));
  for (const Dialect dialect : kDialects) {
    if (parts_of(dialect).answers(path)) return dialect;
  }
  return std::nullopt;
}

Result<json::object> required_object(std::string_view text, std::string_view what) {
  std::optional<json::object> object = parse_object(text);
  if (!object) return fail(Errc::invalid, std::string(what) + " is not a JSON object");
  return std::move(*object);
}

json::object arguments_of(const ToolCall& call) { return parse_object(call.arguments).value_or(json::object()); }

}  // namespace stint::model
