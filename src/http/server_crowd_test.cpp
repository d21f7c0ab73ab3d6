// More clients than places, and busy clients beside the rest of the program.
#include "http/server_test_support.hpp"

namespace stint::http {
namespace {

constexpr std::string_view kHalfHead = "GET /hello HTTP/1.1\r\nHost: local";

using Clients = std::vector<Client>;

Task<> add_client(World& w, Clients& clients, std::string bytes) {
  Client client = co_await w.connect(std::move(bytes));
  clients.push_back(std::move(client));
}

TEST(HttpCrowd, incomplete_heads_are_evicted_oldest_first) {
  ServerOptions options;
  options.connections_max = 3;
  options.connections_reserved = 0;
  World world(options);
  world.run([](World& w) -> Task<> {
    Clients clients;
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t seen = w.stats().bytes_in;
      co_await add_client(w, clients, std::string(kHalfHead));
      co_await w.until([&w, seen] { return w.stats().bytes_in == seen + kHalfHead.size(); });
    }
    const std::uint64_t seen = w.stats().bytes_in;
    (void)co_await clients[0].write("h");  // trickling does not move it back in the list
    co_await w.until([&w, seen] { return w.stats().bytes_in == seen + 1; });
    const Reply reply = co_await w.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(w.stats().connections_evicted, 1U);
    const bool first_lives = co_await clients[0].read();
    EXPECT_FALSE(first_lives);
    (void)co_await clients[1].write("host\r\n\r\n");
    const Reply second = co_await clients[1].reply();
    EXPECT_EQ(second.status, 200);
  });
}

TEST(HttpCrowd, a_flood_of_incomplete_heads_does_not_block_others) {
  ServerOptions options;
  options.connections_max = 50;
  World world(options);
  world.run([](World& w) -> Task<> {
    Clients clients;
    for (int i = 0; i < 300; ++i) {
      co_await add_client(w, clients, std::string(kHalfHead));
      if (i % 10 != 0) continue;
      const Reply reply = co_await w.ask(get("/hello"));
      EXPECT_EQ(reply.status, 200) << i;
    }
    EXPECT_EQ(w.stats().connections_refused, 0U);
  });
}

TEST(HttpCrowd, streams_leave_places_for_short_answers) {
  ServerOptions options;
  options.connections_max = 3;
  options.connections_reserved = 2;
  World world(options);
  world.run([](World& w) -> Task<> {
    Clients clients;
    for (int i = 0; i < 3; ++i) co_await add_client(w, clients, get("/events?count=1"));
    co_await w.until([&w] { return w.stats().streams == 3; });
    for (int i = 0; i < 10; ++i) {  // the place in reserve is free again after each
      const std::string said = co_await w.say(get("/hello"));
      EXPECT_TRUE(said.starts_with("HTTP/1.1 200 ")) << said;
      EXPECT_NE(said.find("Connection: close"), std::string::npos) << said;
    }
    EXPECT_EQ(w.stats().connections_reserved, 10U);
    for (int i = 0; i < 2; ++i) co_await add_client(w, clients, get("/wait"));
    co_await w.until_begun(5);
    const std::string said = co_await w.say(get("/hello"));
    EXPECT_TRUE(said.starts_with("HTTP/1.1 503 ")) << said;
    EXPECT_NE(said.find("Retry-After: 1\r\n"), std::string::npos) << said;
    EXPECT_EQ(w.stats().connections_refused, 1U);
  });
}

TEST(HttpCrowd, a_reserved_place_stays_reserved_when_its_connection_is_evicted) {
  ServerOptions options;
  options.connections_max = 2;
  options.connections_reserved = 2;
  World world(options);
  world.run([](World& w) -> Task<> {
    Clients clients;
    for (int i = 0; i < 2; ++i) co_await add_client(w, clients, get("/events?count=1"));
    co_await w.until([&w] { return w.stats().streams == 2; });
    for (int i = 0; i < 20; ++i) {
      co_await add_client(w, clients, i % 2 == 0 ? "" : std::string(kHalfHead));
      const Reply reply = co_await w.ask(get("/hello"));
      EXPECT_EQ(reply.status, 200);
      EXPECT_EQ(w.stats().connections, 2U);
    }
  });
}

TEST(HttpCrowd, few_reads_are_answered_at_once_and_probes_do_not_wait_for_them) {
  ServerOptions options;
  options.reads_at_once_max = 2;
  options.is_open = [](const Request& request) { return request.path() == "/hello"; };
  World world(options);
  world.handler.slow_for = 50ms;
  world.run([](World& w) -> Task<> {
    Clients clients;
    for (int i = 0; i < 6; ++i) co_await add_client(w, clients, get("/slow"));
    int most = 0;
    const Reply probe = co_await w.ask(get("/hello"));
    EXPECT_EQ(probe.status, 200);
    while (w.handler.ended < 6) {
      most = std::max(most, w.handler.began - w.handler.gone);
      co_await sleep_for(1ms);
    }
    EXPECT_EQ(most, 2);
    for (int i = 0; i < 6; ++i) co_await add_client(w, clients, get("/wait"));  // waits do not count
    co_await w.until_begun(12);
    for (int i = 0; i < 6; ++i) co_await add_client(w, clients, post("/slow", ""));
    co_await w.until_begun(18);
  });
}

/// The most requests answered between two turns of the rest of the program, if each client sends `at_once` requests
/// together.
std::uint64_t most_in_a_turn(std::size_t pipelined) {
  constexpr int kBusy = 200;
  World world;
  std::uint64_t most = 0;
  world.run([&most, pipelined](World& w) -> Task<> {
    const auto be_busy = [pipelined](World& of) -> Task<> {
      Client client = co_await of.connect();
      std::string requests;
      for (std::size_t i = 0; i < pipelined; ++i) requests += get("/hello");
      while (true) {
        (void)co_await client.write(requests);
        for (std::size_t i = 0; i < pipelined; ++i) {
          const Reply reply = co_await client.reply();
          EXPECT_EQ(reply.status, 200);
        }
      }
    };
    const auto look = [&most](World& of) -> Task<> {
      while (of.stats().connections < kBusy) co_await sleep_for(1ms);
      const std::uint64_t before = of.stats().requests;
      while (of.stats().requests < before + 5000) {
        const std::uint64_t seen = of.stats().requests;
        co_await yield();
        most = std::max(most, of.stats().requests - seen);
      }
    };
    const auto all_busy = [&be_busy](World& of) -> Task<> {
      const auto body = [&](Scope& scope) -> Task<> {
        for (int i = 0; i < kBusy; ++i) scope.spawn(be_busy(of));
        co_return;
      };
      (void)co_await with_scope(ScopeOptions(), body);
    };
    (void)co_await race(look(w), all_busy(w));
  });
  return most;
}

TEST(HttpCrowd, busy_connections_do_not_starve_the_rest_of_the_program) {
  EXPECT_LE(most_in_a_turn(1), 2 * ServerOptions().connections_per_turn);
}

TEST(HttpCrowd, pipelined_requests_take_no_more_turns_than_others) {
  const ServerOptions options;
  EXPECT_LE(most_in_a_turn(100), 2 * options.connections_per_turn * options.requests_per_turn);
}

}  // namespace
}  // namespace stint::http
