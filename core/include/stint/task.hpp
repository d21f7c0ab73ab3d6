/// `Task<T>`: a lazy coroutine that starts when awaited and resumes its awaiter by symmetric transfer. Await it in the
/// expression that creates it, or pass it to a scope or a combinator. Owns its frame; move-only.
///
/// A promise holds two words: a pointer to its chain, and a pointer to the `Task` object in the awaiting frame, which
/// links both frames. Exceptions propagate through awaits. A stop does not: it destroys the frames (see
/// `stint/cancel.hpp`), so code after an await may never run; only destructors are guaranteed to.
#pragma once

#include "stint/cancel.hpp"
#include "stint/detail/frame_memory.hpp"

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

namespace stint {

template <class T = void>
class Task;

/// Links a task's frame to the frame that awaits it; lives in the awaiting frame.
struct TaskLink {
  std::coroutine_handle<> child;
  std::coroutine_handle<> parent;
};

struct CurrentToken {};

/// Base of awaitables that complete immediately: `await_suspend` returns false, so cancellation never meets one that
/// waits.
struct NeverSuspends {};

namespace detail {
template <class T>
inline constexpr bool kIsTask = false;
template <class T>
inline constexpr bool kIsTask<Task<T>> = true;
}  // namespace detail

/// What a task may await: another task, a `Leaf` (which cancellation reaches), or an awaitable that never suspends.
template <class T>
concept Awaitable = detail::kIsTask<std::remove_cvref_t<T>> || std::is_base_of_v<Leaf, std::remove_cvref_t<T>> ||
                    std::is_base_of_v<NeverSuspends, std::remove_cvref_t<T>>;

struct PromiseBase {
  PromiseBase() noexcept : chain(nullptr) {}
  ~PromiseBase() {
    if (has(kThrew)) thrown.~exception_ptr();
  }
  PromiseBase(const PromiseBase&) = delete;
  PromiseBase& operator=(const PromiseBase&) = delete;
  static void* operator new(std::size_t size) { return detail::allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { detail::free_frame(frame, size); }

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) const noexcept {
      PromiseBase& promise = handle.promise();
      if (const TaskLink* link = promise.awaiter()) return link->parent;
      promise.chain->ended(End::finished);  // may destroy this frame
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() const noexcept { return {}; }
  Final final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept {
    if (awaiter() == nullptr) return chain->threw(std::current_exception());
    new (&thrown) std::exception_ptr(std::current_exception());  // the frame is ending, so `chain` is no longer needed
    mark(kThrew);
  }

  template <class Awaited>
  decltype(auto) await_transform(Awaited&& awaited) noexcept {
    static_assert(Awaitable<Awaited>,
                  "unknown awaitable: cancellation would not reach it, and it might resume the task "
                  "on a foreign thread. Await an Asio operation with stint::use_task, a foreign coroutine through "
                  "asio::co_spawn(executor, coroutine, stint::use_task), blocking code with stint::offload; or derive "
                  "the awaitable from stint::Leaf");
    if constexpr (std::is_base_of_v<Leaf, std::remove_cvref_t<Awaited>>) awaited.bind(*this);
    return static_cast<Awaited&&>(awaited);
  }
  auto await_transform(CurrentToken) noexcept {
    struct Ready {
      bool await_ready() const noexcept { return true; }
      void await_suspend(std::coroutine_handle<>) const noexcept {}
      [[nodiscard]] CancelToken& await_resume() const noexcept { return token; }
      CancelToken& token;
    };
    return Ready{chain->token()};
  }

  // The two low bits of the awaiter's address are unused by alignment; they record how the frame ended.
  static constexpr std::uintptr_t kThrew = 1, kValue = 2, kBits = 3;
  bool has(std::uintptr_t bit) const noexcept { return (awaiter_bits & bit) != 0; }
  void mark(std::uintptr_t bit) noexcept { awaiter_bits |= bit; }
  TaskLink* awaiter() const noexcept { return reinterpret_cast<TaskLink*>(awaiter_bits & ~kBits); }
  void rethrow() const {
    if (has(kThrew)) std::rethrow_exception(thrown);
  }

  union {
    Chain* chain;               // inherited by every frame that this one awaits
    std::exception_ptr thrown;  // if kThrew
  };
  std::uintptr_t awaiter_bits = 0;  // no awaiter: the root of its chain
};

/// Every promise has its PromiseBase at the same offset in its frame, so a leaf need not know the promise's type.
inline PromiseBase& promise_of(std::coroutine_handle<> handle) noexcept {
  return std::coroutine_handle<PromiseBase>::from_address(handle.address()).promise();
}

template <class T>
struct Promise : PromiseBase {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__, "promise_of() needs the common place in the frame");
  Promise() noexcept {}
  ~Promise() {
    if (has(kValue)) value.~T();
  }
  Task<T> get_return_object() noexcept;
  template <class U = T>
    requires std::is_constructible_v<T, U&&>
  void return_value(U&& result) noexcept(std::is_nothrow_constructible_v<T, U&&>) {
    new (&value) T(std::forward<U>(result));
    mark(kValue);
  }
  T take() {
    rethrow();
    return std::move(value);
  }
  union {
    T value;  // if kValue
  };
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const { rethrow(); }
};

template <class T>
class [[nodiscard]] Task : private TaskLink {
 public:
  using promise_type = Promise<T>;
  using value_type = T;

