#include "model/sse_parser.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <string>
#include <vector>

namespace stint::model {
namespace {

struct ParsedEvents {
  std::vector<std::pair<std::string, std::string>> events;
  bool refused = false;
  friend bool operator==(const ParsedEvents&, const ParsedEvents&) = default;
};

ParsedEvents parse_in_pieces(std::string_view bytes, std::size_t piece, std::size_t most = SseParser::kEventBytesMax) {
  ParsedEvents parsed;
  SseParser parser(most);
  const SseParser::Sink keep = [&](const SseEvent& event) { parsed.events.emplace_back(event.name, event.data); };
  while (!bytes.empty()) {
    if (!parser.feed(bytes.substr(0, piece), keep)) parsed.refused = true;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (!parser.finish(keep)) parsed.refused = true;
  return parsed;
}
std::vector<std::pair<std::string, std::string>> parse_all(std::string_view bytes) {
  return parse_in_pieces(bytes, bytes.size()).events;
}
using Events = std::vector<std::pair<std::string, std::string>>;

TEST(SseParser, events_end_with_a_blank_line) {
  EXPECT_EQ(parse_all("event: a\ndata: 1\n\ndata: 2\n\n"), (Events{{"a", "1"}, {"", "2"}}));
}

TEST(SseParser, every_kind_of_line_end) {
  const Events expected{{"a", "1"}, {"", "2"}};
  EXPECT_EQ(parse_all("event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n"), expected);
  EXPECT_EQ(parse_all("event: a\rdata: 1\r\rdata: 2\r\r"), expected);
  EXPECT_EQ(parse_all("event: a\rdata: 1\r\n\ndata: 2\n\r\n"), expected);
}

TEST(SseParser, data_lines_are_joined) {
  EXPECT_EQ(parse_all("data: 1\ndata:2\ndata\ndata:  3\n\n"), (Events{{"", "1\n2\n\n 3"}}));
}

TEST(SseParser, comments_ids_and_retry_are_ignored) {
  EXPECT_EQ(parse_all(": PROCESSING\n\n:\nid: 4\nretry: 10\ndata: 1\nunknown: x\n\n"), (Events{{"", "1"}}));
}

TEST(SseParser, an_event_without_data_is_none) {
  EXPECT_EQ(parse_all("event: ping\n\ndata: 1\n\ndata:\n\n"), (Events{{"", "1"}}));
}

TEST(SseParser, a_byte_order_mark_is_skipped_once) {
  EXPECT_EQ(parse_all("\xEF\xBB\xBF"
                      "data: 1\n\n\xEF\xBB\xBF"
                      "data: 2\n\n"),
            (Events{{"", "1"}}));
}

TEST(SseParser, the_last_blank_line_may_be_missing) {
  EXPECT_EQ(parse_all("data: 1\n\ndata: [DONE]\n"), (Events{{"", "1"}, {"", "[DONE]"}}));
  EXPECT_EQ(parse_all("data: 1\n\ndata: [DONE]"), (Events{{"", "1"}, {"", "[DONE]"}}));
}

TEST(SseParser, a_bound_on_lines_and_events_but_not_on_comments) {
  constexpr std::size_t kMost = 20;
  const std::string exact = "data: " + std::string(14, 'x') + "\n\n";
  for (std::size_t piece = 1; piece < 30; ++piece) {
    EXPECT_FALSE(parse_in_pieces(exact, piece, kMost).refused) << piece;
    EXPECT_TRUE(parse_in_pieces("data: " + std::string(15, 'x') + "\n\n", piece, kMost).refused) << piece;
    EXPECT_TRUE(parse_in_pieces("data: 123456789\ndata: 12345678901\n\n", piece, kMost).refused) << piece;
    EXPECT_EQ(parse_in_pieces(":" + std::string(500, 'x') + "\n" + exact, piece, kMost).events.size(), 1U) << piece;
  }
}

TEST(SseParser, after_an_overflow_everything_is_refused) {
  SseParser parser(8);
  const SseParser::Sink none = [](const SseEvent&) { FAIL() << "an event after an overflow"; };
  EXPECT_EQ(parser.feed("data: 123456789", none).error().code(), Errc::full);
  EXPECT_FALSE(parser.feed("\n\ndata: 1\n\n", none));
  EXPECT_FALSE(parser.finish(none));
}

/// The parser as its specification says it, over the whole text.
ParsedEvents naive_parse(const std::string& text) {
  ParsedEvents parsed;
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
    if (text[i] == '\r' || text[i] == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += text[i];
    }
  }
  lines.emplace_back();  // a missing last blank line
  std::string name, data;
  bool has_data = false;
  for (const std::string& line : lines) {
    if (line.empty()) {
      if (!data.empty()) parsed.events.emplace_back(name, data);
      name = data = "";
      has_data = false;
      continue;
    }
    const std::size_t colon = line.find(':');
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.erase(0, 1);
    const std::string field = line.substr(0, colon);
    if (field == "event") name = value;
    if (field == "data") data += (std::exchange(has_data, true) ? "\n" : "") + value;
  }
  return parsed;
}

TEST(SseParserProperty, any_cut_gives_the_same_events) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& choices, std::uint8_t piece) {
    const std::vector<std::string> words{"data", "data:", "data: x", "event: e", ":", ": c", "\n",
                                         "\r",   "\r\n",  "\n\n",    "id: 1",    " ", "é",   ":"};
    std::string text;
    for (const std::uint8_t choice : choices) text += words[choice % words.size()];
    const ParsedEvents expected = naive_parse(text);
    RC_ASSERT(parse_in_pieces(text, std::max<std::size_t>(1, text.size())) == expected);
    RC_ASSERT(parse_in_pieces(text, 1) == expected);
    RC_ASSERT(parse_in_pieces(text, piece % 7 + 1) == expected);
  }));
}

}  // namespace
}  // namespace stint::model
