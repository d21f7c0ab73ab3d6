// Any bytes as a whole body of a provider, an answer or an error, in every dialect; and as a message from the store.
#include "model/gateway_usage.hpp"
#include "model/message_codec.hpp"
#include "stint/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace stint;

namespace {

void read_answer(model::Dialect dialect, std::string_view bytes) {
  constexpr int kOk = 200;
  model::GatewayUsage gateway(dialect, {.status = kOk, .headers = {}}, {});
  gateway.feed(bytes);
  const model::AnswerSummary summary = gateway.finish();
  STINT_ASSERT(!summary.usage || summary.usage->tokens() >= 0);
  STINT_ASSERT(summary.completed || summary.failure || summary.unknown > 0);
}

void read_error(model::Dialect dialect, std::string_view bytes) {
  for (const int status : {400, 401, 429, 500, 529}) {
    const std::string header(bytes.substr(0, 40));
    const model::Failure failure =
        model::classify_response(dialect, status, {{"retry-after", header}, {"x-should-retry", header}}, bytes, {});
    STINT_ASSERT(failure.message.size() <= model::Failure::kMessageMax);
    STINT_ASSERT(failure.code.size() <= model::Failure::kCodeMax);
    STINT_ASSERT(failure.message.find_first_of("\r\n\t") == std::string::npos);
    STINT_ASSERT(!failure.delay || failure.delay->count() >= 0);
  }
}

void read_stored(std::string_view bytes) {
  const Result<model::Message> first = model::read_message(bytes);
  if (!first) {
    STINT_ASSERT(!first.error().describe().empty());
    return;
  }
  const std::string once = model::to_json(*first);
  const Result<model::Message> second = model::read_message(once);
  STINT_ASSERT(second && model::to_json(*second) == once);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const model::Dialect dialect : model::kDialects) {
    read_answer(dialect, bytes);
    read_error(dialect, bytes);
  }
  read_stored(bytes);
  return 0;
}
