/// Reusable objects behind a semaphore: connections, sessions, anything expensive to create. The semaphore limits how
/// many are in use; the pool also keeps the ones that are returned.
///
/// At most `max_size` objects exist. Borrowers are served FIFO; objects are reused LIFO, so that the least used ones
/// age and are found broken or superfluous. An object is created only when a borrower has its turn and no idle object
/// is left. Each idle object is validated before it is leased; one that fails is destroyed, and the next is tried. If a
/// borrower is cancelled while its object is created or validated, the object is destroyed (its state is unknown) and
/// the place is free again. Thread-safe: objects are created and validated on the borrower's executor and destroyed on
/// the thread that holds them, so objects bound to one thread need one pool per thread. After `close` borrowers fail
/// with `Errc::closed`, idle objects are destroyed, and existing leases stay valid; their objects are destroyed on
/// return. Must outlive its leases and borrowers: the destructor asserts that.
#pragma once

#include "stint/combinators.hpp"
#include "stint/semaphore.hpp"

#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

namespace stint {

namespace detail {

/// The part that does not depend on the object type.
class ObjectPoolBase {
 public:
  ObjectPoolBase(const ObjectPoolBase&) = delete;
  ObjectPoolBase& operator=(const ObjectPoolBase&) = delete;

  struct Counts {
    std::size_t idle = 0;
    std::size_t leased = 0;   ///< places in use: leased, or about to be
    std::size_t waiting = 0;  ///< borrowers in line
    std::uint64_t made = 0, reused = 0;
    std::uint64_t discarded = 0;  ///< by `Lease::discard`, or after failed validation
  };
  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] std::size_t max_size() const noexcept { return semaphore_.capacity(); }
  [[nodiscard]] const std::string& name() const noexcept { return semaphore_.name(); }
  /// The places of the pool, to list their holders and the borrowers in line.
  [[nodiscard]] const Semaphore& places() const noexcept { return semaphore_; }

 protected:
  ObjectPoolBase(std::string name, std::uint32_t max_size, std::size_t max_idle, const SemaphoreOptions& options);
  ~ObjectPoolBase() = default;
  [[nodiscard]] Counts counts(std::size_t idle) const noexcept;  // under the lock
  [[nodiscard]] Error closed_error() const;

  Semaphore semaphore_;
  mutable std::mutex mutex_;
  const std::size_t max_idle_;
  std::uint64_t made_ = 0, reused_ = 0, discarded_ = 0;
  bool shut_ = false;
};

}  // namespace detail

/// A request of a borrower: priority and label.
struct BorrowOptions {
  int priority = 0;             ///< Semaphore::kPriorityMin … kPriorityMax; higher goes first
  std::string_view label = {};  ///< for listings; must live until the wait is over
};

template <class T>
class ObjectPool final : public detail::ObjectPoolBase {
 public:
  class Lease;
  using Make = std::function<Task<Result<T>>()>;

  struct Options {
    std::uint32_t max_size = 10;  ///< bound on existing objects; the semaphore's capacity
    std::size_t max_idle = std::numeric_limits<std::size_t>::max();  ///< bound on idle objects
    std::function<bool(T&)> is_good = nullptr;         ///< quick synchronous check before an idle object is leased
    std::function<Task<bool>(T&)> validate = nullptr;  ///< slower check after the quick one, such as a ping
    bool track_holders = false;                        ///< list borrowers with label and age, by `places().holders()`
    const Executor* clock = nullptr;                   ///< for their ages; null: the steady clock
  };

  /// `make` lives as long as the pool, so it may capture.
  ObjectPool(std::string name, Make make, Options options = Options())
      : ObjectPoolBase(std::move(name), options.max_size, options.max_idle, semaphore_options(options)),
        make_(std::move(make)),
        is_good_(std::move(options.is_good)),
        validate_(std::move(options.validate)) {}
  ~ObjectPool() = default;

  /// Waits for a place, then for a valid object. Fails with `closed`, or with the error of `make`; the place is then
  /// free again.
  [[nodiscard]] Task<Result<Lease>> borrow() { return borrow_after(semaphore_.acquire()); }
  /// The same with a priority and a label.
  [[nodiscard]] Task<Result<Lease>> borrow(const BorrowOptions& options) {
    return borrow_after(semaphore_.acquire({.priority = options.priority, .label = options.label}));
  }
  /// The same with a deadline for all of it, validation and creation included: then `Errc::timed_out`.
  [[nodiscard]] Task<Result<Lease>> borrow_until(TimePoint deadline) {
    co_return co_await with_deadline(Deadline(deadline), borrow());
  }
  /// Idempotent.
  void close() noexcept;
  [[nodiscard]] Counts counts() const noexcept {
    const std::lock_guard lock(mutex_);
    return ObjectPoolBase::counts(idle_.size());
  }

