/// The interface to Asio.
///
/// `Reactor`: an executor on one `io_context` and one thread (the one that created it).
/// `use_task`: a completion token for tasks: `auto [ec, n] = co_await socket.async_read_some(buffer, use_task);`
/// `async_acquire`, `async_run`: the opposite direction, the library's operations with any completion token, for
/// programs built on Asio. Their cancellation slots work; a cancelled operation completes with `operation_aborted`.
#pragma once

#include "stint/scope.hpp"
#include "stint/semaphore.hpp"

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/version.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <tuple>

// Set by the installed package. Asio is compiled into the library, so its types must have the same layout here.
#if defined(STINT_BOOST_VERSION) && STINT_BOOST_VERSION != BOOST_VERSION
#error "stint was built with another version of Boost (STINT_BOOST_VERSION) than the one included here (BOOST_VERSION)"
#endif

namespace stint {

namespace asio = boost::asio;

/// With its own `io_context` it is run by `run_until` or `run`. Attached to an existing `io_context`, it is run by the
/// thread that runs that context, and counts as work of it while a root scope has children: `io.run()` does not return
/// before they have ended.
class Reactor final : public Executor {
 public:
  static constexpr int kResumesPerPoll = 256;  // a poll is a system call of about 0.5 µs: 2 ns per resume
  static constexpr int kHandlersPerPoll = 256;
  static constexpr int kBatchesPerPoll = 16;  // small batches, such as posts from another thread, don't poll each time
  /// About the cost of going to sleep and being woken. While posts of other threads arrive faster than that, the
  /// reactor spins for the next one instead of sleeping. After an unsuccessful spin it skips twice as many sleeps as
  /// the last time before it spins again.
  static constexpr Duration kSpinMax = std::chrono::microseconds(30);
  static constexpr int kSpinRestMax = 63;

  Reactor();
  /// Attaches to `io`, which must outlive it and be run by this thread only. Must be at rest when destroyed: it can't
  /// remove its operations from a context that it does not own.
  explicit Reactor(asio::io_context& io);
  ~Reactor();  // on its own thread; first destroys every Asio operation of its own context, then every frame

  asio::io_context& io() noexcept { return io_; }
  void wake() noexcept override;
  TimePoint now() const noexcept override { return Clock::now(); }

  /// Runs until `done()`, which is checked between batches and before every sleep.
  template <class Done>
  void run_until(Done done) {
    STINT_ASSERT(own_ && is_current());
    while (!done()) {
      if (!run_batch()) {
        if (done()) return;
        sleep();
      }
      poll_in_turn();
    }
  }
  /// Runs until the scope is idle → its first failure, or `cancelled` / `timed_out` if it was stopped. Rethrows the
  /// first exception of a child.
  Result<> run(const Scope& scope) {
    run_until([&scope] { return scope.idle(); });
    return scope.outcome();
  }
  /// Runs one task to completion → its result.
  template <class T>
  detail::Flat<T> run(Task<T> task) {
    std::optional<detail::Flat<T>> outcome;
    const auto body = [&]() -> Task<> {
      if constexpr (std::is_void_v<T>) {
        co_await std::move(task);
        outcome.emplace();
      } else {
        outcome.emplace(co_await std::move(task));
      }
    };
    RootScope scope(*this);
    scope.spawn(body());
    STINT_CHECK(run(scope));
    return *std::move(outcome);
  }
  std::uint64_t wakes() const noexcept { return wakes_.load(std::memory_order_relaxed); }
  /// Number of spins. Own thread only.
  std::uint64_t spins() const noexcept { return spins_; }

 private:
  class Context : public asio::io_context {
   public:
    using execution_context::shutdown;  // destroys the handlers, keeps the services
    using io_context::io_context;
  };
  /// Memory for the single wake-up in flight, so that post() never allocates.
  template <class T>
  struct WakeMemory {
    using value_type = T;
    explicit WakeMemory(Reactor& owner) noexcept : reactor(&owner) {}
    template <class U>
    WakeMemory(const WakeMemory<U>& other) noexcept : reactor(other.reactor) {}  // NOLINT: as allocators do
    T* allocate(std::size_t count) noexcept {
      STINT_ASSERT(count * sizeof(T) <= sizeof(reactor->wake_memory_));
      return reinterpret_cast<T*>(reactor->wake_memory_);
    }
    void deallocate(T*, std::size_t) noexcept {}
    friend bool operator==(const WakeMemory&, const WakeMemory&) = default;
    Reactor* reactor;
  };
  struct Wake {
    using allocator_type = WakeMemory<void>;
    allocator_type get_allocator() const noexcept { return allocator_type(*reactor); }
    void operator()() const noexcept { reactor->woken(); }
    Reactor* reactor;
  };

