// Gemini: POST /v1beta/models/NAME:generateContent and :streamGenerateContent?alt=sse.
#include "provider/protocols.hpp"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

namespace stint::provider::gemini {
namespace {

std::string_view status_of(int status) {
  switch (status) {
    case 400: return "INVALID_ARGUMENT";
    case 401: return "UNAUTHENTICATED";
    case 403: return "PERMISSION_DENIED";
    case 404: return "NOT_FOUND";
    case 429: return "RESOURCE_EXHAUSTED";
    case 503:
    case 529: return "UNAVAILABLE";
    default: return status < 500 ? "FAILED_PRECONDITION" : "INTERNAL";
  }
}

class GeminiEncoder final : public Encoder {
 public:
  GeminiEncoder(const Ask& ask, std::uint64_t serial) : id_(fmt::format("gen{:08}", serial)), model_(ask.model) {}

  std::string begin(const Tokens& tokens) override {
    tokens_ = tokens;
    return {};
  }
  std::string open(std::size_t, const Block&) override { return {}; }
  std::string piece(std::size_t, const Block& block, std::string_view text) override {
    if (block.kind == Block::Kind::tool) return {};  // a call has no pieces in this protocol
    json::object part{{"text", text}};
    if (block.kind == Block::Kind::thinking) part["thought"] = true;
    return sse({}, write(response(json::array{std::move(part)}, std::nullopt)));
  }
  std::string close(std::size_t, const Block& block) override {
    if (block.kind != Block::Kind::tool) return {};
    if (!is_whole(block)) return {};
    return sse({}, write(response(json::array{call(block)}, std::nullopt)));
  }
  std::string end(const std::vector<Block>&, const Tokens& tokens, Finish finish) override {
    tokens_ = tokens;
    json::object part{{"text", ""}};
    return sse({}, write(response(json::array{std::move(part)}, finish)));
  }
  std::string whole(const std::vector<Block>& blocks, const Tokens& tokens, Finish finish) override {
    tokens_ = tokens;
    json::array parts;
    for (const Block& block : blocks) {
      if (block.kind == Block::Kind::tool) {
        if (is_whole(block)) parts.push_back(call(block));
      } else {
        json::object part{{"text", block.whole()}};
        if (block.kind == Block::Kind::thinking) part["thought"] = true;
        parts.push_back(std::move(part));
      }
    }
    return write(response(std::move(parts), finish));
  }
  std::string error(const Failure& failure) override { return sse({}, write(gemini::error(failure))); }

 private:
  /// Not a call that the length bound cut: in this protocol a call is sent whole, or not at all.
  static bool is_whole(const Block& block) {
    boost::system::error_code error;
    (void)json::parse(block.whole(), error);
    return !error;
  }
  static json::object call(const Block& block) {
    boost::system::error_code error;
    return {{"functionCall", {{"id", block.id}, {"name", block.name}, {"args", json::parse(block.whole(), error)}}}};
  }
  /// `finish` is that of the last event; none: more events follow.
  json::object response(json::array parts, std::optional<Finish> finish) const {
    json::object candidate{{"content", {{"role", "model"}, {"parts", std::move(parts)}}}, {"index", 0}};
    if (finish) candidate["finishReason"] = *finish == Finish::cut ? "MAX_TOKENS" : "STOP";
    const std::uint64_t input = std::uint64_t{tokens_.fresh} + tokens_.cache_read;
    json::object usage{{"promptTokenCount", input},
                       {"cachedContentTokenCount", tokens_.cache_read},
                       {"candidatesTokenCount", tokens_.output},
                       {"totalTokenCount", input + tokens_.output}};
    return {{"candidates", json::array{std::move(candidate)}},
            {"usageMetadata", std::move(usage)},
            {"modelVersion", model_},
            {"responseId", id_}};
  }

  const std::string id_;
  const std::string model_;
  Tokens tokens_;
};

}  // namespace

Result<> read(const json::object& body, std::string_view target, Ask& ask) {
  const std::size_t models = target.find("/models/");
  const std::size_t colon = target.rfind(':');
  if (models == std::string_view::npos || colon == std::string_view::npos || colon < models) {
    return fail(Errc::invalid, "the path must name a model and a method");
  }
  ask.model = target.substr(models + 8, colon - models - 8);
  ask.stream = target.substr(colon).starts_with(":streamGenerateContent");
  if (const json::object* const config = object_at(body, "generationConfig")) {
    STINT_CHECK(read_output_max(*config, "maxOutputTokens", ask));
  }
  const json::array* const list = array_at(body, "contents");
  if (list == nullptr || list->empty()) return fail(Errc::invalid, "contents: send at least one");
  Conversation conversation;
  for (const json::value& item : *list) {
    const json::object* const message = item.if_object();
    if (message == nullptr) return fail(Errc::invalid, "contents: each must be an object");
    conversation.next_message();
    if (text_at(*message, "role") == "model") {
      conversation.assistant();
      continue;
    }
    const json::array* const parts = array_at(*message, "parts");
    if (parts == nullptr) continue;
    for (const json::value& part : *parts) {
      if (const json::object* const block = part.if_object()) conversation.user_text(text_at(*block, "text"));
    }
  }
  std::move(conversation).finish(ask);
  return {};
}

std::unique_ptr<Encoder> encoder(const Ask& ask, std::uint64_t serial) {
  return std::make_unique<GeminiEncoder>(ask, serial);
}

json::value error(const Failure& failure) {
  json::object inner{{"code", failure.status}, {"message", message_of(failure)}, {"status", status_of(failure.status)}};
  if (failure.spend_limit) {
    json::object violation{{"quotaId", "GenerateRequestsPerDayPerProjectPerModel"}};
    inner["details"] = json::array{json::object{{"@type", "type.googleapis.com/google.rpc.QuotaFailure"},
                                                {"violations", json::array{std::move(violation)}}}};
  }
  return {{"error", std::move(inner)}};
}

}  // namespace stint::provider::gemini
