#include "wire/fleet.hpp"

#include "wire/agent_values.hpp"
#include "wire/reason.hpp"
#include "wire/time_text.hpp"
#include "wire/timeline_value.hpp"
#include "wire/values.hpp"

#include <algorithm>

namespace stint::wire {
namespace {

using domain::RunState;

json::object run_value(const engine::RunView& view) {
  const store::Run& run = view.run;
  json::object object{{"id", text_value(run.id)},
                      {"agent", text_value(run.agent)},
                      {"state", to_string(run.state)},
                      {"title", text_value(view.input.title)},
                      {"attempt", run.attempt},
                      {"created_at", to_ms(run.created_at)},
                      {"started_at", maybe_time(run.started_at)},
                      {"finished_at", maybe_time(run.finished_at)},
                      {"usage", usage_value(view.memo.usage)}};
  if (run.hold != domain::Hold::none) object["hold"] = to_string(run.hold);
  if (run.stop != domain::Stop::none) object["stop"] = to_string(run.stop);
  if (!run.session.empty()) object["session"] = text_value(run.session);
  if (!run.parent.empty()) object["parent"] = text_value(run.parent);
  if (!run.key.empty()) object["key"] = text_value(run.key);
  if (!run.error.empty()) object["error"] = text_value(run.error);
  if (run.lost != 0) object["lost"] = run.lost;
  if (run.not_before) object["not_before_at"] = to_ms(*run.not_before);
  if (run.deadline) object["deadline_at"] = to_ms(*run.deadline);
  if (run.expires_at) object["expires_at"] = to_ms(*run.expires_at);
  object["on_crash"] = to_string(run.on_crash);
  if (view.carried_by) object["worker"] = text_value(*view.carried_by);
  return object;
}

json::object whole_run_value(const engine::RunView& view) {
  json::object object = run_value(view);
  object["fence"] = view.run.fence.value;
  object["seq"] = view.run.seq;
  object["args"] = args_value(view.input.args);
  if (!view.input.prompt.empty()) object["prompt"] = text_value(view.input.prompt);
  if (!view.input.driver.empty()) object["driver"] = text_value(view.input.driver);
  if (!view.input.model.empty()) object["model"] = text_value(view.input.model);
  if (!view.input.retry_of.empty()) object["retry_of"] = text_value(view.input.retry_of);
  if (!view.input.trace.empty()) object["trace"] = text_value(view.input.trace);
  if (json::object budget = budget_value(view.input.budget); !budget.empty()) object["budget"] = std::move(budget);
  if (view.run.result.empty()) return object;
  const domain::RunMemo& memo = view.memo;
  object["outcome"] = to_string(memo.last);
  object["result"] = text_value(memo.text);
  if (!memo.denials.empty()) object["denials"] = denials_value(memo.denials);
  if (!memo.conversation.empty()) object["conversation"] = text_value(memo.conversation);
  object["permits_returned"] = texts_value(memo.permits_returned);
  object["permits_held"] = texts_value(memo.permits_held);
  object["processes_ended"] = memo.processes_ended;
  object["streams_closed"] = memo.streams_closed;
  object["ending_ms"] = to_ms(memo.ending);
  return object;
}

json::object event_value(const store::Event& event) {
  json::object object{
      {"run", text_value(event.run)}, {"seq", event.seq}, {"cause", text_value(event.cause)}, {"at", to_ms(event.at)}};
  if (event.fence.value != 0) object["fence"] = event.fence.value;
  if (event.state) object["state"] = to_string(*event.state);
  if (event.hold != domain::Hold::none) object["hold"] = to_string(event.hold);
  if (event.node) object["node"] = event.node->value;
  if (!event.error.empty()) object["error"] = text_value(event.error);
  if (event.data.empty()) return object;
  boost::system::error_code error;
  json::value data = json::parse(event.data, error);
  object["data"] = error ? json::value(text_value(event.data)) : std::move(data);
  return object;
}

json::object limit_summary_value(const engine::LimitView& limit) {
  json::object object{{"name", text_value(limit.name)},
                      {"home", text_value(limit.home)},
                      {"held", limit.held},
                      {"waiting", limit.waiting},
                      {"paused", limit.paused}};
  object["capacity"] = limit.capacity ? json::value(*limit.capacity) : json::value(nullptr);
  if (limit.paused_until) object["paused_until_at"] = to_ms(*limit.paused_until);
  return object;
}

json::object limit_value(const engine::LimitView& limit) {
  json::object object = limit_summary_value(limit);
  json::array holders, line;
  for (const domain::LimitEntry& each : limit.holders) holders.push_back(entry_value(each));
  for (const domain::LimitEntry& each : limit.line) line.push_back(entry_value(each));
  object["holders"] = std::move(holders);
  object["line"] = std::move(line);
  return object;
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

json::object counts_value(const store::Stats& stats) {
  json::object states;
  for (const RunState state : domain::kRunStates) {
    const auto found = stats.runs.find(state);
    states[to_string(state)] = found == stats.runs.end() ? 0 : found->second;
  }
  return states;
}

json::array groups_value(const std::vector<store::WaitGroup>& groups) {
  json::array array;
  for (const store::WaitGroup& group : groups) {
    json::object object{
        {"reason", to_string(group.cause)}, {"runs", group.runs}, {"oldest_at", maybe_time(group.oldest)}};
    if (!group.limit.empty()) object["limit"] = text_value(group.limit);
    if (group.until) object["until_at"] = to_ms(*group.until);
    array.push_back(std::move(object));
  }
  return array;
}

json::array refused_value(const std::vector<engine::RefusedAgent>& agents) {
  json::array array;
  for (const engine::RefusedAgent& each : agents) {
    array.push_back(json::object{{"name", text_value(each.name)}, {"why", text_value(each.why)}});
  }
  return array;
}

json::object queue_value(const engine::FleetView& view) {
  const store::QueueSplit& queue = view.queue;
  std::uint64_t runs = queue.startable;
  for (const store::WaitGroup& group : queue.held) runs += group.runs;
  json::object object{{"runs", runs},
                      {"startable", queue.startable},
                      {"startable_oldest_at", maybe_time(queue.startable_oldest)},
                      {"oldest_at", maybe_time(queue.oldest)},
                      {"held", groups_value(queue.held)}};
  object["drain_ms"] = view.drain_in ? json::value(to_ms(*view.drain_in)) : json::value(nullptr);
  return object;
}

json::array nodes_value(const std::vector<store::NodeState>& nodes) {
  json::array array;
  for (const store::NodeState& node : nodes) {
    array.push_back(json::object{{"number", node.number.value},
                                 {"label", text_value(node.label)},
                                 {"kind", node.kind == store::NodeKind::any ? "any" : "one_run"},
                                 {"state", text_value(node.state)},
                                 {"last_beat_ms", to_ms(node.last_beat_ago)},
                                 {"runs", node.runs}});
  }
  return array;
}

json::array runs_value(const std::vector<engine::RunView>& runs) {
  json::array array;
  for (const engine::RunView& run : runs) array.push_back(run_value(run));
  return array;
}

json::object health_value(const engine::FleetHealth& health) {
  json::array workers;
  for (const WorkerHealth& worker : health.workers) {
    json::object object{{"id", to_string(worker.id)},
                        {"state", to_string(worker.state)},
                        {"completed", worker.completed},
                        {"failed", worker.failed},
                        {"cancelled", worker.cancelled},
                        {"avg_time", seconds(worker.avg_time)},
                        {"last_heartbeat_ago", seconds(worker.last_heartbeat_ago)},
                        {"stale", worker.stale}};
    object["current_run"] = worker.job ? json::value(text_value(worker.job_label)) : json::value(nullptr);
    if (worker.job) object["running_for"] = seconds(worker.job_running_for);
    workers.push_back(std::move(object));
  }
  const auto busy =
      std::ranges::count_if(health.workers, [](const WorkerHealth& worker) { return worker.job.has_value(); });
  json::object object{{"pool_size", health.pool_size},
                      {"target_size", health.target_size},
                      {"busy", busy},
                      {"queue_size", health.queue_size},
                      {"queue_capacity", health.queue_capacity},
                      {"utilization", health.utilization},
                      {"total_completed", health.total_completed},
                      {"total_failed", health.total_failed},
                      {"total_cancelled", health.total_cancelled},
                      {"stale_workers", health.stale_workers},
                      {"draining", health.draining},
                      {"queue_fullness", health.queue_fullness},
                      {"workers", std::move(workers)}};
  json::array queues;
  for (const store::QueueState& each : health.queues) {
    queues.push_back(
        json::object{{"agent", text_value(each.agent)}, {"size", each.queued}, {"capacity", each.queued_max}});
  }
  object["queues"] = std::move(queues);
  if (health.bounds) {
    object["min"] = health.bounds->first;
    object["max"] = health.bounds->second;
  }
  return object;
}

}  // namespace

std::string to_json(const engine::RunView& run) { return json::serialize(whole_run_value(run)); }

std::string to_json(const engine::RunView& run, const engine::Timeline& timeline,
                    const std::vector<store::Event>& events) {
  json::object object = whole_run_value(run);
  object["timeline"] = timeline_value(timeline);
  json::array array;
  for (const store::Event& event : events) array.push_back(event_value(event));
  object["events"] = std::move(array);
  return json::serialize(object);
}

std::string to_json(const std::vector<engine::RunView>& runs, std::string_view next,
                    const std::optional<engine::Total>& total) {
  json::object object{{"runs", runs_value(runs)}};
  object["next"] = next.empty() ? json::value(nullptr) : json::value(text_value(next));
  if (total) object["total"] = json::object{{"count", total->count}, {"exact", total->exact}};
  return json::serialize(object);
}

std::string to_json(const store::Event& event) { return json::serialize(event_value(event)); }

std::string to_json(const std::vector<store::Event>& events, std::string_view cursor) {
  json::array array;
  for (const store::Event& event : events) array.push_back(event_value(event));
  return json::serialize(json::object{{"events", std::move(array)}, {"next", text_value(cursor)}});
}

std::string to_json(const engine::WhyView& why) {
  json::array reasons;
  for (const domain::WaitReason& each : why.reasons) reasons.push_back(reason_value(each));
  return json::serialize(
      json::object{{"id", text_value(why.run)}, {"state", to_string(why.state)}, {"reasons", std::move(reasons)}});
}

std::string to_json(const engine::Receipt& receipt) {
  const domain::RunMemo& memo = receipt.run.memo;
  return json::serialize(json::object{{"id", text_value(receipt.run.run.id)},
                                      {"state", to_string(receipt.run.run.state)},
                                      {"processes_ended", memo.processes_ended},
                                      {"streams_closed", memo.streams_closed},
                                      {"ending_ms", to_ms(memo.ending)},
                                      {"took_ms", to_ms(receipt.time)},
                                      {"permits_returned", texts_value(receipt.permits_returned)},
                                      {"permits_held", texts_value(receipt.permits_held)},
                                      {"reached", texts_value(receipt.reached)}});
}

std::string to_json(const engine::Submitted& submitted, RunState state) {
  return json::serialize(
      json::object{{"id", text_value(submitted.id)}, {"state", to_string(state)}, {"created", submitted.created}});
}

std::string accepted_to_json(const engine::Submitted& submitted, std::string_view detail) {
  return json::serialize(json::object{{"id", text_value(submitted.id)},
                                      {"state", to_string(RunState::queued)},
                                      {"created", submitted.created},
                                      {"detail", text_value(detail)}});
}

std::string to_json(const std::vector<engine::AgentView>& agents, std::span<const agent::Problem> problems) {
  json::array array;
  for (const engine::AgentView& agent : agents) {
    json::array limits;
    for (const store::LimitUse& use : agent.limits) {
      limits.push_back(json::object{{"name", text_value(use.limit)}, {"weight", use.weight}});
    }
    json::object object{{"name", text_value(agent.name)},
                        {"description", text_value(agent.description)},
                        {"driver", text_value(agent.driver)},
                        {"usage", text_value(agent.usage)},
                        {"limits", std::move(limits)}};
    object["max_concurrency"] = agent.max_concurrency ? json::value(*agent.max_concurrency) : json::value(nullptr);
    if (!agent.refused.empty()) object["refused"] = text_value(agent.refused);
    array.push_back(std::move(object));
  }
  return json::serialize(json::object{{"agents", std::move(array)}, {"problems", problems_value(problems)}});
}

std::string to_json(const std::vector<engine::LimitView>& limits) {
  json::array array;
  for (const engine::LimitView& limit : limits) array.push_back(limit_value(limit));
  return json::serialize(json::object{{"limits", std::move(array)}});
}

std::string to_json(const engine::FleetHealth& health) { return json::serialize(health_value(health)); }

std::string to_json(const engine::FleetStatus& status) {
  json::object states = counts_value(status.stats);
  json::array limits;
  for (const engine::LimitView& limit : status.limits) limits.push_back(limit_summary_value(limit));
  json::object object{{"phase", to_string(status.phase)},
                      {"version", text_value(status.version)},
                      {"store", text_value(status.store)},
                      {"runs", std::move(states)},
                      {"ready", status.stats.ready},
                      {"nodes", status.stats.nodes},
                      {"queue_capacity", status.queue_capacity},
                      {"limits", std::move(limits)},
                      {"cost_micros_today", status.cost_micros_today},
                      {"tokens_today", status.tokens_today}};
  object["pool"] = status.pool ? json::value(health_value(*status.pool)) : json::value(nullptr);
  if (status.shortage) object["shortage"] = shortage_value(*status.shortage);
  if (status.cost_micros_per_day) object["cost_micros_per_day"] = *status.cost_micros_per_day;
  return json::serialize(object);
}

std::string to_json(const engine::FleetView& view) {
  json::array limits;
  for (const engine::LimitView& limit : view.limits) limits.push_back(limit_value(limit));
  const auto running = view.stats.runs.find(RunState::running);
  json::object spend{{"cost_micros", view.cost_micros_today}, {"tokens", view.tokens_today}};
  spend["cost_micros_per_day"] =
      view.cost_micros_per_day ? json::value(*view.cost_micros_per_day) : json::value(nullptr);
  json::object object{{"as_of", to_ms(view.as_of)},
                      {"cursor", text_value(view.cursor)},
                      {"version", text_value(view.version)},
                      {"store", text_value(view.store)},
                      {"phase", to_string(view.phase)},
                      {"runs", counts_value(view.stats)},
                      {"queue", queue_value(view)},
                      {"parked", groups_value(view.parked)},
                      {"needs", json::object{{"total", view.needs_total}, {"runs", runs_value(view.needs)}}},
                      {"refused_agents", refused_value(view.refused_agents)},
                      {"refused_agents_total", view.refused_agents_total},
                      {"running", json::object{{"total", running == view.stats.runs.end() ? 0 : running->second},
                                               {"runs", runs_value(view.running)}}},
                      {"failures", runs_value(view.failures)},
                      {"limits", std::move(limits)},
                      {"nodes", nodes_value(view.nodes)},
                      {"spend", std::move(spend)}};
  object["pool"] = view.pool ? json::value(health_value(*view.pool)) : json::value(nullptr);
  object["shortage"] = view.shortage ? json::value(shortage_value(*view.shortage)) : json::value(nullptr);
  return json::serialize(object);
}

std::string beat_to_json(WallTime now, std::string_view cursor) {
  return json::serialize(json::object{{"now", to_ms(now)}, {"cursor", text_value(cursor)}});
}

std::string to_json(const store::Output& output) {
  return json::serialize(json::object{{"head", text_value(output.head)},
                                      {"tail", text_value(output.tail)},
                                      {"bytes", output.bytes},
                                      {"left_out", output.bytes - output.head.size() - output.tail.size()}});
}

std::string to_json(const engine::OutputSlice& slice) {
  return json::serialize(json::object{
      {"offset", slice.offset}, {"text", text_value(slice.text)}, {"next", slice.next}, {"bytes", slice.bytes}});
}

std::string resolved_to_json(std::string_view id, RunState state) {
  return json::serialize(json::object{{"id", text_value(id)}, {"state", to_string(state)}});
}

std::string resumed_to_json(std::uint64_t woken) { return json::serialize(json::object{{"woken", woken}}); }

std::string short_success(std::string_view result) {
  Scratch scratch;
  json::object object({{"status", "success"}}, 2, scratch.memory());
  object.emplace("result", text_value(result, scratch.memory()));
  return json::serialize(object);
}
std::string short_error(std::string_view error) {
  return json::serialize(json::object{{"status", "error"}, {"error", text_value(error)}});
}
std::string short_pending(std::string_view error) {
  return json::serialize(json::object{{"status", "pending"}, {"error", text_value(error)}});
}
std::string short_refusal(std::string_view detail) {
  return json::serialize(json::object{{"detail", text_value(detail)}});
}

}  // namespace stint::wire
