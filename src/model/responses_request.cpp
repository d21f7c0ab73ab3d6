// OpenAI Responses: POST /v1/responses. Nothing is stored at the provider: each request carries the whole conversation,
// and reasoning comes back encrypted, to be sent again.
#include "model/dialects.hpp"
#include "model/openai_schema.hpp"

#include <boost/json/value.hpp>

#include <algorithm>
#include <array>

namespace stint::model {
namespace {

/// Models from before reasoning refuse a request that includes it; no further ones will be of this kind.
bool may_reason(std::string_view model) {
  constexpr std::array<std::string_view, 3> kOlder{"gpt-3", "gpt-4", "chatgpt-4"};
  return std::ranges::none_of(kOlder, [model](std::string_view prefix) { return model.starts_with(prefix); });
}

void add_input_items(const Message& message, json::array& out) {
  const bool is_user = message.role == Role::user;
  for (const Block& block : message.content) {
    if (const auto* const text = std::get_if<TextBlock>(&block)) {
      if (text->text.empty()) continue;
      json::object part{{"type", is_user ? "input_text" : "output_text"}, {"text", text->text}};
      out.push_back(
          {{"type", "message"}, {"role", to_string(message.role)}, {"content", json::array{std::move(part)}}});
    } else if (const auto* const call = std::get_if<ToolCall>(&block)) {
      out.push_back({{"type", "function_call"},
                     {"call_id", call->id},
                     {"name", call->name},
                     {"arguments", write_json(arguments_of(*call))}});
    } else if (const auto* const result = std::get_if<ToolResult>(&block)) {
      const std::string output = (result->is_error ? "error: " : "") + result->content;
      out.push_back({{"type", "function_call_output"}, {"call_id", result->call}, {"output", output}});
    } else if (const auto& opaque = std::get<OpaqueBlock>(block); opaque.dialect == Dialect::responses) {
      if (auto item = parse_json(opaque.json)) out.push_back(std::move(*item));
    }
  }
}

Result<> add_response_tools(const ModelRequest& request, json::object& body) {
  if (request.tools.empty()) return {};
  json::array tools;
  for (const ToolDefinition& tool : request.tools) {
    STINT_TRY(json::object schema, required_object(tool.input_schema, "the input schema of the tool " + tool.name));
    tools.push_back({{"type", "function"},
                     {"name", tool.name},
                     {"description", tool.description},
                     {"parameters", std::move(schema)},
                     {"strict", false}});
  }
  body["tools"] = std::move(tools);
  body["parallel_tool_calls"] = request.parallel_calls;
  return {};
}

}  // namespace

namespace responses {

Result<HttpRequest> write(const ModelRequest& request) {
  json::object body{{"model", request.model}, {"stream", true}, {"store", false}};
  if (!request.compatible_server) body["stream_options"] = {{"include_obfuscation", false}};  // saves bytes
  if (!request.compatible_server && may_reason(request.model)) {
    body["include"] = json::array{"reasoning.encrypted_content"};
  }
  if (!request.system.empty()) body["instructions"] = request.system;
  json::array input;
  for (const Message& message : request.messages) add_input_items(message, input);
  body["input"] = std::move(input);
  if (request.output_tokens_max) body["max_output_tokens"] = *request.output_tokens_max;
  STINT_CHECK(add_response_tools(request, body));
  if (request.output_schema) {
    STINT_TRY(json::object schema, required_object(*request.output_schema, "the output schema"));
    const bool is_strict = openai::is_strict_schema(schema);
    json::object format{
        {"type", "json_schema"}, {"name", openai::kOutputName}, {"strict", is_strict}, {"schema", std::move(schema)}};
    body["text"] = {{"format", std::move(format)}};
  }
  return HttpRequest{.path = "/v1/responses", .headers = {}, .body = valid_utf8(write_json(body))};
}

}  // namespace responses
}  // namespace stint::model
