#include "domain/gate.hpp"

#include <algorithm>

namespace stint::domain {
namespace {

void lower(std::optional<std::int64_t>& least, std::int64_t value) { least = least ? std::min(*least, value) : value; }

bool is_anothers_turn(const Gate& gate, std::int64_t agent) {
  return gate.turn_of && *gate.turn_of != agent && !gate.turn_lapsed;
}

/// How many runs it would let start.
std::optional<std::int64_t> free_of(const Gate& gate, std::int64_t agent) {
  if (gate.paused || is_anothers_turn(gate, agent)) return 0;
  std::optional<std::int64_t> free;
  if (gate.capacity) lower(free, (std::int64_t{*gate.capacity} - gate.units) / std::int64_t{gate.weight});
  if (gate.ramp) lower(free, std::int64_t{*gate.ramp} - gate.runs);
  return free;
}

}  // namespace

GateAnswer ask_gates(std::int64_t agent, const std::vector<Gate>& gates) {
  GateAnswer answer;
  bool blocked = false;
  std::vector<std::size_t> too_short;
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const Gate& gate = gates[i];
    if (const auto free = free_of(gate, agent)) lower(answer.free, *free);
    if (gate.weight > 1 && gate.shared && gate.capacity &&
        std::int64_t{*gate.capacity} - gate.units < std::int64_t{gate.weight}) {
      too_short.push_back(i);
    }
    blocked = blocked || gate.paused || is_anothers_turn(gate, agent) || gate.last_turn_of == agent;
  }
  if (answer.free && *answer.free < 1) {
    if (!blocked) answer.take_turn = std::move(too_short);
    return answer;
  }
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const bool mine = gates[i].turn_of == agent;
    const bool anothers_last = gates[i].last_turn_of && *gates[i].last_turn_of != agent;
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
