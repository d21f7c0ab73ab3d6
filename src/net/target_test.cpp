#include "net/target.hpp"

#include <gtest/gtest.h>

namespace stint::net {
namespace {

struct Parsed {
  explicit Parsed(std::string given) : text(std::move(given)), good(parse_target(text, decoded, target)) {}
  std::string text;
  std::string decoded;
  Target target;
  bool good;
};

TEST(HttpTarget, a_path_has_segments) {
  const Parsed parsed("/v1/runs/r-1?state=done");
  ASSERT_TRUE(parsed.good);
  EXPECT_EQ(parsed.target.path, "/v1/runs/r-1");
  EXPECT_EQ(parsed.target.segments, (std::vector<std::string_view>{"v1", "runs", "r-1"}));
  EXPECT_TRUE(Parsed("/").target.segments.empty());
  EXPECT_EQ(Parsed("/a/").target.segments, (std::vector<std::string_view>{"a", ""}));
  EXPECT_EQ(Parsed("//a").target.segments, (std::vector<std::string_view>{"", "a"}));
}

TEST(HttpTarget, segments_are_decoded_after_they_are_parted) {
  const Parsed parsed("/limits/agent%3Areview%2Fx/a+b");
  ASSERT_TRUE(parsed.good);
  EXPECT_EQ(parsed.target.segments, (std::vector<std::string_view>{"limits", "agent:review/x", "a+b"}));
}

TEST(HttpTarget, a_query_has_parameters_in_order) {
  const Parsed parsed("/x?a=1&b=&c&&a=%26+%3D&%64=e=f");
  ASSERT_TRUE(parsed.good);
  const std::vector<Field> expected{{"a", "1"}, {"b", ""}, {"c", ""}, {"a", "& ="}, {"d", "e=f"}};
  EXPECT_EQ(parsed.target.query, expected);
}

TEST(HttpTarget, undecodable_targets_are_refused) {
  for (const char* text :
       {"", "x", "/%", "/%4", "/%zz", "/a%00b", "/x?a=%", "/x?%00", "/a#b", "http://", "ftp://x/", "?a"}) {
    EXPECT_FALSE(Parsed(text).good) << text;
  }
}

TEST(HttpTarget, dot_segments_are_refused) {
  for (const char* text : {"/..", "/a/../b", "/.", "/%2e%2e/etc", "/a/%2E"}) EXPECT_FALSE(Parsed(text).good) << text;
  EXPECT_TRUE(Parsed("/...").good);
  EXPECT_TRUE(Parsed("/.a").good);
}

TEST(HttpTarget, an_absolute_url_sets_the_host) {
  const Parsed parsed("HTTP://localhost:80/a?b=c");
  ASSERT_TRUE(parsed.good);
  EXPECT_EQ(parsed.target.authority, "localhost:80");
  EXPECT_EQ(parsed.target.path, "/a");
  EXPECT_EQ(parsed.target.query, (std::vector<Field>{{"b", "c"}}));
  const Parsed bare("http://localhost?b=c");
  ASSERT_TRUE(bare.good);
  EXPECT_EQ(bare.target.path, "/");
  EXPECT_EQ(bare.target.query.size(), 1U);
}

TEST(HttpTarget, the_number_of_parts_is_bounded) {
  std::string many = "/x?";
  for (std::size_t i = 0; i <= Target::kPartsMax; ++i) many += "a&";
  EXPECT_FALSE(Parsed(many).good);
  std::string deep;
  for (std::size_t i = 0; i <= Target::kPartsMax; ++i) deep += "/a";
  EXPECT_FALSE(Parsed(deep).good);
}

TEST(HttpTarget, decodes) {
  EXPECT_EQ(percent_decoded("a%20b+c"), "a b+c");
  EXPECT_EQ(percent_decoded("a%20b+c", true), "a b c");
  EXPECT_EQ(percent_decoded("%"), std::nullopt);
}

}  // namespace
}  // namespace stint::net
