// Gemini: what comes back. Every chunk is a whole response with the next parts; a call comes in one part. There is no
// terminator: an answer is complete when a chunk named a reason to finish and the body has ended.
#include "model/dialects.hpp"
#include "model/failure.hpp"
#include "model/gemini_parts.hpp"

#include <algorithm>
#include <array>

namespace stint::model {
namespace {

using std::chrono_literals::operator""h;

// Midnight in California, where the provider's day begins: 8:00 UTC, in summer an hour earlier.
constexpr std::chrono::hours kDayBegins = 8h;
constexpr std::string_view kRetryInfo = "google.rpc.RetryInfo";
constexpr std::string_view kQuotaFailure = "google.rpc.QuotaFailure";
constexpr std::string_view kErrorInfo = "google.rpc.ErrorInfo";

void read_violations(const json::object& detail, ErrorNote& note) {
  const json::array* const violations = array_at(detail, "violations");
  if (violations == nullptr) return;
  for (const json::value& each : *violations) {
    const json::object* const violation = each.if_object();
    if (violation == nullptr) continue;
    const std::string_view quota = text_at(*violation, "quotaId");
    if (contains(quota, "PerDay")) {
      note.kind = FailureKind::quota;
      note.resets = kDayBegins;
    }
  }
}

void read_detail(const json::object& detail, ErrorNote& note) {
  const std::string_view type = text_at(detail, "@type");
  if (type.ends_with(kRetryInfo)) {
    note.delay = parse_duration(text_at(detail, "retryDelay"));
  } else if (type.ends_with(kQuotaFailure)) {
    read_violations(detail, note);
  } else if (type.ends_with(kErrorInfo)) {
    const std::string_view reason = text_at(detail, "reason");
    if (reason.empty()) return;
    note.code.append("/").append(reason);
    if (reason == "API_KEY_INVALID") note.kind = FailureKind::auth;
    if (reason == "MODEL_CAPACITY_EXHAUSTED") {
      note.kind = FailureKind::overload;
      note.repeatable = false;
    }
  }
}

ErrorNote gemini_error(const json::value& body) {
  ErrorNote note;
  const json::array* const list = body.if_array();  // without alt=sse
  const json::object* const outer = list != nullptr && !list->empty() ? list->front().if_object() : body.if_object();
  const json::object* const error = outer == nullptr ? nullptr : object_at(*outer, "error");
  if (error == nullptr) return note;
  note.status = static_cast<int>(std::min<std::int64_t>(count_at(*error, "code").value_or(0), 599));
  note.code = text_at(*error, "status");
  note.message = text_at(*error, "message");
  if (const json::array* const details = array_at(*error, "details")) {
    for (const json::value& each : *details) {
      if (const json::object* const detail = each.if_object()) read_detail(*detail, note);
    }
  }
  if (note.kind == FailureKind::quota && note.delay && *note.delay <= kThrottleMax) {
    note.delay.reset();  // of the minute's quota: the day's lasts longer
  }
  if (note.status == 429 && contains(note.message, "limit: 0"))
    note.kind = FailureKind::spend_limit;  // not in this plan
  if (note.status == 400 && contains(note.message, "token count") && contains(note.message, "exceeds")) {
    note.kind = FailureKind::context_too_long;
  }
  return note;
}

StopReason gemini_stop(std::string_view reason, bool calls) {
  constexpr std::array<std::string_view, 7> kFiltered{
      "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"};
  if (reason == "STOP") return calls ? StopReason::tool_use : StopReason::end_turn;  // there is no reason for calls
  if (reason == "MAX_TOKENS") return StopReason::max_tokens;
  if (std::ranges::find(kFiltered, reason) != kFiltered.end()) return StopReason::content_filter;
  return StopReason::other;
}

/// Thoughts are counted beside the candidates, cached tokens within the prompt.
Usage gemini_usage(const json::object& usage) {
  const auto count = [&usage](std::string_view name) { return count_at(usage, name).value_or(0); };
  Usage out;
  out.cache_read = count("cachedContentTokenCount");
  const std::int64_t input = count("promptTokenCount") + count("toolUsePromptTokenCount");
  out.fresh_in = std::max<std::int64_t>(0, input - out.cache_read);
  out.reasoning = count("thoughtsTokenCount");
  out.out = count("candidatesTokenCount") + out.reasoning;
  return out;
}

class GeminiReader final : public EventReader {
 public:
  void read(const SseEvent& event, AnswerBuilder& answer) override {
    const std::optional<json::object> chunk = parse_object(event.data);
    if (!chunk) return answer.malformed("a chunk of the stream is not a JSON object");
    read_chunk(*chunk, answer);
  }

