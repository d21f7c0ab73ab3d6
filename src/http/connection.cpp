#include "http/connection.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

// 1. A connection is in exactly one of the server's lists: idle, heads (part of a head has arrived), or busy. It has a
//    buffers if and only if it is not idle.
// 2. The one timer of a connection is armed for `armed_for_`, which is at or before `deadline_`. Moving the deadline
//    back is a store; the timer re-checks when it fires. So a request arms nothing.
// 3. A cut sets `cut_` before it cancels the wait; the resumed coroutine checks `cut_` first.
// 4. `sent` counts the bytes of `out` and `tail` that the system took; both are cleared together.
// 5. The wait for bytes is armed at most once, and only a cut cancels it: it detects that the client leaves while a
//    handler works, and then serves as the wait for the next request. Bytes that arrive while no coroutine waits set
//    `ready_`.

namespace stint::http {
namespace {

using asio::ip::tcp;
using boost::system::error_code;
using net::RequestReader;

constexpr std::size_t kFlushBytes = 64 << 10;     // of answers to pipelined requests, written together
constexpr std::size_t kInlineBodyMax = 16 << 10;  // copied behind its head; larger ones are written in place
constexpr std::size_t kLingerBytesMax = 8 << 20;
constexpr Duration kLingerMax = std::chrono::seconds(1);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

/// Waits for bytes, or for the client to close its side. False if the wait was cancelled.
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

/// Waits for another turn, behind the connections already queued.
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
  if (buffers_) state_.give_back(std::move(buffers_));
  if (!abort_) return;
  // Reset: unread output is discarded instead of staying in the system's buffers. Closed here, because the socket's
  // destructor would reset the option.
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
  connection.buffers_ = state.borrow_buffers();
  connection.refuse({503, "All connections are in use. Try again later."});
  co_await connection.finish();
}

Task<> Connection::serve() {
  while (true) {
    rest();
    if (idle_ && state_.draining) co_return;
    const bool came = co_await Bytes(*this);
    clear_limit();
    if (idle_) leave_idle();
    if (cut_ == Limit::header || cut_ == Limit::body) {
      refuse({408, "The request was not received in time. Send it again."});
      break;
    }
    if (!came || cut_ != Limit::none) co_return;
    if (!receive()) co_return;

    Step step = advance();
    if (step != Step::wait || buffers_->reader.state() != RequestReader::State::head) leave_head();
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
        response = co_await state_.handler.answer(buffers_->reader.request(), *this);
      } catch (...) {
        threw = true;
      }
      read_ = {};
      if (begun_ && !response.streamed) co_return;  // failed after its head was sent: only a cut is left
      if (threw) response = problem_response(500, "Internal error: the server failed to handle this request.");
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

/// Flushes and closes.
Task<> Connection::finish() {
  cut_ = Limit::none;
  const bool flushed = co_await flush();
  if (!flushed) co_return;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  if (!linger_ && buffers_->begin == buffers_->end) co_return;
  set_limit(Limit::linger, state_.reactor.now() + kLingerMax);
  for (std::size_t read = 0; read < kLingerBytesMax; read += buffers_->end) {
    const bool came = co_await Bytes(*this);
    if (!came || cut_ != Limit::none) co_return;
    buffers_->begin = buffers_->end = 0;
    if (!receive()) co_return;
  }
}

// ---- reading ------------------------------------------------------------------------------------------------------

/// Chooses the time limit of the next wait for bytes.
void Connection::rest() {
  const TimePoint now = state_.reactor.now();
  const ServerOptions& options = state_.options;
  if (!buffers_ || (!buffers_->reader.begun() && buffers_->begin == buffers_->end)) return enter_idle(now);
  if (since_ == TimePoint()) since_ = now;
  const RequestReader& reader = buffers_->reader;
  if (reader.state() == RequestReader::State::head) {
    enter_head();
    return set_limit(Limit::header, since_ + options.header_time_max);
  }
  const auto earned =
      std::chrono::milliseconds(reader.request().body.size() * 1000 / options.body_bytes_per_second_min);
  set_limit(Limit::body, since_ + options.body_time_max + earned);
}

void Connection::enter_idle(TimePoint now) {
  if (buffers_) state_.give_back(std::move(buffers_));
  Link<Connection>::unlink();
  state_.idle.push_back(*this);
  idle_ = true;
  ++state_.stats.idle;
  set_limit(Limit::idle, now + state_.options.idle_time_max);
}

/// The first piece decides the place in the list: a trickling client does not move back by sending more.
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

/// Reads as much as there is room for. False: the client has closed, or the connection failed.
bool Connection::receive() {
  if (!buffers_) buffers_ = state_.borrow_buffers();
  Buffers& buffers = *buffers_;
  if (!buffers.input) buffers.input = std::make_unique_for_overwrite<char[]>(Buffers::kInputBytes);
  if (buffers.begin > 0) {
    std::memmove(buffers.input.get(), buffers.input.get() + buffers.begin, buffers.end - buffers.begin);
    buffers.end -= buffers.begin;
    buffers.begin = 0;
  }
  error_code error;
  const std::size_t count =
      socket_.receive(asio::buffer(buffers.input.get() + buffers.end, Buffers::kInputBytes - buffers.end), 0, error);
  if (error == asio::error::would_block) return true;
  buffers.end += count;
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
      if (idle_) leave_idle();  // a request begins: not to be evicted as idle
      waits_->want_turn();
    } else if (departure_waiters_ > 0) {
      look();
    }
  } else if (waits_ != nullptr) {
    if (cut_ != Limit::none) return waits_->end();
    arrival_.arm(socket_, Socket::wait_read);  // a cut before this wait had cancelled it
  }
}

