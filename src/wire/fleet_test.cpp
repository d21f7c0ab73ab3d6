// Every field survives a round trip through JSON.
#include "wire/fleet.hpp"

#include "wire/fleet_read.hpp"
#include "wire/problem.hpp"
#include "wire/values.hpp"

#include <gtest/gtest.h>

namespace stint::wire {
namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::RunState;

WallTime at(std::int64_t ms) { return WallTime(std::chrono::milliseconds(ms)); }

/// A run with a value in every field that is written.
engine::RunView run_view() {
  engine::RunView view;
  store::Run& run = view.run;
  run.id = "abcdefghijkl";
  run.agent = "review";
  run.session = "s";
  run.parent = "parent";
  run.key = "k";
  run.state = RunState::parked;
  run.hold = Hold::quota;
  run.stop = domain::Stop::expired;
  run.error = "a \"wrong\" thing";
  run.attempt = 2;
  run.lost = 1;
  run.fence = store::Fence{5};
  run.seq = 17;
  run.on_crash = domain::OnCrash::rerun;
  run.created_at = at(1);
  run.started_at = at(2);
  run.finished_at = at(3);
  run.not_before = at(4);
  run.deadline = at(5);
  run.expires_at = at(6);
  run.result = "{}";
  view.carried_by = "worker-003";
  view.input.title = "A title";
  view.input.prompt = "do";
  view.input.driver = "claude";
  view.input.model = "opus";
  view.input.retry_of = "before";
  view.input.trace = "0af7651916cd43dd8448eb211c80319c";
  view.input.args = {{"one", {"1"}}, {"many", {"a", "b"}}};
  view.input.budget = {.time = 1h, .attempts = 2, .tokens = 3, .cost_micros = 4};
  view.memo.last = OutcomeKind::succeeded;
  view.memo.text = "the answer";
  view.memo.conversation = "c-1";
  view.memo.denials = {{"Bash", "rm", "allow it"}};
  view.memo.processes_ended = 3;
  view.memo.streams_closed = 4;
  view.memo.ending = 5ms;
  view.memo.usage = {.fresh_in = 1, .cache_read = 2, .cache_write = 3, .out = 4, .reasoning = 5, .cost_micros = 6};
  view.memo.usage.estimated = true;
  return view;
}

engine::LimitView limit_view() {
  engine::LimitView limit;
  limit.name = "gpu";
  limit.home = "host";
  limit.capacity = 2;
  limit.held = limit.waiting = 1;
  limit.paused = true;
  limit.paused_until = at(9);
  limit.holders = {
      {.run = "abcdefghijkl", .agent = "review", .label = "review", .pid = 3, .weight = 2, .since = at(4)}};
  limit.line = {{.label = "plan", .pid = 4, .place = 1}, {}};
  return limit;
}

engine::FleetHealth pool_health() {
  engine::FleetHealth health;
  health.draining = true;
  health.pool_size = 3;
  health.target_size = 4;
  health.bounds = {2, 50};
  health.queue_size = 5;
  health.queue_capacity = 200;
  health.queues = {{"plan", 0, 100}, {"review", 5, 100}};
  health.queue_fullness = 0.5;
  health.utilization = 0.25;
  health.total_completed = 6;
  health.total_failed = 7;
  health.total_cancelled = 8;
  health.stale_workers = 1;
  WorkerHealth busy;
  busy.id.number = 12;
  busy.state = WorkerState::busy;
  busy.completed = 1;
  busy.failed = 2;
  busy.cancelled = 3;
  busy.avg_time = 1500ms;
  busy.last_heartbeat_ago = 250ms;
  busy.stale = true;
  busy.job = JobId{};
  busy.job_label = "abcdefghijkl";
  busy.job_running_for = 750ms;
  health.workers = {busy, WorkerHealth{}};
  return health;
}

/// Reading and writing again gives the same text, which differs from that of an empty value.
template <class Read, class Value, class... More>
void expect_round_trip(Read read, const Value& value, const More&... more) {
  const std::string text = to_json(value, more...);
  const auto back = read(text);
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(to_json(*back, more...), text);
}

TEST(FleetJson, a_run_comes_back_whole) {
  expect_round_trip(read_run, run_view());
  engine::RunView bare;
  bare.run.id = "x";
  expect_round_trip(read_run, bare);
  const engine::RunView back = *read_run(to_json(run_view()));
  EXPECT_EQ(back.input.budget, run_view().input.budget);
  EXPECT_EQ(back.input.args, run_view().input.args);
  EXPECT_EQ(back.run.expires_at, at(6));
  EXPECT_EQ(back.memo.ending, 5ms);
}

TEST(FleetJson, every_state_and_hold_comes_back) {
  for (const RunState state : domain::kRunStates) {
    engine::RunView view = run_view();
    view.run.state = state;
    EXPECT_EQ(read_run(to_json(view))->run.state, state);
  }
  for (const Hold hold : {Hold::none, Hold::session, Hold::delay, Hold::backoff, Hold::quota, Hold::person}) {
    engine::RunView view = run_view();
    view.run.hold = hold;
    EXPECT_EQ(read_run(to_json(view))->run.hold, hold);
  }
}

TEST(FleetJson, a_page_of_runs_has_the_next_cursor) {
  const std::string text = to_json(std::vector{run_view(), run_view()}, "17");
  const auto page = read_runs(text);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->next, "17");
  EXPECT_EQ(to_json(page->runs, page->next), text);
  EXPECT_EQ(read_runs(to_json(std::vector<engine::RunView>(), ""))->next, "");
}

