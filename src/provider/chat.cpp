// OpenAI Chat Completions: POST /v1/chat/completions.
#include "provider/protocols.hpp"

#include <fmt/format.h>

namespace stint::provider::chat {
namespace {

constexpr std::int64_t kCreated = 1767225600;  // constant: answers are deterministic

json::object usage(const Tokens& tokens) {
  const std::uint64_t input = std::uint64_t{tokens.fresh} + tokens.cache_read + tokens.cache_write;
  return {{"prompt_tokens", input},
          {"completion_tokens", tokens.output},
          {"total_tokens", input + tokens.output},
          {"prompt_tokens_details", {{"cached_tokens", tokens.cache_read}, {"cache_write_tokens", tokens.cache_write}}},
          {"completion_tokens_details", {{"reasoning_tokens", 0}}}};
}

std::string_view finish_reason(const std::vector<Block>& blocks, Finish finish) {
  if (finish == Finish::cut) return "length";
  return !blocks.empty() && blocks.back().kind == Block::Kind::tool ? "tool_calls" : "stop";
}

class ChatEncoder final : public Encoder {
 public:
  ChatEncoder(const Ask& ask, std::uint64_t serial)
      : id_(fmt::format("chatcmpl-{:08}", serial)), model_(ask.model), wants_usage_(ask.wants_usage) {}

  std::string begin(const Tokens&) override {
    json::object delta{{"role", "assistant"}, {"content", ""}};
    return chunk(std::move(delta), nullptr);
  }
  std::string open(std::size_t, const Block& block) override {
    if (block.kind != Block::Kind::tool) return {};
    ++calls_;
    json::object call{{"index", calls_ - 1},
                      {"id", block.id},
                      {"type", "function"},
                      {"function", {{"name", block.name}, {"arguments", ""}}}};
    return chunk({{"tool_calls", json::array{std::move(call)}}}, nullptr);
  }
  std::string piece(std::size_t, const Block& block, std::string_view text) override {
    switch (block.kind) {
      case Block::Kind::text: return chunk({{"content", text}}, nullptr);
      case Block::Kind::thinking: return chunk({{"reasoning_content", text}}, nullptr);
      case Block::Kind::tool: break;
    }
    json::object call{{"index", calls_ - 1}, {"function", {{"arguments", text}}}};
    return chunk({{"tool_calls", json::array{std::move(call)}}}, nullptr);
  }
  std::string close(std::size_t, const Block&) override { return {}; }
  std::string end(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) override {
    std::string out = chunk(json::object(), json::value(finish_reason(blocks, finish)));
    if (wants_usage_) {
      json::object last = envelope("chat.completion.chunk");
      last["choices"] = json::array();
      last["usage"] = usage(tokens);
      out += sse({}, write(last));
    }
    return out + sse({}, "[DONE]");
  }
  std::string whole(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) override {
    json::object message{{"role", "assistant"}, {"content", nullptr}, {"refusal", nullptr}};
    json::array calls;
    for (const Block& block : blocks) {
      if (block.kind == Block::Kind::text) message["content"] = block.whole();
      if (block.kind == Block::Kind::thinking) message["reasoning_content"] = block.whole();
      if (block.kind != Block::Kind::tool) continue;
      calls.push_back(
          {{"id", block.id}, {"type", "function"}, {"function", {{"name", block.name}, {"arguments", block.whole()}}}});
    }
    if (!calls.empty()) message["tool_calls"] = std::move(calls);
    json::object body = envelope("chat.completion");
    json::object choice{
        {"index", 0}, {"message", std::move(message)}, {"finish_reason", finish_reason(blocks, finish)}};
    body["choices"] = json::array{std::move(choice)};
    body["usage"] = usage(tokens);
    return write(body);
  }
  std::string error(const Failure& failure) override { return sse({}, write(chat::error(failure))); }

 private:
  json::object envelope(std::string_view kind) const {
    return {{"id", id_}, {"object", kind}, {"created", kCreated}, {"model", model_}};
  }
  std::string chunk(json::object delta, json::value finish) const {
    json::object out = envelope("chat.completion.chunk");
    json::object choice{{"index", 0}, {"delta", std::move(delta)}, {"finish_reason", std::move(finish)}};
    out["choices"] = json::array{std::move(choice)};
    return sse({}, write(out));
  }

  const std::string id_;
  const std::string model_;
  const bool wants_usage_;
  std::size_t calls_ = 0;
};

}  // namespace

Result<> read(const json::object& body, Ask& ask) {
  STINT_CHECK(read_output_max(body, "max_tokens", ask));
  STINT_CHECK(read_output_max(body, "max_completion_tokens", ask));  // the newer name wins
  const json::array* const list = array_at(body, "messages");
  if (list == nullptr || list->empty()) return fail(Errc::invalid, "messages: send at least one");
  Conversation conversation;
  for (const json::value& item : *list) {
    const json::object* const message = item.if_object();
    if (message == nullptr) return fail(Errc::invalid, "messages: each must be an object");
    conversation.next_message();
    const std::string role = text_at(*message, "role");
    if (role == "assistant") conversation.assistant();
    if (role != "user") continue;
    if (const json::array* const parts = array_at(*message, "content")) {
      for (const json::value& part : *parts) {
        if (const json::object* const block = part.if_object()) conversation.user_text(text_at(*block, "text"));
      }
    } else {
      conversation.user_text(text_at(*message, "content"));
    }
  }
  std::move(conversation).finish(ask);
  const json::object* const options = object_at(body, "stream_options");
  ask.wants_usage = options != nullptr && bool_at(*options, "include_usage", false);
  return {};
}

std::unique_ptr<Encoder> encoder(const Ask& ask, std::uint64_t serial) {
  return std::make_unique<ChatEncoder>(ask, serial);
}

json::value error(const Failure& failure) {
  std::string_view type = failure.status >= 500 ? "server_error" : "invalid_request_error";
  json::value code = nullptr;
  if (failure.status == 401) code = "invalid_api_key";
  if (failure.status == 429) {
    type = "requests";
    code = "rate_limit_exceeded";
  }
  if (failure.spend_limit) {
    type = "insufficient_quota";
    code = "insufficient_quota";
  }
  return {{"error", {{"message", message_of(failure)}, {"type", type}, {"param", nullptr}, {"code", std::move(code)}}}};
}

}  // namespace stint::provider::chat