  /// Marks the inbox of a reactor that is being destroyed: later posts are dropped.
  struct Closed final : Runnable {
    void run() noexcept override {}
  };

  [[nodiscard]] bool post_elsewhere(Runnable& runnable) noexcept override;
  void work_changed(bool unfinished) noexcept override;
  bool must_wake() noexcept;
  void woken() noexcept;
  bool run_batch() noexcept;
  int run_queued(int most) noexcept;
  void take_inbox(Runnable* left = nullptr) noexcept;
  void poll_in_turn();
  void sleep();
  bool spin() noexcept;
  void set_alarm();

  std::unique_ptr<Context> own_;
  asio::io_context& io_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>>
      work_;                                   // attached only: held while work is unfinished
  std::unique_ptr<asio::steady_timer> alarm_;  // expires with the earliest timer of the wheel
  TimePoint alarm_at_ = TimePoint::max();
  std::shared_ptr<bool> alive_;  // attached only: shared with handlers that outlive the reactor
  int unpolled_resumes_ = 0;
  int unpolled_batches_ = 0;
  bool was_posted_to_ = false;              // the last sleep was ended by another thread
  int spin_rest_ = 0, spin_rest_last_ = 0;  // sleeps to skip before the next spin: remaining, and the last total
  std::uint64_t spins_ = 0;
  Closed closed_;
  std::atomic<Runnable*> inbox_ = nullptr;    // other threads' posts, newest first
  std::atomic<bool> idle_;                    // about to sleep, or asleep: a post must wake it
  std::atomic<bool> wake_in_flight_ = false;  // an earlier wake-up has not run yet and suffices
  std::atomic<std::uint32_t> posting_ = 0;    // other threads inside post_without_wake() … wake()
  std::atomic<std::uint64_t> wakes_ = 0;
  alignas(std::max_align_t) std::byte wake_memory_[128];
};

/// `stint::run(task)`: runs a task to completion on a new reactor and returns its result. For `main` and for threads
/// without an executor; a coroutine awaits instead.
template <class T>
detail::Flat<T> run(Task<T> task) {
  Reactor reactor;
  return reactor.run(std::move(task));
}

/// `int main() { return stint::run_main(program()); }`: runs the program to completion → the exit status. A failure is
/// printed to stderr as `error: what: cause` and gives status 1. SIGINT and SIGTERM cancel the program (reason
/// `shutdown`), so that its cleanup runs; the status is then 128 + the signal. A second signal ends the process at
/// once.
int run_main(Task<Result<int>> program);
int run_main(Task<Result<>> program);
int run_main(Task<int> program);
int run_main(Task<> program);

struct UseTask {};
inline constexpr UseTask use_task;

/// The context of a reactor; asserts that `executor` is one.
[[nodiscard]] asio::io_context& context_of(Executor& executor) noexcept;

/// One Asio operation as a leaf, for coroutines on a reactor. Its handler runs on the reactor's thread, even for an
/// operation on another context. Cancellation is emitted on the same thread, so handler and cancellation never race.
/// The chain stops only after the handler has run, so no frame is destroyed with an operation in flight. Returns the
/// handler's arguments as a tuple.
template <class Start, class... Args>
class AsioOperation final : public Leaf {
 public:
  explicit AsioOperation(Start start) : start_(std::move(start)) {}
  void await_suspend(std::coroutine_handle<>) {
    if (!park()) return;
    io_ = &context_of(executor());
    try {
      start_(Handler{this});
    } catch (...) {
      unpark();  // the frame continues with the exception: nothing may point at this leaf
      throw;
    }
  }
  [[nodiscard]] std::tuple<Args...> await_resume() { return std::move(*result_); }

 private:
  struct Handler {
    using cancellation_slot_type = asio::cancellation_slot;
    using executor_type = asio::io_context::executor_type;
    cancellation_slot_type get_cancellation_slot() const noexcept { return operation->signal_.slot(); }
    executor_type get_executor() const noexcept { return operation->io_->get_executor(); }
    void operator()(Args... args) const {
      if (operation->executor().is_current()) {
        operation->finish(std::tuple<Args...>(std::move(args)...));
      } else {  // the operation ignored the handler's executor
        asio::post(get_executor(), [operation = operation, result = std::tuple<Args...>(std::move(args)...)]() mutable {
          operation->finish(std::move(result));
        });
      }
    }
    AsioOperation* operation;
  };
  void finish(std::tuple<Args...> result) {
    result_.emplace(std::move(result));
    complete();
  }
  bool ready() const noexcept override { return result_.has_value(); }
  void cancel() noexcept override {
    // Once the handler has run, the slot may refer to a destroyed socket.
    if (!result_) signal_.emit(asio::cancellation_type::terminal);
  }

