// Anthropic Messages: what comes back. Events are named; each part of the message has an index and is opened, filled
// and closed. Usage is cumulative. An error may come after HTTP 200.
#include "model/dialects.hpp"
#include "model/failure.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace stint::model {
namespace {

/// The status that an error in a stream would have had as a response.
int anthropic_status(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, int>, 11> kTypes{{{"invalid_request_error", 400},
                                                                     {"authentication_error", 401},
                                                                     {"billing_error", 402},
                                                                     {"permission_error", 403},
                                                                     {"not_found_error", 404},
                                                                     {"conflict_error", 409},
                                                                     {"request_too_large", 413},
                                                                     {"rate_limit_error", 429},
                                                                     {"api_error", 500},
                                                                     {"timeout_error", 504},
                                                                     {"overloaded_error", 529}}};
  const auto* const found = std::ranges::find(kTypes, type, &std::pair<std::string_view, int>::first);
  return found == kTypes.end() ? 0 : found->second;
}

ErrorNote anthropic_error(const json::value& body) {
  ErrorNote note;
  const json::object* const outer = body.if_object();
  const json::object* const error = outer == nullptr ? nullptr : object_at(*outer, "error");
  if (error == nullptr) return note;
  note.code = text_at(*error, "type");
  note.message = text_at(*error, "message");
  note.status = anthropic_status(note.code);
  const json::object* const details = object_at(*error, "details");
  const std::string_view reason = details == nullptr ? std::string_view() : text_at(*details, "error_code");
  if (!reason.empty()) note.code.append("/").append(reason);
  // An account that must not pay more answers 400, 402 or 429, by where the limit was set.
  if (reason == "enforced_spend_limit_reached" || note.status == 402 || contains(note.message, "credit balance") ||
      contains(note.message, "specified api usage limits") || contains(note.message, "spend limit")) {
    note.kind = FailureKind::spend_limit;
  } else if (note.status == 400 &&
             (contains(note.message, "prompt is too long") || contains(note.message, "exceed context limit"))) {
    note.kind = FailureKind::context_too_long;
  } else if (note.status == 529) {
    note.kind = FailureKind::overload;
  }
  return note;
}

StopReason anthropic_stop(std::string_view reason) {
  if (reason == "end_turn" || reason == "stop_sequence") return StopReason::end_turn;
  if (reason == "max_tokens") return StopReason::max_tokens;
  if (reason == "tool_use") return StopReason::tool_use;
  if (reason == "refusal") return StopReason::refusal;
  if (reason == "pause_turn") return StopReason::pause_turn;
  if (reason == "model_context_window_exceeded") return StopReason::context_window;
  return StopReason::other;
}

bool is_known_opaque(std::string_view type) {
  return type == "thinking" || type == "redacted_thinking" || type == "server_tool_use" || type == "container_upload" ||
         type.ends_with("_tool_result");
}

class AnthropicReader final : public EventReader {
 public:
  void read(const SseEvent& event, AnswerBuilder& answer) override {
    const std::optional<json::object> data = parse_object(event.data);
    if (!data) return answer.malformed("an event of the stream is not a JSON object");
    std::string_view type = text_at(*data, "type");
    if (type.empty()) type = event.name;
    if (type == "content_block_delta") {
      read_delta(*data, answer);
    } else if (type == "content_block_start") {
      read_block(*data, answer);
    } else if (type == "content_block_stop") {
      close(index_of(*data), answer);
    } else if (type == "message_start") {
      if (const json::object* const message = object_at(*data, "message")) read_start(*message, answer);
    } else if (type == "message_delta") {
      if (const json::object* const usage = object_at(*data, "usage")) read_usage(*usage, answer);
      if (const json::object* const delta = object_at(*data, "delta")) read_stop(*delta, answer);
    } else if (type == "message_stop") {
      answer.complete();
    } else if (type == "error") {
      answer.fail(anthropic_error(*data));
    } else if (type != "ping") {
      answer.ignore();
    }
  }

  void read_whole(const json::value& body, AnswerBuilder& answer) override {
    const json::object* const message = body.if_object();
    if (message == nullptr) return;
    if (text_at(*message, "type") == "error") return answer.fail(anthropic_error(body));
    const json::array* const content = array_at(*message, "content");
    if (text_at(*message, "type") != "message" || content == nullptr) return;
    read_start(*message, answer);
    for (std::size_t i = 0; i < content->size(); ++i) {
      if (const json::object* const block = (*content)[i].if_object()) open(i, *block, answer);
      close(i, answer);
    }
    read_stop(*message, answer);
    answer.complete();
  }

 private:
  struct Opaque {
    json::object block;
    std::string text, thinking, signature, input;
  };

  static std::size_t index_of(const json::object& event) {
    return static_cast<std::size_t>(count_at(event, "index").value_or(0));
  }

