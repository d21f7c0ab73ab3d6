/// The pause gate of an upstream as a pure core: open, closed until a time or until a person acts, or half open for one
/// probe. Time and random numbers are arguments; `upstream.hpp` does the waiting.
///
/// A pause whose end the provider did not name ends after a back-off that doubles with every pause in a row. A call
/// that began before the gate closed neither opens it nor is a probe; if it fails, it can prolong the pause. Not
/// thread-safe.
#pragma once

#include "model/failure.hpp"
#include "stint/aimd_core.hpp"
#include "stint/retry_core.hpp"
#include "stint/time.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stint::model {

/// Why nothing is admitted.
enum class PauseCause : std::uint8_t {
  throttle,     ///< the account's rate: a window that passes soon
  outage,       ///< the provider fails or has no room
  quota,        ///< the account's quota is used up
  spend_limit,  ///< the account pays for no more: a person acts
  auth,         ///< the credential is refused: a person acts
  outside,      ///< another user of the account was told to wait
};
inline constexpr std::array kPauseCauses = {PauseCause::throttle,    PauseCause::outage, PauseCause::quota,
                                            PauseCause::spend_limit, PauseCause::auth,   PauseCause::outside};
[[nodiscard]] std::string_view to_string(PauseCause cause) noexcept;

struct Pause {
  PauseCause cause = PauseCause::throttle;
  std::optional<TimePoint> until;  ///< none: until a person acts
  Failure failure;                 ///< that closed the gate
};

struct GatePolicy {
  BackoffRange throttle{.base = std::chrono::seconds(1), .cap = std::chrono::seconds(30)};
  BackoffRange outage{.base = std::chrono::seconds(1), .cap = std::chrono::seconds(30)};
  BackoffRange quota{.base = std::chrono::minutes(1), .cap = std::chrono::minutes(15)};
  /// So many failures of the provider in a row, with no answer in between, are an outage.
  std::uint32_t outage_failures = 5;
  /// Callers wait for the end of a pause that is no longer than this, and fail at once otherwise.
  Duration wait_max = kThrottleMax;
};

/// How an admitted call ended, for the gate.
enum class GateSignal : std::uint8_t {
  answered,  ///< the provider dealt with the call, whatever it said
  refused,   ///< the provider, or the way to it, failed
  ignored,   ///< not known: cancelled, or not sent
};

/// What a failure says about the account or the provider.
[[nodiscard]] GateSignal gate_signal(const Failure& failure) noexcept;
/// … and about the concurrency that the provider bears.
[[nodiscard]] LoadSignal load_signal(const Failure& failure) noexcept;

class GateCore {
 public:
  explicit GateCore(const GatePolicy& policy) noexcept : policy_(policy) {}

  /// Belongs to the admission that it was made for.
  struct Pass {
    std::uint64_t epoch = 0;
    bool probe = false;
  };
  /// What a change means for the callers.
  enum class Change : std::uint8_t {
    none,
    closed,  ///< or closed for longer
    opened,  ///< the ramp begins now
  };

  [[nodiscard]] bool can_pass(TimePoint now) const noexcept;
  /// Only if `can_pass`.
  [[nodiscard]] Pass pass() noexcept;
  /// When `can_pass` may become true by itself; none: only by a change.
  [[nodiscard]] std::optional<TimePoint> opens_at() const noexcept;
  [[nodiscard]] bool is_open() const noexcept { return !pause_.has_value(); }
  [[nodiscard]] bool is_probing() const noexcept { return probing_; }

  /// The provider accepts a call.
  Change accepted(Pass pass) noexcept;
  Change ended(Pass pass, GateSignal signal, const Failure* failure, TimePoint now, std::uint64_t random);
  Change pause_until(std::optional<TimePoint> until, const Failure& why);
  /// The pause ends now; the next call is the probe.
  void resume(TimePoint now) noexcept;

  /// The pause, also while its probe is under way; none: open.
  [[nodiscard]] const std::optional<Pause>& pause() const noexcept { return pause_; }
  /// Whether callers fail instead of waiting.
  [[nodiscard]] bool refuses(TimePoint now) const noexcept;

 private:
  Change open() noexcept;
  Change close(PauseCause cause, std::optional<TimePoint> until, const Failure& failure);
  Change failed(const Failure& failure, bool current, bool probe, TimePoint now, std::uint64_t random);
  Change judge(const Failure& failure, bool current, bool probe, TimePoint now, std::uint64_t random);
  [[nodiscard]] TimePoint after(const BackoffRange& range, TimePoint now, std::uint64_t random) const noexcept;

  GatePolicy policy_;
  std::optional<Pause> pause_;
  std::uint64_t epoch_ = 0;              // incremented when the gate closes or opens
  std::uint32_t pauses_in_a_row_ = 0;    // without an accepted call besides probes in between
  std::uint32_t failures_in_a_row_ = 0;  // of the provider
  bool probing_ = false;
};

}  // namespace stint::model
