// Streams of the feed: every event once and in order, however streams join, and one reading for all of them.
#include "http/feed_tail.hpp"

#include "http/api_test_support.hpp"
#include "http/event_stream.hpp"
#include "stint/scope.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stint::http {
namespace {

using namespace std::chrono_literals;

/// A feed in memory: cursors are numbers of events.
class FeedFleet final : public NoFleet {
 public:
  void add(int count = 1) {
    for (int i = 0; i < count; ++i) ++last_;
    ++changes_;
    changed_.notify();
  }
  Task<Result<store::FeedPage>> feed(std::string cursor, std::uint32_t most) override {
    ++readings;
    co_await sleep_for(1ms);
    if (fails) co_return fail(Errc::unavailable, "no store");
    store::FeedPage page;
    page.cursor = cursor == store::kFeedNow ? std::to_string(last_) : cursor;
    if (cursor == store::kFeedNow) co_return page;
    const std::int64_t from = cursor.empty() ? 0 : std::stoll(cursor);
    page.pruned = from < pruned_to;
    for (std::int64_t at = from + 1; !page.pruned && at <= last_ && page.events.size() < most; ++at) {
      store::Event& event = page.events.emplace_back();
      event.cause = "e" + std::to_string(at);
      event.cursor = page.cursor = std::to_string(at);
    }
    co_return page;
  }
  Task<std::uint64_t> changed(std::string, std::uint64_t seen, Duration most) override {
    if (changes_ == seen && most > Duration::zero()) (void)co_await changed_.wait(changed_.count(), most);
    co_return changes_;
  }
  engine::Phase phase() const override { return stopped ? engine::Phase::stopped : engine::Phase::serving; }

  int readings = 0;
  std::int64_t pruned_to = 0;
  bool fails = false, stopped = false;

 private:
  std::int64_t last_ = 0;
  std::uint64_t changes_ = 0;
  Notification changed_;
};

/// A client that keeps what it is sent.
class StreamClient final : public Exchange {
 public:
  Task<Response> stream(StreamHead, Task<> body) override {
    opened = true;
    co_await std::move(body);
    ended = true;
    co_return Response();
  }
  Task<Result<>> send(std::string bytes) override {
    text += bytes;
    ++sendings;
    co_return Result<>();
  }
  std::string peer() const override { return "a test"; }
  bool draining() const noexcept override { return false; }
  bool reserved() const noexcept override { return false; }
  /// The causes of the events, without beats.
  [[nodiscard]] std::vector<std::string> causes() const {
    std::vector<std::string> found;
    for (std::size_t at = text.find("event: "); at != std::string::npos; at = text.find("event: ", at + 1)) {
      const std::string cause = text.substr(at + 7, text.find('\n', at) - at - 7);
      if (cause != "beat") found.push_back(cause);
    }
    return found;
  }
  [[nodiscard]] std::size_t beats() const {
    std::size_t count = 0;
    for (std::size_t at = text.find("event: beat"); at != std::string::npos; at = text.find("event: beat", at + 1)) {
      ++count;
    }
    return count;
  }

  bool opened = false, ended = false;
  std::string text;
  int sendings = 0;

 private:
  Task<> departure() override { co_await departed_.wait(departed_.count()); }
  Notification departed_;
};

class FeedTailTest : public testing::Test {
 protected:
  FeedTailTest() : api_(fleet_, options()) {}
  ApiOptions options() {
    ApiOptions options;
    options.live.elapsed = [this] { return sim_.now().time_since_epoch(); };
    options.live.wall_now = [] { return WallTime(5s); };
    return options;
  }
  /// Opens a stream after this cursor; empty: from now on.
  void open(Scope& scope, StreamClient& client, std::string cursor = {}) {
    scope.spawn(follow(api_, client, std::move(cursor), status_));
  }
  static Task<> follow(Api& api, StreamClient& client, std::string cursor, int& status) {
    net::RequestReader reader{{}};
    reader.feed("GET /v1/events" + (cursor.empty() ? "" : "?after=" + cursor) +
                " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n");
    const Response response = co_await api.answer(reader.request(), client);
    status = static_cast<int>(response.status);
  }
  static std::vector<std::string> causes(int from, int to) {
    std::vector<std::string> list;
    for (int i = from; i <= to; ++i) list.push_back("e" + std::to_string(i));
    return list;
  }

