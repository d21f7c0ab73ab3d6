// One suite for all drivers: what the worker relies on, for every implementation.
#include "domain/driver_descriptor.hpp"
#include "driver_under_test.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"
#include "stint/semaphore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace stint::conformance {
namespace {

using namespace std::chrono_literals;
using Kind = domain::WorkUpdate::Kind;
using Report = Result<std::unique_ptr<domain::WorkReport>>;

/// Records the updates of a work, and fails the test if one comes after its end.
class RecordingContext final : public domain::WorkContext {
 public:
  void publish(const domain::WorkUpdate& update) override {
    EXPECT_FALSE(over) << "update after the end: " << update.text;
    if (update.kind == Kind::text) text += update.text;
    if (update.kind != Kind::text) others.push_back(update);
    longest = std::max(longest, update.text.size());
    ++count;
    if (on_update) on_update(update);
  }
  Task<Result<>> effects_unknown() override {
    if (refuses_effects) co_return fail(Errc::cancelled, "the store refused the mark");
    ++unknown;
    co_return Result<>();
  }
  Task<Result<>> effects_known() override {
    --unknown;
    co_return Result<>();
  }
  Task<Result<>> keep_message(std::uint32_t at, std::string body) override {
    if (at > kept.size()) co_return fail(Errc::invalid, "the message before it is missing");
    kept.resize(at);
    kept.push_back(std::move(body));
    co_return Result<>();
  }
  Task<Result<std::vector<std::string>>> messages(std::uint32_t from) override {
    co_return std::vector(kept.begin() + std::min<std::ptrdiff_t>(from, std::ssize(kept)), kept.end());
  }
  Task<Result<Permit>> acquire(std::string limit, std::uint32_t weight) override {
    EXPECT_FALSE(limit.empty());
    return take(*this, weight);
  }
  [[nodiscard]] std::size_t count_of(Kind kind) const {
    return static_cast<std::size_t>(std::ranges::count(others, kind, &domain::WorkUpdate::kind));
  }

  [[nodiscard]] std::vector<domain::Span> spans(domain::SpanKind kind) const {
    std::vector<domain::Span> found;
    for (const domain::WorkUpdate& update : others) {
      if (update.kind == Kind::span && update.span->kind == kind) found.push_back(*update.span);
    }
    return found;
  }

  std::string text;
  std::vector<domain::WorkUpdate> others;
  std::size_t count = 0, longest = 0;
  std::vector<std::string> kept;  ///< messages of the conversation
  int unknown = 0;
  bool over = false, refuses_effects = false;
  std::function<void(const domain::WorkUpdate&)> on_update;

 private:
  static Task<Result<Permit>> take(RecordingContext& self, std::uint32_t weight) {
    co_return co_await self.calls_.acquire(weight);
  }
  Semaphore calls_{"calls", 4};
};

struct Implementation {
  const char* name;
  MakeDriver make;
};
void PrintTo(const Implementation& implementation, std::ostream* out) { *out << implementation.name; }

class DriverSuite : public testing::TestWithParam<Implementation> {
 protected:
  DriverSuite() : subject_(GetParam().make()) {}
  ~DriverSuite() override {
    work_.reset();
    EXPECT_EQ(subject_->leftovers(), "");
  }

  [[nodiscard]] Abilities abilities() const { return subject_->abilities(); }
  void begin(domain::WorkOrder order) {
    auto begun = subject_->driver().begin(std::move(order), context_);
    ASSERT_TRUE(begun) << begun.error().describe();
    work_ = std::move(*begun);
  }
  void begin(Scenario scenario) { begin(subject_->order(scenario)); }
  /// Runs the work that was begun to its end. None: its chain was stopped.
  std::optional<Report> run() {
    std::optional<Report> report;
    auto body = [&]() -> Task<> {
      report.emplace(co_await work_->run());
      context_.over = true;
    };
    RootScope scope(subject_->executor());
    scope_ = &scope;
    scope.spawn(body());
    EXPECT_TRUE(subject_->run_until([&] { return scope.idle(); })) << "the work does not end";
    scope_ = nullptr;
    context_.over = true;
    EXPECT_EQ(subject_->leftovers(), "");
    return report;
  }
  domain::WorkReport report() {
    auto ended = run();
    if (!ended || !*ended) {
      ADD_FAILURE() << (ended ? ended->error().describe() : std::string("it was stopped"));
      return {};
    }
    return std::move(***ended);
  }
  /// Calls it once, at the first output of the work.
  void at_first_text(std::function<void()> call) {
    context_.on_update = [call = std::move(call), called = false](const domain::WorkUpdate& update) mutable {
      if (update.kind == Kind::text && !std::exchange(called, true)) call();
    };
  }

