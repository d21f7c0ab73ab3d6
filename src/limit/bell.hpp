/// Wakes the waits of one process when a file that they watch was closed. `co_await bell.wait(until)` → true if it
/// rang, false at `until`. One inotify instance for all of them, made at the first wait that needs it. Own thread only;
/// must outlive its waits.
#pragma once

#include "os/watch.hpp"
#include "stint/asio.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <memory>
#include <optional>

namespace stint::limit {

class Bell {
 public:
  /// `use_inotify` false: never rings, as where there is none.
  Bell(Reactor& reactor, bool use_inotify) : reactor_(reactor), watch_(use_inotify) {}
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  os::Watch& watch() noexcept { return watch_; }

  class Wait final : public Leaf, private Timer, public stint::detail::Link<Wait> {
   public:
    Wait(Bell& bell, TimePoint until) noexcept : bell_(bell), until_(until) {}
    void await_suspend(std::coroutine_handle<>);
    bool await_resume() const noexcept { return rang_; }

   private:
    friend class Bell;
    void end(bool rang) noexcept;
    void fire() noexcept override { end(false); }
    void cancel() noexcept override {
      if (Link::linked()) end(false);  // else it has rung, and is queued
    }
    using Link = stint::detail::Link<Wait>;
    Bell& bell_;
    TimePoint until_;
    bool rang_ = false;
  };
  [[nodiscard]] Wait wait(TimePoint until) noexcept { return {*this, until}; }

 private:
  void listen();
  void ring() noexcept;

  Reactor& reactor_;
  os::Watch watch_;
  std::optional<asio::posix::stream_descriptor> events_;        // a copy of the watch's descriptor
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with the handler, which may outlive the bell
  bool listening_ = false;
  stint::detail::List<Wait> waits_;
};

}  // namespace stint::limit
