#include "engine/foreground.hpp"

#include "os/cgroup.hpp"
#include "stint/scope.hpp"

#include <algorithm>
#include <filesystem>

namespace stint::engine {
namespace {

constexpr std::uint32_t kAttemptsDefault = 3;

void add(Usage& sum, const Usage& usage) {
  sum.fresh_in += usage.fresh_in;
  sum.cache_read += usage.cache_read;
  sum.cache_write += usage.cache_write;
  sum.out += usage.out;
  sum.reasoning += usage.reasoning;
  sum.money_micros += usage.money_micros;
  sum.estimated = sum.estimated || usage.estimated;
}

}  // namespace

ForegroundRun::ForegroundRun(Reactor& reactor, const domain::Ambient& ambient, limit::HostLimits& limits,
                             driver::Wardens& wardens, RunPlan plan, Listener listener)
    : reactor_(reactor),
      ambient_(ambient),
      plan_(std::move(plan)),
      listener_(std::move(listener)),
      limits_(limits),
      wardens_(wardens),
      started_(reactor.now()),
      deadline_(plan_.deadline) {}

void ForegroundRun::cancel(std::string why) {
  if (!cancelled_) cancelled_ = why;
  if (attempt_ != nullptr) attempt_->end(OutcomeKind::cancelled, std::move(why));
  if (waiting_ != nullptr) waiting_->cancel();
}

Usage ForegroundRun::usage() const noexcept {
  Usage sum = spent_;
  add(sum, current_);
  return sum;
}

void ForegroundRun::tell(RunEvent event) const {
  event.attempt = attempts_;
  if (listener_) listener_(event);
}

Task<RunResult> ForegroundRun::run() {
  RunResult result = co_await carry();
  result.usage = usage();
  result.attempts = attempts_;
  result.elapsed = elapsed();
  RunEvent event;
  event.kind = RunEvent::Kind::ended;
  event.text = result.message;
  tell(std::move(event));
  co_return result;
}

RunResult ForegroundRun::finish(domain::RunEnd end, std::string message) {
  RunResult result;
  result.end = end;
  result.message = std::move(message);
  return result;
}

/// The budget's clock, with the first attempt.
void ForegroundRun::start_clock() {
  if (attempts_ != 0) return;
  if (plan_.budget.time) deadline_ = deadline_.sooner(Deadline::after(reactor_.now(), *plan_.budget.time));
}

Task<RunResult> ForegroundRun::carry() {
  while (true) {
    auto report = co_await attempt_once();
    if (cancelled_ && !report) co_return finish(domain::RunEnd::cancelled, *cancelled_);
    if (!report) {
      const Error& error = report.error();
      RunResult result =
          finish(error == Errc::timed_out ? domain::RunEnd::expired : domain::RunEnd::failed, error.describe());
      result.refused = error == Errc::full;
      co_return result;
    }
    add(spent_, report->outcome.usage);
    current_ = {};
    domain::AttemptFacts facts;
    facts.number = ++counted_;
    facts.attempts_max = static_cast<std::uint32_t>(plan_.budget.attempts.value_or(kAttemptsDefault));
    facts.tools_used = report->tools_used;
    facts.on_crash = plan_.on_crash;
    facts.retry = plan_.retry;
    facts.wall_now = ambient_.wall_now();
    facts.time_left = deadline_.remaining(reactor_.now());
    facts.random = ambient_.random();
    const domain::AfterAttempt after = domain::after_attempt(report->outcome, facts);
    if (!after.counts) --counted_;
    if (!after.again) {
      RunResult result = finish(after.end, after.why);
      result.text = std::move(report->outcome.text);
      result.denials = std::move(report->outcome.denials);
      co_return result;
    }
    plan_.attempt.conversation = after.resume ? report->outcome.conversation : std::string();
    if (after.resume) plan_.attempt.usage_before = spent_;
    RunEvent event;
    event.kind = RunEvent::Kind::backing_off;
    event.wait = after.wait;
    event.text = after.why;
    tell(std::move(event));
    co_await sleep(after.wait);
    if (cancelled_) co_return finish(domain::RunEnd::cancelled, *cancelled_);
  }
}

/// A wait without permits, which a cancel ends.
Task<> ForegroundRun::sleep(Duration wait) {
  auto body = [&](Scope& scope) -> Task<> {
    waiting_ = &scope;
    co_await sleep_for(wait);
  };
  (void)co_await with_scope(std::ref(body));
  waiting_ = nullptr;
}

Task<Result<driver::ProcessReport>> ForegroundRun::attempt_once() {
  const std::string mark = plan_.id + ":" + std::to_string(attempts_ + 1);
  limit::Claimant who;
  who.run = mark;
  who.label = plan_.label;
  who.marks = plan_.marks;
  if (plan_.use_cgroup) who.cgroup = os::cgroup_path(os::delegated_cgroup(), mark);
  limit::HostLimits::Options wait;
  wait.deadline = deadline_;
  wait.may_wait = plan_.may_wait;
  wait.listener = [this](const limit::WaitReason* reason) {
    if (reason == nullptr) return;
    RunEvent event;
    event.kind = RunEvent::Kind::waiting;
    event.reason = reason;
    tell(std::move(event));
  };
  auto waiting = [&](Scope& scope) {
    waiting_ = &scope;
    return limits_.acquire(plan_.limits, who, std::move(wait));
  };
  Result<limit::HostPermit> permit = co_await with_scope(std::ref(waiting));
  waiting_ = nullptr;
  if (!permit) co_return fail(std::move(permit).error());
  if (cancelled_) co_return fail(Errc::cancelled, *cancelled_);

  STINT_CO_TRY(const std::unique_ptr<driver::Dialect> dialect, driver::make_dialect(plan_.driver));
  driver::ProcessOptions options;
  options.run = mark;
  options.cgroup = who.cgroup;
  options.slots = permit->entrust();
  options.directory = plan_.directory;
  options.idle_timeout = plan_.idle_timeout;
  options.grace = plan_.grace;
  options.memory_bytes_max = plan_.memory_bytes_max;
  if (!plan_.homes.empty()) {
    STINT_CO_TRY(options.environment, home_environment(permit->index_of(plan_.home_limit).value_or(0)));
  }
  driver::ProcessEvents events;
  events.progress = [this](const driver::Progress& progress) { hear(progress); };
  start_clock();
  if (plan_.budget.money_micros) {
    plan_.attempt.money_micros_max = std::max<std::int64_t>(0, *plan_.budget.money_micros - spent_.money_micros);
  }
  ++attempts_;
  RunEvent started;
  started.kind = RunEvent::Kind::started;
  tell(std::move(started));
  driver::ProcessAttempt attempt(wardens_, *dialect, std::move(options), std::move(events));
  attempt_ = &attempt;
  auto body = [&](Scope& scope) -> Task<Result<driver::ProcessReport>> {
    scope.spawn(end_at_deadline());
    auto report = co_await attempt.run(plan_.attempt);
    attempt_ = nullptr;
    scope.cancel();
    co_return report;
  };
  Result<driver::ProcessReport> report = co_await with_scope(std::ref(body));
  attempt_ = nullptr;
  permit->release();
  if (report) {
    RunEvent event;
    event.kind = RunEvent::Kind::attempt_ended;
    event.report = &*report;
    tell(std::move(event));
  }
  co_return report;
}

/// Variables that give a CLI a place of its own.
Result<std::vector<std::string>> ForegroundRun::home_environment(std::uint32_t slot) const {
  const std::string home = plan_.homes + "/" + std::to_string(slot);
  std::error_code error;
  std::filesystem::create_directories(home, error);
  if (error) return fail(Errc::failed, "cannot make " + home + ": " + error.message());
  std::filesystem::permissions(home, std::filesystem::perms::owner_all, error);
  const std::string variable = plan_.driver == "claude"  ? "CLAUDE_CONFIG_DIR"
                               : plan_.driver == "codex" ? "CODEX_HOME"
                                                         : "HOME";
  return std::vector<std::string>{variable + "=" + home};
}

Task<> ForegroundRun::end_at_deadline() {
  if (deadline_.is_never()) co_return;
  co_await sleep_until(deadline_.when());
  if (attempt_ != nullptr) attempt_->end(OutcomeKind::over_budget, "the budget's time is used up");
}

void ForegroundRun::hear(const driver::Progress& progress) {
  if (progress.kind == driver::ProgressKind::usage) {
    current_ = progress.usage;
    const Usage sum = usage();
    if (plan_.budget.tokens && sum.tokens() > *plan_.budget.tokens && attempt_ != nullptr && !attempt_->ending()) {
      attempt_->end(OutcomeKind::over_budget, "the budget's tokens are used up");
    }
    if (plan_.budget.money_micros && sum.money_micros > *plan_.budget.money_micros && attempt_ != nullptr &&
        !attempt_->ending()) {
      attempt_->end(OutcomeKind::over_budget, "the budget's money is used up");
    }
  }
  RunEvent event;
  event.progress = &progress;
  tell(std::move(event));
}

}  // namespace stint::engine
