/// The part of `WorkerPool` (`stint/worker_pool.hpp`) that need not know what a job is: the line of jobs, the workers,
/// the keeper. Everything in `PoolCore` may be called from any thread, unless it says "own thread": the one of the
/// executor that the workers run on.
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
struct PoolIdle;      // names the list of idle workers
struct PoolStopping;  // names the list of workers whose jobs are to be cancelled

enum class JobState : std::uint8_t {
  fresh,    ///< the pool does not know it
  waiting,  ///< for room in the queue; not accepted yet
  queued,
  given,  ///< to a worker that has not resumed yet
  running,
  deciding,  ///< who waits for it is being woken, by a thread that holds the lock: `ended` follows within moments
  ended,     ///< belongs to who holds it; the pool may be gone
};
/// Why a job ended without a result of its own.
enum class Refusal : std::uint8_t { none, closed, timed_out, cancelled, handed_back, stopped };
/// How a job ended that a worker carried.
enum class Verdict : std::uint8_t { completed, failed, cancelled };

struct PoolJob : Link<PoolJob> {
  enum class Owner : std::uint8_t {
    handle,    ///< a ticket, or who waits
    detached,  ///< nobody: the result goes to `on_done`
    dropped,   ///< nobody any more: the result goes nowhere
  };
  PoolJob(PoolCore& core, JobOptions&& options) noexcept
      : pool(core), deadline(options.deadline), budget(options.budget), label(std::move(options.label)) {}
  virtual ~PoolJob() = default;
  bool ended() const noexcept { return state.load(std::memory_order_acquire) == JobState::ended; }
  bool accepted() const noexcept { return id.number != 0; }

  PoolCore& pool;  // not to be touched once `ended`
  // Written under the lock, and `ended` as the last touch: who holds the job deletes it when he sees that.
  std::atomic<JobState> state = JobState::fresh;
  Owner owner = Owner::handle;
  Refusal refusal = Refusal::none;
  Reason cancelling = Reason::none;
  PoolWorker* worker = nullptr;
  JobWait* waiter = nullptr;  // parked; whoever clears it has decided the wait, and queues it
  JobId id;
  Deadline deadline;
  Budget* budget;
  Duration retry_after{};
  std::string label;
};

/// The caller's side of a job. Destroyed before the job has ended, it cancels it: the caller went away.
struct LetGo {
  void operator()(PoolJob* job) const noexcept;
};
using JobHandle = std::unique_ptr<PoolJob, LetGo>;

/// Waits out the moment in which who decided may still touch the job.
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
  JobWait(JobWait&& other) noexcept : job_(std::move(other.job_)), until_(other.until_) {}  // before it is awaited only
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
  bool retiring = false;  // leaves after the job that it carries
  PoolJob* job = nullptr;
  PoolTake* take = nullptr;  // parked: in the list of idle workers
  TimePoint since{};         // when its job began, or it became idle
  TimePoint life_at{};       // when its job was last seen to have resumed
  std::uint32_t seen_pulse = 0;
  std::uint64_t completed = 0, failed = 0, cancelled = 0;
  Duration completed_time{}, failed_time{};
  // Own thread.
  Scope* scope = nullptr;  // of the job
  bool leaving = false;
  // Any thread.
  std::atomic<std::uint32_t> pulse = 0;  // how often the job resumed
  std::atomic<TimePoint::rep> beat_at = 0;
};

/// A worker's place in the pool; a parameter of its coroutine, so that it is given up also if that never starts.
class WorkerSeat {
 public:
  explicit WorkerSeat(std::unique_ptr<PoolWorker> worker) noexcept : worker_(std::move(worker)) {}
  WorkerSeat(WorkerSeat&&) noexcept = default;
  ~WorkerSeat();
  PoolWorker& worker() const noexcept { return *worker_; }

 private:
  std::unique_ptr<PoolWorker> worker_;
};

/// `co_await PoolTake(worker)`: the next job. Null: none after all; the worker asks again, unless it is `leaving`.
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

/// What a drain did, but for the jobs that it hands back.
struct DrainCounts {
  std::uint64_t finished = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t handed_back = 0;
  Duration time{};
};

