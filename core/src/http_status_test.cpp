#include "stint/http_status.hpp"

#include <gtest/gtest.h>

namespace stint {
namespace {

using namespace std::chrono_literals;

ServerDelay wait_of(Duration duration) { return {.kind = ServerDelay::Kind::wait, .wait = duration}; }

TEST(HttpStatus, requests_that_were_not_executed_are_safe_to_repeat) {
  for (const int status : {408, 409, 429, 503, 529}) {
    EXPECT_EQ(classify_http_status(status).retry, Retry::safe) << status;
  }
}

TEST(HttpStatus, requests_that_may_have_been_executed_are_unknown) {
  for (const int status : {500, 501, 502, 504, 520, 599}) {
    EXPECT_EQ(classify_http_status(status).retry, Retry::unknown) << status;
  }
}

TEST(HttpStatus, permanent_failures_are_never_repeated) {
  for (const int status : {400, 401, 402, 403, 404, 405, 413, 422, 499, 100, 200, 204, 301, 304, 0, -1, 600, 1000}) {
    EXPECT_EQ(classify_http_status(status).retry, Retry::never) << status;
  }
}

TEST(HttpStatus, overload_is_distinguished_from_failure) {
  for (const int status : {429, 503, 529}) EXPECT_TRUE(classify_http_status(status).overload) << status;
  for (const int status : {408, 409, 500, 502, 504, 400}) EXPECT_FALSE(classify_http_status(status).overload) << status;
}

TEST(HttpStatus, codes_name_the_kind_of_failure) {
  EXPECT_EQ(classify_http_status(401).code, Errc::denied);
  EXPECT_EQ(classify_http_status(408).code, Errc::timed_out);
  EXPECT_EQ(classify_http_status(409).code, Errc::conflict);
  EXPECT_EQ(classify_http_status(422).code, Errc::invalid);
  EXPECT_EQ(classify_http_status(529).code, Errc::unavailable);
  EXPECT_EQ(classify_http_status(302).code, Errc::failed);
}

TEST(HttpStatus, too_many_requests_without_a_delay_is_a_quota) {
  EXPECT_EQ(http_error(429, {}, "").retry(), Retry::never);
  const Error error = http_error(429, {.delay = wait_of(7s)}, "slow down");
  EXPECT_EQ(error.retry(), Retry::safe);
  EXPECT_EQ(error.retry_after(), 7s);
  EXPECT_EQ(error.what(), "HTTP 429: slow down");
  EXPECT_EQ(http_error(503, {}, "").retry(), Retry::safe);
  EXPECT_EQ(http_error(503, {}, "").what(), "HTTP 503");
}

TEST(HttpStatus, the_servers_explicit_answer_overrides_the_table) {
  EXPECT_EQ(http_error(400, {.should_retry = true}, "").retry(), Retry::safe);
  EXPECT_EQ(http_error(503, {.should_retry = false}, "").retry(), Retry::never);
}

// Behaviour 107.
TEST(HttpStatus, pushback_to_stop_overrides_everything) {
  const ServerDelay stop{.kind = ServerDelay::Kind::stop};
  EXPECT_EQ(http_error(503, {.delay = stop}, "").retry(), Retry::never);
  EXPECT_EQ(http_error(503, {.delay = stop, .should_retry = true}, "").retry(), Retry::never);
}

}  // namespace
}  // namespace stint
