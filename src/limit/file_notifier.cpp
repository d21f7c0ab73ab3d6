#include "limit/file_notifier.hpp"

namespace stint::limit {

FileNotifier::~FileNotifier() {
  STINT_ASSERT(waits_.empty());
  *alive_ = false;
}

void FileNotifier::Wait::await_suspend(std::coroutine_handle<>) {
  if (!park()) return;
  notifier_.waits_.push_back(*this);
  executor().arm(*this, until_);
  notifier_.listen();
}

void FileNotifier::Wait::end(bool notified) noexcept {
  notified_ = notified;
  Link::unlink();
  executor().disarm(*this);
  complete();
}

/// At most one handler, and only while a coroutine waits.
void FileNotifier::listen() {
  if (listening_ || watch_.fd() < 0) return;
  if (!events_) {
    os::Fd copy = os::duplicate(watch_.fd());
    if (!copy) return;  // no descriptor left: waits become polls
    events_.emplace(reactor_.io(), copy.release());
  }
  listening_ = true;
  events_->async_wait(asio::posix::stream_descriptor::wait_read,
                      [this, alive = alive_](const boost::system::error_code& error) {
                        if (!*alive) return;
                        listening_ = false;
                        if (!error) notify();
                      });
}

void FileNotifier::notify() noexcept {
  watch_.drain();
  while (!waits_.empty()) waits_.front().end(true);
}

}  // namespace stint::limit
