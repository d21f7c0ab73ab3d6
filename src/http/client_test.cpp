// The client of src/net against our own server.
#include "http/server_test_support.hpp"
#include "net/http_client.hpp"

namespace stint::http {
namespace {

std::string url(const World& world, std::string_view path) {
  return "http://127.0.0.1:" + std::to_string(world.port) + std::string(path);
}

net::Ask ask_for(const World& world, std::string_view path) {
  net::Ask ask;
  ask.url = url(world, path);
  return ask;
}

TEST(HttpClient, sends_requests_and_keeps_the_connection) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    for (int i = 0; i < 3; ++i) {
      const Result<net::Reply> reply = co_await client.ask(ask_for(w, "/hello"));
      EXPECT_TRUE(reply) << reply.error().what();
      EXPECT_EQ(reply->status, 200);
      EXPECT_EQ(reply->body, "hello");
      EXPECT_EQ(reply->header("CONTENT-TYPE"), kText);
    }
    EXPECT_EQ(w.stats().connections_total, 1U);
  });
}

TEST(HttpClient, sends_method_headers_and_body) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    net::Ask ask = ask_for(w, "/echo");
    ask.method = "POST";
    ask.body = std::string(300'000, 'b') + std::string(1, '\0') + "end";
    const std::string sent = ask.body;
    Result<net::Reply> reply = co_await client.ask(std::move(ask));
    EXPECT_EQ(reply->body, sent);
    ask = ask_for(w, "/headers");
    ask.method = "DELETE";
    ask.headers = {{"X-Test", "a value"}};
    reply = co_await client.ask(std::move(ask));
    EXPECT_EQ(reply->body, "a value");
    ask = ask_for(w, "/hello");
    ask.method = "HEAD";
    reply = co_await client.ask(std::move(ask));
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, "");
  });
}

TEST(HttpClient, a_bad_status_is_a_reply) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    const Result<net::Reply> reply = co_await client.ask(ask_for(w, "/nothing"));
    EXPECT_EQ(reply->status, 404);
    EXPECT_EQ(reply->header("content-type"), kProblemJson);
  });
}

TEST(HttpClient, a_reply_that_is_too_large_is_a_failure) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    net::Ask ask = ask_for(w, "/big?bytes=5000000");
    ask.reply_bytes_max = 1'000'000;
    const Result<net::Reply> reply = co_await client.ask(std::move(ask));
    EXPECT_EQ(reply.error(), Errc::failed);
    ask = ask_for(w, "/big?bytes=5000000");
    const Result<net::Reply> whole = co_await client.ask(std::move(ask));
    EXPECT_EQ(whole->body.size(), 5'000'000U);
  });
}

TEST(HttpClient, failures_have_a_retry_class_and_hide_the_query) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    net::Ask ask;
    ask.url = "http://127.0.0.1:1/x?key=secret";
    Result<net::Reply> reply = co_await client.ask(ask);
    EXPECT_EQ(reply.error(), Errc::unavailable);
    EXPECT_EQ(reply.error().retry(), Retry::safe);
    EXPECT_EQ(reply.error().what().find("secret"), std::string_view::npos);
    for (const char* wrong : {"", "nonsense://x", "file:///etc/passwd", "http://", "http://a\nb/"}) {
      ask.url = wrong;
      reply = co_await client.ask(ask);
      EXPECT_EQ(reply.error(), Errc::invalid) << wrong << ": " << reply.error().what();
    }
    ask.url = url(w, "/hello");
    ask.headers = {{"X", "a\r\nY: b"}};
    reply = co_await client.ask(ask);
    EXPECT_EQ(reply.error(), Errc::invalid);
    EXPECT_EQ(w.stats().requests, 0U);
  });
}

TEST(HttpClient, a_broken_connection_has_an_unknown_effect) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    const Result<net::Reply> reply = co_await client.ask(ask_for(w, "/breaks"));
    EXPECT_EQ(reply.error(), Errc::unavailable);
    EXPECT_EQ(reply.error().retry(), Retry::unknown);
  });
}

TEST(HttpClient, a_deadline_closes_the_socket) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    const Result<net::Reply> first = co_await client.ask(ask_for(w, "/hello"));  // loads libcurl, which takes a while
    EXPECT_TRUE(first);
    const Deadline deadline = Deadline::after(w.reactor.now(), 50ms);
    const Result<net::Reply> reply = co_await with_deadline(deadline, client.ask(ask_for(w, "/wait")));
    EXPECT_EQ(reply.error(), Errc::timed_out);
    co_await w.until([&w] { return w.handler.gone == 1; });
    EXPECT_EQ(w.handler.left, 1);
    co_await w.until([&w] { return w.stats().connections == 0; });
  });
}

