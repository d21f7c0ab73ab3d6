// Anthropic Messages: POST /v1/messages.
//
// A JSON Schema for the answer becomes a tool that the model must call: that works with every model and every server of
// this protocol. With other tools beside it the model must call one of them, and ends with ours.
#include "model/dialects.hpp"

#include <boost/json/value.hpp>

#include <algorithm>

namespace stint::model {
namespace {

constexpr std::string_view kAnthropicVersion = "2023-06-01";

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

/// Nothing: this protocol refuses it, or it belongs to another one.
std::optional<json::value> anthropic_block(const Block& block) {
  if (const auto* const text = std::get_if<TextBlock>(&block)) {
    if (is_blank(text->text)) return std::nullopt;
    return json::value{{"type", "text"}, {"text", text->text}};
  }
  if (const auto* const call = std::get_if<ToolCall>(&block)) {
    return json::value{{"type", "tool_use"}, {"id", call->id}, {"name", call->name}, {"input", arguments_of(*call)}};
  }
  if (const auto* const result = std::get_if<ToolResult>(&block)) {
    json::object out{{"type", "tool_result"}, {"tool_use_id", result->call}};
    if (!is_blank(result->content)) out["content"] = result->content;
    if (result->is_error) out["is_error"] = true;
    return out;
  }
  const auto& opaque = std::get<OpaqueBlock>(block);
  return opaque.dialect == Dialect::anthropic ? parse_json(opaque.json) : std::nullopt;
}

json::array anthropic_messages(const ModelRequest& request) {
  json::array messages;
  for (const Message& message : request.messages) {
    json::array content, texts;
    for (const Block& block : message.content) {
      std::optional<json::value> written = anthropic_block(block);
      if (!written) continue;
      // Results come first: text between a call and its result is refused.
      const bool is_late = message.role == Role::user && !std::holds_alternative<ToolResult>(block);
      (is_late ? texts : content).push_back(std::move(*written));
    }
    for (json::value& each : texts) content.push_back(std::move(each));
    if (content.empty()) continue;
    messages.push_back({{"role", to_string(message.role)}, {"content", std::move(content)}});
  }
  return messages;
}

json::object cache_mark() { return {{"type", "ephemeral"}}; }

/// The end of the conversation: the next request reads everything up to here from the cache.
void mark_last(json::array& messages) {
  if (messages.empty()) return;
  json::array& content = messages.back().as_object()["content"].as_array();
  json::object* const last = content.back().if_object();
  if (last == nullptr) return;
  const std::string_view type = text_at(*last, "type");
  if (type == "text" || type == "tool_result" || type == "tool_use") (*last)["cache_control"] = cache_mark();
}

Result<json::array> anthropic_tools(const ModelRequest& request) {
  json::array tools;
  for (const ToolDefinition& tool : request.tools) {
    STINT_TRY(json::object schema, required_object(tool.input_schema, "the input schema of the tool " + tool.name));
    tools.push_back({{"name", tool.name}, {"description", tool.description}, {"input_schema", std::move(schema)}});
  }
  if (request.output_schema) {
    STINT_TRY(json::object schema, required_object(*request.output_schema, "the output schema"));
    tools.push_back({{"name", kOutputTool},
                     {"description", "Gives the final answer. Call it once, when the work is done."},
                     {"input_schema", std::move(schema)}});
  }
  return tools;
}

json::object anthropic_choice(const ModelRequest& request) {
  json::object choice{{"type", "auto"}};
  if (request.output_schema) {
    choice =
        request.tools.empty() ? json::object{{"type", "tool"}, {"name", kOutputTool}} : json::object{{"type", "any"}};
  }
  if (!request.parallel_calls) choice["disable_parallel_tool_use"] = true;
  return choice;
}

}  // namespace

namespace anthropic {

Result<HttpRequest> write(const ModelRequest& request) {
  json::object body{{"model", request.model},
                    {"max_tokens", request.output_tokens_max.value_or(kOutputTokensUsual)},
                    {"stream", true}};
  if (!is_blank(request.system)) {
    json::object system{{"type", "text"}, {"text", request.system}};
    if (request.cached) system["cache_control"] = cache_mark();
    body["system"] = json::array{std::move(system)};
  }
  STINT_TRY(json::array tools, anthropic_tools(request));
  if (!tools.empty()) {
    body["tools"] = std::move(tools);
    body["tool_choice"] = anthropic_choice(request);
  }
  json::array messages = anthropic_messages(request);
  if (request.cached) mark_last(messages);
  body["messages"] = std::move(messages);
  return HttpRequest{.path = "/v1/messages",
                     .headers = {{"anthropic-version", std::string(kAnthropicVersion)}},
                     .body = valid_utf8(write_json(body))};
}

}  // namespace anthropic
}  // namespace stint::model
