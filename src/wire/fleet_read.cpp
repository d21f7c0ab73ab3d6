#include "wire/fleet_read.hpp"

#include "wire/time_text.hpp"
#include "wire/values.hpp"

#include <charconv>

namespace stint::wire {
namespace {

using domain::RunState;

Error not_ours(const std::string& what) {
  return {Errc::failed, "this is not an answer of a daemon of this version: " + what};
}

Result<json::object> open(std::string_view text) {
  auto object = parse_object(text);
  if (!object) return fail(not_ours(object.error().describe()));
  return object;
}

/// Null: no member of that name.
const json::array* list_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_array();
}

/// Reads each object of a list with `read`.
template <class Read>
auto read_list(const json::object& object, std::string_view name, Read read)
    -> Result<std::vector<typename std::invoke_result_t<Read&, const json::object&>::value_type>> {
  std::vector<typename std::invoke_result_t<Read&, const json::object&>::value_type> out;
  const json::array* const list = list_at(object, name);
  if (list == nullptr) return fail(not_ours("it has no list '" + std::string(name) + "'"));
  for (const json::value& each : *list) {
    if (!each.is_object()) return fail(not_ours("an item of '" + std::string(name) + "' is not an object"));
    STINT_TRY(auto value, read(each.get_object()));
    out.push_back(std::move(value));
  }
  return out;
}

/// The same; empty if there is no such list.
template <class Read>
auto read_list_if_any(const json::object& object, std::string_view name, Read read)
    -> decltype(read_list(object, name, read)) {
  if (!object.contains(name)) return {};
  return read_list(object, name, read);
}

template <class Number>
Number count_at(const json::object& object, std::string_view name) {
  return static_cast<Number>(std::max<std::int64_t>(0, number_at(object, name)));
}

double real_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

Duration seconds_at(const json::object& object, std::string_view name) {
  constexpr double kMost = 1e9;  // seconds: a larger value is an error
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(real_at(object, name), 0.0, kMost)));
}

Result<RunState> state_at(const json::object& object, std::string_view name) {
  const std::string text = text_at(object, name);
  const auto state = domain::parse_run_state(text);
  if (!state) return fail(not_ours("there is no state '" + text + "'"));
  return *state;
}

template <class Value, std::size_t N>
Value one_of(const std::array<Value, N>& values, const std::string& name, Value fallback) {
  for (const Value value : values) {
    if (to_string(value) == name) return value;
  }
  return fallback;
}

void read_submission(const json::object& object, domain::RunInput& input) {
  input.title = text_at(object, "title");
  input.prompt = text_at(object, "prompt");
  input.driver = text_at(object, "driver");
  input.model = text_at(object, "model");
  input.retry_of = text_at(object, "retry_of");
  input.trace = text_at(object, "trace");
  if (const json::value* const args = object.if_contains("args")) {
    if (auto read = read_args(*args)) input.args = std::move(*read);
  }
  if (const json::value* const budget = object.if_contains("budget")) {
    if (auto read = read_budget(*budget)) input.budget = *read;
  }
}

void read_memo(const json::object& object, engine::RunView& view) {
  domain::RunMemo& memo = view.memo;
  if (const json::value* const usage = object.if_contains("usage")) memo.usage = read_usage(*usage);
  if (!object.contains("outcome")) return;
  view.run.result = "{}";  // the answer has only the memo, not the result itself
  memo.last = parse_outcome_kind(text_at(object, "outcome")).value_or(OutcomeKind::crashed);
  memo.text = text_at(object, "result");
  memo.conversation = text_at(object, "conversation");
  if (const json::value* const denials = object.if_contains("denials")) memo.denials = read_denials(*denials);
  memo.processes_ended = count_at<std::uint32_t>(object, "processes_ended");
  memo.streams_closed = count_at<std::uint32_t>(object, "streams_closed");
  memo.ending = std::chrono::milliseconds(number_at(object, "ending_ms"));
  memo.permits_returned = texts_at(object, "permits_returned");
  memo.permits_held = texts_at(object, "permits_held");
}

