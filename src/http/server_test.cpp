#include "http/server.hpp"

#include "http/server_state.hpp"
#include "http/server_test_support.hpp"

namespace stint::http {
namespace {

TEST(ServerState, returned_buffers_keep_no_large_buffer) {
  struct NoHandler final : Handler {
    Task<Response> answer(const Request&, Exchange&) override { co_return Response(); }
  };
  Reactor reactor;
  NoHandler handler;
  ServerState state(reactor, handler, {});
  auto buffers = state.borrow_buffers();
  buffers->out.assign(1 << 20, 'x');
  buffers->tail.assign(1 << 20, 'x');
  state.give_back(std::move(buffers));
  buffers = state.borrow_buffers();
  EXPECT_LE(buffers->out.capacity(), 64U << 10);
  EXPECT_LE(buffers->tail.capacity(), 64U);
}

TEST(HttpServer, answers_and_keeps_the_connection) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    for (int i = 0; i < 3; ++i) {
      const Reply reply = co_await client.ask(get("/hello"));
      EXPECT_EQ(reply.status, 200);
      EXPECT_EQ(reply.body, "hello");
      EXPECT_FALSE(reply.has("Connection:"));
    }
    EXPECT_EQ(w.stats().connections_total, 1U);
    EXPECT_EQ(w.stats().requests, 3U);
    EXPECT_EQ(w.stats().answers[2], 3U);
  });
}

TEST(HttpServer, reads_bodies_by_length_and_in_chunks) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    const std::string body(100'000, 'b');
    Reply reply = co_await client.ask(post("/echo", body));
    EXPECT_EQ(reply.body, body);
    reply = co_await client.ask(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nhello\r\n6;name=value\r\n world\r\n0\r\nX-Trailer: ignored\r\n\r\n");
    EXPECT_EQ(reply.body, "hello world");
    reply = co_await client.ask(get("/hello"));
    EXPECT_EQ(reply.body, "hello");
  });
}

TEST(HttpServer, answers_pipelined_requests_in_order) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    std::string many;
    for (int i = 0; i < 100; ++i) many += post("/echo", std::to_string(i));
    (void)co_await client.write(std::move(many));
    for (int i = 0; i < 100; ++i) {
      const Reply reply = co_await client.reply();
      EXPECT_EQ(reply.body, std::to_string(i));
    }
  });
}

TEST(HttpServer, answers_large_bodies_pipelined) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    std::string many;
    for (int i = 1; i <= 8; ++i) many += get("/big?bytes=" + std::to_string(i * 400'000)) + get("/hello");
    (void)co_await client.write(std::move(many));
    for (std::size_t i = 1; i <= 8; ++i) {
      Reply reply = co_await client.reply();
      EXPECT_EQ(reply.body.size(), i * 400'000);
      reply = co_await client.reply();
      EXPECT_EQ(reply.body, "hello");
    }
  });
}

TEST(HttpServer, head_has_a_length_and_no_body) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect("HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/hello"));
    Reply reply = co_await client.reply(false);
    EXPECT_TRUE(reply.has("Content-Length: 5\r\n"));
    reply = co_await client.reply();
    EXPECT_EQ(reply.body, "hello");
    reply = co_await client.ask(get("/none"));
    EXPECT_EQ(reply.status, 204);
    EXPECT_FALSE(reply.has("Content-"));
  });
}

TEST(HttpServer, http_1_0_connections_close_without_keep_alive) {
  World world;
  world.run([](World& w) -> Task<> {
    const std::string closed = co_await w.say("GET /hello HTTP/1.0\r\n\r\n");
    EXPECT_NE(closed.find("Connection: close\r\n"), std::string::npos);
    EXPECT_TRUE(closed.ends_with("hello"));
    Client client = co_await w.connect();
    for (int i = 0; i < 2; ++i) {
      const Reply reply = co_await client.ask("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
      EXPECT_TRUE(reply.has("Connection: keep-alive\r\n"));
    }
    const std::string last = co_await w.say(get("/hello", "Connection: close\r\n"));
    EXPECT_TRUE(last.ends_with("hello"));
  });
}

TEST(HttpServer, sends_100_continue_only_to_authorized_clients) {
  ServerOptions options;
  options.token = "t0ken";
  World world(options);
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    const std::string head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n";
    (void)co_await client.write(head + "Authorization: Bearer t0ken\r\n\r\n");
    const std::string go_on = co_await client.read_to("\r\n\r\n");
    EXPECT_EQ(go_on, "HTTP/1.1 100 Continue\r\n\r\n");
    const Reply reply = co_await client.ask("body");
    EXPECT_EQ(reply.body, "body");
    const std::string refused = co_await w.say(head + "\r\n");
    EXPECT_TRUE(refused.starts_with("HTTP/1.1 401 "));
  });
}

