#include "stint/error.hpp"

#include "stint/deadline.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

using namespace std::chrono_literals;

TEST(ErrorTest, without_a_message_what_returns_the_name_of_the_code) {
  EXPECT_EQ(Error(Errc::timed_out).what(), "timed out");
}
TEST(ErrorTest, describes_itself_with_its_causes) {
  const Error error = Error(Errc::unavailable, Retry::safe, "no connection to db")
                          .because(Error(Errc::failed, "refused").because(Error(Errc::denied)));
  EXPECT_EQ(error.describe(), "no connection to db: refused: denied");
  EXPECT_EQ(error.retry(), Retry::safe);
  EXPECT_EQ(*error.cause(), Errc::failed);
}
TEST(ErrorTest, a_copy_is_independent) {
  Error original = Error(Errc::full, "queue").after(3s);
  Error copy = original;
  original = Error(Errc::closed);
  EXPECT_EQ(copy.what(), "queue");
  EXPECT_EQ(copy.retry_after(), 3s);
  EXPECT_EQ(original.what(), "closed");
  EXPECT_FALSE(original.retry_after());
  Error& self = copy;
  copy = self;
  EXPECT_EQ(copy.what(), "queue");
}
TEST(ErrorTest, is_two_words) { static_assert(sizeof(Error) == 2 * sizeof(void*)); }

Result<int> half(int value) {
  if (value % 2 != 0) return fail(Errc::invalid, "odd");
  return value / 2;
}
Result<int> quarter(int value) {
  STINT_TRY(const int once, half(value));
  STINT_TRY(const int twice, half(once));
  return twice;
}
Result<> check(int value) {
  STINT_CHECK(quarter(value));
  return {};
}
TEST(ErrorTest, the_try_macros_take_the_value_or_return_the_error) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().what(), "odd");
  EXPECT_TRUE(check(4));
  EXPECT_EQ(check(3).error().code(), Errc::invalid);
}

TEST(DeadlineTest, saturates_and_shortens) {
  const TimePoint now{1h};
  EXPECT_TRUE(Deadline::after(now, Duration::max()).is_never());
  EXPECT_TRUE(Deadline::after(now, -1s).passed(now));
  EXPECT_TRUE(Deadline::after(now, 0s).passed(now)) << "no time left is past";
  EXPECT_EQ(Deadline::after(now, 5s).remaining(now + 2s), 3s);
  EXPECT_EQ(Deadline::after(now, 5s).remaining(now + 9s), 0s);
  EXPECT_EQ(Deadline::never().remaining(now), Duration::max());
  EXPECT_EQ(Deadline(now).sooner(Deadline::never()), Deadline(now));
}

}  // namespace
}  // namespace stint
