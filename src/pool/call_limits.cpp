#include "pool/call_limits.hpp"

namespace stint::pool {

Result<> CallLimits::set(const std::string& name, std::uint32_t capacity) {
  const auto [limit, fresh] = limits_.try_emplace(name, name, std::int64_t{capacity});
  return fresh ? Result<>() : limit->second.set_capacity(capacity);
}

Task<Result<Permit>> CallLimits::acquire(std::string name, std::uint32_t weight) {
  const auto limit = limits_.find(name);
  if (limit == limits_.end()) {
    co_return fail(Errc::invalid, "this process has no call limit named '" + name + "'");
  }
  co_return co_await limit->second.acquire(weight);
}

std::optional<CallLimits::State> CallLimits::find(std::string_view name) const {
  const auto limit = limits_.find(name);
  if (limit == limits_.end()) return std::nullopt;
  const Semaphore& units = limit->second;
  return State{units.capacity(), units.capacity() - units.available(), units.waiting()};
}

std::vector<std::string> CallLimits::names() const {
  std::vector<std::string> names;
  for (const auto& [name, limit] : limits_) names.push_back(name);
  return names;
}

domain::WaitReason CallWait::reason() const {
  const CallLimits::State state = limits.find(limit).value_or(CallLimits::State());
  return {.cause = domain::WaitCause::limit,
          .limit = limit,
          .capacity = state.capacity,
          .held = state.held,
          .weight = weight};
}

}  // namespace stint::pool
