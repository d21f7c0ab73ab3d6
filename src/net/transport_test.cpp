// What calls to models need of the client: limits that say which one passed, HTTP/2 with bounds, proxies, certificates,
// large bodies, and no request that is sent twice.
#include "net/stall_lab.hpp"

#include <set>

namespace stint::net {
namespace {

constexpr Wire kAllWires[] = {Wire::http1, Wire::http1_tls, Wire::http2, Wire::http2_tls};

void expect_error(const Error& error, Errc code, Retry retry, std::string_view text) {
  EXPECT_EQ(error, code) << error.what();
  EXPECT_EQ(error.retry(), retry) << error.what();
  EXPECT_NE(error.what().find(text), std::string_view::npos) << error.what() << " lacks " << text;
  EXPECT_EQ(error.what().find("secret"), std::string_view::npos) << error.what();
}

/// The failure of a request whose limits are short.
Task<Error> failure(Lab& lab, Ask ask) {
  ask.headers = {{"Authorization", "Bearer another-secret"}};
  const Result<Reply> reply = co_await lab.client->ask(std::move(ask));
  EXPECT_FALSE(reply);
  co_return reply ? Error(Errc::failed) : reply.error();
}

TEST(Transport, a_limit_says_which_one_passed) {
  for (const Wire wire : kAllWires) {
    SCOPED_TRACE(name_of(wire));
    Lab lab(wire);
    lab.run([](Lab& in) -> Task<> {
      Ask ask = in.ask("first a-secret", "stalled.test");
      ask.connect_time_max = 40ms;
      Error error = co_await failure(in, std::move(ask));
      expect_error(error, Errc::timed_out, Retry::safe,
                   "the connect limit of 40 ms passed while the name stalled.test");
      if (is_tls(in.wire)) {
        ask = in.ask("first a-secret", "model.test", "mute");
        ask.connect_time_max = 50ms;
        error = co_await failure(in, std::move(ask));
        expect_error(error, Errc::timed_out, Retry::safe, "the connect limit of 50 ms");
      }
      ask = in.ask("first\na-secret");
      ask.first_byte_time_max = 60ms;
      error = co_await failure(in, std::move(ask));
      expect_error(error, Errc::timed_out, Retry::unknown, "the first-byte limit of 60 ms passed after the request");
      ask = in.ask("upload\n" + std::string(24 << 20, 'u'));
      ask.first_byte_time_max = 70ms;
      error = co_await failure(in, std::move(ask));
      expect_error(error, Errc::timed_out, Retry::unknown, "of the request's 25165831 bytes");
      ask = in.ask("stream\na-secret");
      ask.idle_time_max = 80ms;
      error = co_await failure(in, std::move(ask));
      expect_error(error, Errc::timed_out, Retry::unknown, "the idle limit of 80 ms");
    });
  }
}

TEST(Transport, the_idle_limit_counts_from_the_last_piece_and_not_while_the_reader_is_slow) {
  Lab lab(Wire::http1);
  lab.run([](Lab& in) -> Task<> {
    Ask ask = in.ask("drip 20");
    ask.idle_time_max = 2s;
    Result<ReplyStream> stream = co_await in.client->open(std::move(ask));
    EXPECT_TRUE(stream);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(co_await stream->next());
    ask = in.ask("flood 8");
    ask.idle_time_max = 100ms;
    stream = co_await in.client->open(std::move(ask));
    co_await sleep_for(300ms);  // the sender waits for us
    std::size_t bytes = 0;
    Result<std::string> piece = co_await stream->next();
    while (piece && !piece->empty()) {
      bytes += piece->size();
      piece = co_await stream->next();
    }
    EXPECT_TRUE(piece) << piece.error().what();
    EXPECT_EQ(bytes, 8U << 20);
  });
}

TEST(Transport, a_wait_for_a_free_connection_is_part_of_connecting) {
  FakeNames names;
  ClientOptions options = Lab::options_for(Wire::http1, names);
  options.connections_per_host_max = 1;
  Lab lab(Wire::http1, std::move(options));
  lab.run([](Lab& in) -> Task<> {
    Result<ReplyStream> stream = co_await in.client->open(in.ask("stream"));
    EXPECT_TRUE(stream);
    Ask ask = in.ask("ok");
    ask.connect_time_max = 50ms;
    const Error error = co_await failure(in, std::move(ask));
    expect_error(error, Errc::timed_out, Retry::safe, "allow more connections");
    const auto leave = [](Result<ReplyStream>& held) -> Task<Result<Reply>> {
      co_await sleep_for(20ms);
      held = fail(Errc::closed, "");
      co_await sleep_for(1h);
      co_return fail(Errc::closed, "");
    };
    const auto first = co_await race(in.client->ask(in.ask("ok")), leave(stream));
    EXPECT_EQ(first.index(), 0U);
    EXPECT_TRUE(std::get<0>(first)) << "a waiter gets the connection that became free";
  });
}

/// Opens `count` streams at once and returns the number of connections that carry them.
Task<std::size_t> connections_of(Lab& lab, int count) {
  std::vector<ReplyStream> streams;
  const auto open_all = [&](Scope& scope) -> Task<> {
    const auto one = [](Lab& in, std::vector<ReplyStream>& to) -> Task<> {
      Result<ReplyStream> stream = co_await in.client->open(in.ask("stream"));
      EXPECT_TRUE(stream) << stream.error().what();
      if (stream) to.push_back(*std::move(stream));
    };
    for (int i = 0; i < count; ++i) scope.spawn(one(lab, streams));
    co_return;
  };
  (void)co_await with_scope(open_all);
  std::set<int> used;
  for (const auto& event : Lab::server().events()) {
    if (event.what == "request") used.insert(event.connection);
  }
  co_return used.size();
}

TEST(Transport, requests_share_a_connection_up_to_its_bound_of_streams) {
  for (const long most : {64L, 4L}) {
    FakeNames names;
    ClientOptions options = Lab::options_for(Wire::http2_tls, names);
    options.streams_per_connection_max = most;
    Lab lab(Wire::http2_tls, std::move(options));
    lab.run([most](Lab& in) -> Task<> {
      const std::size_t used = co_await connections_of(in, 10);
      const std::size_t least = most == 4 ? 3 : 1;
      EXPECT_GE(used, least);
      EXPECT_LT(used, least + HttpClient::kConnectingMax) << "a burst opens few connections too many";
    });
    EXPECT_EQ(names.lookups(), 1) << "one lookup for all";
  }
}

TEST(Transport, a_slow_reader_of_a_shared_connection_leaves_its_neighbours_alone) {
  Lab lab(Wire::http2_tls);
  lab.run([](Lab& in) -> Task<> {
    Result<ReplyStream> neighbour = co_await in.client->open(in.ask("drip 1"));
    Result<ReplyStream> slow = co_await in.client->open(in.ask("flood 4"));
    EXPECT_TRUE(neighbour && slow);
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(co_await neighbour->next());
    std::size_t bytes = 0;
    while (true) {
      const Result<std::string> piece = co_await slow->next();
      EXPECT_TRUE(piece);
      if (!piece || piece->empty()) break;
      bytes += piece->size();
    }
    EXPECT_EQ(bytes, 4U << 20);
    (void)Lab::server().events();
    Lab::server().forget();  // a reset of an earlier test may have come late
    slow = co_await in.client->open(in.ask("flood 12"));
    while (in.reactor.now() < TimePoint::max()) {  // until its buffer overflows
      EXPECT_TRUE(co_await neighbour->next());
      if (Lab::server().count("reset") > 0) break;
    }
    Result<std::string> piece = co_await slow->next();
    while (piece && !piece->empty()) piece = co_await slow->next();
    expect_error(piece.error(), Errc::failed, Retry::unknown, "the reader is too slow");
    EXPECT_TRUE(co_await neighbour->next());
  });
}

TEST(Transport, large_bodies_arrive_whole) {
  for (const Wire wire : kAllWires) {
    SCOPED_TRACE(name_of(wire));
    Lab lab(wire);
    lab.run([](Lab& in) -> Task<> {
      const Result<Reply> reply = co_await in.client->ask(in.ask("ok\n" + std::string((6 << 20) - 3, 'b')));
      EXPECT_TRUE(reply) << reply.error().what();
      if (reply) {
        EXPECT_TRUE(reply->body.ends_with(" 6291456")) << reply->body;
      }
      const Result<Reply> none = co_await in.client->ask(in.ask(""));
      EXPECT_TRUE(none && none->body.ends_with(" 0"));
    });
  }
}

TEST(Transport, no_request_is_sent_twice) {
  for (const Wire wire : kAllWires) {
    SCOPED_TRACE(name_of(wire));
    Lab lab(wire);
    lab.run([](Lab& in) -> Task<> {
      const Result<Reply> first = co_await in.client->ask(in.ask("ok"));
      EXPECT_TRUE(first);
      (void)Lab::server().events();
      Lab::server().forget();
      const Error error = co_await failure(in, in.ask("drop\na-secret"));  // on the connection that was kept
      expect_error(error, Errc::unavailable, Retry::unknown, "model.test");
      co_await in.until([] { return Lab::server().count("close") > 0; });
      EXPECT_EQ(Lab::server().count("request"), 1U);
      const Result<Reply> after = co_await in.client->ask(in.ask("ok"));
      EXPECT_TRUE(after);
    });
  }
}

TEST(Transport, a_connection_that_the_server_gives_up_is_not_used_again) {
  Lab lab(Wire::http2_tls);
  lab.run([](Lab& in) -> Task<> {
    const Result<Reply> last = co_await in.client->ask(in.ask("goaway"));
    EXPECT_TRUE(last) << last.error().what();
    co_await sleep_for(5ms);
    const Result<Reply> next = co_await in.client->ask(in.ask("ok"));
    EXPECT_TRUE(next) << next.error().what();
    EXPECT_NE(last->body.substr(0, 6), next->body.substr(0, 6));
  });
}

TEST(Transport, before_a_connection_a_failure_is_safe_to_repeat) {
  Lab lab(Wire::http1);
  lab.run([](Lab& in) -> Task<> {
    Error error = co_await failure(in, in.ask("ok", "unknown.test"));
    expect_error(error, Errc::unavailable, Retry::safe, "can't resolve the name unknown.test");
    Ask ask = in.ask("ok");
    ask.url = "https://user:a-secret@model.test:1/?key=a-secret";
    error = co_await failure(in, std::move(ask));  // refused
    expect_error(error, Errc::unavailable, Retry::safe, "model.test");
  });
}

TEST(Transport, certificates_are_checked_against_the_chosen_file) {
  FakeNames names;
  ClientOptions options = Lab::options_for(Wire::http2_tls, names);
  const std::string file = std::exchange(options.ca_file, "");
  ClientOptions with_variable = options;
  Lab strict(Wire::http2_tls, std::move(options));
  strict.run([](Lab& in) -> Task<> {
    const Error error = co_await failure(in, in.ask("ok"));
    expect_error(error, Errc::denied, Retry::never, "certificate");
  });
  with_variable.variables = [file](const std::string& name) {
    return name == "SSL_CERT_FILE" ? std::optional(file) : std::nullopt;
  };
  Lab lab(Wire::http2_tls, std::move(with_variable));
  lab.run([](Lab& in) -> Task<> {
    const Result<Reply> reply = co_await in.client->ask(in.ask("ok"));
    EXPECT_TRUE(reply) << reply.error().what();
    const Error error = co_await failure(in, in.ask("ok", "other.test"));
    expect_error(error, Errc::denied, Retry::never, "other.test");
  });
}

TEST(Transport, proxies_come_from_the_environment_or_the_option) {
  const std::string proxy = "http://user:a-secret@proxy.test:" + std::to_string(Lab::server().port("proxy"));
  const auto ask_by = [](ClientOptions options, std::size_t tunnels) {
    Lab lab(Wire::http2_tls, std::move(options));
    lab.run([tunnels](Lab& in) -> Task<> {
      const Result<Reply> reply = co_await in.client->ask(in.ask("ok"));
      EXPECT_TRUE(reply) << reply.error().what();
      EXPECT_EQ(Lab::server().count("request CONNECT model.test:"), tunnels);
    });
  };
  FakeNames names;
  ClientOptions options = Lab::options_for(Wire::http2_tls, names);
  options.proxy = proxy;
  ask_by(options, 1);
  EXPECT_EQ(names.lookups(), 1) << "the proxy's name, not the server's";
  options.proxy.reset();
  options.variables = [proxy](const std::string& name) {
    return name == "https_proxy" ? std::optional(proxy) : std::nullopt;
  };
  ask_by(options, 1);
  options.variables = [proxy](const std::string& name) -> std::optional<std::string> {
    if (name == "NO_PROXY") return "other.test,test";
    return name == "https_proxy" ? std::optional(proxy) : std::nullopt;
  };
  ask_by(options, 0);
  options.variables = [proxy](const std::string&) { return std::optional(proxy); };
  options.proxy = "";
  ask_by(options, 0);
}

TEST(Transport, a_hung_lookup_is_one_thread_and_holds_up_no_other_name) {
  const std::size_t before = threads();
  Lab lab(Wire::http1);
  lab.run([before](Lab& in) -> Task<> {
    const auto many = [&in](Scope& scope) -> Task<> {
      const auto one = [](Lab& on) -> Task<> { (void)co_await on.client->ask(on.ask("ok", "stalled.test")); };
      for (int i = 0; i < 100; ++i) scope.spawn(one(in));
      co_await in.until([&in] { return in.names.lookups() > 0; });
      scope.cancel();
    };
    (void)co_await with_scope(many);
    EXPECT_EQ(in.names.lookups(), 1);
    EXPECT_EQ(threads(), before + 1);
    const Result<Reply> other = co_await in.client->ask(in.ask("ok"));
    EXPECT_TRUE(other) << other.error().what();
    in.names.release();
    co_await in.until([before] { return threads() == before; });
    const Result<Reply> late = co_await in.client->ask(in.ask("ok", "stalled.test"));
    EXPECT_TRUE(late) << late.error().what();
  });
}

}  // namespace
}  // namespace stint::net
