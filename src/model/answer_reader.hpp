/// Reads a streamed answer: bytes in, cut anywhere, events out, the same however they were cut. Keeps the assembled
/// message for the next request. One per answer; not thread-safe; pure.
///
/// Unknown events, blocks and fields are skipped and counted: providers add some without notice. An event that can't
/// be read at all fails the answer, because a part of it may be missing. After the last event, AnswerCompleted or
/// AnswerFailed, further bytes are ignored.
#pragma once

#include "model/answer_builder.hpp"
#include "model/sse_parser.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::model {

class EventReader;

class AnswerReader {
 public:
  explicit AnswerReader(Dialect dialect, const ReaderOptions& options = {});
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;
  ~AnswerReader();

  [[nodiscard]] std::vector<StreamEvent> feed(std::string_view bytes);
  /// The end of the body, whether it was closed or broke off. Without the protocol's terminator the answer has failed.
  [[nodiscard]] std::vector<StreamEvent> finish();
  /// Instead of a stream: an answer in one piece, the whole body.
  [[nodiscard]] std::vector<StreamEvent> read_whole(std::string_view body);

  [[nodiscard]] bool ended() const noexcept { return answer_.ended(); }
  [[nodiscard]] bool completed() const noexcept { return answer_.completed(); }
  [[nodiscard]] const std::optional<Failure>& failure() const noexcept { return answer_.failure(); }
  [[nodiscard]] const std::optional<Stopped>& stopped() const noexcept { return answer_.stopped(); }
  /// What the provider reported; none: nothing so far.
  [[nodiscard]] const std::optional<Usage>& usage() const noexcept { return answer_.usage(); }
  /// For the budget: what was reported for a complete answer. Otherwise an estimate from the bytes in both directions,
  /// marked so, never below what was reported.
  [[nodiscard]] Usage settled_usage(std::size_t request_bytes) const noexcept;
  [[nodiscard]] const std::string& model() const noexcept { return answer_.model(); }
  /// What was skipped because it is unknown.
  [[nodiscard]] std::uint64_t ignored() const noexcept { return answer_.ignored(); }
  /// The message to send back next time. Without calls that are not complete.
  [[nodiscard]] Message message() const { return answer_.message(); }
  /// The answer for people; of a request with an output schema: the JSON.
  [[nodiscard]] std::string answer_text() const { return answer_.answer_text(); }

 private:
  SseParser parser_;
  AnswerBuilder answer_;
  std::unique_ptr<EventReader> events_;
  const SseParser::Sink sink_;
};

}  // namespace stint::model
