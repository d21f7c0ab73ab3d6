/// `co_await offload(pool, fn)`: runs blocking code (a file, a name lookup, a library that waits) on a thread of a
/// bounded pool, and resumes the caller on its own executor with what `fn` gave.
///
/// At most `threads` calls run at once. Further callers wait in line, first come, first served; that wait can be
/// cancelled and has no other bound than the number of coroutines. **A call that runs can't be stopped.** A cancel, or
/// a deadline around it, takes effect when the call has returned: the frame, and what `fn` refers to, live until then.
/// So give the call itself a time limit, or let it look at a flag. An exception of `fn` passes to the awaiter.
///
/// The pool is thread-safe and starts threads as they are needed. It must outlive its callers: the destructor asserts
/// that, and joins the threads. An executor that is destroyed under a call waits for the call.
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

/// A call on its way to a thread of the pool and back: a leaf that no cancel ends early.
class BlockingCallBase : public Leaf, public Link<BlockingCallBase> {
 public:
  bool await_suspend(std::coroutine_handle<>) noexcept;

 protected:
  explicit BlockingCallBase(BlockingPool& pool) noexcept : pool_(pool) {}
  ~BlockingCallBase() { STINT_ASSERT(state_ != State::running && "a derived class waits in its destructor"); }
  /// First thing in the destructor of a derived class: if the executor goes, the thread may still use the object.
  void wait_until_returned() noexcept;
  /// On a thread of the pool; keeps the outcome.
  virtual void call() noexcept = 0;
  /// True if no thread could be had.
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
  /// whose order is then the seed's alone.
  BlockingPool(std::string name, std::uint32_t threads);
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  /// Callers in line and newcomers get `closed`; calls that run are not touched. May be repeated.
  void close() noexcept { slots_.close(); }
  [[nodiscard]] const std::string& name() const noexcept { return slots_.name(); }
  /// Calls that run, or are about to.
  [[nodiscard]] std::size_t running() const noexcept {
    return static_cast<std::size_t>(slots_.capacity() - slots_.available());
  }
  /// Callers in line.
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
  detail::List<detail::BlockingCallBase> queue_;  // no longer than there are slots
  std::size_t idle_ = 0;                          // threads that wait for a call
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

/// → what `fn` gives, as a `Result`. `closed` after `BlockingPool::close`, `unavailable` if the system has no thread
/// left. `fn` lives in this coroutine's frame, so it may capture.
template <class Fn>
[[nodiscard]] auto offload(BlockingPool& pool, Fn fn) -> Task<detail::Flat<std::invoke_result_t<Fn&>>> {
  STINT_CO_TRY(const Permit permit, co_await pool.slots_.acquire());
  co_return co_await detail::BlockingCall<Fn>(pool, fn);
}

}  // namespace stint
