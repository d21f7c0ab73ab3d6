/// How fast an upstream may be asked, pure: buckets of requests and tokens per minute that admit together or not at
/// all, a gate that closes for everybody, and a ramp behind it. Moments are arguments; `stint/rate.hpp` waits.
///
/// A bucket is one moment, the one at which it will be full again: taking moves it into the future by what the amount
/// takes to flow back. So nothing needs refilling, and a provider's "reset" is a value of the same kind.
/// Not thread-safe.
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

/// What one call takes: an estimate before it, the truth after it. `tokens` is the sum of the two.
struct RateAmount {
  std::int64_t requests = 1;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;

  [[nodiscard]] std::int64_t of(RateKind kind) const noexcept;
  friend bool operator==(const RateAmount&, const RateAmount&) = default;
};

struct RateLimits {
  std::int64_t requests_per_minute = 0;  ///< 0, here and below: no limit is known
  std::int64_t tokens_per_minute = 0;
  std::int64_t input_tokens_per_minute = 0;
  std::int64_t output_tokens_per_minute = 0;
  /// How much unused flow may be saved up and had at once. Providers enforce a minute's limit in shorter slices; what
  /// is larger than this is admitted when the bucket is full, and leaves a debt.
  Duration burst = std::chrono::seconds(10);
  /// After a closed gate one request goes first, then two in the next step, four, eight, for `ramp_steps` of them.
  Duration ramp_step = std::chrono::seconds(1);
  int ramp_steps = 8;
};

/// What a provider says about one limit. A limit that is not positive is a placeholder, and all of it is ignored.
struct RateReport {
  std::optional<std::int64_t> limit{};
  std::optional<std::int64_t> remaining{};
  std::optional<Duration> reset{};  ///< until it is full again
};

/// One limit per minute.
class RateBucket {
 public:
  RateBucket() = default;  ///< without a limit
  RateBucket(std::int64_t per_minute, Duration burst) noexcept;

  [[nodiscard]] std::int64_t per_minute() const noexcept { return limit_; }
  /// The earliest moment for `amount`, if nobody takes before. Not after `now` means now.
  [[nodiscard]] TimePoint ready_at(std::int64_t amount, TimePoint now) noexcept;
  void take(std::int64_t amount, TimePoint now) noexcept;
  /// More was used than was taken. Without a moment: it counts from the next look on.
  void charge(std::int64_t amount) noexcept;
  /// Less was used than was taken at `taken_at`. What has flowed back since then is not given twice.
  void give_back(std::int64_t amount, TimePoint taken_at) noexcept;
  /// Keeps what is owed, in units.
  void set_limit(std::int64_t per_minute, TimePoint now) noexcept;
  /// A report lowers what is there, never raises it: it may be older than what was taken since.
  void report(const RateReport& report, TimePoint now) noexcept;
  /// Units that could be had at once; negative: debt. Meaningless without a limit.
  [[nodiscard]] std::int64_t available(TimePoint now) noexcept;

 private:
  Duration cost(std::int64_t amount) const noexcept;
  Duration depth() const noexcept;
  void look(TimePoint now) noexcept;

  std::int64_t limit_ = 0;
  Duration burst_{};
  TimePoint full_at_ = TimePoint::min();
  TimePoint last_full_ = TimePoint::min();  // when a take last found the bucket full
  Duration owed_{};                         // charged since the last look
};

class RateCore {
 public:
  explicit RateCore(const RateLimits& limits) noexcept;

  /// `Errc::invalid` for what can never be admitted: more than a whole minute's limit, or negative.
  [[nodiscard]] Result<> check(const RateAmount& amount) const;
  [[nodiscard]] TimePoint ready_at(const RateAmount& amount, TimePoint now) noexcept;
  /// What it waits for, in words: "input tokens per minute", "the gate", "the ramp". Empty if for nothing.
  [[nodiscard]] std::string_view waits_for(const RateAmount& amount, TimePoint now) noexcept;
  /// Takes from all buckets, or from none if it is too early.
  [[nodiscard]] bool take(const RateAmount& amount, TimePoint now) noexcept;
  /// Corrects what was taken to what was used, either way. Negative counts are taken as zero.
  void settle(const RateAmount& taken, const RateAmount& used, TimePoint taken_at) noexcept;
  /// As if it had never been taken.
  void give_back(const RateAmount& taken, TimePoint taken_at) noexcept;

  /// Nobody is admitted before `when`; then the ramp begins. Only ever extends.
  void pause_until(TimePoint when) noexcept;
  [[nodiscard]] TimePoint gate() const noexcept { return gate_; }
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
  TimePoint gate_ = TimePoint::min();
  std::int64_t admitted_since_gate_ = 0;
};

}  // namespace stint
