#include "pool/store_health.hpp"

#include <algorithm>

namespace stint::pool {

void StoreHealth::worked(Call call) {
  if (state(call).why.empty()) return;
  state(call).why.clear();
  const bool well = std::ranges::all_of(states_, [](const State& each) { return each.why.empty(); });
  if (!well || !logged_) return;
  logged_ = false;
  log_.write(domain::LogLevel::info, "the store can be used again", {});
}

void StoreHealth::failed(Call call, const Error& error) {
  const TimePoint now = executor_.now();
  state(call) = {error.describe(), now};
  if (now < quiet_until_) return;
  quiet_until_ = now + kLogEvery;
  logged_ = true;
  log_.write(domain::LogLevel::error, "the store can't be used", {{"why", state(call).why}});
}

void StoreHealth::give_up() {
  gave_up_ = true;
  given_up_.notify();
}

Task<> StoreHealth::wait(Duration pause) {
  if (!gave_up_) (void)co_await given_up_.wait(given_up_.count(), pause);
}

std::string StoreHealth::why_unusable() const {
  const TimePoint now = executor_.now();
  for (const State& each : states_) {
    if (!each.why.empty() && now - each.failed_at < kRecent) return each.why;
  }
  return {};
}

}  // namespace stint::pool
