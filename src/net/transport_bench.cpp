// What streams of the HTTP client cost: `net_bench [streams=2000] [per_connection=32] [body=8192]`, against
// stall_server.py. For each wire: resident bytes per open stream, processor time per event, and how long a cancel of
// 1,000 takes here and until the server saw the last.
#include "net/http_client.hpp"
#include "net/stall_server.hpp"
#include "stint/asio.hpp"
#include "stint/combinators.hpp"

#include <charconv>
#include <cstdio>
#include <fstream>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

namespace stint::net {
namespace {

using namespace std::chrono_literals;

struct Wire {
  const char* name;
  const char* port;
  bool tls;
  bool http2;
  bool shares;
};
constexpr Wire kWires[] = {{"HTTP/1.1", "plain", false, false, false},
                           {"HTTP/1.1 TLS", "tls1", true, false, false},
                           {"HTTP/2 TLS", "tls", true, true, true}};
constexpr std::size_t kCancelled = 1000;

double resident() {
  ::malloc_trim(0);  // what is free is no part of a stream
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t pages = 0;
  file >> all >> pages;
  return static_cast<double>(pages) * static_cast<double>(::getpagesize());
}

double cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

double ms(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

class Bench {
 public:
  Bench(const Wire& wire, StallServer& server, long per_connection)
      : wire_(wire),
        server_(server),
        per_connection_(static_cast<std::size_t>(per_connection)),
        client_(reactor_, options(per_connection)) {}

  void run(std::size_t streams, std::size_t body) {
    body_ = body;
    (void)reactor_.run(all(streams));
  }

 private:
  ClientOptions options(long per_connection) const {
    ClientOptions options;
    options.ca_file = server_.ca_file();
    options.http2 = wire_.http2;
    options.streams_per_connection_max = per_connection;
    options.connections_per_host_max = 16'384;
    return options;
  }
  Ask ask(std::string body) const {
    Ask ask;
    ask.method = "POST";
    ask.url = std::string(wire_.tls ? "https" : "http") + "://127.0.0.1:" + std::to_string(server_.port(wire_.port)) +
              "/v1/messages";
    ask.headers = {{"Authorization", "Bearer " + std::string(100, 'k')}};
    ask.body = std::move(body);
    ask.body += '\n';
    ask.body.resize(body_, 'c');
    ask.first_byte_time_max = 30s;
    ask.idle_time_max = 60s;
    return ask;
  }
  static Task<> follow(Bench& self, std::string body) {
    Result<ReplyStream> stream = co_await self.client_.open(self.ask(std::move(body)));
    if (!stream) {
      std::printf("%s\n", std::string(stream.error().what()).c_str());
      co_return;
    }
    ++self.open_;
    while (true) {
      const Result<std::string> piece = co_await stream->next();
      if (!piece || piece->empty()) break;
      self.events_ += piece->size() / 50;
    }
  }
  template <class Then>
  Task<> with_streams(std::size_t count, std::string body, Then then) {
    open_ = 0;
    const auto work = [&](Scope& scope) -> Task<> {
      for (std::size_t i = 0; i < count; ++i) scope.spawn(follow(*this, body));
      while (open_ < count) {
        (void)server_.events();  // else its pipe fills up and it waits
        co_await sleep_for(5ms);
      }
      co_await then();
      cancelled_at_ = reactor_.now();
      scope.cancel();
    };
    (void)co_await with_scope(work);
    here_ = reactor_.now() - cancelled_at_;
  }
  Task<> all(std::size_t streams) {
    const auto nothing = []() -> Task<> { co_return; };
    co_await with_streams(1, "stream", nothing);
    const double before = resident();
    double after = 0;
    const auto weigh = [&]() -> Task<> {
      co_await sleep_for(300ms);
      after = resident();
    };
    co_await with_streams(streams, "stream", weigh);
    for (int i = 0; i < 200; ++i) {
      (void)server_.events();
      co_await sleep_for(5ms);
    }

    double used = 0;
    const auto count = [&]() -> Task<> {
      co_await sleep_for(500ms);
      const std::size_t events = events_;
      const double began = cpu_us();
      co_await sleep_for(4s);
      used = (cpu_us() - began) / static_cast<double>(events_ - events);
    };
    co_await with_streams(200, "drip 100", count);
    co_await sleep_for(300ms);

    for (int i = 0; i < 200; ++i) {
      (void)server_.events();
      co_await sleep_for(5ms);
    }
    server_.forget();
    co_await with_streams(kCancelled, "stream", nothing);
    // A shared connection whose streams all end is closed as a whole.
    const std::size_t closes = wire_.shares ? kCancelled / per_connection_ : kCancelled;
    for (int i = 0; i < 2000 && server_.count("close") < closes; ++i) co_await sleep_for(5ms);
    const Duration seen = server_.last("close") == nullptr ? Duration{} : server_.last("close")->when - cancelled_at_;
    std::printf("| %-12s | %10.1f | %8.1f | %8.1f | %8.1f |\n", wire_.name,
                (after - before) / 1024 / static_cast<double>(streams), used, ms(here_), ms(seen));
    std::fflush(stdout);
  }

  const Wire& wire_;
  StallServer& server_;
  const std::size_t per_connection_;
  Reactor reactor_;
  HttpClient client_;
  std::size_t body_ = 0;
  std::size_t open_ = 0;
  std::size_t events_ = 0;
  TimePoint cancelled_at_{};
  Duration here_{};
};

int run(std::size_t streams, long per_connection, std::size_t body) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::printf("%zu streams, %ld of a shared connection\n", streams, per_connection);
  std::printf("| wire         | KiB/stream | µs/event | cancel ms | seen ms |\n");
  for (const Wire& wire : kWires) {
    StallServer server;
    Bench(wire, server, per_connection).run(streams, body);
  }
  return 0;
}

}  // namespace
}  // namespace stint::net

int main(int argc, char** argv) {
  std::size_t streams = 2000;
  long per_connection = 32;
  std::size_t body = 8 << 10;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view value = word.substr(word.find('=') + 1);
    if (word.starts_with("streams=")) std::from_chars(value.data(), value.data() + value.size(), streams);
    if (word.starts_with("per_connection=")) std::from_chars(value.data(), value.data() + value.size(), per_connection);
    if (word.starts_with("body=")) std::from_chars(value.data(), value.data() + value.size(), body);
  }
  return stint::net::run(streams, per_connection, body);
}
