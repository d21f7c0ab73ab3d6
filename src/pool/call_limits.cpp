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

}  // namespace stint::pool
