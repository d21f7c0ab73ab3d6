#include "http/api_route.hpp"
#include "http/assets.hpp"

#include <algorithm>

namespace stint::http {

const std::vector<Api::Route>& Api::table() {
  constexpr auto kMembers = Route::Body::members, kNone = Route::Body::none;
  constexpr auto kNever = ForRuns::never, kAlways = ForRuns::always;
  static const std::vector<Route> routes = {
      {"POST", "/v1/runs", &Api::submit, kAlways, kMembers},
      {"GET", "/v1/runs", &Api::list, kAlways, kNone,
       " state hold agent session parent q since until before limit total "},
      {"GET", "/v1/runs/{id}", &Api::show, ForRuns::below},
      {"POST", "/v1/runs/{id}/cancel", &Api::cancel, ForRuns::strict},
      {"POST", "/v1/runs/{id}/retry", &Api::retry},
      {"POST", "/v1/runs/{id}/resolve", &Api::resolve, kNever, kMembers},
      {"POST", "/v1/runs/{id}/answer", &Api::go_on},
      {"GET", "/v1/runs/{id}/events", &Api::run_events, ForRuns::below, kNone, " after limit output output_from "},
      {"GET", "/v1/runs/{id}/why", &Api::why, ForRuns::below},
      {"GET", "/v1/runs/{id}/timeline", &Api::timeline, ForRuns::below},
      {"GET", "/v1/runs/{id}/transcript", &Api::transcript, ForRuns::below, kNone, " from "},
      {"GET", "/v1/runs/{id}/output", &Api::output, ForRuns::below, kNone, " from "},
      {"POST", "/v1/batches", &Api::begin_batch, kNever, kMembers},
      {"GET", "/v1/batches", &Api::list_batches, kNever, kNone, " before limit "},
      {"GET", "/v1/batches/{id}", &Api::show_batch},
      {"POST", "/v1/batches/{id}/cancel", &Api::stop_batch},
      {"GET", "/v1/events", &Api::all_events, kNever, kNone, " after limit "},
      {"GET", "/v1/agents", &Api::agents, kAlways},
      {"GET", "/v1/agents/{name}", &Api::agent, kAlways},
      {"GET", "/v1/limits", &Api::limits},
      {"PUT", "/v1/limits/{name}", &Api::resize_limit, kNever, kMembers},
      {"POST", "/v1/limits/{name}/pause", &Api::pause_limit, kNever, kMembers},
      {"POST", "/v1/limits/{name}/resume", &Api::resume_limit},
      {"POST", "/v1/pause", &Api::pause_limit, kNever, kMembers},
      {"POST", "/v1/resume", &Api::resume_limit},
      {"GET", "/v1/pool", &Api::pool},
      {"PUT", "/v1/pool", &Api::scale, kNever, kMembers},
      {"POST", "/v1/pool/drain", &Api::drain, kNever, kMembers},
      {"GET", "/v1/status", &Api::status},
      {"GET", "/v1/series", &Api::series, kNever, kNone, " step_s span_s "},
      {"GET", "/v1/cost", &Api::cost, kNever, kNone, " by since_at "},
      {"GET", "/v1/fleet", &Api::fleet},
      {"GET", "/v1/playground", &Api::list_presets},
      {"POST", "/v1/playground", &Api::open_sandbox, kNever, kMembers},
      {"GET", "/v1/playground/{sandbox}", &Api::show_sandbox},
      {"DELETE", "/v1/playground/{sandbox}", &Api::remove_sandbox},
      {"POST", "/v1/playground/{sandbox}/act", &Api::act, kNever, kMembers},
      {"POST", "/v1/playground/{sandbox}/step", &Api::step, kNever, kMembers},
      {"POST", "/v1/playground/{sandbox}/back", &Api::step_back, kNever, kMembers},
      {"POST", "/v1/playground/{sandbox}/play", &Api::play},
      {"POST", "/api/agent/run", &Api::short_run, kNever, kNone, " session_id query "},
      {"GET", "/api/agent/health", &Api::pool},
      {"GET", "/healthz", &Api::health, kAlways, kNone, kAnyParameter},
      {"GET", "/readyz", &Api::ready, kAlways, kNone, kAnyParameter},
      {"GET", "/metrics", &Api::metrics, kNever, kNone, kAnyParameter},
      {"GET", "/openapi.json", &Api::describe, kAlways},
      {"GET", "/", &Api::front, kAlways, kNone, kAnyParameter},
  };
  return routes;
}

/// Routes with that many parts.
const std::vector<const Api::Route*>& Api::table(std::size_t parts) {
  static const auto by_parts = [] {
    std::array<std::vector<const Route*>, Route::kPartsMax + 2> lists;  // the last one stays empty
    for (const Route& route : table()) lists[route.count].push_back(&route);
    return lists;
  }();
  return by_parts[std::min(parts, by_parts.size() - 1)];
}

/// Probes, and the files of the dashboard: they hold no data. A probe with a body needs a token: it would be a way to
/// fill memory without one.
bool Api::is_open(const Request& request) {
  if (request.has_body || (request.method != "GET" && request.method != "HEAD")) return false;
  return request.path() == "/healthz" || request.path() == "/readyz" || wants_asset(request);
}

Api::Found Api::find(const Request& request) {
  Found found;
  const bool head = request.method == "HEAD";
  for (const Route* const route : table(request.segments().size())) {
    if (!route->matches(request.segments(), found.id)) continue;
    if (route->method == request.method || (head && route->method == "GET")) {
      found.route = route;
      break;
    }
    found.allowed += (found.allowed.empty() ? "" : ", ") + std::string(route->method);
    if (route->method == "GET") found.allowed += ", HEAD";
  }
  return found;
}

}  // namespace stint::http
