/// For tests of the dialects: the streams under tests/streams/model, read in pieces of any size.
#pragma once

#include "model/answer_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace stint::model {

struct NamedStream {
  Dialect dialect = Dialect::anthropic;
  std::string name;
};
/// All of them: the dialect is the beginning of the name.
inline const std::vector<NamedStream>& named_streams() {
  static const std::vector<NamedStream> all = [] {
    std::vector<NamedStream> list;
    for (const std::string_view name : {"anthropic_cut_call",
                                        "anthropic_half",
                                        "anthropic_output",
                                        "anthropic_overloaded",
                                        "anthropic_overloaded_first",
                                        "anthropic_pause",
                                        "anthropic_refusal",
                                        "anthropic_text",
                                        "anthropic_tools",
                                        "anthropic_unknown",
                                        "chat_error",
                                        "chat_filtered",
                                        "chat_half",
                                        "chat_malformed",
                                        "chat_refusal",
                                        "chat_same_index",
                                        "chat_text",
                                        "chat_tools",
                                        "chat_unknown",
                                        "responses_error",
                                        "responses_failed",
                                        "responses_half",
                                        "responses_incomplete",
                                        "responses_tools",
                                        "responses_unknown",
                                        "gemini_blocked",
                                        "gemini_error",
                                        "gemini_half",
                                        "gemini_malformed_call",
                                        "gemini_safety",
                                        "gemini_text",
                                        "gemini_tools",
                                        "gemini_unknown"}) {
      list.push_back({.dialect = *parse_dialect(name.substr(0, name.find('_'))), .name = std::string(name)});
    }
    return list;
  }();
  return all;
}

inline std::string model_stream(std::string_view name) {
  std::ifstream file(std::string(STINT_STREAMS).append("/model/").append(name).append(".sse"), std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// An answer that was read to its end.
struct ReadAnswer {
  std::vector<StreamEvent> events;
  Message message;
  std::string text;
  Usage usage;
  Usage settled;
  std::optional<Stopped> stopped;
  std::optional<Failure> failure;
  bool completed = false;
  std::uint64_t ignored = 0;

  template <class T>
  [[nodiscard]] std::vector<T> all() const {
    std::vector<T> found;
    for (const StreamEvent& event : events) {
      if (const auto* const each = std::get_if<T>(&event)) found.push_back(*each);
    }
    return found;
  }
  friend bool operator==(const ReadAnswer&, const ReadAnswer&) = default;
};

inline ReadAnswer state_of(const AnswerReader& reader, std::vector<StreamEvent> events) {
  return {.events = std::move(events),
          .message = reader.message(),
          .text = reader.answer_text(),
          .usage = reader.usage().value_or(Usage()),
          .settled = reader.settled_usage(400),
          .stopped = reader.stopped(),
          .failure = reader.failure(),
          .completed = reader.completed(),
          .ignored = reader.ignored()};
}

/// `cut(position)` is the length of the next piece.
template <class Cut>
ReadAnswer read_in_pieces(Dialect dialect, std::string_view bytes, Cut cut, const ReaderOptions& options = {}) {
  AnswerReader reader(dialect, options);
  std::vector<StreamEvent> events;
  const auto take = [&events](std::vector<StreamEvent> more) {
    events.insert(events.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t size = std::max<std::size_t>(1, cut(at));
    take(reader.feed(bytes.substr(at, size)));
    at += size;
  }
  take(reader.finish());
  return state_of(reader, std::move(events));
}

inline ReadAnswer read_answer(Dialect dialect, std::string_view bytes, const ReaderOptions& options = {}) {
  return read_in_pieces(dialect, bytes, [&](std::size_t) { return bytes.size(); }, options);
}
inline ReadAnswer read_named(std::string_view name, const ReaderOptions& options = {}) {
  return read_answer(*parse_dialect(name.substr(0, name.find('_'))), model_stream(name), options);
}

}  // namespace stint::model
