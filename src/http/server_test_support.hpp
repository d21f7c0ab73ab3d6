/// A server and its clients on one reactor, for the tests of this folder: real sockets on loopback, and time limits of
/// milliseconds where a test is about one.
#pragma once

#include "http/event_stream.hpp"
#include "http/server.hpp"
#include "stint/asio.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stint::http {

using namespace std::chrono_literals;

struct Reply {
  int status = 0;
  std::string head;
  std::string body;
  bool has(std::string_view line) const { return head.find(line) != std::string::npos; }
};

/// A client connection that can violate the protocol in every way.
class Client {
 public:
  using tcp = asio::ip::tcp;
  explicit Client(Reactor& reactor) : socket_(reactor.io()) {}

  void open() { socket_.open(tcp::v4(), ignored_); }
  Task<> connect(std::uint16_t port) {
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    const auto [error] = co_await socket_.async_connect(endpoint, use_task);
    EXPECT_FALSE(error) << error.message();
  }
  Task<bool> write(std::string bytes) {
    const auto [error, count] = co_await asio::async_write(socket_, asio::buffer(bytes), use_task);
    co_return !error;
  }
  /// Reads some more bytes; false at the end.
  Task<bool> read() {
    char piece[4096];
    const auto [error, count] = co_await socket_.async_read_some(asio::buffer(piece), use_task);
    buffer_.append(piece, count);
    reset_seen_ = error && error != asio::error::eof;
    co_return !error;
  }
  Task<std::string> read_all() {
    while (true) {
      const bool more = co_await read();
      if (!more) break;
    }
    co_return std::exchange(buffer_, {});
  }
  /// Reads up to and including the text, or to the end of the connection.
  Task<std::string> read_to(std::string_view text) {
    while (true) {
      const std::size_t at = buffer_.find(text);
      if (at != std::string::npos) {
        std::string out = buffer_.substr(0, at + text.size());
        buffer_.erase(0, out.size());
        co_return out;
      }
      const bool more = co_await read();
      if (!more) co_return std::exchange(buffer_, {});
    }
  }
  /// Counts the bytes up to the last chunk of a stream, without keeping them.
  Task<std::size_t> count_stream() {
    std::size_t count = 0;
    while (!buffer_.ends_with("\r\n0\r\n\r\n")) {
      if (buffer_.size() > 64) {
        count += buffer_.size() - 16;
        buffer_.erase(0, buffer_.size() - 16);
      }
      const bool more = co_await read();
      if (!more) break;
    }
    count += buffer_.size();
    buffer_.clear();
    co_return count;
  }
  /// Reads one answer with a Content-Length; status 0 at the end of the connection.
  Task<Reply> reply(bool has_body = true) {
    Reply reply;
    reply.head = co_await read_to("\r\n\r\n");
    if (reply.head.size() < 12) co_return reply;
    std::from_chars(reply.head.data() + 9, reply.head.data() + 12, reply.status);
    const std::size_t at = reply.head.find("Content-Length: ");
    std::size_t length = 0;
    if (at != std::string::npos)
      std::from_chars(reply.head.data() + at + 16, reply.head.data() + reply.head.size(), length);
    if (!has_body) co_return reply;
    while (buffer_.size() < length) {
      const bool more = co_await read();
      if (!more) break;
    }
    reply.body = buffer_.substr(0, length);
    buffer_.erase(0, length);
    co_return reply;
  }
  Task<Reply> ask(std::string request) {
    const bool written = co_await write(std::move(request));
    EXPECT_TRUE(written);
    co_return co_await reply();
  }
  void shutdown_write() { socket_.shutdown(tcp::socket::shutdown_send, ignored_); }
  void close() { socket_.close(ignored_); }
  void reset() {
    socket_.set_option(tcp::socket::linger(true, 0), ignored_);
    socket_.close(ignored_);
  }
  void shrink_receive_buffer() { socket_.set_option(tcp::socket::receive_buffer_size(4096), ignored_); }
  bool was_reset() const noexcept { return reset_seen_; }
  const std::string& buffered() const noexcept { return buffer_; }

