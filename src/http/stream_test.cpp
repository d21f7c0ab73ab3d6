#include "http/server_test_support.hpp"

namespace stint::http {
namespace {

TEST(HttpStream, pieces_come_as_chunks_and_the_connection_stays) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/stream?count=3&bytes=2"));
    const std::string all = co_await client.read_to("0\r\n\r\n");
    EXPECT_NE(all.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
    EXPECT_TRUE(all.ends_with("\r\n\r\n2\r\npp\r\n2\r\npp\r\n2\r\npp\r\n0\r\n\r\n"));
    const Reply reply = co_await client.ask(get("/hello"));
    EXPECT_EQ(reply.body, "hello");
  });
}

TEST(HttpStream, an_http_1_0_client_reads_to_the_end) {
  World world;
  world.run([](World& w) -> Task<> {
    const std::string all = co_await w.say("GET /stream?count=2&bytes=3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(all.find("chunked"), std::string::npos);
    EXPECT_NE(all.find("Connection: close\r\n"), std::string::npos);
    EXPECT_TRUE(all.ends_with("\r\n\r\npppppp"));
  });
}

TEST(HttpStream, head_gets_the_head_alone) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect("HEAD /stream?count=3&bytes=2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const Reply head = co_await client.reply(false);
    EXPECT_EQ(head.status, 200);
    const Reply reply = co_await client.ask(get("/hello"));
    EXPECT_EQ(reply.body, "hello");
    EXPECT_EQ(w.handler.began, 0);
  });
}

TEST(HttpStream, events_have_their_form) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/events?count=1"));
    const std::string all = co_await client.read_to("line two\n\n");
    EXPECT_NE(all.find("Content-Type: text/event-stream\r\n"), std::string::npos);
    EXPECT_NE(all.find("Cache-Control: no-store\r\n"), std::string::npos);
    EXPECT_NE(all.find("id: 0\nevent: tick\ndata: line one\ndata: line two\n\n"), std::string::npos);
    EXPECT_EQ(w.stats().streams, 1U);
  });
}

TEST(HttpStream, a_silent_stream_has_a_heartbeat) {
  ServerOptions options;
  options.heartbeat_every = 10ms;
  World world(options);
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/events"));
    for (int i = 0; i < 3; ++i) {
      const std::string beat = co_await client.read_to("3\r\n:\n\n\r\n");
      EXPECT_TRUE(beat.ends_with("3\r\n:\n\n\r\n"));
    }
  });
}

TEST(HttpStream, a_client_that_leaves_stops_the_handler) {
  World world;
  world.run([](World& w) -> Task<> {
    Client client = co_await w.connect(get("/events?count=1"));
    (void)co_await client.read_to("line two");
    client.close();
    co_await w.until([&w] { return w.handler.gone == 1; });
    EXPECT_EQ(w.handler.ended, 0);
    co_await w.until_all_left();
  });
}

TEST(HttpStream, a_slow_reader_delays_only_its_own_handler) {
  World world;
  world.run([](World& w) -> Task<> {
    Client slow = co_await w.connect(get("/stream?count=1000&bytes=100000"));
    int sent = -1;
    while (sent != w.handler.sent) {
      sent = w.handler.sent;
      co_await sleep_for(20ms);
    }
    EXPECT_LT(sent, 200);
    const Reply reply = co_await w.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
    const std::size_t count = co_await slow.count_stream();
    EXPECT_GE(count, 100'000'000U);
    EXPECT_EQ(w.handler.ended, 1);
  });
}

TEST(HttpStream, a_client_that_reads_nothing_of_a_stream_is_cut) {
  ServerOptions options;
  options.write_time_max = 40ms;
  World world(options);
  world.run([](World& w) -> Task<> {
    Client slow = co_await w.connect();
    slow.shrink_receive_buffer();
    (void)co_await slow.write(get("/stream?count=1000&bytes=100000"));
    co_await w.until([&w] { return w.handler.gone == 1; });
    EXPECT_EQ(w.stats().cut_write, 1U);
    EXPECT_EQ(w.handler.ended, 0);
    co_await w.until_all_left();
  });
}

TEST(HttpStream, unread_heartbeats_cut_the_connection) {
  ServerOptions options;
  options.heartbeat_every = 1ms;
  options.write_time_max = 20ms;
  World world(options);
  world.run([](World& w) -> Task<> {
    // A stream whose handler fills the socket, is stopped in the middle of a send, and then stays silent.
    Client slow = co_await w.connect();
    slow.shrink_receive_buffer();
    (void)co_await slow.write(get("/fills"));
    co_await w.until([&w] { return w.handler.gone == 1; });
    EXPECT_EQ(w.stats().cut_write, 1U);
    EXPECT_EQ(w.handler.ended, 0);
  });
}

TEST(HttpStream, a_failed_stream_has_no_last_chunk) {
  World world;
  world.run([](World& w) -> Task<> {
    for (const char* path : {"/breaks", "/changes_its_mind"}) {
      const std::string all = co_await w.say(get(path) + get("/hello"));
      EXPECT_TRUE(all.ends_with("4\r\nsome\r\n")) << all;
    }
    const Reply reply = co_await w.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
  });
}

}  // namespace
}  // namespace stint::http
