// The server is killed repeatedly under load: no accepted run is lost, no ended run changes, and the store recovers
// by itself.
#include "stint/combinators.hpp"
#include "store/conformance.hpp"
#include "store/postgres_server.hpp"
#include "store/postgres_store.hpp"

#include <map>
#include <set>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;

constexpr int kRuns = 200, kKills = 3;

/// One client and one node under full load, and a third party that kills the server.
class Work {
 public:
  Work(Reactor& reactor, PostgresServer& server) : reactor_(reactor), server_(server) {}

  Task<Result<>> carry() {
    STINT_CO_CHECK(co_await open());
    AgentEntry agent;
    agent.name = "a";
    agent.queued_max = kRuns;
    STINT_CO_CHECK(co_await store_->define({agent}));
    STINT_CO_TRY(node_, co_await store_->enrol("node"));
    STINT_CO_CHECK(co_await all(submit(), work(), kill()));
    co_return co_await check();
  }
  [[nodiscard]] int unknown() const noexcept { return unknown_; }

 private:
  /// Waits while the server is starting.
  Task<Result<>> open() {
    while (true) {
      auto opened = co_await PostgresStore::open(reactor_, server_.url("postgres"));
      if (opened) {
        store_ = std::move(*opened);
        co_return Result<>();
      }
      if (opened.error() != Errc::unavailable) co_return fail(std::move(opened.error()));
      co_await sleep_for(20ms);
    }
  }

  Task<Result<>> submit() {
    for (int i = 0; i < kRuns;) {
      NewRun run;
      run.id = "aaaaaaaaaa" + std::string{static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
      run.agent = "a";
      run.on_crash = domain::OnCrash::rerun;
      auto answers = co_await store_->enqueue({run});
      if (!answers) {  // may be repeated without harm
        if (answers.error() != Errc::unavailable) co_return fail(std::move(answers.error()));
        ++unknown_;
        continue;
      }
      if (!answers->front()) co_return fail(std::move(answers->front().error()));
      accepted_.insert(run.id);
      ++i;
    }
    co_return Result<>();
  }

  Task<Result<>> work() {
    bool in_doubt = false;
    while (ended_.size() < kRuns) {
      auto claims = co_await (in_doubt ? store_->owned(node_) : store_->claim(node_, "a", 8));
      if (!claims && claims.error() != Errc::unavailable) co_return fail(std::move(claims.error()));
      if (!claims) ++unknown_;
      in_doubt = !claims;
      if (!claims) continue;
      const auto beat = co_await store_->beat(node_);  // a busy machine takes longer than a lease
      if (!beat && beat.error() != Errc::unavailable) co_return fail(beat.error());
      std::vector<Settlement> ends;
      for (const Claim& claim : *claims) {
        ids_[claim.run] = claim.id;
        ends.emplace_back();
        ends.back().attempt = claim.attempt_key();
        ends.back().settle = domain::Settle::succeeded;
      }
      if (ends.empty()) co_await sleep_for(1ms);
      if (ends.empty()) continue;
      const auto states = co_await store_->settle(node_, ends);
      if (!states && states.error() != Errc::unavailable) co_return fail(states.error());
      if (!states) ++unknown_;
      in_doubt = !states;  // runs that are still owned were not settled, the others were
      for (std::size_t i = 0; states && i < ends.size(); ++i) {
        EXPECT_EQ((*states)[i], RunState::succeeded) << ids_[ends[i].attempt.run];
      }
      STINT_CO_CHECK(co_await count_ended());
    }
    co_return Result<>();
  }

  Task<Result<>> count_ended() {
    Filter ended;
    ended.states = {RunState::succeeded};
    ended.most = kRuns;
    auto runs = co_await store_->list(ended);
    if (!runs && runs.error() != Errc::unavailable) co_return fail(std::move(runs.error()));
    std::set<std::string> now;
    for (const store::Run& run : runs.value_or(std::vector<store::Run>())) now.insert(run.id);
    if (runs) EXPECT_TRUE(std::ranges::includes(now, ended_)) << "an end was undone";
    if (runs) ended_ = std::move(now);
    co_return Result<>();
  }

  Task<Result<>> kill() {
    for (std::size_t i = 1; i <= kKills; ++i) {
      while (accepted_.size() < i * kRuns / (kKills + 1)) co_await sleep_for(1ms);
      server_.blocking_kill();
      STINT_CO_CHECK(server_.blocking_start_again());
    }
    co_return Result<>();
  }

  Task<Result<>> check() {
    for (const std::string& id : accepted_) {
      STINT_CO_TRY(const auto run, co_await store_->find(id));
      EXPECT_TRUE(run && run->state == RunState::succeeded) << id;
      STINT_CO_TRY(const auto events, co_await store_->events(id, 0, 100));
      for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].seq, static_cast<std::int64_t>(i) + 1) << id;
    }
    co_return Result<>();
  }

  Reactor& reactor_;
  PostgresServer& server_;
  std::unique_ptr<PostgresStore> store_;
  NodeNumber node_{};
  std::set<std::string> accepted_, ended_;
  std::map<RunNumber, std::string> ids_;
  int unknown_ = 0;
};

TEST(PostgresCrash, accepted_runs_survive_a_crash_of_the_server) {
  if (const std::string reason = PostgresServer::why_not(); !reason.empty()) GTEST_SKIP() << reason;
  const auto server = PostgresServer::blocking_start(true).value();
  if (!server->is_ours()) GTEST_SKIP() << "an existing server is not killed";
  Reactor reactor;
  Work work(reactor, *server);
  RootScope scope(reactor);
  scope.spawn(work.carry());
  if (const Result<> carried = reactor.run(scope); !carried) ADD_FAILURE() << carried.error().describe();
  RecordProperty("unknown", work.unknown());
}

}  // namespace
}  // namespace stint::store
