// Invariants
// 1. A call is admitted only at the head of the line; the line is in the order of turns.
// 2. Whatever can admit the head ends with pump(): an arrival, a departure, the end of an admission, a change of the
//    gate, the alarm. Corrections of the buckets don't: one that precedes a failure would admit a call just before the
//    gate closes; the end of the admission follows soon.
// 3. The alarm is armed only while something waits, so that it never outlives the executor.
// 4. A waiter that was admitted and stopped before it resumed returns its place and its estimate.
#include "model/upstream.hpp"

#include "stint/assert.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace stint::model {
namespace {

std::string name_of(const UpstreamKey& key) {
  return key.model_class.empty() ? key.account : key.account + "/" + key.model_class;
}

std::string seconds_text(Duration duration) {
  const auto tenths = std::chrono::ceil<std::chrono::duration<std::int64_t, std::deci>>(duration).count();
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

/// At most a whole minute's limit: a larger call is admitted when the bucket is full, and leaves a debt.
RateAmount amount_of(const CallEstimate& estimate, const RateCore& buckets) {
  const auto most = [&](std::int64_t wanted, RateKind kind) {
    const std::int64_t limit = buckets.per_minute(kind);
    return limit > 0 ? std::min(wanted, limit) : wanted;
  };
  RateAmount amount;
  amount.input_tokens = most(std::max(estimate.input_tokens, std::int64_t{0}), RateKind::input_tokens);
  amount.output_tokens = most(std::max(estimate.output_tokens, std::int64_t{0}), RateKind::output_tokens);
  amount.input_tokens = most(amount.input_tokens, RateKind::tokens);
  const std::int64_t both = buckets.per_minute(RateKind::tokens);
  if (both > 0) amount.output_tokens = std::min(amount.output_tokens, both - amount.input_tokens);
  return amount;
}

RateReport report_of(const RateCounter& counter) {
  return {.limit = counter.limit, .remaining = counter.remaining, .reset = counter.reset};
}

}  // namespace

// ---- The wait --------------------------------------------------------------------------------------------------

class Upstream::Wait final : public Leaf, public detail::Link<Wait>, private Timer {
 public:
  Wait(Upstream& upstream, const CallEstimate& estimate, const AdmitOptions& options) noexcept
      : upstream_(upstream),
        estimate_(estimate),
        deadline_(options.deadline),
        turn_(options.turn != 0 ? options.turn : ++upstream.turns_),
        watch_(options.watch) {}
  ~Wait() {
    if (in_line()) {
      if (watch_ != nullptr) watch_->wait_ = nullptr;
      upstream_.leave(*this);
    }
    if (admission_) admission_->not_sent();
  }

  void await_suspend(std::coroutine_handle<>) noexcept {
    if (!park()) return;
    if (watch_ != nullptr) {
      watch_->wait_ = this;
      watch_->upstream_ = &upstream_;
    }
    if (!deadline_.is_never()) executor().arm(*this, deadline_.when());
    upstream_.line_up(*this);
  }
  Result<Admission> await_resume() {
    if (error_) return std::unexpected(std::move(*error_));
    Admission admission = std::move(*admission_);
    admission_.reset();
    return admission;
  }

  void grant(Admission admission) noexcept {
    admission_.emplace(std::move(admission));
    end();
  }
  void refuse(Error error) noexcept {
    error_.emplace(std::move(error));
    end();
  }
  [[nodiscard]] const CallEstimate& estimate() const noexcept { return estimate_; }
  [[nodiscard]] Deadline deadline() const noexcept { return deadline_; }
  [[nodiscard]] std::uint64_t turn() const noexcept { return turn_; }

 private:
  [[nodiscard]] bool in_line() const noexcept { return detail::Link<Wait>::linked(); }
  /// It has left the line.
  void end() noexcept {
    executor().disarm(*this);
    if (watch_ != nullptr) watch_->wait_ = nullptr;
    complete();
  }
  void cancel() noexcept override {
    if (!in_line()) return;  // decided, and already queued
    upstream_.leave(*this);
    end();
  }
  bool ready() const noexcept override { return !in_line(); }
  void fire() noexcept override {
    Error late = upstream_.late(*this);
    upstream_.leave(*this);
    refuse(std::move(late));
  }

