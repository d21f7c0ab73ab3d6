/// State that the connections of a server share, and the buffers they borrow from it. Internal to this folder.
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

/// A connection whose bytes have arrived, waiting for its turn.
class Turn : public stint::detail::Link<Turn> {
 public:
  virtual void take() noexcept = 0;

 protected:
  Turn() = default;
  ~Turn() = default;
};

/// Lets a few connections at a time proceed. Between two batches everything else in the reactor's queue runs
/// once, so a run's step waits for a few requests, and not for one of each connection.
class Turns {
 public:
  explicit Turns(std::size_t at_once) : at_once_(at_once) {}
  void want(Turn& turn) noexcept {
    if (open_) return turn.take();
    waiting_.push_back(turn);
    notification_.notify();
  }
  /// Grants turns, until it is stopped.
  Task<> run();
  /// Ends all waits: the server stops.
  void open() noexcept;

 private:
  const std::size_t at_once_;
  stint::detail::List<Turn> waiting_;
  Notification notification_;
  bool open_ = false;
};

/// Buffers that a connection needs while a request is in progress. The server keeps them between two uses, so that an
/// idle connection holds none.
struct Buffers {
  static constexpr std::size_t kInputBytes = 16 << 10;

  explicit Buffers(const net::ReaderLimits& limits) : reader(limits) {}
  std::string_view pending() const noexcept { return {input.get() + begin, end - begin}; }
  void drop_input() noexcept {
    input.reset();
    begin = end = 0;
  }
  bool all_sent() const noexcept { return out.empty() && tail.empty(); }

  net::RequestReader reader;
  std::unique_ptr<char[]> input;  // allocated when needed: a stream has none
  std::size_t begin = 0;          // of the unread input
  std::size_t end = 0;
  std::string out;       // heads, small bodies, pieces of streams
  std::string tail;      // one large body, after `out`
  std::size_t sent = 0;  // of both together
};

/// Owned by the server.
struct ServerState {
  static constexpr std::size_t kBuffersKeptMax = 64;

  ServerState(Reactor& on, Handler& by, ServerOptions with);
  std::unique_ptr<Buffers> borrow_buffers();
  void give_back(std::unique_ptr<Buffers> buffers) noexcept;
  std::string_view date(TimePoint now);
  /// The connection to close to make room: the longest idle, or the one with the oldest incomplete head. nullptr: all
  /// busy.
  Connection* evictable() noexcept;

  Reactor& reactor;
  Handler& handler;
  const ServerOptions options;
  GuardRules rules;
  ServerStats stats;
  stint::detail::List<Connection> idle;   // longest idle first
  stint::detail::List<Connection> heads;  // part of a head has arrived; oldest first
  stint::detail::List<Connection> busy;
  Turns turns;
  Semaphore reads;
  std::vector<std::unique_ptr<Buffers>> spare_buffers;
  std::size_t turned_away = 0;  // connections being answered with 503
  std::size_t reserved = 0;     // places in reserve that are taken
  bool draining = false;

 private:
  std::string date_;
  TimePoint date_until_{};
};

/// A place among the connections, or among those being refused: counted while held.
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
