#include "domain/limit_rule.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

void lower(std::optional<std::int64_t>& least, std::int64_t value) { least = least ? std::min(*least, value) : value; }

bool is_anothers_turn(const LimitLoad& limit, AgentNumber agent) {
  return limit.turn_of && *limit.turn_of != agent && !limit.turn_lapsed;
}

/// How many runs the limit would admit; none: unlimited.
std::optional<std::int64_t> free_of(const LimitLoad& limit, AgentNumber agent) {
  if (limit.paused || is_anothers_turn(limit, agent)) return 0;
  std::optional<std::int64_t> free;
  if (limit.capacity) lower(free, (std::int64_t{*limit.capacity} - limit.units) / std::int64_t{limit.weight});
  if (limit.ramp) lower(free, std::int64_t{*limit.ramp} - limit.runs);
  return free;
}

}  // namespace

LimitAnswer ask_limits(AgentNumber agent, const std::vector<LimitLoad>& limits) {
  LimitAnswer answer;
  bool blocked = false;
  std::vector<std::size_t> too_short;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const LimitLoad& limit = limits[i];
    if (const auto free = free_of(limit, agent)) {
      if (*free < 1 && (!answer.free || *free < *answer.free)) answer.blocked_by = i;
      lower(answer.free, *free);
    }
    if (limit.weight > 1 && limit.shared && limit.capacity &&
        std::int64_t{*limit.capacity} - limit.units < std::int64_t{limit.weight}) {
      too_short.push_back(i);
    }
    blocked = blocked || limit.paused || is_anothers_turn(limit, agent) || limit.last_turn_of == agent;
  }
  if (answer.free && *answer.free < 1) {
    if (!blocked) answer.take_turn = std::move(too_short);
    return answer;
  }
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const bool mine = limits[i].turn_of == agent;
    const bool anothers_last = limits[i].last_turn_of && *limits[i].last_turn_of != agent;
    if (mine || anothers_last) answer.clear_turn.push_back(i);
  }
  return answer;
}

bool is_probed(std::string_view limit) noexcept { return limit.starts_with("account:"); }

std::optional<std::uint32_t> wider_ramp(std::uint32_t ramp, std::optional<std::uint32_t> capacity) noexcept {
  const std::uint32_t enough = std::min(capacity.value_or(kRampMax), kRampMax);
  return ramp * 2 < enough ? std::optional(ramp * 2) : std::nullopt;
}

}  // namespace stint::domain
