// The workers and their keeper. The keeper is one coroutine per pool: it does on the pool's own thread what others ask
// for (start workers, cancel jobs, deliver what ended elsewhere), and looks at the size when autoscaling is on.
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

// ---- A worker's life -----------------------------------------------------------------------------------------------

WorkerSeat::~WorkerSeat() {
  if (worker_) worker_->pool.leave(*worker_);
}

PoolTake::~PoolTake() {
  if (parked_) worker_.pool.stand_up(*this);
}

bool PoolTake::await_suspend(std::coroutine_handle<>) noexcept {
  if (!park()) return true;
  parked_ = worker_.pool.sit(*this);
  if (!parked_) unpark();
  return parked_;
}

PoolJob* PoolTake::await_resume() noexcept {
  parked_ = false;
  return worker_.pool.pick_up(worker_);
}

void PoolTake::cancel() noexcept {
  if (worker_.pool.stand_up(*this)) complete();
}

void PoolCore::become(PoolWorker& worker, WorkerState state) noexcept {
  STINT_ASSERT(may_become(worker.state, state));
  worker.state = state;
}

/// The worker is to carry the job. A draining one stays that.
void PoolCore::begin(PoolWorker& worker, PoolJob& job) noexcept {
  job.state.store(JobState::given, std::memory_order_relaxed);
  job.worker = &worker;
  worker.job = &job;
  ++carrying_;
  if (worker.state == WorkerState::idle) become(worker, WorkerState::busy);
}

void PoolCore::start_job(PoolWorker& worker, TimePoint now) noexcept {
  worker.job->state.store(JobState::running, std::memory_order_relaxed);
  worker.since = worker.life_at = now;
  worker.seen_pulse = worker.pulse.load(std::memory_order_relaxed);
}

/// Wakes a worker that sits idle.
void PoolCore::summon(PoolWorker& worker, Wakes& wakes) noexcept {
  static_cast<Link<PoolIdle>&>(worker).unlink();
  wakes.post(*executor_, *std::exchange(worker.take, nullptr));
}