 private:
  using Object = std::unique_ptr<T>;
  static SemaphoreOptions semaphore_options(const Options& options) {
    SemaphoreOptions of_places;
    of_places.track_holders = options.track_holders;
    of_places.clock = options.clock;
    return of_places;
  }
  /// `Wait` is the wait for a place.
  template <class Wait>
  Task<Result<Lease>> borrow_after(Wait wait);
  Object take_idle() noexcept;
  void put_back(Object object) noexcept;
  void count(std::uint64_t& what) noexcept {
    const std::lock_guard lock(mutex_);
    ++what;
  }
  Task<bool> is_fit(T& object);

  Make make_;
  std::function<bool(T&)> is_good_;
  std::function<Task<bool>(T&)> validate_;
  std::vector<Object> idle_;  // a stack: the most recently returned object is last
};

/// A leased object and its place in the pool; both are returned when the lease is destroyed, on any thread. Move-only.
template <class T>
class [[nodiscard]] ObjectPool<T>::Lease {
 public:
  Lease() noexcept = default;  ///< empty
  Lease(Lease&&) noexcept = default;
  /// First returns the object it held.
  Lease& operator=(Lease&& other) noexcept {
    Lease taken(std::move(other));  // moved first, so that self-assignment is safe
    std::swap(pool_, taken.pool_);
    std::swap(object_, taken.object_);
    std::swap(permit_, taken.permit_);
    return *this;
  }
  ~Lease() { release(); }

  explicit operator bool() const noexcept { return object_ != nullptr; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_.get(); }

  /// Returns the object now.
  void release() noexcept {
    if (object_ == nullptr) return;
    pool_->put_back(std::move(object_));
    permit_.release();  // after the object, so that the next borrower finds it
  }
  /// Destroys the object because it is broken, and returns its place.
  void discard() noexcept {
    if (object_ == nullptr) return;
    object_.reset();
    pool_->count(pool_->discarded_);
    permit_.release();
  }

 private:
  friend class ObjectPool;
  Lease(ObjectPool& pool, Object object, Permit permit) noexcept
      : pool_(&pool), object_(std::move(object)), permit_(std::move(permit)) {}

  ObjectPool* pool_ = nullptr;
  Object object_;
  Permit permit_;
};

template <class T>
template <class Wait>
Task<Result<typename ObjectPool<T>::Lease>> ObjectPool<T>::borrow_after(Wait wait) {
  STINT_CO_TRY(Permit permit, co_await wait);
  while (Object idle = take_idle()) {
    if (co_await is_fit(*idle)) {
      count(reused_);
      co_return Lease(*this, std::move(idle), std::move(permit));
    }
    idle.reset();
    count(discarded_);
  }
  // Nothing is idle, so every existing object has a permit; with this one there are at most max_size.
  if (closed()) co_return fail(closed_error());
  STINT_CO_TRY(T made, co_await make_());
  Lease lease(*this, std::make_unique<T>(std::move(made)), std::move(permit));
  count(made_);
  if (closed()) co_return fail(closed_error());
  co_return lease;
}

template <class T>
Task<bool> ObjectPool<T>::is_fit(T& object) {
  if (is_good_ && !is_good_(object)) co_return false;
  co_return !validate_ || co_await validate_(object);
}

template <class T>
auto ObjectPool<T>::take_idle() noexcept -> Object {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  Object object = std::move(idle_.back());
  idle_.pop_back();
  return object;
}

template <class T>
void ObjectPool<T>::put_back(Object object) noexcept {
  const std::lock_guard lock(mutex_);
  if (!shut_ && idle_.size() < max_idle_) idle_.push_back(std::move(object));
  // Otherwise it is destroyed with the parameter, after the lock was released.
}

template <class T>
void ObjectPool<T>::close() noexcept {
  std::vector<Object> doomed;
  {
    const std::lock_guard lock(mutex_);
    shut_ = true;
    doomed.swap(idle_);
  }
  semaphore_.close();
}

}  // namespace stint
