// Any bytes as the streamed answer of a model, in every dialect: one last event, the same answer however the bytes were
// cut, a message that can be stored and sent back, and the same usage for the gateway.
#include "model/answer_reader.hpp"
#include "model/gateway_usage.hpp"
#include "model/json.hpp"
#include "model/message_codec.hpp"
#include "stint/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace stint;

namespace {

struct Answer {
  std::vector<model::StreamEvent> events;
  model::Message message;
  std::uint64_t ignored = 0;
  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer read(model::Dialect dialect, std::string_view bytes, std::size_t piece) {
  Answer answer;
  model::AnswerReader reader(dialect);
  const auto take = [&answer](std::vector<model::StreamEvent> more) {
    for (model::StreamEvent& each : more) answer.events.push_back(std::move(each));
  };
  while (!bytes.empty()) {
    take(reader.feed(bytes.substr(0, piece)));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  take(reader.finish());
  STINT_ASSERT(reader.completed() != reader.failure().has_value());
  STINT_ASSERT(reader.settled_usage(1).tokens() >= 0);
  answer.message = reader.message();
  answer.ignored = reader.ignored();
  return answer;
}

void look_at(model::Dialect dialect, const Answer& answer) {
  const bool completed = std::holds_alternative<model::AnswerCompleted>(answer.events.back());
  STINT_ASSERT(completed || std::holds_alternative<model::AnswerFailed>(answer.events.back()));
  const Result<model::Message> stored = model::read_message(model::to_json(answer.message));
  STINT_ASSERT(stored && stored->content.size() == answer.message.content.size());
  model::ModelRequest request;
  request.model = "m";
  request.messages = {answer.message};
  const Result<model::HttpRequest> sent = model::write_request(dialect, request);
  STINT_ASSERT(sent && model::parse_object(sent->body));
}

void observe(model::Dialect dialect, std::string_view bytes) {
  constexpr int kOk = 200;
  model::GatewayUsage gateway(dialect, {.status = kOk, .headers = {{"content-type", "text/event-stream"}}}, {});
  gateway.feed(bytes);
  const model::AnswerSummary summary = gateway.finish();
  STINT_ASSERT(summary.completed != summary.failure.has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const model::Dialect dialect : model::kDialects) {
    const Answer whole = read(dialect, bytes, std::string_view::npos);
    look_at(dialect, whole);
    STINT_ASSERT(read(dialect, bytes, 1) == whole);
    observe(dialect, bytes);
  }
  return 0;
}
