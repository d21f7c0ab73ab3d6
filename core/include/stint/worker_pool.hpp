/// `WorkerPool<Job, Outcome>`: workers that run jobs from a bounded FIFO queue, one job each at a time.
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
/// A caller that goes away (a stopped coroutine, a destroyed ticket) cancels its job: a queued job is removed without
/// cost; a running job's scope is cancelled and, if the caller waits, joined. The worker itself continues. It also
/// continues when a job throws, which is a failure of that job only.
///
/// Jobs start in the order in which they were accepted, and no submitter barges: while submitters wait for room,
/// `submit_nowait` fails with `full`. Every accepted job ends exactly once: completed, failed, cancelled or handed
/// back.
///
/// Thread-safe, except for `start` and `on_done`: coroutines of any executor may await `submit`, `enqueue` and `drain`,
/// and any thread may call the rest. Jobs run on the pool's executor; results are handed to the caller's.
///
/// The workers are children of the scope, which is not idle while they exist. The pool must outlive them: drain it, or
/// cancel and join the scope, before it is destroyed; the destructor asserts that. In a coroutine, declare it outside
/// `with_scope` and start it inside. Jobs that have not started when the scope is cancelled are handed back by a later
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

/// The job that a handler runs. Lives as long as the handler's task.
class JobContext {
 public:
  explicit JobContext(detail::PoolWorker& worker) noexcept : worker_(worker) {}

  /// The job's own scope: has its deadline and budget, is cancelled with the job, and joined before the job ends.
  [[nodiscard]] Scope& scope() const noexcept { return *worker_.scope; }
  [[nodiscard]] JobId id() const noexcept { return worker_.job->id; }
  [[nodiscard]] std::string_view label() const noexcept { return worker_.job->label; }
  [[nodiscard]] WorkerId worker() const noexcept { return worker_.id; }
  /// Reports progress; any thread. Needed only by work that goes long without a resumed await, since those count too.
  void beat() const noexcept {
    worker_.beat_at.store(scope().executor().now().time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  template <class Job, class Outcome>
  friend class WorkerPool;
  void enter(Scope& scope) const noexcept {
    worker_.scope = &scope;
    scope.count_resumes(worker_.pulse);
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

/// An accepted job whose result can be awaited later. Destroyed before the job has ended, it cancels the job.
template <class Outcome>
class [[nodiscard]] Ticket {
 public:
  explicit Ticket(detail::JobHandle job) noexcept : job_(std::move(job)) {}

  [[nodiscard]] JobId id() const noexcept { return job_->id; }
  [[nodiscard]] bool ended() const noexcept { return job_->ended(); }
  /// `co_await ticket.result()`, once: the ticket is empty afterwards. Cancelling the wait cancels the job.
  [[nodiscard]] JobResult<Outcome> result() noexcept {
    STINT_ASSERT(job_ && "the result of a job can be taken only once");
    return JobResult<Outcome>(std::move(job_));
  }
  /// Detaches the job from its caller. Its result goes to `on_done`, as with `submit_nowait`; if the job has already
  /// ended, the result is dropped. The ticket is empty afterwards.
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
    /// Jobs that never started and had no waiting submitter. Waiting submitters got `closed`; `handed_back` counts
    /// both.
    std::vector<HandedBack> jobs;
  };

  /// `handler(Job, JobContext&)` or `handler(Job, Scope&)` returns a `Task<Result<Outcome>>`. It lives as long as the
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

  /// Starts the workers as children of `scope`. Once, on its executor's thread. Jobs may already be queued.
  using PoolCore::start;
  /// Receives results that no caller waits for; without it they are counted and dropped. Called on the pool's thread,
  /// one at a time and never from within a call to the pool; must not block. Set it before the first job.
  void on_done(OnDone callback) { on_done_ = std::move(callback); }

  /// Waits for room, then for the result. The job uses the caller's deadline and budget unless the options set others.
  /// Fails with `closed` while draining (not started, with a retry delay), `timed_out`, or `cancelled`.
  [[nodiscard]] JobResult<Outcome> submit(Job job, JobOptions options = {}) {
    return JobResult<Outcome>(make(std::move(job), std::move(options)));
  }
  /// Waits for room.
  [[nodiscard]] Enqueue<Outcome> enqueue(Job job, JobOptions options = {}) {
    return Enqueue<Outcome>(make(std::move(job), std::move(options)));
  }
  /// Never waits: an id, or `full` or `closed` with a retry delay.
  Result<JobId> submit_nowait(Job job, JobOptions options = {}) {
    return enter_now(std::make_unique<Typed>(core(), std::move(options), std::move(job)));
  }
  /// False if there is no such job any more. A queued job is removed; a running job's scope is cancelled.
  using PoolCore::cancel;
  /// Any number; 0 pauses. Idle workers stop at once, the longest idle first, busy ones after their job; until they
  /// have stopped, no new ones replace them. `closed` while draining.
  using PoolCore::resize;
  /// Sets the autoscaler's bounds; `invalid` if there is no autoscaler.
  using PoolCore::set_bounds;
  /// Jobs that could start at once; 0 while draining. O(1).
  using PoolCore::free_workers;
  /// A snapshot; O(workers). Also samples the signs of life: called every second, it knows them to the second.
  using PoolCore::health;

  /// Accepts no more jobs and finishes running and queued ones, up to the timeout; then cancels what runs and hands
  /// back (or cancels) the rest. Completes when no worker is left. A second call forces the first to its timeout. If
  /// the waiting caller is cancelled, the drain continues without a timeout.
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
                    "a handler takes (Job, JobContext&) or (Job, Scope&) and returns a Task<Result<Outcome>>");
      return [handler = std::move(handler)](Job job, JobContext& context) mutable {
        return handler(std::move(job), context.scope());
      };
    }
  }
  detail::JobHandle make(Job&& job, JobOptions&& options) {
    return detail::JobHandle(std::make_unique<Typed>(core(), std::move(options), std::move(job)).release());
  }
  static detail::JobEnd classify(const Result<Outcome>& result) noexcept {
    if (result) return detail::JobEnd::completed;
    return result.error() == Errc::cancelled ? detail::JobEnd::cancelled : detail::JobEnd::failed;
  }

  Task<> carry(detail::WorkerRegistration registration) override {
    detail::PoolWorker& worker = registration.worker();
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
        job = finish(worker, classify(*typed.result));
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