Result<engine::RunView> run_of(const json::object& object) {
  using domain::OnCrash;
  engine::RunView view;
  store::Run& run = view.run;
  run.id = text_at(object, "id");
  if (run.id.empty()) return fail(not_ours("a run has no id"));
  run.agent = text_at(object, "agent");
  STINT_TRY(run.state, state_at(object, "state"));
  run.hold = domain::parse_hold(text_at(object, "hold")).value_or(domain::Hold::none);
  run.stop = one_of(domain::kStops, text_at(object, "stop"), domain::Stop::none);
  run.session = text_at(object, "session");
  run.parent = text_at(object, "parent");
  run.key = text_at(object, "key");
  run.error = text_at(object, "error");
  run.attempt = count_at<std::uint32_t>(object, "attempt");
  run.lost = count_at<std::uint32_t>(object, "lost");
  run.fence = domain::Fence{number_at(object, "fence")};
  run.seq = number_at(object, "seq");
  run.on_crash =
      one_of(std::array{OnCrash::resume, OnCrash::rerun, OnCrash::doubt}, text_at(object, "on_crash"), OnCrash::doubt);
  run.created_at = time_at(object, "created_at").value_or(WallTime());
  run.started_at = time_at(object, "started_at");
  run.finished_at = time_at(object, "finished_at");
  run.not_before = time_at(object, "not_before_at");
  run.deadline = time_at(object, "deadline_at");
  run.expires_at = time_at(object, "expires_at");
  if (object.contains("worker")) view.carried_by = text_at(object, "worker");
  read_submission(object, view.input);
  read_memo(object, view);
  return view;
}

Result<store::Event> event_of(const json::object& object) {
  store::Event event;
  event.run = text_at(object, "run");
  event.seq = number_at(object, "seq");
  event.fence = domain::Fence{number_at(object, "fence")};
  event.cause = text_at(object, "cause");
  event.at = time_at(object, "at").value_or(WallTime());
  if (object.contains("state")) {
    STINT_TRY(event.state, state_at(object, "state"));
  }
  event.hold = domain::parse_hold(text_at(object, "hold")).value_or(domain::Hold::none);
  event.node = domain::number_of<domain::NodeNumber>(maybe_number_at(object, "node"));
  event.error = text_at(object, "error");
  if (const json::value* const data = object.if_contains("data")) event.data = json::serialize(*data);
  return event;
}

Result<domain::LimitEntry> entry_of(const json::object& object) {
  domain::LimitEntry entry;
  entry.run = text_at(object, "run");
  entry.agent = text_at(object, "agent");
  entry.label = text_at(object, "label");
  entry.pid = maybe_number_at(object, "pid");
  entry.weight = count_at<std::uint32_t>(object, "weight");
  entry.since = time_at(object, "since_at");
  if (const auto place = maybe_number_at(object, "place")) entry.place = static_cast<std::uint32_t>(*place);
  entry.user = text_at(object, "user");
  entry.title = text_at(object, "title");
  entry.other_container = flag_at(object, "other_container");
  entry.swept = flag_at(object, "swept");
  entry.unjudged = flag_at(object, "unjudged");
  if (const auto counts = maybe_number_at(object, "counts_to")) entry.counts_to = static_cast<std::uint32_t>(*counts);
  return entry;
}

std::optional<domain::Shortage> shortage_at(const json::object& object) {
  const json::value* const value = object.if_contains("shortage");
  const json::object* const shortage = value == nullptr ? nullptr : value->if_object();
  if (shortage == nullptr) return std::nullopt;
  return domain::Shortage{
      .kind = domain::parse_shortage_kind(text_at(*shortage, "kind")).value_or(domain::Shortage::Kind::memory),
      .amount = number_at(*shortage, "amount"),
      .bound = number_at(*shortage, "bound"),
      .path = text_at(*shortage, "path")};
}

template <class Number>
std::optional<Number> maybe_count_at(const json::object& object, std::string_view name) {
  if (!maybe_number_at(object, name)) return std::nullopt;
  return count_at<Number>(object, name);
}