  Upstream& upstream_;
  const CallEstimate estimate_;
  const Deadline deadline_;
  const std::uint64_t turn_;
  AdmitWatch* const watch_;
  std::optional<Admission> admission_;
  std::optional<Error> error_;
};

std::optional<domain::WaitReason> AdmitWatch::reason() const {
  if (wait_ == nullptr) return std::nullopt;
  return upstream_->reason_of(*static_cast<const Upstream::Wait*>(wait_));
}

// ---- An admission ----------------------------------------------------------------------------------------------

Admission::Admission(Upstream& upstream, const RateAmount& taken, TimePoint at, AimdCore::Sample sample,
                     GateCore::Pass pass, std::uint64_t turn) noexcept
    : upstream_(&upstream), taken_(taken), at_(at), sample_(sample), pass_(pass), turn_(turn) {}

Admission::Admission(Admission&& other) noexcept
    : upstream_(std::exchange(other.upstream_, nullptr)),
      taken_(other.taken_),
      at_(other.at_),
      sample_(other.sample_),
      pass_(other.pass_),
      turn_(other.turn_),
      settled_(other.settled_) {}

Admission& Admission::operator=(Admission&& other) noexcept {
  Admission old(std::move(*this));
  upstream_ = std::exchange(other.upstream_, nullptr);
  taken_ = other.taken_;
  at_ = other.at_;
  sample_ = other.sample_;
  pass_ = other.pass_;
  turn_ = other.turn_;
  settled_ = other.settled_;
  return *this;
}

void Admission::accepted() noexcept {
  if (upstream_ != nullptr) upstream_->gate_changed(upstream_->gate_.accepted(pass_));
}

void Admission::report(const RateLimits& limits) noexcept {
  if (upstream_ != nullptr) upstream_->correct(limits);
}

void Admission::settle(const Usage& usage) noexcept {
  if (upstream_ == nullptr || std::exchange(settled_, true)) return;
  const std::int64_t cached = upstream_->options_.cache_reads_count ? usage.cache_read : 0;
  settle_amount(
      {.requests = 1, .input_tokens = usage.fresh_in + usage.cache_write + cached, .output_tokens = usage.out});
}

void Admission::settle_amount(const RateAmount& used) noexcept {
  settled_ = true;
  upstream_->buckets_.settle(taken_, used, at_);
}

void Admission::succeeded() noexcept { finish(LoadSignal::success, GateSignal::answered, nullptr); }

void Admission::failed(const Failure& failure) noexcept {
  if (upstream_ == nullptr) return;
  if (failure.kind == FailureKind::overload) ++upstream_->counts_.overload;
  // A refused call has cost a request, but no tokens. One that broke off may have used all that it asked for.
  const bool worked = failure.kind == FailureKind::ambiguous || failure.after_output;
  if (!settled_ && !worked) settle_amount({.requests = 1});
  finish(load_signal(failure), gate_signal(failure), &failure);
}

void Admission::not_sent() noexcept {
  if (upstream_ == nullptr) return;
  if (!std::exchange(settled_, true)) upstream_->buckets_.give_back(taken_, at_);
  end();
}

void Admission::end() noexcept { finish(LoadSignal::ignored, GateSignal::ignored, nullptr); }

void Admission::finish(LoadSignal load, GateSignal gate, const Failure* failure) noexcept {
  if (upstream_ == nullptr) return;
  Upstream& upstream = *std::exchange(upstream_, nullptr);
  (void)upstream.aimd_.end(sample_, load, upstream.now());
  ++upstream.counts_.ended;
  upstream.used_ = upstream.now();
  upstream.gate_changed(upstream.gate_.ended(pass_, gate, failure, upstream.now(), upstream.system_.random()));
}

// ---- The line --------------------------------------------------------------------------------------------------

Upstream::Upstream(Executor& executor, const domain::System& system, UpstreamKey key, const UpstreamOptions& options,
                   OnPause on_pause)
    : executor_(executor),
      system_(system),
      key_(std::move(key)),
      options_(options),
      on_pause_(std::move(on_pause)),
      buckets_(options.rates),
      aimd_(options.concurrency),
      gate_(options.gate),
      retries_(options.retries),
      alarm_(*this) {}

Upstream::~Upstream() {
  STINT_ASSERT(waiting_ == 0 && "this upstream still has waiters");
  STINT_ASSERT(aimd_.inflight() == 0 && "a call to this upstream is still active");
}

Task<Result<Admission>> Upstream::admit(CallEstimate estimate, AdmitOptions options) {
  CancelToken& token = co_await current_token();
  options.deadline = options.deadline.sooner(token.deadline());
  if (options.deadline.passed(now())) {
    co_return fail(Error(Errc::timed_out, Retry::safe, "the deadline passed before the call was admitted"));
  }
  if (std::optional<Error> error = refusal(options.deadline)) {
    ++counts_.refused;
    co_return std::unexpected(std::move(*error));
  }
  co_return co_await Wait(*this, estimate, options);
}

/// The failure that closed the gate, if a caller with this deadline is not to wait for its end.
std::optional<Error> Upstream::refusal(Deadline deadline) const {
  const std::optional<Pause>& pause = gate_.pause();
  if (!pause || gate_.is_probing()) return std::nullopt;
  const bool late = pause->until && *pause->until > now() && deadline.passed(*pause->until);
  if (!late && !gate_.refuses(now())) return std::nullopt;
  std::string what = name_of(key_) + " is paused";
  if (pause->until) what += " for " + seconds_text(*pause->until - now());
  if (late) what += ", beyond the deadline";
  const Error last = pause->failure.error();
  Error error(last.code(), Retry::never, what + ": " + last.describe());
  if (pause->until) error = std::move(error).after(*pause->until - now());
  return error;
}

Error Upstream::late(const Wait& wait) const {
  const domain::WaitReason reason = reason_of(wait);
  std::string what = "not admitted to " + name_of(key_) + " before the deadline";
  if (reason.ahead && *reason.ahead > 0) what += "; " + std::to_string(*reason.ahead) + " calls were ahead of it";
  if (const std::optional<Pause>& pause = gate_.pause()) what += ": " + pause->failure.error().describe();
  return {Errc::timed_out, Retry::safe, std::move(what)};
}

/// Turns are few that come back: the search begins at the end.
void Upstream::line_up(Wait& wait) noexcept {
  const detail::Link<Wait>* before = line_.end()->prev();
  while (before != line_.end() && static_cast<const Wait*>(before)->turn() > wait.turn()) before = before->prev();
  before->next()->insert_before(wait);
  ++waiting_;
  used_ = now();
  pump();
}

void Upstream::leave(Wait& wait) noexcept {
  static_cast<detail::Link<Wait>&>(wait).unlink();
  --waiting_;
  pump();
}

void Upstream::pump() noexcept {
  executor_.disarm(alarm_);
  if (executor_.closing()) return;  // its frames are being destroyed
  while (!line_.empty()) {
    Wait& head = line_.front();
    const RateAmount amount = amount_of(head.estimate(), buckets_);
    if (can_admit(amount)) {
      take_out(head);
      head.grant(admit_now(amount, head.turn()));
      continue;
    }
    const std::optional<TimePoint> ready = ready_at(amount);
    if (!ready || !head.deadline().passed(*ready)) return set_alarm(ready);
    take_out(head);
    ++counts_.refused;
    head.refuse(too_late(amount, *ready));
  }
}

void Upstream::take_out(Wait& wait) noexcept {
  static_cast<detail::Link<Wait>&>(wait).unlink();
  --waiting_;
}

bool Upstream::can_admit(const RateAmount& amount) noexcept {
  return gate_.can_pass(now()) && aimd_.inflight() < aimd_.limit() && buckets_.take(amount, now());
}

Admission Upstream::admit_now(const RateAmount& amount, std::uint64_t turn) noexcept {
  const GateCore::Pass pass = gate_.pass();
  ++counts_.started;
  if (pass.probe) ++counts_.probes;
  return {*this, amount, now(), aimd_.begin(), pass, turn};
}

/// When the head may be admitted by the passing of time alone; none: only by a change.
std::optional<TimePoint> Upstream::ready_at(const RateAmount& amount) const noexcept {
  if (!gate_.can_pass(now())) return gate_.opens_at();
  if (aimd_.inflight() >= aimd_.limit()) return std::nullopt;
  return buckets_.ready_at(amount, now());
}

void Upstream::set_alarm(std::optional<TimePoint> when) noexcept {
  if (when) executor_.arm(alarm_, *when);
}

Error Upstream::too_late(const RateAmount& amount, TimePoint ready) const {
  std::string what = name_of(key_) + " admits the call in " + seconds_text(ready - now()) + " only, after the deadline";
  const std::string_view bucket = buckets_.waits_for(amount, now());
  if (!bucket.empty()) what += "; it waits for " + std::string(bucket);
  return Error(Errc::timed_out, Retry::safe, std::move(what)).after(ready - now());
}

// ---- The gate --------------------------------------------------------------------------------------------------

void Upstream::gate_changed(GateCore::Change change) noexcept {
  if (change == GateCore::Change::opened) buckets_.pause_until(now());  // the ramp begins
  if (change == GateCore::Change::closed) {
    ++counts_.pauses;
    refuse_waiters();
    if (on_pause_) on_pause_(*this, *gate_.pause());
  }
  pump();
}

/// Those that the pause would hold for longer than they may wait.
void Upstream::refuse_waiters() noexcept {
  line_.for_each([this](Wait& wait) {
    std::optional<Error> error = refusal(wait.deadline());
    if (!error) return;
    take_out(wait);
    ++counts_.refused;
    wait.refuse(std::move(*error));
  });
}

void Upstream::pause_until(std::optional<TimePoint> until, const Failure& why) noexcept {
  if (gate_.pause_until(until, why) != GateCore::Change::closed) return;
  ++counts_.pauses;
  refuse_waiters();
  pump();
}

void Upstream::resume() noexcept {
  gate_.resume(now());
  pump();
}

std::optional<Pause> Upstream::pause() const { return gate_.pause(); }

void Upstream::correct(const RateLimits& limits) noexcept {
  buckets_.correct(RateKind::requests, report_of(limits.requests), now());
  buckets_.correct(RateKind::tokens, report_of(limits.tokens), now());
  buckets_.correct(RateKind::input_tokens, report_of(limits.input_tokens), now());
  buckets_.correct(RateKind::output_tokens, report_of(limits.output_tokens), now());
}

std::optional<std::int64_t> Upstream::available(RateKind kind) const noexcept {
  if (buckets_.per_minute(kind) == 0) return std::nullopt;
  return buckets_.available(kind, now());
}

bool Upstream::is_idle() const noexcept {
  return waiting_ == 0 && active() == 0 && gate_.is_open() && now() - used_ >= kIdleAfter;
}

// ---- Reasons ---------------------------------------------------------------------------------------------------

domain::WaitReason Upstream::reason_of(const Wait& wait) const {
  std::uint32_t ahead = 0;
  for (const auto* each = line_.first(); each != line_.end() && each != &wait; each = each->next()) ++ahead;
  domain::WaitReason reason = reason_of_head(amount_of(wait.estimate(), buckets_));
  reason.ahead = ahead;
  return reason;
}

domain::WaitReason Upstream::reason_of_head(const RateAmount& amount) const {
  const auto wall = [this](TimePoint when) {
    return system_.wall_now() + std::chrono::ceil<std::chrono::milliseconds>(when - now());
  };
  domain::WaitReason reason;
  reason.limit = key_.account;
  if (const std::optional<Pause>& pause = gate_.pause()) {
    const bool probes = gate_.is_probing() || gate_.can_pass(now());
    reason.cause = probes ? domain::WaitCause::probe : domain::WaitCause::paused;
    if (probes) reason.ramp = 1;
    if (!probes && pause->until) reason.until = wall(*pause->until);
    reason.detail = pause->failure.error().describe();
    return reason;
  }
  reason.cause = domain::WaitCause::limit;
  reason.capacity = aimd_.limit();
  reason.held = active();
  if (active() >= aimd_.limit()) {
    reason.limit = name_of(key_) + ": concurrent calls";
    return reason;
  }
  const std::string_view bucket = buckets_.waits_for(amount, now());
  reason.limit = name_of(key_) + ": " + std::string(bucket.empty() ? "its turn" : bucket);
  reason.until = wall(std::max(buckets_.ready_at(amount, now()), now()));
  return reason;
}

}  // namespace stint::model
