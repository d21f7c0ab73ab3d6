#include "stint/http_status.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

using namespace std::chrono_literals;

ServerDelay wait(Duration duration) { return {.kind = ServerDelay::Kind::wait, .wait = duration}; }

TEST(HttpStatus, what_was_not_carried_out_is_safe_to_repeat) {
  for (const int status : {408, 409, 429, 503, 529}) {
    EXPECT_EQ(classify_http_status(status).retry, Retry::safe) << status;
  }
}

TEST(HttpStatus, what_may_have_been_carried_out_is_unknown) {
  for (const int status : {500, 501, 502, 504, 520, 599}) {
    EXPECT_EQ(classify_http_status(status).retry, Retry::unknown) << status;
  }
}

TEST(HttpStatus, what_repeating_cannot_help_is_never_repeated) {
  for (const int status : {400, 401, 402, 403, 404, 405, 413, 422, 499, 100, 200, 204, 301, 304, 0, -1, 600, 1000}) {
    EXPECT_EQ(classify_http_status(status).retry, Retry::never) << status;
  }
}

TEST(HttpStatus, overload_is_told_apart_from_failure) {
  for (const int status : {429, 503, 529}) EXPECT_TRUE(classify_http_status(status).overload) << status;
  for (const int status : {408, 409, 500, 502, 504, 400}) EXPECT_FALSE(classify_http_status(status).overload) << status;
}

TEST(HttpStatus, codes_say_what_kind_of_failure_it_is) {
  EXPECT_EQ(classify_http_status(401).code, Errc::denied);
  EXPECT_EQ(classify_http_status(408).code, Errc::timed_out);
  EXPECT_EQ(classify_http_status(409).code, Errc::conflict);
  EXPECT_EQ(classify_http_status(422).code, Errc::invalid);
  EXPECT_EQ(classify_http_status(529).code, Errc::unavailable);
  EXPECT_EQ(classify_http_status(302).code, Errc::failed);
}

TEST(HttpStatus, too_many_requests_without_a_window_is_a_quota) {
  EXPECT_EQ(http_error(429, {}, "").retry(), Retry::never);
  const Error error = http_error(429, {.delay = wait(7s)}, "slow down");
  EXPECT_EQ(error.retry(), Retry::safe);
  EXPECT_EQ(error.retry_after(), 7s);
  EXPECT_EQ(error.what(), "HTTP 429: slow down");
  EXPECT_EQ(http_error(503, {}, "").retry(), Retry::safe);
  EXPECT_EQ(http_error(503, {}, "").what(), "HTTP 503");
}

TEST(HttpStatus, the_other_sides_own_word_wins_over_the_table) {
  EXPECT_EQ(http_error(400, {.should_retry = true}, "").retry(), Retry::safe);
  EXPECT_EQ(http_error(503, {.should_retry = false}, "").retry(), Retry::never);
}

// Behaviour 107.
TEST(HttpStatus, pushback_to_stop_wins_over_everything) {
  const ServerDelay stop{.kind = ServerDelay::Kind::stop};
  EXPECT_EQ(http_error(503, {.delay = stop}, "").retry(), Retry::never);
  EXPECT_EQ(http_error(503, {.delay = stop, .should_retry = true}, "").retry(), Retry::never);
}

}  // namespace
}  // namespace stint
