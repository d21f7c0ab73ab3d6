// A semaphore of std::mutex + std::condition_variable over threads, and bare counters as lower bounds.
// usage: threads sem.uncontended n= impl=mutex_cv|atomic|plain
//                sem.contended impl=mutex_cv|atomic tasks= iters= permits= cpus=
//                sem.waiter_mem n= timed=0|1
#include "peer.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <sched.h>
#include <thread>

namespace {

const char* const kPeer = "threads";

class MutexSemaphore {
 public:
  explicit MutexSemaphore(long permits) : free_(permits) {}
  void acquire() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  bool acquire_for(std::chrono::seconds timeout) {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_for(lock, timeout, [this] { return free_ > 0; })) return false;
    --free_;
    return true;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      ++free_;
    }
    freed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  long free_;
};

/// Spins when nothing is free: the price of the counter alone.
class AtomicSemaphore {
 public:
  explicit AtomicSemaphore(long permits) : free_(permits) {}
  void acquire() {
    long seen = free_.load(std::memory_order_relaxed);
    while (seen <= 0 || !free_.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire)) {
      seen = free_.load(std::memory_order_relaxed);
    }
  }
  void release() { free_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<long> free_;
};

class PlainSemaphore {
 public:
  explicit PlainSemaphore(long permits) : free_(permits) {}
  void acquire() {
    if (free_ > 0) free_ = free_ - 1;
  }
  void release() { free_ = free_ + 1; }

 private:
  volatile long free_;
};

template <class Semaphore>
double uncontended(long pairs) {
  Semaphore semaphore(10);
  const auto start = Clock::now();
  for (long i = 0; i < pairs; ++i) {
    semaphore.acquire();
    semaphore.release();
  }
  return ns_since(start) / static_cast<double>(pairs);
}

template <class Semaphore>
double contended(const Args& args) {
  const long tasks = args.number("tasks");
  const long iters = args.number("iters");
  const bool yields = args.text("impl") == "mutex_cv";
  Semaphore semaphore(args.number("permits"));
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (long task = 0; task < tasks; ++task) {
    threads.emplace_back([&] {
      for (long i = 0; i < iters; ++i) {
        semaphore.acquire();
        if (yields) std::this_thread::yield();
        semaphore.release();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return ns_since(start) / static_cast<double>(tasks * iters);
}

void pin(long cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (long cpu = 0; cpu < cpus; ++cpu) CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

void waiter_memory(const Args& args) {
  const long count = args.number("n");
  const bool timed = args.number("timed", 0) != 0;
  static MutexSemaphore semaphore(0);
  static std::atomic<long> started = 0;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  const double before = resident_bytes();
  for (long i = 0; i < count; ++i) {
    threads.emplace_back([timed] {
      ++started;
      if (timed) {
        semaphore.acquire_for(std::chrono::hours(1));
      } else {
        semaphore.acquire();
      }
    });
  }
  while (started < count) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  args.emit("sem.waiter_mem", kPeer, (resident_bytes() - before) / static_cast<double>(count), "bytes");
  _exit(0);  // the threads stay parked
}

/// Some versions of glibc spare a mutex its atomic operations while the process has one thread; a second one makes it
/// pay.
class ParkedThread {
 public:
  ParkedThread() : thread_([this] { gate_.acquire(); }) {}
  ~ParkedThread() {
    gate_.release();
    thread_.join();
  }

 private:
  MutexSemaphore gate_{0};
  std::thread thread_;
};

}  // namespace

int main(int argc, char** argv) {
  const Args args(argc, argv);
  if (args.bench() == "sem.uncontended") {
    const long pairs = args.number("n");
    const std::string impl = args.text("impl");
    repeat(args, "sem.uncontended", kPeer, "ns", [&] {
      if (impl == "atomic") return uncontended<AtomicSemaphore>(pairs);
      if (impl == "plain") return uncontended<PlainSemaphore>(pairs);
      const ParkedThread second;
      return uncontended<MutexSemaphore>(pairs);
    });
  } else if (args.bench() == "sem.contended") {
    pin(args.number("cpus"));
    repeat(args, "sem.contended", kPeer, "ns", [&] {
      return args.text("impl") == "atomic" ? contended<AtomicSemaphore>(args) : contended<MutexSemaphore>(args);
    });
  } else if (args.bench() == "sem.waiter_mem") {
    waiter_memory(args);
  } else {
    args.fail("not a bench of this peer");
  }
}