Result<domain::WaitReason> reason_of(const json::object& object) {
  const std::string name = text_at(object, "reason");
  domain::WaitReason reason;
  reason.cause = domain::parse_wait_cause(name).value_or(domain::WaitCause::other);
  reason.limit = text_at(object, "limit");
  reason.capacity = maybe_count_at<std::uint32_t>(object, "capacity");
  reason.held = number_at(object, "held");
  reason.weight = maybe_count_at<std::uint32_t>(object, "weight").value_or(1);
  STINT_TRY(reason.holders, read_list_if_any(object, "holders", entry_of));
  reason.ahead = maybe_count_at<std::uint32_t>(object, "ahead");
  reason.indirect = flag_at(object, "indirect");
  reason.ramp = maybe_count_at<std::uint32_t>(object, "ramp");
  reason.turn_of = text_at(object, "turn_of");
  reason.behind = text_at(object, "behind");
  reason.behind_state = domain::parse_run_state(text_at(object, "behind_state"));
  reason.place = maybe_number_at(object, "place");
  reason.until = time_at(object, "until_at");
  reason.shortage = shortage_at(object);
  reason.beyond = text_at(object, "beyond");
  reason.detail = text_at(object, "detail");
  if (reason.cause == domain::WaitCause::other && reason.detail.empty()) reason.detail = name;
  return reason;
}

Result<engine::LimitView> limit_of(const json::object& object) {
  engine::LimitView limit;
  limit.name = text_at(object, "name");
  limit.home = text_at(object, "home");
  if (const auto capacity = maybe_number_at(object, "capacity")) limit.capacity = static_cast<std::uint32_t>(*capacity);
  limit.held = number_at(object, "held");
  limit.waiting = count_at<std::uint64_t>(object, "waiting");
  STINT_TRY(limit.holders, read_list_if_any(object, "holders", entry_of));
  STINT_TRY(limit.line, read_list_if_any(object, "line", entry_of));
  limit.paused = flag_at(object, "paused");
  limit.paused_until = time_at(object, "paused_until_at");
  return limit;
}

Result<WorkerHealth> worker_of(const json::object& object) {
  WorkerHealth worker;
  const std::string id = text_at(object, "id");
  const auto digits = id.find_first_of("0123456789");
  if (digits == std::string::npos) return fail(not_ours("there is no worker '" + id + "'"));
  std::from_chars(id.data() + digits, id.data() + id.size(), worker.id.number);
  worker.state = one_of(std::array{WorkerState::idle, WorkerState::busy, WorkerState::draining, WorkerState::stopped},
                        text_at(object, "state"), WorkerState::idle);
  worker.completed = count_at<std::uint64_t>(object, "completed");
  worker.failed = count_at<std::uint64_t>(object, "failed");
  worker.cancelled = count_at<std::uint64_t>(object, "cancelled");
  worker.avg_time = seconds_at(object, "avg_time");
  worker.last_heartbeat_ago = seconds_at(object, "last_heartbeat_ago");
  worker.stale = flag_at(object, "stale");
  const json::value* const job = object.if_contains("current_run");
  if (job != nullptr && job->is_string()) {
    worker.job = JobId{};
    worker.job_label = std::string(job->get_string());
    worker.job_running_for = seconds_at(object, "running_for");
  }
  return worker;
}

Result<engine::FleetHealth> health_of(const json::object& object) {
  engine::FleetHealth health;
  health.pool_size = count_at<std::size_t>(object, "pool_size");
  health.target_size = count_at<std::size_t>(object, "target_size");
  health.queue_size = count_at<std::size_t>(object, "queue_size");
  health.queue_capacity = count_at<std::size_t>(object, "queue_capacity");
  health.utilization = real_at(object, "utilization");
  health.total_completed = count_at<std::uint64_t>(object, "total_completed");
  health.total_failed = count_at<std::uint64_t>(object, "total_failed");
  health.total_cancelled = count_at<std::uint64_t>(object, "total_cancelled");
  health.stale_workers = count_at<std::size_t>(object, "stale_workers");
  health.draining = flag_at(object, "draining");
  if (object.contains("min") && object.contains("max")) {
    health.bounds.emplace(count_at<std::size_t>(object, "min"), count_at<std::size_t>(object, "max"));
  }
  health.queue_fullness = real_at(object, "queue_fullness");
  if (list_at(object, "queues") != nullptr) {
    const auto queue_of = [](const json::object& queue) -> Result<store::QueueState> {
      return store::QueueState{text_at(queue, "agent"), count_at<std::uint64_t>(queue, "size"),
                               count_at<std::uint64_t>(queue, "capacity")};
    };
    STINT_TRY(health.queues, read_list(object, "queues", queue_of));
  }
  STINT_TRY(health.workers, read_list(object, "workers", worker_of));
  return health;
}

