#include "http/connection.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

// 1. A connection is in exactly one of the server's lists: idle, heads (half a head has come), or busy. It has a desk
//    if and only if it is not idle.
// 2. The one timer of a connection is armed for `armed_for_`, which is at or before `deadline_`. Moving the deadline
//    back is a store; the timer finds out when it fires. So a request arms nothing.
// 3. What is cut has `cut_` set before its wait is cancelled; who wakes up looks at it first.
// 4. `sent` counts what the system took of `out` and `tail`; both are cleared together.
// 5. The wait for bytes is armed at most once and never taken back but by a cut: it shows that the client leaves while
//    a handler works, and is then the wait for the next request. What comes while nobody looks leaves `ready_` behind.

namespace stint::http {
namespace {

using asio::ip::tcp;
using boost::system::error_code;
using net::RequestReader;

constexpr std::size_t kFlushBytes = 64 << 10;     // of answers to pipelined requests, written together
constexpr std::size_t kInlineBodyMax = 16 << 10;  // copied behind its head; larger ones are written from where they are
constexpr std::size_t kLingerBytesMax = 8 << 20;
constexpr Duration kLingerMax = std::chrono::seconds(1);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

/// Until something has come, or the client has closed its side. False if the wait was taken back.
class Connection::Bytes final : public Leaf, private Turn {
 public:
  explicit Bytes(Connection& connection) noexcept : connection_(connection) {}
  void await_suspend(std::coroutine_handle<>) {
    if (!park()) return;
    connection_.waits_ = this;
    if (connection_.ready_) return want_turn();
    connection_.arrival_.arm(connection_.socket_, Socket::wait_read);
  }
  bool await_resume() const noexcept { return std::exchange(connection_.ready_, false); }
  /// Bytes are there.
  void want_turn() noexcept {
    if (!Turn::linked()) connection_.state_.turns.want(*this);
  }
  void end() noexcept {
    Turn::unlink();
    connection_.waits_ = nullptr;
    complete();
  }

 private:
  void cancel() noexcept override {
    if (connection_.waits_ == this) end();
  }
  void take() noexcept override { end(); }
  Connection& connection_;
};

/// For another turn, behind the connections that wait for theirs.
class Connection::NextTurn final : public Leaf, private Turn {
 public:
  explicit NextTurn(Connection& connection) noexcept : connection_(connection) {}
  void await_suspend(std::coroutine_handle<>) {
    if (park()) connection_.state_.turns.want(*this);
  }
  void await_resume() const noexcept {}

