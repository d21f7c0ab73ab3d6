#include "cli/printable.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

TEST(Printable, leaves_text_as_it_is) { EXPECT_EQ(printable("Prüft 1 € · 😀 ~"), "Prüft 1 € · 😀 ~"); }

TEST(Printable, removes_control_characters) {
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
  EXPECT_EQ(printable("a\xD8\x9C"
                      "b"),
            "a?b");  // Arabic letter mark
  EXPECT_EQ(printable("a\xF3\xA0\x81\x81"
                      "b"),
            "a?b");  // an invisible tag
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
}

/// UTF-8 of a character above U+007F.
std::string utf8(char32_t c) {
  const auto tail = [c](unsigned shift) { return static_cast<char>(0x80U | ((c >> shift) & 0x3FU)); };
  if (c < 0x800) return {static_cast<char>(0xC0U | (c >> 6U)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0U | (c >> 12U)), tail(6), tail(0)};
  return {static_cast<char>(0xF0U | (c >> 18U)), tail(12), tail(6), tail(0)};
}

TEST(Printable, removes_invisible_characters) {
  for (const char32_t c :
       {0xADU,   0x34FU,  0x61CU,  0x115FU,  0x1160U,  0x17B4U,  0x180BU,  0x180EU,  0x200BU,  0x200CU, 0x200DU,
        0x200EU, 0x200FU, 0x2060U, 0x2062U,  0x2064U,  0x206FU,  0x3164U,  0xFE00U,  0xFE0EU,  0xFE0FU, 0xFEFFU,
        0xFFA0U, 0xFFF9U, 0xFFFBU, 0x1D173U, 0x1BCA0U, 0xE0001U, 0xE0041U, 0xE0100U, 0xE01EFU, 0xE0FFFU}) {
    EXPECT_EQ(printable("a" + utf8(c) + "b"), "a?b") << std::hex << static_cast<unsigned>(c);
    EXPECT_EQ(clean_text("a" + utf8(c) + "b", true), "ab") << std::hex << static_cast<unsigned>(c);
  }
}

TEST(Printable, keeps_joiners_and_selectors_after_characters_that_use_them) {
  const std::string technician = utf8(0x1F469) + utf8(0x1F3FD) + utf8(0x200D) + utf8(0x1F4BB);
  const std::string fire = utf8(0x2764) + utf8(0xFE0F) + utf8(0x200D) + utf8(0x1F525);
  const std::string persian = utf8(0x0645) + utf8(0x06CC) + utf8(0x200C) + utf8(0x062E);
  const std::string sinhala = utf8(0x0DC1) + utf8(0x0DCA) + utf8(0x200D) + utf8(0x0DBB);
  for (const std::string& text : {technician, fire, persian, sinhala}) {
    EXPECT_EQ(printable(text), text);
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      CleanText clean(true);
      std::string out = clean.add(text.substr(0, cut));
      out += clean.add(text.substr(cut));
      EXPECT_EQ(out + clean.finish(), text) << cut;
    }
  }
  // Once: more of them hide something.
  EXPECT_EQ(printable(utf8(0x2764) + utf8(0xFE0F) + utf8(0xFE0F)), utf8(0x2764) + utf8(0xFE0F) + "?");
  EXPECT_EQ(printable(utf8(0x1F469) + utf8(0x200D) + utf8(0x200D)), utf8(0x1F469) + utf8(0x200D) + "?");
  EXPECT_EQ(printable("a" + utf8(0xFE0F) + utf8(0x200D)), "a??");
  EXPECT_EQ(printable("1" + utf8(0xFE0F) + utf8(0x20E3)), "1?" + utf8(0x20E3));
  EXPECT_EQ(clean_text(utf8(0x2764) + "\033[0m" + utf8(0xFE0F), false), utf8(0x2764));
}

TEST(Printable, marks_each_byte_that_is_not_utf8) {
  EXPECT_EQ(printable("a\xff\xfe"
                      "b"),
            "a??b");
  EXPECT_EQ(printable("\xE2\x82"), "??");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m");
}

TEST(CleanText, lines_tabs_and_colour_stay_everything_else_goes) {
  EXPECT_EQ(clean_text("a\tb\n\033[1;31mred\033[0m\n", true), "a\tb\n\033[1;31mred\033[0m\n");
  EXPECT_EQ(clean_text("\033[31mred\033[0m", false), "red");
  EXPECT_EQ(clean_text("\033]0;title\a\033]8;;http://x\033\\link\033]8;;\033\\", true), "link");
  EXPECT_EQ(clean_text("\033[2J\033[H\033[?1049h\033[6nx\033(B\033cy", true), "xy");
  EXPECT_EQ(clean_text("a\bb\x07\x7f\xc2\x9b"
                       "c",
                       true),
            "abc");
  EXPECT_EQ(clean_text("\xff\xe2\x82", true), "???");
  EXPECT_EQ(clean_text("\xe2\x80\xae"
                       "evil",
                       true),
            "evil");
}

TEST(CleanText, a_colour_does_not_outlast_the_text) {
  EXPECT_EQ(clean_text("\033[31mred", true), "\033[31mred\033[0m");
}

TEST(CleanText, a_carriage_return_begins_a_line) { EXPECT_EQ(clean_text("1%\r2%\r\ndone\r", false), "1%\n2%\ndone\n"); }

TEST(CleanText, an_unfinished_string_does_not_swallow_the_next_line) {
  EXPECT_EQ(clean_text("\033]0;never ends\nhello", true), "\nhello");
}

TEST(CleanText, pieces_cut_anywhere_give_the_same) {
  const std::string text =
      "a\033[1;32mgrün\033[0m\r\n\033]0;t\a€\033[2Kb\r"
      "c";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CleanText clean(true);
    std::string out = clean.add(text.substr(0, cut));
    out += clean.add(text.substr(cut));
    out += clean.finish();
    EXPECT_EQ(out, clean_text(text, true)) << cut;
  }
}

TEST(CleanText, holds_an_unfinished_sequence_up_to_a_bound) {
  CleanText clean(true);
  EXPECT_EQ(clean.add("\033["), "");
  EXPECT_NE(clean.add(std::string(2 * CleanText::kHeldMax, '1')), "");
}

}  // namespace
}  // namespace stint::cli