TEST(HttpClient, a_cancel_right_after_the_start_leaks_nothing) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    const Result<net::Reply> late =
        co_await with_deadline(Deadline::after(w.reactor.now(), 1ns), client.ask(ask_for(w, "/hello")));
    EXPECT_FALSE(late);
    const auto nothing = []() -> Task<> { co_return; };
    (void)co_await race(client.ask(ask_for(w, "/wait")), nothing());
    const Result<net::Reply> reply = co_await client.ask(ask_for(w, "/hello"));
    EXPECT_EQ(reply->body, "hello");
    (void)co_await race(client.ask(ask_for(w, "/wait")), nothing());
  });
}

TEST(HttpClient, reads_a_stream_in_pieces) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    Result<net::ReplyStream> stream = co_await client.open(ask_for(w, "/events?count=2"));
    EXPECT_TRUE(stream);
    EXPECT_EQ(stream->head().status, 200);
    EXPECT_EQ(stream->head().header("content-type"), "text/event-stream");
    std::string text;
    while (text.find("id: 1\n") == std::string::npos || !text.ends_with("\n\n")) {
      const Result<std::string> more = co_await stream->next();
      EXPECT_TRUE(more);
      if (!more || more->empty()) break;
      text += *more;
    }
    EXPECT_NE(text.find("event: tick\ndata: line one\ndata: line two\n\n"), std::string::npos);
    stream = fail(Errc::closed, "");  // ends the request
    co_await w.until([&w] { return w.handler.gone == 1; });
    EXPECT_EQ(w.handler.ended, 0);
  });
}

TEST(HttpClient, the_end_of_a_stream_is_an_empty_text) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    Result<net::ReplyStream> stream = co_await client.open(ask_for(w, "/stream?count=5&bytes=10"));
    std::size_t count = 0;
    while (true) {
      const Result<std::string> more = co_await stream->next();
      EXPECT_TRUE(more);
      if (!more || more->empty()) break;
      count += more->size();
    }
    EXPECT_EQ(count, 50U);
    const Result<std::string> again = co_await stream->next();
    EXPECT_EQ(again, "");
  });
}

TEST(HttpClient, a_slow_reader_slows_the_sender_down) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    Result<net::ReplyStream> stream = co_await client.open(ask_for(w, "/stream?count=1000&bytes=100000"));
    int sent = -1;
    while (sent != w.handler.sent) {
      sent = w.handler.sent;
      co_await sleep_for(20ms);
    }
    EXPECT_LT(sent, 200);
    std::size_t count = 0;
    std::size_t most = 0;
    while (true) {
      const Result<std::string> more = co_await stream->next();
      EXPECT_TRUE(more);
      if (!more || more->empty()) break;
      count += more->size();
      most = std::max(most, more->size());
    }
    EXPECT_EQ(count, 100'000'000U);
    EXPECT_LT(most, 2 * net::ReplyStream::kBufferedMax);
  });
}

TEST(HttpClient, destroying_the_reactor_ends_requests) {
  World world;
  for (const auto wait : {0ms, 20ms}) {
    std::optional<Reactor> reactor(std::in_place);
    RootScope scope(*reactor);
    const auto forever = [](Reactor& on, std::string where) -> Task<> {
      net::HttpClient client(on);
      net::Ask ask;
      ask.url = std::move(where);
      (void)co_await client.ask(std::move(ask));  // no server accepts it
      ADD_FAILURE();
    };
    scope.spawn(forever(*reactor, url(world, "/hello")));
    int batches = 0;
    RootScope waiting(*reactor);
    waiting.spawn(awaited(sleep_for(wait)));
    reactor->run_until([&] { return ++batches > 1 && waiting.idle(); });
    reactor.reset();
  }
}

TEST(HttpClient, many_at_once) {
  World world;
  world.run([](World& w) -> Task<> {
    net::HttpClient client(w.reactor);
    int good = 0;
    const auto ask_many = [&w, &client, &good](Scope& scope) -> Task<> {
      const auto one = [](World& of, net::HttpClient& by, int& count) -> Task<> {
        const Result<net::Reply> reply = co_await by.ask(ask_for(of, "/hello"));
        if (reply && reply->body == "hello") ++count;
      };
      for (int i = 0; i < 200; ++i) scope.spawn(one(w, client, good));
      co_return;
    };
    (void)co_await with_scope(ask_many);
    EXPECT_EQ(good, 200);
  });
}

}  // namespace
}  // namespace stint::http
