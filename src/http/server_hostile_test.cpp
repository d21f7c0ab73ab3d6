// Clients that are slow, broken or malicious.
#include "http/server_test_support.hpp"
#include "os/test_descriptors.hpp"

#include <sys/resource.h>
#include <unistd.h>

namespace stint::http {
namespace {

using namespace std::string_literals;

TEST(HttpHostile, a_head_that_trickles_is_cut_in_total_not_per_byte) {
  ServerOptions options;
  options.header_time_max = 60ms;
  World world(options);
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    const TimePoint start = w.reactor.now();
    const auto trickle = [](Client& to) -> Task<> {
      for (const char c : get("/hello", "X: " + std::string(4000, 'x'))) {
        const bool written = co_await to.write(std::string(1, c));
        if (!written) co_return;
        co_await sleep_for(5ms);
      }
    };
    const auto listen = [](Client& to) -> Task<std::string> { co_return co_await to.read_all(); };
    const auto first = co_await race(listen(client), trickle(client));
    EXPECT_EQ(first.index(), 0U);
    EXPECT_TRUE(std::get<0>(first).starts_with("HTTP/1.1 408 "));
    EXPECT_GE(w.reactor.now() - start, 60ms);
    EXPECT_EQ(w.stats().cut_header, 1U);
    EXPECT_EQ(w.stats().requests, 0U);
  });
}

TEST(HttpHostile, a_body_that_trickles_is_cut) {
  ServerOptions options;
  options.body_time_max = 60ms;
  World world(options);
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
    const auto trickle = [](Client& to) -> Task<> {
      while (true) {
        const bool written = co_await to.write("x");
        if (!written) co_return;
        co_await sleep_for(5ms);
      }
    };
    const auto listen = [](Client& to) -> Task<std::string> { co_return co_await to.read_all(); };
    const auto first = co_await race(listen(client), trickle(client));
    EXPECT_EQ(first.index(), 0U);
    EXPECT_TRUE(std::get<0>(first).starts_with("HTTP/1.1 408 "));
    EXPECT_EQ(w.stats().cut_body, 1U);
  });
}

TEST(HttpHostile, a_body_that_keeps_coming_may_take_longer) {
  ServerOptions options;
  options.body_time_max = 20ms;
  options.body_bytes_per_second_min = 100;  // each byte earns 10 ms
  World world(options);
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n");
    for (int i = 0; i < 10; ++i) {
      (void)co_await client.write("xxxxx");
      co_await sleep_for(8ms);
    }
    const Reply reply = co_await client.reply();
    EXPECT_EQ(reply.body, std::string(50, 'x'));
  });
}

TEST(HttpHostile, a_silent_connection_is_closed_without_an_answer) {
  ServerOptions options;
  options.idle_time_max = 30ms;
  World world(options);
  world.run([](World& w) -> Task<> {
    const std::string silent = co_await w.say("");
    EXPECT_EQ(silent, "");
    Client client = co_await w.connect();
    (void)co_await client.ask(get("/hello"));
    const std::string rest = co_await client.read_all();
    EXPECT_EQ(rest, "");
    EXPECT_FALSE(client.was_reset());
  });
}

TEST(HttpHostile, the_idle_time_restarts_with_each_request) {
  ServerOptions options;
  options.idle_time_max = 60ms;
  World world(options);
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    for (int i = 0; i < 5; ++i) {
      const Reply reply = co_await client.ask(get("/hello"));
      EXPECT_EQ(reply.status, 200);
      co_await sleep_for(30ms);
    }
  });
}

TEST(HttpHostile, a_client_that_does_not_read_is_cut) {
  ServerOptions options;
  options.write_time_max = 40ms;
  World world(options);
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    client.shrink_receive_buffer();
    (void)co_await client.write(get("/big?bytes=50000000"));
    co_await w.until([&w] { return w.stats().cut_write == 1; });
    co_await w.until_all_left();
    (void)co_await client.read_all();
    EXPECT_TRUE(client.was_reset());
    const Reply reply = co_await w.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
  });
}

