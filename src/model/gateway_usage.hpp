/// Reads what passes through the gateway: usage, stop and error of an answer whose bytes are forwarded unchanged. For
/// answers of all dialects, as a stream or in one piece. Tolerant of anything: what it does not understand is
/// `unknown`, and never an error.
///
/// One per answer; not thread-safe; pure. Buffers an answer in one piece up to `kBodyMax`, of a stream one event.
#pragma once

#include "model/answer_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::model {

struct AnswerSummary {
  std::string model;           ///< as the provider named it; may be empty
  std::optional<Usage> usage;  ///< none: it reported nothing
  std::optional<Stopped> stopped;
  std::optional<Failure> failure;  ///< of the status or inside the stream, or an answer that is not complete
  bool completed = false;
  std::uint64_t unknown = 0;  ///< what was not understood
};

struct AnswerHead {
  int status = 0;
  Headers headers{};
};

class GatewayUsage {
 public:
  static constexpr std::size_t kBodyMax = 16 << 20;

  /// `now` is the time when the head arrived.
  GatewayUsage(Dialect dialect, AnswerHead head, WallTime now);

  void feed(std::string_view bytes);
  /// The usage reported so far, for a budget that ends a stream.
  [[nodiscard]] const std::optional<Usage>& usage() const noexcept { return reader_.usage(); }
  [[nodiscard]] AnswerSummary finish();

 private:
  enum class Form : std::uint8_t { stream, body, error };

  const Dialect dialect_;
  const AnswerHead head_;
  const WallTime now_;
  const Form form_;
  AnswerReader reader_;
  std::string body_;
  std::uint64_t unknown_ = 0;
};

}  // namespace stint::model
