// Invariants, all under the lock:
// 1. A worker is in `idle_` exactly while its take is parked. While a worker is idle, the queue is empty and no
// submitter waits for room; while a submitter waits for room, the queue is full. So no submitter barges.
// 2. A job has an id and a slot from its acceptance to its end; it is counted once, when it ends.
// 3. Storing `ended` is the last write to a job that has a holder: from then on the holder owns it.
// 4. A waiter is queued at its executor under the lock that decided it, and the executor is woken after the lock. So an
// executor that is being destroyed, whose frames take the lock, can't race with a result.
// 5. A job's scope is cancelled on the pool's own thread, outside the lock: its leaves may call back into the pool.
#include "stint/worker_pool.hpp"

#include <stdexcept>
#include <thread>

namespace stint::detail {

// ---- Errors --------------------------------------------------------------------------------------------------------

Error refusal_error(const PoolJob& job) {
  switch (job.refusal) {
    case Refusal::closed:
    case Refusal::handed_back:
      return Error(Errc::closed, Retry::safe, "the worker pool is draining; the job was not started")
          .after(job.retry_after);
    case Refusal::timed_out: return expired_error();
    case Refusal::cancelled: return {Errc::cancelled, Retry::safe, "the job was cancelled before it started"};
    case Refusal::stopped: return {Errc::cancelled, Retry::unknown, "the job was stopped with the pool's scope"};
    case Refusal::none: break;
  }
  STINT_ASSERT(!"a job that was not refused has a result");
}

Error expired_error() { return {Errc::timed_out, Retry::safe, "the job's deadline passed before it started"}; }

Error exception_error() noexcept {
  try {
    throw;
  } catch (const std::exception& exception) {
    return {Errc::failed, std::string("the job threw: ") + exception.what()};
  } catch (...) {
    return {Errc::failed, "the job threw something that is not a std::exception"};
  }
}

// ---- The caller's side ---------------------------------------------------------------------------------------------

void await_end(const PoolJob& job) noexcept {
  while (job.state.load(std::memory_order_acquire) == JobState::deciding) std::this_thread::yield();
}

void CancelOnDestroy::operator()(PoolJob* job) const noexcept {
  await_end(*job);
  const JobState state = job->state.load(std::memory_order_acquire);
  if (state == JobState::fresh || state == JobState::ended) {
    delete job;
  } else {
    job->pool.handle_destroyed(*job);
  }
}

bool JobWait::await_suspend(std::coroutine_handle<>) noexcept {
  if (!park()) return true;
  PoolJob& job = *job_;
  const Deadline own = job.deadline;
  if (until_ == Until::result && job.state.load(std::memory_order_relaxed) == JobState::fresh) {
    job.deadline = own.sooner(token().deadline());
    if (job.budget == nullptr) job.budget = token().budget();
  }
  if (!job.pool.wait(*this)) {
    unpark();
    return false;
  }
  if (!own.is_never())
    executor().arm(*this, own.when());  // the deadline of the caller's scope stops the caller by itself
  return true;
}

void JobWait::give_up(Refusal why) noexcept {
  if (job_->pool.give_up(*this, why)) complete();
}

/// Returns true if the caller has to wait; otherwise the wait is already decided.
bool PoolCore::wait(JobWait& wait) noexcept {
  PoolJob& job = *wait.job_;
  Wakes wakes;
  const Lock lock(mutex_);
  switch (job.state.load(std::memory_order_relaxed)) {
    case JobState::ended: return false;
    case JobState::fresh:
      job.retry_after = options_.retry_after;
      if (phase_ != Phase::open) {
        job.refusal = Refusal::closed;
        job.state.store(JobState::ended, std::memory_order_relaxed);
        return false;
      }
      if (admit(job, wakes)) {
        if (wait.until_ == JobWait::Until::room) return false;
        break;
      }
      job.state.store(JobState::waiting, std::memory_order_relaxed);
      waiting_.push_back(job);
      ++waiting_size_;
      break;
    default: break;  // the job of a ticket
  }
  job.waiter = &wait;
  return true;
}

/// Ends the wait from the caller's side. Returns true if the job left the pool and the caller may complete; a running
/// job is asked to stop, and the wait continues until it has.
bool PoolCore::give_up(JobWait& wait, Refusal why) noexcept {
  PoolJob& job = *wait.job_;
  bool cancel_here = false;
  {
    Wakes wakes;
    const Lock lock(mutex_);
    if (job.waiter != &wait) return false;  // already decided
    if (job.state.load(std::memory_order_relaxed) != JobState::running) {
      job.waiter = nullptr;
      withdraw(job, why, wakes);
      job.state.store(JobState::ended, std::memory_order_release);
      return true;
    }
    // A running job's deadline is enforced by its scope.
    cancel_here = why == Refusal::cancelled && ask_to_stop(job, Reason::user, wakes);
  }
  if (cancel_here) send_cancels();
  return false;
}

/// The job's handle was destroyed.
void PoolCore::handle_destroyed(PoolJob& job) noexcept {
  std::unique_ptr<PoolJob> unwanted;
  bool cancel_here = false;
  {
    Wakes wakes;
    const Lock lock(mutex_);
    job.waiter = nullptr;
    const JobState state = job.state.load(std::memory_order_relaxed);
    if (state == JobState::running) {
      job.owner = PoolJob::Owner::dropped;
      cancel_here = ask_to_stop(job, Reason::user, wakes);
    } else {
      if (state != JobState::ended) withdraw(job, Refusal::cancelled, wakes);
      unwanted.reset(&job);
    }
  }
  if (cancel_here) send_cancels();
}

Result<JobId> PoolCore::enter_now(std::unique_ptr<PoolJob> job) {
  bool closed = false;
  {
    Wakes wakes;
    const Lock lock(mutex_);
    closed = phase_ != Phase::open;
    job->owner = PoolJob::Owner::detached;
    if (!closed && admit(*job, wakes)) return job.release()->id;
  }
  const std::string pool = "worker pool '" + options_.name + "': ";
  Error error = closed ? Error(Errc::closed, Retry::safe, pool + "draining, accepts no more jobs")
                       : Error(Errc::full, Retry::safe,
                               pool + "all workers are busy and the queue of " +
                                   std::to_string(options_.queue_capacity) + " is full");
  return std::unexpected(std::move(error).after(options_.retry_after));
}

JobId PoolCore::detach(JobHandle handle) noexcept {
  PoolJob& job = *handle;
  const JobId id = job.id;
  if (job.ended()) return id;  // the handle deletes it; the pool may be destroyed
  PoolCore& pool = job.pool;
  Wakes wakes;
  const Lock lock(pool.mutex_);
  if (job.ended()) return id;
  (void)handle.release();
  job.owner = PoolJob::Owner::detached;
  return id;
}

bool PoolCore::cancel(JobId id) noexcept {
  bool cancel_here = false;
  {
    Wakes wakes;
    const Lock lock(mutex_);
    PoolJob* const job = id.slot < slots_.size() ? slots_[id.slot] : nullptr;
    if (job == nullptr || job->id != id) return false;
    if (job->state.load(std::memory_order_relaxed) != JobState::running) {
      end_elsewhere(*job, Refusal::cancelled, wakes);
    } else {
      cancel_here = ask_to_stop(*job, Reason::user, wakes);
    }
  }
  if (cancel_here) send_cancels();
  return true;
}

// ---- The queue -----------------------------------------------------------------------------------------------------

void PoolCore::accept(PoolJob& job) {
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {  // bounded: one per queue place and per worker
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(&job);
    free_slots_.reserve(slots_.capacity());
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = &job;
  }
  job.retry_after = options_.retry_after;
  job.id = {++accepted_, slot};
}

void PoolCore::release_slot(PoolJob& job) noexcept {
  slots_[job.id.slot] = nullptr;
  free_slots_.push_back(job.id.slot);
}

/// Assigns the job to an idle worker or queues it; false if there is no room.
bool PoolCore::admit(PoolJob& job, Wakes& wakes) noexcept {
  if (!idle_.empty()) {
    accept(job);
    PoolWorker& worker =
        idle_.back();  // the last to become idle: its frame is in the cache, and longer idle ones may be retired
    begin(worker, job);
    wake_worker(worker, wakes);
    return true;
  }
  if (queue_size_ >= options_.queue_capacity) return false;
  accept(job);
  job.state.store(JobState::queued, std::memory_order_relaxed);
  queue_.push_back(job);
  ++queue_size_;
  return true;
}

/// Accepts waiting submitters while there is room.
void PoolCore::refill(Wakes& wakes) noexcept {
  while (!waiting_.empty() && queue_size_ < options_.queue_capacity && phase_ == Phase::open) {
    PoolJob& job = waiting_.front();
    job.unlink();
    --waiting_size_;
    accept(job);
    job.state.store(JobState::queued, std::memory_order_relaxed);
    queue_.push_back(job);
    ++queue_size_;
    if (job.waiter->until_ != JobWait::Until::room) continue;
    JobWait& waiter = *std::exchange(job.waiter, nullptr);
    wakes.post(waiter.executor(), waiter);
  }
}

/// The next job for a worker without one. Null if there is none, or if the worker is `leaving`.
PoolJob* PoolCore::take_next(PoolWorker& worker, Wakes& wakes) noexcept {
  if (worker.retiring || (phase_ != Phase::open && queue_.empty())) {
    worker.leaving = true;
    return nullptr;
  }
  PoolJob* job = nullptr;
  if (!queue_.empty()) {
    job = &queue_.front();
    job->unlink();
    --queue_size_;
    refill(wakes);
  } else if (!waiting_.empty() && phase_ == Phase::open) {  // queue_capacity is 0
    job = &waiting_.front();
    job->unlink();
    --waiting_size_;
    accept(*job);
    if (job->waiter->until_ == JobWait::Until::room) {
      JobWait& waiter = *std::exchange(job->waiter, nullptr);
      wakes.post(waiter.executor(), waiter);
    }
  }
  if (job != nullptr) begin(worker, *job);
  return job;
}

// ---- Ends ----------------------------------------------------------------------------------------------------------

/// Removes a job that is not running from the pool. The caller then ends the job or hands it on.
void PoolCore::withdraw(PoolJob& job, Refusal why, Wakes& wakes) noexcept {
  const JobState state = job.state.load(std::memory_order_relaxed);
  job.refusal = why;
  if (state == JobState::waiting) {
    job.unlink();
    --waiting_size_;
    return;
  }
  if (state == JobState::queued) {
    job.unlink();
    --queue_size_;
    refill(wakes);
  } else {
    STINT_ASSERT(state == JobState::given);
    job.worker->job = nullptr;  // on resume the worker finds no job and tries again
    job.worker = nullptr;
    --carrying_;
  }
  release_slot(job);
  ++(why == Refusal::handed_back ? handed_back_ : why == Refusal::timed_out ? failed_ : cancelled_);
}

/// Wakes the job's waiter. Returns the job if it has no holder.
PoolJob* PoolCore::end(PoolJob& job, Wakes& wakes) noexcept {
  const bool held = job.owner == PoolJob::Owner::handle;
  if (JobWait* const waiter = std::exchange(job.waiter, nullptr)) {
    job.state.store(JobState::deciding, std::memory_order_relaxed);
    wakes.post(waiter->executor(), *waiter);
  }
  job.state.store(JobState::ended, std::memory_order_release);
  return held ? nullptr : &job;
}

/// Ends a job that is not running, on any thread. If it has no holder, it is delivered on the pool's own thread.
void PoolCore::end_elsewhere(PoolJob& job, Refusal why, Wakes& wakes) noexcept {
  withdraw(job, why, wakes);
  if (end(job, wakes) == nullptr) return;
  ended_.push_back(job);
  notify_supervisor(wakes);
}

void PoolCore::count_end(PoolWorker& worker, JobEnd how, Duration took) noexcept {
  switch (how) {
    case JobEnd::completed:
      ++completed_;
      ++worker.completed;
      worker.completed_time += took;
      return;
    case JobEnd::failed:
      ++failed_;
      ++worker.failed;
      worker.failed_time += took;
      return;
    case JobEnd::cancelled:
      ++cancelled_;
      ++worker.cancelled;
      return;
  }
}

PoolJob* PoolCore::finish(PoolWorker& worker, JobEnd how) noexcept {
  const TimePoint now = executor_->now();
  PoolJob* unheld = nullptr;
  PoolJob* next = nullptr;
  {
    Wakes wakes;
    const Lock lock(mutex_);
    PoolJob& job = *std::exchange(worker.job, nullptr);
    static_cast<Link<PoolStopping>&>(worker).unlink();
    worker.scope = nullptr;
    --carrying_;
    count_end(worker, how, now - worker.since);
    worker.since = now;
    release_slot(job);
    unheld = end(job, wakes);
    next = take_next(worker, wakes);
    if (next != nullptr) start_job(worker, now);
  }
  if (unheld != nullptr) deliver(std::unique_ptr<PoolJob>(unheld));
  return next;
}

/// Returns true if the caller must call send_cancels() after releasing the lock; otherwise the supervisor does.
bool PoolCore::ask_to_stop(PoolJob& job, Reason reason, Wakes& wakes) noexcept {
  if (job.cancelling != Reason::none) return false;
  job.cancelling = reason;
  stopping_.push_back(*job.worker);
  if (on_own_thread()) return true;
  notify_supervisor(wakes);
  return false;
}

void PoolCore::send_cancels() noexcept {
  while (true) {
    Scope* scope = nullptr;
    Reason reason = Reason::none;
    {
      const Lock lock(mutex_);
      if (stopping_.empty()) return;
      PoolWorker& worker = stopping_.front();
      static_cast<Link<PoolStopping>&>(worker).unlink();
      scope = worker.scope;
      reason = worker.job->cancelling;
    }
    const bool draining = reason == Reason::shutdown;
    if (scope != nullptr) {
      scope->CancelToken::cancel(reason, draining ? "the worker pool is draining" : "the job's caller cancelled it");
    }
  }
}

void PoolCore::deliver_ended() noexcept {
  while (true) {
    std::unique_ptr<PoolJob> job;
    {
      const Lock lock(mutex_);
      if (ended_.empty()) return;
      job.reset(&ended_.front());
      job->unlink();
    }
    deliver(std::move(job));
  }
}

void PoolCore::count_delivery(bool dropped, bool threw) noexcept {
  if (dropped) results_dropped_.fetch_add(1, std::memory_order_relaxed);
  if (threw) callback_errors_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace stint::detail
