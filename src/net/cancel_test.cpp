// A request is stopped in every phase, in every way, over every wire: the server sees it at once, and nothing else is
// harmed. `net_test --gtest_filter='Cancel.*'` prints the table of docs/decisions/0034-model-transport.md.
#include "net/stall_lab.hpp"

#include <cstdio>

namespace stint::net {
namespace {

enum class Phase : std::uint8_t { lookup, connect, proxy, handshake, upload, choke, first_byte, stream };
enum class Way : std::uint8_t { scope, deadline, destroy };
constexpr const char* kPhases[] = {"lookup", "connect", "proxy",      "handshake",
                                   "upload", "choke",   "first byte", "stream"};
constexpr Phase kAllPhases[] = {Phase::lookup, Phase::connect, Phase::proxy,      Phase::handshake,
                                Phase::upload, Phase::choke,   Phase::first_byte, Phase::stream};
constexpr const char* kWays[] = {"scope", "deadline", "destroyed"};
constexpr Way kAllWays[] = {Way::scope, Way::deadline, Way::destroy};

constexpr Duration kSeenMax = 5s;  // for a loaded machine; the decision record has what an idle one needs
constexpr Duration kGapMax = 2s;
constexpr std::size_t kLargeBody = 24 << 20;  // more than the buffers of two sockets hold

/// One request that is stopped in its phase.
class Stopped {
 public:
  Stopped(Lab& lab, Phase phase) : lab_(lab), phase_(phase), descriptors_(open_descriptors()) {
    (void)Lab::server().events();
    Lab::server().forget();
  }

  Task<> run(Way way) {
    if (way == Way::scope) co_await by_scope();
    if (way == Way::deadline) co_await by_deadline();
    if (way == Way::destroy) co_await by_destruction();
  }
  /// When the server saw the end; for the phases that it can't see, when our socket was closed.
  Task<Duration> seen_after() {
    if (phase_ == Phase::lookup || phase_ == Phase::connect) {
      EXPECT_LE(open_descriptors(), descriptors_);
      co_return lab_.reactor.now() - stopped_at_;
    }
    const StallServer::Event* event = nullptr;
    co_await lab_.until([this, &event] { return (event = end_event()) != nullptr; });
    co_return event == nullptr ? Duration::max() : event->when - stopped_at_;
  }
  /// Whether the server saw the end of the whole connection.
  bool closed_connection() const {
    return std::ranges::any_of(Lab::server().events(), [this](const auto& event) {
      return event.connection == connection_ && event.what == "close";
    });
  }
  bool ends_stream() const { return is_http2(lab_.wire) && (phase_ >= Phase::upload && phase_ != Phase::choke); }

 private:
  const StallServer::Event* end_event() const {
    for (const StallServer::Event& event : Lab::server().events()) {
      if (event.connection != connection_) continue;
      if (event.what == "close" || (event.stream == stream_ && event.what.starts_with("reset"))) return &event;
    }
    return nullptr;
  }
  void remember() {
    reached_ = true;
    const bool mute = phase_ == Phase::proxy || phase_ == Phase::handshake;
    if (const StallServer::Event* const event = Lab::server().last(mute ? "read" : "request")) {
      connection_ = event->connection;
      stream_ = event->stream;
    }
  }
  Ask ask() const {
    switch (phase_) {
      case Phase::lookup: return lab_.ask("first", "stalled.test");
      case Phase::connect: return lab_.ask("first", "model.test", "full");
      case Phase::proxy: return lab_.ask("first");  // the client of this phase has a proxy that never answers
      case Phase::handshake: return lab_.ask("first", "model.test", "mute");
      case Phase::upload: return lab_.ask("upload\n" + std::string(kLargeBody, 'u'));
      case Phase::choke: return lab_.ask("choke\n" + std::string(kLargeBody, 'u'));
      case Phase::first_byte: return lab_.ask("first");
      case Phase::stream: return lab_.ask("stream");
    }
    return {};
  }
  bool reached() {
    StallServer& server = Lab::server();
    switch (phase_) {
      case Phase::lookup: return lab_.names.lookups() > 0;
      case Phase::connect: return open_descriptors() > descriptors_;
      case Phase::proxy:
      case Phase::handshake:
      case Phase::upload:
      case Phase::choke: return server.count("read") > 0;
      case Phase::first_byte: return server.count("request") > 0;
      case Phase::stream: return streaming_;
    }
    return false;
  }
  static Task<> hang(Stopped& self) {
    Result<ReplyStream> stream = co_await self.lab_.client->open(self.ask());
    if (!stream) {
      ADD_FAILURE() << stream.error().what();
      co_return;
    }
    while (true) {
      const Result<std::string> piece = co_await stream->next();
      if (!piece || piece->empty()) {
        ADD_FAILURE() << (piece ? "the stream ended" : piece.error().what());
        co_return;
      }
      self.streaming_ = true;
    }
  }
  /// In its phase, and long enough for the buffers of an upload to be full.
  static Task<> settle(Stopped& self) {
    co_await self.lab_.until([&self] { return self.reached(); });
    co_await sleep_for(self.phase_ == Phase::upload || self.phase_ == Phase::choke ? 30ms : 5ms);
    self.remember();
    self.stopped_at_ = self.lab_.reactor.now();
  }
  Task<> by_scope() {
    const auto body = [this](Scope& scope) -> Task<> {
      scope.spawn(hang(*this));
      co_await settle(*this);
      scope.cancel();
    };
    (void)co_await with_scope(body);
  }
  Task<> by_deadline() {
    for (Duration most = 80ms; true; most *= 3) {
      const Deadline deadline = Deadline::after(lab_.reactor.now(), most);
      const Result<> result = co_await with_deadline(deadline, hang_and_look(*this));
      EXPECT_EQ(result.error(), Errc::timed_out);
      stopped_at_ = deadline.when();
      if (reached_ || most > 20s) break;
    }
    EXPECT_TRUE(reached_);
  }
  static Task<> hang_and_look(Stopped& self) {
    const auto look = [](Stopped& at) -> Task<> {
      co_await at.lab_.until([&at] { return at.reached(); });
      at.remember();
      co_await sleep_for(1h);
    };
    co_await race(hang(self), look(self));
  }
  Task<> by_destruction() {
    if (phase_ != Phase::stream) {
      co_await race(hang(*this), settle(*this));
      co_return;
    }
    Result<ReplyStream> stream = co_await lab_.client->open(ask());
    EXPECT_TRUE(stream);
    remember();
    stopped_at_ = lab_.reactor.now();
    stream = fail(Errc::closed, "");
  }

