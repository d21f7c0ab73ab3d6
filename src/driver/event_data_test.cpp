#include "driver/event_data.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::driver {
namespace {

std::vector<std::string> events_in(std::string_view text, std::size_t step = 1000) {
  EventData data(1000);
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size(); at += step) EXPECT_TRUE(data.feed(text.substr(at, step), out));
  return out;
}

TEST(EventData, joins_the_data_lines_of_an_event) {
  using Events = std::vector<std::string>;
  EXPECT_EQ(events_in("data: a\n\n"), Events{"a"});
  EXPECT_EQ(events_in(": x\nevent: e\nid: 1\ndata:a\ndata:  b\ndata\n\ndata: c\n\n"), (Events{"a\n b\n", "c"}));
  EXPECT_EQ(events_in("event: e\n\ndatabase: x\n\n"), Events{});
  EXPECT_EQ(events_in("data: a\r\n\r\ndata: b\r\rdata: unfinished\n"), (Events{"a", "b"}));
}

TEST(EventData, an_event_is_bounded) {
  EventData data(10);
  std::vector<std::string> out;
  EXPECT_FALSE(data.feed("data: 0123456789", out));
}

TEST(EventDataProperty, the_cut_of_the_bytes_does_not_matter) {
  EXPECT_TRUE(rc::check("cuts", [] {
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("dat: \r\n\n")));
    const std::string whole = "data: " + text + "\n\ndata: x\r\n\r\n";
    RC_ASSERT(events_in(whole, *rc::gen::inRange<std::size_t>(1, 9)) == events_in(whole));
  }));
}

}  // namespace
}  // namespace stint::driver
