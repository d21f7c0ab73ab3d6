/// One connection of the server: reads requests, has the handler answer them one after another, writes, and enforces
/// time limits. Internal to this folder: it includes Asio.
#pragma once

#include "http/arrival.hpp"
#include "http/server_state.hpp"
#include "stint/notification.hpp"

#include <memory>
#include <string>

namespace stint::http {

class Connection final : public Exchange,
                         public stint::detail::Link<Connection>,
                         private Timer,
                         private Arrival::Listener {
 public:
  /// Serves the connection until it closes.
  static Task<> carry(ServerState& state, Socket socket, asio::ip::tcp::endpoint peer, Place place);
  /// A connection in reserve: one short answer.
  static Task<> carry_reserved(ServerState& state, Socket socket, asio::ip::tcp::endpoint peer, Place place);
  /// A connection without a place: answers 503.
  static Task<> turn_away(ServerState& state, Socket socket, asio::ip::tcp::endpoint peer, Place place);

  /// Closes a connection that is idle, or has sent part of a head, to make room.
  void evict() noexcept;
  /// The server stops: an idle connection or a stream ends now, an answer in progress may finish.
  void drain() noexcept;

  Task<Response> stream(StreamHead head, Task<> body) override;
  Task<Result<>> send(std::string bytes) override;
  std::string peer() const override;
  bool draining() const noexcept override { return state_.draining; }
  bool reserved() const noexcept override { return reserved_; }

 private:
  /// The time limit that the timer enforces, and the reason why the connection was cut.
  enum class Limit : std::uint8_t { none, idle, header, body, write, linger, heartbeat, evicted, drain };
  enum class Step : std::uint8_t { wait, answer, close };
  enum class Sent : std::uint8_t { all, blocked, failed };
  class Bytes;
  class NextTurn;

  Connection(ServerState& state, Socket socket, const asio::ip::tcp::endpoint& peer);
  ~Connection();

  Task<> serve();
  Task<bool> flush();
  Task<> finish();

  Task<> departure() override;
  bool is_short_read() const;
  void look();
  bool probe_client();
  void leave() noexcept;
  void arrived(const Arrival& arrival, const boost::system::error_code& error) noexcept override;

  Step advance();
  bool admit();
  void refuse(const Refusal& refusal);
  void respond(Response response);
  void next_request();
  bool receive();
  void rest();
  void enter_idle(TimePoint now);
  void leave_idle() noexcept;
  void enter_head();
  void leave_head() noexcept;
  Sent flush_now();
  bool wants_flush() const noexcept;
  HeadFacts facts(bool keep_alive);
  void end_stream(bool whole);
  void await_heartbeat();

  void set_limit(Limit limit, TimePoint when) noexcept;
  void clear_limit() noexcept { deadline_ = TimePoint::max(); }
  void fire() noexcept override;
  void cut(Limit why) noexcept;
  void beat(TimePoint now) noexcept;

  ServerState& state_;
  Socket socket_;
  Arrival arrival_{*this};
  std::unique_ptr<Arrival> hang_up_;  // made when the input buffer is full
  Bytes* waits_ = nullptr;            // for the arrival
  Permit read_;                       // held while a short GET is answered
  Notification departed_;
  std::unique_ptr<Buffers> buffers_;  // nullptr while idle
  TimePoint since_{};                 // begin of the head, then of the body, then of a stream's unread heartbeat
  TimePoint deadline_ = TimePoint::max();
  TimePoint armed_for_{};
  asio::ip::tcp::endpoint peer_;
  std::string_view heartbeat_;
  Limit limit_ = Limit::none;
  Limit cut_ = Limit::none;
  std::uint8_t departure_waiters_ = 0;  // coroutines in departure()
  bool idle_ = false;
  bool in_head_ = false;      // part of a head has arrived: may be closed to make room
  bool reserved_ = false;     // its place is one of the reserve
  bool ready_ = false;        // bytes arrived and were not read
  bool admitted_ = false;     // the request's head has been checked
  bool half_closed_ = false;  // no more bytes will arrive
  bool left_ = false;         // the client is gone, or is about to be cut
  bool closing_ = false;      // after the current answer
  bool linger_ = false;       // the client may still be sending: read on, or the reset discards our answer
  bool begun_ = false;        // a stream's head is being sent
  bool streaming_ = false;    // its body is being sent
  bool sending_ = false;
  bool abort_ = false;  // close with a reset
};

}  // namespace stint::http
