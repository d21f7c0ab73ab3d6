// Workers and the supervisor, one coroutine per pool. On the pool's own thread the supervisor does what other threads
// request (start workers, cancel jobs, deliver jobs that ended elsewhere), and autoscales if that is enabled.
#include "stint/worker_pool.hpp"

#include <algorithm>

namespace stint {

std::string to_string(WorkerId id) {
  constexpr std::size_t kDigits = 3;
  const std::string number = std::to_string(id.number);
  std::string text = "worker-";
  text.append(kDigits - std::min(number.size(), kDigits), '0');
  return text += number;
}

std::string to_string(JobId id) { return "job-" + std::to_string(id.number); }

std::string_view to_string(WorkerState state) noexcept {
  switch (state) {
    case WorkerState::idle: return "idle";
    case WorkerState::busy: return "busy";
    case WorkerState::draining: return "draining";
    case WorkerState::stopped: return "stopped";
  }
  return "unknown";
}

}  // namespace stint

namespace stint::detail {

// ---- Worker lifecycle ----------------------------------------------------------------------------------------------

WorkerRegistration::~WorkerRegistration() {
  if (worker_) worker_->pool.leave(*worker_);
}

PoolTake::~PoolTake() {
  if (parked_) worker_.pool.unpark_idle(*this);
}

bool PoolTake::await_suspend(std::coroutine_handle<>) noexcept {
  if (!park()) return true;
  parked_ = worker_.pool.park_idle(*this);
  if (!parked_) unpark();
  return parked_;
}

PoolJob* PoolTake::await_resume() noexcept {
  parked_ = false;
  return worker_.pool.pick_up(worker_);
}

void PoolTake::cancel() noexcept {
  if (worker_.pool.unpark_idle(*this)) complete();
}

void PoolCore::set_state(PoolWorker& worker, WorkerState state) noexcept {
  STINT_ASSERT(may_become(worker.state, state));
  worker.state = state;
}

/// Assigns the job to the worker. A draining worker stays draining.
void PoolCore::begin(PoolWorker& worker, PoolJob& job) noexcept {
  job.state.store(JobState::given, std::memory_order_relaxed);
  job.worker = &worker;
  worker.job = &job;
  ++carrying_;
  if (worker.state == WorkerState::idle) set_state(worker, WorkerState::busy);
}

void PoolCore::start_job(PoolWorker& worker, TimePoint now) noexcept {
  worker.job->state.store(JobState::running, std::memory_order_relaxed);
  worker.since = worker.life_at = now;
  worker.seen_pulse = worker.pulse.load(std::memory_order_relaxed);
}

/// Wakes an idle worker.
void PoolCore::wake_worker(PoolWorker& worker, Wakes& wakes) noexcept {
  static_cast<Link<PoolIdle>&>(worker).unlink();
  wakes.post(*executor_, *std::exchange(worker.take, nullptr));
}

/// Returns true if the worker is parked; otherwise it has a job or leaves.
bool PoolCore::park_idle(PoolTake& take) noexcept {
  PoolWorker& worker = take.worker_;
  Wakes wakes;
  const Lock lock(mutex_);
  if (worker.job != nullptr || take_next(worker, wakes) != nullptr || worker.leaving) return false;
  if (worker.state == WorkerState::busy) set_state(worker, WorkerState::idle);
  worker.take = &take;
  idle_.push_back(worker);
  return true;
}

PoolJob* PoolCore::pick_up(PoolWorker& worker) noexcept {
  const TimePoint now = executor_->now();
  Wakes wakes;
  const Lock lock(mutex_);
  worker.since = now;
  if (worker.job != nullptr || take_next(worker, wakes) != nullptr) start_job(worker, now);
  return worker.job;
}

/// False if the worker was already woken.
bool PoolCore::unpark_idle(PoolTake& take) noexcept {
  const Lock lock(mutex_);
  if (take.worker_.take != &take) return false;
  take.worker_.take = nullptr;
  static_cast<Link<PoolIdle>&>(take.worker_).unlink();
  return true;
}

/// The worker's coroutine was destroyed. Own thread. The pool must not be accessed after the last unlock: it may be
/// destroyed.
void PoolCore::leave(PoolWorker& worker) noexcept {
  if (worker.job != nullptr) abandon_job(worker);
  Wakes wakes;
  Lock lock(mutex_);
  set_state(worker, WorkerState::stopped);
  static_cast<Link<PoolWorker>&>(worker).unlink();
  static_cast<Link<PoolIdle>&>(worker).unlink();
  --live_;
  if (worker.retiring) --retiring_;
  notify_supervisor(wakes);  // to start a replacement, or to hand back queued jobs if no worker is left
  if (drained()) release_drainers(lock, wakes);
}

/// The pool's scope was cancelled or the executor is being destroyed: the worker was stopped together with its job.
void PoolCore::abandon_job(PoolWorker& worker) noexcept {
  {
    Wakes wakes;
    const Lock lock(mutex_);
    PoolJob& job = *std::exchange(worker.job, nullptr);
    job.worker = nullptr;
    --carrying_;
    static_cast<Link<PoolStopping>&>(worker).unlink();
    if (job.state.load(std::memory_order_relaxed) == JobState::given) {  // never started: the supervisor hands it back
      job.state.store(JobState::queued, std::memory_order_relaxed);
      queue_.push_front(job);
      ++queue_size_;
    } else {
      count_end(worker, JobEnd::cancelled, {});
      job.refusal = Refusal::stopped;
      release_slot(job);
      if (end(job, wakes) != nullptr) ended_.push_back(job);
    }
  }
  if (!executor_->closing()) deliver_ended();
}

// ---- Supervisor ----------------------------------------------------------------------------------------------------

/// `co_await SupervisorWait(pool)`: waits for a notification or the next autoscaling check.
class PoolCore::SupervisorWait final : public Leaf, private Timer {
 public:
  explicit SupervisorWait(PoolCore& pool) noexcept : pool_(pool) {}
  ~SupervisorWait() {
    if (parked_) unpark_idle();
  }
  bool await_suspend(std::coroutine_handle<>) noexcept {
    if (!park()) return true;
    TimePoint check = TimePoint::max();
    {
      const Lock lock(pool_.mutex_);
      parked_ = !pool_.supervisor_notified_;
      if (parked_) pool_.supervisor_wait_ = this;
      if (pool_.phase_ == Phase::open) check = pool_.next_check_;
    }
    if (!parked_) {
      unpark();
    } else if (check != TimePoint::max()) {
      executor().arm(*this, check);
    }
    return parked_;
  }
  void await_resume() noexcept { parked_ = false; }

