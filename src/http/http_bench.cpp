// The HTTP server, one bench per call: `http_bench BENCH key=value…`.
//   serve                    answers GET /, POST /echo and GET /events on a port of its own, which it prints; ends with
//                            its standard input. `bench/run.py http` puts wrk before it, beside the peers
//   idle connections=        resident bytes per connection that has been answered once and waits
#include "bench_support.hpp"
#include "http/event_stream.hpp"
#include "http/server.hpp"
#include "stint/asio.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>

#include <sys/resource.h>

namespace stint::bench {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;

class Answers final : public http::Handler {
 public:
  Task<http::Response> answer(const http::Request& request, http::Exchange& exchange) override {
    if (request.path() == "/echo") co_return http::Response{.body = request.body};
    if (request.path() == "/events") {
      http::EventStream events(exchange);
      co_return co_await events.run(tell(events));
    }
    co_return http::Response{.content_type = http::kText, .body = "hello, world\n"};
  }

 private:
  static Task<> tell(http::EventStream& events) {
    while (true) {
      const Result<> sent = co_await events.send({.data = "tick"});
      if (!sent) co_return;
      co_await sleep_for(100ms);
    }
  }
};

http::ServerOptions options() {
  http::ServerOptions options;
  options.connections_max = 20'000;
  options.wall_clock = [] { return std::chrono::system_clock::now(); };
  return options;
}

Task<> serve_until_end_of_input(Reactor& reactor, http::Server& server) {
  asio::posix::stream_descriptor input(reactor.io(), ::dup(STDIN_FILENO));
  const auto read = [](asio::posix::stream_descriptor& from) -> Task<> {
    char piece[64];
    while (true) {
      const auto [error, count] = co_await from.async_read_some(asio::buffer(piece), use_task);
      if (error) co_return;
    }
  };
  co_await race(server.serve(), read(input));
}

void serve(const Args& args) {
  Reactor reactor;
  Answers answers;
  http::Server server(reactor, answers, options());
  const Result<std::uint16_t> port = server.listen();
  if (!port) args.fail(std::string(port.error().what()));
  std::printf("%u\n", static_cast<unsigned>(*port));
  std::fflush(stdout);
  RootScope scope(reactor);
  scope.spawn(serve_until_end_of_input(reactor, server));
  STINT_ASSERT(reactor.run(scope));
}

/// The clients are sockets of the same process; each costs it a descriptor and nothing more.
Task<> connect(Reactor& reactor, std::uint16_t port, std::vector<int>& clients, std::int64_t count) {
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (std::int64_t i = 0; i < count; ++i) {
    tcp::socket socket(reactor.io());
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    const auto [refused] = co_await socket.async_connect(endpoint, use_task);
    if (refused) co_return;
    const auto [unsent, written] = co_await asio::async_write(socket, asio::buffer(request), use_task);
    char piece[1024];
    const auto [unread, count_read] = co_await socket.async_read_some(asio::buffer(piece), use_task);
    if (unsent || unread) co_return;
    clients.push_back(socket.release());
  }
}

void idle(const Args& args) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  Reactor reactor;
  Answers answers;
  http::Server server(reactor, answers, options());
  const std::uint16_t port = server.listen().value();
  const auto count = args.number("connections");
  std::vector<int> clients;
  clients.reserve(static_cast<std::size_t>(count));
  RootScope serving(reactor);
  serving.spawn(server.serve());
  const auto wait_for = [&](std::int64_t more) {
    RootScope scope(reactor);
    scope.spawn(connect(reactor, port, clients, more));
    STINT_ASSERT(reactor.run(scope));
  };
  wait_for(64);  // the buffers that the server keeps are allocated now
  const double before = resident_bytes();
  wait_for(count);
  const double after = resident_bytes();
  if (clients.size() != static_cast<std::size_t>(count + 64)) args.fail("not enough descriptors");
  args.emit("idle", (after - before) / static_cast<double>(count), "B");
  for (const int client : clients) ::close(client);
  serving.cancel();
  (void)reactor.run(serving);  // cancelled, by us
}

int measure(const Args& args) {
  if (args.bench() == "serve") {
    serve(args);
  } else if (args.bench() == "idle") {
    idle(args);
  } else {
    std::fprintf(stderr, "usage: http_bench serve|idle key=value…\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace stint::bench

int main(int argc, char** argv) { return stint::bench::measure(stint::bench::Args(argc, argv)); }
