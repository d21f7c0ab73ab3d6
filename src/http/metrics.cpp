// Prometheus' text format. Names: stint_<thing>_<unit>, counters end in _total; labels are of few values. The list is
// in docs/operations.md, and a test compares the two.
#include "engine/views.hpp"
#include "http/api.hpp"

#include <fmt/format.h>

#include <iterator>

namespace stint::http {
namespace {

class Page {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    name_ = name;
  }
  template <class Number>
  void sample(Number value, std::string_view label = {}, std::string_view of = {}) {
    text_ += name_;
    if (!label.empty()) {
      fmt::format_to(std::back_inserter(text_), "{{{}=\"", label);
      for (const char each : of) {
        if (each == '\\' || each == '"') text_ += '\\';
        text_ += each == '\n' ? ' ' : each;
      }
      text_ += "\"}";
    }
    fmt::format_to(std::back_inserter(text_), " {}\n", value);
  }
  template <class Number>
  void one(std::string_view name, std::string_view type, std::string_view help, Number value) {
    family(name, type, help);
    sample(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_, name_;
};

void add_pool(Page& page, const engine::FleetHealth& pool) {
  page.one("stint_pool_workers", "gauge", "Workers of this daemon.", pool.pool_size);
  page.one("stint_pool_workers_wanted", "gauge", "Workers that this daemon should have.", pool.target_size);
  page.one("stint_pool_utilization_ratio", "gauge", "Share of workers that carry a run.", pool.utilization);
  page.one("stint_pool_stale_workers", "gauge", "Workers whose run gave no sign of life for too long.",
           pool.stale_workers);
  page.one("stint_pool_runs_completed_total", "counter", "Attempts that succeeded.", pool.total_completed);
  page.one("stint_pool_runs_failed_total", "counter", "Attempts that failed.", pool.total_failed);
  page.one("stint_pool_runs_cancelled_total", "counter", "Attempts that were cancelled.", pool.total_cancelled);
  page.one("stint_pool_autoscale_errors_total", "counter", "Autoscaler rounds that could not read the load.",
           pool.autoscale_errors);
  page.one("stint_queue_capacity_runs", "gauge", "Maximum number of queued runs, over all agents.",
           pool.queue_capacity);
  page.one("stint_queue_fullness_ratio", "gauge", "Fill ratio of the fullest agent queue.", pool.queue_fullness);
  page.family("stint_agent_queue_runs", "gauge", "Queued runs of an agent, due or not.");
  for (const auto& queue : pool.queues) page.sample(queue.queued, "agent", queue.agent);
  page.family("stint_agent_queue_capacity_runs", "gauge", "Maximum number of queued runs of an agent.");
  for (const auto& queue : pool.queues) page.sample(queue.queued_max, "agent", queue.agent);
}

void add_limits(Page& page, const std::vector<engine::LimitView>& limits) {
  page.family("stint_limit_capacity", "gauge", "Capacity of a limit, in permits.");
  for (const auto& limit : limits) {
    if (limit.capacity) page.sample(*limit.capacity, "limit", limit.name);
  }
  page.family("stint_limit_held", "gauge", "Permits of a limit that are held.");
  for (const auto& limit : limits) page.sample(limit.held, "limit", limit.name);
  page.family("stint_limit_waiting", "gauge", "Requests waiting for a limit.");
  for (const auto& limit : limits) page.sample(limit.waiting, "limit", limit.name);
  page.family("stint_limit_paused", "gauge", "1 while a limit is paused.");
  for (const auto& limit : limits) page.sample(limit.paused ? 1 : 0, "limit", limit.name);
}

void add_server(Page& page, const ServerStats& server) {
  page.one("stint_http_connections", "gauge", "Open connections.", server.connections);
  page.one("stint_http_streams", "gauge", "Connections with an open stream.", server.streams);
  page.one("stint_http_connections_total", "counter", "Connections accepted.", server.connections_total);
  page.one("stint_http_connections_evicted_total", "counter",
           "Connections closed to make room, idle or with an incomplete head.", server.connections_evicted);
  page.one("stint_http_connections_reserved_total", "counter", "Connections served from the reserve.",
           server.connections_reserved);
  page.one("stint_http_connections_refused_total", "counter", "Connections refused because all places were in use.",
           server.connections_refused);
  page.one("stint_http_requests_total", "counter", "Requests passed to the API.", server.requests);
  page.family("stint_http_answers_total", "counter", "Responses by status class.");
  for (std::size_t i = 1; i < server.answers.size(); ++i) {
    page.sample(server.answers[i], "class", std::to_string(i) + "xx");
  }
  page.one("stint_http_refusals_total", "counter",
           "Requests refused because they were malformed, too large or not authorized.", server.refusals);
  page.family("stint_http_cut_total", "counter", "Connections closed because the client was too slow.");
  page.sample(server.cut_header, "part", "header");
  page.sample(server.cut_body, "part", "body");
  page.sample(server.cut_write, "part", "write");
}

}  // namespace

std::string metrics_text(const engine::FleetStatus& status, const ServerStats* server,
                         std::optional<std::size_t> sandboxes) {
  Page page;
  page.family("stint_build_info", "gauge", "Always 1; the label has the version.");
  page.sample(1, "version", status.version);
  page.one("stint_draining", "gauge", "1 while this daemon drains.",
           status.phase == engine::Phase::finishing || status.phase == engine::Phase::handing_back ? 1 : 0);
  page.family("stint_runs", "gauge", "Runs in the store, by state.");
  for (const domain::RunState state : domain::kRunStates) {
    const auto found = status.stats.runs.find(state);
    page.sample(found == status.stats.runs.end() ? 0 : found->second, "state", to_string(state));
  }
  page.one("stint_runs_ready", "gauge", "Queued runs that could be claimed now.", status.stats.ready);
  page.one("stint_store_bytes", "gauge", "Size of the store on disk.", status.stats.bytes);
  page.one("stint_store_nodes", "gauge", "Nodes: processes that carry runs of this store.", status.stats.nodes);
  page.one("stint_cost_micros_today", "gauge", "Cost of today, in millionths of the currency.",
           status.cost_micros_today);
  page.one("stint_tokens_today", "gauge", "Tokens used today.", status.tokens_today);
  if (status.pool) add_pool(page, *status.pool);
  page.one("stint_notes_left_out_total", "counter", "Notes dropped because a run had reached its maximum.",
           status.notes_left_out);
  page.one("stint_settlements_stale_total", "counter", "Settlements rejected because their fence was stale.",
           status.settlements_stale);
  page.family("stint_batch_runs_total", "counter", "Runs that batches of this daemon have acted on, by outcome.");
  page.sample(status.batch_runs.done, "outcome", "done");
  page.sample(status.batch_runs.skipped, "outcome", "skipped");
  page.sample(status.batch_runs.failed, "outcome", "failed");
  add_limits(page, status.limits);
  if (server != nullptr) add_server(page, *server);
  if (sandboxes) page.one("stint_playground_sandboxes", "gauge", "Sandboxes of the playground.", *sandboxes);
  return page.take();
}

}  // namespace stint::http
