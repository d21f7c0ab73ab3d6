/// One connection of the server: reads requests, lets the handler answer them one after another, writes, and watches
/// the clock. Internal to this folder: it includes Asio.
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
  /// The whole life of a connection.
  static Task<> carry(ServerState& state, Socket socket, asio::ip::tcp::endpoint peer, Place place);
  /// Of one in reserve: one answer, and no long one.
  static Task<> carry_reserved(ServerState& state, Socket socket, asio::ip::tcp::endpoint peer, Place place);
  /// Of one for which there is no place.
  static Task<> turn_away(ServerState& state, Socket socket, asio::ip::tcp::endpoint peer, Place place);

  /// Closes a connection that is idle, or has sent half a head, to make room.
  void evict() noexcept;
  /// The server stops: an idle connection or a stream ends now, an answer under way may still come.
  void drain() noexcept;

  Task<Response> stream(StreamHead head, Task<> body) override;
  Task<Result<>> send(std::string bytes) override;
  std::string peer() const override;
  bool draining() const noexcept override { return state_.draining; }
  bool reserved() const noexcept override { return reserved_; }

 private:
  /// What the timer waits for, and why the connection was cut.
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
  bool ask_whether_it_reads();
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
  void lift_limit() noexcept { deadline_ = TimePoint::max(); }
  void fire() noexcept override;
  void cut(Limit why) noexcept;
  void beat(TimePoint now) noexcept;

  ServerState& state_;
  Socket socket_;
  Arrival arrival_{*this};
  std::unique_ptr<Arrival> hang_up_;  // made when there is no room for bytes
  Bytes* waits_ = nullptr;            // for the arrival
  Permit read_;                       // while a short GET is answered
  Notification departed_;
  std::unique_ptr<Desk> desk_;  // none while idle
  TimePoint since_{};           // of the head, then of the body, then of a stream's heartbeat that nobody takes
  TimePoint deadline_ = TimePoint::max();
  TimePoint armed_for_{};
  asio::ip::tcp::endpoint peer_;
  std::string_view heartbeat_;
  Limit limit_ = Limit::none;
  Limit cut_ = Limit::none;
  std::uint8_t departure_waiters_ = 0;  // coroutines in departure()
  bool idle_ = false;
  bool in_head_ = false;      // half a head has come: it may be closed to make room
  bool reserved_ = false;     // its place is one of the reserve
  bool ready_ = false;        // something came and was not read
  bool admitted_ = false;     // the request's head has been checked
  bool half_closed_ = false;  // no more will come
  bool left_ = false;         // the client is gone, or is to go
  bool closing_ = false;      // after what is being sent
  bool linger_ = false;       // the client may still be sending: read on, or the reset takes our answer with it
  bool begun_ = false;        // a stream's head is on its way
  bool streaming_ = false;    // its body is being sent
  bool sending_ = false;
  bool abort_ = false;  // close with a reset
};

}  // namespace stint::http