bool Connection::is_short_read() const {
  const Request& request = buffers_->reader.request();
  return request.method == "GET" && !(state_.rules.is_open && state_.rules.is_open(request));
}

Task<> Connection::departure() {
  struct Waiter {
    explicit Waiter(std::uint8_t& in) noexcept : count(in) { ++count; }
    ~Waiter() { --count; }
    std::uint8_t& count;
  };
  const Waiter waiter(departure_waiters_);
  read_ = {};  // the answer takes longer than a short read: frees the permit
  if (!left_) look();
  if (!left_) co_await departed_.wait(departed_.count());
}

/// While a handler works: reads, since a close is visible only behind the bytes that were sent before it. Keeps what
/// arrived for later, as long as there is room.
void Connection::look() {
  const auto room = [this] { return buffers_->end - buffers_->begin < Buffers::kInputBytes; };
  if (ready_ && room()) {
    ready_ = false;
    if (!receive()) {
      if (!half_closed_) return leave();
      if (!probe_client()) return leave();
    }
  }
  if (room() && !half_closed_) return arrival_.arm(socket_, Socket::wait_read);
  if (!hang_up_) hang_up_ = std::make_unique<Arrival>(static_cast<Listener&>(*this));
  hang_up_->arm(socket_, Socket::wait_error);
}

/// The client has closed its sending side, or left: on the wire the two look alike. An interim answer tells them apart:
/// a half-closed client accepts it (every HTTP/1.1 client skips interim answers), one that left replies with a reset.
/// False: an HTTP/1.0 client can't be probed, and counts as gone.
bool Connection::probe_client() {
  if (buffers_->reader.request().version < 11) return false;
  if (!streaming_) {
    buffers_->out += kContinue;
  } else if (heartbeat_.empty()) {
    return false;
  } else if (buffers_->all_sent()) {
    append_chunk(buffers_->out, heartbeat_);
  }
  return sending_ || flush_now() != Sent::failed;
}

/// The client is gone, or is about to be cut.
void Connection::leave() noexcept {
  closing_ = left_ = true;
  departed_.notify();
}

/// Parses requests from the input, until one is ready to be answered or more bytes are needed.
Connection::Step Connection::advance() {
  using State = RequestReader::State;
  Buffers& buffers = *buffers_;
  while (true) {
    const std::size_t used = buffers.reader.feed(buffers.pending());
    buffers.begin += used;
    switch (buffers.reader.state()) {
      case State::head:
        if (used == 0 || buffers.pending().empty()) return Step::wait;
        break;
      case State::body:
        if (admitted_) {
          if (used == 0 || buffers.pending().empty()) return Step::wait;
          break;
        }
        since_ = TimePoint();
        if (!admit()) return Step::close;
        if (buffers.reader.request().expects_continue && buffers.pending().empty()) {
          buffers.out += kContinue;
        }
        break;
      case State::done:
        if (admitted_ || admit()) return Step::answer;
        if (closing_) return Step::close;
        next_request();
        break;
      case State::refused: refuse(buffers.reader.refusal()); return Step::close;
    }
  }
}

/// Applies the guard. False: the request was refused, and the answer is being sent.
bool Connection::admit() {
  const Request& request = buffers_->reader.request();
  const auto refusal = check(request, state_.rules);
  if (!refusal) {
    admitted_ = true;
    return true;
  }
  if (buffers_->reader.state() == RequestReader::State::done) {
    ++state_.stats.refusals;
    respond(problem_response(refusal->status, refusal->detail));
  } else {
    refuse(*refusal);
  }
  return false;
}

void Connection::next_request() {
  buffers_->reader.next();
  admitted_ = begun_ = false;
  since_ = TimePoint();
}

// ---- writing ------------------------------------------------------------------------------------------------------

HeadFacts Connection::facts(bool keep_alive) {
  HeadFacts facts;
  facts.old_version = buffers_->reader.request().version < 11;
  facts.keep_alive = keep_alive;
  if (state_.options.wall_clock) facts.date = state_.date(state_.reactor.now());
  return facts;
}

