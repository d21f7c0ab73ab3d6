// Gemini: POST /v1beta/models/NAME:streamGenerateContent?alt=sse.
//
// A JSON Schema for the answer is a setting of the answer; with tools most models refuse that setting, so that it
// becomes a function, one of which the model must call.
#include "model/dialects.hpp"
#include "model/gemini_parts.hpp"

#include <boost/json/value.hpp>

#include <algorithm>

namespace stint::model {
namespace {

/// The call that a result answers: the last one of that id before it.
const ToolCall* answered_call(const ModelRequest& request, const Message& until, std::string_view id) {
  const ToolCall* found = nullptr;
  for (const Message& message : request.messages) {
    if (&message == &until) break;
    for (const Block& block : message.content) {
      const auto* const call = std::get_if<ToolCall>(&block);
      if (call != nullptr && call->id == id) found = call;
    }
  }
  return found;
}

void put_gemini_id(json::object& function, std::string_view id) {
  if (!id.starts_with(kOwnCallId)) function["id"] = id;  // ours mean nothing there: it pairs by order
}

json::object gemini_result(const ModelRequest& request, const Message& message, const ToolResult& result) {
  const ToolCall* const call = answered_call(request, message, result.call);
  json::object response{{result.is_error ? "error" : "output", result.content}};
  json::object function{{"name", call == nullptr ? std::string() : call->name}, {"response", std::move(response)}};
  put_gemini_id(function, result.call);
  return {{"functionResponse", std::move(function)}};
}

json::array gemini_message(const ModelRequest& request, const Message& message) {
  json::array parts;
  std::optional<json::value> signature;  // of the part that follows
  const auto add = [&](json::object part) {
    if (signature) part[gemini::kSignature] = *std::exchange(signature, std::nullopt);
    parts.push_back(std::move(part));
  };
  for (const Block& block : message.content) {
    if (const auto* const text = std::get_if<TextBlock>(&block)) {
      if (!text->text.empty()) add({{"text", text->text}});
    } else if (const auto* const call = std::get_if<ToolCall>(&block)) {
      json::object function{{"name", call->name}, {"args", arguments_of(*call)}};
      put_gemini_id(function, call->id);
      add({{"functionCall", std::move(function)}});
    } else if (const auto* const result = std::get_if<ToolResult>(&block)) {
      add(gemini_result(request, message, *result));
    } else if (const auto& opaque = std::get<OpaqueBlock>(block); opaque.dialect == Dialect::gemini) {
      std::optional<json::object> part = parse_object(opaque.json);
      if (!part) continue;
      if (part->size() == 1 && part->contains(gemini::kSignature)) {
        signature = part->at(gemini::kSignature);
      } else {
        parts.push_back(std::move(*part));
      }
    }
  }
  return parts;
}

Result<json::array> gemini_functions(const ModelRequest& request) {
  json::array functions;
  for (const ToolDefinition& tool : request.tools) {
    STINT_TRY(json::object schema, required_object(tool.input_schema, "the input schema of the tool " + tool.name));
    functions.push_back(
        {{"name", tool.name}, {"description", tool.description}, {"parametersJsonSchema", std::move(schema)}});
  }
  return functions;
}

Result<> add_gemini_output(const ModelRequest& request, json::object& config, json::array& functions) {
  if (!request.output_schema) return {};
  STINT_TRY(json::object schema, required_object(*request.output_schema, "the output schema"));
  if (functions.empty()) {
    config["responseMimeType"] = "application/json";
    config["responseJsonSchema"] = std::move(schema);
    return {};
  }
  functions.push_back({{"name", kOutputTool},
                       {"description", "Gives the final answer. Call it once, when the work is done."},
                       {"parametersJsonSchema", std::move(schema)}});
  return {};
}

/// A name in a path: what could end its segment is percent-encoded. Tuned models have a slash, which stays.
std::string path_of_model(std::string_view name) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  if (name.starts_with("models/")) name.remove_prefix(7);
  std::string out = "/v1beta/models/";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-_./").find(c) != std::string_view::npos;
    if (is_plain) {
      out += c;
    } else {
      out.append("%").append(1, kHex[byte >> 4U]).append(1, kHex[byte & 15U]);
    }
  }
  return out;
}

}  // namespace

namespace gemini {

Result<HttpRequest> write(const ModelRequest& request) {
  json::object body;
  if (!request.system.empty()) {
    json::object part{{"text", request.system}};
    body["systemInstruction"] = {{"parts", json::array{std::move(part)}}};
  }
  json::array contents;
  for (const Message& message : request.messages) {
    json::array parts = gemini_message(request, message);
    if (parts.empty()) continue;
    contents.push_back({{"role", message.role == Role::user ? "user" : "model"}, {"parts", std::move(parts)}});
  }
  body["contents"] = std::move(contents);
  json::object config;
  if (request.output_tokens_max) config["maxOutputTokens"] = *request.output_tokens_max;
  STINT_TRY(json::array functions, gemini_functions(request));
  STINT_CHECK(add_gemini_output(request, config, functions));
  if (functions.size() > request.tools.size()) {
    body["toolConfig"] = {{"functionCallingConfig", {{"mode", "ANY"}}}};
  }
  if (!functions.empty()) {
    json::object declared{{"functionDeclarations", std::move(functions)}};
    body["tools"] = json::array{std::move(declared)};
  }
  if (!config.empty()) body["generationConfig"] = std::move(config);
  return HttpRequest{.path = path_of_model(request.model) + ":streamGenerateContent?alt=sse",
                     .headers = {},
                     .body = valid_utf8(write_json(body))};
}

}  // namespace gemini
}  // namespace stint::model
