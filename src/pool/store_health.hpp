/// Tracks whether the store is usable, from the results of the last calls: a query here costs the store nothing. Logs
/// each change, at most once per kLogEvery. Also ends retries when the process exits: it must not wait for ever for a
/// full disk. Own thread only.
#pragma once

#include "domain/log.hpp"
#include "stint/error.hpp"
#include "stint/executor.hpp"
#include "stint/notification.hpp"
#include "stint/retry_core.hpp"
#include "stint/task.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace stint::pool {

class StoreHealth {
 public:
  /// Tracked separately: on a full disk heartbeats may succeed while larger writes fail.
  enum class Call : std::uint8_t { beat, tick, write };
  /// A failure older than this is no longer reported, so that callers that check first make the next call.
  static constexpr Duration kRecent = std::chrono::seconds(30);
  static constexpr Duration kLogEvery = std::chrono::minutes(1);
  static constexpr BackoffRange kBackoff{.base = std::chrono::milliseconds(50), .cap = std::chrono::seconds(2)};

  /// `random`: of the jitter between repeated calls.
  StoreHealth(const Executor& executor, domain::Log& log, std::function<std::uint64_t()> random)
      : executor_(executor), log_(log), random_(std::move(random)) {}

  template <class T>
  void record(Call call, const Result<T>& answer) {
    if (answer) {
      worked(call);
    } else if (answer.error() != Errc::cancelled) {
      failed(call, answer.error());
    }
  }
  /// Why the store can't be used now; empty: it can.
  [[nodiscard]] std::string why_unusable() const;

  /// The process is about to exit: from now on a failed call is not retried.
  void give_up();
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }
  /// Waits before a retry: for `pause`, or until give_up().
  Task<> wait(Duration pause);
  /// How long to wait after so many failures in a row, from 1.
  [[nodiscard]] Duration backoff(std::uint32_t failures) const { return stint::backoff(kBackoff, failures, random_()); }
  [[nodiscard]] TimePoint now() const { return executor_.now(); }

 private:
  struct State {
    std::string why;  // empty: the last call succeeded
    TimePoint failed_at{};
  };
  void worked(Call call);
  void failed(Call call, const Error& error);
  [[nodiscard]] State& state(Call call) { return states_[static_cast<std::size_t>(call)]; }

  const Executor& executor_;
  domain::Log& log_;
  const std::function<std::uint64_t()> random_;
  std::array<State, 3> states_;
  TimePoint quiet_until_{};
  bool logged_ = false;  // that the store can't be used
  bool gave_up_ = false;
  Notification given_up_;
};

}  // namespace stint::pool
