// OpenAI Chat Completions: what comes back. Chunks without names, then `[DONE]`. Pieces of a tool call belong together
// by their index; usage comes in the last chunk only.
#include "model/dialects.hpp"
#include "model/openai_schema.hpp"

#include <algorithm>
#include <array>

namespace stint::model {
namespace {

constexpr std::string_view kChatDone = "[DONE]";
constexpr std::size_t kTextKey = 0;  // calls come after it

Usage chat_usage(const json::object& usage) {
  const auto detail = [&usage](std::string_view details, std::string_view name) {
    const json::object* const found = object_at(usage, details);
    return found == nullptr ? std::int64_t{0} : count_at(*found, name).value_or(0);
  };
  Usage out;
  const std::int64_t input = count_at(usage, "prompt_tokens").value_or(0);
  out.cache_read = detail("prompt_tokens_details", "cached_tokens");
  out.cache_write = detail("prompt_tokens_details", "cache_write_tokens");
  out.fresh_in = std::max<std::int64_t>(0, input - out.cache_read - out.cache_write);
  out.out = count_at(usage, "completion_tokens").value_or(0);
  out.reasoning = std::min(out.out, detail("completion_tokens_details", "reasoning_tokens"));
  return out;
}

StopReason chat_stop(std::string_view reason, bool calls, bool refused) {
  if (reason == "tool_calls" || reason == "function_call") return StopReason::tool_use;
  if (reason == "length") return StopReason::max_tokens;
  if (reason == "content_filter") return StopReason::content_filter;
  if (reason != "stop") return StopReason::other;
  if (calls) return StopReason::tool_use;  // some compatible servers say `stop` after calls
  return refused ? StopReason::refusal : StopReason::end_turn;
}

class ChatReader final : public EventReader {
 public:
  void read(const SseEvent& event, AnswerBuilder& answer) override {
    if (event.data == kChatDone) {
      answer.end_calls();
      return answer.complete();
    }
    const std::optional<json::object> chunk = parse_object(event.data);
    if (!chunk) return answer.malformed("a chunk of the stream is not a JSON object");
    read_chunk(*chunk, "delta", answer);
  }

  void read_whole(const json::value& body, AnswerBuilder& answer) override {
    const json::object* const object = body.if_object();
    if (object == nullptr) return;
    const json::array* const choices = array_at(*object, "choices");
    if (choices == nullptr && !object->contains("error")) return;
    read_chunk(*object, "message", answer);
    answer.complete();
  }

 private:
  void read_chunk(const json::object& chunk, std::string_view part, AnswerBuilder& answer) {
    const json::value* const error = chunk.if_contains("error");
    if (error != nullptr && !error->is_null()) return answer.fail(openai::read_error(chunk));
    answer.start(text_at(chunk, "id"), text_at(chunk, "model"));
    if (const json::object* const usage = object_at(chunk, "usage")) answer.usage(chat_usage(*usage));
    const json::array* const choices = array_at(chunk, "choices");
    if (choices == nullptr) return answer.ignore();
    for (const json::value& each : *choices) {
      const json::object* const choice = each.if_object();
      if (choice == nullptr || count_at(*choice, "index").value_or(0) != 0) {
        answer.ignore();
        continue;
      }
      if (const json::object* const delta = object_at(*choice, part)) read_delta(*delta, answer);
      const std::string_view reason = text_at(*choice, "finish_reason");
      if (!reason.empty()) answer.stop(chat_stop(reason, answer.has_calls(), refused_), reason);
    }
  }

  void read_delta(const json::object& delta, AnswerBuilder& answer) {
    constexpr std::array<std::string_view, 4> kKnown{"role", "content", "refusal", "tool_calls"};
    constexpr std::array<std::string_view, 2> kThinking{"reasoning_content", "reasoning"};
    for (const auto& [name, value] : delta) {
      if (std::ranges::find(kThinking, std::string_view(name)) == kThinking.end() &&
          std::ranges::find(kKnown, std::string_view(name)) == kKnown.end() && !value.is_null()) {
        answer.ignore();
      }
    }
    for (const std::string_view name : kThinking) {  // some servers send both, with the same text
      const std::string_view text = text_at(delta, name);
      if (text.empty()) continue;
      answer.thinking(text);
      break;
    }
    answer.text(kTextKey, text_at(delta, "content"));
    if (const std::string_view refusal = text_at(delta, "refusal"); !refusal.empty()) {
      refused_ = true;
      answer.text(kTextKey, refusal);
    }
    const json::array* const calls = array_at(delta, "tool_calls");
    if (calls == nullptr) return;
    for (const json::value& each : *calls) {
      if (const json::object* const call = each.if_object()) read_call(*call, answer);
    }
  }

  /// The id and the name are in the first piece only. Some servers leave out the index, or give the same one to all
  /// calls: then another id begins another call.
  void read_call(const json::object& call, AnswerBuilder& answer) {
    const json::object* const function = object_at(call, "function");
    if (function == nullptr) return answer.ignore();
    const std::string_view id = text_at(call, "id"), name = text_at(*function, "name");
    const auto index = count_at(call, "index");
    const auto found = std::ranges::find_if(calls_.rbegin(), calls_.rend(), [&](const Call& each) {
      return (!index || each.index == *index) && (id.empty() || each.id == id);
    });
    const bool is_piece = found != calls_.rend() && (index || !id.empty() || name.empty());
    if (!is_piece && calls_.size() >= AnswerBuilder::kPartsMax)
      return answer.malformed("the answer has too many calls");
    if (!is_piece) {
      calls_.push_back({.index = index.value_or(-1), .id = std::string(id), .key = kTextKey + 1 + calls_.size()});
      answer.begin_call(calls_.back().key, id, name);
    }
    const std::size_t key = is_piece ? found->key : calls_.back().key;
    const json::value* const arguments = function->if_contains("arguments");
    if (arguments != nullptr && arguments->is_object()) return answer.arguments(key, write_json(*arguments));
    answer.arguments(key, text_at(*function, "arguments"));
  }

  struct Call {
    std::int64_t index = -1;
    std::string id;
    std::size_t key = 0;
  };
  std::vector<Call> calls_;
  bool refused_ = false;
};

bool is_chat_path(std::string_view path) noexcept { return path.ends_with("/chat/completions"); }

}  // namespace

constinit const DialectParts kChatParts{
    .name = "chat",
    .key_header = "authorization",
    .key_prefix = "Bearer ",
    .rates = openai::kRateNames,
    .write = chat::write,
    .reader = [] -> std::unique_ptr<EventReader> { return std::make_unique<ChatReader>(); },
    .read_error = openai::read_error,
    .answers = is_chat_path,
};

}  // namespace stint::model
