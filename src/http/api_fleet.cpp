// Handlers of agents, limits and the pool, the probes, and the description of the API.
#include "http/api_call.hpp"
#include "wire/fleet.hpp"

#include <algorithm>

namespace stint::http {
namespace {

/// The answer for a failed change of a limit. Checks that the limit exists only now, to keep the good path short.
Task<Response> limit_problem(fleet::Fleet& fleet, const std::string& name, Error error) {
  if (error != Errc::invalid || name.empty()) co_return problem(error);
  const auto known = co_await fleet.limits();
  if (!known) co_return problem(known.error());
  if (std::ranges::find(*known, name, &engine::LimitView::name) != known->end()) co_return problem(error);
  co_return no_such("there is no limit '" + shown(name) + "'", "/v1/limits");
}

}  // namespace

Task<Response> Api::agents(Call) {
  const auto agents = co_await fleet_.agents();
  co_return agents ? json_response(wire::to_json(*agents, fleet_.agent_problems())) : problem(agents.error());
}

Task<Response> Api::limits(Call) {
  const auto limits = co_await fleet_.limits();
  co_return limits ? json_response(wire::to_json(*limits)) : problem(limits.error());
}

Task<Response> Api::resize_limit(Call call) {
  const auto capacity = wire::read_capacity(call.request.body);
  if (!capacity) co_return problem(capacity.error());
  const auto done = co_await fleet_.resize_limit(call.id, *capacity);
  if (!done) co_return co_await limit_problem(fleet_, call.id, done.error());
  co_return co_await limits(std::move(call));
}

Task<Response> Api::pause_limit(Call call) {
  const auto length = wire::read_length(call.request.body, "for_ms");
  if (!length) co_return problem(length.error());
  const auto done = co_await fleet_.pause(call.id, *length);
  if (!done) co_return co_await limit_problem(fleet_, call.id, done.error());
  co_return co_await limits(std::move(call));
}

Task<Response> Api::resume_limit(Call call) {
  const auto woken = co_await fleet_.resume(call.id);
  if (!woken) co_return co_await limit_problem(fleet_, call.id, woken.error());
  co_return json_response(wire::resumed_to_json(*woken));
}

Task<Response> Api::pool(Call) {
  const auto health = co_await fleet_.health();
  co_return health ? json_response(wire::to_json(*health)) : problem(health.error());
}

Task<Response> Api::scale(Call call) {
  const auto wanted = wire::read_scale(call.request.body);
  if (!wanted) co_return problem(wanted.error());
  const auto health = co_await fleet_.scale(*wanted);
  co_return health ? json_response(wire::to_json(*health)) : problem(health.error());
}

Task<Response> Api::drain(Call call) {
  const auto how = wire::read_drain(call.request.body);
  if (!how) co_return problem(how.error());
  const auto done = co_await fleet_.drain(*how);
  if (!done) co_return problem(done.error());
  Response response = co_await pool(std::move(call));
  response.status = 202;
  co_return response;
}

Task<Response> Api::status(Call) {
  const auto status = co_await fleet_.status();
  co_return status ? json_response(wire::to_json(*status)) : problem(status.error());
}

Task<Result<std::string>> Api::describe_fleet() {
  STINT_CO_TRY(const engine::FleetView view, co_await options_.live.look());
  co_return wire::to_json(view);
}

Task<Response> Api::fleet(Call) {
  if (!options_.live.look) co_return problem(Error(Errc::unavailable, "this server has no fleet to look at"));
  const auto text = co_await fleet_answer_.get();
  co_return text ? json_response(std::string(**text)) : problem(text.error());
}

Task<Response> Api::health(Call) {
  Response response;
  response.content_type = kText;
  response.body = "ok\n";
  co_return response;
}

Task<Response> Api::ready(Call) {
  const engine::Phase phase = fleet_.phase();
  Response response;
  response.content_type = kText;
  const std::string why = fleet_.why_unready();
  response.body = (phase == engine::Phase::serving && !why.empty() ? why : std::string(to_string(phase))) + "\n";
  if (phase != engine::Phase::serving || !why.empty()) {
    response.status = 503;
    response.headers.emplace_back("Retry-After", "2");
  }
  co_return response;
}

Task<Response> Api::metrics(Call) {
  const auto status = co_await fleet_.status();
  if (!status) co_return problem(status.error());
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  const PlaygroundOptions& playground = options_.playground;
  const auto sandboxes =
      playground.pool != nullptr ? std::optional(sandboxes_.count(playground.elapsed())) : std::nullopt;
  response.body = metrics_text(*status, options_.server ? options_.server() : nullptr, sandboxes);
  co_return response;
}

Task<Response> Api::describe(Call) { co_return json_response(std::string(openapi_text())); }

Task<Response> Api::front(Call) {
  Response response;
  response.content_type = kText;
  response.body = "stint: runs fleets of AI agents. The API is described at /openapi.json\n";
  co_return response;
}

}  // namespace stint::http