  Simulator sim_;
  FeedFleet fleet_;
  Api api_;
  int status_ = 0;
};

TEST_F(FeedTailTest, each_stream_gets_every_event_once_wherever_it_begins) {
  fleet_.add(450);
  std::vector<StreamClient> clients(4);
  RootScope scope(sim_);
  open(scope, clients[0]);
  sim_.advance(100ms);
  fleet_.add(3);
  sim_.advance(10ms);
  open(scope, clients[1], "0");
  open(scope, clients[2], "452");
  fleet_.add(2);
  sim_.advance(10ms);
  fleet_.add(1);
  sim_.advance(2s);
  open(scope, clients[3]);
  sim_.advance(5ms);
  fleet_.add(1200);  // more than the tail keeps, and more than a page
  sim_.advance(2s);
  fleet_.add(1);
  sim_.advance(2s);
  EXPECT_EQ(clients[0].causes(), causes(451, 1657));
  EXPECT_EQ(clients[1].causes(), causes(1, 1657));
  EXPECT_EQ(clients[2].causes(), causes(453, 1657));
  EXPECT_EQ(clients[3].causes(), causes(457, 1657));
  scope.cancel();
  sim_.settle();
}

TEST_F(FeedTailTest, a_hundred_streams_cost_one_reading) {
  std::vector<StreamClient> clients(100);
  RootScope scope(sim_);
  for (StreamClient& client : clients) open(scope, client);
  sim_.advance(3s);
  const int before = fleet_.readings;
  for (int i = 0; i < 50; ++i) {
    fleet_.add();
    sim_.advance(20ms);
  }
  sim_.advance(1s);
  EXPECT_LE(fleet_.readings - before, 130) << "each stream once to catch up, and one reading per 100 ms";
  const int joined = fleet_.readings;
  for (int i = 0; i < 50; ++i) {
    fleet_.add();
    sim_.advance(20ms);
  }
  sim_.advance(1s);
  EXPECT_LE(fleet_.readings - joined, 14);
  for (const StreamClient& client : clients) EXPECT_EQ(client.causes(), causes(1, 100));
  EXPECT_LE(clients[0].sendings, 40) << "events that come together are sent together";
  scope.cancel();
  sim_.settle();
}

TEST_F(FeedTailTest, beats_every_second_while_nothing_happens) {
  StreamClient client;
  RootScope scope(sim_);
  open(scope, client);
  sim_.advance(10s);
  EXPECT_GE(client.beats(), 9U);
  EXPECT_LE(client.beats(), 10U);
  EXPECT_NE(client.text.find(R"(data: {"now":5000,"cursor":"0"})"), std::string::npos) << client.text;
  EXPECT_EQ(client.text.find("id:"), std::string::npos) << "a beat is no place to resume at";
  scope.cancel();
  sim_.settle();
}

TEST_F(FeedTailTest, an_event_comes_at_once_when_it_was_quiet) {
  StreamClient client;
  RootScope scope(sim_);
  open(scope, client);
  sim_.advance(2500ms);
  fleet_.add();
  sim_.advance(5ms);
  EXPECT_EQ(client.causes(), causes(1, 1));
  scope.cancel();
  sim_.settle();
}

TEST_F(FeedTailTest, when_the_stream_that_reads_leaves_another_one_reads) {
  StreamClient leaves, stays;
  RootScope scope(sim_);
  {
    RootScope gone(sim_);
    open(gone, leaves);
    sim_.advance(300ms);
    open(scope, stays);
    sim_.advance(300ms);
    gone.cancel();
    sim_.advance(1ms);
  }
  fleet_.add();
  sim_.advance(200ms);
  EXPECT_EQ(stays.causes(), causes(1, 1));
  scope.cancel();
  sim_.settle();
}

TEST_F(FeedTailTest, starts_over_after_a_time_without_streams) {
  StreamClient first, second;
  {
    RootScope gone(sim_);
    open(gone, first);
    sim_.advance(1s);
    fleet_.add();
    sim_.advance(1s);
    gone.cancel();
    sim_.settle();
  }
  fleet_.add(5000);
  sim_.advance(FeedTail::kIdleMax + 1s);
  RootScope scope(sim_);
  const int before = fleet_.readings;
  open(scope, second);
  sim_.advance(1s);
  EXPECT_LE(fleet_.readings - before, 6) << "it does not read what no stream wants";
  fleet_.add();
  sim_.advance(1s);
  EXPECT_EQ(second.causes(), causes(5002, 5002));
  scope.cancel();
  sim_.settle();
}

TEST_F(FeedTailTest, a_cursor_that_was_pruned_is_gone) {
  fleet_.add(5);
  fleet_.pruned_to = 3;
  StreamClient client;
  RootScope scope(sim_);
  open(scope, client, "2");
  sim_.advance(10ms);
  EXPECT_EQ(status_, 410);
  EXPECT_FALSE(client.opened);
  NoExchange exchange;
  EXPECT_EQ(ask_api(api_, exchange, "GET", "/v1/events?after=2").status, 410U);
}

TEST_F(FeedTailTest, ends_when_the_store_fails_so_that_the_client_learns_why) {
  StreamClient client;
  RootScope scope(sim_);
  open(scope, client);
  sim_.advance(500ms);
  fleet_.fails = true;
  sim_.advance(2s);
  EXPECT_TRUE(client.ended);
}

TEST_F(FeedTailTest, sends_the_last_events_when_the_engine_has_stopped) {
  StreamClient client;
  RootScope scope(sim_);
  open(scope, client);
  sim_.advance(500ms);
  fleet_.stopped = true;
  fleet_.add();
  sim_.advance(3s);
  EXPECT_EQ(client.causes(), causes(1, 1));
  EXPECT_TRUE(client.ended);
}

}  // namespace
}  // namespace stint::http
