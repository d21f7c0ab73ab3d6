/// The part of `WorkerPool` (`stint/worker_pool.hpp`) that does not depend on the job type: the queue of jobs, the
/// workers, and the supervisor, a coroutine that starts workers, cancels jobs, delivers results and autoscales.
/// Everything in `PoolCore` may be called from any thread, except where it says "own thread": that of the executor the
/// workers run on.
#pragma once

#include "stint/pool_health.hpp"
#include "stint/pool_options.hpp"
#include "stint/scope.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace stint::detail {

class DrainWait;
class JobWait;
class PoolCore;
class PoolTake;
struct PoolWorker;
struct PoolIdle;      // tag of the list of idle workers
struct PoolStopping;  // tag of the list of workers whose jobs are to be cancelled

enum class JobState : std::uint8_t {
  fresh,    ///< not submitted yet
  waiting,  ///< for room in the queue; not accepted yet
  queued,
  given,  ///< assigned to a worker that has not resumed yet
  running,
  deciding,  ///< its waiter is being woken by a thread that holds the lock; `ended` follows within moments
  ended,     ///< belongs to its holder; the pool may be destroyed
};
/// Why a job ended without a result of its own.
enum class Refusal : std::uint8_t { none, closed, timed_out, cancelled, handed_back, stopped };
/// How a job that ran ended.
enum class JobEnd : std::uint8_t { completed, failed, cancelled };

struct PoolJob : Link<PoolJob> {
  enum class Owner : std::uint8_t {
    handle,    ///< a ticket or a waiting caller
    detached,  ///< no caller: the result goes to `on_done`
    dropped,   ///< the caller went away: the result is discarded
  };
  PoolJob(PoolCore& core, JobOptions&& options) noexcept
      : pool(core), deadline(options.deadline), budget(options.budget), label(std::move(options.label)) {}
  virtual ~PoolJob() = default;
  bool ended() const noexcept { return state.load(std::memory_order_acquire) == JobState::ended; }
  bool accepted() const noexcept { return id.number != 0; }

  PoolCore& pool;  // not to be touched once `ended`
  // Written under the lock. Storing `ended` is the last access: the holder of the job deletes it as soon as it sees
  // that.
  std::atomic<JobState> state = JobState::fresh;
  Owner owner = Owner::handle;
  Refusal refusal = Refusal::none;
  Reason cancelling = Reason::none;
  PoolWorker* worker = nullptr;
  JobWait* waiter = nullptr;  // parked; the thread that clears it has decided the wait and must queue it
  JobId id;
  Deadline deadline;
  Budget* budget;
  Duration retry_after{};
  std::string label;
};

/// The caller's handle of a job. Destroyed before the job has ended, it cancels the job.
struct CancelOnDestroy {
  void operator()(PoolJob* job) const noexcept;
};
using JobHandle = std::unique_ptr<PoolJob, CancelOnDestroy>;

/// Spins while the thread that decided the job's end may still access it.
void await_end(const PoolJob& job) noexcept;
[[nodiscard]] Error refusal_error(const PoolJob& job);
[[nodiscard]] Error exception_error() noexcept;  // of the exception that is being handled
[[nodiscard]] Error expired_error();

/// A wait for room or for the result, in the waiting coroutine's frame.
class JobWait : public Leaf, private Timer {
 public:
  bool await_ready() const noexcept { return job_->ended() && !token().cancelled(); }
  bool await_suspend(std::coroutine_handle<>) noexcept;

 protected:
  enum class Until : std::uint8_t { room, result };
  JobWait(JobHandle job, Until until) noexcept : job_(std::move(job)), until_(until) {}
  JobWait(JobWait&& other) noexcept : job_(std::move(other.job_)), until_(other.until_) {}  // only before it is awaited
  ~JobWait() = default;

  JobHandle job_;

 private:
  friend class PoolCore;
  bool ready() const noexcept final { return job_->ended(); }
  void cancel() noexcept final { give_up(Refusal::cancelled); }
  void fire() noexcept final { give_up(Refusal::timed_out); }
  void give_up(Refusal why) noexcept;

  const Until until_;
};

struct PoolWorker : Link<PoolWorker>, Link<PoolIdle>, Link<PoolStopping> {
  PoolWorker(PoolCore& core, WorkerId number) noexcept : pool(core), id(number) {}

