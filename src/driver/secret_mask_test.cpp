#include "driver/secret_mask.hpp"

#include <gtest/gtest.h>

namespace stint::driver {
namespace {

std::string masked(const SecretMask& mask, std::string text) {
  mask.apply(text);
  return text;
}

TEST(SecretMask, masks_variables_with_the_name_of_a_secret) {
  const SecretMask mask = SecretMask::of_environment({{"ANTHROPIC_API_KEY", "sk-ant-12345"},
                                                      {"GH_TOKEN", "ghp_abcdefgh"},
                                                      {"DB_PASSWORD", "correct horse"},
                                                      {"EDITOR", "/usr/bin/vi"},
                                                      {"SHORT_KEY", "yes"}});
  EXPECT_EQ(masked(mask, "key sk-ant-12345, again sk-ant-12345 and ghp_abcdefgh"), "key ***, again *** and ***");
  EXPECT_EQ(masked(mask, "correct horse"), "***");
  EXPECT_EQ(masked(mask, "/usr/bin/vi says yes"), "/usr/bin/vi says yes") << "too short for a secret";
}

TEST(SecretMask, recognises_many_names_of_secrets) {
  for (const char* const name :
       {"TOKEN", "GITHUBTOKEN", "token", "MY_PAT", "PGPASSWORD", "BASIC_AUTH", "OPENAI_APIKEY", "KEY", "PASS"}) {
    const SecretMask mask = SecretMask::of_environment({{name, "s3cr3t-value"}});
    EXPECT_EQ(masked(mask, "a s3cr3t-value"), "a ***") << name;
  }
  for (const char* const name : {"MONKEY", "COMPASS", "AUTHOR", "TOKENS", "SPAT"}) {
    const SecretMask mask = SecretMask::of_environment({{name, "open-value"}});
    EXPECT_EQ(masked(mask, "an open-value"), "an open-value") << name;
  }
}

TEST(SecretMask, masks_passwords_in_addresses) {
  const SecretMask mask = SecretMask::of_environment({{"STINT_STORE", "postgres://u:geheim-geheim@h:5432/d"},
                                                      {"PROXY", "http://me:p%40ssw%6Frd@proxy/"},
                                                      {"OTHER", "postgres://h/d?user=u&password=in-the-query"},
                                                      {"THIRD", "postgres://u:what?is-it@h/d"},
                                                      {"PAGE", "https://h:8080/a@b"},
                                                      {"BARE", "ssh://user@host/path"}});
  EXPECT_EQ(masked(mask, "postgres://u:geheim-geheim@h"), "postgres://u:***@h");
  EXPECT_EQ(masked(mask, "p%40ssw%6Frd is p@ssword"), "*** is ***");
  EXPECT_EQ(masked(mask, "in-the-query what?is-it"), "*** ***");
  EXPECT_EQ(masked(mask, "https://h:8080/a@b ssh://user@host/path"), "https://h:8080/a@b ssh://user@host/path");
}

TEST(SecretMask, masks_each_line_of_a_value) {
  const SecretMask mask = SecretMask::of_environment(
      {{"SSH_KEY", "-----BEGIN KEY-----\nfirst-line-of-it\r\nsecond-line-of-it\nshort\n-----END KEY-----\n"}});
  EXPECT_EQ(masked(mask, "-----BEGIN KEY-----"), "-----BEGIN KEY-----");
  EXPECT_EQ(masked(mask, "first-line-of-it\n"), "***\n");
  EXPECT_EQ(masked(mask, "x second-line-of-it"), "x ***");
}

TEST(SecretMask, a_secret_within_another_leaves_nothing_of_it) {
  SecretMask mask;
  mask.add("12345678");
  mask.add("run-12345678-abcdef");
  EXPECT_EQ(masked(mask, "run-12345678-abcdef"), "***");
  EXPECT_EQ(masked(mask, "12345678"), "***");
}

TEST(SecretMask, text_without_secrets_is_unchanged) {
  SecretMask mask;
  mask.add("");
  std::string text = "all is well";
  EXPECT_FALSE(mask.apply(text));
  EXPECT_EQ(text, "all is well");
}

TEST(MaskedPieces, show_no_secret_wherever_it_is_cut) {
  SecretMask one, other;
  one.add("sk-0123456789");
  other.add("hunter2hunter2");
  const std::string said = "ä sk-0123456789 and hunter2hunter2\nthen sk-012345678 €";
  const std::string shown = "ä *** and ***\nthen sk-012345678 €";
  for (std::size_t first = 0; first <= said.size(); ++first) {
    for (std::size_t second = first; second <= said.size(); ++second) {
      MaskedPieces pieces(one, other);
      std::string text = pieces.add(said.substr(0, first));
      text += pieces.add(said.substr(first, second - first));
      text += pieces.add(said.substr(second));
      text += pieces.finish();
      ASSERT_EQ(text, shown) << first << ", " << second;
    }
  }
}

TEST(MaskedPieces, hold_back_no_more_than_they_must) {
  const SecretMask none;
  SecretMask some;
  some.add("12345678");
  MaskedPieces plain(none, none), masked(none, some);
  EXPECT_EQ(plain.add("prompt> "), "prompt> ");
  EXPECT_EQ(plain.add("\xE2\x82"), "") << "two thirds of a character";
  EXPECT_EQ(plain.add("\xAC"), "€");
  EXPECT_EQ(masked.add("a line\n"), "a line\n");
  EXPECT_EQ(masked.add("0123456789abcdef"), "0***");
  EXPECT_EQ(masked.finish(), "9abcdef");
  EXPECT_EQ(plain.add(std::string("\xFF\x80", 2)), std::string("\xFF\x80", 2))
      << "an invalid character is not held back";
}

}  // namespace
}  // namespace stint::driver
