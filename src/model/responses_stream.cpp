// OpenAI Responses: what comes back. Typed events about items of the output; the last one repeats the whole response
// with its status and usage. The id that a result names is an item's `call_id`, not its `id`.
#include "model/dialects.hpp"
#include "model/failure.hpp"
#include "model/openai_schema.hpp"

#include <algorithm>
#include <map>

namespace stint::model {
namespace {

Usage responses_usage(const json::object& usage) {
  const auto detail = [&usage](std::string_view details, std::string_view name) {
    const json::object* const found = object_at(usage, details);
    return found == nullptr ? std::int64_t{0} : count_at(*found, name).value_or(0);
  };
  Usage out;
  const std::int64_t input = count_at(usage, "input_tokens").value_or(0);
  out.cache_read = detail("input_tokens_details", "cached_tokens");
  out.cache_write = detail("input_tokens_details", "cache_write_tokens");
  out.fresh_in = std::max<std::int64_t>(0, input - out.cache_read - out.cache_write);
  out.out = count_at(usage, "output_tokens").value_or(0);
  out.reasoning = std::min(out.out, detail("output_tokens_details", "reasoning_tokens"));
  return out;
}

/// Events that repeat, or only announce, what others bring.
bool is_repetition(std::string_view type) {
  return type == "response.in_progress" || type == "response.queued" || type.ends_with(".done") ||
         type.ends_with(".added") || type == "keepalive";
}

class ResponsesReader final : public EventReader {
 public:
  void read(const SseEvent& event, AnswerBuilder& answer) override {
    if (event.data == "[DONE]") return;  // compatible servers add it
    const std::optional<json::object> data = parse_object(event.data);
    if (!data) return answer.malformed("an event of the stream is not a JSON object");
    std::string_view type = text_at(*data, "type");
    if (type.empty()) type = event.name;
    if (!read_delta(type, *data, answer) && !read_item_event(type, *data, answer) &&
        !read_response_event(type, *data, answer) && !is_repetition(type)) {
      answer.ignore();
    }
  }

  void read_whole(const json::value& body, AnswerBuilder& answer) override {
    const json::object* const response = body.if_object();
    if (response == nullptr) return;
    const json::array* const output = array_at(*response, "output");
    if (output == nullptr) {
      if (object_at(*response, "error") != nullptr) answer.fail(openai::read_error(body));
      return;
    }
    answer.start(text_at(*response, "id"), text_at(*response, "model"));
    for (std::size_t key = 0; key < output->size(); ++key) {
      const json::object* const item = (*output)[key].if_object();
      if (item == nullptr) continue;
      begin_item(key, *item, answer);
      end_item(key, *item, answer);
    }
    end(*response, answer);
  }

 private:
  /// Text and arguments as they grow. True: it was one of these events.
  bool read_delta(std::string_view type, const json::object& data, AnswerBuilder& answer) {
    if (type == "response.output_text.delta") {
      answer.text(key_of(data, text_at(data, "item_id")), text_at(data, "delta"));
    } else if (type == "response.function_call_arguments.delta") {
      answer.arguments(key_of(data, text_at(data, "item_id")), text_at(data, "delta"));
    } else if (type == "response.reasoning_summary_text.delta" || type == "response.reasoning_text.delta") {
      answer.thinking(text_at(data, "delta"));
    } else if (type == "response.refusal.delta") {
      refused_ = true;
      answer.text(key_of(data, text_at(data, "item_id")), text_at(data, "delta"));
    } else {
      return false;
    }
    return true;
  }

  bool read_item_event(std::string_view type, const json::object& data, AnswerBuilder& answer) {
    const bool begins = type == "response.output_item.added";
    if (!begins && type != "response.output_item.done") return false;
    const json::object* const item = object_at(data, "item");
    if (item == nullptr) {
      answer.ignore();
      return true;
    }
    const std::size_t key = key_of(data, text_at(*item, "id"));
    begins ? begin_item(key, *item, answer) : end_item(key, *item, answer);
    return true;
  }