  Start start_;
  asio::io_context* io_ = nullptr;
  asio::cancellation_signal signal_;
  std::optional<std::tuple<Args...>> result_;
};

[[nodiscard]] boost::system::error_code to_error_code(const Error& error) noexcept;

namespace detail {

/// The acquires that wait on behalf of one Asio context; they are withdrawn when the context is destroyed. Its
/// destruction waits for threads that are about to complete one of them.
class AsioWaiters final : public asio::execution_context::service {
 public:
  class Waiter : public Link<Waiter> {
   public:
    virtual void abandon() noexcept = 0;

   protected:
    Waiter() = default;
    ~Waiter() = default;
  };
  using key_type = AsioWaiters;
  static asio::execution_context::id id;

  explicit AsioWaiters(asio::execution_context& context) : service(context) {}
  void add(Waiter& waiter) noexcept;
  void remove(Waiter& waiter) noexcept;
  /// The context can't be destroyed while held. Call `hold` only while the waiter is certain to be alive.
  void hold() noexcept { holds_.fetch_add(1, std::memory_order_relaxed); }
  void unhold() noexcept { holds_.fetch_sub(1, std::memory_order_release); }

 private:
  void shutdown() override;
  std::mutex mutex_;
  List<Waiter> waiters_;
  std::atomic<std::uint32_t> holds_ = 0;
};

/// Links a cancellation slot to the wait that it cancels. The wait may end on one thread while another cancels it, and
/// the signal may live longer or shorter than the wait.
template <class Wait>
class CancelLink {
 public:
  explicit CancelLink(Wait& wait) noexcept : wait_(&wait) {}
  void cancel() {
    const std::lock_guard lock(mutex_);
    if (wait_ != nullptr) wait_->cancel_wait();
  }
  /// After this no cancellation reaches the wait.
  void disconnect() noexcept {
    const std::lock_guard lock(mutex_);
    wait_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Wait* wait_;
};

/// A semaphore's waiter that completes an Asio handler. Owns itself until the handler runs.
template <class Handler>
class AsioAcquire final : public Acquire, private Wakeable, private AsioWaiters::Waiter {
 public:
  static void start(Handler handler, Semaphore& semaphore, std::uint32_t units) {
    std::unique_ptr<AsioAcquire> owned(new AsioAcquire(std::move(handler), semaphore, units));
    auto slot = asio::get_associated_cancellation_slot(owned->handler_);
    if (slot.is_connected()) {
      owned->link_ = std::make_shared<CancelLink<AsioAcquire>>(*owned);  // the second owner is the slot
      slot.assign([link = owned->link_](asio::cancellation_type) { link->cancel(); });
    }
    AsioAcquire& self = *owned.release();
    self.waiters_.add(self);
    if (self.enter() == State::waiting) return;  // `self` may already be destroyed
    self.waiters_.hold();
    self.wake();
  }
  ~AsioAcquire() {
    if (link_) link_->disconnect();
  }

 private:
  friend class CancelLink<AsioAcquire>;
  AsioAcquire(Handler handler, Semaphore& semaphore, std::uint32_t units)
      : Acquire(semaphore, units),
        handler_(std::move(handler)),
        work_(asio::get_associated_executor(handler_)),
        waiters_(asio::use_service<AsioWaiters>(asio::query(work_.get_executor(), asio::execution::context))) {
    set_kind(Kind::foreign);
  }
  /// Under the semaphore's lock, which `abandon` takes too: it either ends the wait or finds the context held.
  void decided(Wakes& wakes) noexcept override {
    waiters_.hold();
    wakes.add(*this);
  }
  void abandon() noexcept override {
    if (withdraw(State::stopped)) delete this;
  }
  void cancel_wait() {
    waiters_.hold();
    if (withdraw(State::stopped)) {
      wake();
    } else {
      waiters_.unhold();
    }
  }
  /// Releases the context, which was held when the wait was decided.
  void wake() noexcept override {
    AsioWaiters& waiters = waiters_;
    waiters.remove(*this);
    asio::post(work_.get_executor(), [self = std::unique_ptr<AsioAcquire>(this)]() mutable {
      Result<Permit> result = self->await_resume();
      Handler handler = std::move(self->handler_);
      self.reset();
      if (result) {
        std::move(handler)(boost::system::error_code(), std::move(*result));
      } else {
        std::move(handler)(to_error_code(result.error()), Permit());
      }
    });
    waiters.unhold();
  }

