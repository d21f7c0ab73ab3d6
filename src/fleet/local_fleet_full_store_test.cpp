// An engine whose store accepts nothing, as on a full disk: it reports that, buffers what fits, and drains.
#include "engine/engine_world.hpp"
#include "fleet/local_fleet.hpp"
#include "pool/recorder.hpp"

namespace stint::fleet {
namespace {

using namespace engine;

const Duration kRecordMax = EngineOptions().record_max;

class FullStoreTest : public EngineTest, protected domain::Log {
 protected:
  void SetUp() override {
    log_ = this;
    add_agent("a", OnCrash::rerun);
    decide_ = [this](const domain::WorkOrder&) {
      Script script;
      script.takes = takes_;
      script.outcome.kind = OutcomeKind::succeeded;
      script.says = says_;
      script.said_at_once = &at_once_;
      return script;
    };
  }
  void TearDown() override {
    scope_.cancel();
    sim_.settle();  // the engine ends before its log
  }
  std::string begin_one() {
    start();
    std::string id = submit("a");
    sim_.advance(100ms);
    EXPECT_EQ(look(id).state, RunState::running);
    return id;
  }
  LocalFleet fleet() {
    return {{sim_, store_, run_codec_, system_, [this]() -> const AgentRegistry& { return registry_; }, engine_.get()},
            {}};
  }
  bool was_logged(std::string_view what) const {
    return std::ranges::any_of(said_, [&](const std::string& line) { return line.starts_with(what); });
  }
  [[nodiscard]] bool is_enabled(domain::LogLevel) const noexcept override { return true; }
  void write(domain::LogLevel, std::string_view what, std::vector<domain::LogField>) override {
    said_.emplace_back(what);
  }