  bool read_response_event(std::string_view type, const json::object& data, AnswerBuilder& answer) {
    if (type == "error") {
      answer.fail(openai::read_error(data));
      return true;
    }
    const bool ends = type == "response.completed" || type == "response.incomplete" || type == "response.failed" ||
                      type == "response.cancelled";
    if (!ends && type != "response.created") return false;
    const json::object* const response = object_at(data, "response");
    if (response == nullptr) {
      answer.malformed("an event about the response has none");
    } else if (ends) {
      end(*response, answer);
    } else {
      answer.start(text_at(*response, "id"), text_at(*response, "model"));
    }
    return true;
  }

  void begin_item(std::size_t key, const json::object& item, AnswerBuilder& answer) {
    const std::string_view type = text_at(item, "type");
    if (type == "function_call") {
      answer.begin_call(key, text_at(item, "call_id"), text_at(item, "name"));
    } else if (type != "message" && type != "reasoning") {
      answer.ignore();  // kept when it is done
    }
  }

  void end_item(std::size_t key, const json::object& item, AnswerBuilder& answer) {
    const std::string_view type = text_at(item, "type");
    if (type == "function_call") {
      if (!answer.has_part(key)) begin_item(key, item, answer);
      if (answer.lacks_arguments(key)) answer.arguments(key, text_at(item, "arguments"));
      answer.end_call(key);
    } else if (type == "message") {
      if (!answer.has_part(key)) read_content(key, item, answer);
    } else if (type != "reasoning" || !text_at(item, "encrypted_content").empty()) {
      // Without its content a reasoning item names something that the provider does not keep.
      answer.opaque(key, write_json(item));
    }
  }

  void read_content(std::size_t key, const json::object& item, AnswerBuilder& answer) {
    const json::array* const content = array_at(item, "content");
    if (content == nullptr) return;
    for (const json::value& each : *content) {
      const json::object* const part = each.if_object();
      if (part == nullptr) continue;
      answer.text(key, text_at(*part, "text"));
      const std::string_view refusal = text_at(*part, "refusal");
      refused_ = refused_ || !refusal.empty();
      answer.text(key, refusal);
    }
  }

  void end(const json::object& response, AnswerBuilder& answer) {
    answer.start(text_at(response, "id"), text_at(response, "model"));
    if (const json::object* const usage = object_at(response, "usage")) answer.usage(responses_usage(*usage));
    const std::string_view status = text_at(response, "status");
    if (status == "failed" || status == "cancelled") {
      ErrorNote note = openai::read_error(response);
      if (note.message.empty()) note.message = "the response is " + std::string(status);
      return answer.fail(note);
    }
    if (status == "incomplete") {
      const json::object* const details = object_at(response, "incomplete_details");
      const std::string_view reason = details == nullptr ? std::string_view() : text_at(*details, "reason");
      const StopReason stop = reason == "max_output_tokens" ? StopReason::max_tokens
                              : reason == "content_filter"  ? StopReason::content_filter
                                                            : StopReason::other;
      answer.stop(stop, reason.empty() ? status : reason);
    } else {
      const StopReason stop = answer.has_calls() ? StopReason::tool_use
                              : refused_         ? StopReason::refusal
                                                 : StopReason::end_turn;
      answer.stop(stop, status);
    }
    answer.complete();
  }

  /// The place in the output. Compatible servers leave it out, and name the item only.
  std::size_t key_of(const json::object& data, std::string_view item) {
    if (const auto index = count_at(data, "output_index")) return static_cast<std::size_t>(*index);
    const auto found = keys_.find(item);
    if (found != keys_.end()) return found->second;
    if (keys_.size() >= AnswerBuilder::kPartsMax) return 0;
    return keys_.emplace(std::string(item), keys_.size()).first->second;
  }

  std::map<std::string, std::size_t, std::less<>> keys_;
  bool refused_ = false;
};

bool is_responses_path(std::string_view path) noexcept { return path.ends_with("/responses"); }

}  // namespace

constinit const DialectParts kResponsesParts{
    .name = "responses",
    .key_header = "authorization",
    .key_prefix = "Bearer ",
    .rates = openai::kRateNames,
    .write = responses::write,
    .reader = [] -> std::unique_ptr<EventReader> { return std::make_unique<ResponsesReader>(); },
    .read_error = openai::read_error,
    .answers = is_responses_path,
};

}  // namespace stint::model
