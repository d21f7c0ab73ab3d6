/// A thread with a reactor of its own: `ReactorThread other("disk"); co_await run_on(other.executor(), task());`.
///
/// An executor belongs to one thread, and so does everything that runs on it. To use more cores, start one of these per
/// core and give each its share of the work by `run_on` or through a `Queue`; semaphores, mutexes, queues and pools may
/// be shared between them. The destructor ends the loop and joins the thread. What still runs there is destroyed, and
/// its callers get `closed`. Made and destroyed by one thread; `executor()` may be used by any.
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
  /// Returns when the reactor is ready. `name` is what tools like `top -H` show, cut to 15 bytes.
  explicit ReactorThread(const std::string& name = "reactor");
  ~ReactorThread();
  ReactorThread(const ReactorThread&) = delete;
  ReactorThread& operator=(const ReactorThread&) = delete;

  [[nodiscard]] Executor& executor() const noexcept { return *executor_; }

 private:
  /// Posted to end the loop: a sleeping reactor looks at nothing else.
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
