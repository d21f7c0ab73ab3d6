// Capacities of limits: what a configuration says, and what is said by hand since then.
#include "store/ledger.hpp"

#include <algorithm>
#include <utility>

namespace stint::store {
namespace {

std::string json_of_resize(const std::string& limit, std::optional<std::uint32_t> capacity) {
  return "{\"limit\":\"" + limit + "\",\"capacity\":" + (capacity ? std::to_string(*capacity) : "null") + "}";
}

}  // namespace

Result<> Ledger::resize(const std::string& limit, std::optional<std::uint32_t> capacity) {
  if (capacity == 0U) return fail(Errc::invalid, limit + ": a capacity is at least 1");
  STINT_TRY(GateRow gate, rows_.gate(limit));
  if (gate.capacity == capacity) return {};
  return resize(gate, capacity);
}

Result<> Ledger::resize(GateRow& gate, std::optional<std::uint32_t> capacity) {
  const bool changed = std::exchange(gate.capacity, capacity) != capacity;
  STINT_CHECK(rows_.put(gate));
  if (!changed) return {};
  EventRow event;
  event.cause = "resized";
  event.data = json_of_resize(gate.name, capacity);
  event.at = now();
  return rows_.add_event(std::move(event));
}

Result<> Ledger::configure(const std::map<std::string, std::uint32_t>& capacities,
                           const std::vector<std::string>& agents) {
  for (const auto& [name, capacity] : capacities) {
    if (capacity == 0) return fail(Errc::invalid, name + ": a capacity is at least 1");
    STINT_TRY(GateRow gate, rows_.gate(name));
    if (gate.configured == capacity) continue;
    gate.configured = capacity;
    STINT_CHECK(resize(gate, capacity));
  }
  if (agents.empty()) return {};
  STINT_TRY(const std::vector<Loan<const AgentRow>> all, rows_.agents());
  std::set<GateNumber> of_others;
  for (const Loan<const AgentRow>& agent : all) {
    if (std::ranges::find(agents, agent->entry.name) != agents.end()) continue;
    STINT_TRY(const Members members, rows_.members(agent->set));
    for (const auto& [gate, weight] : members) of_others.insert(gate);
  }
  STINT_TRY(std::vector<GateUse> uses, rows_.gates());
  for (GateUse& use : uses) {
    if (!use.gate.configured || capacities.contains(use.gate.name) || of_others.contains(use.gate.number)) continue;
    use.gate.configured.reset();
    STINT_CHECK(resize(use.gate, std::nullopt));
  }
  return {};
}

}  // namespace stint::store
