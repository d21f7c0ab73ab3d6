#include "model/openai_schema.hpp"

#include "model/failure.hpp"

#include <algorithm>
#include <array>

namespace stint::model::openai {
namespace {

constexpr std::array<std::string_view, 9> kNotStrict{
    "oneOf", "allOf", "not", "if", "then", "else", "patternProperties", "dependentRequired", "dependentSchemas"};

bool is_strict_object(const json::object& schema) {
  const json::value* const others = schema.if_contains("additionalProperties");
  if (others == nullptr || !others->is_bool() || others->get_bool()) return false;
  const json::object* const properties = object_at(schema, "properties");
  if (properties == nullptr) return true;
  const json::array* const required = array_at(schema, "required");
  return std::ranges::all_of(*properties, [required](const auto& property) {
    return required != nullptr && std::ranges::any_of(*required, [&](const json::value& name) {
             return name.is_string() && name.get_string() == property.key();
           });
  });
}

bool are_strict(const json::object* schemas) {
  return schemas == nullptr ||
         std::ranges::all_of(*schemas, [](const auto& each) { return is_strict_schema(each.value()); });
}

/// The status that a code or a type stands for, inside a stream.
int openai_status(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, int>, 11> kWords{{{"rate_limit_exceeded", 429},
                                                                     {"requests", 429},
                                                                     {"tokens", 429},
                                                                     {"server_error", 500},
                                                                     {"server_is_overloaded", 503},
                                                                     {"slow_down", 503},
                                                                     {"unavailable_error", 503},
                                                                     {"invalid_api_key", 401},
                                                                     {"model_not_found", 404},
                                                                     {"invalid_prompt", 400},
                                                                     {"invalid_request_error", 400}}};
  const auto* const found = std::ranges::find(kWords, word, &std::pair<std::string_view, int>::first);
  return found == kWords.end() ? 0 : found->second;
}

std::optional<FailureKind> openai_kind(const ErrorNote& note, std::string_view type, std::string_view code) {
  for (const std::string_view word : {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}) {
    if (type == word || code == word) return FailureKind::spend_limit;
  }
  if (code == "context_length_exceeded" || type == "exceed_context_size_error" ||
      contains(note.message, "maximum context length") || contains(note.message, "exceeds the context window") ||
      contains(note.message, "exceeds the available context size")) {
    return FailureKind::context_too_long;
  }
  if (code == "server_is_overloaded" || code == "slow_down") return FailureKind::overload;
  if (code == "model_not_found") return FailureKind::not_found;
  if (code == "invalid_api_key") return FailureKind::auth;
  return std::nullopt;
}

}  // namespace

bool is_strict_schema(const json::value& schema) {
  const json::object* const object = schema.if_object();
  if (object == nullptr) return false;
  if (std::ranges::any_of(kNotStrict, [object](std::string_view word) { return object->contains(word); })) return false;
  if ((text_at(*object, "type") == "object" || object->contains("properties")) && !is_strict_object(*object)) {
    return false;
  }
  const json::value* const items = object->if_contains("items");
  if (items != nullptr && !is_strict_schema(*items)) return false;
  const json::array* const any_of = array_at(*object, "anyOf");
  if (any_of != nullptr && !std::ranges::all_of(*any_of, is_strict_schema)) return false;
  return are_strict(object_at(*object, "properties")) && are_strict(object_at(*object, "$defs")) &&
         are_strict(object_at(*object, "definitions"));
}

ErrorNote read_error(const json::value& body) {
  ErrorNote note;
  const json::object* outer = body.if_object();
  if (outer == nullptr) return note;
  if (const json::object* const inner = object_at(*outer, "error")) outer = inner;
  note.message = text_at(*outer, "message");
  if (note.message.empty()) note.message = text_at(*outer, "error");  // Ollama: only a text
  const std::string_view type = text_at(*outer, "type"), code = text_at(*outer, "code");
  note.code = code.empty() ? type : code;
  note.status = openai_status(code);
  if (note.status == 0) note.status = openai_status(type);
  if (const auto status = count_at(*outer, "code"); status && *status >= 400 && *status <= 599) {
    note.status = static_cast<int>(*status);  // llama.cpp and vLLM
  }
  note.kind = openai_kind(note, type, code);
  return note;
}

}  // namespace stint::model::openai