TEST(HttpServer, a_half_closed_client_gets_its_answer) {
  World world;
  world.handler.slow_for = 20ms;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/hello") + get("/slow"));
    client.shutdown_write();
    const std::string all = co_await client.read_all();
    EXPECT_NE(all.find("hello"), std::string::npos);
    EXPECT_TRUE(all.ends_with("slow"));
  });
}

TEST(HttpServer, work_for_a_client_that_left_is_stopped) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/wait"));
    co_await w.until_begun();
    client.close();
    co_await w.until([&w] { return w.handler.gone == 1; });
    EXPECT_EQ(w.handler.left, 1);
    EXPECT_EQ(w.handler.ended, 0);
  });
}

TEST(HttpServer, what_is_pipelined_behind_a_wait_is_kept) {
  World world;
  world.handler.slow_for = 20ms;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/wait"));
    co_await w.until_begun();
    (void)co_await client.write(get("/hello"));
    Reply reply = co_await client.reply();
    EXPECT_EQ(reply.body, "slow");
    reply = co_await client.reply();
    EXPECT_EQ(reply.body, "hello");
  });
}

TEST(HttpServer, an_exception_is_a_500_without_details) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    Reply reply = co_await client.ask(get("/throw"));
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(reply.body.find("secret"), std::string::npos);
    reply = co_await client.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
  });
}

TEST(HttpServer, a_line_break_in_a_value_makes_no_header) {
  World world;
  world.run([](World& w) -> Task<> {
    const Reply reply = co_await w.ask(get("/inject"));
    EXPECT_TRUE(reply.has("X-Name: a  Set-Cookie: b\r\n"));
    EXPECT_FALSE(reply.has("\nSet-Cookie"));
  });
}

TEST(HttpServer, knows_its_clients_address) {
  World world;
  world.run([](World& w) -> Task<> {
    const Reply reply = co_await w.ask(get("/peer"));
    EXPECT_TRUE(reply.body.starts_with("127.0.0.1:"));
  });
}

