/// A bounded queue between coroutines. When it is full, a producer waits, is refused, or drops the oldest item.
///
/// Items are FIFO, those of waiting producers included: an item keeps its place of arrival, and no `try_push` overtakes
/// a waiting producer. Consumers are FIFO too. A waiting consumer is handed its item directly. If it is cancelled
/// before it resumes with the item, or its executor is destroyed, the item goes to the next consumer, or back to its
/// place ahead of all later items (`size` may then exceed `capacity`, by at most the number of such consumers). A
/// producer that is cancelled before it sees that its item was accepted takes the item out again, unless a consumer has
/// it. Thread-safe. Waiters live in their coroutines' frames and resume on their own executors, never under the lock.
/// Items are stored in a ring that doubles as needed, so there is no allocation per item. After `close` producers fail
/// with `Errc::closed`; consumers drain the remaining items, then fail with `closed`. Must outlive its waiters and
/// their executors: the destructor asserts that there are no waiters, and destroys remaining items.
#pragma once

#include "stint/detail/spin_mutex.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"

#include <bit>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace stint {

template <class T>
class Queue;

namespace detail {

class QueueBase;

/// A chain that waits for room or for an item.
class QueueWait : public Leaf, public Link<QueueWait> {
 protected:
  // Written under the queue's lock while `waiting`; the thread that changes it has decided the wait and must complete
  // it.
  enum class State : std::uint8_t { idle, waiting, done, stopped, timed_out, closed };

  enum class Side : std::uint8_t { producer, consumer };

  QueueWait(QueueBase& queue, Side side) noexcept : queue_(queue), side_(side) {}
  QueueWait(QueueWait&& other) noexcept : queue_(other.queue_), side_(other.side_) {  // only before it is awaited
    STINT_ASSERT(other.state_ == State::idle);
  }
  ~QueueWait() = default;

  /// False if the operation completed without waiting.
  bool entered(State state) noexcept {
    undelivered_ = state == State::waiting;
    if (undelivered_) return true;
    state_ = state;
    unpark();
    return false;
  }
  void give_up(State why) noexcept;
  [[nodiscard]] Error failure() const;

  QueueBase& queue_;
  std::uint64_t ticket_ = 0;  // the item's position; set when it was stored or handed to a consumer
  const Side side_;
  State state_ = State::idle;
  bool undelivered_ = false;  // own thread only: if destroyed while true, the wait has to be withdrawn

 private:
  friend class QueueBase;
  template <class T>
  friend class stint::Queue;
  bool ready() const noexcept final;
  void cancel() noexcept final { give_up(State::stopped); }
};

/// The part that does not depend on the item type: the lock, the two lines of waiters, and `close`.
class QueueBase {
 public:
  QueueBase(const QueueBase&) = delete;
  QueueBase& operator=(const QueueBase&) = delete;

  /// Producers, waiting ones included, fail with `closed`; consumers do once no item is left. Idempotent.
  void close() noexcept;
  [[nodiscard]] bool closed() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t waiting_producers() const noexcept;
  [[nodiscard]] std::size_t waiting_consumers() const noexcept;
  /// How many items `push_dropping_oldest` has dropped so far.
  [[nodiscard]] std::uint64_t dropped() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 protected:
  using State = QueueWait::State;
  using Lock = std::unique_lock<SpinMutex>;
  struct Line {
    void push_back(QueueWait& wait) noexcept {
      waits.push_back(wait);
      wait.state_ = State::waiting;
      ++count;
    }
    void remove(QueueWait& wait) noexcept {
      static_cast<Link<QueueWait>&>(wait).unlink();
      --count;
    }
    List<QueueWait> waits;
    std::size_t count = 0;
  };

  /// Asserts that `capacity` is at least 1.
  QueueBase(std::string name, std::size_t capacity);
  ~QueueBase();

