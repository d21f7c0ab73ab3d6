/// Runs coroutines: a queue of runnables, a clock and a timer wheel, all bound to the thread that created the executor.
/// `post` and `now` may be called from any thread, everything else only from the executor's own thread.
///
/// Two implementations: the reactor (`stint/asio.hpp`) and the simulator (`stint/testing.hpp`). The destructor destroys
/// every queued or parked frame, which returns the permits they hold; semaphores and pools must therefore outlive the
/// executor.
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

/// A unit of work that runs once. It lives in a coroutine frame and a queue only links it, so posting never allocates.
/// It must live until it has run or was dropped: a destroyed executor calls `dropped` for everything left in its queue.
class Runnable {
 public:
  virtual void run() = 0;  // must not throw; not declared noexcept, so that a resume can be a tail call
  /// Called instead of `run` if the executor is destroyed first: on its thread, or on the posting thread if the post
  /// came too late. Must not touch that executor. Objects in a frame of the same executor are destroyed with that frame
  /// and need not override it.
  virtual void dropped() noexcept {}
  Runnable* next_queued = nullptr;  // owned by the queue that links it

 protected:
  Runnable() = default;
  ~Runnable() = default;
};

/// An owner of coroutine frames; the executor empties it before it is destroyed.
class ExecutorRoot : public detail::Link<ExecutorRoot> {
 public:
  virtual void abandon() noexcept = 0;
  virtual bool at_rest() const noexcept { return false; }

 protected:
  ExecutorRoot() = default;
  ~ExecutorRoot() = default;
};

/// Woken after a lock was released; see `Wakes`.
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
  static constexpr int kCancelsPerBatch = 1024;  // about 0.1 ms: bounds how long a large cancellation delays I/O

  void post(Runnable& runnable) noexcept {
    if (post_without_wake(runnable)) wake();
  }
  /// Queues without waking the executor, so it may be called under a lock (a wake-up is a system call). If it returns
  /// true, the executor sleeps and the caller must call `wake()` exactly once; the executor can't be destroyed before
  /// that.
  [[nodiscard]] bool post_without_wake(Runnable& runnable) noexcept {
    return !post_here(*this, runnable) && post_slow(runnable);
  }
  /// Queues only if this thread currently runs `executor`; no wake-up is needed then.
  [[nodiscard]] static bool post_here(const Executor& executor, Runnable& runnable) noexcept {
    Executor* here = here_;
    if (here != &executor) return false;
    // A grant reaches `executor` through four dependent loads. Taking the queue's address from the thread-local instead
    // keeps the store from waiting for them; the asm stops the compiler from merging the two equal pointers.
    __asm__("" : "+r"(here));
    here->push_local(runnable);
    return true;
  }
  /// The executor that this thread currently runs, if it has a local queue.
  static Executor* here() noexcept { return here_; }

  virtual TimePoint now() const noexcept = 0;
  bool is_current() const noexcept { return owner_ == &thread_mark_; }

  void arm(Timer& timer, TimePoint when) noexcept;
  void disarm(Timer& timer) noexcept { timer.unlink(); }

  void add_root(ExecutorRoot& root) noexcept { roots_.push_back(root); }
  /// Counts unfinished work: root scopes with children, tasks of other executors. Own thread only.
  void begin_work() noexcept {
    if (unfinished_++ == 0) work_changed(true);
  }
  void end_work() noexcept {
    if (--unfinished_ == 0) work_changed(false);
  }
  bool closing() const noexcept { return closing_; }
  /// True while the run loop is inside a runnable, that is, in a coroutine's frame.
  bool inside() const noexcept { return inside_; }
  /// Chains here that hold a mutex; null until the first one does. Own thread only.
  detail::Owners* owners() const noexcept { return owners_.get(); }

 protected:
  Executor() noexcept : cancel_walk_(*this) {}
  ~Executor() { STINT_ASSERT(roots_.empty()); }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Step 1 of an implementation's destructor: drops everything in the local queue. From then on post_elsewhere() drops
  /// whatever is posted.
  void drop_queued() noexcept;
  /// Step 2 of an implementation's destructor: destroys every frame, parked or queued.
  void abandon_all() noexcept;
  /// Called when the first work begins and when the last ends.
  virtual void work_changed(bool /*unfinished*/) noexcept {}
  /// A post from another thread, or any post if there is no local queue.
  [[nodiscard]] virtual bool post_elsewhere(Runnable& runnable) noexcept = 0;
  /// Posts from the executor's own thread go into a FIFO queue without a virtual call or a wake-up.
  void use_local_queue() noexcept { has_local_queue_ = true; }
  void mark_closing() noexcept {
    closing_ = true;
    has_local_queue_ = false;
  }
  bool at_rest() const noexcept;
  /// Marks the executor as running while a batch of runnables is executed.
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
  /// Cancels the leaves of cancelled chains, one batch at a time.
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
  static inline thread_local constinit char thread_mark_ = 0;  // its address identifies the thread
  const char* const owner_ = &thread_mark_;
  TimePoint epoch_{};
  TimerWheel wheel_;
  detail::List<ExecutorRoot> roots_;
  std::size_t unfinished_ = 0;
  detail::List<Chain> cancelled_;  // cancelled chains whose leaves were not asked to cancel yet
  CancelWalk cancel_walk_;
  std::unique_ptr<detail::Owners, detail::OwnersDeleter> owners_;
  bool closing_ = false;
  bool inside_ = false;
  bool has_local_queue_ = false;

 protected:
  Runnable* local_head_ = nullptr;
  Runnable** local_tail_ = &local_head_;
};

/// Collects wake-ups while a lock is held and performs them in its destructor: declare it before the lock.
class Wakes {
 public:
  static constexpr int kMost = 32;  // one per grant of a batch

  Wakes() noexcept {}  // NOLINT: the array is left uninitialised on purpose
  ~Wakes() { flush(); }
  Wakes(const Wakes&) = delete;
  Wakes& operator=(const Wakes&) = delete;

  void post(Executor& executor, Runnable& runnable) noexcept {
    if (executor.post_without_wake(runnable)) add(executor);
  }
  bool full() const noexcept { return count_ == kMost; }
  void add(Wakeable& wakeable) noexcept {
    STINT_ASSERT(!full());
    pending_[count_++] = &wakeable;
  }
  void flush() noexcept {
    while (count_ > 0) pending_[--count_]->wake();
  }

 private:
  int count_ = 0;
  Wakeable* pending_[kMost];
};

}  // namespace stint
