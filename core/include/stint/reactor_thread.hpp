/// A thread with its own reactor: `ReactorThread other("disk"); co_await run_on(other.executor(), task());`.
///
/// An executor and everything that runs on it belong to one thread. To use more cores, start one ReactorThread per core
/// and distribute work by `run_on` or through a `Queue`; semaphores, mutexes, queues and pools may be shared between
/// them. The destructor stops the loop and joins the thread. Tasks that still run there are destroyed, and their
/// callers get `closed`. Construct and destroy it on one thread; `executor()` may be called from any.
#pragma once

#include "stint/executor.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace stint {

class ReactorThread {
 public:
  /// Returns when the reactor is ready. `name` is shown by tools like `top -H`, cut to 15 bytes.
  explicit ReactorThread(const std::string& name = "reactor");
  ~ReactorThread();
  ReactorThread(const ReactorThread&) = delete;
  ReactorThread& operator=(const ReactorThread&) = delete;

  [[nodiscard]] Executor& executor() const noexcept { return *executor_; }

 private:
  /// Posted to end the loop: a sleeping reactor reacts to nothing else.
  struct Stop final : Runnable {
    void run() noexcept override { asked = true; }
    bool asked = false;  // the reactor's thread only
  };
  void work();

  Stop stop_;
  std::mutex mutex_;
  std::condition_variable ready_;
  Executor* executor_ = nullptr;
  std::thread thread_;
};

}  // namespace stint