  Duration takes_ = 1h;
  std::size_t says_ = 0, at_once_ = 0;
  std::vector<std::string> said_;
};

TEST_F(FullStoreTest, output_of_an_agent_reveals_the_full_store) {
  says_ = 5 << 20;
  store_.full = false;
  const std::string id = begin_one();
  EXPECT_EQ(engine_->why_unready(), "");
  store_.full = true;
  says_ = 5 << 20;
  const std::string other = submit("a");
  sim_.advance(2s);
  EXPECT_EQ(engine_->why_unready(), "the disk is full");
  EXPECT_TRUE(was_logged("the store can't be used"));
  LocalFleet here = fleet();
  const auto why = get(here.why(other));
  ASSERT_EQ(why.reasons.size(), 1U);
  EXPECT_EQ(why.reasons[0].cause, domain::WaitCause::store);
  EXPECT_EQ(why.reasons[0].detail, "the disk is full");
  store_.full = false;
  sim_.advance(5s);
  EXPECT_EQ(engine_->why_unready(), "");
  EXPECT_EQ(get(store_.output(other)).bytes, 5U << 20) << "soon enough, nothing is missing";
}

TEST_F(FullStoreTest, output_that_can_not_be_stored_in_time_is_dropped_and_counted) {
  constexpr std::size_t kSaid = (7 << 20) + 7;
  says_ = kSaid;
  takes_ = 5min;
  start();
  store_.full = true;
  const std::string id = submit("a");
  sim_.advance(pool::Recorder::kRefusedMax / 2);
  EXPECT_LT(at_once_, kSaid) << "the agent is held";
  sim_.advance(2min);
  store_.full = false;
  sim_.advance(4min);
  EXPECT_EQ(look(id).state, RunState::succeeded) << "and goes on";
  std::uint64_t missing = 0;
  for (const store::Event& event : get(store_.events(id, 0, 100))) {
    if (event.cause == "note") missing += std::stoull(event.data);
  }
  EXPECT_GT(missing, 0U);
  EXPECT_EQ(get(store_.output(id)).bytes + missing, kSaid);
  EXPECT_TRUE(was_logged("output dropped"));
}

TEST_F(FullStoreTest, a_cancel_ends_the_work_and_reports_that_it_is_not_recorded) {
  for (const bool from_the_start : {false, true}) {
    says_ = from_the_start ? 5 << 20 : 0;
    store_.full = false;
    if (!engine_) start();
    store_.full = from_the_start;
    const std::string id = submit("a");
    sim_.advance(10s);
    EXPECT_EQ(alive_, 1);
    LocalFleet here = fleet();
    store_.full = true;
    std::optional<Result<Receipt>> answer;
    auto cancel = [&]() -> Task<> { answer.emplace(co_await here.cancel(id)); };
    scope_.spawn(cancel());
    sim_.advance(10s);
    EXPECT_EQ(alive_, 0);
    ASSERT_TRUE(answer) << "it does not hang";
    ASSERT_FALSE(*answer);
    EXPECT_EQ(answer->error(), Errc::unavailable);
    EXPECT_NE(answer->error().describe().find("the disk is full"), std::string::npos) << answer->error().describe();
    store_.full = false;
    sim_.advance(10s);
    EXPECT_EQ(look(id).state, RunState::cancelled) << "it is recorded when it can be";
  }
}

TEST_F(FullStoreTest, a_cancel_that_is_stored_but_whose_end_is_not_does_not_hang) {
  const std::string id = begin_one();
  LocalFleet here = fleet();
  std::optional<Result<Receipt>> answer;
  auto cancel = [&]() -> Task<> { answer.emplace(co_await here.cancel(id)); };
  auto fill = [&]() -> Task<> {
    (void)co_await store_.cancel(id);
    store_.full = true;
  };
  scope_.spawn(fill());
  sim_.run_ready();
  store_.full = false;
  scope_.spawn(cancel());
  sim_.run_ready();
  store_.full = true;
  sim_.advance(20s);
  EXPECT_EQ(alive_, 0);
  ASSERT_TRUE(answer);
  store_.full = false;
  sim_.advance(10s);
  EXPECT_EQ(look(id).state, RunState::cancelled);
}

TEST_F(FullStoreTest, a_drain_ends_the_processes_and_itself_and_counts_what_is_not_recorded) {
  for (const std::size_t said : {std::size_t{0}, std::size_t{5} << 20}) {
    SCOPED_TRACE(said);
    said_.clear();
    says_ = said;
    store_.full = false;
    start();
    const std::string id = submit("a");
    sim_.advance(100ms);
    store_.full = true;
    engine_->drain(10s);
    sim_.advance(9s);
    EXPECT_EQ(engine_->phase(), Phase::finishing);
    sim_.advance(1s + pool::Recorder::kRefusedAtStopMax + kRecordMax + 3s);
    EXPECT_EQ(alive_, 0);
    EXPECT_EQ(engine_->phase(), Phase::stopped);
    EXPECT_TRUE(ended_);
    EXPECT_EQ(engine_->drained().unrecorded, 1U);
    EXPECT_TRUE(was_logged("exiting before the store has recorded"));
    EXPECT_EQ(look(id).state, RunState::running) << "the lease ends, and it comes back";
    store_.full = false;
    (void)get(store_.tick());
  }
}

TEST_F(FullStoreTest, a_drain_waits_for_a_store_that_comes_back_in_time) {
  const std::string id = begin_one();
  store_.full = true;
  engine_->drain(10s);
  sim_.advance(10s + kRecordMax / 2);
  EXPECT_NE(engine_->phase(), Phase::stopped);
  store_.full = false;
  sim_.advance(kRecordMax);
  EXPECT_EQ(engine_->phase(), Phase::stopped);
  EXPECT_EQ(engine_->drained().unrecorded, 0U);
  EXPECT_EQ(look(id).state, RunState::queued);
}

TEST_F(FullStoreTest, a_drain_does_not_wait_for_the_store_to_begin_a_run) {
  add_agent("marked", OnCrash::resume);  // the store must record the mark before it begins
  start();
  store_.full = true;
  const std::string id = submit("marked");
  sim_.advance(5s);
  EXPECT_EQ(begun_.count(id), 0U);
  engine_->drain(0s);
  sim_.advance(kRecordMax + 5s);
  EXPECT_EQ(engine_->phase(), Phase::stopped);
  EXPECT_EQ(begun_.count(id), 0U);
}

}  // namespace
}  // namespace stint::fleet
