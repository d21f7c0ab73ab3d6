// Answers that wait: what the client does meanwhile is seen at once, and the wait for its bytes is as good afterwards.
#include "http/server_test_support.hpp"

namespace stint::http {
namespace {

TEST(HttpWait, the_connection_is_as_good_as_before) {
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

TEST(HttpWait, requests_that_come_one_by_one_meanwhile_are_answered_after_it) {
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
    EXPECT_EQ(w.handler.ended, 0) << "they came too late to show anything";
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

TEST(HttpWait, who_left_with_the_request_is_seen) {
  World world;
  world.run([](World& w) -> Task<> {
    // Both may come in one: the end is there when the request is read, and nothing else will come.
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

TEST(HttpWait, a_client_that_half_closes_and_then_leaves_is_seen) {
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

TEST(HttpWait, an_old_client_can_not_be_asked_whether_it_still_reads) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect("GET /wait HTTP/1.0\r\n\r\n");
    client.shutdown_write();
    co_await w.until([&w] { return w.handler.left == 1; });
  });
}

TEST(HttpWait, who_leaves_behind_pipelined_requests_is_seen) {
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

TEST(HttpWait, who_leaves_right_after_the_answer_harms_nobody) {
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

TEST(HttpWait, a_handler_that_waits_twice_sees_who_left_between) {
  World world;
  world.handler.slow_for = 100ms;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/wait_again"));
    co_await w.until([&w] { return w.handler.ended == 1; });
    client.close();
    co_await w.until([&w] { return w.handler.left == 1; });
    EXPECT_EQ(w.handler.ended, 2) << "the one between is not for the client";
  });
}

TEST(HttpWait, more_than_there_is_room_for_waits_in_the_system) {
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

TEST(HttpWait, who_is_reset_behind_more_than_there_is_room_for_is_seen) {
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

TEST(HttpWait, a_reactor_that_goes_takes_armed_waits_along) {
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
    EXPECT_EQ(reactor.run(scope).error(), Errc::cancelled);  // the server is gone, its operations may be on their way
  }
  EXPECT_EQ(handler.gone, 1);
}

}  // namespace
}  // namespace stint::http
