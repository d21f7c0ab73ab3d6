// Our parser of heads against another, Boost.Beast's: what we accept, it reads the same way, and what it refuses, we
// refuse too. We refuse more.
#include "net/request_reader.hpp"
#include "net/text.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace stint::net {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;

struct Read {
  std::string method, target;
  std::vector<std::pair<std::string, std::string>> fields;
  int version = 0;
  bool keep_alive = false;
  friend bool operator==(const Read&, const Read&) = default;
};

class Other final : public beast::http::basic_parser<true> {
 public:
  static std::optional<Read> read(const std::string& head) {
    Other other;
    error_code error;
    const std::size_t used = other.put(boost::asio::buffer(head), error);
    if (error || used != head.size() || !other.is_header_done()) return std::nullopt;
    other.read_.keep_alive = other.keep_alive();
    return other.read_;
  }

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                       error_code&) override {
    read_.method = std::string(method);
    read_.target = std::string(target);
    read_.version = version;
  }
  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value, error_code&) override {
    read_.fields.emplace_back(std::string(name), std::string(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}
  void on_response_impl(int, beast::string_view, int, error_code&) override {}

  Read read_;
};

/// Whether both agree, and whether the head was accepted.
testing::AssertionResult agrees(const std::string& head, bool& let_in) {
  RequestReader reader({});
  const std::size_t used = reader.feed(head);
  const std::size_t begin = std::min(head.find_first_not_of("\r\n"), head.size());  // we skip an empty line before it
  const std::optional<Read> other = Other::read(head.substr(begin));
  const bool whole = reader.state() == RequestReader::State::done || reader.state() == RequestReader::State::body;
  let_in = whole && used == head.size();
  if (let_in) {
    const Request& request = reader.request();
    Read ours{std::string(request.method), std::string(request.target), {}, request.version, request.keep_alive};
    for (const Field& field : request.headers) ours.fields.emplace_back(field.name, field.value);
    if (ours != other) return testing::AssertionFailure() << "accepted, but Beast reads it differently: " << head;
  } else if (reader.refusal().detail == "Malformed HTTP request." && other) {
    return testing::AssertionFailure() << "refused, but Beast accepts it: " << head;
  }
  return testing::AssertionSuccess();
}

TEST(HttpRequestSyntax, accepted_heads_parse_as_in_beast) {
  const std::vector<std::string> lines = {"GET / HTTP/1.1",       "POST /a?b=c&d=%41 HTTP/1.1",
                                          "GET * HTTP/1.0",       "OPTIONS http://x/y HTTP/1.1",
                                          "M-SEARCH /~ HTTP/1.1", "GET /\xc3\xa4 HTTP/1.1"};
  const std::vector<std::string> fields = {"Host: x",
                                           "X-A:b",
                                           "X-Long: \t one two\tthree  ",
                                           "Empty:",
                                           "Connection: close",
                                           "Connection: Keep-Alive",
                                           "connection: te ,, keep-alive,",
                                           "Proxy-Connection: close",
                                           "Connection: keep-alive, close",
                                           "Content-Length: 12",
                                           "Transfer-Encoding: chunked",
                                           "Expect: 100-continue",
                                           "Upgrade: h2c"};
  constexpr std::string_view kBytes = "\r\n\t :,;/()[]{}@\"\\=?<>aZ09-_.!~|\x01\x7f\x80\xff";
  std::mt19937 random(11);  // NOLINT: the same numbers each time
  int let_in = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string head = lines[random() % lines.size()] + "\r\nHost: localhost\r\n";
    for (std::size_t count = random() % 4; count > 0; --count) head += fields[random() % fields.size()] + "\r\n";
    head += "\r\n";
    for (std::size_t change = random() % 3; change > 0; --change) {
      const std::size_t at = random() % head.size();
      const char byte = kBytes[random() % kBytes.size()];
      switch (random() % 3) {
        case 0: head[at] = byte; break;
        case 1: head.insert(at, 1, byte); break;
        default: head.erase(at, 1); break;
      }
    }
    bool let = false;
    ASSERT_TRUE(agrees(head, let));
    let_in += let ? 1 : 0;
  }
  EXPECT_GT(let_in, 10'000);
}

TEST(HttpRequestSyntax, each_byte_in_each_place) {
  const std::string head = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-A: b\r\n\r\n";
  for (std::size_t at = 0; at < head.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = head;
      changed[at] = static_cast<char>(byte);
      bool let = false;
      ASSERT_TRUE(agrees(changed, let));
    }
  }
}

}  // namespace
}  // namespace stint::net
