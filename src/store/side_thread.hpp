/// A thread with its own reactor, for work that blocks: `co_await run_on(side.reactor(), task)`. The destructor ends
/// the thread; no task may be awaited on it at that time.
#pragma once

#include "stint/asio.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace stint::store {

class SideThread {
 public:
  SideThread();
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  Reactor& reactor() noexcept { return *reactor_; }

 private:
  /// Sent as a post, not as a flag: a thread that saw the flag first would be gone before the post.
  struct End final : Runnable {
    void run() noexcept override { reached = true; }
    bool reached = false;
  };
  void blocking_serve();

  End end_;
  std::mutex mutex_;
  std::condition_variable ready_;
  Reactor* reactor_ = nullptr;  // lives on the thread
  std::thread thread_;
};

}  // namespace stint::store