  Task() noexcept = default;
  explicit Task(std::coroutine_handle<promise_type> handle) noexcept : TaskLink{handle, {}} {}
  Task(Task&& other) noexcept : TaskLink{std::exchange(other.child, {}), {}} {}
  Task& operator=(Task&& other) noexcept {
    std::swap(child, other.child);
    return *this;
  }
  ~Task() {
    if (child) child.destroy();
  }

  bool await_ready() const noexcept { return false; }
  template <class Awaiting>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Awaiting> awaiting) noexcept {
    assert_unused();
    promise().chain = awaiting.promise().chain;
    promise().awaiter_bits = reinterpret_cast<std::uintptr_t>(static_cast<TaskLink*>(this));
    parent = awaiting;
    return child;
  }
  [[nodiscard]] T await_resume() { return promise().take(); }

  /// Transfers ownership of the frame to the chain that runs it as its root.
  std::coroutine_handle<promise_type> release() noexcept {
    assert_unused();
    return std::coroutine_handle<promise_type>::from_address(std::exchange(child, {}).address());
  }

 private:
  void assert_unused() const noexcept {
    STINT_ASSERT(child && "the task is empty: it was moved from, spawned, or never made");
    STINT_ASSERT(promise().awaiter_bits == 0 && "the task was awaited before: a task runs once");
  }
  promise_type& promise() const noexcept {
    return std::coroutine_handle<promise_type>::from_address(child.address()).promise();
  }
};

template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

inline Chain& Leaf::chain() const noexcept { return *promise_of(awaiting_).chain; }
inline void Leaf::bind(PromiseBase& promise) noexcept {
  awaiting_ = std::coroutine_handle<PromiseBase>::from_promise(promise);
}
inline void Leaf::park_shielded() noexcept { chain().parked = this; }
inline bool Leaf::park() noexcept {
  park_shielded();
  if (!token().cancelled()) return true;
  complete();
  return false;
}

namespace detail {

/// Calls `fn` and awaits the task it returns; `fn` lives in this frame, so its captures outlive the task.
template <class Fn>
std::invoke_result_t<Fn&> call(Fn fn) {
  co_return co_await fn();
}

}  // namespace detail

/// `CancelToken& token = co_await current_token();` never suspends.
[[nodiscard]] inline CurrentToken current_token() noexcept { return {}; }

/// `co_await yield()`: moves the coroutine to the back of the run queue.
class Yield final : public Leaf {
 public:
  void await_suspend(std::coroutine_handle<>) noexcept {
    park_shielded();  // the run loop checks the token
    complete();
  }
  void await_resume() const noexcept {}

 private:
  bool ready() const noexcept override { return true; }
  void cancel() noexcept override {}  // already queued
};
[[nodiscard]] inline Yield yield() noexcept { return {}; }

/// `co_await sleep_until(when)`, `co_await sleep_for(duration)`: never early; late by at most one tick (1 ms) and one
/// batch.
class Sleep final : public Leaf, private Timer {
 public:
  explicit Sleep(TimePoint when) noexcept : when_(when) {}
  explicit Sleep(Duration duration) noexcept : when_(duration), relative_(true) {}
  Sleep(Sleep&& other) noexcept : when_(other.when_), relative_(other.relative_) {}  // only before it is awaited
  void await_suspend(std::coroutine_handle<>) noexcept {
    if (!park()) return;
    Executor& on = executor();
    on.arm(*this, relative_ ? Deadline::after(on.now(), when_.time_since_epoch()).when() : when_);
  }
  void await_resume() const noexcept {}

 private:
  void fire() noexcept override { complete(); }
  bool ready() const noexcept override { return !linked() || when_ <= (relative_ ? TimePoint() : executor().now()); }
  void cancel() noexcept override {
    if (!linked()) return;  // fired, and already queued
    executor().disarm(*this);
    complete();
  }
  TimePoint when_;  // relative: counted from the await
  bool relative_ = false;
};
[[nodiscard]] inline Sleep sleep_until(TimePoint when) noexcept { return Sleep(when); }
[[nodiscard]] inline Sleep sleep_for(Duration duration) noexcept { return Sleep(duration); }

}  // namespace stint
