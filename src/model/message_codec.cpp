#include "model/message_codec.hpp"

#include "model/json.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace stint::model {
namespace {

constexpr std::int64_t kMessageVersion = 1;

std::unexpected<Error> wrong(std::string_view field, std::string_view what) {
  return fail(Errc::invalid, "a stored message: " + one_line(field, 100) + ": " + std::string(what));
}

Result<> only(const json::object& object, std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : object) {
    if (std::ranges::find(names, std::string_view(name)) == names.end()) {
      return wrong(name, "unknown field, written by a newer version: upgrade this node");
    }
  }
  return {};
}

Result<std::string> stored_text(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return wrong(name, "must be a string");
  return std::string(text_at(object, name));
}

json::value stored_block(const Block& block) {
  if (const auto* const text = std::get_if<TextBlock>(&block)) return {{"type", "text"}, {"text", text->text}};
  if (const auto* const call = std::get_if<ToolCall>(&block)) {
    return {{"type", "tool_call"}, {"id", call->id}, {"name", call->name}, {"arguments", call->arguments}};
  }
  if (const auto* const result = std::get_if<ToolResult>(&block)) {
    return {
        {"type", "tool_result"}, {"call", result->call}, {"content", result->content}, {"is_error", result->is_error}};
  }
  const auto& opaque = std::get<OpaqueBlock>(block);
  return {{"type", "opaque"}, {"dialect", to_string(opaque.dialect)}, {"json", opaque.json}};
}

Result<Block> read_tool_call(const json::object& object) {
  STINT_CHECK(only(object, {"type", "id", "name", "arguments"}));
  ToolCall call;
  STINT_TRY(call.id, stored_text(object, "id"));
  STINT_TRY(call.name, stored_text(object, "name"));
  STINT_TRY(call.arguments, stored_text(object, "arguments"));
  if (!parse_object(call.arguments)) return wrong("arguments", "must be a JSON object as text");
  return call;
}

Result<Block> read_tool_result(const json::object& object) {
  STINT_CHECK(only(object, {"type", "call", "content", "is_error"}));
  ToolResult result;
  STINT_TRY(result.call, stored_text(object, "call"));
  STINT_TRY(result.content, stored_text(object, "content"));
  const json::value* const is_error = object.if_contains("is_error");
  if (is_error == nullptr || !is_error->is_bool()) return wrong("is_error", "must be true or false");
  result.is_error = is_error->get_bool();
  return result;
}

Result<Block> read_opaque(const json::object& object) {
  STINT_CHECK(only(object, {"type", "dialect", "json"}));
  STINT_TRY(const std::string name, stored_text(object, "dialect"));
  const std::optional<Dialect> dialect = parse_dialect(name);
  if (!dialect) return wrong("dialect", "unknown dialect '" + one_line(name, 100) + "': upgrade this node");
  OpaqueBlock opaque{.dialect = *dialect, .json = {}};
  STINT_TRY(opaque.json, stored_text(object, "json"));
  return opaque;
}

Result<Block> read_block(const json::value& value) {
  const json::object* const object = value.if_object();
  if (object == nullptr) return wrong("content", "each block must be an object");
  STINT_TRY(const std::string type, stored_text(*object, "type"));
  if (type == "text") {
    STINT_CHECK(only(*object, {"type", "text"}));
    STINT_TRY(std::string text, stored_text(*object, "text"));
    return TextBlock{std::move(text)};
  }
  if (type == "tool_call") return read_tool_call(*object);
  if (type == "tool_result") return read_tool_result(*object);
  if (type == "opaque") return read_opaque(*object);
  return wrong("type", "unknown block '" + one_line(type, 100) + "', written by a newer version: upgrade this node");
}

}  // namespace

std::string to_json(const Message& message) {
  json::array content;
  for (const Block& block : message.content) content.push_back(stored_block(block));
  const json::object out{
      {"version", kMessageVersion}, {"role", to_string(message.role)}, {"content", std::move(content)}};
  return valid_utf8(write_json(out));
}

Result<Message> read_message(std::string_view text) {
  const std::optional<json::object> object = parse_object(text);
  if (!object) return wrong("text", "is not a JSON object");
  const auto version = count_at(*object, "version");
  if (!version) return wrong("version", "must be a number");
  if (*version != kMessageVersion) {
    return wrong("version", std::to_string(*version) + " is not known here: upgrade this node");
  }
  STINT_CHECK(only(*object, {"version", "role", "content"}));
  STINT_TRY(const std::string role, stored_text(*object, "role"));
  if (role != "user" && role != "assistant") return wrong("role", "must be user or assistant");
  const json::array* const content = array_at(*object, "content");
  if (content == nullptr) return wrong("content", "must be a list");
  Message message{.role = role == "user" ? Role::user : Role::assistant, .content = {}};
  for (const json::value& each : *content) {
    STINT_TRY(Block block, read_block(each));
    message.content.push_back(std::move(block));
  }
  return message;
}

}  // namespace stint::model