  std::unique_ptr<DriverUnderTest> subject_;
  RecordingContext context_;
  std::unique_ptr<domain::Work> work_;
  RootScope* scope_ = nullptr;  // while it runs
};

TEST_P(DriverSuite, a_work_runs_to_its_outcome) {
  begin(Scenario::answers);
  const auto report = this->report();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::succeeded) << report.outcome.message;
  EXPECT_TRUE(report.begun);
  EXPECT_FALSE(report.left);
  EXPECT_NE(report.outcome.text, "");
  EXPECT_NE(context_.text.find(report.outcome.text), std::string::npos)
      << "the answer was published: " << context_.text;
}

TEST_P(DriverSuite, a_failure_of_the_agent_is_an_outcome_with_a_reason) {
  begin(Scenario::fails);
  const auto report = this->report();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::agent_error);
  EXPECT_NE(report.outcome.message, "");
  EXPECT_LE(report.outcome.message.size(), Outcome::kMessageMax);
}

TEST_P(DriverSuite, work_that_breaks_off_is_never_a_success) {
  begin(Scenario::breaks_off);
  const auto report = this->report();
  EXPECT_TRUE(report.outcome.kind == OutcomeKind::crashed || report.outcome.kind == OutcomeKind::in_doubt ||
              report.outcome.kind == OutcomeKind::api_error)  // of a driver that sees the connection itself
      << to_string(report.outcome.kind);
  EXPECT_NE(report.outcome.message, "");
}

TEST_P(DriverSuite, work_that_was_ended_before_run_does_not_begin) {
  begin(Scenario::answers);
  work_->end(OutcomeKind::cancelled, "too early");
  const auto ended = run();
  ASSERT_TRUE(ended);
  if (*ended) {
    EXPECT_FALSE((**ended)->begun);
  } else {
    EXPECT_EQ(ended->error().code(), Errc::cancelled);
  }
  EXPECT_EQ(context_.text, "");
}

TEST_P(DriverSuite, an_end_while_it_works_decides_the_outcome) {
  begin(Scenario::hangs);
  at_first_text([&] {
    EXPECT_FALSE(work_->is_ending());
    work_->end(OutcomeKind::over_budget, "by the suite");
    EXPECT_TRUE(work_->is_ending());
  });
  const auto report = this->report();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::over_budget);
  EXPECT_EQ(report.outcome.message, "by the suite");
  EXPECT_TRUE(report.begun);
}

TEST_P(DriverSuite, a_second_end_skips_the_grace_and_the_first_reason_counts) {
  begin(Scenario::hangs_on);
  at_first_text([&] {
    work_->end(OutcomeKind::over_budget, "first");
    work_->end(OutcomeKind::cancelled, "second");
  });
  const TimePoint since = subject_->executor().now();
  const auto report = this->report();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::over_budget);
  EXPECT_EQ(report.outcome.message, "first");
  EXPECT_LT(subject_->executor().now() - since, 20s) << "the grace is an hour";
}

TEST_P(DriverSuite, an_end_after_the_end_has_no_effect) {
  begin(Scenario::answers);
  const auto report = this->report();
  work_->end(OutcomeKind::cancelled, "too late");
  work_->hold(true);
  work_->hold(false);
  EXPECT_EQ(report.outcome.kind, OutcomeKind::succeeded);
  EXPECT_FALSE(work_->waits_for());
}

TEST_P(DriverSuite, a_stop_of_the_chain_passes_on_when_the_work_is_gone) {
  begin(Scenario::hangs);
  at_first_text([&] { scope_->cancel(); });
  EXPECT_FALSE(run()) << "a stop gives no report";  // run() has checked for leftovers
}