  void finish(AnswerBuilder& answer) override {
    if (finished_) answer.complete();
  }

  void read_whole(const json::value& body, AnswerBuilder& answer) override {
    if (const json::object* const chunk = body.if_object()) return read_chunk(*chunk, answer);
    const json::array* const chunks = body.if_array();
    if (chunks == nullptr) return;
    for (const json::value& each : *chunks) {
      if (const json::object* const chunk = each.if_object()) read_chunk(*chunk, answer);
    }
  }

 private:
  void read_chunk(const json::object& chunk, AnswerBuilder& answer) {
    if (object_at(chunk, "error") != nullptr) return answer.fail(gemini_error(chunk));
    answer.start(text_at(chunk, "responseId"), text_at(chunk, "modelVersion"));
    if (const json::object* const usage = object_at(chunk, "usageMetadata")) answer.usage(gemini_usage(*usage));
    if (const json::array* const candidates = array_at(chunk, "candidates")) {
      for (const json::value& each : *candidates) read_candidate(each, answer);
    }
    const json::object* const feedback = object_at(chunk, "promptFeedback");
    const std::string_view blocked = feedback == nullptr ? std::string_view() : text_at(*feedback, "blockReason");
    if (blocked.empty()) return;
    answer.stop(StopReason::content_filter, blocked);
    finished_ = true;
  }

  void read_candidate(const json::value& value, AnswerBuilder& answer) {
    const json::object* const candidate = value.if_object();
    if (candidate == nullptr || count_at(*candidate, "index").value_or(0) != 0) return answer.ignore();
    const json::object* const content = object_at(*candidate, "content");
    const json::array* const parts = content == nullptr ? nullptr : array_at(*content, "parts");
    if (parts != nullptr) {
      for (const json::value& each : *parts) {
        if (const json::object* const part = each.if_object()) read_part(*part, answer);
      }
    }
    const std::string_view reason = text_at(*candidate, "finishReason");
    if (reason.empty()) return;
    answer.stop(gemini_stop(reason, answer.has_calls()), reason);
    finished_ = true;
  }

  void read_part(const json::object& part, AnswerBuilder& answer) {
    const json::object* const call = object_at(part, "functionCall");
    const json::value* const text = part.if_contains("text");
    if (truth_at(part, "thought") && text != nullptr) return answer.thinking(text_at(part, "text"));
    if (call == nullptr && (text == nullptr || !text->is_string())) {
      answer.ignore();
      answer.opaque(next_++, write_json(part));
      in_text_ = false;
      return;
    }
    const json::value* const signature = part.if_contains(gemini::kSignature);
    if (signature != nullptr) {
      in_text_ = false;
      const bool is_alone = call == nullptr && text_at(part, "text").empty();
      const json::object only{{gemini::kSignature, *signature}};
      answer.opaque(next_++, write_json(is_alone ? part : only));
    }
    if (call != nullptr) return read_call(*call, answer);
    if (text_at(part, "text").empty()) return;
    if (!in_text_) ++next_;
    in_text_ = signature == nullptr;  // a signed part is not joined with another one
    answer.text(next_ - 1, text_at(part, "text"));
  }

  void read_call(const json::object& call, AnswerBuilder& answer) {
    in_text_ = false;
    const std::size_t key = next_++;
    answer.begin_call(key, text_at(call, "id"), text_at(call, "name"));
    const json::value* const arguments = call.if_contains("args");
    if (arguments != nullptr && !arguments->is_null()) answer.arguments(key, write_json(*arguments));
    answer.end_call(key);
    if (truth_at(call, "willContinue")) answer.ignore();  // pieces of arguments come only if asked for
  }

  std::size_t next_ = 0;  // key of the next part
  bool in_text_ = false, finished_ = false;
};

bool is_gemini_path(std::string_view path) noexcept {
  return path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent");
}

}  // namespace

constinit const DialectParts kGeminiParts{
    .name = "gemini",
    .key_header = "x-goog-api-key",
    .key_prefix = "",
    .rates = {},
    .write = gemini::write,
    .reader = [] -> std::unique_ptr<EventReader> { return std::make_unique<GeminiReader>(); },
    .read_error = gemini_error,
    .answers = is_gemini_path,
};

}  // namespace stint::model
