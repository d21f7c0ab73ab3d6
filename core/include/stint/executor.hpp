/// Where coroutines run: a queue of runnables, a clock and a timer wheel, all bound to one thread (the one that made
/// it). `post` and `now` may be called from any thread; everything else only from the executor's own.
///
/// Two implementations: the reactor (`stint/asio.hpp`) and the simulator (`stint/testing.hpp`). The destructor destroys
/// every frame that is queued or parked, so that what they hold comes home; semaphores and pools must outlive it.
#pragma once

#include "stint/assert.hpp"
#include "stint/detail/timer_wheel.hpp"
#include "stint/time.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace stint {

class Chain;
namespace detail {
class Owners;
struct OwnersDeleter {
  void operator()(Owners* owners) const noexcept;
};
}  // namespace detail

/// Something to run once. It lives in a coroutine frame; a queue only links it, so posting never allocates. It must
/// live until it has run or was dropped: an executor that goes calls one of the two for everything in its queue.
class Runnable {
 public:
  virtual void run() = 0;  // must not throw; not noexcept, so that a resume can be a jump
  /// Called instead of `run` if the executor goes first: on its thread, or on the poster's if the post came too late.
  /// Must not touch that executor. What lives in a frame of the executor is destroyed with it and needs no more.
  virtual void dropped() noexcept {}
  Runnable* next_queued = nullptr;  // belongs to the queue that holds it

 protected:
  Runnable() = default;
  ~Runnable() = default;
};

/// An owner of coroutine frames that an executor must empty before it goes.
class ExecutorRoot : public detail::Link<ExecutorRoot> {
 public:
  virtual void abandon() noexcept = 0;
  virtual bool at_rest() const noexcept { return false; }

 protected:
  ExecutorRoot() = default;
  ~ExecutorRoot() = default;
};

/// What is woken after a lock was let go.
class Wakeable {
 public:
  virtual void wake() noexcept = 0;

 protected:
  Wakeable() = default;
  ~Wakeable() = default;
};

class Executor : public Wakeable {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(1);
  static constexpr int kCancelsPerBatch = 1024;  // about 0.1 ms: I/O waits no longer for a cancel of very many

  void post(Runnable& runnable) noexcept {
    if (post_quietly(runnable)) wake();
  }
  /// Queues without waking, so that it may be called under a lock: a wake-up is a system call. If true, the executor
  /// sleeps and the caller owes it exactly one `wake()`, until which it can't be destroyed.
  [[nodiscard]] bool post_quietly(Runnable& runnable) noexcept {
    return !post_here(*this, runnable) && post_slow(runnable);
  }
  /// Queues if `executor` is what this thread runs at the moment: nobody needs to be woken.
  [[nodiscard]] static bool post_here(const Executor& executor, Runnable& runnable) noexcept {
    Executor* here = here_;
    if (here != &executor) return false;
    // Whoever hands over finds `executor` at the end of four dependent loads. The queue's address must come from the
    // thread instead, or the store waits for them; the compiler knows that both are the same and would take either.
    __asm__("" : "+r"(here));
    here->push_local(runnable);
    return true;
  }
  /// What this thread runs at the moment, if it has a local queue.
  static Executor* here() noexcept { return here_; }

  virtual TimePoint now() const noexcept = 0;
  bool is_current() const noexcept { return owner_ == &thread_mark_; }

  void arm(Timer& timer, TimePoint when) noexcept;
  void disarm(Timer& timer) noexcept { timer.unlink(); }

  void enroll(ExecutorRoot& root) noexcept { roots_.push_back(root); }
  /// Counts what is unfinished here: root scopes with children, tasks of other executors. Own thread only.
  void begin_work() noexcept {
    if (unfinished_++ == 0) work_changed(true);
  }
  void end_work() noexcept {
    if (--unfinished_ == 0) work_changed(false);
  }
  bool closing() const noexcept { return closing_; }
  /// True while the run loop is inside a runnable, that is, in a coroutine's frame.
  bool inside() const noexcept { return inside_; }
  /// Of mutexes; null as long as no chain here has held one. Own thread only.
  detail::Owners* owners() const noexcept { return owners_.get(); }