  Handler handler_;
  asio::executor_work_guard<asio::associated_executor_t<Handler>> work_;
  AsioWaiters& waiters_;
  std::shared_ptr<CancelLink<AsioAcquire>> link_;
};

/// A task of a scope that completes an Asio handler.
template <class T, class Handler>
class AsioRun {
 public:
  using Outcome = Flat<T>;
  static void start(Handler handler, Scope& scope, Task<T> task) {
    auto state = std::make_shared<AsioRun>(std::move(handler));
    auto slot = asio::get_associated_cancellation_slot(state->handler_);
    if (slot.is_connected()) {
      slot.assign([weak = std::weak_ptr(state)](asio::cancellation_type) {
        if (const auto running = weak.lock()) running->cancel();
      });
    }
    // shared_ptr: owned by the frame and, while it is connected, the cancellation slot. A closed scope destroys the
    // frame, which completes the handler.
    scope.spawn(carry(std::move(state), std::move(task)));
  }
  explicit AsioRun(Handler handler) : handler_(std::move(handler)), work_(asio::get_associated_executor(handler_)) {}
  ~AsioRun() {
    if (!done_) finish(std::unexpected(Error(Errc::cancelled)));
  }

 private:
  static Task<> carry(std::shared_ptr<AsioRun> self, Task<T> task) {
    if (self->cancelled_) co_return;  // the destructor completes the handler
    const auto body = [&](Scope& inner) -> Task<T> {
      self->inner_ = &inner;  // before anything runs in it; from here on cancel() reaches it
      return std::move(task);
    };
    try {
      auto outcome = co_await with_scope(std::ref(body));
      self->finish(std::move(outcome));
    } catch (const std::exception& error) {
      self->finish(fail(Errc::failed, error.what()));
    } catch (...) {
      self->finish(fail(Errc::failed, "the task threw something that is not a std::exception"));
    }
  }
  void cancel() noexcept {
    cancelled_ = true;
    if (inner_ != nullptr) inner_->cancel();
  }
  void finish(Outcome outcome) {
    done_ = true;
    inner_ = nullptr;
    auto executor = asio::get_associated_executor(handler_);
    asio::post(executor,
               [handler = std::move(handler_), work = std::move(work_), outcome = std::move(outcome)]() mutable {
                 const auto code = outcome ? boost::system::error_code() : to_error_code(outcome.error());
                 std::move(handler)(code, std::move(outcome));
               });
  }

  Handler handler_;
  asio::executor_work_guard<asio::associated_executor_t<Handler>> work_;
  Scope* inner_ = nullptr;
  bool cancelled_ = false;
  bool done_ = false;
};

}  // namespace detail

/// `async_acquire(semaphore, units, token)` completes with `void(error_code, Permit)` on the token's executor. May be
/// called from any thread; its cancellation slot may be emitted on any thread, but not during initiation. The semaphore
/// must outlive the operation.
template <class Token>
auto async_acquire(Semaphore& semaphore, std::uint32_t units, Token&& token) {
  return asio::async_initiate<Token, void(boost::system::error_code, Permit)>(
      [](auto handler, Semaphore* from, std::uint32_t count) {
        detail::AsioAcquire<decltype(handler)>::start(std::move(handler), *from, count);
      },
      token, &semaphore, units);
}

/// `async_run(scope, task, token)`: runs a task as a child of `scope` and completes with `void(error_code, Result<T>)`.
/// Gives access to every other operation of the library. Call it, and emit its cancellation slot, on the scope's
/// thread. An exception of the task completes with `Errc::failed` and does not affect the scope.
template <class T, class Token>
auto async_run(Scope& scope, Task<T> task, Token&& token) {
  return asio::async_initiate<Token, void(boost::system::error_code, detail::Flat<T>)>(
      [](auto handler, Scope* owner, Task<T> work) {
        detail::AsioRun<T, decltype(handler)>::start(std::move(handler), *owner, std::move(work));
      },
      token, &scope, std::move(task));
}

}  // namespace stint

template <class... Args>
struct boost::asio::async_result<stint::UseTask, void(Args...)> {
  template <class Initiation, class... Inputs>
  static auto initiate(Initiation initiation, stint::UseTask, Inputs... inputs) {
    auto start = [initiation = std::move(initiation), ... inputs = std::move(inputs)](auto handler) mutable {
      std::move(initiation)(std::move(handler), std::move(inputs)...);
    };
    return stint::AsioOperation<decltype(start), std::decay_t<Args>...>(std::move(start));
  }
};
