/// The transcript of a run: what was said and which tools were called, in order, from its events and its output. Read
/// in pages; a reader continues from `next`. Pure.
///
/// Notes have their place in the output: the text before it comes first. A note may be in the store before that text
/// is; the page of a running run then ends before the note.
#pragma once

#include "domain/span.hpp"
#include "engine/output_slice.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::engine {

/// The position of a reader.
struct TranscriptPlace {
  std::int64_t seq = 0;    ///< of the last event that was read
  std::uint64_t byte = 0;  ///< of the output

  friend bool operator==(const TranscriptPlace&, const TranscriptPlace&) = default;
};
[[nodiscard]] std::string to_string(const TranscriptPlace& place);
[[nodiscard]] std::optional<TranscriptPlace> parse_transcript_place(std::string_view text) noexcept;

struct TranscriptItem {
  enum class Kind : std::uint8_t {
    text,        ///< of the output: `byte`, `text`
    left_out,    ///< bytes of the output that are not kept: `byte`, `bytes`
    attempt,     ///< one begins: `fence`
    tool,        ///< one is called: `text`
    tool_end,    ///< its result: `name`, `length`, `text`
    model_call,  ///< one is over: `name`, `length`, `usage`
    note,        ///< `text`
    ended,       ///< the attempt has ended: `text` is the cause, `error`
  };
  Kind kind = Kind::text;
  std::int64_t seq = 0;  ///< 0: not an event
  WallTime at{};         ///< of an event
  domain::Fence fence{};
  std::uint64_t byte = 0, bytes = 0;
  std::string text{}, name{}, error{};
  Duration length{};
  Usage usage{};
};
[[nodiscard]] std::string_view to_string(TranscriptItem::Kind kind) noexcept;

/// An event of the run, as far as the transcript needs it.
struct TranscriptFact {
  store::Event event;
  std::string note{};
  std::optional<domain::Span> span{};
  std::optional<std::uint64_t> output_at{};
};

struct TranscriptInput {
  std::vector<TranscriptFact> facts;  ///< after `from`, in order, without a gap
  bool complete = true;               ///< there are no more
  store::Output output;
  bool ended = false;  ///< the run prints no more
};

struct Transcript {
  static constexpr std::size_t kTextMax = 64 << 10;  // of a page
  static constexpr std::uint32_t kEventsMax = 500;   // … that are looked at
  std::vector<TranscriptItem> items;
  TranscriptPlace next;
  bool more = false;        ///< the next page has something already
  std::uint64_t bytes = 0;  ///< of output, so far
};
[[nodiscard]] Transcript make_transcript(const TranscriptInput& input, TranscriptPlace from);

}  // namespace stint::engine
