#include "fleet/awaited_child.hpp"

#include "fleet/local_fleet.hpp"

#include <algorithm>

namespace stint::fleet {
namespace {

constexpr std::string_view kHostLimit = "host";
constexpr int kDepthMax = 64;  // ancestors that are counted

/// Units of the limit that the ancestors hold. The files of a host limit name the run of each unit. For a limit that
/// the store counts, each run holds what its agent needs; a run that shares takes nothing that an ancestor already
/// holds.
std::uint64_t held_by(const std::vector<Ancestor>& above, const LimitView& limit) {
  std::uint64_t units = 0;
  if (limit.lists_every_unit) {
    for (const Ancestor& run : above) {
      units += static_cast<std::uint64_t>(std::ranges::count(limit.holders, run.id, &domain::LimitEntry::run));
    }
    return units;
  }
  for (auto run = above.rbegin(); run != above.rend(); ++run) {
    const auto need = run->needs.find(limit.name);
    if (need != run->needs.end() && !(run->shares && units > 0)) units += need->second;
  }
  // The agent's file may need more now than the run was given.
  return std::min(units, static_cast<std::uint64_t>(std::max<std::int64_t>(0, limit.held)));
}

}  // namespace

LimitNeeds needs_of(const domain::Agent& agent) {
  LimitNeeds needs{{std::string(kHostLimit), 1}};
  if (agent.max_concurrency) needs[domain::agent_limit(agent.name)] += 1;
  for (const domain::LimitRequest& limit : agent.limits) needs[limit.name] += limit.weight;
  return needs;
}

Result<> check_awaited(const std::string& agent, const LimitNeeds& needs, const std::vector<Ancestor>& above,
                       const std::vector<LimitView>& limits) {
  for (const auto& [name, units] : needs) {
    const auto limit = std::ranges::find(limits, name, &LimitView::name);
    if (limit == limits.end() || !limit->capacity) continue;
    const std::uint64_t held = held_by(above, *limit);
    if (held == 0 || held + units <= *limit->capacity) continue;
    const bool alone = above.size() == 1;
    return fail(Errc::conflict, "not submitted: run '" + above.front().id + "' waits for it, and " +
                                    (alone ? "holds " : "with its ancestors holds ") + std::to_string(held) + " of " +
                                    std::to_string(*limit->capacity) + " of " + name + "; it needs " +
                                    std::to_string(units) + " to begin. `stint run " +
                                    (agent.empty() ? std::string("-p …") : agent) +
                                    "` runs it under the permits of this run; or do not wait for it, or raise " +
                                    (name.starts_with("agent:") ? "max_concurrency of the agent" : "the limit"));
  }
  return {};
}

Task<Result<>> LocalFleet::check_parent_waits(const Submission& submission) {
  // Looks the registry up each time: a reload may replace it between two awaits.
  const auto needs = [this](std::string_view agent) {
    const project::AgentSpec* const spec = find_spec(parts_.registry(), agent.empty() ? domain::kPromptAgent : agent);
    return needs_of(spec == nullptr ? domain::Agent() : spec->agent);
  };
  std::vector<Ancestor> above;
  STINT_CO_TRY(const std::vector<store::NodeState> nodes, co_await parts_.store.nodes());
  std::string id = submission.parent;
  for (int depth = 0; depth < kDepthMax && !id.empty(); ++depth) {
    STINT_CO_TRY(const std::optional<store::Run> run, co_await parts_.store.find(id));
    if (!run || run->state != domain::RunState::running) break;
    const auto node = std::ranges::find(nodes, run->node.value_or(0), &store::NodeState::number);
    above.push_back({run->id, needs(run->agent), node != nodes.end() && store::carries_one_run(*node)});
    id = run->parent;
  }
  if (above.empty()) co_return Result<>();
  STINT_CO_TRY(const std::vector<LimitView> known, co_await limits());
  Result<> checked = check_awaited(submission.agent, needs(submission.agent), above, known);
  if (checked || submission.key.empty()) co_return checked;
  // The key may name an existing run: waiting for that one needs no new permits.
  STINT_CO_TRY(const std::optional<std::string> same, co_await find_by_key(submission));
  co_return same ? Result<>() : checked;
}

}  // namespace stint::fleet
