/// What the connections of a server share, and what they borrow from it. Internal to this folder.
#pragma once

#include "http/handler.hpp"
#include "http/server.hpp"
#include "net/request_reader.hpp"
#include "stint/asio.hpp"
#include "stint/notification.hpp"
#include "stint/semaphore.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stint::http {

class Connection;

/// A connection's wait for bytes, once they are there: for its turn.
class Turn : public stint::detail::Link<Turn> {
 public:
  virtual void take() noexcept = 0;

 protected:
  Turn() = default;
  ~Turn() = default;
};

/// Lets few connections at a time go on. Between two batches everything else that is ready in the reactor's queue runs
/// once, so a run's step waits for a few requests, and not for one of each connection.
class Turns {
 public:
  explicit Turns(std::size_t at_once) : at_once_(at_once) {}
  void want(Turn& turn) noexcept {
    if (open_) return turn.take();
    waiting_.push_back(turn);
    notification_.notify();
  }
  /// Gives turns, until it is stopped.
  Task<> run();
  /// From now on nobody waits: the server ends.
  void open() noexcept;

 private:
  const std::size_t at_once_;
  stint::detail::List<Turn> waiting_;
  Notification notification_;
  bool open_ = false;
};

/// What a connection needs while a request is under way. Kept by the server between two uses, so that an idle
/// connection holds nothing.
struct Desk {
  static constexpr std::size_t kInputBytes = 16 << 10;

  explicit Desk(const net::ReaderLimits& limits) : reader(limits) {}
  std::string_view pending() const noexcept { return {input.get() + begin, end - begin}; }
  void drop_input() noexcept {
    input.reset();
    begin = end = 0;
  }
  bool all_sent() const noexcept { return out.empty() && tail.empty(); }

  net::RequestReader reader;
  std::unique_ptr<char[]> input;  // made when needed: a stream has none
  std::size_t begin = 0;          // of what was read and not used
  std::size_t end = 0;
  std::string out;       // heads, small bodies, pieces of streams
  std::string tail;      // one large body, after `out`
  std::size_t sent = 0;  // of both together
};

/// What the connections share. Belongs to the server.
struct ServerState {
  static constexpr std::size_t kDesksKeptMax = 64;

  ServerState(Reactor& on, Handler& by, ServerOptions with);
  std::unique_ptr<Desk> take_desk();
  void give_back(std::unique_ptr<Desk> desk) noexcept;
  std::string_view date(TimePoint now);
  /// Which connection is closed to make room: the longest idle, or the one whose head takes longest. None: all work.
  Connection* evictable() noexcept;

  Reactor& reactor;
  Handler& handler;
  const ServerOptions options;
  GuardRules rules;
  ServerStats stats;
  stint::detail::List<Connection> idle;   // the longest idle first
  stint::detail::List<Connection> heads;  // half a head has come; the oldest first
  stint::detail::List<Connection> busy;
  Turns turns;
  Semaphore reads;
  std::vector<std::unique_ptr<Desk>> desks;
  std::size_t turned_away = 0;  // of those that are told 503, still there
  std::size_t reserved = 0;     // of the places in reserve, taken
  bool draining = false;

 private:
  std::string date_;
  TimePoint date_until_{};
};

/// A place among the connections, or among those that are turned away: counted while it is held.
class Place {
 public:
  explicit Place(std::size_t& count) noexcept : count_(&count) { ++*count_; }
  Place(Place&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Place& operator=(Place&&) = delete;
  ~Place() {
    if (count_ != nullptr) --*count_;
  }

 private:
  std::size_t* count_;
};

}  // namespace stint::http
