/// Turns what changes in semaphores, mutexes and pools into events, by comparing their own listings after each step of
/// the simulator. The observed code does not report anything, so the C++ of a lesson stays as it would be anywhere.
///
/// A waiter that is granted its units leaves the line one step before it becomes a holder; a waiter that gives up
/// leaves the line as well. The observer tells the two apart by the units in flight. Where several explanations remain,
/// it decides when nothing more can happen at that moment: every grant has then been delivered.
///
/// One thread. Everything watched must outlive the last look.
#pragma once

#include "playground/instruments.hpp"
#include "stint/error.hpp"
#include "stint/mutex.hpp"
#include "stint/semaphore.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stint::playground {

enum class EventKind : std::uint8_t {
  waits,      ///< joined the line
  granted,    ///< holds the units now
  released,   ///< returned the units
  left,       ///< left the line without them
  refused,    ///< the library refused a request; `detail` is its own text
  resized,    ///< `units` is the new capacity
  closed,     ///< no more grants
  made,       ///< a connection was made
  reused,     ///< a pool lent a connection that it had kept
  discarded,  ///< a connection is gone
  token,      ///< a model produced a token; `detail` is "leaked" if nothing reads it
};
inline constexpr EventKind kEventKinds[] = {EventKind::waits,     EventKind::granted, EventKind::released,
                                            EventKind::left,      EventKind::refused, EventKind::resized,
                                            EventKind::closed,    EventKind::made,    EventKind::reused,
                                            EventKind::discarded, EventKind::token};
[[nodiscard]] std::string_view to_string(EventKind kind) noexcept;

struct Event {
  std::uint32_t step = 0;
  Duration at{};
  EventKind kind = EventKind::waits;
  std::string task{};
  std::string resource{};
  std::uint32_t units = 0;
  std::string detail{};
  friend bool operator==(const Event&, const Event&) = default;
};

/// Watches the holders and the line of one resource. Internal to the observer.
class LineWatch;

class Observer {
 public:
  Observer();
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  void watch(const Semaphore& semaphore);
  void watch(const Mutex& mutex);
  /// The pool's connections must be those of `server`.
  void watch(const ConnectionPool& pool, const Server& server);
  void watch(const Server& server);
  void watch(const TokenMeter& meter);
  /// Watches `semaphore` in place of another of that name, which is about to be destroyed unused.
  void replace(const Semaphore& semaphore);

  /// A request of a task failed. Timeouts and cancellations are no events of their own: the task leaves the line.
  void failed(std::string task, const Error& error);

  struct Moment {
    std::uint32_t step = 0;
    Duration at{};
    bool quiet = false;  ///< nothing more can happen before the clock advances
  };
  void look(const Moment& moment);
  [[nodiscard]] const std::vector<Event>& events() const noexcept { return events_; }

 private:
  /// A pool, and how often it had lent an object again.
  struct Lent {
    const ConnectionPool* pool;
    std::uint64_t reused;
  };
  struct Counted {
    const Server* server;
    std::uint64_t made, discarded;
  };

  std::vector<std::unique_ptr<LineWatch>> lines_;
  std::vector<Lent> lent_;
  std::vector<Counted> counted_;
  const TokenMeter* meter_ = nullptr;
  std::uint64_t tokens_ = 0, leaked_ = 0;
  std::vector<Event> failures_;  // since the last look
  std::vector<Event> events_;
};

}  // namespace stint::playground
