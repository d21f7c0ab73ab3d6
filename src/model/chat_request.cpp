// OpenAI Chat Completions: POST /v1/chat/completions. Also the protocol of vLLM, llama.cpp, Ollama and most gateways.
#include "model/dialects.hpp"
#include "model/openai_schema.hpp"

#include <boost/json/value.hpp>

namespace stint::model {
namespace {

json::object chat_call(const ToolCall& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", write_json(arguments_of(call))}}}};
}

/// One message of ours is several of theirs: each result of a tool is a message.
void add_chat_messages(const Message& message, json::array& out) {
  std::string text;
  json::array calls;
  for (const Block& block : message.content) {
    if (const auto* const words = std::get_if<TextBlock>(&block)) {
      if (!text.empty() && !words->text.empty()) text += "\n";
      text += words->text;
    }
    if (const auto* const call = std::get_if<ToolCall>(&block)) calls.push_back(chat_call(*call));
    if (const auto* const result = std::get_if<ToolResult>(&block)) {
      // There is no field for a failure.
      const std::string content = (result->is_error ? "error: " : "") + result->content;
      out.push_back({{"role", "tool"}, {"tool_call_id", result->call}, {"content", content}});
    }
  }
  if (text.empty() && calls.empty()) return;
  json::object written{{"role", to_string(message.role)}, {"content", nullptr}};
  if (!text.empty()) written["content"] = std::move(text);
  if (!calls.empty()) written["tool_calls"] = std::move(calls);
  out.push_back(std::move(written));
}

Result<> add_chat_tools(const ModelRequest& request, json::object& body) {
  if (request.tools.empty()) return {};
  json::array tools;
  for (const ToolDefinition& tool : request.tools) {
    STINT_TRY(json::object schema, required_object(tool.input_schema, "the input schema of the tool " + tool.name));
    json::object function{{"name", tool.name}, {"description", tool.description}, {"parameters", std::move(schema)}};
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  body["tools"] = std::move(tools);
  body["parallel_tool_calls"] = request.parallel_calls;
  return {};
}

}  // namespace

namespace chat {

Result<HttpRequest> write(const ModelRequest& request) {
  json::object body{{"model", request.model}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
  json::array messages;
  if (!request.system.empty()) messages.push_back({{"role", "system"}, {"content", request.system}});
  for (const Message& message : request.messages) add_chat_messages(message, messages);
  body["messages"] = std::move(messages);
  if (request.output_tokens_max) {
    // The vendor's newer models refuse the old name, and some other servers know no other.
    body[request.compatible_server ? "max_tokens" : "max_completion_tokens"] = *request.output_tokens_max;
  }
  STINT_CHECK(add_chat_tools(request, body));
  if (request.output_schema) {
    STINT_TRY(json::object schema, required_object(*request.output_schema, "the output schema"));
    const bool is_strict = openai::is_strict_schema(schema);
    json::object format{{"name", openai::kOutputName}, {"strict", is_strict}, {"schema", std::move(schema)}};
    body["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(format)}};
  }
  return HttpRequest{.path = "/v1/chat/completions", .headers = {}, .body = valid_utf8(write_json(body))};
}

}  // namespace chat
}  // namespace stint::model