 private:
  void cancel() noexcept override {
    if (Turn::linked()) take();
  }
  void take() noexcept override {
    Turn::unlink();
    complete();
  }
  Connection& connection_;
};

// ---- its life -----------------------------------------------------------------------------------------------------

Connection::Connection(ServerState& state, Socket socket, const tcp::endpoint& peer)
    : state_(state), socket_(std::move(socket)), peer_(peer) {
  state_.busy.push_back(*this);
}

Connection::~Connection() {
  if (idle_) --state_.stats.idle;
  if (streaming_) --state_.stats.streams;
  if (desk_) state_.give_back(std::move(desk_));
  if (!abort_) return;
  // What it did not read in all that time is thrown away, not kept by the system. Closed here, because the socket's
  // destructor would take the option back.
  error_code ignored;
  socket_.set_option(Socket::linger(true, 0), ignored);
  socket_.close(ignored);
}

Task<> Connection::carry(ServerState& state, Socket socket, tcp::endpoint peer, Place place) {
  const Place held = std::move(place);
  Connection connection(state, std::move(socket), peer);
  ++state.stats.connections_total;
  co_await connection.serve();
}

Task<> Connection::carry_reserved(ServerState& state, Socket socket, tcp::endpoint peer, Place place) {
  const Place held = std::move(place);
  Connection connection(state, std::move(socket), peer);
  connection.reserved_ = true;
  ++state.stats.connections_total;
  co_await connection.serve();
}

Task<> Connection::turn_away(ServerState& state, Socket socket, tcp::endpoint peer, Place place) {
  const Place held = std::move(place);
  Connection connection(state, std::move(socket), peer);
  connection.desk_ = state.take_desk();
  connection.refuse({503, "All connections are in use. Try again later."});
  co_await connection.finish();
}

Task<> Connection::serve() {
  while (true) {
    rest();
    if (idle_ && state_.draining) co_return;
    const bool came = co_await Bytes(*this);
    lift_limit();
    if (idle_) leave_idle();
    if (cut_ == Limit::header || cut_ == Limit::body) {
      refuse({408, "The request took too long to come."});
      break;
    }
    if (!came || cut_ != Limit::none) co_return;
    if (!receive()) co_return;

    Step step = advance();
    if (step != Step::wait || desk_->reader.state() != RequestReader::State::head) leave_head();
    for (std::size_t answered = 0; step == Step::answer; ++answered) {
      if (answered > 0 && answered % state_.options.requests_per_turn == 0) co_await NextTurn(*this);
      Response response;
      bool threw = false;
      try {
        if (is_short_read()) {
          Result<Permit> permit = co_await state_.reads.acquire();
          if (!permit) co_return;
          read_ = std::move(*permit);
        }
        ++state_.stats.requests;
        response = co_await state_.handler.answer(desk_->reader.request(), *this);
      } catch (...) {
        threw = true;
      }
      read_ = {};
      if (begun_ && !response.streamed) co_return;  // broken off after its head was sent: all that is left is to cut
      if (threw) response = problem_response(500, "The server failed at this request.");
      if (!response.streamed) respond(std::move(response));
      if (closing_) break;
      next_request();
      if (wants_flush()) {
        const bool flushed = co_await flush();
        if (!flushed) co_return;
      }
      step = advance();
    }
    if (closing_ || step == Step::close) break;
    const Sent sent = flush_now();
    if (sent == Sent::failed) co_return;
    if (sent == Sent::blocked) {
      const bool flushed = co_await flush();
      if (!flushed) co_return;
    }
  }
  co_await finish();
}

/// Sends what is left to send and closes.
Task<> Connection::finish() {
  cut_ = Limit::none;
  const bool flushed = co_await flush();
  if (!flushed) co_return;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  if (!linger_ && desk_->begin == desk_->end) co_return;
  set_limit(Limit::linger, state_.reactor.now() + kLingerMax);
  for (std::size_t read = 0; read < kLingerBytesMax; read += desk_->end) {
    const bool came = co_await Bytes(*this);
    if (!came || cut_ != Limit::none) co_return;
    desk_->begin = desk_->end = 0;
    if (!receive()) co_return;
  }
}

// ---- reading ------------------------------------------------------------------------------------------------------

/// Before a wait for bytes: which limit it has.
void Connection::rest() {
  const TimePoint now = state_.reactor.now();
  const ServerOptions& options = state_.options;
  if (!desk_ || (!desk_->reader.begun() && desk_->begin == desk_->end)) return enter_idle(now);
  if (since_ == TimePoint()) since_ = now;
  const RequestReader& reader = desk_->reader;
  if (reader.state() == RequestReader::State::head) {
    enter_head();
    return set_limit(Limit::header, since_ + options.header_time_max);
  }
  const auto earned =
      std::chrono::milliseconds(reader.request().body.size() * 1000 / options.body_bytes_per_second_min);
  set_limit(Limit::body, since_ + options.body_time_max + earned);
}

void Connection::enter_idle(TimePoint now) {
  if (desk_) state_.give_back(std::move(desk_));
  Link<Connection>::unlink();
  state_.idle.push_back(*this);
  idle_ = true;
  ++state_.stats.idle;
  set_limit(Limit::idle, now + state_.options.idle_time_max);
}

/// The first piece decides its place in the list: who trickles does not become younger by that.
void Connection::enter_head() {
  if (in_head_) return;
  Link<Connection>::unlink();
  state_.heads.push_back(*this);
  in_head_ = true;
}

void Connection::leave_head() noexcept {
  if (!in_head_) return;
  Link<Connection>::unlink();
  state_.busy.push_back(*this);
  in_head_ = false;
}

void Connection::leave_idle() noexcept {
  Link<Connection>::unlink();
  state_.busy.push_back(*this);
  idle_ = false;
  --state_.stats.idle;
}

/// Takes what has come, as much as there is room for. False: the client has closed, or worse.
bool Connection::receive() {
  if (!desk_) desk_ = state_.take_desk();
  Desk& desk = *desk_;
  if (!desk.input) desk.input = std::make_unique_for_overwrite<char[]>(Desk::kInputBytes);
  if (desk.begin > 0) {
    std::memmove(desk.input.get(), desk.input.get() + desk.begin, desk.end - desk.begin);
    desk.end -= desk.begin;
    desk.begin = 0;
  }
  error_code error;
  const std::size_t count =
      socket_.receive(asio::buffer(desk.input.get() + desk.end, Desk::kInputBytes - desk.end), 0, error);
  if (error == asio::error::would_block) return true;
  desk.end += count;
  state_.stats.bytes_in += count;
  half_closed_ = error == asio::error::eof;
  return !error && count > 0;
}

void Connection::arrived(const Arrival& arrival, const error_code& error) noexcept {
  if (&arrival != &arrival_) {
    if (!error && departure_waiters_ > 0) leave();
  } else if (!error) {
    ready_ = true;
    if (waits_ != nullptr) {
      if (idle_) leave_idle();  // it has something to say: it is not closed to make room
      waits_->want_turn();
    } else if (departure_waiters_ > 0) {
      look();
    }
  } else if (waits_ != nullptr) {
    if (cut_ != Limit::none) return waits_->end();
    arrival_.arm(socket_, Socket::wait_read);  // taken back by a cut before this wait
  }
}

bool Connection::is_short_read() const {
  const Request& request = desk_->reader.request();
  return request.method == "GET" && !(state_.rules.is_open && state_.rules.is_open(request));
}

Task<> Connection::departure() {
  struct Waiter {
    explicit Waiter(std::uint8_t& in) noexcept : count(in) { ++count; }
    ~Waiter() { --count; }
    std::uint8_t& count;
  };
  const Waiter waiter(departure_waiters_);
  read_ = {};  // the answer takes longer than a short read
  if (!left_) look();
  if (!left_) co_await departed_.wait(departed_.count());
}

/// While a handler works: reads, since only behind what the client has sent can be seen that it left. What came is kept
/// for later, as long as there is room.
void Connection::look() {
  const auto room = [this] { return desk_->end - desk_->begin < Desk::kInputBytes; };
  if (ready_ && room()) {
    ready_ = false;
    if (!receive()) {
      if (!half_closed_) return leave();
      if (!ask_whether_it_reads()) return leave();
    }
  }
  if (room() && !half_closed_) return arrival_.arm(socket_, Socket::wait_read);
  if (!hang_up_) hang_up_ = std::make_unique<Arrival>(static_cast<Listener&>(*this));
  hang_up_->arm(socket_, Socket::wait_error);
}

/// The client has closed its side, or left: on the wire the two look alike. What is sent now is taken by the one, and
/// answered with a reset by the other. An interim answer is skipped by every client of HTTP/1.1, whether it expects one
/// or not. False: it can't be asked, and counts as gone.
bool Connection::ask_whether_it_reads() {
  if (desk_->reader.request().version < 11) return false;
  if (!streaming_) {
    desk_->out += kContinue;
  } else if (heartbeat_.empty()) {
    return false;
  } else if (desk_->all_sent()) {
    append_chunk(desk_->out, heartbeat_);
  }
  return sending_ || flush_now() != Sent::failed;
}

/// The client is gone, or is to go.
void Connection::leave() noexcept {
  closing_ = left_ = true;
  departed_.notify();
}

/// Takes requests out of what was read, until one is to be answered or more must come.
Connection::Step Connection::advance() {
  using State = RequestReader::State;
  Desk& desk = *desk_;
  while (true) {
    const std::size_t used = desk.reader.feed(desk.pending());
    desk.begin += used;
    switch (desk.reader.state()) {
      case State::head:
        if (used == 0 || desk.pending().empty()) return Step::wait;
        break;
      case State::body:
        if (admitted_) {
          if (used == 0 || desk.pending().empty()) return Step::wait;
          break;
        }
        since_ = TimePoint();
        if (!admit()) return Step::close;
        if (desk.reader.request().expects_continue && desk.pending().empty()) {
          desk.out += kContinue;
        }
        break;
      case State::done:
        if (admitted_ || admit()) return Step::answer;
        if (closing_) return Step::close;
        next_request();
        break;
      case State::refused: refuse(desk.reader.refusal()); return Step::close;
    }
  }
}

/// Asks the guard. False: refused, and the answer is on its way.
bool Connection::admit() {
  const Request& request = desk_->reader.request();
  const auto refusal = check(request, state_.rules);
  if (!refusal) {
    admitted_ = true;
    return true;
  }
  if (desk_->reader.state() == RequestReader::State::done) {
    ++state_.stats.refusals;
    respond(problem_response(refusal->status, refusal->detail));
  } else {
    refuse(*refusal);
  }
  return false;
}

void Connection::next_request() {
  desk_->reader.next();
  admitted_ = begun_ = false;
  since_ = TimePoint();
}

// ---- writing ------------------------------------------------------------------------------------------------------

HeadFacts Connection::facts(bool keep_alive) {
  HeadFacts facts;
  facts.old_version = desk_->reader.request().version < 11;
  facts.keep_alive = keep_alive;
  if (state_.options.wall_clock) facts.date = state_.date(state_.reactor.now());
  return facts;
}

/// For what ends the connection.
void Connection::refuse(const Refusal& refusal) {
  ++state_.stats.refusals;
  closing_ = linger_ = true;
  Response response = problem_response(refusal.status, refusal.detail);
  if (refusal.status == 503) response.headers.emplace_back("Retry-After", "1");
  respond(std::move(response));
}

void Connection::respond(Response response) {
  const Request& request = desk_->reader.request();
  const bool keep_alive = request.keep_alive && !closing_ && !state_.draining && !reserved_;
  closing_ = !keep_alive;
  append_head(desk_->out, response, facts(keep_alive));
  ++state_.stats.answers[std::min<std::size_t>(response.status / 100, state_.stats.answers.size() - 1)];
  if (request.method == "HEAD" || has_no_body(response.status)) return;
  if (response.body.size() <= kInlineBodyMax) {
    desk_->out += response.body;
  } else {
    desk_->tail = std::move(response.body);
  }
}

bool Connection::wants_flush() const noexcept { return desk_->out.size() >= kFlushBytes || !desk_->tail.empty(); }

/// Gives the system what it takes at once.
Connection::Sent Connection::flush_now() {
  Desk& desk = *desk_;
  while (desk.sent < desk.out.size() + desk.tail.size()) {
    const std::size_t from_out = std::min(desk.sent, desk.out.size());
    const asio::const_buffer head = asio::buffer(desk.out) + from_out;
    error_code error;
    std::size_t count = 0;
    if (desk.tail.empty()) {
      count = socket_.send(head, 0, error);
    } else {
      const std::array both{head, asio::buffer(std::as_const(desk.tail)) + (desk.sent - from_out)};
      count = socket_.send(both, 0, error);
    }
    if (error == asio::error::would_block) return Sent::blocked;
    if (error) return Sent::failed;
    desk.sent += count;
    state_.stats.bytes_out += count;
  }
  desk.out.clear();
  desk.tail.clear();
  desk.sent = 0;
  return Sent::all;
}

/// False: the client is gone, or was cut off because it reads nothing.
Task<bool> Connection::flush() {
  while (true) {
    const Sent sent = flush_now();
    if (sent != Sent::blocked) co_return sent == Sent::all;
    set_limit(Limit::write, state_.reactor.now() + state_.options.write_time_max);
    const auto [error] = co_await socket_.async_wait(Socket::wait_write, use_task);
    lift_limit();
    if (error || cut_ != Limit::none) co_return false;
  }
}

// ---- streams ------------------------------------------------------------------------------------------------------

Task<Response> Connection::stream(StreamHead head, Task<> body) {
  STINT_ASSERT(!begun_ && "an exchange has one stream");
  begun_ = true;
  Response streamed;
  streamed.streamed = true;
  const Request& request = desk_->reader.request();
  closing_ = !request.keep_alive || request.version < 11 || state_.draining;
  append_head(desk_->out, head, facts(!closing_));
  ++state_.stats.answers[std::min<std::size_t>(head.status / 100, state_.stats.answers.size() - 1)];
  const bool told = co_await flush();
  if (!told) closing_ = true;
  if (!told || request.method == "HEAD") co_return streamed;

  if (desk_->begin == desk_->end) desk_->drop_input();  // a stream may last for hours
  streaming_ = true;
  ++state_.stats.streams;
  heartbeat_ = head.heartbeat;
  await_heartbeat();
  const Result<> told_all = co_await while_connected(std::move(body));
  const bool drained = head.endless && cut_ == Limit::drain && desk_->all_sent();
  end_stream(drained || (told_all && cut_ == Limit::none));
  co_return streamed;
}

void Connection::end_stream(bool whole) {
  lift_limit();
  streaming_ = false;
  --state_.stats.streams;
  if (!whole) {
    // Without its last chunk the client knows that something is missing.
    closing_ = true;
    desk_->out.clear();
    desk_->tail.clear();
    desk_->sent = 0;
  } else if (desk_->reader.request().version >= 11) {
    desk_->out += kLastChunk;
  }
}

Task<Result<>> Connection::send(std::string bytes) {
  STINT_ASSERT(!sending_ && "a stream is sent by one");
  if (!streaming_ || cut_ != Limit::none) co_return fail(Errc::closed, "the client is gone");
  if (desk_->reader.request().version >= 11) {
    append_chunk(desk_->out, bytes);
  } else {
    desk_->out += bytes;
  }
  struct Sending {  // however this frame ends
    explicit Sending(Connection& by) : self(by) { self.sending_ = true; }
    ~Sending() {
      self.sending_ = false;
      if (self.streaming_) self.await_heartbeat();
    }
    Connection& self;
  };
  const Sending sending(*this);
  const bool flushed = co_await flush();
  if (!flushed) {
    closing_ = true;
    co_return fail(Errc::closed, "the client is gone");
  }
  co_return {};
}

void Connection::await_heartbeat() {
  since_ = TimePoint();
  if (heartbeat_.empty()) return lift_limit();
  set_limit(Limit::heartbeat, state_.reactor.now() + state_.options.heartbeat_every);
}

/// From the timer: a stream said nothing for a while. If the system takes no more, the reader has stopped reading.
void Connection::beat(TimePoint now) noexcept {
  if (desk_->all_sent()) {
    if (desk_->reader.request().version >= 11) {
      append_chunk(desk_->out, heartbeat_);
    } else {
      desk_->out += heartbeat_;
    }
  }
  const Sent sent = flush_now();
  if (sent == Sent::failed) return cut(Limit::write);
  if (sent == Sent::all) {
    since_ = TimePoint();
  } else if (since_ == TimePoint()) {
    since_ = now;
  } else if (now - since_ >= state_.options.write_time_max) {
    return cut(Limit::write);
  }
  set_limit(Limit::heartbeat, now + state_.options.heartbeat_every);
}

std::string Connection::peer() const {
  const std::string host = peer_.address().to_string();
  return peer_.address().is_v6() ? fmt::format("[{}]:{}", host, peer_.port())
                                 : fmt::format("{}:{}", host, peer_.port());
}

}  // namespace stint::http
