#include "engine/output_slice.hpp"

#include <gtest/gtest.h>

namespace stint::engine {
namespace {

/// offset, text and next of a slice.
std::string shown(const OutputSlice& slice) {
  return std::to_string(slice.offset) + ":" + slice.text + ":" + std::to_string(slice.next);
}

TEST(OutputSlice, begins_at_the_requested_byte) {
  const store::Output output{.head = "hello ", .tail = "you", .bytes = 9};
  EXPECT_EQ(shown(slice_output(output, 0, true)), "0:hello you:9");
  EXPECT_EQ(shown(slice_output(output, 4, true)), "4:o you:9");
  EXPECT_EQ(shown(slice_output(output, 7, true)), "7:ou:9");
  EXPECT_EQ(shown(slice_output(output, 9, true)), "9::9");
  EXPECT_EQ(slice_output(output, 4, true).bytes, 9U);
}

TEST(OutputSlice, an_offset_beyond_the_end_is_the_end) {
  EXPECT_EQ(shown(slice_output({.head = "abc", .tail = "", .bytes = 3}, 100, false)), "3::3");
  EXPECT_EQ(shown(slice_output({}, 1, true)), "0::0");
}

TEST(OutputSlice, stops_at_a_gap_and_continues_after_it) {
  const store::Output output{.head = "head", .tail = "tail", .bytes = 100};
  EXPECT_EQ(shown(slice_output(output, 1, true)), "1:ead:4");
  EXPECT_EQ(shown(slice_output(output, 4, true)), "96:tail:100") << "the bytes between are not kept";
  EXPECT_EQ(shown(slice_output(output, 97, true)), "97:ail:100");
}

TEST(OutputSlice, holds_back_an_incomplete_character) {
  const std::string euro = "\xE2\x82\xAC";
  const store::Output half{.head = "a" + euro.substr(0, 2), .tail = "", .bytes = 3};
  EXPECT_EQ(shown(slice_output(half, 0, false)), "0:a:1");
  EXPECT_EQ(shown(slice_output(half, 1, false)), "1::1") << "nothing to show yet";
  EXPECT_EQ(shown(slice_output(half, 0, true)), "0:a" + euro.substr(0, 2) + ":3") << "the rest never comes";
  const store::Output whole{.head = "a" + euro, .tail = "", .bytes = 4};
  EXPECT_EQ(shown(slice_output(whole, 1, false)), "1:" + euro + ":4");
}

TEST(OutputSlice, holds_nothing_back_of_bytes_that_are_not_utf8) {
  const store::Output output{.head = "\x80\x80\x80\x80", .tail = "", .bytes = 4};
  EXPECT_EQ(slice_output(output, 0, false).next, 4U);
}

TEST(OutputSlice, consecutive_slices_return_each_kept_byte_once_and_in_order) {
  for (const std::uint64_t gap : {0, 1, 50}) {
    const store::Output output{.head = "0123456789", .tail = "abcdef", .bytes = 16 + gap};
    std::string text;
    std::uint64_t missed = 0;
    for (std::uint64_t from = 0; from < output.bytes;) {
      const OutputSlice slice = slice_output(output, from, true);
      ASSERT_GT(slice.next, from);
      missed += slice.offset - from;
      text += slice.text;
      from = slice.next;
    }
    EXPECT_EQ(text, "0123456789abcdef");
    EXPECT_EQ(missed, gap);
  }
}

}  // namespace
}  // namespace stint::engine