  /// Unlinks the head of `line` and queues it at its executor; under the lock.
  static void decide_head(Line& line, State state, Wakes& wakes) noexcept;
  /// Ends a wait from the waiter's side; false if it was already decided.
  bool leave(QueueWait& wait, State why) noexcept;
  [[nodiscard]] Error refusal(bool closed) const;

  mutable SpinMutex mutex_;
  Line producers_;
  Line consumers_;
  std::size_t size_ = 0;  // stored items
  std::uint64_t dropped_ = 0;
  std::uint32_t closing_ = 0;  // closers between two batches; the destructor waits for them
  bool closed_ = false;
  const std::size_t capacity_;
  const std::string name_;

 private:
  friend class QueueWait;
  void close_line(Line& line, Lock& lock, Wakes& wakes) noexcept;
};

}  // namespace detail

template <class T>
class Queue final : public detail::QueueBase {
  static_assert(std::is_nothrow_move_constructible_v<T>, "items are moved under the lock");

 public:
  class Push;
  class Pop;
  template <class Wait>
  class Timed;
  using TimedPush = Timed<Push>;
  using TimedPop = Timed<Pop>;

  Queue(std::string name, std::size_t capacity) : QueueBase(std::move(name), capacity) {}
  ~Queue() = default;

  /// Waits for room → Result<>. A failed push destroys its item.
  [[nodiscard]] Push push(T item) noexcept { return {*this, std::move(item)}; }
  /// The same with a deadline, after which the result is `Errc::timed_out`. If there is room, the item is accepted even
  /// if the deadline has passed.
  [[nodiscard]] TimedPush push_until(TimePoint deadline, T item) noexcept { return {deadline, *this, std::move(item)}; }
  /// `full` if there is no room or producers wait, `closed` after `close`; on failure `item` is unchanged.
  Result<> try_push(T&& item);
  /// Never waits: if the queue is full, the oldest item is removed and returned. Refused with `closed` after `close`,
  /// and with `full` while producers wait, since their items come first.
  Result<std::optional<T>> push_dropping_oldest(T item);

  /// Waits for an item → Result<T>.
  [[nodiscard]] Pop pop() noexcept { return Pop(*this); }
  [[nodiscard]] TimedPop pop_until(TimePoint deadline) noexcept { return {deadline, *this}; }
  /// Empty if the queue is empty. Remaining items of a closed queue can still be taken.
  [[nodiscard]] std::optional<T> try_pop() noexcept;

 private:
  // Under the lock.
  State enter(Push& push) noexcept;
  State enter(Pop& pop) noexcept;
  bool accept(T& item, std::uint64_t& ticket, Wakes& wakes) noexcept;
  void hand_to_consumer(T& item, std::uint64_t ticket, Wakes& wakes) noexcept;
  void admit_producers(Wakes& wakes) noexcept;
  std::uint64_t store(T& item) noexcept;
  void take_oldest(std::optional<T>& into, std::uint64_t& ticket) noexcept;
  void grow() noexcept;
  std::optional<T>& slot(std::uint64_t ticket) noexcept { return slots_[ticket & (slots_.size() - 1)]; }

  void take_back(Push& push) noexcept;
  void take_back(Pop& pop) noexcept;

  // The item with ticket t is in slot t modulo the number of slots, a power of two. A slot between head and tail may be
  // empty if its item was withdrawn.
  std::vector<std::optional<T>> slots_;
  std::uint64_t head_ = 0, tail_ = 0;
  std::map<std::uint64_t, T> returned_;  // handed to a consumer but not delivered; older than everything in the slots
};

template <class T>
class [[nodiscard]] Queue<T>::Push : public detail::QueueWait {
 public:
  Push(Queue& queue, T item) noexcept : QueueWait(queue, Side::producer), item_(std::move(item)) {}
  Push(Push&& other) noexcept : QueueWait(std::move(other)), item_(std::move(other.item_)) {}
  ~Push() {
    if (undelivered_) queue().take_back(*this);
  }
  bool await_suspend(std::coroutine_handle<>) noexcept { return !park() || line_up(); }
  Result<> await_resume() {
    undelivered_ = false;
    if (state_ != State::done) return std::unexpected(failure());
    return {};
  }

