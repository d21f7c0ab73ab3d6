/// Whether the store can be used, as far as its last answers tell: for who asks often and must cost the store nothing.
/// Says it in the log when that changes, and not more often than people want to read it. Also tells whoever repeats a
/// call to the store when to stop: a process that leaves does not wait for ever for a disk that is full. Own thread
/// only.
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
  /// A disk that is full lets a process beat, and refuses what it has to say: the one proves nothing for the other.
  enum class Call : std::uint8_t { beat, tick, write };
  /// A failure says nothing about now any more when nobody has tried for so long: then somebody has to.
  static constexpr Duration kRecent = std::chrono::seconds(30);
  static constexpr Duration kSayEvery = std::chrono::minutes(1);
  static constexpr BackoffRange kBackoff{.base = std::chrono::milliseconds(50), .cap = std::chrono::seconds(2)};

  /// `random`: of the jitter between repeated calls.
  StoreHealth(const Executor& executor, domain::Log& log, std::function<std::uint64_t()> random)
      : executor_(executor), log_(log), random_(std::move(random)) {}

  template <class T>
  void heard(Call call, const Result<T>& answer) {
    if (answer) {
      worked(call);
    } else if (answer.error() != Errc::cancelled) {
      failed(call, answer.error());
    }
  }
  /// Why it can't be used now; empty: it can.
  [[nodiscard]] std::string why_unusable() const;

  /// The process leaves: from now on a call that fails is not repeated.
  void give_up();
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }
  /// Before a call is repeated: so long, or until give_up().
  Task<> wait(Duration pause);
  /// How long to wait after so many failures in a row, from 1.
  [[nodiscard]] Duration backoff(std::uint32_t failures) const { return stint::backoff(kBackoff, failures, random_()); }
  [[nodiscard]] TimePoint now() const { return executor_.now(); }

 private:
  struct State {
    std::string why;  // empty: the last one worked
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
  bool said_ = false;  // that it can't be used
  bool gave_up_ = false;
  Notification given_up_;
};

}  // namespace stint::pool
