#include "driver/output_window.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace stint::driver {
namespace {

TEST(OutputWindow, keeps_what_fits) {
  EXPECT_EQ(bounded_output("abc", 4), "abc");
  EXPECT_EQ(bounded_output("abcd", 4), "abcd");
  EXPECT_EQ(bounded_output("", 4), "");
}

TEST(OutputWindow, keeps_beginning_and_end_and_says_what_was_left_out) {
  EXPECT_EQ(bounded_output("0123456789", 8), "012345\n[2 bytes left out]\n89");
  EXPECT_EQ(bounded_output("aaaaaa" + std::string(1000, 'x') + "zz", 8), "aaaaaa\n[1000 bytes left out]\nzz");
}

TEST(OutputWindow, cuts_between_characters_and_replaces_what_is_not_utf8) {
  EXPECT_EQ(bounded_output("aaaaaäxxxxxxäb", 8), "aaaaa\n[10 bytes left out]\nb");
  EXPECT_EQ(bounded_output("a\xff"
                           "b",
                           8),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(bounded_output("\xC3", 8), "\xEF\xBF\xBD");
}

TEST(OutputWindowProperty, pieces_do_not_matter_and_the_bytes_add_up) {
  EXPECT_TRUE(rc::check("head, tail and the rest", [] {
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcdef")));
    const auto bytes_max = *rc::gen::inRange<std::size_t>(4, 20);
    const auto step = *rc::gen::inRange<std::size_t>(1, 9);
    OutputWindow window(bytes_max);
    for (std::size_t at = 0; at < text.size(); at += step) window.add(std::string_view(text).substr(at, step));
    RC_ASSERT(window.text() == bounded_output(text, bytes_max));
    if (text.size() <= bytes_max - bytes_max / 4) {
      RC_ASSERT(window.text() == text);
    } else if (text.size() > bytes_max) {
      const std::string said = "\n[" + std::to_string(text.size() - bytes_max) + " bytes left out]\n";
      const std::string tail = text.substr(text.size() - bytes_max / 4);
      RC_ASSERT(window.text() == text.substr(0, bytes_max - bytes_max / 4) + said + tail);
    }
  }));
}

}  // namespace
}  // namespace stint::driver
