/// Repeats requests that must reach the store, with a back-off, until the store answers or the process leaves. A final
/// refusal is rephrased so that any store accepts it.
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
  /// Not if the request itself is wrong.
  [[nodiscard]] static bool may_ask_again(const Error& error) noexcept {
    return error == Errc::unavailable || error == Errc::timed_out || error == Errc::full ||
           error.retry() != Retry::never;
  }
  /// The lease is not known to be alive, as after a sleep: the next beat tells. Until then nothing is lost, so an owner
  /// that was not fenced asks again.
  [[nodiscard]] static bool is_before_a_beat(const Error& error) noexcept { return error == Errc::closed; }
  /// True: ask again. False: the process leaves, and nothing is asked again.
  Task<bool> wait(StoreHealth& health) {
    co_await health.wait(health.backoff(++failures_));
    co_return !health.gave_up();
  }

 private:
  std::uint32_t failures_ = 0;
};

/// Of a refusal, for the row that the refused text was meant for: printable ASCII, and short.
[[nodiscard]] inline std::string plain_words(const Error& refusal) {
  constexpr std::size_t kMost = 300;
  std::string words = refusal.describe().substr(0, kMost);
  for (char& each : words) each = each >= ' ' && each <= '~' ? each : '?';
  return words;
}

}  // namespace stint::pool
