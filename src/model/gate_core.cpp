#include "model/gate_core.hpp"

#include "stint/assert.hpp"
#include "stint/deadline.hpp"

#include <algorithm>
#include <utility>

namespace stint::model {
namespace {

constexpr int kTooManyRequests = 429;

/// The provider refuses this account for now.
bool is_throttle(const Failure& failure) {
  return failure.kind == FailureKind::retry && (failure.status == kTooManyRequests || failure.delay);
}

}  // namespace

std::string_view to_string(PauseCause cause) noexcept {
  switch (cause) {
    case PauseCause::throttle: return "throttle";
    case PauseCause::outage: return "outage";
    case PauseCause::quota: return "quota";
    case PauseCause::spend_limit: return "spend_limit";
    case PauseCause::auth: return "auth";
    case PauseCause::outside: return "outside";
  }
  return "unknown";
}

GateSignal gate_signal(const Failure& failure) noexcept {
  switch (failure.kind) {
    case FailureKind::retry:
    case FailureKind::overload:
    case FailureKind::quota:
    case FailureKind::spend_limit:
    case FailureKind::auth:
    case FailureKind::ambiguous: return GateSignal::refused;
    case FailureKind::denied:
    case FailureKind::invalid:
    case FailureKind::context_too_long:
    case FailureKind::not_found:
    case FailureKind::failed: break;
  }
  return GateSignal::answered;
}

LoadSignal load_signal(const Failure& failure) noexcept {
  const bool overload = failure.kind == FailureKind::overload || is_throttle(failure);
  return overload ? LoadSignal::overload : LoadSignal::ignored;
}

bool GateCore::can_pass(TimePoint now) const noexcept {
  return !pause_ || (!probing_ && pause_->until && now >= *pause_->until);
}

GateCore::Pass GateCore::pass() noexcept {
  STINT_ASSERT(!probing_ && "one probe at a time");
  probing_ = pause_.has_value();
  return {.epoch = epoch_, .probe = probing_};
}

std::optional<TimePoint> GateCore::opens_at() const noexcept {
  return pause_ && !probing_ ? pause_->until : std::nullopt;
}

bool GateCore::refuses(TimePoint now) const noexcept {
  if (!pause_ || probing_) return false;
  if (!pause_->until) return true;
  if (now >= *pause_->until) return false;
  return pause_->cause == PauseCause::quota || *pause_->until - now > policy_.wait_max;
}

GateCore::Change GateCore::accepted(Pass pass) noexcept {
  if (pass.epoch != epoch_) return Change::none;
  failures_in_a_row_ = 0;
  if (pass.probe) return open();
  pauses_in_a_row_ = 0;
  return Change::none;
}

GateCore::Change GateCore::ended(Pass pass, GateSignal signal, const Failure* failure, TimePoint now,
                                 std::uint64_t random) {
  const bool current = pass.epoch == epoch_;
  if (current && pass.probe) probing_ = false;
  if (signal == GateSignal::answered) return accepted(pass);
  if (signal == GateSignal::ignored || failure == nullptr) return Change::none;
  return failed(*failure, current, current && pass.probe, now, random);
}

GateCore::Change GateCore::failed(const Failure& failure, bool current, bool probe, TimePoint now,
                                  std::uint64_t random) {
  const bool was_open = !pause_.has_value();
  const Change change = judge(failure, current, probe, now, random);
  if (change == Change::closed && (was_open || probe)) ++pauses_in_a_row_;
  return change;
}

/// A failure of a call that began before the gate last closed or opened is news only if it names a window, or a reason
/// for which a person must act: else many calls that fail together would prolong one pause many times.
GateCore::Change GateCore::judge(const Failure& failure, bool current, bool probe, TimePoint now,
                                 std::uint64_t random) {
  if (failure.kind == FailureKind::spend_limit) return close(PauseCause::spend_limit, std::nullopt, failure);
  if (failure.kind == FailureKind::auth) return close(PauseCause::auth, std::nullopt, failure);
  if (!current && !failure.delay) return Change::none;
  const auto until = [&](const BackoffRange& range) {
    return failure.delay ? Deadline::after(now, *failure.delay).when() : after(range, now, random);
  };
  if (failure.kind == FailureKind::quota) return close(PauseCause::quota, until(policy_.quota), failure);
  if (is_throttle(failure)) return close(PauseCause::throttle, until(policy_.throttle), failure);
  const bool is_outage = failure.delay || probe || ++failures_in_a_row_ >= policy_.outage_failures;
  return is_outage ? close(PauseCause::outage, until(policy_.outage), failure) : Change::none;
}

GateCore::Change GateCore::pause_until(std::optional<TimePoint> until, const Failure& why) {
  return close(PauseCause::outside, until, why);
}

void GateCore::resume(TimePoint now) noexcept {
  if (pause_ && !probing_) pause_->until = pause_->until ? std::min(*pause_->until, now) : now;
}

GateCore::Change GateCore::open() noexcept {
  pause_.reset();
  probing_ = false;
  ++epoch_;
  return Change::opened;
}

/// A pause is never shortened.
GateCore::Change GateCore::close(PauseCause cause, std::optional<TimePoint> until, const Failure& failure) {
  if (pause_ && (!pause_->until || (until && *until <= *pause_->until))) return Change::none;
  failures_in_a_row_ = 0;
  pause_ = Pause{.cause = cause, .until = until, .failure = failure};
  probing_ = false;  // a probe that is under way was admitted before this news
  ++epoch_;
  return Change::closed;
}

/// Between half of the back-off and all of it: a pause must not be empty.
TimePoint GateCore::after(const BackoffRange& range, TimePoint now, std::uint64_t random) const noexcept {
  const Duration half = backoff_max(range, pauses_in_a_row_) / 2;
  return now + half + full_jitter(half, random);
}

}  // namespace stint::model
