#include "model/answer_reader.hpp"

#include "model/dialects.hpp"

#include <algorithm>

namespace stint::model {
namespace {

constexpr std::int64_t kBytesPerToken = 4;  // of English text and code, about

std::int64_t tokens_of(std::uint64_t bytes) noexcept {
  return bytes == 0 ? 0 : static_cast<std::int64_t>(bytes) / kBytesPerToken + 1;
}

}  // namespace

AnswerReader::AnswerReader(Dialect dialect, const ReaderOptions& options)
    : answer_(dialect, options), events_(parts_of(dialect).reader()), sink_([this](const SseEvent& event) {
        if (!answer_.ended()) events_->read(event, answer_);
      }) {}
AnswerReader::~AnswerReader() = default;

std::vector<StreamEvent> AnswerReader::feed(std::string_view bytes) {
  if (!answer_.ended()) {
    if (const Result<> fed = parser_.feed(bytes, sink_); !fed) answer_.malformed(fed.error().what());
  }
  return answer_.take_events();
}

std::vector<StreamEvent> AnswerReader::finish() {
  if (!answer_.ended()) (void)parser_.finish(sink_);  // too long: `feed` has said so
  if (!answer_.ended()) events_->finish(answer_);
  if (!answer_.ended()) answer_.fail(broken_answer("the stream ended before the answer was complete"));
  return answer_.take_events();
}

std::vector<StreamEvent> AnswerReader::read_whole(std::string_view body) {
  if (const std::optional<json::value> value = parse_json(body)) {
    events_->read_whole(*value, answer_);
    events_->finish(answer_);
    if (!answer_.ended()) answer_.fail(broken_answer("the body is not an answer of this protocol"));
  } else {
    answer_.fail(broken_answer("the body is not JSON"));
  }
  return answer_.take_events();
}

Usage AnswerReader::settled_usage(std::size_t request_bytes) const noexcept {
  Usage usage = answer_.usage().value_or(Usage());
  if (answer_.completed() && answer_.usage()) return usage;
  usage.estimated = true;
  usage.out = std::max(usage.out, tokens_of(answer_.output_bytes()));
  const std::int64_t input = usage.fresh_in + usage.cache_read + usage.cache_write;
  if (input == 0) usage.fresh_in = tokens_of(request_bytes);
  return usage;
}

}  // namespace stint::model
