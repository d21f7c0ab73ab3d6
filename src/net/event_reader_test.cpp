#include "net/event_reader.hpp"

#include <gtest/gtest.h>

namespace stint::net {
namespace {

constexpr std::string_view kStream =
    "retry: 1000\n\n:\n\nid: 7\nevent: claimed\ndata: {\"a\":\ndata: 1}\n\ndata: no id\n\nid:8\r\ndata:x\r\n\r\n:\n\n";

TEST(EventReader, events_are_counted_and_comments_are_not) {
  EventReader reader;
  EXPECT_FALSE(reader.feed(":\n\n:\n\nretry: 5\n\n"));
  EXPECT_TRUE(reader.feed("data: x\n\n"));
  EXPECT_EQ(reader.last_id(), "");
  EXPECT_FALSE(reader.feed("id: 3\ndata: half\n"));
  EXPECT_EQ(reader.last_id(), "") << "the event is not complete yet";
  EXPECT_TRUE(reader.feed("\n"));
  EXPECT_EQ(reader.last_id(), "3");
}

TEST(EventReader, bytes_may_come_in_any_pieces) {
  for (std::size_t piece = 1; piece <= kStream.size(); ++piece) {
    EventReader reader;
    int whole = 0;
    for (std::size_t at = 0; at < kStream.size(); at += piece) whole += reader.feed(kStream.substr(at, piece)) ? 1 : 0;
    EXPECT_GE(whole, 1);
    if (piece == 1) EXPECT_EQ(whole, 3);
    EXPECT_EQ(reader.last_id(), "8");
  }
}

TEST(EventReader, a_new_stream_resumes_after_the_last_complete_event) {
  EventReader reader;
  EXPECT_TRUE(reader.feed("id: 3\ndata: x\n\nid: 4\ndata: ha"));
  reader.begin_anew();
  EXPECT_EQ(reader.last_id(), "3");
  EXPECT_FALSE(reader.feed(":\n\n"));
  EXPECT_EQ(reader.last_id(), "3");
}

TEST(EventReader, an_endless_line_needs_no_memory) {
  EventReader reader;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(reader.feed("data: " + std::string(100'000, 'x')));
  EXPECT_TRUE(reader.feed("\nid: 5\n\n"));
  EXPECT_EQ(reader.last_id(), "5");
}

TEST(EventReader, a_beat_is_no_event_and_changes_no_id) {
  EventReader reader;
  EXPECT_TRUE(reader.feed("id: 7\nevent: claimed\ndata: {}\n\n"));
  EXPECT_FALSE(reader.feed("event: beat\ndata: {}\n\n"));
  EXPECT_EQ(reader.last_id(), "7");
  EXPECT_TRUE(reader.feed("data: {}\n\n")) << "the next one is";
}

}  // namespace
}  // namespace stint::net
