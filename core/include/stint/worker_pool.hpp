/// `WorkerPool<Job, Outcome>`: workers that carry jobs, one each at a time, from a bounded queue, first come first
/// served.
///
///     Task<Result<Reply>> answer(Question question, JobContext& job);    // runs in a scope of its own
///
///     RootScope scope(reactor);
///     WorkerPool<Question, Reply> pool(scope, answer, {.workers = 4});
///
///     Result<Reply> reply = co_await pool.submit(question);               // waits for room, then for the result
///     Result<JobId> id = pool.submit_nowait(question);                    // an id, or Errc::full at once
///     auto ticket = co_await pool.enqueue(question);                      // waits for room only;
///     if (ticket) reply = co_await ticket->result();                      // the result later
///     bool crowded = pool.health().utilization > 0.8;
///     auto report = co_await pool.drain(30s);                             // nothing is left behind
///
/// A caller that goes away (a stopped coroutine, a destroyed ticket) cancels its job: queued, it is removed and costs
/// nothing; running, its scope is cancelled and, if the caller waits, joined. The worker lives on. So it does when a
/// job throws: that is a failure of the job only.
///
/// Jobs start in the order in which they were accepted, and nobody barges: while submitters wait for room,
/// `submit_nowait` answers `full`. Every accepted job ends once: completed, failed, cancelled or handed back.
///
/// Thread-safe, but for `start` and `on_done`: `submit`, `enqueue` and `drain` are for coroutines of any executor, the
/// rest for any thread. Jobs run on the pool's executor, and results are handed over to the caller's.
///
/// The workers are children of the scope, which is not idle while they live. The pool must outlive them: drain it, or
/// cancel and join the scope, before it is destroyed; the destructor asserts that. In a coroutine it is declared
/// outside `with_scope` and started within. What has not started when the scope is cancelled is handed back by a later
/// `drain`.
#pragma once

#include "stint/detail/move_only_function.hpp"
#include "stint/detail/pool_core.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint {

namespace detail {

template <class Outcome>
struct PoolResult : PoolJob {
  using PoolJob::PoolJob;
  Result<Outcome> take() {
    await_end(*this);
    if (refusal != Refusal::none) return std::unexpected(refusal_error(*this));
    return std::move(*result);
  }
  std::optional<Result<Outcome>> result;
};

}  // namespace detail

/// What a handler knows of the job that it carries. Lives as long as the handler's task.
class JobContext {
 public:
  explicit JobContext(detail::PoolWorker& worker) noexcept : worker_(worker) {}

