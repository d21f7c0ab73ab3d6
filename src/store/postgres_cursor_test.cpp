#include "store/postgres_cursor.hpp"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

constexpr const char* kLast = "9223372036854775807";

TEST(PostgresCursor, is_written_as_it_is_read) {
  for (const std::string text : {"0-0", "12-3", "12-3-10:15:11,13", "12-3-10:15:", "4-9223372036854775807-5:9:5"}) {
    const auto cursor = PostgresCursor::read(text);
    ASSERT_TRUE(cursor) << text;
    EXPECT_EQ(cursor->text(), text);
  }
  EXPECT_EQ(PostgresCursor::read("").value().text(), "0-0");
}

TEST(PostgresCursor, refuses_what_the_database_would_refuse) {
  for (const std::string text :
       {"x", "1", "1-", "-1-2", "1-2-", "1-2-3", "1-2-3:2:", "1-2-0:4:", "1-2-3:9:4,4", "1-2-3:9:5,4", "1-2-3:9:9",
        "1-2-3:9:2", "1-2-3:9:4,", "1-2-3:9:,4", "1-2-3:9:4x", "1-2 "}) {
    EXPECT_FALSE(PostgresCursor::read(text)) << text;
  }
}

TEST(PostgresCursor, of_a_snapshot_names_what_it_has_seen_only_while_older_ones_are_under_way) {
  EXPECT_EQ(PostgresCursor::of_snapshot("10:10:").value().text(), std::string("9-") + kLast);
  EXPECT_EQ(PostgresCursor::of_snapshot("10:14:10,12").value().text(), std::string("9-") + kLast + "-10:14:10,12");
  std::string crowd = "10:9000:";
  for (int i = 10; i < 1000; ++i) crowd += (i > 10 ? "," : "") + std::to_string(i);
  EXPECT_EQ(PostgresCursor::of_snapshot(crowd).value().text(), std::string("9-") + kLast) << "bounded";
  EXPECT_FALSE(PostgresCursor::of_snapshot("nonsense"));
}

TEST(PostgresCursor, forgets_what_was_seen_when_the_feed_is_past_it) {
  PostgresCursor cursor = PostgresCursor::of_snapshot("10:14:10,12").value();
  cursor.advance(12, 7);
  EXPECT_EQ(cursor.text(), "12-7-10:14:10,12") << "13 was seen, and is still ahead";
  cursor.advance(14, 8);
  EXPECT_EQ(cursor.text(), "14-8");
}

}  // namespace
}  // namespace stint::store
