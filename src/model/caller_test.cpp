#include "model/caller.hpp"

#include "model/scripted_transport.hpp"

#include <ostream>

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using domain::SpanKind;

class CallerTest : public ::testing::Test {
 protected:
  CallerTest() : upstream_(std::make_shared<Upstream>(world_.sim, world_.system, test_key(), with_concurrency(4))) {}
  ~CallerTest() override {
    world_.sim.settle();
    EXPECT_EQ(transport_.active, 0U);
    const UpstreamCounts& counts = upstream_->counts();
    EXPECT_EQ(counts.started - counts.ended - upstream_->active(), 0U);
    EXPECT_EQ(upstream_->active(), 0U);
  }
  static UpstreamOptions with_concurrency(std::uint32_t limit) {
    UpstreamOptions options;
    options.concurrency.initial = limit;
    return options;
  }
  [[nodiscard]] CallTarget target() const {
    return {.dialect = Dialect::chat,
            .endpoint = "http://localhost:1",
            .key = Secret("sk-secret"),
            .price = {.input = 3'000'000, .output = 15'000'000},
            .upstream = upstream_};
  }
  void begin(CallOptions options = {}, const ModelRequest& request = test_request()) {
    scope_.spawn([this, options, request]() -> Task<> {
      answers_.push_back(co_await caller_.call(request, target(), options, sink_));
      ended_.push_back(world_.since_begin());
    });
    world_.sim.run_ready();
  }
  /// One call, to its end.
  ModelAnswer call(CallOptions options = {}, const ModelRequest& request = test_request()) {
    const std::size_t before = answers_.size();
    begin(options, request);
    EXPECT_TRUE(world_.sim.run_until([&] { return answers_.size() > before; }));
    const Result<ModelAnswer>& answer = answers_.back();
    EXPECT_TRUE(answer) << answer.error().describe();
    return answer ? *answer : ModelAnswer();
  }
  /// Replies of a script, one after the other; then whole answers.
  void replies(std::vector<ScriptedReply> list) {
    transport_.script = [list, at = std::size_t{0}](const WireRequest&) mutable {
      return at < list.size() ? list[at++] : whole_reply();
    };
  }
  Deadline in(Duration duration) const { return Deadline(world_.sim.now() + duration); }

  SimulatedSystem world_{7, Simulator::Order::fifo};
  std::shared_ptr<Upstream> upstream_;
  ScriptedTransport transport_{world_.sim, [](const WireRequest&) { return whole_reply(); }};
  Caller caller_{transport_, world_.system};
  RecordingSink sink_;
  std::vector<Result<ModelAnswer>> answers_;
  std::vector<Duration> ended_;
  RootScope scope_{world_.sim, ScopeOptions{.cancel_on_error = false}};
};

