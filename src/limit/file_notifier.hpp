/// Wakes the waits of one process when a watched file is closed. `co_await notifier.wait(until)` → true on a
/// notification, false at `until`. All waits share one inotify instance, created by the first wait that needs it. Own
/// thread only; must outlive its waits.
#pragma once

#include "os/watch.hpp"
#include "stint/asio.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <memory>
#include <optional>

namespace stint::limit {

class FileNotifier {
 public:
  /// `use_inotify` false: sends no notifications, as on a host without inotify.
  FileNotifier(Reactor& reactor, bool use_inotify) : reactor_(reactor), watch_(use_inotify) {}
  ~FileNotifier();
  FileNotifier(const FileNotifier&) = delete;
  FileNotifier& operator=(const FileNotifier&) = delete;

  os::Watch& watch() noexcept { return watch_; }

  class Wait final : public Leaf, private Timer, public stint::detail::Link<Wait> {
   public:
    Wait(FileNotifier& notifier, TimePoint until) noexcept : notifier_(notifier), until_(until) {}
    void await_suspend(std::coroutine_handle<>);
    bool await_resume() const noexcept { return notified_; }

   private:
    friend class FileNotifier;
    void end(bool notified) noexcept;
    void fire() noexcept override { end(false); }
    void cancel() noexcept override {
      if (Link::linked()) end(false);  // otherwise it was notified and is queued
    }
    using Link = stint::detail::Link<Wait>;
    FileNotifier& notifier_;
    TimePoint until_;
    bool notified_ = false;
  };
  [[nodiscard]] Wait wait(TimePoint until) noexcept { return {*this, until}; }

 private:
  void listen();
  void notify() noexcept;

  Reactor& reactor_;
  os::Watch watch_;
  std::optional<asio::posix::stream_descriptor> events_;  // a copy of the watch's descriptor
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // shared with the handler, which may outlive the notifier
  bool listening_ = false;
  stint::detail::List<Wait> waits_;
};

}  // namespace stint::limit