TEST(FleetJson, events_come_back_with_their_notes) {
  store::Event event;
  event.run = "abcdefghijkl";
  event.seq = 3;
  event.fence = store::Fence{2};
  event.cause = "park";
  event.state = RunState::parked;
  event.hold = Hold::person;
  event.node = store::NodeNumber{4};
  event.error = "login";
  event.data = R"({"text":"x"})";
  event.at = at(5);
  const std::string text = to_json(std::vector{event, store::Event{}}, "cursor");
  const auto page = read_events(text);
  ASSERT_TRUE(page);
  EXPECT_EQ(to_json(page->events, page->cursor), text);
  EXPECT_EQ(page->events[0].data, event.data);
}

TEST(FleetJson, reasons_receipts_agents_limits_and_outputs_come_back) {
  engine::WhyView why{"x", RunState::queued, {}};
  for (const domain::WaitCause cause : domain::kWaitCauses) why.reasons.push_back({.cause = cause, .detail = "d"});
  why.reasons.push_back({.cause = domain::WaitCause::limit,
                         .limit = "gpu",
                         .capacity = 2,
                         .held = 2,
                         .weight = 2,
                         .holders = limit_view().holders,
                         .ahead = 0,
                         .indirect = true});
  why.reasons.push_back({.cause = domain::WaitCause::turn, .limit = "gpu", .turn_of = "big", .until = at(3)});
  why.reasons.push_back({.cause = domain::WaitCause::session, .behind = "abc", .behind_state = RunState::running});
  why.reasons.push_back({.cause = domain::WaitCause::probe, .limit = "account:x", .ramp = 1});
  why.reasons.push_back({.cause = domain::WaitCause::place, .place = 7});
  why.reasons.push_back({.cause = domain::WaitCause::ending, .beyond = "pid 7 (sleep)", .detail = "d"});
  domain::LimitEntry odd{.label = "train", .pid = 7};
  odd.user = "eve";
  odd.other_container = odd.swept = odd.unjudged = true;
  odd.counts_to = 3;
  why.reasons.push_back({.cause = domain::WaitCause::limit, .limit = "gpu", .holders = {odd}});
  using Kind = domain::Shortage::Kind;
  why.reasons.push_back({.cause = domain::WaitCause::shortage,
                         .shortage = domain::Shortage{.kind = Kind::memory, .amount = 1, .bound = 2}});
  expect_round_trip(read_why, why);
  EXPECT_EQ(read_why(to_json(why))->reasons, why.reasons);
  const auto newer = read_why(R"({"id":"x","state":"queued","reasons":[{"reason":"moon"}]})");
  ASSERT_TRUE(newer) << "a newer daemon may have more reasons";
  EXPECT_EQ(newer->reasons.front().detail, "moon");
  engine::Receipt receipt;
  receipt.run = run_view();
  receipt.reached = {"below"};
  receipt.time = 12ms;
  expect_round_trip(read_receipt, receipt);
  engine::AgentView agent{"review", "Reviews", "claude", "review PR", "not trusted", 3, {{"gpu", 2}}};
  expect_round_trip(read_agents, std::vector{agent, engine::AgentView{}});
  expect_round_trip(read_limits, std::vector{limit_view(), engine::LimitView{}});
  expect_round_trip(read_output, store::Output{"head", "tail", 100});
  expect_round_trip(read_submitted, engine::Submitted{"x", false}, RunState::queued);
  expect_round_trip(read_submitted, engine::Submitted{"x", true}, RunState::queued);
  EXPECT_EQ(*read_resolved(resolved_to_json("x", RunState::succeeded)), RunState::succeeded);
  EXPECT_EQ(*read_resumed(resumed_to_json(3)), 3U);
}