TEST_F(CallerTest, a_whole_answer_has_text_usage_cost_and_one_span) {
  Budget budget({.tokens = 10'000});
  const ModelAnswer answer = call({.budget = &budget});
  EXPECT_EQ(answer.end, CallEnd::completed);
  EXPECT_EQ(answer.text, "Good morning");
  EXPECT_EQ(sink_.text, "Good morning");
  EXPECT_EQ(answer.stop, StopReason::end_turn);
  EXPECT_EQ(answer.usage.tokens(), 108);
  EXPECT_EQ(answer.usage.cost_micros, 300 + 120);
  EXPECT_FALSE(answer.usage.estimated);
  EXPECT_FALSE(answer.failure || answer.error);
  ASSERT_EQ(sink_.spans.size(), 1U);
  EXPECT_EQ(sink_.spans[0].kind, SpanKind::model_call);
  EXPECT_EQ(sink_.spans[0].usage, answer.usage);
  EXPECT_EQ(sink_.spans[0].length, 700ms);
  EXPECT_EQ(budget.spent().tokens, 108);
  EXPECT_EQ(budget.spent().cost_micros, 420);
}

TEST_F(CallerTest, a_failure_before_output_is_repeated_and_its_place_is_free_meanwhile) {
  upstream_ = std::make_shared<Upstream>(world_.sim, world_.system, test_key(), with_concurrency(1));
  replies({refusal_with(500)});
  begin();
  world_.sim.advance(102ms);
  EXPECT_EQ(transport_.starts.size(), 1U);
  EXPECT_EQ(upstream_->active(), 0U) << "during the back-off";
  world_.sim.settle();
  ASSERT_EQ(answers_.size(), 1U);
  ASSERT_TRUE(answers_[0]);
  EXPECT_EQ(answers_[0]->end, CallEnd::completed);
  EXPECT_EQ(answers_[0]->attempts, 2U);
  EXPECT_EQ(sink_.count(SpanKind::model_call), 2U);
  EXPECT_EQ(sink_.count(SpanKind::backoff), 1U);
  ASSERT_EQ(transport_.starts.size(), 2U);
  EXPECT_LE(transport_.starts[1] - transport_.starts[0], 100ms + 1s + 1ms);
  EXPECT_EQ(answers_[0]->usage.tokens(), 108) << "a refused request has no usage";
}

TEST_F(CallerTest, the_servers_delay_is_waited_for_and_never_less) {
  replies({refusal_with(429, {{"retry-after", "10"}})});
  const ModelAnswer answer = call();
  EXPECT_EQ(answer.end, CallEnd::completed);
  EXPECT_GE(transport_.starts[1] - transport_.starts[0], 10s);
  EXPECT_LE(transport_.starts[1] - transport_.starts[0], 10200ms);
}

TEST_F(CallerTest, a_delay_beyond_the_deadline_fails_now_with_the_last_error) {
  replies({refusal_with(429, {{"retry-after", "60"}})});
  const ModelAnswer answer = call({.deadline = in(30s)});
  EXPECT_EQ(answer.end, CallEnd::failed);
  EXPECT_LE(ended_.back(), 102ms);
  ASSERT_TRUE(answer.failure && answer.error);
  EXPECT_EQ(answer.failure->status, 429);
  EXPECT_EQ(answer.failure->delay, 60s);
  EXPECT_EQ(answer.error->retry_after(), 60s);
  EXPECT_NE(answer.error->describe().find("429"), std::string::npos) << answer.error->describe();
  const ModelAnswer next = call({.deadline = in(30s)});
  EXPECT_EQ(next.attempts, 0U) << "the gate is closed for longer";
  EXPECT_LE(ended_.back(), 102ms);
  EXPECT_NE(next.error->describe().find("429"), std::string::npos) << next.error->describe();
}

TEST_F(CallerTest, what_a_person_or_tomorrow_must_mend_is_not_repeated) {
  struct Case {
    ScriptedReply reply;
    FailureKind kind;
  };
  const std::vector<Case> cases = {
      {refusal_with(401), FailureKind::auth},
      {refusal_with(402), FailureKind::spend_limit},
      {refusal_with(429, {{"retry-after", "36000"}}), FailureKind::quota},
      {refusal_with(429, {}, R"({"error":{"code":"insufficient_quota","message":"pay"}})"), FailureKind::spend_limit},
  };
  for (const Case& each : cases) {
    upstream_ = std::make_shared<Upstream>(world_.sim, world_.system, test_key(), with_concurrency(4));
    replies({each.reply});
    const ModelAnswer answer = call();
    EXPECT_EQ(answer.attempts, 1U);
    ASSERT_TRUE(answer.failure);
    EXPECT_EQ(answer.failure->kind, each.kind) << to_string(answer.failure->kind);
    const ModelAnswer next = call();
    EXPECT_EQ(next.attempts, 0U) << "the account is paused for all callers";
    ASSERT_TRUE(next.failure);
    EXPECT_EQ(next.failure->kind, each.kind);
  }
}

TEST_F(CallerTest, a_wrong_request_is_not_repeated_and_pauses_nothing) {
  replies({refusal_with(400)});
  EXPECT_EQ(call().failure->kind, FailureKind::invalid);
  EXPECT_EQ(call().end, CallEnd::completed);
}

TEST_F(CallerTest, after_output_nothing_is_repeated_and_the_partial_answer_is_returned) {
  ScriptedReply half = whole_reply();
  half.pieces.resize(2);
  half.breaks = Error(Errc::unavailable, Retry::unknown, "connection reset");
  Budget budget({.tokens = 10'000});
  replies({half});
  const ModelAnswer answer = call({.budget = &budget});
  EXPECT_EQ(answer.end, CallEnd::broken);
  EXPECT_EQ(answer.attempts, 1U);
  EXPECT_EQ(answer.text, "Good morning");
  ASSERT_EQ(answer.message.content.size(), 1U);
  EXPECT_EQ(answer.message.role, Role::assistant);
  ASSERT_TRUE(answer.failure);
  EXPECT_TRUE(answer.failure->after_output);
  EXPECT_TRUE(answer.usage.estimated);
  EXPECT_GT(answer.usage.fresh_in, 0);
  EXPECT_EQ(budget.spent().tokens, answer.usage.tokens());
}

TEST_F(CallerTest, a_body_that_ends_without_its_terminator_is_broken) {
  ScriptedReply half = whole_reply();
  half.pieces.resize(2);
  replies({half});
  EXPECT_EQ(call().end, CallEnd::broken);
}

TEST_F(CallerTest, a_first_byte_that_does_not_come_is_repeated_and_its_usage_estimated) {
  ScriptedReply silent = whole_reply();
  silent.first_byte = 1h;
  replies({silent});
  const ModelAnswer answer = call({.first_byte_time_max = 20s});
  EXPECT_EQ(answer.end, CallEnd::completed);
  EXPECT_EQ(answer.attempts, 2U);
  EXPECT_TRUE(answer.usage.estimated);
  EXPECT_GT(answer.usage.tokens(), 108);
  EXPECT_EQ(sink_.spans[0].length, 20s);
}

TEST_F(CallerTest, an_idle_stream_is_closed) {
  ScriptedReply idle = whole_reply();
  idle.pieces[1].wait = 1h;
  replies({idle});
  const ModelAnswer answer = call({.idle_time_max = 60s});
  EXPECT_EQ(answer.end, CallEnd::broken);
  EXPECT_EQ(answer.text, "Good");
  EXPECT_EQ(ended_.back(), 60300ms);
  EXPECT_EQ(transport_.active, 0U);
}

TEST_F(CallerTest, the_deadline_ends_a_stream_and_keeps_what_came) {
  ScriptedReply slow = whole_reply();
  slow.pieces[1].wait = 50s;
  replies({slow});
  const ModelAnswer answer = call({.deadline = in(10s)});
  EXPECT_EQ(answer.end, CallEnd::broken);
  EXPECT_EQ(answer.text, "Good");
  EXPECT_EQ(ended_.back(), 10s);
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(*answer.error, Errc::timed_out);
  EXPECT_TRUE(answer.usage.estimated);
}

TEST_F(CallerTest, retries_stop_when_the_upstreams_tokens_are_used_up) {
  UpstreamOptions options = with_concurrency(4);
  options.retries.burst = 1;
  options.gate.outage_failures = 1000;
  upstream_ = std::make_shared<Upstream>(world_.sim, world_.system, test_key(), options);
  transport_.script = [](const WireRequest&) { return refusal_with(500); };
  const ModelAnswer answer = call();
  EXPECT_EQ(answer.attempts, 2U);
  EXPECT_NE(answer.error->describe().find("500"), std::string::npos);
}

TEST_F(CallerTest, nothing_is_sent_that_does_not_fit_into_the_budget) {
  Budget budget({.tokens = 50});
  begin({.budget = &budget});
  ASSERT_EQ(answers_.size(), 1U);
  ASSERT_FALSE(answers_[0]);
  EXPECT_EQ(answers_[0].error(), Errc::exhausted);
  EXPECT_TRUE(transport_.starts.empty());
  Budget poor({.cost_micros = 100});  // 64 output tokens cost 960
  begin({.budget = &poor});
  ASSERT_FALSE(answers_[1]);
  EXPECT_EQ(answers_[1].error(), Errc::exhausted);
  EXPECT_EQ(poor.spent(), Spend());
}

TEST_F(CallerTest, the_most_output_is_lowered_to_what_is_left) {
  Budget budget({.tokens = 1000});
  ModelRequest request = test_request();
  request.output_tokens_max = 4000;
  const ModelAnswer answer = call({.budget = &budget}, request);
  EXPECT_TRUE(answer.output_lowered);
  const std::string& body = transport_.requests[0].body;
  EXPECT_EQ(body.find("4000"), std::string::npos) << body;
  EXPECT_EQ(budget.spent().tokens, 108);
}

TEST_F(CallerTest, a_stream_that_passes_the_budget_is_cut) {
  ScriptedReply endless;
  for (int i = 0; i < 1000; ++i) endless.pieces.push_back({10ms, script_text(std::string(400, 'a'))});
  replies({endless});
  Budget budget({.tokens = 2000});
  const ModelAnswer answer = call({.budget = &budget});
  EXPECT_EQ(answer.end, CallEnd::cut);
  EXPECT_FALSE(answer.error);
  EXPECT_TRUE(answer.usage.estimated);
  EXPECT_GE(answer.usage.tokens(), 2000);
  EXPECT_LE(answer.usage.tokens(), 2200);
  EXPECT_EQ(transport_.active, 0U);
  EXPECT_EQ(budget.remaining(world_.sim.now()).tokens, 0);
}

TEST_F(CallerTest, a_cancel_closes_the_connection_settles_and_leaves_a_span) {
  Budget budget({.tokens = 10'000});
  begin({.budget = &budget});
  world_.sim.advance(350ms);
  EXPECT_EQ(transport_.active, 1U);
  scope_.cancel();
  world_.sim.run_ready();
  EXPECT_EQ(transport_.active, 0U);
  EXPECT_EQ(upstream_->active(), 0U);
  ASSERT_EQ(sink_.count(SpanKind::model_call), 1U);
  EXPECT_TRUE(sink_.spans[0].usage.estimated);
  EXPECT_EQ(budget.spent().tokens, sink_.spans[0].usage.tokens());
  EXPECT_GT(budget.spent().tokens, 0);
}

TEST_F(CallerTest, the_connection_is_closed_before_its_place_is_free) {
  UpstreamOptions options = with_concurrency(1);
  options.concurrency.max = 1;
  upstream_ = std::make_shared<Upstream>(world_.sim, world_.system, test_key(), options);
  ScriptedReply half = whole_reply();
  half.breaks = Error(Errc::unavailable, Retry::unknown, "connection reset");
  half.pieces.resize(1);
  replies({half, whole_reply(), refusal_with(500), refusal_with(400)});
  for (int i = 0; i < 5; ++i) begin();
  world_.sim.settle();
  EXPECT_EQ(answers_.size(), 5U);
  EXPECT_EQ(transport_.active_most, 1U);
}

TEST_F(CallerTest, what_was_never_sent_costs_nothing) {
  ScriptedReply unreachable;
  unreachable.instead = Error(Errc::unavailable, Retry::safe, "connection refused");
  replies({unreachable});
  EXPECT_EQ(call().usage.tokens(), 108);
}

template <class T>
concept Printed = requires(std::ostream& out, const T& value) { out << value; };
static_assert(Printed<std::string> && !Printed<Secret>);

TEST_F(CallerTest, the_key_is_sent_as_a_header_only) {
  (void)call();
  const Headers& headers = transport_.requests[0].headers;
  EXPECT_TRUE(std::ranges::any_of(headers, [](const auto& each) { return each.second == "Bearer sk-secret"; }));
  EXPECT_EQ(transport_.requests[0].body.find("sk-secret"), std::string::npos);
}

}  // namespace
}  // namespace stint::model
