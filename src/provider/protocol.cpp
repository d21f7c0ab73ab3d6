#include "provider/protocols.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stint::provider {
namespace {

constexpr std::size_t kDepthMax = 128;  // a tool's schema nests deeper than Boost's 32
constexpr std::array<std::string_view, 4> kModels{"simulated", "simulated-small", "claude-simulated", "gpt-simulated"};

json::object model(ModelForm form, std::string_view name) {
  switch (form) {
    case ModelForm::openai: return {{"id", name}, {"object", "model"}, {"created", 1767225600}, {"owned_by", "stint"}};
    case ModelForm::gemini:
      return {{"name", fmt::format("models/{}", name)},
              {"displayName", name},
              {"inputTokenLimit", 1'000'000},
              {"outputTokenLimit", Reply::kTokensMax},
              {"supportedGenerationMethods", json::array{"generateContent", "countTokens"}}};
    case ModelForm::anthropic: break;
  }
  return {{"type", "model"}, {"id", name}, {"display_name", name}, {"created_at", "2026-01-01T00:00:00Z"}};
}

}  // namespace

std::string_view to_string(Protocol protocol) noexcept {
  switch (protocol) {
    case Protocol::messages: return "messages";
    case Protocol::chat: return "chat";
    case Protocol::responses: return "responses";
    case Protocol::gemini: return "gemini";
  }
  return "unknown";
}

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}
bool bool_at(const json::object& object, std::string_view key, bool otherwise) {
  const json::value* const value = object.if_contains(key);
  return value != nullptr && value->is_bool() ? value->get_bool() : otherwise;
}
const json::array* array_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}
const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

Result<> read_output_max(const json::object& object, std::string_view key, Ask& ask) {
  const json::value* const value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return {};
  const bool whole = value->is_int64() || value->is_uint64();
  if (!whole || value->to_number<double>() < 1) {
    return fail(Errc::invalid, fmt::format("{}: must be a whole number of at least 1", key));
  }
  ask.output_max = static_cast<std::uint32_t>(std::min<double>(value->to_number<double>(), UINT32_MAX));
  return {};
}

void Conversation::user_text(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return;
  // A tag at the very beginning is text that a CLI adds for the model: <system-reminder>, <environment_context>, …
  if (text[first] == '<' && text.find('>', first) != std::string_view::npos) {
    tagged_ = text;
    return;
  }
  if (!open_) prompt_.clear();
  if (!prompt_.empty()) prompt_ += '\n';
  prompt_ += text;
  open_ = true;
  turn_ = 0;
}
void Conversation::finish(Ask& ask) && {
  ask.prompt = std::move(prompt_.empty() ? tagged_ : prompt_);  // a prompt may begin with a tag, too
  ask.turn = turn_;
}

std::string message_of(const Failure& failure) {
  if (!failure.message.empty()) return failure.message;
  if (failure.spend_limit) return "You have reached your spend limit. Raise it, or wait for the next month.";
  switch (failure.status) {
    case 400: return "The request is not valid.";
    case 401: return "invalid x-api-key";
    case 402: return "The account has no credit.";
    case 403: return "This API key is not permitted to do that.";
    case 404: return "Not found.";
    case 413: return "The request is too large.";
    case 429: return "This request would exceed your rate limit.";
    case 529: return "Overloaded";
    default: return fmt::format("The simulated provider is scripted to answer {}.", failure.status);
  }
}

std::string write(const json::value& value) { return json::serialize(value); }

std::string sse(std::string_view name, std::string_view data) {
  if (name.empty()) return fmt::format("data: {}\n\n", data);
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

Result<Ask> read_ask(Protocol protocol, std::string_view target, std::string_view body) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(body.data(), body.size()), error, {}, options);
  if (error) return fail(Errc::invalid, fmt::format("the body is invalid JSON: {}", error.message()));
  const json::object* const object = value.if_object();
  if (object == nullptr) return fail(Errc::invalid, "the body must be a JSON object");
  Ask ask;
  ask.protocol = protocol;
  ask.model = text_at(*object, "model");
  ask.stream = bool_at(*object, "stream", false);
  ask.input_tokens = estimate_tokens(body.size());
  switch (protocol) {
    case Protocol::messages: STINT_CHECK(messages::read(*object, ask)); break;
    case Protocol::chat: STINT_CHECK(chat::read(*object, ask)); break;
    case Protocol::responses: STINT_CHECK(responses::read(*object, ask)); break;
    case Protocol::gemini: STINT_CHECK(gemini::read(*object, target, ask)); break;
  }
  if (ask.model.empty()) return fail(Errc::invalid, "model: is missing");
  return ask;
}

std::unique_ptr<Encoder> make_encoder(const Ask& ask, std::uint64_t serial) {
  switch (ask.protocol) {
    case Protocol::chat: return chat::encoder(ask, serial);
    case Protocol::responses: return responses::encoder(ask, serial);
    case Protocol::gemini: return gemini::encoder(ask, serial);
    case Protocol::messages: break;
  }
  return messages::encoder(ask, serial);
}

std::string error_body(Protocol protocol, const Failure& failure, std::uint64_t serial) {
  switch (protocol) {
    case Protocol::chat:
    case Protocol::responses: return write(chat::error(failure));
    case Protocol::gemini: return write(gemini::error(failure));
    case Protocol::messages: break;
  }
  return write(messages::error(failure, serial));
}

std::string models_body(ModelForm form) {
  json::array list;
  for (const std::string_view name : kModels) list.push_back(model(form, name));
  switch (form) {
    case ModelForm::openai: return write({{"object", "list"}, {"data", std::move(list)}});
    case ModelForm::gemini: return write({{"models", std::move(list)}});
    case ModelForm::anthropic: break;
  }
  return write(
      {{"data", std::move(list)}, {"has_more", false}, {"first_id", kModels.front()}, {"last_id", kModels.back()}});
}

std::string model_body(ModelForm form, std::string_view name) { return write(model(form, name)); }

std::string count_body(Protocol protocol, std::uint32_t tokens) {
  if (protocol == Protocol::gemini) return write({{"totalTokens", tokens}});
  return write({{"input_tokens", tokens}});
}

}  // namespace stint::provider
