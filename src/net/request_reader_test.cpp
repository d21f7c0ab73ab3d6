#include "net/request_reader.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace stint::net {
namespace {

using State = RequestReader::State;
using namespace std::string_view_literals;

/// What a stream of bytes was parsed into: one line per request, and how it ended.
struct Parse {
  std::vector<std::string> requests;
  State state = State::head;
  unsigned refused = 0;
  friend bool operator==(const Parse&, const Parse&) = default;
};

/// Feeds as a connection does, at most `piece` bytes at a time.
Parse parse(std::string_view bytes, std::size_t piece = std::string_view::npos, ReaderLimits limits = {}) {
  Parse parsed;
  RequestReader reader(limits);
  std::string pending;
  while (true) {
    const std::size_t used = reader.feed(pending);
    pending.erase(0, used);
    if (reader.state() == State::refused) break;
    if (reader.state() == State::done) {
      const Request& request = reader.request();
      parsed.requests.push_back(std::string(request.method) + " " + std::string(request.target) + " " + request.body);
      reader.next();
      continue;
    }
    if (used > 0 && !pending.empty()) continue;
    if (bytes.empty()) break;
    pending += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  parsed.state = reader.state();
  parsed.refused = reader.refusal().status;
  return parsed;
}

unsigned refused(std::string_view bytes) { return parse(bytes).refused; }

std::string with(std::string_view headers, std::string_view body = "") {
  return std::string("POST /x HTTP/1.1\r\nHost: localhost\r\n").append(headers).append("\r\n").append(body);
}

TEST(HttpRequestReader, reads_a_request) {
  RequestReader reader({});
  const std::string bytes = "GET /runs?x=%41 HTTP/1.1\r\nHost: localhost:1\r\nX-A:  b \t\r\nx-a: c\r\n\r\nrest";
  EXPECT_EQ(reader.feed(bytes), bytes.size() - 4);
  ASSERT_EQ(reader.state(), State::done);
  const Request& request = reader.request();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path(), "/runs");
  EXPECT_EQ(request.parameter("x"), "A");
  EXPECT_EQ(request.parameter("y"), std::nullopt);
  EXPECT_EQ(request.header("X-a"), "b");
  EXPECT_EQ(request.header("absent"), std::nullopt);
  EXPECT_EQ(request.host, "localhost:1");
  EXPECT_TRUE(request.keep_alive);
  EXPECT_FALSE(request.has_body);
}

TEST(HttpRequestReader, stops_between_head_and_body) {
  RequestReader reader({});
  const std::string bytes = with("Content-Length: 4\r\n", "body");
  EXPECT_EQ(reader.feed(bytes), bytes.size() - 4);
  EXPECT_EQ(reader.state(), State::body);
  EXPECT_EQ(reader.feed("bodyNEXT"), 4U);
  EXPECT_EQ(reader.state(), State::done);
  EXPECT_EQ(reader.request().body, "body");
}

TEST(HttpRequestReader, a_url_as_target_names_the_host) {
  RequestReader reader({});
  reader.feed("GET http://evil.example/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_EQ(reader.state(), State::done);
  EXPECT_EQ(reader.request().host, "evil.example");
}

TEST(HttpRequestReader, where_a_body_ends_is_never_guessed) {
  EXPECT_EQ(refused(with("Content-Length: 4\r\nContent-Length: 4\r\n", "body")), 400U);
  EXPECT_EQ(refused(with("Content-Length: 4\r\nContent-Length: 5\r\n", "body")), 400U);
  EXPECT_EQ(refused(with("Content-Length: 4, 4\r\n", "body")), 400U);
  EXPECT_EQ(refused(with("Content-Length: +4\r\n", "body")), 400U);
  EXPECT_EQ(refused(with("Content-Length: -4\r\n", "body")), 400U);
  EXPECT_EQ(refused(with("Content-Length: 0x4\r\n", "body")), 400U);
  EXPECT_EQ(refused(with("Content-Length: 4 4\r\n", "body")), 400U);
  EXPECT_EQ(refused(with("Content-Length:\r\n", "body")), 400U);
  EXPECT_EQ(refused(with("Content-Length: 99999999999999999999\r\n")), 400U);
  EXPECT_EQ(refused(with("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with("Transfer-Encoding: identity\r\n")), 501U);
  EXPECT_EQ(refused(with("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")), 501U);
  EXPECT_EQ(refused(with("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n")), 501U);
  EXPECT_EQ(refused(with("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")), 400U);
  EXPECT_EQ(refused("POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400U);
}

TEST(HttpRequestReader, a_trailer_is_not_a_header) {
  RequestReader reader({});
  const std::string bytes =
      with("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\nAuthorization: Bearer t\r\nConnection: close\r\n\r\n");
  std::string_view rest = bytes;
  rest.remove_prefix(reader.feed(rest));
  rest.remove_prefix(reader.feed(rest));
  ASSERT_EQ(reader.state(), State::done);
  EXPECT_EQ(reader.request().header("authorization"), std::nullopt);
  EXPECT_TRUE(reader.request().keep_alive);
}

TEST(HttpRequestReader, chunks_may_come_in_any_pieces) {
  const std::string bytes =
      with("Transfer-Encoding: chunked\r\n", "5 ;a=\"b\"\r\nhello\r\nA;c\r\n0123456789\r\n000\r\nX: y\r\nZ:\r\n\r\n");
  const std::vector<std::string> expected{"POST /x hello0123456789", "POST /x hello0123456789"};
  for (std::size_t piece = 1; piece <= bytes.size() * 2; ++piece) {
    const Parse parsed = parse(bytes + bytes, piece);
    EXPECT_EQ(parsed.requests, expected) << piece;
  }
}

TEST(HttpRequestReader, bad_chunks) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(refused(with(chunked, "x\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, ";a\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "5 \r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "0x5\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "5\nhello\r\n0\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "5;a\nhello\r\n0\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "5\r\nhello\n0\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "0\r\nGET / HTTP/1.1\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "0\r\n: x\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "0\r\nA: x\r\n y\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "0\r\nA: x\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "5\r\nhelloXX0\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "-5\r\nhello\r\n0\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "fffffffffffffffff\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "5;" + std::string(5000, 'e') + "\r\nhello\r\n0\r\n\r\n")), 400U);
  EXPECT_EQ(refused(with(chunked, "0\r\nX: " + std::string(5000, 'e') + "\r\n\r\n")), 400U);
}

TEST(HttpRequestReader, lines_end_with_cr_lf_only) {
  EXPECT_EQ(refused("GET / HTTP/1.1\nHost: localhost\n\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: localhost\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: localhost\r\n X: y\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n\tb\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: local\0host\r\n\r\n"sv), 400U);
  EXPECT_EQ(refused("GET /\0 HTTP/1.1\r\n"sv), 400U);
}

TEST(HttpRequestReader, garbage_is_refused_at_once) {
  EXPECT_EQ(refused("\x16\x03\x01\x02"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1\n"), 400U);
  EXPECT_EQ(refused(" GET / HTTP/1.1\r\n"), 400U);
  EXPECT_EQ(refused("GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1 x\r\nHost: localhost\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GE T / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET /\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: localhost\r\n: empty\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n"), 505U);
  EXPECT_EQ(refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505U);
  EXPECT_EQ(refused("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400U);
  EXPECT_EQ(refused("\r\n\r\n\r\n\r\n"), 400U);
}

TEST(HttpRequestReader, one_host) {
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400U);
  EXPECT_EQ(refused("GET / HTTP/1.0\r\n\r\n"), 0U);
}

TEST(HttpRequestReader, empty_lines_before_a_request_are_skipped) {
  const Parse parsed = parse("\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(parsed.requests, (std::vector<std::string>{"GET /a ", "GET /b "}));
}

TEST(HttpRequestReader, expectations) {
  EXPECT_EQ(refused(with("Expect: the best\r\n")), 417U);
  EXPECT_EQ(refused(with("Expect: 100-Continue\r\n")), 0U);
}

TEST(HttpRequestReader, everything_has_a_limit) {
  ReaderLimits limits;
  limits.header_bytes_max = 300;
  limits.target_bytes_max = 100;
  limits.headers_max = 3;
  limits.body_bytes_max = 10;
  const auto status = [&](const std::string& bytes) { return parse(bytes, std::string_view::npos, limits).refused; };
  EXPECT_EQ(status(with("X: " + std::string(300, 'x'))), 431U);
  EXPECT_EQ(status(with("A: 1\r\nB: 1\r\nC: 1\r\n")), 431U);
  EXPECT_EQ(status(with("A: 1\r\nB: 1\r\n")), 0U);
  EXPECT_EQ(status("GET /" + std::string(400, 'x')), 414U);
  EXPECT_EQ(status("GET /" + std::string(110, 'x') + " HTTP/1.1\r\nHost: x\r\n\r\n"), 414U);
  EXPECT_EQ(status(with("Content-Length: 11\r\n")), 413U);
  EXPECT_EQ(status(with("Content-Length: 10\r\n", "0123456789")), 0U);
  EXPECT_EQ(status(with("Transfer-Encoding: chunked\r\n", "6\r\n012345\r\n5\r\n")), 413U);
  EXPECT_EQ(status(with("Transfer-Encoding: chunked\r\n", "ffffffff\r\n")), 413U);
}

RC_GTEST_PROP(HttpRequestReaderProperty, pieces_make_no_difference, ()) {
  static const std::vector<std::string> kWords = {"GET /a HTTP/1.1\r\n",
                                                  "POST /b?c=%41 HTTP/1.1\r\n",
                                                  "GET / HTTP/1.0\r\n",
                                                  "Host: localhost\r\n",
                                                  "Content-Length: 4\r\n",
                                                  "Transfer-Encoding: chunked\r\n",
                                                  "\r\n",
                                                  "body",
                                                  "4\r\nbody\r\n",
                                                  "0\r\n\r\n",
                                                  "Expect: 100-continue\r\n",
                                                  "X: y\r\n",
                                                  "\n",
                                                  "\r",
                                                  " ",
                                                  std::string(1, '\0'),
                                                  "Connection: close\r\n"};
  std::string bytes;
  for (const auto index :
       *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, kWords.size()))) {
    bytes += kWords[index];
  }
  const Parse whole = parse(bytes);
  RC_ASSERT(parse(bytes, 1) == whole);
  RC_ASSERT(parse(bytes, 7) == whole);
}

}  // namespace
}  // namespace stint::net