TEST_P(DriverSuite, a_deadline_ends_the_work) {
  begin(Scenario::hangs);
  std::optional<Report> report;
  auto body = [&]() -> Task<> {
    report.emplace(co_await with_timeout(2s, work_->run()));
    context_.over = true;
  };
  RootScope scope(subject_->executor());
  scope.spawn(body());
  ASSERT_TRUE(subject_->run_until([&] { return scope.idle(); }));
  ASSERT_TRUE(report && !*report);
  EXPECT_EQ(report->error().code(), Errc::timed_out);
}

TEST_P(DriverSuite, a_hold_pauses_the_output_and_loses_none) {
  begin(Scenario::floods);
  std::size_t held_at = 0, let_go_at = 0;
  auto later = [&]() -> Task<> {
    co_await sleep_for(300ms);  // output in flight has arrived
    held_at = context_.text.size();
    co_await sleep_for(500ms);
    let_go_at = context_.text.size();
    work_->hold(false);
  };
  at_first_text([&] {
    work_->hold(true);
    scope_->spawn(later());
  });
  const auto report = this->report();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::succeeded);
  EXPECT_EQ(held_at, let_go_at);
  EXPECT_LT(held_at, kFloodBytes);
  EXPECT_GE(context_.text.size(), kFloodBytes);
}

TEST_P(DriverSuite, holds_nest) {
  begin(Scenario::floods);
  bool one_left = false;
  auto later = [&]() -> Task<> {
    work_->hold(false);
    co_await sleep_for(300ms);
    one_left = context_.text.size() < kFloodBytes;
    work_->hold(false);
  };
  at_first_text([&] {
    work_->hold(true);
    work_->hold(true);
    scope_->spawn(later());
  });
  EXPECT_EQ(report().outcome.kind, OutcomeKind::succeeded);
  EXPECT_TRUE(one_left);
  EXPECT_GE(context_.text.size(), kFloodBytes);
}

TEST_P(DriverSuite, a_hold_does_not_delay_the_end) {
  begin(Scenario::floods);
  at_first_text([&] {
    work_->hold(true);
    work_->end(OutcomeKind::cancelled, "by the suite");
  });
  const TimePoint since = subject_->executor().now();
  EXPECT_EQ(report().outcome.kind, OutcomeKind::cancelled);
  EXPECT_LT(subject_->executor().now() - since, 20s);
}

TEST_P(DriverSuite, output_is_bounded) {
  begin(Scenario::floods);
  const auto report = this->report();
  EXPECT_GE(context_.text.size(), kFloodBytes) << "all of it is published";
  EXPECT_LE(report.outcome.text.size(), Outcome::kTextMax) << "not all of it is kept";
  EXPECT_LE(context_.longest, domain::WorkUpdate::kTextMax) << "no piece is large";
}

TEST_P(DriverSuite, a_work_that_never_runs_leaves_nothing) {
  begin(Scenario::hangs);
  work_.reset();
  EXPECT_EQ(subject_->leftovers(), "");
  EXPECT_EQ(context_.count, 0U);
}

TEST_P(DriverSuite, works_of_one_driver_do_not_mix) {
  begin(Scenario::hangs);
  RecordingContext other;
  auto second = subject_->driver().begin(subject_->order(Scenario::answers), other);
  ASSERT_TRUE(second);
  auto body = [&]() -> Task<> {
    const auto answered = co_await (*second)->run();
    other.over = true;
    EXPECT_TRUE(answered && (*answered)->outcome.kind == OutcomeKind::succeeded);
    work_->end(OutcomeKind::cancelled, "the other is done");
  };
  at_first_text([&] { scope_->spawn(body()); });
  EXPECT_EQ(report().outcome.kind, OutcomeKind::cancelled);
  EXPECT_NE(other.text, "");
  EXPECT_NE(other.text, context_.text);
}

TEST_P(DriverSuite, usage_never_decreases_and_the_outcome_has_all_of_it) {
  if (!abilities().usage) GTEST_SKIP() << "it counts no tokens";
  begin(Scenario::uses_tool);
  const auto report = this->report();
  std::int64_t last = 0;
  for (const domain::WorkUpdate& update : context_.others) {
    if (update.kind != Kind::usage) continue;
    EXPECT_GE(update.usage.tokens(), last);
    last = update.usage.tokens();
  }
  EXPECT_GT(last, 0);
  EXPECT_GE(report.outcome.usage.tokens(), last);
}