TEST(HttpHostile, too_large_requests_get_their_status) {
  World world;
  world.run([](World& w) -> Task<> {
    std::string said = co_await w.say(get("/hello", "X: " + std::string(20'000, 'x') + "\r\n"));
    EXPECT_TRUE(said.starts_with("HTTP/1.1 431 ")) << said;
    said = co_await w.say(get("/" + std::string(20'000, 'x')));
    EXPECT_TRUE(said.starts_with("HTTP/1.1 414 ")) << said;
    said = co_await w.say("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\nxx");
    EXPECT_TRUE(said.starts_with("HTTP/1.1 413 ")) << said;
    EXPECT_NE(said.find("Connection: close"), std::string::npos);
    std::string chunked = "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < 50; ++i) chunked += "20000\r\n" + std::string(0x20000, 'x') + "\r\n";
    said = co_await w.say(std::move(chunked));
    EXPECT_TRUE(said.starts_with("HTTP/1.1 413 ")) << said;
    EXPECT_EQ(w.stats().requests, 0U);
  });
}

TEST(HttpHostile, garbage_and_smuggling_close_the_connection) {
  World world;
  world.run([](World& w) -> Task<> {
    const std::string next = get("/hello");
    const std::string bad[] = {
        "\x16\x03\x01\x02\x03",
        "hello\r\n\r\n",
        "GET / HTTP/1.1\nHost: localhost\n\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n"s,
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET / HTTP/1.1\r\n\r\n",
    };
    for (const std::string& bytes : bad) {
      const std::string said = co_await w.say(bytes + next);
      EXPECT_TRUE(said.starts_with("HTTP/1.1 400 ")) << bytes << said;
      EXPECT_EQ(said.find("HTTP/1.1 200"), std::string::npos) << bytes;
      EXPECT_NE(said.find("application/problem+json"), std::string::npos);
    }
    EXPECT_EQ(w.stats().requests, 0U);
  });
}

TEST(HttpHostile, a_refusal_arrives_although_the_client_goes_on_sending) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n");
    co_await w.until([&w] { return w.stats().refusals == 1; });
    for (int i = 0; i < 50; ++i) {
      const bool written = co_await client.write(std::string(100'000, 'x'));
      EXPECT_TRUE(written);
    }
    const Reply reply = co_await client.reply();
    EXPECT_EQ(reply.status, 413);
    const bool more = co_await client.read();
    EXPECT_FALSE(more);
    EXPECT_FALSE(client.was_reset());
  });
}

TEST(HttpHostile, resets_at_any_moment_do_not_affect_others) {
  ServerOptions options;
  options.drain_time_max = 20ms;
  World world(options);
  world.run([](World& w) -> Task<> {
    const std::string whole = post("/echo", std::string(3000, 'x')) + get("/big?bytes=3000000");
    for (const std::size_t sent : {std::size_t{0}, std::size_t{10}, std::size_t{60}, std::size_t{2000}, whole.size()}) {
      Client client = co_await w.connect(whole.substr(0, sent));
      if (sent == whole.size()) (void)co_await client.read();
      client.reset();
    }
    for (const char* path : {"/wait", "/slow", "/events?count=1", "/stream?count=1000000&bytes=1000"}) {
      Client client = co_await w.connect(get(path));
      const int began = w.handler.began;
      co_await w.until([&w, began] { return w.handler.began > began || w.handler.began == 4; });
      client.reset();
    }
    co_await w.until([&w] { return w.handler.gone >= 3; });  // the third handler does not watch for departure
    const Reply reply = co_await w.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
  });
}

TEST(HttpHostile, when_full_the_longest_idle_is_evicted) {
  ServerOptions options;
  options.connections_max = 3;
  World world(options);
  world.run([](World& w) -> Task<> {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 3; ++i) {
      clients.push_back(std::make_unique<Client>(w.reactor));
      co_await clients.back()->connect(w.port);
      (void)co_await clients.back()->ask(get("/hello"));
    }
    (void)co_await clients[0]->ask(get("/hello"));  // now the second one is the longest idle
    const Reply reply = co_await w.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(w.stats().connections_evicted, 1U);
    const bool second_lives = co_await clients[1]->read();
    EXPECT_FALSE(second_lives);
    const Reply first = co_await clients[0]->ask(get("/hello"));
    EXPECT_EQ(first.status, 200);
  });
}

TEST(HttpHostile, when_all_are_busy_a_new_connection_gets_503) {
  ServerOptions options;
  options.connections_max = 2;
  options.connections_reserved = 0;
  World world(options);
  world.run([](World& w) -> Task<> {
    Client one(w.reactor);
    Client two(w.reactor);
    co_await one.connect(w.port);
    co_await two.connect(w.port);
    (void)co_await one.write(get("/wait"));
    (void)co_await two.write(get("/wait"));
    co_await w.until_begun(2);
    const std::string said = co_await w.say(get("/hello"));
    EXPECT_TRUE(said.starts_with("HTTP/1.1 503 ")) << said;
    EXPECT_EQ(w.stats().connections_refused, 1U);
    one.close();
    co_await w.until([&w] { return w.stats().connections == 1; });
    const Reply reply = co_await w.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
  });
}

TEST(HttpHostile, thousands_of_idle_connections_do_not_delay_others) {
  constexpr int kIdle = 2500;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit before = files;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 2 * kIdle + 200);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur < 2 * kIdle + 200) GTEST_SKIP() << "not enough descriptors";
  ServerOptions options;
  options.connections_max = kIdle + 10;
  World world(options);
  world.run([](World& w) -> Task<> {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < kIdle; ++i) {
      clients.push_back(std::make_unique<Client>(w.reactor));
      co_await clients.back()->connect(w.port);
    }
    co_await w.until([&w] { return w.stats().idle == kIdle; });
    for (int i = 0; i < kIdle; i += 100) {
      const Reply reply = co_await clients[static_cast<std::size_t>(i)]->ask(get("/hello"));
      EXPECT_EQ(reply.status, 200);
    }
    EXPECT_EQ(w.stats().connections_evicted, 0U);
  });
  ::setrlimit(RLIMIT_NOFILE, &before);
}

/// Lowers the descriptor limit to the number in use.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    rlimit files = before_;
    files.rlim_cur = static_cast<rlim_t>(next);
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  ~NoDescriptorsLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;

 private:
  rlimit before_{};
};