  /// The job's own: with its deadline and budget, cancelled with the job, joined before the job ends.
  [[nodiscard]] Scope& scope() const noexcept { return *worker_.scope; }
  [[nodiscard]] JobId id() const noexcept { return worker_.job->id; }
  [[nodiscard]] std::string_view label() const noexcept { return worker_.job->label; }
  [[nodiscard]] WorkerId worker() const noexcept { return worker_.id; }
  /// Shows life. Any thread. Needed only for work that goes long without an await that resumes: those count too.
  void beat() const noexcept {
    worker_.beat_at.store(scope().executor().now().time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  template <class Job, class Outcome>
  friend class WorkerPool;
  void enter(Scope& scope) const noexcept {
    worker_.scope = &scope;
    scope.watch_life(worker_.pulse);
  }
  detail::PoolWorker& worker_;
};

/// `co_await pool.submit(job)`, `co_await ticket.result()` → Result<Outcome>.
template <class Outcome>
class [[nodiscard]] JobResult final : public detail::JobWait {
 public:
  explicit JobResult(detail::JobHandle job) noexcept : JobWait(std::move(job), Until::result) {}
  Result<Outcome> await_resume() { return static_cast<detail::PoolResult<Outcome>&>(*job_).take(); }
};

/// An accepted job whose result can be had later. Destroyed before the job has ended, it cancels it.
template <class Outcome>
class [[nodiscard]] Ticket {
 public:
  explicit Ticket(detail::JobHandle job) noexcept : job_(std::move(job)) {}

  [[nodiscard]] JobId id() const noexcept { return job_->id; }
  [[nodiscard]] bool ended() const noexcept { return job_->ended(); }
  /// `co_await ticket.result()`, once: the ticket is empty afterwards. Who is stopped meanwhile cancels the job.
  [[nodiscard]] JobResult<Outcome> result() noexcept {
    STINT_ASSERT(job_ && "the result of a job can be had once");
    return JobResult<Outcome>(std::move(job_));
  }
  /// Lets the job go on without anybody; its result goes where those of `submit_nowait` go, unless it is there already:
  /// then it is dropped. Empty afterwards.
  JobId detach() noexcept { return detail::PoolCore::detach(std::move(job_)); }

 private:
  detail::JobHandle job_;
};

/// `co_await pool.enqueue(job)` → Result<Ticket<Outcome>>.
template <class Outcome>
class [[nodiscard]] Enqueue final : public detail::JobWait {
 public:
  explicit Enqueue(detail::JobHandle job) noexcept : JobWait(std::move(job), Until::room) {}
  Result<Ticket<Outcome>> await_resume() {
    if (!job_->accepted()) return std::unexpected(refusal_error(*job_));
    return Ticket<Outcome>(std::move(job_));
  }
};

template <class Job, class Outcome = void>
class WorkerPool final : private detail::PoolCore {
 public:
  using OnDone = detail::MoveOnlyFunction<void(JobId, Result<Outcome>)>;
  struct HandedBack {
    JobId id;
    std::string label;
    Job job;
  };
  struct DrainReport : detail::DrainCounts {
    /// Never started, and nobody waited for them; who waited was told `closed`. Counted in `handed_back` like those.
    std::vector<HandedBack> jobs;
  };

  /// `handler(Job, JobContext&)` or `handler(Job, Scope&)` gives a `Task<Result<Outcome>>`. It lives as long as the
  /// pool, so it may be a lambda with captures.
  template <class Handler>
  explicit WorkerPool(Handler handler, PoolOptions options = {})
      : PoolCore(std::move(options)), handler_(adapt(std::move(handler))) {}
  /// Starts at once.
  template <class Handler>
  WorkerPool(Scope& scope, Handler handler, PoolOptions options = {})
      : WorkerPool(std::move(handler), std::move(options)) {
    start(scope);
  }

  /// Sets the workers going, as children of `scope`. Once, on its executor's thread. Jobs may be there already.
  using PoolCore::start;
  /// Where results go that nobody waits for; without it they are counted and dropped. Called on the pool's thread, one
  /// at a time and never from within a call to the pool; must not block. Set it before the first job.
  void on_done(OnDone callback) { on_done_ = std::move(callback); }

  /// Waits for room, then for the result. The job draws on the caller's deadline and budget unless the options have
  /// others. `closed` (it was not started, with a hint when to try again) while draining, `timed_out`, `cancelled`.
  [[nodiscard]] JobResult<Outcome> submit(Job job, JobOptions options = {}) {
    return JobResult<Outcome>(make(std::move(job), std::move(options)));
  }
  /// Waits for room.
  [[nodiscard]] Enqueue<Outcome> enqueue(Job job, JobOptions options = {}) {
    return Enqueue<Outcome>(make(std::move(job), std::move(options)));
  }
  /// Never waits: an id, or `full` or `closed` with a hint when to try again.
  Result<JobId> submit_nowait(Job job, JobOptions options = {}) {
    return enter_now(std::make_unique<Typed>(core(), std::move(options), std::move(job)));
  }
  /// False if there is no such job any more. Queued, it is removed; running, its scope is cancelled.
  using PoolCore::cancel;
  /// Any number, also 0: a pause. Idle workers stop at once, others after their job, and the longest idle first; until
  /// they have, no new ones take their place. `closed` while draining.
  using PoolCore::resize;
  /// Between what the autoscaler stays; `invalid` if there is none.
  using PoolCore::set_bounds;
  /// Jobs that could begin at once; 0 while draining. O(1).
  using PoolCore::free_workers;
  /// A snapshot; O(workers). A look at the signs of life, too: who asks every second knows them to a second.
  using PoolCore::health;

  /// Takes no more jobs, finishes what runs and what is queued, up to the timeout; then cancels what runs and hands
  /// back (or cancels) the rest. Ends when no worker is left. A second call hurries the first. Who is stopped while he
  /// waits leaves the drain going, without a timeout.
  [[nodiscard]] Task<DrainReport> drain(DrainOptions options = {}) {
    const detail::DrainCounts counts = co_await detail::DrainWait(*this, options);
    DrainReport report{counts, {}};
    detail::List<detail::PoolJob> jobs;
    take_handed_back(jobs);
    while (!jobs.empty()) {
      const std::unique_ptr<Typed> job(static_cast<Typed*>(&jobs.front()));
      job->unlink();
      report.jobs.push_back({job->id, std::move(job->label), std::move(job->job)});
    }
    co_return report;
  }
  [[nodiscard]] Task<DrainReport> drain(Duration timeout) {
    DrainOptions options;
    options.timeout = timeout;
    return drain(options);
  }
  /// A drain that does not wait: cancels everything.
  [[nodiscard]] Task<DrainReport> stop() {
    DrainOptions options;
    options.timeout = Duration::zero();
    options.rest = DrainOptions::Rest::cancel;
    return drain(options);
  }

 private:
  struct Typed final : detail::PoolResult<Outcome> {
    Typed(PoolCore& pool, JobOptions&& options, Job&& work)
        : detail::PoolResult<Outcome>(pool, std::move(options)), job(std::move(work)) {}
    Job job;
  };
  using Carry = detail::MoveOnlyFunction<Task<Result<Outcome>>(Job, JobContext&)>;

  PoolCore& core() noexcept { return *this; }
  template <class Handler>
  static Carry adapt(Handler handler) {
    if constexpr (std::is_invocable_v<Handler&, Job, JobContext&>) {
      return handler;
    } else {
      static_assert(std::is_invocable_r_v<Task<Result<Outcome>>, Handler&, Job, Scope&>,
                    "a handler takes (Job, JobContext&) or (Job, Scope&) and gives a Task<Result<Outcome>>");
      return [handler = std::move(handler)](Job job, JobContext& context) mutable {
        return handler(std::move(job), context.scope());
      };
    }
  }
  detail::JobHandle make(Job&& job, JobOptions&& options) {
    return detail::JobHandle(std::make_unique<Typed>(core(), std::move(options), std::move(job)).release());
  }
  static detail::Verdict judge(const Result<Outcome>& result) noexcept {
    if (result) return detail::Verdict::completed;
    return result.error() == Errc::cancelled ? detail::Verdict::cancelled : detail::Verdict::failed;
  }

  Task<> carry(detail::WorkerSeat seat) override {
    detail::PoolWorker& worker = seat.worker();
    JobContext context(worker);
    while (!worker.leaving) {
      detail::PoolJob* job = co_await detail::PoolTake(worker);
      while (job != nullptr) {
        auto& typed = static_cast<Typed&>(*job);
        auto open = [&typed, &context, this](Scope& scope) {
          context.enter(scope);
          return handler_(std::move(typed.job), context);
        };
        ScopeOptions options;
        options.deadline = typed.deadline;
        options.budget = typed.budget;
        if (typed.deadline.passed(worker.since)) {
          typed.result.emplace(std::unexpected(detail::expired_error()));
        } else {
          try {
            typed.result.emplace(co_await with_scope(options, std::ref(open)));
          } catch (...) {
            typed.result.emplace(std::unexpected(detail::exception_error()));
          }
        }
        job = finish(worker, judge(*typed.result));
      }
    }
  }
  void deliver(std::unique_ptr<detail::PoolJob> job) noexcept override {
    const bool wanted = on_done_ && job->owner == detail::PoolJob::Owner::detached;
    bool threw = false;
    try {
      if (wanted) on_done_(job->id, static_cast<Typed&>(*job).take());
    } catch (...) {
      threw = true;
    }
    count_delivery(!wanted, threw);
  }

  Carry handler_;
  OnDone on_done_;
};

}  // namespace stint
