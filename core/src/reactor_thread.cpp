#include "stint/reactor_thread.hpp"

#include "stint/asio.hpp"

#include <pthread.h>

namespace stint {

ReactorThread::ReactorThread(const std::string& name) : thread_([this] { work(); }) {
  constexpr std::size_t kNameMax = 15;  // the system's
  pthread_setname_np(thread_.native_handle(), name.substr(0, kNameMax).c_str());
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [this] { return executor_ != nullptr; });
}

ReactorThread::~ReactorThread() {
  executor_->post(stop_);
  thread_.join();
}

void ReactorThread::work() {
  Reactor reactor;
  {
    const std::lock_guard lock(mutex_);
    executor_ = &reactor;
    ready_.notify_one();
  }
  reactor.run_until([this] { return stop_.asked; });
}

}  // namespace stint
