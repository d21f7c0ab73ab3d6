#include "engine/limit_waits.hpp"

#include <utility>

namespace stint::engine {

void LimitWaits::begin(Agent& agent, const std::string& limit, TimePoint now) {
  if (!agent.waits.empty()) {
    Wait& last = agent.waits.back();
    const bool goes_on = last.limit == limit && (agent.open || now - last.until <= kSameWait);
    if (goes_on) {
      agent.open = true;
      return;
    }
  }
  close(agent, now);
  agent.waits.push_back({limit, now, now});
  if (agent.waits.size() > kWaitsMax) agent.waits.pop_front();
  agent.open = true;
}

void LimitWaits::close(Agent& agent, TimePoint now) {
  if (std::exchange(agent.open, false)) agent.waits.back().until = now;
}

void LimitWaits::in_line(const std::string& agent, const std::string& limit, TimePoint now) {
  Agent& entry = agents_[agent];
  entry.in_line = true;
  begin(entry, limit, now);
}

void LimitWaits::blocked(const std::string& agent, const std::string& limit, TimePoint now) {
  Agent& entry = agents_[agent];
  if (!entry.in_line) begin(entry, limit, now);
}

void LimitWaits::end(const std::string& agent, TimePoint now, bool in_line) {
  const auto found = agents_.find(agent);
  if (found == agents_.end() || found->second.in_line != in_line) return;
  found->second.in_line = false;
  close(found->second, now);
}

void LimitWaits::stop_looking(TimePoint now) {
  for (auto& [name, agent] : agents_) {
    if (!agent.in_line) close(agent, now);
  }
}

std::vector<domain::LimitWait> LimitWaits::of(const std::string& agent, TimePoint now) const {
  std::vector<domain::LimitWait> waits;
  const auto found = agents_.find(agent);
  if (found == agents_.end()) return waits;
  const Agent& entry = found->second;
  for (const Wait& each : entry.waits) {
    const bool goes_on = entry.open && &each == &entry.waits.back();
    const Duration length = (goes_on ? now : each.until) - each.since;
    if (length > Duration::zero()) waits.push_back({each.limit, now - each.since, length});
  }
  return waits;
}

}  // namespace stint::engine