/// `co_await DrainWait(core, options)`: starts a drain, or hurries the one that is under way, and waits for its end.
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

  // What the typed pool adds. Own thread.
  virtual Task<> carry(WorkerSeat seat) = 0;
  /// Takes a job that has ended and that nobody holds.
  virtual void deliver(std::unique_ptr<PoolJob> job) noexcept = 0;

  void start(Scope& scope);                               // own thread, once
  Result<JobId> enter_now(std::unique_ptr<PoolJob> job);  // and detached
  /// The result of the worker's job is there. Gives it the next one, if there is one. Own thread.
  PoolJob* finish(PoolWorker& worker, Verdict verdict) noexcept;
  void count_delivery(bool dropped, bool threw) noexcept;
  void take_handed_back(List<PoolJob>& into) noexcept;

 private:
  friend class DrainWait;
  friend class JobWait;
  friend class PoolTake;
  friend class WorkerSeat;
  friend struct LetGo;
  using Lock = std::unique_lock<std::mutex>;
  enum class Phase : std::uint8_t { open, draining, hurried };

  /// The keeper's place, like a worker's.
  class Keeping {
   public:
    explicit Keeping(PoolCore& pool) noexcept : pool_(&pool) {}
    Keeping(Keeping&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
    ~Keeping() {
      if (pool_ != nullptr) pool_->keeper_left();
    }

   private:
    PoolCore* pool_;
  };
  class Attend;

  // Jobs (worker_pool.cpp). Those with Wakes: under the lock.
  bool wait(JobWait& wait) noexcept;
  bool give_up(JobWait& wait, Refusal why) noexcept;
  void let_go(PoolJob& job) noexcept;
  bool admit(PoolJob& job, Wakes& wakes) noexcept;
  void accept(PoolJob& job);
  void release_slot(PoolJob& job) noexcept;
  void refill(Wakes& wakes) noexcept;
  PoolJob* take_next(PoolWorker& worker, Wakes& wakes) noexcept;
  void withdraw(PoolJob& job, Refusal why, Wakes& wakes) noexcept;
  PoolJob* end(PoolJob& job, Wakes& wakes) noexcept;
  void end_elsewhere(PoolJob& job, Refusal why, Wakes& wakes) noexcept;
  bool ask_to_stop(PoolJob& job, Reason reason, Wakes& wakes) noexcept;
  void tally(PoolWorker& worker, Verdict verdict, Duration took) noexcept;
  void send_cancels() noexcept;   // own thread
  void deliver_ended() noexcept;  // own thread

  // Workers and keeper (worker_pool_workers.cpp).
  bool sit(PoolTake& take) noexcept;
  PoolJob* pick_up(PoolWorker& worker) noexcept;
  bool stand_up(PoolTake& take) noexcept;
  void leave(PoolWorker& worker) noexcept;
  void abandon_job(PoolWorker& worker) noexcept;
  void become(PoolWorker& worker, WorkerState state) noexcept;
  void begin(PoolWorker& worker, PoolJob& job) noexcept;
  void start_job(PoolWorker& worker, TimePoint now) noexcept;
  void summon(PoolWorker& worker, Wakes& wakes) noexcept;
  void retire(bool also_busy, Wakes& wakes) noexcept;
  void tell_keeper(Wakes& wakes) noexcept;
  bool mine() const noexcept;
  void spawn_missing();
  Task<> keep(Keeping keeping);
  bool attend();
  void keeper_left() noexcept;
  void check_size();
  AutoscaleLoad load(TimePoint now) noexcept;
  std::optional<std::size_t> startable();
  Duration since_life(PoolWorker& worker, TimePoint now) const noexcept;
  WorkerHealth health_of(PoolWorker& worker, TimePoint now) const;

  // Drain (worker_pool_drain.cpp).
  bool begin_drain(DrainWait& wait) noexcept;
  void hurry_now() noexcept;
  void start_drain(Lock& lock, Wakes& wakes, TimePoint now) noexcept;
  bool hurry(Lock& lock, Wakes& wakes) noexcept;
  void hand_back(PoolJob& job, Wakes& wakes) noexcept;
  DrainCounts counts() const noexcept;
  bool drained() const noexcept { return phase_ != Phase::open && live_ == 0 && !keeping_; }
  void release_drainers(Lock& lock, Wakes& wakes) noexcept;
  void breathe(Lock& lock, Wakes& wakes) noexcept;

  const PoolOptions options_;
  mutable std::mutex mutex_;
  Executor* executor_ = nullptr;  // while the keeper or a worker lives there
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

  Attend* attend_ = nullptr;
  bool keeping_ = false;
  bool told_ = false;
  TimePoint next_check_ = TimePoint::max();
  std::optional<TimePoint> resized_at_;
  std::optional<AutoscaleOptions> autoscale_;  // under the lock

  Phase phase_ = Phase::open;
  DrainOptions::Rest rest_ = DrainOptions::Rest::hand_back;
  TimePoint drain_began_{};
  DrainCounts before_drain_;
  List<DrainWait> drainers_;
  std::uint32_t breathing_ = 0;  // between two batches: the destructor waits for them

  std::uint64_t accepted_ = 0, completed_ = 0, failed_ = 0, cancelled_ = 0, handed_back_ = 0;
  std::atomic<std::uint64_t> results_dropped_ = 0, callback_errors_ = 0;
  std::uint64_t autoscale_errors_ = 0;
  std::string autoscale_last_error_;
};

}  // namespace stint::detail
