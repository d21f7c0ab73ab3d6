// What each dialect sends.
#include "model/conversation.hpp"
#include "model/json.hpp"
#include "model/openai_schema.hpp"

#include <gtest/gtest.h>

namespace stint::model {
namespace {

constexpr const char* kPathSchema = R"({"type":"object","properties":{"path":{"type":"string"}},"required":["path"]})";
constexpr const char* kStrictSchema =
    R"({"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false})";

/// A turn with everything in it: text, a call, opaque blocks of two dialects, and the result.
ModelRequest whole_request() {
  ModelRequest request;
  request.model = "m-1";
  request.system = "Be brief.";
  request.messages = {
      {.role = Role::user, .content = {TextBlock{"Read a."}}},
      {.role = Role::assistant,
       .content = {OpaqueBlock{.dialect = Dialect::anthropic,
                               .json = R"({"type":"thinking","thinking":"t","signature":"s"})"},
                   OpaqueBlock{.dialect = Dialect::responses, .json = R"({"type":"reasoning","id":"rs_1"})"},
                   TextBlock{"Reading."},
                   OpaqueBlock{.dialect = Dialect::gemini, .json = R"({"thoughtSignature":"g"})"},
                   ToolCall{.id = "call_1", .name = "read", .arguments = R"({"path":"a"})"}}},
      {.role = Role::user,
       .content = {TextBlock{"Go on."}, ToolResult{.call = "call_1", .content = "four", .is_error = true}}}};
  request.tools = {{.name = "read", .description = "Reads a file.", .input_schema = kPathSchema}};
  request.output_tokens_max = 100;
  return request;
}

std::string body_of(Dialect dialect, const ModelRequest& request) {
  const Result<HttpRequest> written = write_request(dialect, request);
  EXPECT_TRUE(written) << written.error().describe();
  return written->body;
}
json::object object_of(Dialect dialect, const ModelRequest& request) {
  return *parse_object(body_of(dialect, request));
}
std::string part_of(const json::object& object, std::string_view pointer) {
  boost::system::error_code error;
  const json::value whole(object);
  const json::value* const found = whole.find_pointer(json::string_view(pointer.data(), pointer.size()), error);
  return found == nullptr ? "nothing" : write_json(*found);
}

TEST(ModelRequest, anthropic) {
  ModelRequest request = whole_request();
  request.cached = false;
  EXPECT_EQ(
      body_of(Dialect::anthropic, request),
      R"({"model":"m-1","max_tokens":100,"stream":true,"system":[{"type":"text","text":"Be brief."}],)"
      R"("tools":[{"name":"read","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}],)"
      R"("tool_choice":{"type":"auto"},)"
      R"("messages":[{"role":"user","content":[{"type":"text","text":"Read a."}]},)"
      R"({"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"Reading."},)"
      R"({"type":"tool_use","id":"call_1","name":"read","input":{"path":"a"}}]},)"
      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"four","is_error":true},{"type":"text","text":"Go on."}]}]})");
  const HttpRequest written = write_request(Dialect::anthropic, request).value();
  EXPECT_EQ(written.path, "/v1/messages");
  EXPECT_EQ(header(written.headers, "Anthropic-Version"), "2023-06-01");
  EXPECT_EQ(header(written.headers, "Content-Type"), "application/json");
}

TEST(ModelRequest, anthropic_marks_the_prefix_for_its_cache) {
  const json::object body = object_of(Dialect::anthropic, whole_request());
  EXPECT_EQ(part_of(body, "/system/0/cache_control"), R"({"type":"ephemeral"})");
  EXPECT_EQ(part_of(body, "/messages/2/content/1/cache_control"), R"({"type":"ephemeral"})");
  EXPECT_EQ(part_of(body, "/messages/2/content/0/cache_control"), "nothing");
}

TEST(ModelRequest, anthropic_needs_a_bound_and_refuses_blank_text) {
  ModelRequest request = whole_request();
  request.output_tokens_max.reset();
  request.system = " ";
  request.messages.insert(request.messages.begin() + 1, Message{.role = Role::assistant, .content = {TextBlock{"\n"}}});
  const json::object body = object_of(Dialect::anthropic, request);
  EXPECT_EQ(part_of(body, "/max_tokens"), std::to_string(kOutputTokensUsual));
  EXPECT_EQ(part_of(body, "/system"), "nothing");
  EXPECT_EQ(body.at("messages").as_array().size(), 3U);
}

TEST(ModelRequest, chat) {
  EXPECT_EQ(
      body_of(Dialect::chat, whole_request()),
      R"({"model":"m-1","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be brief."},)"
      R"({"role":"user","content":"Read a."},{"role":"assistant","content":"Reading.","tool_calls":[{"id":"call_1","type":"function",)"
      R"("function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]},{"role":"tool","tool_call_id":"call_1","content":"error: four"},)"
      R"({"role":"user","content":"Go on."}],"max_completion_tokens":100,)"
      R"("tools":[{"type":"function","function":{"name":"read","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],)"
      R"("parallel_tool_calls":true})");
  ModelRequest request = whole_request();
  request.compatible_server = true;
  const json::object body = object_of(Dialect::chat, request);
  EXPECT_EQ(part_of(body, "/max_tokens"), "100");
  EXPECT_EQ(part_of(body, "/max_completion_tokens"), "nothing");
}