Result<engine::AgentView> agent_of(const json::object& object) {
  engine::AgentView agent;
  agent.name = text_at(object, "name");
  agent.description = text_at(object, "description");
  agent.driver = text_at(object, "driver");
  agent.usage = text_at(object, "usage");
  agent.refused = text_at(object, "refused");
  if (const auto most = maybe_number_at(object, "max_concurrency")) {
    agent.max_concurrency = static_cast<std::uint32_t>(*most);
  }
  const auto use_of = [](const json::object& use) -> Result<store::LimitUse> {
    return store::LimitUse{text_at(use, "name"), count_at<std::uint32_t>(use, "weight")};
  };
  STINT_TRY(agent.limits, read_list(object, "limits", use_of));
  return agent;
}

json::object length_value(std::string_view name, std::optional<Duration> length) {
  json::object object;
  if (length) object[name] = to_ms(*length);
  return object;
}

}  // namespace

Result<engine::RunView> read_run(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  return run_of(object);
}

Result<engine::RunPage> read_runs(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  engine::RunPage page;
  STINT_TRY(page.runs, read_list(object, "runs", run_of));
  page.next = text_at(object, "next");
  if (const json::value* const total = object.if_contains("total"); total != nullptr && total->is_object()) {
    const json::object& counted = total->get_object();
    page.total = {.count = static_cast<std::uint64_t>(number_at(counted, "count")), .exact = flag_at(counted, "exact")};
  }
  return page;
}

Result<store::FeedPage> read_events(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  store::FeedPage page;
  STINT_TRY(page.events, read_list(object, "events", event_of));
  page.cursor = text_at(object, "next");
  return page;
}

Result<engine::WhyView> read_why(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  engine::WhyView why;
  why.run = text_at(object, "id");
  STINT_TRY(why.state, state_at(object, "state"));
  STINT_TRY(why.reasons, read_list(object, "reasons", reason_of));
  return why;
}

Result<engine::Receipt> read_receipt(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  engine::Receipt receipt;
  receipt.run.run.id = text_at(object, "id");
  STINT_TRY(receipt.run.run.state, state_at(object, "state"));
  domain::RunMemo& memo = receipt.run.memo;
  memo.processes_ended = count_at<std::uint32_t>(object, "processes_ended");
  memo.streams_closed = count_at<std::uint32_t>(object, "streams_closed");
  memo.ending = std::chrono::milliseconds(number_at(object, "ending_ms"));
  receipt.permits_returned = texts_at(object, "permits_returned");
  receipt.permits_held = texts_at(object, "permits_held");
  receipt.time = std::chrono::milliseconds(number_at(object, "took_ms"));
  receipt.reached = texts_at(object, "reached");
  return receipt;
}

Result<engine::Submitted> read_submitted(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  engine::Submitted submitted{text_at(object, "id"), flag_at(object, "created")};
  if (submitted.id.empty()) return fail(not_ours("a run has no id"));
  return submitted;
}

Result<std::vector<engine::AgentView>> read_agents(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  return read_list(object, "agents", agent_of);
}

Result<std::vector<engine::LimitView>> read_limits(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  return read_list(object, "limits", limit_of);
}

Result<engine::FleetHealth> read_health(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  return health_of(object);
}

