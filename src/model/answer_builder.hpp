/// Assembles an answer from what a dialect reads: the events for the caller, and the message to send back next time.
/// One per answer; not thread-safe. Everything that it keeps is bounded, for any input.
///
/// A dialect names each part of the answer by a key that grows in the order of the message; parts may be interleaved.
#pragma once

#include "model/stream_event.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::model {

/// Ids that we gave to calls without one begin so.
inline constexpr std::string_view kOwnCallId = "stint-";

struct ReaderOptions {
  /// For bytes that are only observed: keeps no text, and what is not understood is counted instead of a failure.
  bool observes = false;
  WallTime now{};  ///< the time when the answer began: "resets at eight" inside a stream needs it
};

class AnswerBuilder {
 public:
  static constexpr std::size_t kAnswerBytesMax = 32 << 20;  // the largest request that a provider accepts
  static constexpr std::size_t kPartsMax = 4096;

  AnswerBuilder(Dialect dialect, const ReaderOptions& options) noexcept : dialect_(dialect), options_(options) {}

  // By a dialect.
  void start(std::string_view id, std::string_view model);
  void text(std::size_t key, std::string_view delta);
  /// Shown only; what must be sent back is `opaque`.
  void thinking(std::string_view delta);
  /// Without an id the call gets one of ours.
  void begin_call(std::size_t key, std::string_view id, std::string_view name);
  void arguments(std::size_t key, std::string_view delta);
  void end_call(std::size_t key);
  void end_calls();
  /// A part in the dialect's own JSON.
  void opaque(std::size_t key, std::string_view json);
  /// Counts bytes that a dialect keeps for a part that is not complete. False: too many, and the answer has failed.
  [[nodiscard]] bool grow(std::size_t bytes);
  void usage(const Usage& so_far);
  void stop(StopReason reason, std::string_view verbatim);
  /// The protocol's own terminator.
  void complete();
  void fail(Failure failure);
  void fail(const ErrorNote& note) { fail(classify_note(note, options_.now)); }
  /// Something that is unknown, and left out.
  void ignore() noexcept { ++ignored_; }
  /// Something that can't be read, and may have been a part of the answer.
  void malformed(std::string_view what);

  [[nodiscard]] bool has_part(std::size_t key) const { return parts_.contains(key); }
  [[nodiscard]] bool has_calls() const noexcept { return calls_ > 0; }
  /// Whether the call's arguments are empty so far.
  [[nodiscard]] bool lacks_arguments(std::size_t key) const;

  // By the reader.
  [[nodiscard]] std::vector<StreamEvent> take_events() { return std::exchange(events_, {}); }
  [[nodiscard]] bool ended() const noexcept { return completed_ || failure_.has_value(); }
  [[nodiscard]] bool completed() const noexcept { return completed_; }
  [[nodiscard]] const std::optional<Failure>& failure() const noexcept { return failure_; }
  [[nodiscard]] const std::optional<Stopped>& stopped() const noexcept { return stopped_; }
  [[nodiscard]] const std::optional<Usage>& usage() const noexcept { return usage_; }
  [[nodiscard]] const std::string& model() const noexcept { return model_; }
  [[nodiscard]] std::uint64_t ignored() const noexcept { return ignored_; }
  [[nodiscard]] std::uint64_t output_bytes() const noexcept { return output_bytes_; }
  [[nodiscard]] Message message() const;
  [[nodiscard]] std::string answer_text() const;

 private:
  enum class Kind : std::uint8_t { text, output, call, opaque };  // output: a call of kOutputTool
  struct Part {
    Kind kind = Kind::text;
    bool open = false;
    std::size_t index = 0;  // of a call
    std::string id, name;
    std::string content;  // text, arguments, or JSON
  };
  Part* add(std::size_t key, Kind kind);
  Part* find(std::size_t key, Kind kind);
  void append(Part& part, std::string_view delta);
  void output(std::string_view delta);
  void end(Part& part);
  void emit(StreamEvent event) { events_.push_back(std::move(event)); }

  const Dialect dialect_;
  const ReaderOptions options_;
  std::map<std::size_t, Part> parts_;
  std::vector<StreamEvent> events_;
  std::string id_, model_;
  std::optional<Usage> usage_;
  std::optional<Stopped> stopped_;
  std::optional<Failure> failure_;
  std::size_t bytes_ = 0;
  std::size_t calls_ = 0;
  std::uint64_t output_bytes_ = 0, ignored_ = 0;
  bool started_ = false, completed_ = false, has_output_ = false;
};

}  // namespace stint::model
