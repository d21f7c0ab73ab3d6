#include "provider/connection.hpp"

#include "net/request_reader.hpp"
#include "provider/http_text.hpp"

#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <array>

namespace stint::provider {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadPiece = 16 << 10;
constexpr std::size_t kFlushBytes = 16 << 10;            // of a stream that is generated faster than it is written
constexpr std::size_t kDrainBytesMax = 1 << 20;          // read and discarded after a refusal
constexpr Duration kDrainMax = std::chrono::seconds(1);  // so that the client can read the reason before the reset
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kText = "text/plain; charset=utf-8";

std::optional<Protocol> protocol_of(std::string_view path) {
  if (path == "/v1/messages") return Protocol::messages;
  if (path == "/v1/chat/completions" || path == "/chat/completions") return Protocol::chat;
  if (path == "/v1/responses" || path == "/responses") return Protocol::responses;
  if (path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent")) return Protocol::gemini;
  return std::nullopt;
}

/// The body of a list of models, or of one: a name may contain slashes.
std::optional<std::string> look_up_models(std::string_view path, bool anthropic) {
  ModelForm form = anthropic ? ModelForm::anthropic : ModelForm::openai;
  if (path.starts_with("/v1beta/")) form = ModelForm::gemini;
  for (const std::string_view place : {"/v1/models", "/models", "/v1beta/models"}) {
    if (!path.starts_with(place)) continue;
    const std::string_view rest = path.substr(place.size());
    if (rest.empty() || rest == "/") return models_body(form);
    if (rest.starts_with('/')) return model_body(form, rest.substr(1));
  }
  return std::nullopt;
}

}  // namespace

/// One model call: the request, the reply, and its entry in the journal, which it closes however it ends.
class Connection::Call {
 public:
  Call(Server& server, const Request& request) : request_(request), server_(server), begun_(server.reactor().now()) {
    record.number = server.journal().begin();
    record.at = begun_ - server.began();
    record.fault = to_string(Fault::none);
    record.end = wire::ProviderEnd::stopped;
  }
  ~Call() {
    record.took = server_.reactor().now() - begun_;
    server_.journal().end(std::move(record));
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Reply& reply() const noexcept { return generation->reply(); }
  bool keep_alive() const noexcept { return request_.keep_alive; }
  void made_token() noexcept {
    ++record.tokens;
    ++server_.journal().stats().tokens;
  }
  Head head(int status) const {
    Head head;
    head.status = status;
    head.keep_alive = request_.keep_alive;
    head.headers = reply().headers;
    const std::string_view name = ask.protocol == Protocol::messages ? "request-id" : "x-request-id";
    head.headers.emplace_back(name, fmt::format("req_{:08}", record.number));
    if (!reply().retry_after.empty()) head.headers.emplace_back("retry-after", reply().retry_after);
    return head;
  }

  Ask ask;
  std::optional<Generation> generation;
  std::optional<TimePoint> generating_since;
  wire::ProviderRecord record;

 private:
  const Request& request_;
  Server& server_;
  const TimePoint begun_;
};

Connection::Connection(Server& server, tcp::socket socket) : server_(server), socket_(std::move(socket)) {
  ++server_.journal().stats().connections;
  ++server_.journal().stats().connections_total;
}
Connection::~Connection() { --server_.journal().stats().connections; }

Task<> Connection::carry(Server& server, tcp::socket socket, Permit slot) {
  const Permit held = std::move(slot);
  Connection connection(server, std::move(socket));
  co_await connection.serve();
}

Task<> Connection::serve() {
  while (true) {
    const TimePoint now = server_.reactor().now();
    const Result<bool> data = co_await with_deadline(Deadline::after(now, ServerLimits::kIdleMax), wait_for_data());
    if (!data || !*data) co_return;
    const Deadline whole = Deadline::after(server_.reactor().now(), ServerLimits::kRequestMax);
    const Result<Request> request = co_await with_deadline(whole, read_request());
    if (!request) co_return;
    const AfterAnswer ended = co_await respond(*request);
    if (ended != AfterAnswer::kept || !request->keep_alive) co_return;
  }
}

// ---- reading
// ---------------------------------------------------------------------------------------------------------

Task<bool> Connection::read_more() {
  const std::size_t size = buffer_.size();
  buffer_.resize(size + kReadPiece);
  const auto [error, count] =
      co_await socket_.async_read_some(asio::buffer(buffer_.data() + size, kReadPiece), use_task);
  buffer_.resize(size + count);
  co_return !error;
}

Task<bool> Connection::wait_for_data() {
  if (!buffer_.empty()) co_return true;
  co_return co_await read_more();
}

Task<Result<Connection::Request>> Connection::read_request() {
  using State = net::RequestReader::State;
  net::RequestReader reader(
      {.header_bytes_max = ServerLimits::kHeaderBytesMax, .body_bytes_max = ServerLimits::kBodyBytesMax});
  bool told_to_continue = false;
  while (true) {
    const std::size_t used = reader.feed(buffer_);
    buffer_.erase(0, used);
    if (reader.state() == State::done || reader.state() == State::refused) break;
    if (used > 0 && !buffer_.empty()) continue;
    if (reader.state() == State::body && reader.request().expects_continue && !told_to_continue) {
      told_to_continue = true;
      const bool told = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
      if (!told) co_return fail(Errc::closed, "gone");
    }
    const bool more = co_await read_more();
    if (!more) co_return fail(Errc::closed, "gone");
  }
  net::Refusal refusal = reader.refusal();
  const net::Request& message = reader.request();
  if (reader.state() == State::done && message.version < 11) refusal = {505, "The provider supports HTTP/1.1 only."};
  if (refusal.status != 0) {
    co_await refuse(static_cast<int>(refusal.status), std::string(refusal.detail));
    co_return fail(Errc::invalid, "refused");
  }
  Request request;
  request.method = message.method;
  request.path = message.path();
  request.body = message.body;
  request.keep_alive = message.keep_alive;
  request.anthropic = message.header("anthropic-version").has_value();
  co_return request;
}

/// Answers, then reads on for a moment: closing with unread bytes sends a reset, which would discard the answer.
Task<> Connection::refuse(int status, std::string message) {
  ++server_.journal().stats().bad_requests;
  Failure failure;
  failure.status = status;
  failure.message = std::move(message);
  const std::string body = error_body(Protocol::messages, failure, 0);
  Head head;
  head.status = status;
  head.length = body.size();
  head.keep_alive = false;
  const bool written = co_await write(write_head(head) + body);
  if (!written) co_return;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  const auto drain = [](Connection& self) -> Task<> {
    for (std::size_t read = 0; read < kDrainBytesMax;) {
      self.buffer_.clear();
      const bool more = co_await self.read_more();
      if (!more) co_return;
      read += self.buffer_.size();
    }
  };
  (void)co_await with_deadline(Deadline::after(server_.reactor().now(), kDrainMax), drain(*this));
}

// ---- answering
// -------------------------------------------------------------------------------------------------------

Task<bool> Connection::write_all(std::string_view bytes) {
  const auto [error, count] = co_await asio::async_write(socket_, asio::buffer(bytes), use_task);
  co_return !error;
}

Task<bool> Connection::write(std::string bytes) {
  // No wait for bytes that the system takes at once. So neither a client that has read its whole answer and left nor a
  // cancel can come between the last byte and its record.
  std::string_view rest = bytes;
  while (!rest.empty()) {
    error_code error;
    const std::size_t taken = socket_.write_some(asio::buffer(rest), error);
    if (error == asio::error::would_block) break;
    if (error) co_return false;
    rest.remove_prefix(taken);
  }
  if (rest.empty()) co_return true;
  const Deadline deadline = Deadline::after(server_.reactor().now(), ServerLimits::kStallMax);
  const Result<bool> written = co_await with_deadline(deadline, write_all(rest));
  co_return written.value_or(false);
}

void Connection::reset() noexcept {
  error_code ignored;
  socket_.set_option(tcp::socket::linger(true, 0), ignored);
  socket_.close(ignored);
}

Task<Connection::AfterAnswer> Connection::answer_plain(const Request& request, int status, std::string_view type,
                                                       std::string body) {
  Head head;
  head.status = status;
  head.type = type;
  head.length = body.size();
  head.keep_alive = request.keep_alive;
  std::string out = write_head(head);
  if (request.method != "HEAD") out += body;
  const bool written = co_await write(std::move(out));
  if (written) co_return AfterAnswer::kept;
  co_return AfterAnswer::gone;
}

Task<Connection::AfterAnswer> Connection::respond(const Request& request) {
  const bool post = request.method == "POST";
  const bool get = request.method == "GET" || request.method == "HEAD";
  if (const auto protocol = protocol_of(request.path); protocol && post) {
    co_return co_await converse(request, *protocol);
  }
  if (request.path.starts_with("/_/")) co_return co_await administer(request);
  const std::uint32_t counted = estimate_tokens(request.body.size());
  if (post && request.path == "/v1/messages/count_tokens") {
    co_return co_await answer_plain(request, 200, kJson, count_body(Protocol::messages, counted));
  }
  if (post && request.path.ends_with(":countTokens")) {
    co_return co_await answer_plain(request, 200, kJson, count_body(Protocol::gemini, counted));
  }
  if (std::optional<std::string> models = get ? look_up_models(request.path, request.anthropic) : std::nullopt) {
    co_return co_await answer_plain(request, 200, kJson, std::move(*models));
  }
  if (get && request.path == "/") {
    co_return co_await answer_plain(request, 200, kText, "stint provider: a simulated model provider\n");
  }
  Failure failure;
  failure.status = 404;
  failure.message = fmt::format("{} {}: the simulated provider has no such path.", request.method, request.path);
  const Protocol form = request.anthropic ? Protocol::messages : Protocol::chat;
  co_return co_await answer_plain(request, 404, kJson, error_body(form, failure, 0));
}

Task<Connection::AfterAnswer> Connection::administer(const Request& request) {
  Journal& journal = server_.journal();
  if (request.method == "GET" && request.path == "/_/stats") {
    co_return co_await answer_plain(request, 200, kJson, wire::to_json(journal.stats()) + "\n");
  }
  if (request.method == "GET" && request.path == "/_/requests") {
    co_return co_await answer_plain(request, 200, "application/jsonl", journal.lines());
  }
  if (request.method == "POST" && request.path == "/_/reset") {
    journal.reset();
    co_return co_await answer_plain(request, 200, kText, "totals reset\n");
  }
  if (request.method == "DELETE" && request.path == "/_/script") {
    server_.script() = Script();
    co_return co_await answer_plain(request, 200, kText, "script removed; built-in replies are active\n");
  }
  if (request.method == "POST" && request.path == "/_/script") {
    Result<Script> script = Script::parse(request.body);
    if (!script) {
      co_return co_await answer_plain(request, 400, kText, fmt::format("{}\n", script.error().what()));
    }
    server_.script() = std::move(*script);
    co_return co_await answer_plain(request, 200, kText, "script active\n");
  }
  co_return co_await answer_plain(
      request, 404, kText,
      "no such path; allowed: GET /_/stats, GET /_/requests, POST and DELETE /_/script, POST /_/reset\n");
}

Task<Connection::AfterAnswer> Connection::refuse_call(const Request& request, Call& call, Failure failure) {
  call.record.end = wire::ProviderEnd::refused;
  call.record.status = failure.status;
  const std::string body = error_body(call.ask.protocol, failure, call.record.number);
  co_return co_await answer_plain(request, failure.status, kJson, body);
}

Task<Connection::AfterAnswer> Connection::converse(const Request& request, Protocol protocol) {
  Call call(server_, request);
  call.ask.protocol = protocol;
  Result<Ask> ask = read_ask(protocol, request.path, request.body);
  if (ask && !server_.threads().complete(*ask)) {
    Failure failure;
    failure.status = 404;
    failure.message = fmt::format("thread: there is no answer '{}' to continue from.", ask->continues);
    failure.code = "thread_not_found";
    co_return co_await refuse_call(request, call, std::move(failure));
  }
  Result<Reply> reply = fail(Errc::invalid, "");
  if (ask) {
    const Question question{to_string(protocol), ask->model, ask->prompt, ask->turn};
    reply = server_.script().reply_to(question);
  }
  if (!ask || !reply) {
    Failure failure;
    failure.status = 400;
    failure.message = ask ? reply.error().what() : ask.error().what();
    co_return co_await refuse_call(request, call, std::move(failure));
  }
  call.record.protocol = to_string(protocol);
  call.record.model = ask->model;
  call.record.prompt = ask->prompt;
  call.record.turn = ask->turn;
  call.record.stream = ask->stream;
  call.record.input_tokens = ask->input_tokens;
  call.record.fault = to_string(reply->fault);
  call.ask = std::move(*ask);
  if (reply->fault == Fault::none) server_.threads().keep(message_id(call.record.number), call.ask);
  call.generation.emplace(call.ask, std::move(*reply), call.record.number);

  const auto first = co_await race(perform(call), watch());
  const AfterAnswer ended = first.index() == 0 ? std::get<0>(first) : AfterAnswer::gone;
  if (ended != AfterAnswer::gone) {
    const bool faulty = call.reply().fault != Fault::none;
    call.record.end = faulty ? wire::ProviderEnd::fault : wire::ProviderEnd::done;
    co_return ended;
  }
  call.record.end = wire::ProviderEnd::client_closed;
  error_code ignored;
  socket_.close(ignored);
  if (!call.ask.stream || call.reply().deaf) co_await finish_unread(call);
  co_return AfterAnswer::gone;
}

/// Waits until the client is gone.
Task<> Connection::watch() {
  std::array<char, kReadPiece> piece;
  while (true) {
    // Waits first, then reads, without a suspension in between: a read that loses the race would lose bytes.
    const auto [waited] = co_await socket_.async_wait(tcp::socket::wait_read, use_task);
    if (waited) co_return;
    error_code error;
    const std::size_t count = socket_.receive(asio::buffer(piece), 0, error);
    if (error == asio::error::would_block) continue;
    if (error || count == 0) co_return;
    buffer_.append(piece.data(), count);
    if (buffer_.size() > ServerLimits::kReadAheadMax) co_return;
  }
}

/// Real upstreams finish and bill an answer that is not a stream even after the client has left; so does this.
Task<> Connection::finish_unread(Call& call) {
  Generation& generation = *call.generation;
  const Fault fault = call.reply().fault;
  if (fault == Fault::status || fault == Fault::spend_limit || fault == Fault::hang || fault == Fault::reset) co_return;
  const TimePoint since = call.generating_since.value_or(server_.reactor().now());
  while (!generation.done()) {
    if (call.reply().rate > 0) co_await sleep_until(since + generation.due());
    generation.skip();
    call.made_token();
    ++call.record.tokens_after_gone;
  }
}

Task<Connection::AfterAnswer> Connection::perform(Call& call) {
  const Reply& reply = call.reply();
  if (reply.delay > Duration::zero()) co_await sleep_for(reply.delay);
  switch (reply.fault) {
    case Fault::hang: co_await sleep_for(ServerLimits::kHangMax); co_return AfterAnswer::closing;
    case Fault::reset: reset(); co_return AfterAnswer::closing;
    case Fault::status:
    case Fault::spend_limit: {
      Failure failure;
      failure.spend_limit = reply.fault == Fault::spend_limit;
      failure.status = failure.spend_limit ? 429 : reply.status;
      co_return co_await send_error(call, std::move(failure));
    }
    default: break;
  }
  if (call.ask.stream) co_return co_await stream(call);
  co_return co_await send_whole(call);
}

Task<Connection::AfterAnswer> Connection::send_error(Call& call, Failure failure) {
  failure.message = call.reply().message;
  const std::string body = error_body(call.ask.protocol, failure, call.record.number);
  Head head = call.head(failure.status);
  head.length = body.size();
  call.record.status = failure.status;
  const bool written = co_await write(write_head(head) + body);
  if (written) co_return AfterAnswer::kept;
  co_return AfterAnswer::gone;
}

Task<Connection::AfterAnswer> Connection::stream(Call& call) {
  Generation& generation = *call.generation;
  Head head = call.head(200);
  head.type = "text/event-stream; charset=utf-8";
  call.record.status = 200;
  bool written = co_await write(write_head(head));
  if (written && call.reply().first_token > Duration::zero()) co_await sleep_for(call.reply().first_token);
  const TimePoint since = call.generating_since.emplace(server_.reactor().now());
  std::string pending = chunk(generation.begin());
  while (written) {
    if (generation.strikes_now()) {
      const std::optional<AfterAnswer> ended = co_await strike(call, pending);
      if (ended) co_return *ended;
    }
    if (generation.done()) break;
    if (const TimePoint due = since + generation.due(); due > server_.reactor().now()) {
      written = co_await write(std::exchange(pending, {}));
      if (!written) break;
      co_await sleep_until(due);
    }
    pending += chunk(generation.next());
    call.made_token();
    if (pending.size() < kFlushBytes) continue;
    written = co_await write(std::exchange(pending, {}));
    co_await yield();  // a fast reader must not monopolize the thread
  }
  if (written) {
    pending += chunk(generation.end());
    pending += kLastChunk;
    written = co_await write(std::move(pending));
  }
  if (written) co_return AfterAnswer::kept;
  co_return AfterAnswer::gone;
}

/// Performs the fault in the middle of the stream; returns nothing if the stream continues after it.
Task<std::optional<Connection::AfterAnswer>> Connection::strike(Call& call, std::string& pending) {
  Generation& generation = *call.generation;
  const Fault fault = call.reply().fault;
  std::string last;
  if (fault == Fault::half_stream) last = kLastChunk;
  if (fault == Fault::cut) last = "400\r\nevent: never_whole\ndata: {\"type\":\"nev";
  if (fault == Fault::malformed) last = chunk(sse("malformed", "{\"type\": \"content_block_delta\", \"delta\": {\"te"));
  if (fault == Fault::error_event) {
    Failure failure;
    failure.status = call.reply().status != 0 ? call.reply().status : 529;
    failure.message = call.reply().message;
    last = chunk(generation.error_event(failure)) + std::string(kLastChunk);
  }
  const bool written = co_await write(std::exchange(pending, {}) + last);
  if (!written) co_return AfterAnswer::gone;
  if (fault == Fault::malformed) co_return std::nullopt;
  if (fault == Fault::hang_stream) co_await sleep_for(ServerLimits::kHangMax);
  if (fault == Fault::reset_stream) reset();
  if (fault == Fault::half_stream || fault == Fault::error_event) co_return AfterAnswer::kept;
  co_return AfterAnswer::closing;
}

Task<Connection::AfterAnswer> Connection::send_whole(Call& call) {
  Generation& generation = *call.generation;
  const Fault fault = call.reply().fault;
  if (call.reply().first_token > Duration::zero()) co_await sleep_for(call.reply().first_token);
  const TimePoint since = call.generating_since.emplace(server_.reactor().now());
  while (!generation.done()) {
    if (const TimePoint due = since + generation.due(); due > server_.reactor().now()) co_await sleep_until(due);
    generation.skip();
    call.made_token();
  }
  if (fault == Fault::hang_stream) {
    co_await sleep_for(ServerLimits::kHangMax);
    co_return AfterAnswer::closing;
  }
  if (fault == Fault::error_event) {
    Failure failure;
    failure.status = 529;
    co_return co_await send_error(call, std::move(failure));
  }
  std::string body = generation.whole();
  if (fault == Fault::malformed) body.resize(body.size() / 2);
  Head head = call.head(200);
  head.length = body.size();
  call.record.status = 200;
  const bool broken = fault == Fault::half_stream || fault == Fault::cut || fault == Fault::reset_stream;
  if (broken) body.resize(body.size() / 2);
  const bool written = co_await write(write_head(head) + body);
  if (!written) co_return AfterAnswer::gone;
  if (fault == Fault::reset_stream) reset();
  if (broken) co_return AfterAnswer::closing;
  co_return AfterAnswer::kept;
}

}  // namespace stint::provider
