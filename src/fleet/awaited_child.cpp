#include "fleet/awaited_child.hpp"

#include "fleet/local_fleet.hpp"

#include <algorithm>

namespace stint::fleet {
namespace {

constexpr std::string_view kHostLimit = "host";
constexpr int kDepthMax = 64;  // ancestors that are counted

/// Units of the limit that the ancestors hold, by what each was claimed with: a run that shares the permits of its
/// ancestors is no holder. A list of holders has a bound (store::kLimitListMax). An ancestor that is not on it comes
/// after so many others that it matters only to a child that needs more units than the bound.
std::uint64_t held_by(const std::vector<std::string>& above, const LimitView& limit) {
  std::uint64_t units = 0;
  for (const domain::LimitEntry& holder : limit.holders) {
    if (std::ranges::find(above, holder.run) != above.end()) units += holder.weight;
  }
  return units;
}

}  // namespace

LimitNeeds needs_of(const domain::Agent& agent) {
  LimitNeeds needs{{std::string(kHostLimit), 1}};
  if (agent.max_concurrency) needs[domain::agent_limit(agent.name)] += 1;
  for (const domain::LimitRequest& limit : agent.limits) needs[limit.name] += limit.weight;
  return needs;
}

Result<> check_awaited(const std::string& agent, const LimitNeeds& needs, const std::vector<std::string>& above,
                       const std::vector<LimitView>& limits) {
  for (const auto& [name, units] : needs) {
    const auto limit = std::ranges::find(limits, name, &LimitView::name);
    if (limit == limits.end() || !limit->capacity) continue;
    const std::uint64_t held = held_by(above, *limit);
    if (held == 0 || held + units <= *limit->capacity) continue;
    const bool alone = above.size() == 1;
    return fail(Errc::conflict, "not submitted: run '" + above.front() + "' waits for it, and " +
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
  std::vector<std::string> above;
  std::string id = submission.parent;
  for (int depth = 0; depth < kDepthMax && !id.empty(); ++depth) {
    STINT_CO_TRY(const std::optional<store::Run> run, co_await parts_.store.find(id));
    if (!run || run->state != domain::RunState::running) break;
    above.push_back(run->id);
    id = run->parent;
  }
  if (above.empty()) co_return Result<>();
  STINT_CO_TRY(const std::vector<LimitView> known, co_await limits());
  const std::string_view agent = submission.agent.empty() ? domain::kPromptAgent : std::string_view(submission.agent);
  const project::AgentSpec* const spec = find_spec(parts_.registry(), agent);
  const LimitNeeds needs = needs_of(spec == nullptr ? domain::Agent() : spec->agent);
  Result<> checked = check_awaited(submission.agent, needs, above, known);
  if (checked || submission.key.empty()) co_return checked;
  // The key may name an existing run: waiting for that one needs no new permits.
  STINT_CO_TRY(const std::optional<std::string> same, co_await find_by_key(submission));
  co_return same ? Result<>() : checked;
}

}  // namespace stint::fleet