  void read_start(const json::object& message, AnswerBuilder& answer) {
    answer.start(text_at(message, "id"), text_at(message, "model"));
    if (const json::object* const usage = object_at(message, "usage")) read_usage(*usage, answer);
  }

  void read_usage(const json::object& usage, AnswerBuilder& answer) {
    const auto take = [&usage](std::int64_t& counter, std::string_view name) {
      if (const auto count = count_at(usage, name)) counter = *count;
    };
    take(usage_.fresh_in, "input_tokens");
    take(usage_.cache_read, "cache_read_input_tokens");
    take(usage_.cache_write, "cache_creation_input_tokens");
    take(usage_.out, "output_tokens");
    if (const json::object* const details = object_at(usage, "output_tokens_details")) {
      for (const std::string_view name : {"reasoning_tokens", "thinking_tokens"}) {
        if (const auto count = count_at(*details, name)) usage_.reasoning = *count;
      }
    }
    usage_.reasoning = std::min(usage_.reasoning, usage_.out);
    answer.usage(usage_);
  }

  static void read_stop(const json::object& delta, AnswerBuilder& answer) {
    const std::string_view reason = text_at(delta, "stop_reason");
    if (!reason.empty()) answer.stop(anthropic_stop(reason), reason);
  }

  void read_block(const json::object& data, AnswerBuilder& answer) {
    if (const json::object* const block = object_at(data, "content_block")) open(index_of(data), *block, answer);
  }

  void open(std::size_t index, const json::object& block, AnswerBuilder& answer) {
    if (answer.has_part(index) || opaque_.contains(index)) return answer.ignore();
    const std::string_view type = text_at(block, "type");
    if (type == "text") return answer.text(index, text_at(block, "text"));
    if (type == "tool_use") {
      answer.begin_call(index, text_at(block, "id"), text_at(block, "name"));
      const json::object* const input = object_at(block, "input");
      if (input != nullptr && !input->empty()) answer.arguments(index, write_json(*input));
      return;
    }
    if (!is_known_opaque(type)) answer.ignore();
    if (!answer.grow(write_json(block).size())) return;
    answer.thinking(text_at(block, "thinking"));
    opaque_[index].block = block;
  }

  void read_delta(const json::object& data, AnswerBuilder& answer) {
    const std::size_t index = index_of(data);
    const json::object* const delta = object_at(data, "delta");
    if (delta == nullptr) return answer.ignore();
    const std::string_view type = text_at(*delta, "type");
    const auto found = opaque_.find(index);
    Opaque* const opaque = found == opaque_.end() ? nullptr : &found->second;
    const auto keep = [&](std::string Opaque::* field, std::string_view text) {
      if (opaque != nullptr && answer.grow(text.size())) opaque->*field += text;
    };
    if (type == "text_delta") {
      if (opaque == nullptr) return answer.text(index, text_at(*delta, "text"));
      keep(&Opaque::text, text_at(*delta, "text"));
    } else if (type == "input_json_delta") {
      if (opaque == nullptr) return answer.arguments(index, text_at(*delta, "partial_json"));
      keep(&Opaque::input, text_at(*delta, "partial_json"));
    } else if (type == "thinking_delta") {
      keep(&Opaque::thinking, text_at(*delta, "thinking"));
      answer.thinking(text_at(*delta, "thinking"));
    } else if (type == "signature_delta") {
      keep(&Opaque::signature, text_at(*delta, "signature"));
    } else if (type != "citations_delta") {  // of a text, which is valid without them
      answer.ignore();
    }
  }

  void close(std::size_t index, AnswerBuilder& answer) {
    const auto found = opaque_.find(index);
    if (found == opaque_.end()) return answer.end_call(index);
    Opaque& opaque = found->second;
    const auto put = [&opaque](std::string_view name, const std::string& text) {
      if (!text.empty()) opaque.block[name] = std::string(text_at(opaque.block, name)) + text;
    };
    put("text", opaque.text);
    put("thinking", opaque.thinking);
    put("signature", opaque.signature);
    if (!opaque.input.empty()) {
      if (auto input = parse_object(opaque.input)) opaque.block["input"] = std::move(*input);
    }
    answer.opaque(index, write_json(opaque.block));
    opaque_.erase(found);
  }

  std::map<std::size_t, Opaque> opaque_;  // open ones
  Usage usage_;
};

bool is_anthropic_path(std::string_view path) noexcept { return path.ends_with("/messages"); }

}  // namespace

constinit const DialectParts kAnthropicParts{
    .name = "anthropic",
    .key_header = "x-api-key",
    .key_prefix = "",
    .rates = {.prefix = "anthropic-ratelimit-",
              .requests = "requests",
              .tokens = "tokens",
              .input_tokens = "input-tokens",
              .output_tokens = "output-tokens"},
    .write = anthropic::write,
    .reader = [] -> std::unique_ptr<EventReader> { return std::make_unique<AnthropicReader>(); },
    .read_error = anthropic_error,
    .answers = is_anthropic_path,
};

}  // namespace stint::model
