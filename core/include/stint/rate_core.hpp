/// Rate limits of an upstream as a pure core: buckets of requests and tokens per minute that admit together or not at
/// all, a pause for all callers after a refusal, and a slow-start ramp after it. Time is an argument; `stint/rate.hpp`
/// does the waiting.
///
/// A bucket is represented by one time point, when it will be full again; taking an amount moves it into the future by
/// the time the amount takes to refill. So no refilling is needed, and a provider's "reset" is a value of the same
/// kind. Not thread-safe.
#pragma once

#include "stint/error.hpp"
#include "stint/time.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stint {

enum class RateKind : std::uint8_t { requests, tokens, input_tokens, output_tokens };
inline constexpr std::array kRateKinds = {RateKind::requests, RateKind::tokens, RateKind::input_tokens,
                                          RateKind::output_tokens};
[[nodiscard]] std::string_view to_string(RateKind kind) noexcept;

/// The cost of one call: an estimate before it, the actual usage after it. `tokens` is the sum of the two kinds.
struct RateAmount {
  std::int64_t requests = 1;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;

  [[nodiscard]] std::int64_t of(RateKind kind) const noexcept;
  friend bool operator==(const RateAmount&, const RateAmount&) = default;
};

struct RateLimits {
  std::int64_t requests_per_minute = 0;  ///< 0, here and below: no known limit
  std::int64_t tokens_per_minute = 0;
  std::int64_t input_tokens_per_minute = 0;
  std::int64_t output_tokens_per_minute = 0;
  /// How much unused rate may accumulate. Providers enforce a per-minute limit in shorter slices. A request larger than
  /// this is admitted when the bucket is full, and leaves a debt.
  Duration burst = std::chrono::seconds(10);
  /// Slow start after a pause: one request in the first step, then two, four, eight, for `ramp_steps` steps.
  Duration ramp_step = std::chrono::seconds(1);
  int ramp_steps = 8;
};

/// A provider's report about one limit. If `limit` is not positive it is a placeholder, and the report is ignored.
struct RateReport {
  std::optional<std::int64_t> limit{};
  std::optional<std::int64_t> remaining{};
  std::optional<Duration> reset{};  ///< until it is full again
};

/// One limit per minute.
class RateBucket {
 public:
  RateBucket() = default;  ///< unlimited
  RateBucket(std::int64_t per_minute, Duration burst) noexcept;

  [[nodiscard]] std::int64_t per_minute() const noexcept { return limit_; }
  /// The earliest time at which `amount` is available if nothing else is taken before; a time not after `now` means at
  /// once.
  [[nodiscard]] TimePoint ready_at(std::int64_t amount, TimePoint now) noexcept;
  void take(std::int64_t amount, TimePoint now) noexcept;
  /// Charges usage beyond what was taken. Takes no time: the charge applies from the next access on.
  void charge(std::int64_t amount) noexcept;
  /// Returns what was taken at `taken_at` and not used. What has refilled since then is not credited twice.
  void give_back(std::int64_t amount, TimePoint taken_at) noexcept;
  /// Keeps the debt, in units.
  void set_limit(std::int64_t per_minute, TimePoint now) noexcept;
  /// A report lowers the available amount, never raises it: it may be older than the latest takes.
  void report(const RateReport& report, TimePoint now) noexcept;
  /// Units available at once; negative: debt. Meaningless without a limit.
  [[nodiscard]] std::int64_t available(TimePoint now) noexcept;

 private:
  Duration cost(std::int64_t amount) const noexcept;
  Duration depth() const noexcept;
  void look(TimePoint now) noexcept;

  std::int64_t limit_ = 0;
  Duration burst_{};
  TimePoint full_at_ = TimePoint::min();
  TimePoint last_full_ = TimePoint::min();  // when a take last found the bucket full
  Duration owed_{};                         // charged since the last access
};

class RateCore {
 public:
  explicit RateCore(const RateLimits& limits) noexcept;

  /// `Errc::invalid` for an amount that can never be admitted: more than a whole minute's limit, or negative.
  [[nodiscard]] Result<> check(const RateAmount& amount) const;
  [[nodiscard]] TimePoint ready_at(const RateAmount& amount, TimePoint now) noexcept;
  /// What the amount waits for, for messages: "input tokens per minute", "the pause", "the ramp". Empty if it need not
  /// wait.
  [[nodiscard]] std::string_view waits_for(const RateAmount& amount, TimePoint now) noexcept;
  /// Takes from all buckets, or from none if it is too early.
  [[nodiscard]] bool take(const RateAmount& amount, TimePoint now) noexcept;
  /// Corrects the taken amount to the used one, up or down. Negative counts are treated as zero.
  void settle(const RateAmount& taken, const RateAmount& used, TimePoint taken_at) noexcept;
  /// Returns the whole amount, as if it had never been taken.
  void give_back(const RateAmount& taken, TimePoint taken_at) noexcept;

  /// Admits nothing before `when`; then the ramp begins. Never shortens a pause.
  void pause_until(TimePoint when) noexcept;
  [[nodiscard]] TimePoint paused_until() const noexcept { return paused_until_; }
  /// The lower of the configured and the reported limit applies.
  void correct(RateKind kind, const RateReport& report, TimePoint now) noexcept;
  [[nodiscard]] std::int64_t available(RateKind kind, TimePoint now) noexcept { return bucket(kind).available(now); }
  [[nodiscard]] std::int64_t per_minute(RateKind kind) const noexcept {
    return buckets_[static_cast<std::size_t>(kind)].per_minute();
  }

 private:
  RateBucket& bucket(RateKind kind) noexcept { return buckets_[static_cast<std::size_t>(kind)]; }
  TimePoint ramp_ready() const noexcept;

  RateLimits limits_;
  std::array<RateBucket, kRateKinds.size()> buckets_;
  TimePoint paused_until_ = TimePoint::min();
  std::int64_t admitted_since_pause_ = 0;
};

}  // namespace stint
