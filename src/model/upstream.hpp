/// `Upstream`: one account of one provider, as this process uses it. `llm` runs and the gateway share it.
///
/// A call waits in a line for three things at once: the pause gate, the rate buckets, and room under the adaptive
/// limit. The line is strictly FIFO: a large call at the head delays small ones behind it; a call that is repeated
/// keeps the turn of its first admission. A refusal by the provider (a throttle with a window, a quota, an outage)
/// closes the gate for every caller at once. Then one call, the probe, goes first; when the provider has accepted it, a
/// ramp admits 1, 2, 4, 8 … calls in each step. A pause that is longer than `wait_max`, or ends only when a person
/// acts, does not hold its callers: they fail at once with the provider's error, so that their runs can be parked.
///
/// Own thread only. Must outlive its admissions and waiters; the destructor asserts that there are none.
#pragma once

#include "domain/system.hpp"
#include "domain/usage.hpp"
#include "domain/wait_reason.hpp"
#include "model/failure.hpp"
#include "model/gate_core.hpp"
#include "model/rate_headers.hpp"
#include "stint/aimd_core.hpp"
#include "stint/deadline.hpp"
#include "stint/detail/intrusive_list.hpp"
#include "stint/rate_core.hpp"
#include "stint/retry_core.hpp"
#include "stint/retry_tokens.hpp"
#include "stint/task.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace stint::model {

class Upstream;

/// Limits of providers are per account and per class of models.
struct UpstreamKey {
  std::string provider;     ///< `anthropic`
  std::string account;      ///< the limit whose pause this one shares: `account:anthropic`
  std::string model_class;  ///< empty: one class for all models

  friend auto operator<=>(const UpstreamKey&, const UpstreamKey&) = default;
};

struct UpstreamOptions {
  stint::RateLimits rates;  ///< configured; the provider's headers lower them and fill in the unknown ones
  AimdPolicy concurrency;
  RetryTokens::Options retries;
  GatePolicy gate;
  bool cache_reads_count = true;  ///< tokens that were read from the provider's cache count to its limits
};

/// What a call is expected to use: reserved from the buckets before it, corrected after it.
struct CallEstimate {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;  ///< the most that the request allows
};

/// Follows one wait from outside: what it waits for at this moment. Must outlive the wait.
class AdmitWatch {
 public:
  AdmitWatch() = default;
  AdmitWatch(const AdmitWatch&) = delete;
  AdmitWatch& operator=(const AdmitWatch&) = delete;
  /// None: it does not wait.
  [[nodiscard]] std::optional<domain::WaitReason> reason() const;

 private:
  friend class Upstream;
  const void* wait_ = nullptr;  // an Upstream::Wait
  const Upstream* upstream_ = nullptr;
};

struct AdmitOptions {
  Deadline deadline{};          ///< besides the one of the caller's scope
  std::uint64_t turn = 0;       ///< Admission::turn of an earlier attempt of the same call; 0: a new call
  AdmitWatch* watch = nullptr;  ///< optional
};

/// An admitted call: its place under the limits. Move-only; the destructor returns the place. Report how it went, in
/// any order, each at most once: `accepted`, `report`, `settle`, and one of `succeeded`, `failed`, `not_sent`.
/// Destroyed without any of the last three, as by a cancellation, it says nothing about the provider, and without
/// `settle` the estimate stands.
class [[nodiscard]] Admission {
 public:
  Admission(Admission&& other) noexcept;
  Admission& operator=(Admission&& other) noexcept;
  ~Admission() { end(); }

  /// The provider answers with a status of 2xx. A probe opens the gate here: its answer may take minutes.
  void accepted() noexcept;
  /// The limits that the answer's headers report.
  void report(const RateLimits& limits) noexcept;
  /// Corrects the estimate to the actual usage, up or down.
  void settle(const Usage& usage) noexcept;
  /// The call was carried out to its end. Returns the place.
  void succeeded() noexcept;
  /// The call failed: closes the gate or lowers the limit if the failure is about the account or the provider. Returns
  /// the place.
  void failed(const Failure& failure) noexcept;
  /// Nothing reached the provider, by a decision here: returns the place and the estimate.
  void not_sent() noexcept;

  [[nodiscard]] std::uint64_t turn() const noexcept { return turn_; }
  [[nodiscard]] bool is_probe() const noexcept { return pass_.probe; }

 private:
  friend class Upstream;
  Admission(Upstream& upstream, const RateAmount& taken, TimePoint at, AimdCore::Sample sample, GateCore::Pass pass,
            std::uint64_t turn) noexcept;
  void end() noexcept;
  void settle_amount(const RateAmount& used) noexcept;
  void finish(LoadSignal load, GateSignal gate, const Failure* failure) noexcept;

  Upstream* upstream_;  // null: ended
  RateAmount taken_;
  TimePoint at_;
  AimdCore::Sample sample_;
  GateCore::Pass pass_;
  std::uint64_t turn_;
  bool settled_ = false;
};