 private:
  tcp::socket socket_;
  std::string buffer_;
  bool reset_seen_ = false;
  boost::system::error_code ignored_;
};

inline std::string get(std::string_view path, std::string_view more = "") {
  return std::string("GET ").append(path).append(" HTTP/1.1\r\nHost: localhost\r\n").append(more).append("\r\n");
}
inline std::string post(std::string_view path, std::string_view body) {
  return std::string("POST ")
      .append(path)
      .append(" HTTP/1.1\r\nHost: localhost\r\nContent-Length: ")
      .append(std::to_string(body.size()))
      .append("\r\n\r\n")
      .append(body);
}

/// Answers by path, and counts what began, ended and was stopped.
class TestHandler final : public Handler {
 public:
  Task<Response> answer(const Request& request, Exchange& exchange) override {
    const std::string_view path = request.path();
    if (path == "/hello") co_return text("hello");
    if (path == "/echo") co_return text(request.body);
    if (path == "/big") co_return text(std::string(number(request, "bytes"), 'x'));
    if (path == "/headers") co_return text(std::string(request.header("x-test").value_or("none")));
    if (path == "/inject") co_return injected();
    if (path == "/none") co_return Response{.status = 204};
    if (path == "/throw") throw std::runtime_error("a secret detail");
    if (path == "/peer") co_return text(exchange.peer());
    if (path == "/slow") co_return co_await slow();
    if (path == "/wait") co_return co_await wait(exchange);
    if (path == "/wait_again") co_return co_await wait_again(exchange);
    if (path == "/stream") co_return co_await exchange.stream(StreamHead(), pieces(request, exchange));
    if (path == "/events") {
      EventStream events(exchange);
      co_return co_await events.run(tell(request, events));
    }
    if (path == "/hangs") co_return co_await exchange.stream(StreamHead(), hang(exchange));
    if (path == "/fills") co_return co_await fill(exchange);
    if (path == "/changes_its_mind") co_return co_await change_mind(exchange);
    if (path == "/breaks") co_return co_await exchange.stream(StreamHead(), breaks(exchange));
    co_return problem_response(404, "There is no such thing.");
  }

  int began = 0;
  int ended = 0;
  int gone = 0;    // finished or destroyed, of those that began
  int left = 0;    // ended because the client left
  int sent = 0;    // pieces of streams
  int failed = 0;  // failed sends
  Duration slow_for = 1h;