/// Queues an answer that ends the connection.
void Connection::refuse(const Refusal& refusal) {
  ++state_.stats.refusals;
  closing_ = linger_ = true;
  Response response = problem_response(refusal.status, refusal.detail);
  if (refusal.status == 503) response.headers.emplace_back("Retry-After", "1");
  respond(std::move(response));
}

void Connection::respond(Response response) {
  const Request& request = buffers_->reader.request();
  const bool keep_alive = request.keep_alive && !closing_ && !state_.draining && !reserved_;
  closing_ = !keep_alive;
  append_head(buffers_->out, response, facts(keep_alive));
  ++state_.stats.answers[std::min<std::size_t>(response.status / 100, state_.stats.answers.size() - 1)];
  if (request.method == "HEAD" || has_no_body(response.status)) return;
  if (response.body.size() <= kInlineBodyMax) {
    buffers_->out += response.body;
  } else {
    buffers_->tail = std::move(response.body);
  }
}

bool Connection::wants_flush() const noexcept { return buffers_->out.size() >= kFlushBytes || !buffers_->tail.empty(); }

/// Writes as much as the system takes without waiting.
Connection::Sent Connection::flush_now() {
  Buffers& buffers = *buffers_;
  while (buffers.sent < buffers.out.size() + buffers.tail.size()) {
    const std::size_t from_out = std::min(buffers.sent, buffers.out.size());
    const asio::const_buffer head = asio::buffer(buffers.out) + from_out;
    error_code error;
    std::size_t count = 0;
    if (buffers.tail.empty()) {
      count = socket_.send(head, 0, error);
    } else {
      const std::array both{head, asio::buffer(std::as_const(buffers.tail)) + (buffers.sent - from_out)};
      count = socket_.send(both, 0, error);
    }
    if (error == asio::error::would_block) return Sent::blocked;
    if (error) return Sent::failed;
    buffers.sent += count;
    state_.stats.bytes_out += count;
  }
  buffers.out.clear();
  buffers.tail.clear();
  buffers.sent = 0;
  return Sent::all;
}

/// False: the client is gone, or was cut because it does not read.
Task<bool> Connection::flush() {
  while (true) {
    const Sent sent = flush_now();
    if (sent != Sent::blocked) co_return sent == Sent::all;
    set_limit(Limit::write, state_.reactor.now() + state_.options.write_time_max);
    const auto [error] = co_await socket_.async_wait(Socket::wait_write, use_task);
    clear_limit();
    if (error || cut_ != Limit::none) co_return false;
  }
}

// ---- streams ------------------------------------------------------------------------------------------------------

Task<Response> Connection::stream(StreamHead head, Task<> body) {
  STINT_ASSERT(!begun_ && "an exchange has at most one stream");
  begun_ = true;
  Response streamed;
  streamed.streamed = true;
  const Request& request = buffers_->reader.request();
  closing_ = !request.keep_alive || request.version < 11 || state_.draining;
  append_head(buffers_->out, head, facts(!closing_));
  ++state_.stats.answers[std::min<std::size_t>(head.status / 100, state_.stats.answers.size() - 1)];
  const bool told = co_await flush();
  if (!told) closing_ = true;
  if (!told || request.method == "HEAD") co_return streamed;

  if (buffers_->begin == buffers_->end) buffers_->drop_input();  // a stream may last for hours
  streaming_ = true;
  ++state_.stats.streams;
  heartbeat_ = head.heartbeat;
  await_heartbeat();
  const Result<> told_all = co_await while_connected(std::move(body));
  const bool drained = head.endless && cut_ == Limit::drain && buffers_->all_sent();
  end_stream(drained || (told_all && cut_ == Limit::none));
  co_return streamed;
}

void Connection::end_stream(bool whole) {
  clear_limit();
  streaming_ = false;
  --state_.stats.streams;
  if (!whole) {
    // Without the last chunk the client can tell that the stream is incomplete.
    closing_ = true;
    buffers_->out.clear();
    buffers_->tail.clear();
    buffers_->sent = 0;
  } else if (buffers_->reader.request().version >= 11) {
    buffers_->out += kLastChunk;
  }
}

Task<Result<>> Connection::send(std::string bytes) {
  STINT_ASSERT(!sending_ && "one send at a time");
  if (!streaming_ || cut_ != Limit::none) co_return fail(Errc::closed, "the client is gone");
  if (buffers_->reader.request().version >= 11) {
    append_chunk(buffers_->out, bytes);
  } else {
    buffers_->out += bytes;
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
  if (heartbeat_.empty()) return clear_limit();
  set_limit(Limit::heartbeat, state_.reactor.now() + state_.options.heartbeat_every);
}

/// From the timer: a stream was silent for a while. If the system takes no more bytes, the client has stopped reading.
void Connection::beat(TimePoint now) noexcept {
  if (buffers_->all_sent()) {
    if (buffers_->reader.request().version >= 11) {
      append_chunk(buffers_->out, heartbeat_);
    } else {
      buffers_->out += heartbeat_;
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
