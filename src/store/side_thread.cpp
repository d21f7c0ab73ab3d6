#include "store/side_thread.hpp"

namespace stint::store {

SideThread::SideThread() {
  thread_ = std::thread([this] { blocking_serve(); });
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [this] { return reactor_ != nullptr; });
}

SideThread::~SideThread() {
  reactor_->post(end_);
  thread_.join();
}

void SideThread::blocking_serve() {
  Reactor reactor;
  {
    const std::lock_guard lock(mutex_);
    reactor_ = &reactor;
  }
  ready_.notify_one();
  reactor.run_until([this] { return end_.reached; });
}

}  // namespace stint::store
