// Calls of many callers to a provider with faults, in virtual time: the promises of DESIGN section 9, seed after seed.
#include "model/scripted_transport.hpp"

#include <array>
#include <deque>
#include <set>

namespace stint::model {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kWorldSeeds = 2000;
constexpr std::uint64_t kOutageSeeds = 60;
constexpr Duration kTickSlack = 2ms;  // timers have ticks of a millisecond

std::int64_t draw(Simulator& sim, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(sim.random()() % static_cast<std::uint64_t>(most - least + 1));
}
Duration draw_ms(Simulator& sim, std::int64_t least, std::int64_t most) {
  return std::chrono::milliseconds(draw(sim, least, most));
}

/// Checked after every step: what the upstream admitted since the step before.
class Watch {
 public:
  explicit Watch(const Upstream& upstream) : upstream_(upstream) {}
  void check() {
    const UpstreamCounts& now = upstream_.counts();
    const std::uint64_t started = now.started - before_.started;
    if (started > 0) {
      ASSERT_LE(upstream_.active(), upstream_.concurrency()) << "more than the adaptive limit in flight";
    }
    if (upstream_.pause()) {
      ASSERT_EQ(started, now.probes - before_.probes) << "admitted during a pause";
      ASSERT_LE(started, 1U);
    }
    ASSERT_EQ(now.started - now.ended - upstream_.active(), 0U);
    before_ = now;
  }

 private:
  const Upstream& upstream_;
  UpstreamCounts before_;
};

ScriptedReply random_reply(Simulator& sim) {
  ScriptedReply reply = whole_reply(draw_ms(sim, 0, 2000));
  reply.first_byte = draw_ms(sim, 0, 500);
  switch (draw(sim, 0, 13)) {
    case 0: return refusal_with(429, {{"retry-after", std::to_string(draw(sim, 1, 20))}});
    case 1: return refusal_with(529);
    case 2: return refusal_with(500);
    case 3: return refusal_with(400);
    case 4: reply.instead = Error(Errc::unavailable, Retry::safe, "connection refused"); return reply;
    case 5: reply.instead = Error(Errc::unavailable, Retry::unknown, "reset"); return reply;
    case 6:
      reply.pieces.resize(static_cast<std::size_t>(draw(sim, 0, 2)));
      reply.breaks = Error(Errc::unavailable, Retry::unknown, "reset");
      return reply;
    case 7: reply.first_byte = 10min; return reply;
    case 8: reply.pieces[1].wait = 10min; return reply;
    default: return reply;
  }
}

/// Callers with deadlines and cancels, one budget, one upstream.
class FaultyWorld {
 public:
  explicit FaultyWorld(std::uint64_t seed) : world_(seed), upstream_(make_upstream()) {
    budget_.emplace(Allowance{.tokens = draw(world_.sim, 1000, 2'000'000)});
  }

  void run() {
    const std::int64_t callers = draw(world_.sim, 2, 25);
    for (std::int64_t i = 0; i < callers; ++i) begin_caller();
    Watch watch(*upstream_);
    while (world_.sim.step()) {
      watch.check();
      if (::testing::Test::HasFatalFailure()) return world_.sim.settle();
    }
    EXPECT_EQ(ended_, began_) << "a caller is stuck";
    EXPECT_EQ(transport_.active, 0U);
    EXPECT_EQ(upstream_->active(), 0U);
    EXPECT_EQ(upstream_->waiting(), 0U);
    EXPECT_EQ(sink_.count(domain::SpanKind::model_call), transport_.starts.size());
    EXPECT_EQ(budget_->spent().tokens, used()) << "spans and budget differ";
  }

 private:
  /// Ends with its frame, however that ends.
  struct Ended {
    ~Ended() {
      ++world.ended_;
      EXPECT_LE(world.world_.sim.now(), deadline.is_never() ? TimePoint::max() : deadline.when() + kTickSlack)
          << "a wait outlasted the deadline";
    }
    FaultyWorld& world;
    Deadline deadline;
  };