  PoolCore& pool;
  const WorkerId id;
  // Under the lock.
  WorkerState state = WorkerState::idle;
  bool retiring = false;  // stops after its current job
  PoolJob* job = nullptr;
  PoolTake* take = nullptr;  // parked: in the list of idle workers
  TimePoint since{};         // when its job started, or it became idle
  TimePoint life_at{};       // when a check last found that its job had resumed
  std::uint32_t seen_pulse = 0;
  std::uint64_t completed = 0, failed = 0, cancelled = 0;
  Duration completed_time{}, failed_time{};
  // Own thread.
  Scope* scope = nullptr;  // of the job
  bool leaving = false;
  // Any thread.
  std::atomic<std::uint32_t> pulse = 0;  // counts resumes of the job
  std::atomic<TimePoint::rep> beat_at = 0;
};

/// A worker's registration in the pool; a parameter of its coroutine, so that it is removed even if the coroutine never
/// starts.
class WorkerRegistration {
 public:
  explicit WorkerRegistration(std::unique_ptr<PoolWorker> worker) noexcept : worker_(std::move(worker)) {}
  WorkerRegistration(WorkerRegistration&&) noexcept = default;
  ~WorkerRegistration();
  PoolWorker& worker() const noexcept { return *worker_; }

 private:
  std::unique_ptr<PoolWorker> worker_;
};

/// `co_await PoolTake(worker)`: the next job. Null if there is none after all; the worker tries again, unless it is
/// `leaving`.
class PoolTake final : public Leaf {
 public:
  explicit PoolTake(PoolWorker& worker) noexcept : worker_(worker) {}
  ~PoolTake();
  bool await_suspend(std::coroutine_handle<>) noexcept;
  PoolJob* await_resume() noexcept;

 private:
  friend class PoolCore;
  void cancel() noexcept override;
  PoolWorker& worker_;
  bool parked_ = false;
};

/// Result of a drain, except for the jobs that it hands back.
struct DrainCounts {
  std::uint64_t finished = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t handed_back = 0;
  Duration time{};
};

/// `co_await DrainWait(core, options)`: starts a drain, or forces the one in progress, and waits for its end.
class DrainWait final : public Leaf, public Link<DrainWait>, private Timer {
 public:
  DrainWait(PoolCore& pool, const DrainOptions& options) noexcept : pool_(pool), options_(options) {}
  ~DrainWait();
  bool await_suspend(std::coroutine_handle<>) noexcept;
  DrainCounts await_resume() noexcept;

 private:
  friend class PoolCore;
  void cancel() noexcept override;
  void fire() noexcept override;
  PoolCore& pool_;
  const DrainOptions options_;
  bool parked_ = false;
};

class PoolCore {
 public:
  static constexpr std::size_t kWorkersMax = 100'000;
  static constexpr std::size_t kQueueMax = 1'000'000'000;

  PoolCore(const PoolCore&) = delete;
  PoolCore& operator=(const PoolCore&) = delete;

  [[nodiscard]] PoolHealth health() const;
  [[nodiscard]] std::size_t free_workers() const;
  Result<> resize(std::size_t workers);
  Result<> set_bounds(std::size_t min, std::size_t max);
  bool cancel(JobId id) noexcept;
  static JobId detach(JobHandle job) noexcept;

 protected:
  explicit PoolCore(PoolOptions options);
  ~PoolCore();

  // Implemented by the typed pool. Own thread.
  virtual Task<> carry(WorkerRegistration registration) = 0;
  /// Takes a job that has ended and has no holder.
  virtual void deliver(std::unique_ptr<PoolJob> job) noexcept = 0;

  void start(Scope& scope);                               // own thread, once
  Result<JobId> enter_now(std::unique_ptr<PoolJob> job);  // and detached
  /// Ends the worker's job, whose result is set. Returns the worker's next job, or null. Own thread.
  PoolJob* finish(PoolWorker& worker, JobEnd how) noexcept;
  void count_delivery(bool dropped, bool threw) noexcept;
  void take_handed_back(List<PoolJob>& into) noexcept;

 private:
  friend class DrainWait;
  friend class JobWait;
  friend class PoolTake;
  friend class WorkerRegistration;
  friend struct CancelOnDestroy;
  using Lock = std::unique_lock<std::mutex>;
  enum class Phase : std::uint8_t { open, draining, forced };

  /// The supervisor's registration, like a worker's.
  class SupervisorRegistration {
   public:
    explicit SupervisorRegistration(PoolCore& pool) noexcept : pool_(&pool) {}
    SupervisorRegistration(SupervisorRegistration&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
    ~SupervisorRegistration() {
      if (pool_ != nullptr) pool_->supervisor_ended();
    }

   private:
    PoolCore* pool_;
  };
  class SupervisorWait;

