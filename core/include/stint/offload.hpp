/// `co_await offload(pool, fn)`: runs blocking code (file access, a name lookup, a blocking library) on a thread of a
/// bounded pool, and resumes the caller on its own executor with the result of `fn`.
///
/// At most `threads` calls run at once. Further callers wait in FIFO order; that wait can be cancelled and is bounded
/// only by the number of coroutines. **A running call can't be stopped.** A cancellation or a deadline takes effect
/// when the call has returned; the frame, and everything `fn` refers to, live until then. So give the call itself a
/// timeout, or let it check a flag. An exception of `fn` propagates to the awaiter.
///
/// The pool is thread-safe and starts threads on demand. It must outlive its callers: the destructor asserts that, and
/// joins the threads. An executor that is destroyed during a call waits for the call.
#pragma once

#include "stint/semaphore.hpp"

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stint {

class BlockingPool;
namespace detail {

/// A call on a thread of the pool: a leaf that cancellation does not end early.
class BlockingCallBase : public Leaf, public Link<BlockingCallBase> {
 public:
  bool await_suspend(std::coroutine_handle<>) noexcept;

 protected:
  explicit BlockingCallBase(BlockingPool& pool) noexcept : pool_(pool) {}
  ~BlockingCallBase() { STINT_ASSERT(state_ != State::running && "a derived class waits in its destructor"); }
  /// Must come first in the destructor of a derived class: when an executor is destroyed, the thread may still use the
  /// object.
  void wait_until_returned() noexcept;
  /// Runs on a thread of the pool and stores the outcome.
  virtual void call() noexcept = 0;
  /// True if no thread could be started.
  [[nodiscard]] bool was_refused() const noexcept { return state_ == State::refused; }
  [[nodiscard]] Error refusal() const;

 private:
  friend class stint::BlockingPool;
  enum class State : std::uint8_t { idle, running, returned, refused };
  void cancel() noexcept final {}

  BlockingPool& pool_;
  State state_ = State::idle;  // under the pool's lock while `running`
};

template <class Fn>
class BlockingCall final : public BlockingCallBase {
 public:
  using T = std::invoke_result_t<Fn&>;

  BlockingCall(BlockingPool& pool, Fn& fn) noexcept : BlockingCallBase(pool), fn_(fn) {}
  ~BlockingCall() { wait_until_returned(); }
  Flat<T> await_resume() {
    if (was_refused()) return fail(refusal());
    if (thrown_) std::rethrow_exception(thrown_);
    return *std::move(outcome_);
  }

 private:
  void call() noexcept override {
    try {
      if constexpr (std::is_void_v<T>) {
        fn_();
        outcome_.emplace();
      } else {
        outcome_.emplace(fn_());
      }
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }

  Fn& fn_;
  std::optional<Flat<T>> outcome_;
  std::exception_ptr thrown_;
};

}  // namespace detail

class BlockingPool {
 public:
  static constexpr std::uint32_t kThreadsMax = 1024;

  /// `threads` is 0 … kThreadsMax. 0: calls run in place, on the awaiting thread, one at a time; for the simulator,
  /// whose order then depends on the seed alone.
  BlockingPool(std::string name, std::uint32_t threads);
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  /// Waiting callers and new calls fail with `closed`; running calls are not affected. Idempotent.
  void close() noexcept { slots_.close(); }
  [[nodiscard]] const std::string& name() const noexcept { return slots_.name(); }
  /// Calls that run or are about to.
  [[nodiscard]] std::size_t running() const noexcept {
    return static_cast<std::size_t>(slots_.capacity() - slots_.available());
  }
  /// Waiting callers.
  [[nodiscard]] std::size_t waiting() const noexcept { return slots_.waiting(); }

 private:
  friend class detail::BlockingCallBase;
  template <class Fn>
  friend auto offload(BlockingPool& pool, Fn fn) -> Task<detail::Flat<std::invoke_result_t<Fn&>>>;

  bool start(detail::BlockingCallBase& call) noexcept;
  void work() noexcept;

  Semaphore slots_;
  const std::uint32_t threads_max_;
  std::mutex mutex_;
  std::condition_variable queued_, returned_;
  detail::List<detail::BlockingCallBase> queue_;  // bounded by the number of slots
  std::size_t idle_ = 0;                          // threads that wait for a call
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

/// → the result of `fn`, as a `Result`. `closed` after `BlockingPool::close`, `unavailable` if the system can't start a
/// thread. `fn` lives in this coroutine's frame, so it may capture.
template <class Fn>
[[nodiscard]] auto offload(BlockingPool& pool, Fn fn) -> Task<detail::Flat<std::invoke_result_t<Fn&>>> {
  STINT_CO_TRY(const Permit permit, co_await pool.slots_.acquire());
  co_return co_await detail::BlockingCall<Fn>(pool, fn);
}

}  // namespace stint
