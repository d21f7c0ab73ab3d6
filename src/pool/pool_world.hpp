/// For tests: a node with one agent in a memory store, under the simulator. Runs are claimed by hand.
#pragma once

#include "pool/plain_run_codec.hpp"
#include "pool/store_health.hpp"
#include "stint/scope.hpp"
#include "stint/testing.hpp"
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stint::pool {

using namespace std::chrono_literals;

/// Fails its next calls as a test wants, and records the marks that it receives.
class PoolStore final : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  Task<Result<bool>> mark(store::NodeNumber node, store::AttemptKey attempt, bool unsafe) override {
    if (mark_takes > Duration::zero()) co_await sleep_for(mark_takes);
    if (marks_failing > 0) {
      --marks_failing;
      co_return fail(Error(Errc::unavailable, Retry::safe, "away"));
    }
    if (refuses_marks) co_return fail(Errc::invalid, "no such mark");
    marks.push_back(unsafe);
    co_return co_await MemoryStore::mark(node, attempt, unsafe);
  }
  Task<Result<bool>> put_message(store::NodeNumber node, store::AttemptKey attempt, store::Message message) override {
    if (messages_failing > 0) {
      --messages_failing;
      co_return fail(Error(Errc::unavailable, Retry::unknown, "away"));
    }
    co_return co_await MemoryStore::put_message(node, attempt, std::move(message));
  }

  std::vector<bool> marks;
  int messages_failing = 0;
  int marks_failing = 0;
  bool refuses_marks = false;
  Duration mark_takes{};
};

class PoolWorld : public testing::Test {
 protected:
  PoolWorld() {
    store::AgentEntry agent;
    agent.name = "review";
    agent.queued_max = 100;
    agent.attempts_max = 100;
    std::vector<store::AgentEntry> agents;
    agents.push_back(std::move(agent));
    get(store_.define(std::move(agents)));
    node_ = get(store_.enrol("test"));
  }
  ~PoolWorld() override { stop(); }
  /// For the destructor of a test whose spawned tasks use its own members.
  void stop() {
    scope_.cancel();
    sim_.settle();
  }

  template <class T>
  Result<T> ask(Task<Result<T>> task) {
    std::optional<Result<T>> answer;
    auto body = [&]() -> Task<> { answer.emplace(co_await std::move(task)); };
    scope_.spawn(body());
    EXPECT_TRUE(sim_.run_until([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
  template <class T>
  T get(Task<Result<T>> task) {
    Result<T> answer = ask(std::move(task));
    EXPECT_TRUE(answer) << answer.error().describe();
    if constexpr (!std::is_void_v<T>) return std::move(*answer);
  }
  /// Submits a run. `input`: as PlainRunCodec reads it.
  void submit(const std::string& id, domain::OnCrash on_crash = domain::OnCrash::rerun, std::string input = "0",
              std::vector<std::string> draws_on = {}) {
    store::NewRun run;
    run.id = id;
    run.agent = "review";
    run.on_crash = on_crash;
    run.input = std::move(input);
    run.draws_on = std::move(draws_on);
    std::vector<store::NewRun> runs;
    runs.push_back(std::move(run));
    ASSERT_TRUE(get(store_.enqueue(std::move(runs))).front());
  }
  store::Claim claim() {
    auto claims = get(store_.claim(node_, "review", 1));
    EXPECT_EQ(claims.size(), 1U);
    return claims.empty() ? store::Claim() : std::move(claims.front());
  }
  store::Run look(const std::string& id) { return *get(store_.find(id)); }
  /// The notes of a run, as "cause data".
  std::vector<std::string> notes(const std::string& id) {
    std::vector<std::string> found;
    for (const store::Event& event : get(store_.events(id, 0, 1000))) {
      if (!event.data.empty()) found.push_back(event.cause + " " + event.data);
    }
    return found;
  }

  Simulator sim_{1};
  domain::System system_{[this] {
                           return WallTime(1'700'000'000'000ms) +
                                  std::chrono::floor<std::chrono::milliseconds>(sim_.now().time_since_epoch());
                         },
                         [this] { return sim_.random()(); }};
  PoolStore store_{system_};
  domain::NoLog no_log_;
  StoreHealth health_{sim_, no_log_, [] { return ~std::uint64_t{0}; }};
  PlainRunCodec run_codec_;
  store::NodeNumber node_{};
  RootScope scope_{sim_};
};

}  // namespace stint::pool
