/// What the connections of a server share, and what they borrow from it. Internal to this folder.
#pragma once

#include "http/handler.hpp"
#include "http/server.hpp"
#include "net/request_reader.hpp"
#include "stint/asio.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stint::http {

class Connection;

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

  Reactor& reactor;
  Handler& handler;
  const ServerOptions options;
  GuardRules rules;
  ServerStats stats;
  stint::detail::List<Connection> idle;  // the longest idle first
  stint::detail::List<Connection> busy;
  std::vector<std::unique_ptr<Desk>> desks;
  std::size_t turned_away = 0;  // of those that are told 503, still there
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
