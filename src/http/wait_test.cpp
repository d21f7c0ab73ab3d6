// Answers that wait: the server detects a client that leaves meanwhile, and the connection works as before afterwards.
#include "http/server_test_support.hpp"

namespace stint::http {
namespace {

TEST(HttpWait, the_connection_works_after_a_wait) {
  World world;
  world.handler.slow_for = 1ms;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    for (int i = 0; i < 5; ++i) {
      Reply reply = co_await client.ask(get("/wait"));
      EXPECT_EQ(reply.body, "slow");
      (void)co_await client.write(get("/stream?count=1&bytes=1"));
      const std::string all = co_await client.read_to("0\r\n\r\n");
      EXPECT_TRUE(all.ends_with("1\r\np\r\n0\r\n\r\n")) << all;
      reply = co_await client.ask(get("/hello"));
      EXPECT_EQ(reply.body, "hello");
    }
    EXPECT_EQ(w.stats().connections_total, 1U);
    EXPECT_EQ(w.handler.left, 0);
  });
}

TEST(HttpWait, requests_that_arrive_during_a_wait_are_answered_after_it) {
  World world;
  world.handler.slow_for = 200ms;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/wait"));
    co_await w.until_begun();
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t seen = w.stats().bytes_in;
      (void)co_await client.write(post("/echo", std::to_string(i)));
      co_await w.until([&w, seen] { return w.stats().bytes_in > seen || w.handler.ended == 1; });
    }
    EXPECT_EQ(w.handler.ended, 0) << "they arrived too late: the test shows nothing";
    Reply reply = co_await client.reply();
    EXPECT_EQ(reply.body, "slow");
    for (int i = 0; i < 3; ++i) {
      reply = co_await client.reply();
      EXPECT_EQ(reply.body, std::to_string(i));
    }
    reply = co_await client.ask(get("/hello"));
    EXPECT_EQ(reply.body, "hello");
  });
}

TEST(HttpWait, a_client_that_leaves_with_its_request_is_detected) {
  World world;
  world.run([](World& w) -> Task<> {
    // Both may arrive in one read: the close is pending when the request is read, and no further bytes arrive.
    for (int i = 1; i <= 20; ++i) {
      Client client = co_await w.connect(get("/wait"));
      if (i % 2 == 0) {
        client.close();
      } else {
        client.reset();
      }
      co_await w.until_all_left();
      EXPECT_EQ(w.handler.left, w.handler.began);
    }
    EXPECT_GE(w.handler.left, 10);
    EXPECT_EQ(w.handler.ended, 0);
  });
}

TEST(HttpWait, a_client_that_half_closes_gets_its_answers) {
  World world;
  world.handler.slow_for = 100ms;
  world.run([](World& w) -> Task<> {
    for (const bool at_once : {true, false}) {
      Client client = co_await w.connect();
      const int before = w.handler.began;
      (void)co_await client.write(get("/wait") + get("/wait") + get("/hello"));
      if (!at_once) co_await w.until([&w, before] { return w.handler.began > before; });
      client.shutdown_write();
      const std::string all = co_await client.read_all();
      std::size_t answers = 0;
      for (std::size_t at = 0; (at = all.find("HTTP/1.1 200 ", at)) != std::string::npos; ++at) ++answers;
      EXPECT_EQ(answers, 3U) << all;
      EXPECT_TRUE(all.ends_with("hello")) << all;
      EXPECT_FALSE(client.was_reset());
    }
    EXPECT_EQ(w.handler.left, 0);
    EXPECT_EQ(w.handler.ended, 4);
  });
}

TEST(HttpWait, a_client_that_half_closes_and_then_leaves_is_detected) {
  World world;
  world.run([](World& w) -> Task<> {
    for (int i = 1; i <= 10; ++i) {
      Client client = co_await w.connect(get(i % 2 == 0 ? "/wait" : "/events?count=1"));
      client.shutdown_write();
      const std::string said = co_await client.read_to("\r\n\r\n");
      EXPECT_TRUE(said.starts_with("HTTP/1.1 ")) << said;
      EXPECT_EQ(w.stats().connections, 1U);
      client.reset();
      co_await w.until_all_left();
    }
    EXPECT_EQ(w.handler.gone, 10);
    EXPECT_EQ(w.handler.left, 5);
    EXPECT_EQ(w.handler.ended, 0);
  });
}