TEST_P(DriverSuite, a_tool_call_is_published_before_it_has_effects_and_reported) {
  if (!abilities().tools) GTEST_SKIP() << "it has no tools";
  begin(Scenario::uses_tool);
  const auto report = this->report();
  EXPECT_GE(context_.count_of(Kind::tool), 1U);
  EXPECT_TRUE(report.tools_used);
  EXPECT_EQ(context_.unknown, 0) << "its outcome is known";
}

TEST_P(DriverSuite, effects_stay_unknown_if_it_ends_within_a_call_that_must_not_be_repeated) {
  if (!abilities().marks_effects) GTEST_SKIP() << "it announces no effects";
  begin(Scenario::hangs_in_tool);
  context_.on_update = [&](const domain::WorkUpdate& update) {
    if (update.kind != Kind::tool) return;
    EXPECT_EQ(context_.unknown, 1) << "announced before the call is made";
    work_->end(OutcomeKind::cancelled, "by the suite");
  };
  const auto report = this->report();
  EXPECT_EQ(report.outcome.kind, OutcomeKind::cancelled) << "the worker puts the run in doubt, not the driver";
  EXPECT_TRUE(report.tools_used);
  EXPECT_EQ(context_.unknown, 1) << "what the call did is unknown";
}

TEST_P(DriverSuite, a_call_whose_announcement_fails_is_not_made) {
  if (!abilities().marks_effects) GTEST_SKIP() << "it announces no effects";
  context_.refuses_effects = true;
  begin(Scenario::uses_tool);
  const auto report = this->report();
  EXPECT_EQ(context_.count_of(Kind::tool), 0U);
  EXPECT_FALSE(report.tools_used);
  EXPECT_TRUE(report.begun) << "the model was called";
  EXPECT_NE(report.outcome.kind, OutcomeKind::succeeded);
}

TEST_P(DriverSuite, a_tool_that_ends_is_a_span) {
  if (!abilities().tool_spans) GTEST_SKIP() << "it does not report the end of a tool";
  begin(Scenario::uses_tool);
  const TimePoint since = subject_->executor().now();
  (void)report();
  const auto spans = context_.spans(domain::SpanKind::tool);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_NE(spans[0].name, "");
  EXPECT_LE(spans[0].length, subject_->executor().now() - since);
  if (abilities().virtual_time) EXPECT_GT(spans[0].length, Duration::zero());
  const auto begun = std::ranges::find(context_.others, Kind::tool, &domain::WorkUpdate::kind);
  const auto over = std::ranges::find(context_.others, Kind::span, [](const domain::WorkUpdate& update) {
    const bool of_tool = update.span && update.span->kind == domain::SpanKind::tool;
    return of_tool ? Kind::span : Kind::life;
  });
  EXPECT_LT(begun, over) << "first its start, then how long it took";
}

TEST_P(DriverSuite, the_spans_of_model_calls_add_up_to_the_usage) {
  if (!abilities().model_spans) GTEST_SKIP() << "it does not see model calls";
  for (const Scenario scenario : {Scenario::uses_tool, Scenario::fails}) {
    context_.others.clear();
    context_.over = false;
    begin(scenario);
    const auto report = this->report();
    Usage sum;
    for (const domain::Span& span : context_.spans(domain::SpanKind::model_call)) {
      EXPECT_GT(span.length, Duration::zero());
      EXPECT_NE(span.name, "");
      sum += span.usage;
    }
    EXPECT_EQ(sum, report.outcome.usage);
    EXPECT_GT(sum.tokens(), 0);
  }
}

TEST_P(DriverSuite, an_interrupted_model_call_is_a_span) {
  if (!abilities().model_spans) GTEST_SKIP() << "it does not see model calls";
  begin(Scenario::hangs);
  at_first_text([&] { work_->end(OutcomeKind::cancelled, "by the suite"); });
  (void)report();
  EXPECT_EQ(context_.spans(domain::SpanKind::model_call).size(), 1U);
}

TEST_P(DriverSuite, an_attempt_without_a_tool_call_had_no_effects) {
  if (!abilities().tools) GTEST_SKIP() << "it has no tools";
  begin(Scenario::answers);
  EXPECT_FALSE(report().tools_used);
}

