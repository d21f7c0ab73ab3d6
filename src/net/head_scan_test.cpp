#include "net/head_scan.hpp"

#include "net/text.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace stint::net {
namespace {

constexpr std::string_view kHead = "GET /a HTTP/1.1\r\nHost: localhost\r\nX-Long-Name:\tvalue value value\r\n\r\n";

TEST(HeadScan, takes_a_head_and_nothing_behind_it) {
  HeadScan scan;
  EXPECT_EQ(scan.feed(std::string(kHead) + "GET"), kHead.size());
  EXPECT_EQ(scan.state(), HeadScan::State::end);
}

TEST(HeadScan, refuses_each_control_character_wherever_it_stands) {
  for (std::size_t at = 0; at + 4 < kHead.size(); ++at) {
    if (kHead[at] == '\r' || kHead[at] == '\n') continue;
    for (int byte = 0; byte < 256; ++byte) {
      if (byte == '\t' || byte == ' ' || byte == '\r') continue;  // allowed in some places
      std::string head(kHead);
      head[at] = static_cast<char>(byte);
      HeadScan scan;
      const std::size_t used = scan.feed(head);
      const bool text = is_text(static_cast<unsigned char>(byte));
      ASSERT_EQ(scan.state() == HeadScan::State::end, text) << at << ' ' << byte;
      ASSERT_EQ(used, text ? head.size() : at + 1);
    }
  }
}

TEST(HeadScan, how_the_bytes_are_cut_makes_no_difference) {
  std::mt19937 random(7);  // NOLINT: the same numbers each time
  constexpr std::string_view kBytes = "aaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n\r\n \t\x7f\x80\xff";
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = round % 2 == 0 ? std::string(kHead) : std::string(random() % 60, 'a');
    for (std::size_t change = random() % 4; change > 0 && !bytes.empty(); --change) {
      bytes[random() % bytes.size()] = kBytes[random() % kBytes.size()];
    }
    HeadScan whole;
    HeadScan apart;
    const std::size_t used = whole.feed(bytes);
    std::size_t used_apart = 0;
    for (const char c : bytes) used_apart += apart.feed(std::string_view(&c, 1));
    ASSERT_EQ(whole.state(), apart.state()) << bytes;
    ASSERT_EQ(used, used_apart) << bytes;
    ASSERT_EQ(whole.in_first_line(), apart.in_first_line()) << bytes;
  }
}

}  // namespace
}  // namespace stint::net