/// True if it sits and waits; otherwise there is a job, or it leaves.
bool PoolCore::sit(PoolTake& take) noexcept {
  PoolWorker& worker = take.worker_;
  Wakes wakes;
  const Lock lock(mutex_);
  if (worker.job != nullptr || take_next(worker, wakes) != nullptr || worker.leaving) return false;
  if (worker.state == WorkerState::busy) become(worker, WorkerState::idle);
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

/// False if it was summoned before.
bool PoolCore::stand_up(PoolTake& take) noexcept {
  const Lock lock(mutex_);
  if (take.worker_.take != &take) return false;
  take.worker_.take = nullptr;
  static_cast<Link<PoolIdle>&>(take.worker_).unlink();
  return true;
}

/// Its coroutine is gone. Own thread; nothing here is touched after the last lock is let go.
void PoolCore::leave(PoolWorker& worker) noexcept {
  if (worker.job != nullptr) abandon_job(worker);
  Wakes wakes;
  Lock lock(mutex_);
  become(worker, WorkerState::stopped);
  static_cast<Link<PoolWorker>&>(worker).unlink();
  static_cast<Link<PoolIdle>&>(worker).unlink();
  --live_;
  if (worker.retiring) --retiring_;
  tell_keeper(wakes);  // to find a successor, or to give up what is queued if nobody is left to carry it
  if (drained()) release_drainers(lock, wakes);
}

/// The pool's scope was cancelled, or the executor goes: the worker was stopped with its job.
void PoolCore::abandon_job(PoolWorker& worker) noexcept {
  {
    Wakes wakes;
    const Lock lock(mutex_);
    PoolJob& job = *std::exchange(worker.job, nullptr);
    job.worker = nullptr;
    --carrying_;
    static_cast<Link<PoolStopping>&>(worker).unlink();
    if (job.state.load(std::memory_order_relaxed) == JobState::given) {  // never started: the keeper hands it back
      job.state.store(JobState::queued, std::memory_order_relaxed);
      queue_.push_front(job);
      ++queue_size_;
    } else {
      tally(worker, Verdict::cancelled, {});
      job.refusal = Refusal::stopped;
      release_slot(job);
      if (end(job, wakes) != nullptr) ended_.push_back(job);
    }
  }
  if (!executor_->closing()) deliver_ended();
}

// ---- The keeper ----------------------------------------------------------------------------------------------------

/// `co_await Attend(pool)`: until somebody tells the keeper to look, or the next check is due.
class PoolCore::Attend final : public Leaf, private Timer {
 public:
  explicit Attend(PoolCore& pool) noexcept : pool_(pool) {}
  ~Attend() {
    if (parked_) stand_up();
  }
  bool await_suspend(std::coroutine_handle<>) noexcept {
    if (!park()) return true;
    TimePoint check = TimePoint::max();
    {
      const Lock lock(pool_.mutex_);
      parked_ = !pool_.told_;
      if (parked_) pool_.attend_ = this;
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
  bool stand_up() noexcept {
    const Lock lock(pool_.mutex_);
    return pool_.attend_ == this && std::exchange(pool_.attend_, nullptr) != nullptr;
  }
  void cancel() noexcept override {
    if (stand_up()) complete();
  }
  void fire() noexcept override {
    if (stand_up()) complete();
  }

  PoolCore& pool_;
  bool parked_ = false;
};

void PoolCore::tell_keeper(Wakes& wakes) noexcept {
  told_ = true;
  if (attend_ != nullptr) wakes.post(*executor_, *std::exchange(attend_, nullptr));
}

/// True on the pool's own thread, where what others ask the keeper for is done at once.
bool PoolCore::mine() const noexcept {
  return executor_ != nullptr && executor_->is_current() && !executor_->closing();
}

void PoolCore::start(Scope& scope) {
  STINT_ASSERT(scope_ == nullptr && scope.executor().is_current());
  scope_ = &scope;
  {
    const Lock lock(mutex_);
    executor_ = &scope.executor();
    keeping_ = true;
    if (options_.autoscale) next_check_ = executor_->now() + options_.autoscale->check_every;
  }
  scope.spawn(keep(Keeping(*this)));
  spawn_missing();
}

Task<> PoolCore::keep(Keeping keeping) {
  (void)keeping;
  do {
    co_await Attend(*this);
  } while (attend());
}

/// False when the pool is drained and the keeper may go.
bool PoolCore::attend() {
  bool check = false;
  {
    const Lock lock(mutex_);
    told_ = false;
    check = phase_ == Phase::open && executor_->now() >= next_check_;
  }
  send_cancels();
  deliver_ended();
  if (check) check_size();
  spawn_missing();
  const Lock lock(mutex_);
  return phase_ == Phase::open || live_ != 0;
}

/// Its coroutine is gone: drained, or the pool's scope was cancelled, or the executor goes. Nothing here is touched
/// after the last lock is let go.
void PoolCore::keeper_left() noexcept {
  {
    Wakes wakes;
    Lock lock(mutex_);
    if (phase_ == Phase::open) start_drain(lock, wakes, executor_->now());
    hurry(lock, wakes);  // the workers are stopped by the same scope
  }
  if (!executor_->closing()) deliver_ended();
  Wakes wakes;
  Lock lock(mutex_);
  keeping_ = false;
  if (drained()) release_drainers(lock, wakes);
}

// ---- Size ----------------------------------------------------------------------------------------------------------

void PoolCore::spawn_missing() {
  while (true) {
    std::unique_ptr<PoolWorker> worker;
    {
      const Lock lock(mutex_);
      // Those that finish their last job count: never more at work than were asked for.
      if (phase_ != Phase::open || live_ >= target_) return;
      worker = std::make_unique<PoolWorker>(*this, WorkerId{next_worker_++});
      worker->since = executor_->now();
      workers_.push_back(*worker);
      ++live_;
    }
    if (scope_->spawn(carry(WorkerSeat(std::move(worker))))) continue;
    const Lock lock(mutex_);
    target_ = std::min(target_, live_);  // the scope takes no more children
    return;
  }
}

/// Chooses workers until as many are left as were asked for: those without a job, the longest idle first; then, if they
/// may be taken, those with one, the youngest first.
void PoolCore::retire(bool also_busy, Wakes& wakes) noexcept {
  const auto enough = [this] { return live_ - retiring_ <= target_; };
  const auto choose = [&](PoolWorker& worker) {
    worker.retiring = true;
    ++retiring_;
    if (worker.state != WorkerState::draining) become(worker, WorkerState::draining);
    if (worker.take != nullptr) summon(worker, wakes);
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
    here = mine();
    if (executor_ != nullptr) resized_at_ = executor_->now();
    if (!here) tell_keeper(wakes);
  }
  if (here) spawn_missing();
  return {};
}

Result<> PoolCore::set_bounds(std::size_t min, std::size_t max) {
  if (min > max || max > kWorkersMax) {
    return fail(Errc::invalid, "worker pool '" + options_.name + "': " + std::to_string(min) + " to " +
                                   std::to_string(max) + " workers is no range up to " + std::to_string(kWorkersMax));
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

/// What the hook says; nothing if it threw.
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