TEST_P(DriverSuite, denials_are_reported_with_what_would_allow_them) {
  if (!abilities().tools) GTEST_SKIP() << "it has no tools";
  begin(Scenario::is_denied);
  const auto report = this->report();
  ASSERT_FALSE(report.outcome.denials.empty());
  EXPECT_LE(report.outcome.denials.size(), Outcome::kDenialsMax);
  EXPECT_NE(report.outcome.denials.front().tool, "");
  EXPECT_NE(report.outcome.denials.front().allow, "");
}

TEST_P(DriverSuite, a_conversation_is_published_and_part_of_the_outcome) {
  if (!abilities().conversations) GTEST_SKIP() << "it has no conversations";
  begin(Scenario::answers);
  const auto report = this->report();
  ASSERT_GE(context_.count_of(Kind::conversation), 1U);
  EXPECT_NE(report.outcome.conversation, "");
  std::string last;
  for (const domain::WorkUpdate& update : context_.others) {
    if (update.kind == Kind::conversation) last = update.text;
  }
  EXPECT_EQ(last, report.outcome.conversation);
}

TEST_P(DriverSuite, a_conversation_in_the_store_is_continued_after_its_last_message) {
  if (!abilities().keeps_messages) GTEST_SKIP() << "its agent keeps the conversation";
  begin(Scenario::uses_tool);
  const std::string text = report().outcome.text;
  const std::vector<std::string> whole = context_.kept;
  ASSERT_GE(whole.size(), 2U);
  context_.kept.pop_back();  // as if the node had died before the last message was stored
  context_.over = false;
  context_.others.clear();
  domain::WorkOrder order = subject_->order(Scenario::uses_tool);
  order.conversation = order.spec.invocation.conversation = "11111111-0000-4000-8000-000000000001";
  begin(std::move(order));
  const auto continued = run();
  ASSERT_TRUE(continued && *continued);
  EXPECT_EQ((**continued)->outcome.text, text);
  EXPECT_EQ(context_.kept, whole);
  EXPECT_EQ(context_.count_of(Kind::tool), 0U) << "the tool was called before";
}

TEST_P(DriverSuite, a_chosen_conversation_that_never_began_is_distinguished_from_a_failure) {
  if (!abilities().chooses_conversation) GTEST_SKIP() << "its conversations can't be chosen before they begin";
  domain::WorkOrder order = subject_->order(Scenario::never_resumes);
  order.conversation = order.spec.invocation.conversation = "11111111-0000-4000-8000-000000000001";
  order.conversation_may_not_exist = true;
  begin(std::move(order));
  EXPECT_TRUE(report().conversation_missing);
}

TEST_P(DriverSuite, a_chosen_conversation_is_the_same_for_the_same_attempt) {
  domain::WorkOrder order = subject_->order(Scenario::answers);
  const std::string chosen = subject_->driver().choose_conversation(order);
  EXPECT_EQ(chosen.empty(), !abilities().chooses_conversation);
  EXPECT_EQ(subject_->driver().choose_conversation(order), chosen);
  ++order.fence.value;
  if (!chosen.empty()) EXPECT_NE(subject_->driver().choose_conversation(order), chosen);
}

TEST_P(DriverSuite, continues_a_conversation_if_its_descriptor_says_so) {
  const domain::DriverDescriptor* const descriptor = domain::find_driver(GetParam().name);
  if (descriptor == nullptr) GTEST_SKIP() << "it is no driver of the program";
  EXPECT_EQ(abilities().conversations, descriptor->resumes);
}

constexpr std::array kImplementations{
    Implementation{"command", make_command_driver}, Implementation{"claude", make_claude_driver},
    Implementation{"codex", make_codex_driver},     Implementation{"gemini", make_gemini_driver},
    Implementation{"llm", make_llm_driver},         Implementation{"scripted_llm", make_scripted_llm}};

TEST(DriverSuiteTable, every_driver_of_the_program_is_in_the_suite) {
  for (const domain::DriverDescriptor& driver : domain::kDrivers) {
    const auto found = std::ranges::find(kImplementations, driver.name, &Implementation::name);
    EXPECT_NE(found, kImplementations.end()) << driver.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Drivers, DriverSuite, testing::ValuesIn(kImplementations),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stint::conformance
