#include "cli/demo.hpp"

#include <gtest/gtest.h>

namespace stint::cli {
namespace {

TEST(DemoTerminal, the_locale_decides_about_utf8) {
  EXPECT_TRUE(shows_utf8({"en_US.UTF-8", "xterm"}));
  EXPECT_TRUE(shows_utf8({"C.utf8", "linux"}));
  EXPECT_FALSE(shows_utf8({"C", "xterm"}));
  EXPECT_FALSE(shows_utf8({"de_DE.ISO-8859-1", "xterm"}));
}

TEST(DemoTerminal, without_a_locale_the_kind_of_terminal_decides) {
  EXPECT_TRUE(shows_utf8({"", "xterm-256color"}));
  for (const char* const term : {"screen", "tmux-256color", "linux", "dumb"}) EXPECT_FALSE(shows_utf8({"", term}));
}

}  // namespace
}  // namespace stint::cli
