/// A counting semaphore for threads: FIFO, no barging.
///
/// Units are handed over: `release` hands the unit to the first waiter and counts it as free only if there is none. So
/// `free_ > 0` means that there are no waiters, and taking a free unit overtakes no thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>

class CountingSemaphore {
 public:
  explicit CountingSemaphore(int capacity) : capacity_(capacity), free_(capacity) {}
  CountingSemaphore(const CountingSemaphore&) = delete;
  CountingSemaphore& operator=(const CountingSemaphore&) = delete;

  int available() const {
    const std::lock_guard lock(mutex_);
    return free_;
  }
  int waiting() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(line_.size());
  }

  bool try_acquire() {
    const std::lock_guard lock(mutex_);
    if (free_ == 0) return false;
    --free_;
    return true;
  }
  void acquire() {
    std::unique_lock lock(mutex_);
    if (free_ > 0) {
      --free_;
      return;
    }
    Waiter me;
    line_.push_back(&me);
    me.turn.wait(lock, [&] { return me.granted; });
  }
  bool acquire_for(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (free_ > 0) {
      --free_;
      return true;
    }
    Waiter me;
    const auto place = line_.insert(line_.end(), &me);
    // The predicate decides: a grant at the time of the timeout counts, and its waiter has already left the line.
    if (me.turn.wait_for(lock, timeout, [&] { return me.granted; })) return true;
    line_.erase(place);
    return false;
  }
  bool release() {
    const std::lock_guard lock(mutex_);
    if (line_.empty()) {
      if (free_ == capacity_) return false;
      ++free_;
      return true;
    }
    Waiter& first = *line_.front();
    line_.pop_front();
    first.granted = true;
    first.turn.notify_one();  // under the lock: as soon as it is released, `first` may be destroyed
    return true;
  }

 private:
  struct Waiter {  // on the stack of the thread that waits
    std::condition_variable turn;
    bool granted = false;
  };

  mutable std::mutex mutex_;
  const int capacity_;
  int free_;
  std::list<Waiter*> line_;  // in order of arrival; if not empty, free_ is 0
};