 protected:
  bool line_up() noexcept { return entered(queue().enter(*this)); }

 private:
  friend class Queue;
  Queue& queue() const noexcept { return static_cast<Queue&>(queue_); }
  T item_;
};

template <class T>
class [[nodiscard]] Queue<T>::Pop : public detail::QueueWait {
 public:
  explicit Pop(Queue& queue) noexcept : QueueWait(queue, Side::consumer) {}
  Pop(Pop&& other) noexcept : QueueWait(std::move(other)) {}
  ~Pop() {
    if (undelivered_) queue().take_back(*this);
  }
  bool await_suspend(std::coroutine_handle<>) noexcept { return !park() || line_up(); }
  Result<T> await_resume() {
    undelivered_ = false;
    if (state_ != State::done) return std::unexpected(failure());
    return std::move(*item_);
  }

 protected:
  bool line_up() noexcept { return entered(queue().enter(*this)); }

 private:
  friend class Queue;
  Queue& queue() const noexcept { return static_cast<Queue&>(queue_); }
  std::optional<T> item_;
};

/// A push or a pop with a deadline.
template <class T>
template <class Wait>
class [[nodiscard]] Queue<T>::Timed final : public Wait, private Timer {
 public:
  template <class... Item>
  Timed(TimePoint deadline, Queue& queue, Item&&... item) noexcept
      : Wait(queue, std::forward<Item>(item)...), deadline_(deadline) {}
  Timed(Timed&& other) noexcept : Wait(std::move(other)), deadline_(other.deadline_) {}
  bool await_suspend(std::coroutine_handle<>) noexcept {
    if (!this->park()) return true;
    if (!this->line_up()) return false;
    this->executor().arm(*this, deadline_);
    return true;
  }

 private:
  void fire() noexcept override { this->give_up(State::timed_out); }
  TimePoint deadline_;
};

// Invariants, all under the lock:
// 1. Consumers wait only while the queue is empty; producers wait only while size ≥ capacity. So never both.
// 2. Tickets are drawn in the order in which items are stored or handed over; the item with the lowest ticket goes
// next. Tickets in `returned_` are lower than those in the slots.
// 3. A waiter is linked exactly while its state is `waiting`; it is queued at its executor under the lock that decided
// it.

template <class T>
Result<> Queue<T>::try_push(T&& item) {
  Wakes wakes;
  const Lock lock(mutex_);
  std::uint64_t ticket = 0;
  if (closed_ || !accept(item, ticket, wakes)) return std::unexpected(refusal(closed_));
  return {};
}

template <class T>
Result<std::optional<T>> Queue<T>::push_dropping_oldest(T item) {
  Wakes wakes;
  const Lock lock(mutex_);
  if (closed_ || producers_.count != 0) return std::unexpected(refusal(closed_));
  std::optional<T> oldest;
  std::uint64_t ticket = 0;
  if (accept(item, ticket, wakes)) return oldest;
  take_oldest(oldest, ticket);
  ++dropped_;
  store(item);
  return oldest;
}

template <class T>
std::optional<T> Queue<T>::try_pop() noexcept {
  Wakes wakes;
  const Lock lock(mutex_);
  std::optional<T> item;
  if (size_ == 0) return item;
  std::uint64_t ticket = 0;
  take_oldest(item, ticket);
  admit_producers(wakes);
  return item;
}

template <class T>
auto Queue<T>::enter(Push& push) noexcept -> State {
  Wakes wakes;
  const Lock lock(mutex_);
  if (closed_) return State::closed;
  if (accept(push.item_, push.ticket_, wakes)) return State::done;
  producers_.push_back(push);
  return State::waiting;
}

