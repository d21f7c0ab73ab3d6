#include "http/api.hpp"

#include "http/api_route.hpp"
#include "http/assets.hpp"

#include <algorithm>

namespace stint::http {
namespace {

constexpr int kLevelsMax = 64;  // depth of runs that started runs

Task<Response> at_once(Response response) { co_return response; }

/// The first query parameter that is sent twice although only one value is read; empty: none.
std::string_view given_twice(const Request& request) {
  const auto& query = request.parts.query;
  for (auto field = query.begin(); field != query.end(); ++field) {
    if (field->name == kListedState || field->name == kListedHold) continue;
    if (std::find_if(query.begin(), field, [&](const net::Field& other) { return other.name == field->name; }) != field)
      return field->name;
  }
  return {};
}

}  // namespace

/// Not a coroutine: saves a frame per waiting request.
Api::Api(fleet::Fleet& fleet, ApiOptions options)
    : fleet_(fleet),
      options_(std::move(options)),
      fleet_answer_({.make = [this] { return describe_fleet(); }, .elapsed = options_.live.elapsed}),
      tail_(fleet, options_.live.elapsed) {}

/// A client that has changed something never reads a fleet from before its change.
Task<Response> Api::act_and_tell(Task<Response> work) {
  Response response = co_await std::move(work);
  fleet_answer_.changed();
  co_return response;
}

Task<Response> Api::answer(const Request& request, Exchange& exchange) {
  if (const auto encoding = request.header("Content-Encoding"); encoding && *encoding != "identity") {
    return at_once(problem_response(
        415,
        fmt::format("Content-Encoding '{}' is not supported: send the body uncompressed", agent::excerpt(*encoding))));
  }
  if (!sends_json(request)) {
    return at_once(problem_response(415, "the Content-Type of the body is not JSON: send 'application/json'"));
  }
  if (const std::string wrong = wrong_text(request); !wrong.empty()) return at_once(problem_response(422, wrong));
  if (const std::string_view twice = given_twice(request); !twice.empty()) {
    return at_once(problem_response(422, fmt::format("the parameter '{}' was sent twice: send it once", shown(twice))));
  }
  if (auto asset = asset_response(request)) return at_once(std::move(*asset));
  const Found found = find(request);
  if (found.route != nullptr) {
    if (const Result<> known = found.route->check_known(request); !known) return at_once(problem(known.error()));
    Call call{request, exchange, std::string(found.id), {}};
    if (options_.run_of_token && request.bearer()) call.caller = options_.run_of_token(*request.bearer());
    const bool reads = found.route->method == "GET";
    Task<Response> work = call.caller.empty() ? (this->*found.route->handler)(std::move(call))
                                              : answer_run(*found.route, std::move(call));
    return reads ? std::move(work) : act_and_tell(std::move(work));
  }
  if (found.allowed.empty()) {
    return at_once(problem_response(404, fmt::format("there is nothing at {}; /openapi.json lists the paths",
                                                     agent::excerpt(request.path(), domain::kShownNameBytesMax))));
  }
  Response refusal =
      problem_response(405, fmt::format("method {} is not allowed here", agent::excerpt(request.method)));
  refusal.headers.emplace_back("Allow", found.allowed);
  return at_once(std::move(refusal));
}

Task<Response> Api::answer_run(const Route& route, Call call) {
  if (auto refusal = co_await refuse_run(route, call)) co_return std::move(*refusal);
  co_return co_await (this->*route.handler)(std::move(call));
}

/// Whether the run is `ancestor` or one of its descendants.
Task<Result<bool>> Api::is_below(std::string id, const std::string& ancestor) {
  for (int level = 0; level < kLevelsMax && !id.empty(); ++level) {
    STINT_CO_TRY(const auto found, co_await fleet_.find(std::move(id)));
    if (!found) break;
    if (found->run.id == ancestor) co_return true;
    id = found->run.parent;
  }
  co_return false;
}

/// Refuses what the token of a run does not permit: it covers the run's descendants only.
Task<std::optional<Response>> Api::refuse_run(const Route& route, const Call& call) {
  bool may = route.for_runs == ForRuns::always;
  if (route.for_runs == ForRuns::below || route.for_runs == ForRuns::strict) {
    std::string id = call.id;
    if (route.for_runs == ForRuns::strict) {
      const auto found = co_await fleet_.find(id);
      if (!found) co_return problem(found.error());
      id = *found ? (*found)->run.parent : std::string();
    }
    const auto below = co_await is_below(std::move(id), call.caller);
    if (!below) co_return problem(below.error());
    may = *below;
  }
  if (may) co_return std::nullopt;
  co_return problem_response(403, "the token of a run permits requests for that run and its descendants only");
}

}  // namespace stint::http