 private:
  bool unpark_idle() noexcept {
    const Lock lock(pool_.mutex_);
    return pool_.supervisor_wait_ == this && std::exchange(pool_.supervisor_wait_, nullptr) != nullptr;
  }
  void cancel() noexcept override {
    if (unpark_idle()) complete();
  }
  void fire() noexcept override {
    if (unpark_idle()) complete();
  }

  PoolCore& pool_;
  bool parked_ = false;
};

void PoolCore::notify_supervisor(Wakes& wakes) noexcept {
  supervisor_notified_ = true;
  if (supervisor_wait_ != nullptr) wakes.post(*executor_, *std::exchange(supervisor_wait_, nullptr));
}

/// True on the pool's own thread, where the supervisor's work can be done directly.
bool PoolCore::on_own_thread() const noexcept {
  return executor_ != nullptr && executor_->is_current() && !executor_->closing();
}

void PoolCore::start(Scope& scope) {
  STINT_ASSERT(scope_ == nullptr && scope.executor().is_current());
  scope_ = &scope;
  {
    const Lock lock(mutex_);
    executor_ = &scope.executor();
    has_supervisor_ = true;
    if (options_.autoscale) next_check_ = executor_->now() + options_.autoscale->check_every;
  }
  scope.spawn(supervise(SupervisorRegistration(*this)));
  spawn_missing();
}

Task<> PoolCore::supervise(SupervisorRegistration registration) {
  (void)registration;
  do {
    co_await SupervisorWait(*this);
  } while (supervise_once());
}

/// Returns false when the pool is drained and the supervisor may end.
bool PoolCore::supervise_once() {
  bool check = false;
  {
    const Lock lock(mutex_);
    supervisor_notified_ = false;
    check = phase_ == Phase::open && executor_->now() >= next_check_;
  }
  send_cancels();
  deliver_ended();
  if (check) check_size();
  spawn_missing();
  const Lock lock(mutex_);
  return phase_ == Phase::open || live_ != 0;
}

/// The supervisor's coroutine was destroyed: the pool is drained, its scope was cancelled, or the executor is being
/// destroyed. The pool must not be accessed after the last unlock.
void PoolCore::supervisor_ended() noexcept {
  {
    Wakes wakes;
    Lock lock(mutex_);
    if (phase_ == Phase::open) start_drain(lock, wakes, executor_->now());
    force(lock, wakes);  // the workers are stopped by the same scope
  }
  if (!executor_->closing()) deliver_ended();
  Wakes wakes;
  Lock lock(mutex_);
  has_supervisor_ = false;
  if (drained()) release_drainers(lock, wakes);
}

// ---- Size ----------------------------------------------------------------------------------------------------------

void PoolCore::spawn_missing() {
  while (true) {
    std::unique_ptr<PoolWorker> worker;
    {
      const Lock lock(mutex_);
      // Workers that finish their last job count, so that never more run than requested.
      if (phase_ != Phase::open || live_ >= target_) return;
      worker = std::make_unique<PoolWorker>(*this, WorkerId{next_worker_++});
      worker->since = executor_->now();
      workers_.push_back(*worker);
      ++live_;
    }
    if (scope_->spawn(carry(WorkerRegistration(std::move(worker))))) continue;
    const Lock lock(mutex_);
    target_ = std::min(target_, live_);  // the scope is closed
    return;
  }
}

/// Retires workers until the target size is reached: first those without a job, the longest idle first; then, if
/// `also_busy`, those with one, the newest first.
void PoolCore::retire(bool also_busy, Wakes& wakes) noexcept {
  const auto enough = [this] { return live_ - retiring_ <= target_; };
  const auto choose = [&](PoolWorker& worker) {
    worker.retiring = true;
    ++retiring_;
    if (worker.state != WorkerState::draining) set_state(worker, WorkerState::draining);
    if (worker.take != nullptr) wake_worker(worker, wakes);
  };
  while (!enough() && !idle_.empty()) choose(idle_.front());
  for (const bool busy : {false, true}) {
    if (busy && !also_busy) return;
    for (auto* link = workers_.end()->prev(); !enough() && link != workers_.end(); link = link->prev()) {
      auto& worker = static_cast<PoolWorker&>(*link);
      if (!worker.retiring && (worker.job != nullptr) == busy) choose(worker);
    }
  }
}

Result<> PoolCore::resize(std::size_t workers) {
  if (workers > kWorkersMax) {
    return fail(Errc::invalid, "worker pool '" + options_.name + "': " + std::to_string(workers) +
                                   " workers are more than " + std::to_string(kWorkersMax));
  }
  bool here = false;
  {
    Wakes wakes;
    const Lock lock(mutex_);
    if (phase_ != Phase::open) return fail(Errc::closed, "worker pool '" + options_.name + "': draining");
    target_ = workers;
    retire(true, wakes);
    here = on_own_thread();
    if (executor_ != nullptr) resized_at_ = executor_->now();
    if (!here) notify_supervisor(wakes);
  }
  if (here) spawn_missing();
  return {};
}

Result<> PoolCore::set_bounds(std::size_t min, std::size_t max) {
  if (min > max || max > kWorkersMax) {
    return fail(Errc::invalid, "worker pool '" + options_.name + "': " + std::to_string(min) + " to " +
                                   std::to_string(max) + " workers is not a range up to " +
                                   std::to_string(kWorkersMax));
  }
  const Lock lock(mutex_);
  if (!autoscale_) return fail(Errc::invalid, "worker pool '" + options_.name + "' has a fixed size");
  autoscale_->min = min;
  autoscale_->max = max;
  return {};
}

AutoscaleLoad PoolCore::load(TimePoint now) noexcept {
  const Lock lock(mutex_);
  next_check_ = now + options_.autoscale->check_every;
  workers_.for_each([&](PoolWorker& worker) { since_life(worker, now); });
  AutoscaleLoad load;
  load.workers = live_ - retiring_;
  load.busy = std::min(carrying_, load.workers);
  load.startable = queue_size_;
  load.queue_capacity = options_.queue_capacity;
  load.changed_at = resized_at_;
  return load;
}

/// The result of the hook; empty if it threw.
std::optional<std::size_t> PoolCore::startable() {
  std::string what;
  try {
    return options_.startable_queue_size();
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
    what = "an exception that is not a std::exception";
  }
  const Lock lock(mutex_);
  ++autoscale_errors_;
  autoscale_last_error_ = "startable_queue_size: " + what;
  return std::nullopt;
}

void PoolCore::check_size() {
  const TimePoint now = executor_->now();
  AutoscaleLoad seen = load(now);
  if (options_.startable_queue_size) {
    const auto hooked = startable();
    if (!hooked) return;
    seen.startable = *hooked;
  }
  Wakes wakes;
  const Lock lock(mutex_);
  const AutoscaleDecision decision = autoscale(*autoscale_, seen, now);
  if (decision.workers == seen.workers) return;
  if (phase_ != Phase::open || live_ - retiring_ != seen.workers) return;  // changed by another thread meanwhile
  target_ = decision.workers;
  resized_at_ = now;
  retire(false, wakes);
}

}  // namespace stint::detail