TEST(ModelRequest, responses) {
  ModelRequest request = whole_request();
  request.tools.clear();
  EXPECT_EQ(
      body_of(Dialect::responses, request),
      R"({"model":"m-1","stream":true,"store":false,"stream_options":{"include_obfuscation":false},"include":["reasoning.encrypted_content"],)"
      R"("instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Read a."}]},)"
      R"({"type":"reasoning","id":"rs_1"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Reading."}]},)"
      R"({"type":"function_call","call_id":"call_1","name":"read","arguments":"{\"path\":\"a\"}"},)"
      R"({"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]},)"
      R"({"type":"function_call_output","call_id":"call_1","output":"error: four"}],"max_output_tokens":100})");
  request.model = "gpt-4o-mini";
  EXPECT_EQ(part_of(object_of(Dialect::responses, request), "/include"), "nothing") << "it would be refused";
}

TEST(ModelRequest, gemini) {
  const HttpRequest written = write_request(Dialect::gemini, whole_request()).value();
  EXPECT_EQ(written.path, "/v1beta/models/m-1:streamGenerateContent?alt=sse");
  EXPECT_EQ(
      written.body,
      R"({"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Read a."}]},)"
      R"({"role":"model","parts":[{"text":"Reading."},{"functionCall":{"name":"read","args":{"path":"a"},"id":"call_1"},"thoughtSignature":"g"}]},)"
      R"({"role":"user","parts":[{"text":"Go on."},{"functionResponse":{"name":"read","response":{"error":"four"},"id":"call_1"}}]}],)"
      R"("tools":[{"functionDeclarations":[{"name":"read","description":"Reads a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}],)"
      R"("generationConfig":{"maxOutputTokens":100}})");
}

TEST(ModelRequest, gemini_pairs_calls_without_an_id_by_order) {
  ModelRequest request;
  request.model = "models/a b?";
  request.messages = {
      {.role = Role::assistant, .content = {ToolCall{.id = "stint-x-0", .name = "read", .arguments = "{}"}}},
      {.role = Role::user, .content = {ToolResult{.call = "stint-x-0", .content = "4", .is_error = false}}}};
  const json::object body = object_of(Dialect::gemini, request);
  EXPECT_EQ(part_of(body, "/contents/0/parts/0/functionCall"), R"({"name":"read","args":{}})");
  EXPECT_EQ(part_of(body, "/contents/1/parts/0/functionResponse"), R"({"name":"read","response":{"output":"4"}})");
  EXPECT_EQ(write_request(Dialect::gemini, request)->path, "/v1beta/models/a%20b%3F:streamGenerateContent?alt=sse");
}

TEST(ModelRequest, one_call_at_a_time) {
  ModelRequest request = whole_request();
  request.parallel_calls = false;
  EXPECT_EQ(part_of(object_of(Dialect::anthropic, request), "/tool_choice"),
            R"({"type":"auto","disable_parallel_tool_use":true})");
  EXPECT_EQ(part_of(object_of(Dialect::chat, request), "/parallel_tool_calls"), "false");
  EXPECT_EQ(part_of(object_of(Dialect::responses, request), "/parallel_tool_calls"), "false");
}

TEST(ModelRequest, an_answer_of_a_schema) {
  ModelRequest request = whole_request();
  request.output_schema = kStrictSchema;
  const json::object chat = object_of(Dialect::chat, request);
  EXPECT_EQ(part_of(chat, "/response_format/type"), "\"json_schema\"");
  EXPECT_EQ(part_of(chat, "/response_format/json_schema/schema"), kStrictSchema);
  EXPECT_EQ(part_of(chat, "/response_format/json_schema/strict"), "true");
  EXPECT_EQ(part_of(object_of(Dialect::responses, request), "/text/format/schema"), kStrictSchema);
  EXPECT_EQ(part_of(object_of(Dialect::anthropic, request), "/tool_choice"), R"({"type":"any"})");
  EXPECT_EQ(part_of(object_of(Dialect::anthropic, request), "/tools/1/input_schema"), kStrictSchema);
  const json::object gemini = object_of(Dialect::gemini, request);
  EXPECT_EQ(part_of(gemini, "/toolConfig/functionCallingConfig/mode"), "\"ANY\"");
  EXPECT_EQ(part_of(gemini, "/tools/0/functionDeclarations/1/parametersJsonSchema"), kStrictSchema);
  EXPECT_EQ(part_of(gemini, "/generationConfig/responseJsonSchema"), "nothing") << "most models refuse it with tools";

  request.tools.clear();
  EXPECT_EQ(part_of(object_of(Dialect::anthropic, request), "/tool_choice"),
            R"({"type":"tool","name":"stint_output"})");
  EXPECT_EQ(part_of(object_of(Dialect::gemini, request), "/generationConfig/responseJsonSchema"), kStrictSchema);
  request.output_schema = kPathSchema;
  EXPECT_EQ(part_of(object_of(Dialect::chat, request), "/response_format/json_schema/strict"), "false");
}

