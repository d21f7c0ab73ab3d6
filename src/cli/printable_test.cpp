#include "cli/printable.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

TEST(Printable, leaves_text_as_it_is) { EXPECT_EQ(printable("Prüft 1 € · 😀 ~"), "Prüft 1 € · 😀 ~"); }

TEST(Printable, takes_out_what_moves_a_terminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\x07\r"), "a?[2Jb??");
  EXPECT_EQ(printable("a\x7f"), "a?");
  EXPECT_EQ(printable("a\nb\tc"), "a b c");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "?31m");  // CSI in eight bits
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "a?b");  // right-to-left override
  EXPECT_EQ(printable("a\xE2\x81\xA6"
                      "b"),
            "a?b");  // isolate
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
}

TEST(Printable, bytes_that_are_no_text_are_marked_one_by_one) {
  EXPECT_EQ(printable("a\xff\xfe"
                      "b"),
            "a??b");
  EXPECT_EQ(printable("\xE2\x82"), "??");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m");
}

}  // namespace
}  // namespace stint::cli