TEST(HttpHostile, without_descriptors_accept_neither_ends_nor_spins) {
  if (os::kSanitizerNeedsDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  World world;
  world.run([](World& w) -> Task<> {
    Client client(w.reactor);
    client.open();  // its own socket exists already; the server's side can't be opened
    {
      const NoDescriptorsLeft none;
      co_await client.connect(w.port);
      (void)co_await client.write(get("/hello"));
      co_await w.until([&w] { return w.stats().accept_failures > 0; });
      co_await sleep_for(120ms);
      EXPECT_LE(w.stats().accept_failures, 5U);
    }
    const Reply reply = co_await client.reply();
    EXPECT_EQ(reply.status, 200);
  });
}

TEST(HttpHostile, without_descriptors_an_idle_connection_is_evicted) {
  if (os::kSanitizerNeedsDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  World world;
  world.run([](World& w) -> Task<> {
    Client idle(w.reactor);
    Client client(w.reactor);
    co_await idle.connect(w.port);
    (void)co_await idle.ask(get("/hello"));
    client.open();
    const NoDescriptorsLeft none;
    co_await client.connect(w.port);
    const Reply reply = co_await client.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
    const bool idle_lives = co_await idle.read();
    EXPECT_FALSE(idle_lives);
    co_await sleep_for(120ms);
    EXPECT_EQ(w.stats().connections_evicted, 1U);  // only one, since no other client waits
    const Reply again = co_await client.ask(get("/hello"));
    EXPECT_EQ(again.status, 200);
  });
}

}  // namespace
}  // namespace stint::http