template <class T>
auto Queue<T>::enter(Pop& pop) noexcept -> State {
  Wakes wakes;
  const Lock lock(mutex_);
  if (size_ != 0) {
    take_oldest(pop.item_, pop.ticket_);
    admit_producers(wakes);
    return State::done;
  }
  if (closed_) return State::closed;
  consumers_.push_back(pop);
  return State::waiting;
}

/// Accepts the item if a consumer waits or there is room. Never overtakes: producers wait only while there is neither.
template <class T>
bool Queue<T>::accept(T& item, std::uint64_t& ticket, Wakes& wakes) noexcept {
  if (consumers_.count != 0) {
    ticket = tail_++;
    head_ = tail_;
    hand_to_consumer(item, ticket, wakes);
    return true;
  }
  if (size_ >= capacity_) return false;
  ticket = store(item);
  return true;
}

template <class T>
void Queue<T>::hand_to_consumer(T& item, std::uint64_t ticket, Wakes& wakes) noexcept {
  auto& consumer = static_cast<Pop&>(consumers_.waits.front());
  consumer.item_.emplace(std::move(item));
  consumer.ticket_ = ticket;
  decide_head(consumers_, State::done, wakes);
}

template <class T>
void Queue<T>::admit_producers(Wakes& wakes) noexcept {
  while (producers_.count != 0 && size_ < capacity_) {
    auto& producer = static_cast<Push&>(producers_.waits.front());
    producer.ticket_ = store(producer.item_);
    decide_head(producers_, State::done, wakes);
  }
}

template <class T>
std::uint64_t Queue<T>::store(T& item) noexcept {
  if (tail_ - head_ == slots_.size()) grow();
  slot(tail_).emplace(std::move(item));
  ++size_;
  return tail_++;
}

template <class T>
void Queue<T>::take_oldest(std::optional<T>& into, std::uint64_t& ticket) noexcept {
  --size_;
  if (!returned_.empty()) {
    const auto oldest = returned_.begin();
    ticket = oldest->first;
    into.emplace(std::move(oldest->second));
    returned_.erase(oldest);
    return;
  }
  while (!slot(head_)) ++head_;
  ticket = head_++;
  into.emplace(std::move(*slot(ticket)));
  slot(ticket).reset();
}

template <class T>
void Queue<T>::grow() noexcept {
  constexpr std::size_t kFirst = 16;  // allocated on first use
  std::vector<std::optional<T>> larger(slots_.empty() ? std::min(std::bit_ceil(capacity_), kFirst) : 2 * slots_.size());
  for (std::uint64_t ticket = head_; ticket != tail_; ++ticket) {
    if (slot(ticket)) larger[ticket & (larger.size() - 1)].emplace(std::move(*slot(ticket)));
  }
  slots_ = std::move(larger);
}

/// The frame is destroyed before it saw its push complete: withdraws the item, unless a consumer has it.
template <class T>
void Queue<T>::take_back(Push& push) noexcept {
  std::optional<T> item;  // destroyed after the lock is released
  Wakes wakes;
  const Lock lock(mutex_);
  if (push.state_ == State::waiting) return producers_.remove(push);
  if (push.state_ != State::done) return;
  // The producer waited, so its item went into a slot. A consumer that takes an item from a slot receives it
  // immediately.
  if (push.ticket_ < head_ || !slot(push.ticket_)) return;
  item.swap(slot(push.ticket_));
  --size_;
  admit_producers(wakes);
}

/// The frame is destroyed before it received its item.
template <class T>
void Queue<T>::take_back(Pop& pop) noexcept {
  Wakes wakes;
  const Lock lock(mutex_);
  if (pop.state_ == State::waiting) return consumers_.remove(pop);
  if (pop.state_ != State::done) return;
  if (consumers_.count != 0) return hand_to_consumer(*pop.item_, pop.ticket_, wakes);
  returned_.emplace(pop.ticket_, std::move(*pop.item_));
  ++size_;
}

}  // namespace stint