TEST(HttpWait, a_stream_goes_on_for_a_client_that_half_closes) {
  World world;
  world.handler.slow_for = 100ms;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/events?count=3"));
    client.shutdown_write();
    const std::string all = co_await client.read_all();
    EXPECT_NE(all.find("id: 2\n"), std::string::npos) << all;
    EXPECT_TRUE(all.ends_with("\r\n0\r\n\r\n")) << all;
    EXPECT_EQ(w.handler.ended, 1);
  });
}

TEST(HttpWait, an_http_1_0_client_that_half_closes_counts_as_gone) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect("GET /wait HTTP/1.0\r\n\r\n");
    client.shutdown_write();
    co_await w.until([&w] { return w.handler.left == 1; });
  });
}

TEST(HttpWait, leaving_after_pipelined_requests_is_detected) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/wait"));
    co_await w.until_begun();
    (void)co_await client.write(get("/hello"));
    client.close();
    co_await w.until([&w] { return w.handler.gone == 1; });
    EXPECT_EQ(w.handler.left, 1);
    co_await w.until_all_left();
    EXPECT_EQ(w.stats().requests, 1U);
  });
}

TEST(HttpWait, leaving_right_after_the_answer_is_harmless) {
  World world;
  world.handler.slow_for = 1ms;
  world.run([](World& w) -> Task<> {
    for (int i = 1; i <= 10; ++i) {
      Client client = co_await w.connect();
      const Reply reply = co_await client.ask(get("/wait"));
      EXPECT_EQ(reply.body, "slow");
      if (i % 2 == 0) {
        client.close();
      } else {
        client.reset();
      }
      co_await w.until_all_left();
    }
    EXPECT_EQ(w.handler.left, 0);
    EXPECT_EQ(w.handler.ended, 10);
  });
}

TEST(HttpWait, a_second_wait_detects_a_client_that_left_in_between) {
  World world;
  world.handler.slow_for = 100ms;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/wait_again"));
    co_await w.until([&w] { return w.handler.ended == 1; });
    client.close();
    co_await w.until([&w] { return w.handler.left == 1; });
    EXPECT_EQ(w.handler.ended, 2) << "the middle wait does not depend on the client";
  });
}

TEST(HttpWait, input_beyond_the_buffer_stays_in_the_system) {
  World world;
  world.handler.slow_for = 50ms;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/wait"));
    co_await w.until_begun();
    std::string many;
    const std::string body(1000, 'x');
    for (int i = 0; i < 100; ++i) many += post("/echo", body);
    (void)co_await client.write(std::move(many));
    Reply reply = co_await client.reply();
    EXPECT_EQ(reply.body, "slow");
    for (int i = 0; i < 100; ++i) {
      reply = co_await client.reply();
      EXPECT_EQ(reply.body, body);
    }
    reply = co_await client.ask(get("/wait"));
    EXPECT_EQ(reply.body, "slow");
  });
}

TEST(HttpWait, a_reset_behind_a_full_buffer_is_detected) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/wait"));
    co_await w.until_begun();
    (void)co_await client.write(std::string(100'000, 'x'));
    co_await w.until([&w] { return w.stats().bytes_in >= 16'000; });
    EXPECT_EQ(w.handler.gone, 0);
    client.reset();
    co_await w.until([&w] { return w.handler.gone == 1; });
    EXPECT_EQ(w.handler.left, 1);
  });
}

TEST(HttpWait, destroying_the_reactor_ends_armed_waits) {
  TestHandler handler;
  {
    Reactor reactor;
    Server server(reactor, handler, {});
    const std::uint16_t port = server.listen().value();
    RootScope scope(reactor);
    scope.spawn(server.serve());
    const auto ask = [](Reactor& on, std::uint16_t to) -> Task<> {
      Client client(on);
      co_await client.connect(to);
      (void)co_await client.write(get("/wait"));
      (void)co_await client.read_all();
    };
    scope.spawn(ask(reactor, port));
    reactor.run_until([&handler] { return handler.began == 1; });
    scope.cancel();
    EXPECT_EQ(reactor.run(scope).error(), Errc::cancelled);  // the server is gone, its operations may still be pending
  }
  EXPECT_EQ(handler.gone, 1);
}

}  // namespace
}  // namespace stint::http
