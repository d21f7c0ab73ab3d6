#include "http/negotiate.hpp"

#include "net/request_reader.hpp"

#include <gtest/gtest.h>

namespace stint::http {
namespace {

/// A complete request with these header lines.
struct ReadHeaders {
  explicit ReadHeaders(const std::string& lines, const std::string& target = "/", const std::string& body = "") {
    std::string bytes = "POST " + target + " HTTP/1.1\r\nHost: x\r\n" + lines +
                        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    bytes.erase(0, reader.feed(bytes));  // the head, and then the rest
    reader.feed(bytes);
    EXPECT_EQ(reader.state(), net::RequestReader::State::done) << lines;
  }
  const net::Request& operator*() const { return reader.request(); }
  net::RequestReader reader{{}};
};

TEST(Negotiate, accept_is_parsed_in_any_spelling) {
  for (const char* const accept : {"text/event-stream", "Text/Event-Stream", "TEXT/EVENT-STREAM;charset=utf-8",
                                   "application/json;q=0.5, text/event-stream", "text/event-stream ; q=0.001",
                                   " text/html,text/event-stream,*/*;q=0.1", "application/json, text/event-stream"}) {
    EXPECT_TRUE(accepts_stream(*ReadHeaders("Accept: " + std::string(accept) + "\r\n"))) << accept;
  }
  EXPECT_TRUE(accepts_stream(*ReadHeaders("Accept: text/html\r\naccept: text/event-stream\r\n")))
      << "in a second header";
  for (const char* const accept : {"", "*/*", "text/*", "application/json", "text/event-streams", "x-text/event-stream",
                                   "text/event-stream;q=0", "text/event-stream; Q=0.000",
                                   "application/json, text/event-stream;q=0.9", "text/html; a=\"text/event-stream\""}) {
    EXPECT_FALSE(accepts_stream(*ReadHeaders("Accept: " + std::string(accept) + "\r\n"))) << accept;
  }
  EXPECT_FALSE(accepts_stream(*ReadHeaders("")));
}

TEST(Negotiate, a_body_is_json) {
  for (const char* const type :
       {"application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"}) {
    EXPECT_TRUE(sends_json(*ReadHeaders("Content-Type: " + std::string(type) + "\r\n", "/", "{}"))) << type;
  }
  for (const char* const type : {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json",
                                 "application/jsonx", "application/xml", "text/x+json", "+json"}) {
    EXPECT_FALSE(sends_json(*ReadHeaders("Content-Type: " + std::string(type) + "\r\n", "/", "{}"))) << type;
    EXPECT_TRUE(sends_json(*ReadHeaders("Content-Type: " + std::string(type) + "\r\n"))) << "no body";
  }
  EXPECT_TRUE(sends_json(*ReadHeaders("", "/", "{}"))) << "Content-Type is optional";
}

TEST(Negotiate, a_target_is_text) {
  EXPECT_EQ(wrong_text(*ReadHeaders("", "/v1/%C3%A4?x=%E2%82%AC+y")), "");
  EXPECT_NE(wrong_text(*ReadHeaders("", "/v1/%ff")), "");
  EXPECT_NE(wrong_text(*ReadHeaders("", "/v1?query=a%ED%A0%80b")).find("'query'"), std::string::npos);
  EXPECT_NE(wrong_text(*ReadHeaders("", "/v1?query=%C0%80")).find("'query'"), std::string::npos);
  EXPECT_NE(wrong_text(*ReadHeaders("", "/v1?%80=1")), "");
}

}  // namespace
}  // namespace stint::http