 protected:
  Executor() noexcept : cancel_walk_(*this) {}
  ~Executor() { STINT_ASSERT(roots_.empty()); }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// For the destructor of an implementation, first: tells what is in the local queue that it will not run. From here
  /// on post_elsewhere() tells that to whatever is posted.
  void drop_queued() noexcept;
  /// For the destructor of an implementation, then: destroys every frame, parked or queued.
  void abandon_all() noexcept;
  /// The first work has begun, or the last has ended.
  virtual void work_changed(bool /*unfinished*/) noexcept {}
  /// A post from another thread, or any post if there is no local queue.
  [[nodiscard]] virtual bool post_elsewhere(Runnable& runnable) noexcept = 0;
  /// The own thread's posts go straight into a FIFO queue, without a virtual call, and wake nobody.
  void use_local_queue() noexcept { has_local_queue_ = true; }
  void mark_closing() noexcept {
    closing_ = true;
    has_local_queue_ = false;
  }
  bool at_rest() const noexcept;
  /// Around a run of runnables.
  class Running {
   public:
    explicit Running(Executor& executor) noexcept
        : executor_(executor), before_(std::exchange(here_, executor.has_local_queue_ ? &executor : nullptr)) {
      STINT_ASSERT(!executor_.inside_ && "a coroutine can't run its own executor");
      executor_.inside_ = true;
    }
    ~Running() {
      executor_.inside_ = false;
      here_ = before_;
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Executor& executor_;
    Executor* const before_;
  };

  void fire_due(TimePoint now) noexcept { wheel_.advance(tick_at(now)); }
  std::optional<TimePoint> next_timer() noexcept;
  void set_epoch(TimePoint epoch) noexcept { epoch_ = epoch; }

 private:
  friend class CancelToken;
  friend class detail::Owners;
  /// Tells the leaves of cancelled chains, a batch at a time.
  class CancelWalk final : public Runnable {
   public:
    explicit CancelWalk(Executor& executor) noexcept : executor_(executor) {}
    void run() noexcept override;
    void start() noexcept;

   private:
    Executor& executor_;
    bool queued_ = false;
  };

  void push_local(Runnable& runnable) noexcept {
    runnable.next_queued = nullptr;
    *local_tail_ = &runnable;
    local_tail_ = &runnable.next_queued;
  }
  [[nodiscard]] bool post_slow(Runnable& runnable) noexcept;

  TimerWheel::Tick tick_at(TimePoint time) const noexcept {
    return time < epoch_ ? 0 : static_cast<TimerWheel::Tick>((time - epoch_) / kTick);
  }

  static inline thread_local constinit Executor* here_ = nullptr;
  static inline thread_local constinit char thread_mark_ = 0;  // its address names the thread
  const char* const owner_ = &thread_mark_;
  TimePoint epoch_{};
  TimerWheel wheel_;
  detail::List<ExecutorRoot> roots_;
  std::size_t unfinished_ = 0;
  detail::List<Chain> cancelled_;  // chains that were cancelled and whose leaves have not been told yet
  CancelWalk cancel_walk_;
  std::unique_ptr<detail::Owners, detail::OwnersDeleter> owners_;
  bool closing_ = false;
  bool inside_ = false;
  bool has_local_queue_ = false;

 protected:
  Runnable* local_head_ = nullptr;
  Runnable** local_tail_ = &local_head_;
};

/// Collects the wake-ups that are owed while a lock is held, and does them when it goes out of scope: declare it before
/// the lock.
class Wakes {
 public:
  static constexpr int kMost = 32;  // one per grant of a batch

  Wakes() noexcept {}  // NOLINT: the array stays uninitialised on purpose
  ~Wakes() { flush(); }
  Wakes(const Wakes&) = delete;
  Wakes& operator=(const Wakes&) = delete;

  void post(Executor& executor, Runnable& runnable) noexcept {
    if (executor.post_quietly(runnable)) owe(executor);
  }
  bool full() const noexcept { return count_ == kMost; }
  void owe(Wakeable& wakeable) noexcept {
    STINT_ASSERT(!full());
    owed_[count_++] = &wakeable;
  }
  void flush() noexcept {
    while (count_ > 0) owed_[--count_]->wake();
  }

 private:
  int count_ = 0;
  Wakeable* owed_[kMost];
};

}  // namespace stint
