#include "net/http_text.hpp"

#include <gtest/gtest.h>

namespace stint::net {
namespace {

TEST(NetHttpText, a_url_is_shown_without_its_secrets) {
  EXPECT_EQ(shown_url("https://user:pass@host:1/a/b?key=secret#x"), "https://host:1/a/b");
  EXPECT_EQ(shown_url("http://host?key=secret"), "http://host");
  EXPECT_EQ(shown_url("http://host"), "http://host");
  EXPECT_EQ(shown_url("host/a?key=secret"), "host/a");
  EXPECT_EQ(shown_url(""), "");
  EXPECT_EQ(shown_url("http://a:b@host/user@x?y"), "http://host/user@x");
}

TEST(NetHttpText, loopback_needs_no_proxy) {
  for (const char* url :
       {"http://localhost/", "http://LOCALHOST:1/x", "http://127.0.0.1:80", "http://[::1]:80/", "http://a@localhost"}) {
    EXPECT_TRUE(is_loopback_url(url)) << url;
  }
  for (const char* url : {"http://example.com/localhost", "http://127.evil.example/", "http://localhost@evil.example/",
                          "http://10.0.0.1"}) {
    EXPECT_FALSE(is_loopback_url(url)) << url;
  }
}

TEST(NetHttpText, lines_of_a_head) {
  EXPECT_EQ(parse_header("Retry-After:  7 \r\n"), std::pair(std::string("Retry-After"), std::string("7")));
  EXPECT_EQ(parse_header("X:\r\n"), std::pair(std::string("X"), std::string()));
  EXPECT_EQ(parse_header("no colon\r\n"), std::nullopt);
  EXPECT_EQ(parse_header("\r\n"), std::nullopt);
  EXPECT_EQ(parse_status_line("HTTP/1.1 200 OK\r\n"), 200);
  EXPECT_EQ(parse_status_line("HTTP/2 404\r\n"), 404);
  EXPECT_EQ(parse_status_line("HTTP/1.1 x\r\n"), std::nullopt);
  EXPECT_EQ(parse_status_line("X: HTTP/1.1 200"), std::nullopt);
}

TEST(NetHttpText, header_text_has_no_line_break) {
  EXPECT_TRUE(is_header_text("a b"));
  EXPECT_FALSE(is_header_text("a\nb"));
  EXPECT_FALSE(is_header_text("a\rb"));
}

}  // namespace
}  // namespace stint::net