TEST(HttpServer, has_a_date_if_it_has_a_clock) {
  ServerOptions options;
  options.wall_clock = [] { return std::chrono::system_clock::time_point(784111777s); };
  World world(options);
  world.run([](World& w) -> Task<> {
    const Reply reply = co_await w.ask(get("/hello"));
    EXPECT_TRUE(reply.has("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  });
}

TEST(HttpServer, the_guard_runs_before_every_handler) {
  ServerOptions options;
  options.token = "s3cret-t0ken";
  options.is_open = [](const Request& request) { return request.path() == "/hello"; };
  World world(options);
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect();
    Reply reply = co_await client.ask(get("/peer"));
    EXPECT_EQ(reply.status, 401);
    EXPECT_TRUE(reply.has("WWW-Authenticate: Bearer\r\n"));
    EXPECT_TRUE(reply.has("application/problem+json"));
    EXPECT_EQ(reply.body.find("s3cret"), std::string::npos);
    reply = co_await client.ask(get("/peer", "Authorization: Bearer s3cret-t0keN\r\n"));
    EXPECT_EQ(reply.status, 401);
    reply = co_await client.ask(get("/peer", "Authorization: Bearer s3cret-t0ken\r\n"));
    EXPECT_EQ(reply.status, 200);
    reply = co_await client.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
    reply = co_await client.ask("GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    EXPECT_EQ(reply.status, 421);
    reply = co_await client.ask(get("/hello", "Origin: http://evil.example\r\n"));
    EXPECT_EQ(reply.status, 403);
    EXPECT_EQ(w.stats().refusals, 4U);
    EXPECT_EQ(w.stats().requests, 2U);
  });
}

TEST(HttpServer, listens_beyond_loopback_only_with_a_token) {
  Reactor reactor;
  TestHandler handler;
  ServerOptions options;
  options.address = "0.0.0.0";
  Server open(reactor, handler, options);
  EXPECT_EQ(open.listen().error(), Errc::denied);
  options.address = "somewhere";
  Server nowhere(reactor, handler, options);
  EXPECT_EQ(nowhere.listen().error(), Errc::invalid);
}

TEST(HttpServer, a_port_in_use_is_a_failure) {
  World world;
  ServerOptions options;
  options.port = world.port;
  Server second(world.reactor, world.handler, options);
  EXPECT_EQ(second.listen().error(), Errc::unavailable);
  EXPECT_EQ(world.server.address(), "127.0.0.1:" + std::to_string(world.port));
}

TEST(HttpServer, a_stop_waits_for_answers_in_progress) {
  Reactor reactor;
  TestHandler handler;
  handler.slow_for = 30ms;
  Server server(reactor, handler, {});
  const std::uint16_t port = server.listen().value();
  RootScope serving(reactor);
  RootScope asking(reactor);
  serving.spawn(server.serve());
  const auto ask = [](Reactor& on, std::uint16_t to, Scope& stop, TestHandler& by) -> Task<> {
    Client idle(on);
    co_await idle.connect(to);
    (void)co_await idle.ask(get("/hello"));
    Client client(on);
    co_await client.connect(to);
    (void)co_await client.write(get("/slow"));
    while (by.began == 0) co_await sleep_for(1ms);
    stop.cancel();
    const bool idle_lives = co_await idle.read();
    EXPECT_FALSE(idle_lives);
    EXPECT_EQ(by.ended, 0);
    const Reply reply = co_await client.reply();
    EXPECT_EQ(reply.body, "slow");
    EXPECT_TRUE(reply.has("Connection: close\r\n"));
  };
  asking.spawn(ask(reactor, port, serving, handler));
  EXPECT_TRUE(reactor.run(asking));
  EXPECT_EQ(reactor.run(serving).error(), Errc::cancelled);
  EXPECT_EQ(handler.ended, 1);
}

TEST(HttpServer, a_stop_ends_streams_at_once_and_the_rest_after_a_while) {
  Reactor reactor;
  TestHandler handler;
  ServerOptions options;
  options.drain_time_max = 30ms;
  Server server(reactor, handler, options);
  const std::uint16_t port = server.listen().value();
  RootScope serving(reactor);
  RootScope asking(reactor);
  serving.spawn(server.serve());
  const auto ask = [](Reactor& on, std::uint16_t to, Scope& stop, TestHandler& by) -> Task<> {
    Client stream(on);
    co_await stream.connect(to);
    (void)co_await stream.write(get("/hangs"));
    (void)co_await stream.read_to("some");
    Client events(on);
    co_await events.connect(to);
    (void)co_await events.write(get("/events?count=1"));
    (void)co_await events.read_to("line two");
    Client slow(on);
    co_await slow.connect(to);
    (void)co_await slow.write(get("/slow"));
    while (by.began < 3) co_await sleep_for(1ms);
    stop.cancel();
    const std::string rest = co_await stream.read_all();
    EXPECT_FALSE(rest.ends_with("0\r\n\r\n")) << "a stream that was cut must not look complete";
    const std::string last = co_await events.read_all();
    EXPECT_TRUE(last.ends_with("0\r\n\r\n")) << "an endless stream gets a proper end";
    EXPECT_EQ(by.gone, 2);
    const std::string nothing = co_await slow.read_all();
    EXPECT_EQ(nothing, "");
    EXPECT_EQ(by.gone, 3);
  };
  asking.spawn(ask(reactor, port, serving, handler));
  EXPECT_TRUE(reactor.run(asking));
  EXPECT_EQ(reactor.run(serving).error(), Errc::cancelled);
  EXPECT_EQ(handler.ended, 0);
}

}  // namespace
}  // namespace stint::http
