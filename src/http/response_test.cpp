#include "http/response.hpp"

#include "http/event_stream.hpp"

#include <gtest/gtest.h>

namespace stint::http {
namespace {

TEST(HttpResponse, a_problem_is_json_for_any_detail) {
  const Response response = problem_response(404, "no \"x\"\n\\\x01\xff\xC2\x9B\xE2\x80\xAE\xE2\x80\x8B\xC3\xA9");
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_EQ(response.body,
            "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
            "\"detail\":\"no \\\"x\\\" \\\\?\xEF\xBF\xBD???\xC3\xA9\"}\n")
      << "invisible control characters are escaped";
}

TEST(HttpResponse, a_problem_is_short_for_any_detail) {
  const std::string body = problem_response(404, "about " + std::string(100'000, 'x')).body;
  EXPECT_LT(body.size(), 1200U);
  EXPECT_NE(body.find("x…\""), std::string::npos) << "the cut is marked";
}

TEST(HttpResponse, heads) {
  std::string out;
  Response response{.status = 201, .headers = {{"Location", "/v1/runs/1"}}, .body = "{}"};
  append_head(out, response, {});
  EXPECT_EQ(
      out,
      "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nLocation: /v1/runs/1\r\nContent-Length: 2\r\n\r\n");
  out.clear();
  append_head(out, StreamHead{}, {.keep_alive = false});
  EXPECT_EQ(out,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
}

TEST(HttpResponse, an_empty_chunk_is_not_sent) {
  std::string out;
  append_chunk(out, "");
  EXPECT_EQ(out, "");
  append_chunk(out, std::string(26, 'x'));
  EXPECT_TRUE(out.starts_with("1a\r\nxx"));
  EXPECT_TRUE(out.ends_with("x\r\n"));
}

TEST(HttpResponse, dates_are_those_of_the_rfc) {
  using std::chrono::seconds;
  EXPECT_EQ(date_line(std::chrono::system_clock::time_point(seconds(784111777))),
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
}

TEST(HttpEvent, data_may_have_lines) {
  EXPECT_EQ(event_text({.id = "7", .name = "tick", .data = "a\nb\r\nc\rd"}),
            "id: 7\nevent: tick\ndata: a\ndata: b\ndata: c\ndata: d\n\n");
  EXPECT_EQ(event_text({}), "data: \n\n");
}

TEST(HttpEvent, id_and_name_have_none) {
  EXPECT_EQ(event_text({.id = "7\ndata: x", .name = "a\r\nb", .data = "d"}), "id: 7data: x\nevent: ab\ndata: d\n\n");
}

}  // namespace
}  // namespace stint::http