TEST(FleetJson, the_pool_and_the_fleet_come_back) {
  expect_round_trip(read_health, pool_health());
  expect_round_trip(read_health, engine::FleetHealth{});
  engine::FleetStatus status;
  for (const engine::Phase phase : {engine::Phase::starting, engine::Phase::serving, engine::Phase::finishing,
                                    engine::Phase::handing_back, engine::Phase::stopped}) {
    status.phase = phase;
    expect_round_trip(read_status, status);
  }
  status.version = "1";
  status.store = "somewhere";
  status.pool = pool_health();
  status.stats.runs = {{RunState::queued, 3}, {RunState::in_doubt, 1}};
  status.stats.ready = 2;
  status.stats.nodes = 1;
  status.queue_capacity = 200;
  status.limits = {limit_view()};
  status.limits.front().holders = status.limits.front().line = {};  // a status has summaries
  status.shortage = domain::Shortage{.kind = domain::Shortage::Kind::checkout, .path = "/gone"};
  status.cost_micros_today = 5;
  status.tokens_today = 6;
  status.cost_micros_per_day = 7;
  expect_round_trip(read_status, status);
}

TEST(FleetJson, an_invalid_answer_is_refused) {
  for (const std::string text : {"", "<html>", "[]", "{}", R"({"id":1})", R"({"id":"x","state":"flying"})"}) {
    EXPECT_FALSE(read_run(text)) << text;
    EXPECT_FALSE(read_runs(text)) << text;
    EXPECT_FALSE(read_events(text)) << text;
    EXPECT_FALSE(read_why(text)) << text;
    EXPECT_FALSE(read_receipt(text)) << text;
    EXPECT_FALSE(read_agents(text)) << text;
    EXPECT_FALSE(read_limits(text)) << text;
    EXPECT_FALSE(read_health(text)) << text;
    EXPECT_FALSE(read_status(text)) << text;
  }
  EXPECT_FALSE(read_submitted("{}"));
}

TEST(FleetJson, a_problem_is_read_as_it_was_written) {
  const ReadProblem read =
      read_problem(to_json(ProblemText{.type = "about:blank", .title = "t", .detail = "no x", .list = "/v1/agents"}));
  EXPECT_EQ(read.detail, "no x");
  EXPECT_EQ(read.list, "/v1/agents");
  const std::string without = to_json(ProblemText{.type = "", .title = "t", .detail = ""});
  EXPECT_EQ(without.find("list"), std::string::npos);
  EXPECT_EQ(read_problem(without).detail, "t");
  EXPECT_EQ(read_problem("<html>").detail, "");
}