TEST(ModelRequest, strict_schemas) {
  const auto is_strict = [](std::string_view text) { return openai::is_strict_schema(*parse_json(text)); };
  EXPECT_TRUE(is_strict(kStrictSchema));
  EXPECT_TRUE(is_strict(R"({"type":"array","items":{"type":"string"}})"));
  EXPECT_FALSE(is_strict(kPathSchema)) << "it allows further properties";
  EXPECT_FALSE(is_strict(R"({"type":"object","properties":{"a":{}},"required":[],"additionalProperties":false})"));
  EXPECT_FALSE(is_strict(R"({"type":"array","items":{"type":"object","properties":{}}})"));
  EXPECT_FALSE(is_strict(R"({"oneOf":[]})"));
  EXPECT_FALSE(is_strict("true"));
}

TEST(ModelRequest, what_cannot_be_sent_is_refused) {
  const auto refusal = [](auto change) {
    ModelRequest request = whole_request();
    change(request);
    std::string texts;
    for (const Dialect dialect : kDialects) {
      const Result<HttpRequest> written = write_request(dialect, request);
      EXPECT_FALSE(written) << to_string(dialect);
      if (!written) texts += written.error().describe() + "\n";
    }
    return texts;
  };
  EXPECT_NE(refusal([](ModelRequest& request) { request.model = ""; }).find("model"), std::string::npos);
  EXPECT_NE(refusal([](ModelRequest& request) { request.messages.clear(); }).find("message"), std::string::npos);
  EXPECT_NE(refusal([](ModelRequest& request) { request.output_tokens_max = 0; }).find("at least 1"),
            std::string::npos);
  EXPECT_NE(refusal([](ModelRequest& request) { request.tools[0].input_schema = "[]"; }).find("tool read"),
            std::string::npos);
  EXPECT_NE(refusal([](ModelRequest& request) { request.output_schema = "{"; }).find("output schema"),
            std::string::npos);
  EXPECT_NE(refusal([](ModelRequest& request) { request.tools[0].name = kOutputTool; }).find("reserved"),
            std::string::npos);
  EXPECT_NE(refusal([](ModelRequest& request) { request.tools.push_back(request.tools[0]); }).find("two tools"),
            std::string::npos);
}

TEST(ModelRequest, bytes_that_are_not_text_are_replaced) {
  ModelRequest request;
  request.model = "m";
  request.messages = {{.role = Role::user, .content = {TextBlock{"a\xFFz"}}}};
  for (const Dialect dialect : kDialects) {
    EXPECT_NE(body_of(dialect, request).find("a\xEF\xBF\xBDz"), std::string::npos) << to_string(dialect);
  }
}

TEST(ModelRequest, keys_urls_and_paths) {
  EXPECT_EQ(credential(Dialect::anthropic, "k"), (std::pair<std::string, std::string>("x-api-key", "k")));
  EXPECT_EQ(credential(Dialect::chat, "k"), (std::pair<std::string, std::string>("authorization", "Bearer k")));
  EXPECT_EQ(credential(Dialect::responses, "k").second, "Bearer k");
  EXPECT_EQ(credential(Dialect::gemini, "k").first, "x-goog-api-key");
  EXPECT_EQ(request_url("https://api.example.com/", "/v1/messages"), "https://api.example.com/v1/messages");
  EXPECT_EQ(request_url("http://localhost:11434/v1", "/v1/chat/completions"),
            "http://localhost:11434/v1/chat/completions");
  EXPECT_EQ(request_url("https://gateway/openai", "/v1/responses"), "https://gateway/openai/v1/responses");
  EXPECT_EQ(dialect_of_path("/anthropic/v1/messages?beta=true"), Dialect::anthropic);
  EXPECT_EQ(dialect_of_path("/v1/chat/completions"), Dialect::chat);
  EXPECT_EQ(dialect_of_path("/v1/responses"), Dialect::responses);
  EXPECT_EQ(dialect_of_path("/v1beta/models/g:generateContent"), Dialect::gemini);
  EXPECT_EQ(dialect_of_path("/v1/messages/count_tokens"), std::nullopt);
  EXPECT_EQ(dialect_of_path("/v1/models"), std::nullopt);
  for (const Dialect dialect : kDialects) EXPECT_EQ(parse_dialect(to_string(dialect)), dialect);
  EXPECT_EQ(parse_dialect("other"), std::nullopt);
}

}  // namespace
}  // namespace stint::model