  // Jobs (worker_pool.cpp). Functions that take Wakes: under the lock.
  bool wait(JobWait& wait) noexcept;
  bool give_up(JobWait& wait, Refusal why) noexcept;
  void handle_destroyed(PoolJob& job) noexcept;
  bool admit(PoolJob& job, Wakes& wakes) noexcept;
  void accept(PoolJob& job);
  void release_slot(PoolJob& job) noexcept;
  void refill(Wakes& wakes) noexcept;
  PoolJob* take_next(PoolWorker& worker, Wakes& wakes) noexcept;
  void withdraw(PoolJob& job, Refusal why, Wakes& wakes) noexcept;
  PoolJob* end(PoolJob& job, Wakes& wakes) noexcept;
  void end_elsewhere(PoolJob& job, Refusal why, Wakes& wakes) noexcept;
  bool ask_to_stop(PoolJob& job, Reason reason, Wakes& wakes) noexcept;
  void count_end(PoolWorker& worker, JobEnd how, Duration took) noexcept;
  void send_cancels() noexcept;   // own thread
  void deliver_ended() noexcept;  // own thread

  // Workers and supervisor (worker_pool_workers.cpp).
  bool park_idle(PoolTake& take) noexcept;
  PoolJob* pick_up(PoolWorker& worker) noexcept;
  bool unpark_idle(PoolTake& take) noexcept;
  void leave(PoolWorker& worker) noexcept;
  void abandon_job(PoolWorker& worker) noexcept;
  void set_state(PoolWorker& worker, WorkerState state) noexcept;
  void begin(PoolWorker& worker, PoolJob& job) noexcept;
  void start_job(PoolWorker& worker, TimePoint now) noexcept;
  void wake_worker(PoolWorker& worker, Wakes& wakes) noexcept;
  void retire(bool also_busy, Wakes& wakes) noexcept;
  void notify_supervisor(Wakes& wakes) noexcept;
  bool on_own_thread() const noexcept;
  void spawn_missing();
  Task<> supervise(SupervisorRegistration registration);
  bool supervise_once();
  void supervisor_ended() noexcept;
  void check_size();
  AutoscaleLoad load(TimePoint now) noexcept;
  std::optional<std::size_t> startable();
  Duration since_life(PoolWorker& worker, TimePoint now) const noexcept;
  WorkerHealth health_of(PoolWorker& worker, TimePoint now) const;

  // Drain (worker_pool_drain.cpp).
  bool begin_drain(DrainWait& wait) noexcept;
  void force_now() noexcept;
  void start_drain(Lock& lock, Wakes& wakes, TimePoint now) noexcept;
  bool force(Lock& lock, Wakes& wakes) noexcept;
  void hand_back(PoolJob& job, Wakes& wakes) noexcept;
  DrainCounts counts() const noexcept;
  bool drained() const noexcept { return phase_ != Phase::open && live_ == 0 && !has_supervisor_; }
  void release_drainers(Lock& lock, Wakes& wakes) noexcept;
  void yield_lock(Lock& lock, Wakes& wakes) noexcept;

  const PoolOptions options_;
  mutable std::mutex mutex_;
  Executor* executor_ = nullptr;  // while the supervisor or a worker lives there
  Scope* scope_ = nullptr;        // own thread

  List<PoolJob> waiting_, queue_, ended_, handed_back_jobs_;
  std::size_t waiting_size_ = 0, queue_size_ = 0;
  std::vector<PoolJob*> slots_;  // accepted jobs, by JobId::slot
  std::vector<std::uint32_t> free_slots_;

  mutable List<PoolWorker> workers_;  // oldest first
  List<PoolWorker, PoolIdle> idle_;   // longest idle first
  List<PoolWorker, PoolStopping> stopping_;
  std::size_t live_ = 0, retiring_ = 0, carrying_ = 0, target_;
  std::uint32_t next_worker_ = 0;

  SupervisorWait* supervisor_wait_ = nullptr;
  bool has_supervisor_ = false;
  bool supervisor_notified_ = false;
  TimePoint next_check_ = TimePoint::max();
  std::optional<TimePoint> resized_at_;
  std::optional<AutoscaleOptions> autoscale_;  // under the lock

  Phase phase_ = Phase::open;
  DrainOptions::Rest rest_ = DrainOptions::Rest::hand_back;
  TimePoint drain_began_{};
  DrainCounts before_drain_;
  List<DrainWait> drainers_;
  std::uint32_t yielding_ = 0;  // threads between two batches; the destructor waits for them

  std::uint64_t accepted_ = 0, completed_ = 0, failed_ = 0, cancelled_ = 0, handed_back_ = 0;
  std::atomic<std::uint64_t> results_dropped_ = 0, callback_errors_ = 0;
  std::uint64_t autoscale_errors_ = 0;
  std::string autoscale_last_error_;
};

}  // namespace stint::detail
