// Anthropic Messages: POST /v1/messages.
#include "provider/protocols.hpp"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

namespace stint::provider::messages {
namespace {

std::string_view type_of(const Failure& failure) {
  if (failure.spend_limit) return "rate_limit_error";
  switch (failure.status) {
    case 400: return "invalid_request_error";
    case 401: return "authentication_error";
    case 402: return "billing_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 409: return "conflict_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 504: return "timeout_error";
    case 529: return "overloaded_error";
    default: return "api_error";
  }
}

json::object usage(const Tokens& tokens, std::uint32_t output) {
  return {{"input_tokens", tokens.fresh},
          {"cache_creation_input_tokens", tokens.cache_write},
          {"cache_read_input_tokens", tokens.cache_read},
          {"output_tokens", output},
          {"service_tier", "standard"}};
}

bool calls_tools(const std::vector<Block>& blocks) {
  return !blocks.empty() && blocks.back().kind == Block::Kind::tool;
}

json::object content(const Block& block, bool full) {
  switch (block.kind) {
    case Block::Kind::thinking:
      return {{"type", "thinking"}, {"thinking", full ? block.whole() : ""}, {"signature", full ? "simulated" : ""}};
    case Block::Kind::tool: {
      boost::system::error_code error;
      json::value input = full ? json::parse(block.whole(), error) : json::value(json::object());
      if (error) input = json::object();  // the call was cut
      return {{"type", "tool_use"}, {"id", block.id}, {"name", block.name}, {"input", std::move(input)}};
    }
    case Block::Kind::text: break;
  }
  return {{"type", "text"}, {"text", full ? block.whole() : ""}};
}

class MessagesEncoder final : public Encoder {
 public:
  MessagesEncoder(const Ask& ask, std::uint64_t serial) : id_(message_id(serial)), model_(ask.model) {}

  std::string begin(const Tokens& tokens) override {
    json::object message = envelope(json::array(), nullptr, usage(tokens, 1));
    return event("message_start", {{"message", std::move(message)}}) + event("ping", {});
  }
  std::string open(std::size_t index, const Block& block) override {
    return event("content_block_start", {{"index", index}, {"content_block", content(block, false)}});
  }
  std::string piece(std::size_t index, const Block& block, std::string_view text) override {
    json::object delta;
    switch (block.kind) {
      case Block::Kind::text: delta = {{"type", "text_delta"}, {"text", text}}; break;
      case Block::Kind::thinking: delta = {{"type", "thinking_delta"}, {"thinking", text}}; break;
      case Block::Kind::tool: delta = {{"type", "input_json_delta"}, {"partial_json", text}}; break;
    }
    return event("content_block_delta", {{"index", index}, {"delta", std::move(delta)}});
  }
  std::string close(std::size_t index, const Block& block) override {
    std::string out;
    if (block.kind == Block::Kind::thinking) {
      out = event("content_block_delta",
                  {{"index", index}, {"delta", {{"type", "signature_delta"}, {"signature", "simulated"}}}});
    }
    return out + event("content_block_stop", {{"index", index}});
  }
  std::string end(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) override {
    json::object delta{{"stop_reason", stop_reason(blocks, finish)}, {"stop_sequence", nullptr}};
    return event("message_delta", {{"delta", std::move(delta)}, {"usage", usage(tokens, tokens.output)}}) +
           event("message_stop", {});
  }
  std::string whole(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) override {
    json::array parts;
    for (const Block& block : blocks) parts.push_back(content(block, true));
    return write(envelope(std::move(parts), json::value(stop_reason(blocks, finish)), usage(tokens, tokens.output)));
  }
  std::string error(const Failure& failure) override { return sse("error", write(messages::error(failure, 0))); }

 private:
  static std::string_view stop_reason(const std::vector<Block>& blocks, Finish finish) {
    if (finish == Finish::cut) return "max_tokens";
    return calls_tools(blocks) ? "tool_use" : "end_turn";
  }
  static std::string event(std::string_view type, json::object rest) {
    json::object data{{"type", type}};
    for (auto& [name, value] : rest) data[name] = std::move(value);
    return sse(type, write(data));
  }
  json::object envelope(json::array parts, json::value stop, json::object counted) const {
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model_},
            {"content", std::move(parts)},
            {"stop_reason", std::move(stop)},
            {"stop_sequence", nullptr},
            {"usage", std::move(counted)}};
  }

  const std::string id_;
  const std::string model_;
};

/// A conversation stored here: the SDKs' tool runners create one, and then send only new messages.
Result<> read_thread(const json::object& body, Ask& ask) {
  const json::object* const thread = object_at(body, "thread");
  if (thread == nullptr) return {};
  ask.threaded = true;
  const std::string type = text_at(*thread, "type");
  if (type == "create") return {};
  ask.continues = text_at(*thread, "previous_message_id");
  if (type == "continue" && !ask.continues.empty()) return {};
  return fail(Errc::invalid, "thread: type must be create, or continue with a previous_message_id");
}

}  // namespace

Result<> read(const json::object& body, Ask& ask) {
  STINT_CHECK(read_output_max(body, "max_tokens", ask));
  STINT_CHECK(read_thread(body, ask));
  const json::array* const list = array_at(body, "messages");
  if (list == nullptr || (list->empty() && ask.continues.empty()))
    return fail(Errc::invalid, "messages: send at least one");
  Conversation conversation;
  for (const json::value& item : *list) {
    const json::object* const message = item.if_object();
    if (message == nullptr) return fail(Errc::invalid, "messages: each must be an object");
    conversation.next_message();
    if (text_at(*message, "role") == "assistant") {
      conversation.assistant();
      continue;
    }
    if (text_at(*message, "role") != "user") continue;
    if (const json::array* const parts = array_at(*message, "content")) {
      for (const json::value& part : *parts) {
        const json::object* const block = part.if_object();
        if (block != nullptr && text_at(*block, "type") == "text") conversation.user_text(text_at(*block, "text"));
      }
    } else {
      conversation.user_text(text_at(*message, "content"));
    }
  }
  std::move(conversation).finish(ask);
  return {};
}

std::unique_ptr<Encoder> encoder(const Ask& ask, std::uint64_t serial) {
  return std::make_unique<MessagesEncoder>(ask, serial);
}

json::value error(const Failure& failure, std::uint64_t serial) {
  json::object inner{{"type", type_of(failure)}, {"message", message_of(failure)}};
  if (failure.spend_limit) inner["details"] = {{"error_code", "enforced_spend_limit_reached"}};
  if (!failure.code.empty()) inner["details"] = {{"error_code", failure.code}};
  return {{"type", "error"}, {"error", std::move(inner)}, {"request_id", fmt::format("req_{:08}", serial)}};
}

}  // namespace stint::provider::messages

namespace stint::provider {

std::string message_id(std::uint64_t serial) { return fmt::format("msg_{:08}", serial); }

}  // namespace stint::provider
