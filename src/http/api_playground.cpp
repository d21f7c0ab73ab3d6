// Handlers of the playground. A sandbox is replayed on a thread of its own pool, never on the reactor; of two changes
// of one sandbox at once, the second is refused.
#include "http/api_call.hpp"
#include "playground/presets.hpp"
#include "wire/playground.hpp"

#include <utility>

namespace stint::http {
namespace {

using playground::Patience;
using playground::Played;
using playground::Sandbox;

Response no_playground() { return problem(Error(Errc::unavailable, "this daemon has no playground")); }

Response no_sandbox(std::string_view id) {
  return problem_response(404,
                          fmt::format("there is no sandbox '{}': it was removed, or idle for too long; make it anew "
                                      "from its actions",
                                      shown(id)));
}

Result<Played> blocking_replay(const std::function<Result<Played>(Sandbox, const Patience&)>& change,
                               const Sandbox& sandbox, const std::function<Duration()>& processor_time) {
  Patience patience;
  patience.now = processor_time;
  return change(sandbox, patience);
}

}  // namespace

Task<Response> Api::list_presets(Call) { co_return json_response(wire::presets_to_json(playground::presets())); }

Task<Result<Played>> Api::replay(playground::Sandboxes::Handle sandbox, Change change) {
  co_return co_await offload(*options_.playground.pool,
                             [&] { return blocking_replay(change, *sandbox, options_.playground.processor_time); });
}

Task<Response> Api::open_sandbox(Call call) {
  auto wanted = wire::read_sandbox(call.request.body);
  if (!wanted) co_return problem(wanted.error());
  const PlaygroundOptions& options = options_.playground;
  if (options.pool == nullptr) co_return no_playground();
  const auto played = co_await replay(std::make_shared<const Sandbox>(*std::move(wanted)), playground::look);
  if (!played) co_return problem(played.error());
  const std::string id = fmt::format("{:016x}", options.random());
  sandboxes_.add(id, played->sandbox, options.elapsed());
  Response response = json_response(wire::to_json(id, *played), 201);
  response.headers.emplace_back("Location", "/v1/playground/" + id);
  co_return response;
}

Task<Response> Api::change_sandbox(std::string id, Change change) {
  const PlaygroundOptions& options = options_.playground;
  if (options.pool == nullptr) co_return no_playground();
  const auto before = sandboxes_.find(id, options.elapsed());
  if (before == nullptr) co_return no_sandbox(id);
  const auto played = co_await replay(before, std::move(change));
  if (!played) co_return problem(played.error());
  if (played->sandbox != *before && !sandboxes_.replace(id, before, played->sandbox, options.elapsed())) {
    co_return problem(
        Error(Errc::conflict, "another request changed or removed this sandbox meanwhile: read it again"));
  }
  co_return json_response(wire::to_json(id, *played));
}

Task<Response> Api::show_sandbox(Call call) { return change_sandbox(std::move(call.id), playground::look); }

Task<Response> Api::remove_sandbox(Call call) {
  if (options_.playground.pool == nullptr) co_return no_playground();
  if (!sandboxes_.remove(call.id)) co_return no_sandbox(call.id);
  co_return json_response("", 204);
}

Task<Response> Api::act(Call call) {
  auto action = wire::read_action(call.request.body);
  if (!action) co_return problem(action.error());
  co_return co_await change_sandbox(std::move(call.id),
                                    [action = *std::move(action)](Sandbox sandbox, const Patience& patience) {
                                      return playground::act(std::move(sandbox), action, patience);
                                    });
}

Task<Response> Api::step(Call call) {
  const auto steps = wire::read_steps(call.request.body);
  if (!steps) co_return problem(steps.error());
  co_return co_await change_sandbox(std::move(call.id), [steps = *steps](Sandbox sandbox, const Patience& patience) {
    if (steps.by_event) return playground::step_by_event(std::move(sandbox), steps.count, patience);
    return playground::step(std::move(sandbox), steps.count, patience);
  });
}

Task<Response> Api::step_back(Call call) {
  const auto steps = wire::read_steps(call.request.body);
  if (!steps) co_return problem(steps.error());
  co_return co_await change_sandbox(std::move(call.id), [steps = *steps](Sandbox sandbox, const Patience& patience) {
    if (steps.by_event) return playground::back_by_event(std::move(sandbox), steps.count, patience);
    return playground::back(std::move(sandbox), steps.count, patience);
  });
}

Task<Response> Api::play(Call call) { return change_sandbox(std::move(call.id), playground::play); }

}  // namespace stint::http
