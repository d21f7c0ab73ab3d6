/// Back-off for calls that must reach a store which does not answer. The text of a final refusal is reduced to what any
/// store accepts.
#pragma once

#include "pool/store_health.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <string>

namespace stint::pool {

class StoreBackoff {
 public:
  /// False if the request itself is wrong: a retry would fail again.
  [[nodiscard]] static bool may_retry(const Error& error) noexcept {
    return error == Errc::unavailable || error == Errc::timed_out || error == Errc::full ||
           error.retry() != Retry::never;
  }
  /// True if the node does not know whether its lease is alive, as after a sleep of the machine. The next heartbeat
  /// decides; until then an owner that was not fenced retries.
  [[nodiscard]] static bool awaits_heartbeat(const Error& error) noexcept { return error == Errc::closed; }
  /// Returns true to retry, false if the process is about to exit (StoreHealth::give_up).
  Task<bool> wait(StoreHealth& health) {
    co_await health.wait(health.backoff(++failures_));
    co_return !health.gave_up();
  }

 private:
  std::uint32_t failures_ = 0;
};

/// The text of a refusal, to be stored in place of the refused text: printable ASCII, and short.
[[nodiscard]] inline std::string printable_reason(const Error& refusal) {
  constexpr std::size_t kMost = 300;
  std::string words = refusal.describe().substr(0, kMost);
  for (char& each : words) each = each >= ' ' && each <= '~' ? each : '?';
  return words;
}

}  // namespace stint::pool
