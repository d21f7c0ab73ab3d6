// Drain, health, construction and destruction of a worker pool.
#include "stint/worker_pool.hpp"

#include <thread>

namespace stint::detail {

namespace {

constexpr int kWakesPerBatch = Wakes::kMost - 4;  // leaves room for further wake-ups in each step

}  // namespace

PoolCore::PoolCore(PoolOptions options)
    : options_(std::move(options)), target_(options_.workers), autoscale_(options_.autoscale) {
  STINT_ASSERT(target_ <= kWorkersMax && options_.queue_capacity <= kQueueMax);
}

PoolCore::~PoolCore() {
  Lock lock(mutex_);
  while (yielding_ != 0) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  STINT_ASSERT(live_ == 0 && !has_supervisor_ &&
               "drain a worker pool, or cancel and join its scope, before destroying it");
  STINT_ASSERT(queue_.empty() && waiting_.empty() && "a worker pool that was never started still has jobs");
  STINT_ASSERT(drainers_.empty());
  for (List<PoolJob>* const jobs : {&ended_, &handed_back_jobs_}) {
    while (!jobs->empty()) {
      const std::unique_ptr<PoolJob> job(&jobs->front());
      job->unlink();
    }
  }
}

// ---- Drain ---------------------------------------------------------------------------------------------------------

DrainWait::~DrainWait() {
  if (!parked_) return;
  const PoolCore::Lock lock(pool_.mutex_);
  static_cast<Link<DrainWait>&>(*this).unlink();
}

bool DrainWait::await_suspend(std::coroutine_handle<>) noexcept {
  if (!park()) return true;
  parked_ = pool_.begin_drain(*this);
  if (!parked_) {
    unpark();
    return false;
  }
  const Duration timeout = options_.timeout.value_or(pool_.options_.drain_timeout);
  if (timeout > Duration::zero()) executor().arm(*this, Deadline::after(executor().now(), timeout).when());
  return true;
}

DrainCounts DrainWait::await_resume() noexcept {
  parked_ = false;
  const PoolCore::Lock lock(pool_.mutex_);
  DrainCounts counts = pool_.counts();
  counts.finished -= pool_.before_drain_.finished;
  counts.cancelled -= pool_.before_drain_.cancelled;
  counts.handed_back -= pool_.before_drain_.handed_back;
  counts.time = executor().now() - pool_.drain_began_;
  return counts;
}

void DrainWait::cancel() noexcept {
  {
    const PoolCore::Lock lock(pool_.mutex_);
    if (!static_cast<Link<DrainWait>&>(*this).linked()) return;  // drained, and already queued
    static_cast<Link<DrainWait>&>(*this).unlink();
  }
  complete();
}

void DrainWait::fire() noexcept { pool_.force_now(); }

DrainCounts PoolCore::counts() const noexcept { return {completed_ + failed_, cancelled_, handed_back_, {}}; }

/// Returns true if the caller has to wait.
bool PoolCore::begin_drain(DrainWait& wait) noexcept {
  bool cancel_here = false;
  bool waits = false;
  {
    Wakes wakes;
    Lock lock(mutex_);
    rest_ = wait.options_.rest;
    const bool second = phase_ != Phase::open;
    if (!second) start_drain(lock, wakes, wait.executor().now());
    const bool at_once = wait.options_.timeout.value_or(options_.drain_timeout) <= Duration::zero();
    if (second || at_once || !has_supervisor_)
      cancel_here = force(lock, wakes);  // no supervisor: the pool was never started
    notify_supervisor(wakes);
    waits = !drained();
    if (waits) drainers_.push_back(wait);
  }
  if (cancel_here) send_cancels();
  return waits;
}

void PoolCore::force_now() noexcept {
  bool cancel_here = false;
  {
    Wakes wakes;
    Lock lock(mutex_);
    cancel_here = force(lock, wakes);
  }
  if (cancel_here) send_cancels();
}

/// Releases the lock briefly, so that many wake-ups (system calls) do not block other threads.
void PoolCore::yield_lock(Lock& lock, Wakes& wakes) noexcept {
  ++yielding_;
  lock.unlock();
  wakes.flush();
  lock.lock();
  --yielding_;
}

/// Refuses new jobs and fails submitters that wait for room. Workers finish the queue and then stop.
void PoolCore::start_drain(Lock& lock, Wakes& wakes, TimePoint now) noexcept {
  phase_ = Phase::draining;
  drain_began_ = now;
  before_drain_ = counts();
  workers_.for_each([&](PoolWorker& worker) {
    if (worker.state != WorkerState::draining) set_state(worker, WorkerState::draining);
    if (worker.take != nullptr) wake_worker(worker, wakes);
  });
  for (int released = 1; !waiting_.empty(); ++released) {
    PoolJob& job = waiting_.front();
    withdraw(job, Refusal::closed, wakes);
    end(job, wakes);
    if (released % kWakesPerBatch == 0) yield_lock(lock, wakes);
  }
}

/// Hands back jobs that have not started and cancels running ones. Returns true if the caller must call send_cancels().
bool PoolCore::force(Lock& lock, Wakes& wakes) noexcept {
  phase_ = Phase::forced;
  for (int given_up = 1; !queue_.empty(); ++given_up) {
    hand_back(queue_.front(), wakes);
    if (given_up % kWakesPerBatch == 0) yield_lock(lock, wakes);
  }
  bool cancel_here = false;
  int given_up = 0;
  for (auto* link = workers_.first(); link != workers_.end();) {
    auto& worker = static_cast<PoolWorker&>(*link);
    link = link->next();
    if (worker.job == nullptr) continue;
    if (worker.job->state.load(std::memory_order_relaxed) == JobState::running) {
      cancel_here |= ask_to_stop(*worker.job, Reason::shutdown, wakes);
    } else {
      hand_back(*worker.job, wakes);
      if (++given_up % kWakesPerBatch != 0) continue;
      yield_lock(lock, wakes);
      link = workers_.first();  // the list may have changed: start over; jobs handed back no longer have a worker
    }
  }
  return cancel_here;
}

/// Returns a job that has not started to its holder, or adds it to the report.
void PoolCore::hand_back(PoolJob& job, Wakes& wakes) noexcept {
  if (rest_ == DrainOptions::Rest::cancel) return end_elsewhere(job, Refusal::cancelled, wakes);
  withdraw(job, Refusal::handed_back, wakes);
  if (end(job, wakes) != nullptr) handed_back_jobs_.push_back(job);
}

void PoolCore::take_handed_back(List<PoolJob>& into) noexcept {
  const Lock lock(mutex_);
  into.splice_back(handed_back_jobs_);
}

void PoolCore::release_drainers(Lock& lock, Wakes& wakes) noexcept {
  executor_ = nullptr;
  for (int released = 1; !drainers_.empty(); ++released) {
    DrainWait& drainer = drainers_.front();
    static_cast<Link<DrainWait>&>(drainer).unlink();
    wakes.post(drainer.executor(), drainer);
    if (released % kWakesPerBatch == 0) yield_lock(lock, wakes);
  }
}

// ---- Health --------------------------------------------------------------------------------------------------------

/// Time since the job's last sign of life: a heartbeat, or a resume not seen by the last check. Checking every second
/// gives a precision of a second without reading a clock on every resume.
Duration PoolCore::since_life(PoolWorker& worker, TimePoint now) const noexcept {
  if (worker.job == nullptr) return (now - worker.since) % std::max(options_.idle_beat, Duration(1));
  const std::uint32_t pulse = worker.pulse.load(std::memory_order_relaxed);
  if (pulse != worker.seen_pulse) {
    worker.seen_pulse = pulse;
    worker.life_at = now;
  }
  const TimePoint beat{Duration(worker.beat_at.load(std::memory_order_relaxed))};
  return std::max(now - std::max({worker.life_at, worker.since, beat}), Duration::zero());
}

WorkerHealth PoolCore::health_of(PoolWorker& worker, TimePoint now) const {
  WorkerHealth health;
  health.id = worker.id;
  health.state = worker.state;
  health.completed = worker.completed;
  health.failed = worker.failed;
  health.cancelled = worker.cancelled;
  if (worker.completed != 0) health.avg_time = worker.completed_time / worker.completed;
  if (worker.failed != 0) health.avg_failed_time = worker.failed_time / worker.failed;
  health.last_heartbeat_ago = since_life(worker, now);
  if (worker.job == nullptr) return health;
  health.stale = health.last_heartbeat_ago > options_.stale_after;
  health.job = worker.job->id;
  health.job_label = worker.job->label;
  health.job_running_for = now - worker.since;
  return health;
}

std::size_t PoolCore::free_workers() const {
  const std::lock_guard lock(mutex_);
  const std::size_t taken = carrying_ + queue_size_;
  return phase_ != Phase::open || taken >= target_ ? 0 : target_ - taken;
}

PoolHealth PoolCore::health() const {
  PoolHealth health;
  health.name = options_.name;
  health.queue_capacity = options_.queue_capacity;
  health.results_dropped = results_dropped_.load(std::memory_order_relaxed);
  health.callback_errors = callback_errors_.load(std::memory_order_relaxed);
  const Lock lock(mutex_);
  health.draining = phase_ != Phase::open;
  health.pool_size = live_;
  health.target_size = target_;
  health.queue_size = queue_size_;
  health.waiting_for_room = waiting_size_;
  if (live_ != 0) health.utilization = static_cast<double>(carrying_) / static_cast<double>(live_);
  health.total_accepted = accepted_;
  health.total_completed = completed_;
  health.total_failed = failed_;
  health.total_cancelled = cancelled_;
  health.total_handed_back = handed_back_;
  if (autoscale_) health.bounds = std::pair(autoscale_->min, autoscale_->max);
  health.autoscale_errors = autoscale_errors_;
  health.autoscale_last_error = autoscale_last_error_;
  if (live_ == 0) return health;
  const TimePoint now = executor_->now();
  health.workers.reserve(live_);
  workers_.for_each([&](PoolWorker& worker) {
    health.workers.push_back(health_of(worker, now));
    health.stale_workers += health.workers.back().stale;
  });
  return health;
}

}  // namespace stint::detail
