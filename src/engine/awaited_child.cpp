#include "engine/awaited_child.hpp"

#include <algorithm>
#include <map>

namespace stint::engine {
namespace {

constexpr int kDepthMax = 64;  // runs above one another; deeper ones are not looked at
constexpr std::string_view kHostLimit = "host";

using Needs = std::map<std::string, std::uint64_t>;  // units by limit

/// Every run takes one of `host`, if there is such a limit.
Needs needs_of(const AgentView* agent) {
  Needs needs{{std::string(kHostLimit), 1}};
  if (agent == nullptr) return needs;
  if (agent->max_concurrency) needs[domain::agent_limit(agent->name)] += 1;
  for (const store::LimitUse& use : agent->limits) needs[use.limit] += use.weight;
  return needs;
}

}  // namespace

Task<Result<>> check_awaited(Fleet& fleet, std::string parent, std::string agent) {
  if (parent.empty()) co_return Result<>();
  STINT_CO_TRY(const std::vector<AgentView> agents, co_await fleet.agents());
  const auto view_of = [&](const std::string& name) {
    const auto found = std::ranges::find(agents, name, &AgentView::name);
    return found == agents.end() ? nullptr : &*found;
  };
  Needs above;
  std::string id = parent;
  for (int depth = 0; depth < kDepthMax && !id.empty(); ++depth) {
    STINT_CO_TRY(const std::optional<RunView> run, co_await fleet.find(id));
    if (!run || run->run.state != domain::RunState::running) break;
    for (const auto& [limit, units] : needs_of(view_of(run->run.agent))) above[limit] += units;
    id = run->run.parent;
  }
  if (above.empty()) co_return Result<>();
  STINT_CO_TRY(const std::vector<LimitView> limits, co_await fleet.limits());
  for (const auto& [name, units] : needs_of(view_of(agent))) {
    const auto limit = std::ranges::find(limits, name, &LimitView::name);
    if (limit == limits.end() || !limit->capacity || !above.contains(name)) continue;
    // A run that `stint run` carries within another shares what that one holds: what is held bounds the sum.
    const std::uint64_t held =
        std::min(above.at(name), static_cast<std::uint64_t>(std::max<std::int64_t>(0, limit->held)));
    if (held == 0 || held + units <= *limit->capacity) continue;
    const std::string what = agent.empty() ? std::string("-p …") : agent;
    co_return fail(Errc::conflict, "not submitted: run '" + parent + "' would wait for it, and holds " +
                                       std::to_string(held) + " of " + std::to_string(*limit->capacity) + " of " +
                                       name + ", which it needs to begin. `stint run " + what +
                                       "` runs it under the permits of this run; or do not wait for it, or raise " +
                                       (name.starts_with("agent:") ? "max_concurrency of the agent" : "the limit"));
  }
  co_return Result<>();
}

}  // namespace stint::engine