  Lab& lab_;
  const Phase phase_;
  const std::size_t descriptors_;
  bool streaming_ = false;
  bool reached_ = false;
  int connection_ = 0;  // of the stopped request, as the server numbers them
  int stream_ = 0;
  TimePoint stopped_at_{};
};

/// A stream on the connection that the stopped request shares: it must go on.
struct Sibling {
  static Task<> run(Lab& lab, Sibling& self) {
    Result<ReplyStream> stream = co_await lab.client->open(lab.ask("drip 2"));
    while (stream) {
      const Result<std::string> piece = co_await stream->next();
      EXPECT_TRUE(piece) << piece.error().what();
      if (!piece || piece->empty()) break;
      ++self.pieces;
    }
    ADD_FAILURE() << "the sibling was harmed: " << (stream ? "" : stream.error().what());
  }
  int pieces = 0;
};

/// The reply: the number of its connection, and of its bytes.
Task<std::string> connection_of_next(Lab& lab) {
  const Result<Reply> reply = co_await lab.client->ask(lab.ask("ok"));
  EXPECT_TRUE(reply) << reply.error().what();
  co_return reply ? reply->body : "";
}

Task<> stop_once(Lab& lab, Phase phase, Way way) {
  Stopped stopped(lab, phase);
  std::string before;
  bool shares = stopped.ends_stream();
  Sibling sibling;
  const auto beside = [&](Scope& scope) -> Task<> {
    if (shares) {
      before = co_await connection_of_next(lab);
      const std::string second = co_await connection_of_next(lab);
      shares = second == before;
      EXPECT_TRUE(shares || lab.wire == Wire::http2)
          << "the connection was not reused";  // libcurl 7.88 can't without TLS
    }
    if (shares) {
      scope.spawn(Sibling::run(lab, sibling));
      co_await lab.until([&] { return sibling.pieces > 0; });
    }
    (void)Lab::server().events();
    Lab::server().forget();
    co_await stopped.run(way);
    const Duration seen = co_await stopped.seen_after();
    EXPECT_LT(seen, kSeenMax) << kPhases[static_cast<int>(phase)];
    std::printf("| %-10s | %-12s | %-9s | %7.2f |\n", kPhases[static_cast<int>(phase)], name_of(lab.wire),
                kWays[static_cast<int>(way)], std::chrono::duration<double, std::milli>(seen).count());
    std::fflush(stdout);
    if (shares) {
      const int pieces = sibling.pieces;
      co_await lab.until([&] { return sibling.pieces > pieces + 3; });
      const std::string after = co_await connection_of_next(lab);
      EXPECT_EQ(after, before) << "the connection was not reused";
      EXPECT_FALSE(stopped.closed_connection()) << "the connection was closed with its stream";
    }
    scope.cancel();
  };
  (void)co_await with_scope(beside);
}

void stop_in(Phase phase, Wire wire) {
  const std::size_t descriptors = open_descriptors();
  const std::size_t threads_before = threads();
  {
    FakeNames names;
    ClientOptions options = Lab::options_for(wire, names);
    if (phase == Phase::proxy) options.proxy = "http://127.0.0.1:" + std::to_string(Lab::server().port("mute"));
    Lab lab(wire);
    options.lookup = lab.names.lookup();
    lab.client.emplace(lab.reactor, std::move(options));
    lab.run([phase](Lab& in) -> Task<> {
      Ask nowhere = in.ask("");  // libcurl opens descriptors of its own with the first request
      nowhere.url = "http://127.0.0.1:1/";
      if (phase != Phase::proxy) (void)co_await in.client->ask(std::move(nowhere));
      for (const Way way : kAllWays) co_await stop_once(in, phase, way);
    });
    EXPECT_LE(threads(), threads_before + 1) << "one lookup for all";
    std::printf("| %-10s | %-12s | the reactor was held up for at most %.1f ms |\n", kPhases[static_cast<int>(phase)],
                name_of(wire), std::chrono::duration<double, std::milli>(lab.longest_gap).count());
    EXPECT_LT(lab.longest_gap, kGapMax) << "the reactor was held up";
    lab.client.reset();
    lab.names.release();
    lab.run([threads_before](Lab& in) -> Task<> { co_await in.until([=] { return threads() == threads_before; }); });
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

void stop_everywhere(Wire wire) {
  (void)Lab::server();
  for (const Phase phase : kAllPhases) {
    if (phase == Phase::handshake && !is_tls(wire)) continue;
    if (phase == Phase::proxy && !is_tls(wire)) continue;  // no CONNECT without TLS
    SCOPED_TRACE(kPhases[static_cast<int>(phase)]);
    stop_in(phase, wire);
  }
}

/// Opens some streams that stay silent, and stops some of them.
Task<> stop_some(Lab& lab, std::size_t stopped, std::size_t silent) {
  const std::string before = co_await connection_of_next(lab);
  TimePoint stopped_at{};
  const auto wait = [](Lab& on) -> Task<> {
    (void)co_await on.client->open(on.ask("first"));
    ADD_FAILURE();
  };
  const auto stop = [&](Scope& scope) -> Task<> {
    for (std::size_t i = 0; i < stopped; ++i) scope.spawn(wait(lab));
    co_await lab.until([&] { return Lab::server().count("request") == 1 + stopped + silent; });
    stopped_at = lab.reactor.now();
    scope.cancel();
  };
  const auto all = [&](Scope& scope) -> Task<> {
    for (std::size_t i = 0; i < silent; ++i) scope.spawn(wait(lab));
    (void)co_await with_scope(stop);
    co_await lab.until([&] {
      std::size_t resets = 0;
      bool closed = false;
      for (const StallServer::Event& event : Lab::server().events()) {
        if (event.when < stopped_at) continue;
        if (event.what.starts_with("reset")) ++resets;
        if (event.what == "close") closed = true;
      }
      return closed || resets == stopped;
    });
    const Duration seen = Lab::server().events().back().when - stopped_at;
    std::printf("| %-10s | %-12s | %2zu of %-3zu | %7.2f |\n", "first byte", "HTTP/2 TLS", stopped, stopped + silent,
                std::chrono::duration<double, std::milli>(seen).count());
    const std::string after = co_await connection_of_next(lab);
    if (silent > 0) {
      EXPECT_EQ(after, before) << "the connection was not reused";
    }
    scope.cancel();
  };
  (void)co_await with_scope(all);
}

/// No traffic of a neighbour carries the resets along: libcurl 7.88 keeps them until then.
TEST(Cancel, is_seen_on_a_silent_connection) {
  for (const auto& [stopped, silent] :
       std::initializer_list<std::pair<std::size_t, std::size_t>>{{1, 0}, {20, 0}, {1, 1}, {10, 10}}) {
    Lab lab(Wire::http2_tls);
    lab.run([stopped, silent](Lab& in) -> Task<> { co_await stop_some(in, stopped, silent); });
  }
}

TEST(Cancel, is_seen_over_http1) { stop_everywhere(Wire::http1); }
TEST(Cancel, is_seen_over_http1_with_tls) { stop_everywhere(Wire::http1_tls); }
TEST(Cancel, is_seen_over_http2) { stop_everywhere(Wire::http2); }
TEST(Cancel, is_seen_over_http2_with_tls) { stop_everywhere(Wire::http2_tls); }

}  // namespace
}  // namespace stint::net