TEST(FleetJson, a_submission_arrives_as_it_was_sent) {
  engine::Submission submission;
  submission.agent = "review";
  submission.words = {"42", "focus=x"};
  submission.session = "s";
  submission.parent = "p";
  submission.priority = -3;
  submission.budget = {.time = 1h, .attempts = 2, .tokens = 3, .cost_micros = 4};
  submission.deadline = 5s;
  submission.delay = 6s;
  submission.driver = "codex";
  submission.model = "m";
  submission.one_budget = "gggggggggggg";
  const auto read = read_submit(submit_to_json(submission));
  ASSERT_TRUE(read) << read.error().describe();
  EXPECT_EQ(read->submission.one_budget, submission.one_budget);
  EXPECT_EQ(read->submission.agent, "review");
  EXPECT_EQ(read->submission.words, submission.words);
  EXPECT_EQ(read->submission.session, "s");
  EXPECT_EQ(read->submission.parent, "p");
  EXPECT_EQ(read->submission.priority, -3);
  EXPECT_EQ(read->submission.budget, submission.budget);
  EXPECT_EQ(read->submission.deadline, Duration(5s));
  EXPECT_EQ(read->submission.delay, Duration(6s));
  EXPECT_EQ(read->submission.driver, "codex");
  EXPECT_EQ(read->submission.model, "m");
  engine::Submission named;
  named.agent = "review";
  named.args = {{"pr", {"1"}}, {"tags", {"a", "b"}}};
  EXPECT_EQ(read_submit(submit_to_json(named))->submission.args, named.args);
  engine::Submission prompt;
  prompt.prompt = "do";
  EXPECT_EQ(read_submit(submit_to_json(prompt))->submission.prompt, "do");
  EXPECT_FALSE(read_submit(R"({"agent":"a","words":[1]})"));
  EXPECT_FALSE(read_submit(R"({"agent":"a","words":["x"],"args":{"y":"z"}})"));
}

TEST(FleetJson, an_invalid_budget_is_refused_by_field) {
  const auto refusal = [](const std::string& budget) {
    const auto read = read_submit(R"({"agent":"a","budget":)" + budget + "}");
    return read ? std::string() : std::string(read.error().what());
  };
  EXPECT_EQ(refusal(R"({"time":"1h"})"),
            "budget has no field 'time'; allowed: time_ms, attempts, tokens, cost and cost_micros");
  EXPECT_EQ(refusal(R"({"cost":"2.5"})"), "budget.cost must be a number of at least 0");
  EXPECT_EQ(refusal(R"({"tokens":2.5})"), "budget.tokens must be a whole number of at least 0");
  EXPECT_EQ(refusal(R"({"cost":2.5})"), "");
  EXPECT_EQ(refusal(R"({"cost":2.5,"cost_micros":7})"),
            "budget.cost and budget.cost_micros are the same value in two units: send one of them");
}

TEST(FleetJson, short_answers_are_json_for_any_text) {
  std::vector<std::string> texts = {"", "x", "two\nlines \"quoted\" C:\\path", "aä€😀", "a\xff b\xE2\x82"};
  for (int byte = 0; byte < 256; ++byte) texts.push_back("before" + std::string(1, static_cast<char>(byte)) + "after");
  for (const std::string& text : texts) {
    EXPECT_EQ(short_success(text), json::serialize(json::object{{"status", "success"}, {"result", text_value(text)}}));
    EXPECT_EQ(short_error(text), json::serialize(json::object{{"status", "error"}, {"error", text_value(text)}}));
    EXPECT_EQ(short_refusal(text), json::serialize(json::object{{"detail", text_value(text)}}));
  }
}

TEST(FleetJson, other_requests_arrive_as_they_were_sent) {
  for (const domain::Resolution how : domain::kResolutions) EXPECT_EQ(*read_resolve(resolve_to_json(how)), how);
  const auto scale = read_scale(scale_to_json({.workers = 3, .min = 1, .max = 9}));
  ASSERT_TRUE(scale);
  EXPECT_EQ(scale->workers, 3U);
  EXPECT_EQ(scale->min, 1U);
  EXPECT_EQ(scale->max, 9U);
  EXPECT_EQ(*read_capacity(capacity_to_json(4)), 4U);
  EXPECT_FALSE(read_capacity(capacity_to_json(0))) << "only a pause stops a limit";
  EXPECT_EQ(*read_length(pause_to_json(3s), "for_ms"), std::optional<Duration>(3s));
  EXPECT_EQ(read_drain(drain_to_json({}))->timeout, std::nullopt);
  EXPECT_FALSE(read_drain(drain_to_json({.timeout = 4s}))->hurry);
  EXPECT_EQ(read_drain(drain_to_json({.timeout = 4s}))->timeout, std::optional<Duration>(4s));
  EXPECT_TRUE(read_drain(drain_to_json({.timeout = {}, .hurry = true}))->hurry);
  EXPECT_FALSE(read_drain(R"({"hurry": 1})"));
}

}  // namespace
}  // namespace stint::wire