 private:
  struct Stay {
    explicit Stay(TestHandler& of) : handler(of) { ++handler.began; }
    ~Stay() { ++handler.gone; }
    TestHandler& handler;
  };
  static Response text(std::string body) { return Response{.content_type = kText, .body = std::move(body)}; }
  static Response injected() {
    Response response = text("x");
    response.headers.emplace_back("X-Name", "a\r\nSet-Cookie: b");
    return response;
  }
  static std::size_t number(const Request& request, std::string_view name) {
    const std::string_view digits = request.parameter(name).value_or("0");
    std::size_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }
  Task<Response> slow() {
    const Stay stay(*this);
    co_await sleep_for(slow_for);
    ++ended;
    co_return text("slow");
  }
  Task<Response> wait(Exchange& exchange) {
    const Result<Response> result = co_await exchange.while_connected(slow());
    if (result) co_return *result;
    ++left;
    co_return problem_response(500, "left");
  }
  Task<Response> wait_again(Exchange& exchange) {
    (void)co_await exchange.while_connected(slow());
    (void)co_await slow();
    co_return co_await wait(exchange);
  }
  Task<> pieces(const Request& request, Exchange& exchange) {
    const Stay stay(*this);
    const std::size_t count = number(request, "count");
    const std::string piece(std::max<std::size_t>(number(request, "bytes"), 1), 'p');
    for (std::size_t i = 0; i < count; ++i) {
      const Result<> result = co_await exchange.send(piece);
      if (!result) {
        ++failed;
        co_return;
      }
      ++sent;
    }
    ++ended;
  }
  Task<> tell(const Request& request, EventStream& events) {
    const Stay stay(*this);
    const std::size_t count = number(request, "count");
    for (std::size_t i = 0; i < count; ++i) {
      const Event event{.id = std::to_string(i), .name = "tick", .data = "line one\nline two"};
      const Result<> result = co_await events.send(event);
      if (!result) co_return;
    }
    co_await sleep_for(slow_for);
    ++ended;
  }
  Task<> hang(Exchange& exchange) {
    const Stay stay(*this);
    (void)co_await exchange.send("some");
    co_await sleep_for(slow_for);
  }
  Task<Response> fill(Exchange& exchange) {
    StreamHead head;
    head.heartbeat = ":\n\n";
    co_return co_await exchange.stream(std::move(head), fill_body(exchange));
  }
  Task<> fill_body(Exchange& exchange) {
    const Stay stay(*this);
    const auto flood = [](Exchange& to) -> Task<> {
      while (true) (void)co_await to.send(std::string(100'000, 'f'));
    };
    (void)co_await race(flood(exchange), awaited(sleep_for(10ms)));
    co_await sleep_for(slow_for);
    ++ended;
  }
  Task<Response> change_mind(Exchange& exchange) {
    (void)co_await race(exchange.stream(StreamHead(), some(exchange)), awaited(sleep_for(10ms)));
    co_return text("this must not be sent");
  }
  Task<> some(Exchange& exchange) {
    (void)co_await exchange.send("some");
    co_await sleep_for(slow_for);
  }
  Task<> breaks(Exchange& exchange) {
    (void)co_await exchange.send("some");
    throw std::runtime_error("broken");
  }
};

/// `World().run(body)`: a server that listens, a client coroutine, and a check at the end that nothing is left.
class World {
 public:
  explicit World(ServerOptions options = {}) : server(reactor, handler, std::move(options)) {
    const Result<std::uint16_t> got = server.listen();
    EXPECT_TRUE(got);
    port = got.value_or(0);
  }
  template <class Body>
  void run(Body body) {
    RootScope scope(reactor);
    scope.spawn(both(*this, body));
    EXPECT_TRUE(reactor.run(scope));
    EXPECT_EQ(server.stats().connections, 0U);
    EXPECT_EQ(server.stats().idle, 0U);
    EXPECT_EQ(server.stats().streams, 0U);
    EXPECT_EQ(handler.began, handler.gone);
  }
  /// A client that has connected and sent the bytes.
  Task<Client> connect(std::string bytes = {}) {
    Client client(reactor);
    co_await client.connect(port);
    if (!bytes.empty()) (void)co_await client.write(std::move(bytes));
    co_return client;
  }
  Task<Reply> ask(std::string request) {
    Client client = co_await connect();
    co_return co_await client.ask(std::move(request));
  }
  /// Sends the bytes and reads until the server closes.
  Task<std::string> say(std::string bytes) {
    Client client = co_await connect(std::move(bytes));
    co_return co_await client.read_all();
  }
  /// Waits until `n` handlers have begun, in all.
  Task<> until_begun(int n = 1) {
    while (handler.began != n) co_await sleep_for(1ms);
  }
  Task<> until_all_left() {
    while (stats().connections != 0) co_await sleep_for(1ms);
  }
  /// Polls every millisecond.
  template <class Condition>
  Task<> until(Condition condition) {
    while (!condition()) co_await sleep_for(1ms);
  }
  const ServerStats& stats() const { return server.stats(); }

  Reactor reactor;
  TestHandler handler;
  Server server;
  std::uint16_t port = 0;

 private:
  template <class Body>
  static Task<> both(World& self, Body& body) {
    const Deadline deadline = Deadline::after(self.reactor.now(), 60s);
    const auto first = co_await race(body(self), self.server.serve(), awaited(sleep_until(deadline.when())));
    EXPECT_EQ(first.index(), 0U) << "timed out";
  }
};

}  // namespace stint::http