  std::shared_ptr<Upstream> make_upstream() {
    UpstreamOptions options;
    options.concurrency.initial = static_cast<std::uint32_t>(draw(world_.sim, 1, 8));
    options.retries.burst = static_cast<double>(draw(world_.sim, 0, 10));
    if (draw(world_.sim, 0, 1) == 0) options.rates.requests_per_minute = draw(world_.sim, 10, 600);
    if (draw(world_.sim, 0, 1) == 0) options.rates.tokens_per_minute = draw(world_.sim, 5000, 200'000);
    return std::make_shared<Upstream>(world_.sim, world_.system, test_key(), options);
  }
  void begin_caller() {
    const Duration arrival = draw_ms(world_.sim, 0, 20'000);
    const Duration most = draw(world_.sim, 0, 2) == 0 ? draw_ms(world_.sim, 0, 60'000) : Duration::max();
    const Duration cancel = draw(world_.sim, 0, 3) == 0 ? draw_ms(world_.sim, 0, 40'000) : Duration::max();
    ++began_;
    scopes_.emplace_back(world_.sim, ScopeOptions{.cancel_on_error = false});
    RootScope& scope = scopes_.back();
    scope.spawn([this, arrival, most]() -> Task<> {
      co_await sleep_for(arrival);
      const Ended ended{*this, Deadline::after(world_.sim.now(), most)};
      (void)co_await caller_.call(test_request(), target(), {.deadline = ended.deadline, .budget = &*budget_}, sink_);
    });
    if (cancel == Duration::max()) return;
    control_.spawn([&scope, at = arrival + cancel]() -> Task<> {
      co_await sleep_until(TimePoint(at));
      scope.cancel();
      co_return;
    });
  }
  CallTarget target() const {
    return {.dialect = Dialect::chat,
            .endpoint = "http://localhost:1",
            .key = Secret("k"),
            .price = {.input = 1'000'000, .output = 1'000'000},
            .upstream = upstream_};
  }
  std::int64_t used() const {
    std::int64_t sum = 0;
    for (const domain::Span& span : sink_.spans) sum += span.usage.tokens();
    return sum;
  }

  SimulatedSystem world_;
  std::shared_ptr<Upstream> upstream_;
  ScriptedTransport transport_{world_.sim, [this](const WireRequest&) { return random_reply(world_.sim); }};
  Caller caller_{transport_, world_.system};
  RecordingSink sink_;
  std::optional<Budget> budget_;
  int began_ = 0, ended_ = 0;
  std::deque<RootScope> scopes_;
  RootScope control_{world_.sim};
};

TEST(CallerSimulation, promises_hold_with_faults_deadlines_and_cancels) {
  for (std::uint64_t seed = 1; seed <= kWorldSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FaultyWorld(seed).run();
    if (::testing::Test::HasFailure()) return;
  }
}

/// Every caller makes one call; the provider fails for 30 s.
class OutageWorld {
 public:
  static constexpr std::size_t kCallers = 200;
  static constexpr Duration kOutage = 30s;

  OutageWorld(std::uint64_t seed, ScriptedReply outage) : world_(seed), outage_(std::move(outage)) {
    UpstreamOptions options;
    options.concurrency.initial = kCallers;
    burst_ = options.retries.burst;
    upstream_ = std::make_shared<Upstream>(world_.sim, world_.system, test_key(), options);
  }

  void run() {
    for (std::size_t i = 0; i < kCallers; ++i) {
      scope_.spawn([this, arrival = draw_ms(world_.sim, 0, 10'000)]() -> Task<> {
        co_await sleep_for(arrival);
        CallTarget target{.dialect = Dialect::chat, .endpoint = "http://localhost:1", .upstream = upstream_};
        auto answer = co_await caller_.call(test_request(), std::move(target), {}, sink_);
        if (answer && answer->end == CallEnd::completed) ++completed;
      });
    }
    Watch watch(*upstream_);
    bool was_paused = false;
    TimePoint opened{};
    while (world_.sim.step()) {
      watch.check();
      if (::testing::Test::HasFatalFailure()) return world_.sim.settle();
      const bool is_paused = upstream_->pause().has_value();
      if (was_paused && !is_paused) opened = world_.sim.now();
      was_paused = is_paused;
    }
    check_requests();
    check_recovery(opened);
  }

  std::size_t completed = 0, in_outage = 0, peak = 0;

 private:
  void check_requests() {
    for (const TimePoint start : transport_.starts) in_outage += start - TimePoint() < kOutage ? 1 : 0;
    EXPECT_LE(static_cast<double>(in_outage), 1.2 * kCallers + burst_);
  }
  /// The ramp admits 2ᵏ⁺¹ − 1 calls in its first k + 1 steps.
  void check_recovery(TimePoint opened) {
    ASSERT_GE(opened - TimePoint(), kOutage);
    const std::size_t steps = 8;
    std::array<std::size_t, steps> in_step{};
    for (const TimePoint start : transport_.starts) {
      if (start < opened || start - opened >= std::chrono::seconds(steps)) continue;
      ++in_step[static_cast<std::size_t>((start - opened) / 1s)];
    }
    std::size_t sum = 0;
    for (std::size_t k = 0; k < steps; ++k) {
      sum += in_step[k];
      peak = std::max(peak, in_step[k]);
      EXPECT_LE(sum, (std::size_t{2} << k) - 1) << "more than the ramp allows, " << k << " s after the recovery";
    }
  }

  SimulatedSystem world_;
  const ScriptedReply outage_;
  double burst_ = 0;
  std::shared_ptr<Upstream> upstream_;
  ScriptedTransport transport_{
      world_.sim, [this](const WireRequest&) { return world_.since_begin() < kOutage ? outage_ : whole_reply(500ms); }};
  Caller caller_{transport_, world_.system};
  RecordingSink sink_;
  RootScope scope_{world_.sim, ScopeOptions{.cancel_on_error = false}};
};

TEST(CallerSimulation, an_outage_is_met_with_few_requests_and_recovers_without_a_second_peak) {
  ScriptedReply refused;
  refused.instead = Error(Errc::unavailable, Retry::safe, "connection refused");
  const std::array outages = {refusal_with(529), refusal_with(500), refused};
  std::size_t requests_most = 0, peak_most = 0, completed_least = OutageWorld::kCallers;
  for (std::uint64_t seed = 1; seed <= kOutageSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    OutageWorld world(seed, outages[seed % outages.size()]);
    world.run();
    if (::testing::Test::HasFailure()) return;
    requests_most = std::max(requests_most, world.in_outage);
    peak_most = std::max(peak_most, world.peak);
    completed_least = std::min(completed_least, world.completed);
  }
  ::testing::Test::RecordProperty("requests_in_outage_most", std::to_string(requests_most));
  ::testing::Test::RecordProperty("starts_per_second_most", std::to_string(peak_most));
  ::testing::Test::RecordProperty("completed_least", std::to_string(completed_least));
  EXPECT_GT(completed_least, OutageWorld::kCallers / 2) << "callers that waited for the end of the outage";
}

/// Callers that only wait: the order in which they are admitted.
TEST(CallerSimulation, calls_are_admitted_in_the_order_of_their_arrival) {
  for (std::uint64_t seed = 1; seed <= kWorldSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulatedSystem world(seed, Simulator::Order::fifo);
    UpstreamOptions options;
    options.concurrency.initial = static_cast<std::uint32_t>(draw(world.sim, 1, 5));
    options.rates.tokens_per_minute = draw(world.sim, 1000, 100'000);
    Upstream upstream(world.sim, world.system, test_key(), options);
    std::deque<RootScope> scopes;
    std::uint64_t last = 0;
    for (int i = 0; i < 30; ++i) {
      RootScope& scope = scopes.emplace_back(world.sim);
      scope.spawn([&]() -> Task<> {
        co_await sleep_for(draw_ms(world.sim, 0, 5000));
        const CallEstimate estimate{.input_tokens = draw(world.sim, 0, 2000)};
        const Deadline deadline = Deadline::after(world.sim.now(), draw_ms(world.sim, 0, 60'000));
        auto admission = co_await upstream.admit(estimate, {.deadline = deadline});
        if (!admission) co_return;
        EXPECT_GT(admission->turn(), last) << "one that came later went first";
        last = admission->turn();
        co_await sleep_for(draw_ms(world.sim, 0, 3000));
        if (draw(world.sim, 0, 5) == 0) co_return admission->failed(throttled(draw_ms(world.sim, 0, 5000)));
        admission->succeeded();
      });
      scope.spawn([&]() -> Task<> {
        co_await sleep_for(draw_ms(world.sim, 0, 40'000));
        if (draw(world.sim, 0, 3) == 0) scope.cancel();
      });
    }
    world.sim.settle();
    EXPECT_EQ(upstream.active(), 0U);
    EXPECT_EQ(upstream.waiting(), 0U);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace stint::model