Result<engine::FleetStatus> read_status(std::string_view text) {
  using engine::Phase;
  STINT_TRY(const json::object object, open(text));
  engine::FleetStatus status;
  status.phase =
      one_of(std::array{Phase::starting, Phase::serving, Phase::finishing, Phase::handing_back, Phase::stopped},
             text_at(object, "phase"), Phase::stopped);
  status.version = text_at(object, "version");
  status.store = text_at(object, "store");
  const json::value* const states = object.if_contains("runs");
  if (states == nullptr || !states->is_object()) return fail(not_ours("it has no counts of runs"));
  for (const RunState state : domain::kRunStates) {
    const auto count = count_at<std::uint64_t>(states->get_object(), to_string(state));
    if (count > 0) status.stats.runs[state] = count;
  }
  status.stats.ready = count_at<std::uint64_t>(object, "ready");
  status.stats.nodes = count_at<std::uint64_t>(object, "nodes");
  status.queue_capacity = count_at<std::uint64_t>(object, "queue_capacity");
  STINT_TRY(status.limits, read_list(object, "limits", limit_of));
  status.cost_micros_today = number_at(object, "cost_micros_today");
  status.tokens_today = number_at(object, "tokens_today");
  status.shortage = shortage_at(object);
  status.cost_micros_per_day = maybe_number_at(object, "cost_micros_per_day");
  const json::value* const pool = object.if_contains("pool");
  if (pool != nullptr && pool->is_object()) {
    STINT_TRY(status.pool, health_of(pool->get_object()));
  }
  return status;
}

Result<store::Output> read_output(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  return store::Output{text_at(object, "head"), text_at(object, "tail"), count_at<std::uint64_t>(object, "bytes")};
}

Result<RunState> read_resolved(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  return state_at(object, "state");
}

Result<std::uint64_t> read_resumed(std::string_view text) {
  STINT_TRY(const json::object object, open(text));
  return count_at<std::uint64_t>(object, "woken");
}

ReadProblem read_problem(std::string_view text) {
  const auto object = parse_object(text);
  if (!object) return {};
  ReadProblem problem{.detail = text_at(*object, "detail"), .list = text_at(*object, "list")};
  if (problem.detail.empty()) problem.detail = text_at(*object, "title");
  return problem;
}

// ---- requests ------------------------------------------------------------------------------------------------------

std::string submit_to_json(const engine::Submission& submission) {
  json::object object;
  const auto put = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) object[name] = text_value(text);
  };
  put("agent", submission.agent);
  put("prompt", submission.prompt);
  put("session", submission.session);
  put("parent", submission.parent);
  put("driver", submission.driver);
  put("model", submission.model);
  if (!submission.args.empty()) object["args"] = args_value(submission.args);
  if (!submission.words.empty()) {
    json::array words;
    for (const std::string& word : submission.words) words.push_back(text_value(word));
    object["words"] = std::move(words);
  }
  if (submission.priority) object["priority"] = *submission.priority;
  if (json::object budget = budget_value(submission.budget); !budget.empty()) object["budget"] = std::move(budget);
  put("one_budget", submission.one_budget);
  if (submission.deadline) object["deadline_ms"] = to_ms(*submission.deadline);
  if (submission.deadline_at) object["deadline"] = time_text(*submission.deadline_at);
  if (submission.delay > Duration::zero()) object["delay_ms"] = to_ms(submission.delay);
  if (submission.parent_waits) object["parent_waits"] = true;
  return json::serialize(object);
}

std::string resolve_to_json(domain::Resolution how) { return json::serialize(json::object{{"as", to_string(how)}}); }

std::string scale_to_json(const engine::ScaleRequest& scale) {
  json::object object;
  if (scale.workers) object["workers"] = *scale.workers;
  if (scale.min) object["min"] = *scale.min;
  if (scale.max) object["max"] = *scale.max;
  return json::serialize(object);
}

std::string capacity_to_json(std::uint32_t capacity) { return json::serialize(json::object{{"capacity", capacity}}); }

std::string pause_to_json(std::optional<Duration> length) { return json::serialize(length_value("for_ms", length)); }
std::string drain_to_json(const engine::DrainRequest& drain) {
  json::object object = length_value("timeout_ms", drain.timeout);
  if (drain.hurry) object["hurry"] = true;
  return json::serialize(object);
}

}  // namespace stint::wire
