/// For the tests of this folder: a client on a reactor beside a StallServer, and a clock that shows when the reactor
/// was held up.
#pragma once

#include "net/http_client.hpp"
#include "net/stall_server.hpp"
#include "stint/asio.hpp"
#include "stint/combinators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>

namespace stint::net {

using namespace std::chrono_literals;

inline std::size_t entries_of(const char* folder) {
  return static_cast<std::size_t>(std::ranges::distance(std::filesystem::directory_iterator(folder)));
}
inline std::size_t open_descriptors() { return entries_of("/proc/self/fd"); }
inline std::size_t threads() { return entries_of("/proc/self/task"); }

/// A resolver that finds every name on this machine, and hangs for `stalled.test` until it is released. Its threads are
/// detached and may outlive it, so they share its state.
class FakeNames {
 public:
  FakeNames() = default;
  ~FakeNames() { release(); }
  FakeNames(const FakeNames&) = delete;
  FakeNames& operator=(const FakeNames&) = delete;

  BlockingLookup lookup() {
    return [state = state_](const std::string& host) -> Result<Addresses> {
      std::unique_lock lock(state->mutex);
      ++state->lookups;
      if (host == "stalled.test") state->changed.wait(lock, [&state] { return state->released; });
      if (host == "unknown.test") return fail(Error(Errc::unavailable, Retry::safe, "can't resolve the name " + host));
      return Addresses{"127.0.0.1"};
    };
  }
  int lookups() {
    const std::lock_guard lock(state_->mutex);
    return state_->lookups;
  }
  void release() {
    const std::lock_guard lock(state_->mutex);
    state_->released = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool released = false;
    int lookups = 0;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// How a request travels.
enum class Wire : std::uint8_t { http1, http1_tls, http2, http2_tls };
inline bool is_http2(Wire wire) { return wire == Wire::http2 || wire == Wire::http2_tls; }
inline bool is_tls(Wire wire) { return wire == Wire::http1_tls || wire == Wire::http2_tls; }
inline const char* name_of(Wire wire) {
  constexpr const char* kNames[] = {"HTTP/1.1", "HTTP/1.1 TLS", "HTTP/2", "HTTP/2 TLS"};
  return kNames[static_cast<std::size_t>(wire)];
}

class Lab {
 public:
  static StallServer& server() {
    static StallServer only;  // one for all tests: it takes a while to start
    return only;
  }
  static ClientOptions options_for(Wire wire, FakeNames& names) {
    ClientOptions options;
    options.variables = [](const std::string&) { return std::nullopt; };
    options.lookup = names.lookup();
    options.ca_file = server().ca_file();
    options.http2 = is_http2(wire);
    options.http2_prior_knowledge = wire == Wire::http2;
    return options;
  }

  explicit Lab(Wire by) : wire(by), client(std::in_place, reactor, options_for(by, names)) { begin(); }
  Lab(Wire by, ClientOptions options) : wire(by), client(std::in_place, reactor, std::move(options)) { begin(); }
  ~Lab() {
    client.reset();
    names.release();
  }

  Ask ask(std::string body, const std::string& host = "model.test", std::string port = "") const {
    if (port.empty()) port = is_tls(wire) ? "tls" : "plain";
    Ask ask;
    ask.method = "POST";
    ask.url = (is_tls(wire) ? "https://" : "http://") + host + ":" + std::to_string(server().port(port)) +
              "/v1/messages?key=a-secret";
    ask.body = std::move(body);
    return ask;
  }
  /// Polls every millisecond; a failure after a minute.
  template <class Condition>
  Task<> until(Condition condition) {
    const Deadline deadline = Deadline::after(reactor.now(), 60s);
    while (!condition()) {
      if (deadline.passed(reactor.now())) {
        ADD_FAILURE() << "it did not happen within a minute";
        co_return;
      }
      co_await sleep_for(1ms);
    }
  }
  /// Runs the body beside a clock that ticks every millisecond.
  template <class Body>
  void run(Body body) {
    RootScope scope(reactor);
    scope.spawn(both(*this, body));
    EXPECT_TRUE(reactor.run(scope));
  }

  const Wire wire;
  FakeNames names;
  Reactor reactor;
  std::optional<HttpClient> client;
  Duration longest_gap{};

 private:
  static void begin() {
    (void)server().events();
    server().forget();
  }
  template <class Body>
  static Task<> both(Lab& self, Body& body) {
    co_await race(body(self), self.tick());
  }
  Task<> tick() {
    TimePoint last = reactor.now();
    while (true) {
      co_await sleep_for(1ms);
      longest_gap = std::max<Duration>(longest_gap, reactor.now() - last);
      last = reactor.now();
    }
  }
};

}  // namespace stint::net
