// OpenAI Responses: POST /v1/responses.
#include "provider/protocols.hpp"

#include <fmt/format.h>

namespace stint::provider::responses {
namespace {

constexpr std::int64_t kCreated = 1767225600;  // constant: answers are deterministic

json::object usage(const Tokens& tokens) {
  const std::uint64_t input = std::uint64_t{tokens.fresh} + tokens.cache_read + tokens.cache_write;
  return {{"input_tokens", input},
          {"input_tokens_details", {{"cached_tokens", tokens.cache_read}, {"cache_write_tokens", tokens.cache_write}}},
          {"output_tokens", tokens.output},
          {"output_tokens_details", {{"reasoning_tokens", 0}}},
          {"total_tokens", input + tokens.output}};
}

class ResponsesEncoder final : public Encoder {
 public:
  ResponsesEncoder(const Ask& ask, std::uint64_t serial) : serial_(serial), model_(ask.model) {}

  std::string begin(const Tokens&) override {
    return event("response.created", {{"response", response("in_progress", json::array())}}) +
           event("response.in_progress", {{"response", response("in_progress", json::array())}});
  }
  std::string open(std::size_t index, const Block& block) override {
    std::string out =
        event("response.output_item.added", {{"output_index", index}, {"item", item(index, block, false)}});
    if (block.kind == Block::Kind::text) {
      out += event(
          "response.content_part.added",
          {{"item_id", item_id(index, block)}, {"output_index", index}, {"content_index", 0}, {"part", part("")}});
    }
    return out;
  }
  std::string piece(std::size_t index, const Block& block, std::string_view text) override {
    json::object data{{"item_id", item_id(index, block)}, {"output_index", index}};
    switch (block.kind) {
      case Block::Kind::text:
        data["content_index"] = 0;
        data["delta"] = text;
        return event("response.output_text.delta", std::move(data));
      case Block::Kind::thinking:
        data["summary_index"] = 0;
        data["delta"] = text;
        return event("response.reasoning_summary_text.delta", std::move(data));
      case Block::Kind::tool: break;
    }
    data["delta"] = text;
    return event("response.function_call_arguments.delta", std::move(data));
  }
  std::string close(std::size_t index, const Block& block) override {
    const json::object where{{"item_id", item_id(index, block)}, {"output_index", index}};
    std::string out;
    if (block.kind == Block::Kind::text) {
      json::object text = where;
      text["content_index"] = 0;
      json::object done = text;
      text["text"] = block.whole();
      done["part"] = part(block.whole());
      out = event("response.output_text.done", std::move(text)) + event("response.content_part.done", std::move(done));
    } else if (block.kind == Block::Kind::tool) {
      json::object arguments = where;
      arguments["arguments"] = block.whole();
      out = event("response.function_call_arguments.done", std::move(arguments));
    }
    return out + event("response.output_item.done", {{"output_index", index}, {"item", item(index, block, true)}});
  }
  std::string end(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) override {
    return event(finish == Finish::cut ? "response.incomplete" : "response.completed",
                 {{"response", finished(blocks, tokens, finish)}});
  }
  std::string whole(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) override {
    return write(finished(blocks, tokens, finish));
  }
  std::string error(const Failure& failure) override {
    json::object failed = response("failed", json::array());
    failed["error"] = {{"code", failure.status == 429 ? "rate_limit_exceeded" : "server_error"},
                       {"message", message_of(failure)}};
    return event("response.failed", {{"response", std::move(failed)}});
  }

 private:
  std::string item_id(std::size_t index, const Block& block) const {
    const std::string_view kind = block.kind == Block::Kind::tool   ? "fc"
                                  : block.kind == Block::Kind::text ? "msg"
                                                                    : "rs";
    return fmt::format("{}_{:08}_{}", kind, serial_, index);
  }
  static json::object part(std::string_view text) {
    return {{"type", "output_text"}, {"text", text}, {"annotations", json::array()}};
  }
  json::object item(std::size_t index, const Block& block, bool full) const {
    const std::string_view state = full ? "completed" : "in_progress";
    switch (block.kind) {
      case Block::Kind::text: {
        json::array content;
        if (full) content.push_back(part(block.whole()));
        return {{"type", "message"},
                {"id", item_id(index, block)},
                {"status", state},
                {"role", "assistant"},
                {"content", std::move(content)}};
      }
      case Block::Kind::thinking: {
        json::array summary;
        if (full) summary.push_back({{"type", "summary_text"}, {"text", block.whole()}});
        return {{"type", "reasoning"}, {"id", item_id(index, block)}, {"summary", std::move(summary)}};
      }
      case Block::Kind::tool: break;
    }
    return {{"type", "function_call"}, {"id", item_id(index, block)}, {"call_id", block.id},
            {"status", state},         {"name", block.name},          {"arguments", full ? block.whole() : ""}};
  }
  json::object response(std::string_view status, json::array output) const {
    return {{"id", fmt::format("resp_{:08}", serial_)},
            {"object", "response"},
            {"created_at", kCreated},
            {"status", status},
            {"error", nullptr},
            {"incomplete_details", nullptr},
            {"model", model_},
            {"output", std::move(output)},
            {"parallel_tool_calls", true},
            {"usage", nullptr}};
  }
  json::object finished(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) const {
    json::array output;
    for (std::size_t i = 0; i < blocks.size(); ++i) output.push_back(item(i, blocks[i], true));
    json::object out = response("completed", std::move(output));
    out["usage"] = usage(tokens);
    if (finish == Finish::complete) return out;
    out["status"] = "incomplete";
    out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    if (!blocks.empty()) out["output"].as_array().back().as_object()["status"] = "incomplete";
    return out;
  }
  std::string event(std::string_view type, json::object rest) {
    json::object data{{"type", type}, {"sequence_number", sequence_++}};
    for (auto& [name, value] : rest) data[name] = std::move(value);
    return sse(type, write(data));
  }

  const std::uint64_t serial_;
  const std::string model_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

Result<> read(const json::object& body, Ask& ask) {
  STINT_CHECK(read_output_max(body, "max_output_tokens", ask));
  Conversation conversation;
  const json::value* const input = body.if_contains("input");
  if (input == nullptr) return fail(Errc::invalid, "input: send a string or a list of items");
  if (input->is_string()) conversation.user_text(text_at(body, "input"));
  if (const json::array* const items = input->if_array()) {
    bool answering = false;  // one answer may be several items in a row: reasoning, text, calls
    for (const json::value& value : *items) {
      const json::object* const item = value.if_object();
      if (item == nullptr) return fail(Errc::invalid, "input: each item must be an object");
      conversation.next_message();
      const std::string role = text_at(*item, "role");
      const std::string type = text_at(*item, "type");
      const bool answer = role == "assistant" || type == "reasoning" || type.ends_with("_call");
      if (answer && !answering) conversation.assistant();
      answering = answer;
      if (role != "user") continue;
      if (const json::array* const parts = array_at(*item, "content")) {
        for (const json::value& part : *parts) {
          if (const json::object* const block = part.if_object()) conversation.user_text(text_at(*block, "text"));
        }
      } else {
        conversation.user_text(text_at(*item, "content"));
      }
    }
  }
  std::move(conversation).finish(ask);
  return {};
}

std::unique_ptr<Encoder> encoder(const Ask& ask, std::uint64_t serial) {
  return std::make_unique<ResponsesEncoder>(ask, serial);
}

}  // namespace stint::provider::responses
