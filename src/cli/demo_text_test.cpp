#include "cli/demo_text.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

TEST(DemoText, width_counts_characters_and_no_control_sequences) {
  EXPECT_EQ(width_of("abc"), 3);
  EXPECT_EQ(width_of("█░…"), 3);
  EXPECT_EQ(width_of("\033[1;31mred\033[0m"), 3);
}

TEST(DemoText, a_clipped_line_ends_with_an_ellipsis_and_never_cuts_a_character) {
  const Line line = Line("██").add("██", Style::red);
  EXPECT_EQ(line.clipped(4, true).str(false), "████");
  EXPECT_EQ(line.clipped(3, true).str(false), "██…");
  EXPECT_EQ(line.clipped(1, true).str(false), "…");
  EXPECT_EQ(line.clipped(0, true).str(false), "");
  EXPECT_EQ(Line("abcd").clipped(3, false).str(false), "ab~");
}

TEST(DemoText, a_padded_line_is_exactly_as_wide_as_asked) {
  for (int columns = 0; columns < 10; ++columns) EXPECT_EQ(Line("ab…de").padded(columns, true).width(), columns);
}

TEST(DemoText, colour_is_left_out_when_it_is_not_wanted) {
  EXPECT_EQ(Line("x", Style::red).str(false), "x");
  EXPECT_EQ(Line("x", Style::red).str(true), "\033[1;31mx\033[0m");
}

TEST(DemoText, wraps_at_spaces) {
  EXPECT_EQ(wrapped("one two three", 7, 3), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("one two three four", 7, 2), (std::vector<std::string>{"one two", "three ..."}));
  EXPECT_EQ(wrapped("", 7, 2), (std::vector<std::string>{""}));
}

TEST(DemoText, ascii_keeps_the_meaning) { EXPECT_EQ(to_ascii("a · b … █"), "a - b ... ?"); }

}  // namespace
}  // namespace stint::cli