/// Calls of one upstream since it was made. `started − ended − active` is 0 at any moment.
struct UpstreamCounts {
  std::uint64_t started = 0;   ///< admissions
  std::uint64_t ended = 0;     ///< admissions that were returned
  std::uint64_t probes = 0;    ///< of them
  std::uint64_t refused = 0;   ///< callers that failed instead of waiting
  std::uint64_t pauses = 0;    ///< how often the gate was closed
  std::uint64_t overload = 0;  ///< failures with which the provider named no limit of ours: 529, 503
};

class Upstream {
 public:
  /// Buckets of a minute are full again by then.
  static constexpr Duration kIdleAfter = std::chrono::minutes(2);

  /// Called when a failure closes the gate, or prolongs its pause: not for pauses from outside. Must not throw, and
  /// must not destroy the upstream.
  using OnPause = std::function<void(const Upstream&, const Pause&)>;

  Upstream(Executor& executor, const domain::System& system, UpstreamKey key, const UpstreamOptions& options,
           OnPause on_pause = {});
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  /// Waits in line. Fails at once if the call can't be admitted before its deadline (`timed_out`, naming the time that
  /// is needed), if the gate is closed for longer than callers wait (the error of the failure that closed it; `pause`
  /// has it as fields), or if the estimate is above a whole minute's limit (`invalid`).
  [[nodiscard]] Task<Result<Admission>> admit(CallEstimate estimate, AdmitOptions options = {});

  /// From outside, such as a CLI's rate limit on the same account: nothing is admitted before `until`; none: before
  /// `resume`. Never shortens a pause. Does not call OnPause.
  void pause_until(std::optional<TimePoint> until, const Failure& why) noexcept;
  /// Ends a pause now: the next call is the probe.
  void resume() noexcept;
  /// The pause that holds callers back now.
  [[nodiscard]] std::optional<Pause> pause() const;

  /// The retries of all callers together.
  [[nodiscard]] RetryTokens& retries() noexcept { return retries_; }

  [[nodiscard]] const UpstreamKey& key() const noexcept { return key_; }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
  [[nodiscard]] std::uint32_t active() const noexcept { return aimd_.inflight(); }
  [[nodiscard]] std::uint32_t concurrency() const noexcept { return aimd_.limit(); }
  /// Units that are free at once; empty without a known limit.
  [[nodiscard]] std::optional<std::int64_t> available(RateKind kind) const noexcept;
  [[nodiscard]] const UpstreamCounts& counts() const noexcept { return counts_; }
  /// Nothing waits or is active, the gate is open, and its buckets are full again: a new one would know as much.
  [[nodiscard]] bool is_idle() const noexcept;

 private:
  friend class Admission;
  friend class AdmitWatch;
  class Wait;
  class Alarm final : public Timer {
   public:
    explicit Alarm(Upstream& upstream) noexcept : upstream_(upstream) {}
    void fire() noexcept override { upstream_.pump(); }

   private:
    Upstream& upstream_;
  };

  [[nodiscard]] TimePoint now() const noexcept { return executor_.now(); }
  [[nodiscard]] std::optional<Error> refusal(Deadline deadline) const;
  [[nodiscard]] Error late(const Wait& wait) const;
  [[nodiscard]] Error too_late(const RateAmount& amount, TimePoint ready) const;
  void line_up(Wait& wait) noexcept;
  void leave(Wait& wait) noexcept;
  void take_out(Wait& wait) noexcept;
  void pump() noexcept;
  [[nodiscard]] bool can_admit(const RateAmount& amount) noexcept;
  [[nodiscard]] Admission admit_now(const RateAmount& amount, std::uint64_t turn) noexcept;
  [[nodiscard]] std::optional<TimePoint> ready_at(const RateAmount& amount) const noexcept;
  void set_alarm(std::optional<TimePoint> when) noexcept;
  void gate_changed(GateCore::Change change) noexcept;
  void refuse_waiters() noexcept;
  void correct(const RateLimits& limits) noexcept;
  [[nodiscard]] domain::WaitReason reason_of(const Wait& wait) const;
  [[nodiscard]] domain::WaitReason reason_of_head(const RateAmount& amount) const;

  Executor& executor_;
  const domain::System& system_;
  const UpstreamKey key_;
  const UpstreamOptions options_;
  const OnPause on_pause_;
  mutable RateCore buckets_;  // reading it may note the passing of time
  AimdCore aimd_;
  GateCore gate_;
  RetryTokens retries_;
  UpstreamCounts counts_;
  detail::List<Wait> line_;  // by turn
  std::size_t waiting_ = 0;
  std::uint64_t turns_ = 0;
  TimePoint used_{};  // when something last waited or ended
  Alarm alarm_;
};

}  // namespace stint::model
