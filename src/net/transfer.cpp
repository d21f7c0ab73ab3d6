#include "net/transfer.hpp"

#include "net/http_text.hpp"
#include "net/text.hpp"
#include "net/transfer_error.hpp"

#include <algorithm>
#include <cstring>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stint::net {
namespace {

// libcurl holds one per transfer. Streams come in small pieces; a shared connection stalls while one of its streams has
// more than this to hand over.
constexpr long kReadBuffer = 4 << 10;
constexpr long kSharedReadBuffer = 16 << 10;
/// Given to libcurl as a whole: it sends them with the head, and without TLS needs no buffer for sending.
constexpr std::size_t kSmallBodyMax = 16 << 10;
constexpr long kSendBuffer = 16 << 10;  // libcurl's least; its default of 64 KiB stays allocated while a reply streams
constexpr long kKeepAliveIdleSeconds = 60;
constexpr long kKeepAliveIntervalSeconds = 15;

/// Opens sockets with close-on-exec, which libcurl does not set.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* to) {
  return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/// A server that has stopped reading learns of a close only after all that the kernel still has to send, that is,
/// never. So a socket with unsent bytes is reset instead.
int close_socket(void*, curl_socket_t socket) {
  int unsent = 0;
  if (::ioctl(socket, SIOCOUTQNSD, &unsent) == 0 && unsent > 0) {
    const linger reset{.l_onoff = 1, .l_linger = 0};
    (void)::setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  }
  return ::close(socket);
}

/// Whether sending it twice is the same as sending it once.
bool is_idempotent(std::string_view method) noexcept {
  constexpr std::array<std::string_view, 6> kMethods = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};
  return std::ranges::find(kMethods, method) != kMethods.end();
}

}  // namespace

Transfer::Transfer(CurlMulti& multi, Ask ask)
    : multi_(multi),
      ask_(std::move(ask)),
      shown_(shown_url(ask_.url)),
      easy_(curl().curl_easy_init()),
      body_size_(ask_.body.size()) {}

Transfer::~Transfer() {
  STINT_ASSERT(waiter_ == nullptr || multi_.reactor().closing());
  stop();
  curl().curl_easy_cleanup(easy_);
  curl().curl_slist_free_all(headers_);
  curl().curl_slist_free_all(pinned_);
}

Result<std::unique_ptr<Transfer>> Transfer::start(CurlMulti& multi, Ask ask, const Route& route, Permit turn) {
  std::unique_ptr<Transfer> transfer(new Transfer(multi, std::move(ask)));
  STINT_CHECK(transfer->prepare(route));
  if (!multi.add(transfer->easy_)) return fail(Errc::failed, "libcurl did not accept the request");
  transfer->added_ = true;
  transfer->turn_ = std::move(turn);
  transfer->enter(Phase::connecting);
  return transfer;
}

bool Transfer::set_headers() {
  bool has_type = false;
  const auto append = [this](const std::string& line) { headers_ = curl().curl_slist_append(headers_, line.c_str()); };
  for (const auto& [name, value] : ask_.headers) {
    if (name.empty() || !is_header_text(name) || !is_header_text(value)) return false;
    has_type = has_type || equal_nocase(name, "content-type");
    // libcurl writes a header without a value if it ends in a semicolon; with a colon it would remove the header.
    append(value.empty() ? name + ";" : name + ": " + value);
  }
  if (!has_type) append("Content-Type:");
  append("Expect:");  // else libcurl waits a second for servers that don't support it
  set(CURLOPT_HTTPHEADER, headers_);
  return true;
}

Result<> Transfer::prepare(const Route& route) {
  if (!is_header_text(ask_.url) || !is_header_text(ask_.method) || !set_headers()) {
    return fail(Errc::invalid, shown_ + ": the URL, method or a header contains a line break");
  }
  set(CURLOPT_URL, ask_.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_ERRORBUFFER, text_.data());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // else a cancel waits for libcurl's own lookup of a name (route.hpp: when there is one)
  connect_time_ = route.connect_time;
  // Our own limit is the same, and also counts the wait for a free connection. libcurl shares its among the addresses.
  if (connect_time_ > Duration::zero()) {
    set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(connect_time_).count()));
  }
  set(CURLOPT_UPLOAD_BUFFERSIZE, kSendBuffer);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set(CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set_callbacks();
  set_route(route);
  set_method();
  return {};
}

void Transfer::set_callbacks() {
  set(CURLOPT_PRIVATE, static_cast<MultiClient*>(this));
  set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  set(CURLOPT_CLOSESOCKETFUNCTION, &close_socket);
  set(CURLOPT_PREREQFUNCTION, &Transfer::on_ready);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(CURLOPT_WRITEDATA, this);
}

void Transfer::set_route(const Route& route) {
  set(CURLOPT_PROXY, route.proxy.c_str());  // empty: none, whatever the environment says
  set(CURLOPT_NOPROXY, "");
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!route.ca_file.empty()) {
    set(CURLOPT_CAINFO, route.ca_file.c_str());
    set(CURLOPT_PROXY_CAINFO, route.ca_file.c_str());
  }
  if (!route.pinned.empty()) {
    pinned_ = curl().curl_slist_append(pinned_, route.pinned.c_str());
    set(CURLOPT_RESOLVE, pinned_);
  }
  const bool tls = starts_with_nocase(ask_.url, "https:");
  shared_ = route.prior_knowledge || (tls && route.http2);
  set(CURLOPT_BUFFERSIZE, shared_ ? kSharedReadBuffer : kReadBuffer);
  long version = CURL_HTTP_VERSION_1_1;
  if (shared_) version = CURL_HTTP_VERSION_2TLS;
  if (route.prior_knowledge) version = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
  set(CURLOPT_HTTP_VERSION, version);
  if (route.prior_knowledge && !can_reuse_prior_knowledge()) {
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);
  }
  // Else many requests at once open a connection each before the first one turns out to be HTTP/2. Not without TLS:
  // there libcurl learns the version only from the reply's head.
  set(CURLOPT_PIPEWAIT, shared_ ? 1L : 0L);
}

void Transfer::set_method() {
  if (ask_.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (!ask_.body.empty() || ask_.method != "GET") {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_size_));
    if (body_size_ <= kSmallBodyMax) {
      sent_ = body_size_;
      set(CURLOPT_POSTFIELDS, ask_.body.data());
    } else {  // read in place, so that progress is known
      set(CURLOPT_READFUNCTION, &Transfer::on_read);
      set(CURLOPT_READDATA, this);
      set(CURLOPT_SEEKFUNCTION, &Transfer::on_seek);
      set(CURLOPT_SEEKDATA, this);
    }
    set(CURLOPT_CUSTOMREQUEST, ask_.method.c_str());
  }
}

// ---- what libcurl reports

/// There is a connection, and the request is about to be sent.
int Transfer::on_ready(void* self, char*, char*, int, int local_port) {
  auto& transfer = *static_cast<Transfer*>(self);
  transfer.leave_connection(false);
  if (transfer.phase_ != Phase::connecting && !is_idempotent(transfer.ask_.method)) {
    // A kept connection broke before the reply. libcurl would send the request again by itself.
    transfer.refusal_ = Refusal::sent_twice;
    return CURL_PREREQFUNC_ABORT;
  }
  if (transfer.shared_) {
    transfer.port_ = local_port;
    transfer.multi_.join(local_port, transfer.easy_);
  }
  transfer.enter(transfer.sent_ == transfer.body_size_ ? Phase::waiting : Phase::sending);
  return CURL_PREREQFUNC_OK;
}

std::size_t Transfer::on_read(char* to, std::size_t one, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::size_t size = std::min(one * count, transfer.ask_.body.size() - transfer.sent_);
  std::memcpy(to, transfer.ask_.body.data() + transfer.sent_, size);
  transfer.sent_ += size;
  if (transfer.phase_ == Phase::sending && transfer.sent_ == transfer.body_size_) {
    transfer.enter(Phase::waiting);
  } else {
    transfer.progress();
  }
  return size;
}

/// libcurl sends the body again, to another connection.
int Transfer::on_seek(void* self, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (origin != SEEK_SET || offset < 0 || static_cast<std::size_t>(offset) > transfer.ask_.body.size())
    return CURL_SEEKFUNC_CANTSEEK;
  transfer.sent_ = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

std::size_t Transfer::on_header(const char* bytes, std::size_t, std::size_t count, void* self) {
  const bool taken = static_cast<Transfer*>(self)->take_header({bytes, count});
  return taken ? count : 0;
}

bool Transfer::take_header(std::string_view line) {
  head_bytes_ += line.size();
  if (head_bytes_ > kHeadBytesMax) {
    refusal_ = Refusal::head_too_large;
    return false;
  }
  progress();
  if (const auto status = parse_status_line(line)) {
    head_.status = *status;
    head_.headers.clear();
    shared_ = starts_with_nocase(line, "HTTP/2");
    if (!shared_) leave_connection(false);
  } else if (auto header = parse_header(line)) {
    if (!head_done_) head_.headers.push_back(std::move(*header));  // later lines are trailers
  } else if (line == "\r\n" && head_.status >= 200 && !head_done_) {
    take_head_end();
  }
  return true;
}

void Transfer::take_head_end() {
  head_done_ = true;
  enter(Phase::streaming);
  // A reply may take minutes: nothing of the request is kept that long. libcurl doesn't repeat it from here on.
  if (sent_ == body_size_) ask_.body = std::string();
  ask_.headers = Headers();
  wake();
}

std::size_t Transfer::on_body(const char* bytes, std::size_t, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->take_body({bytes, count});
}

std::size_t Transfer::take_body(std::string_view bytes) {
  progress();
  if (shared_ && bytes_.size() + bytes.size() > kUnreadMax) {
    refusal_ = Refusal::unread_too_large;
    return 0;
  }
  if (!shared_ && bytes_.size() >= ReplyStream::kBufferedMax) {
    paused_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  bytes_.append(bytes);
  wake();
  return bytes.size();
}

void Transfer::end(CURLcode code) noexcept {
  turn_ = Permit();
  leave_connection(false);
  ended_ = true;
  code_ = code;
  multi_.reactor().disarm(*this);
  wake();
}

// ---- what its owner does

std::string Transfer::take_bytes() {
  std::string taken = std::exchange(bytes_, {});
  progress();  // while the reader was slow, the server was not
  if (std::exchange(paused_, false)) curl().curl_easy_pause(easy_, CURLPAUSE_CONT);
  return taken;
}

void Transfer::stop() noexcept {
  if (!std::exchange(added_, false)) return;
  multi_.reactor().disarm(*this);
  const bool cancelled = !ended_ && phase_ != Phase::connecting;
  // libcurl (7.88, 8.5 and 8.14 alike) keeps the reset of a stream until its connection has other traffic. A stream
  // that stays makes it send the reset. If none does, the connection is closed: the server would learn nothing else.
  if (cancelled) set(CURLOPT_FORBID_REUSE, 1L);
  multi_.remove(easy_);
  leave_connection(cancelled);
}

void Transfer::leave_connection(bool flush) noexcept {
  if (const int port = std::exchange(port_, 0)) multi_.leave(port, easy_, flush);
}

void Transfer::wake() noexcept {
  if (Arrival* const waiter = std::exchange(waiter_, nullptr)) waiter->complete();
}

// ---- limits

Duration Transfer::limit() const noexcept {
  switch (phase_) {
    case Phase::connecting: return connect_time_;
    case Phase::sending:
    case Phase::waiting: return ask_.first_byte_time_max;
    case Phase::streaming: return ask_.idle_time_max;
  }
  return Duration::zero();
}

void Transfer::enter(Phase phase) noexcept {
  if (phase != Phase::connecting) turn_ = Permit();
  phase_ = phase;
  progress();
  Reactor& reactor = multi_.reactor();
  reactor.disarm(*this);
  if (limit() > Duration::zero()) reactor.arm(*this, since_ + limit());
}

/// Moves the deadline without touching the timer, which arms itself again: this runs for every event.
void Transfer::progress() noexcept { since_ = multi_.reactor().now(); }

void Transfer::fire() noexcept {
  Reactor& reactor = multi_.reactor();
  if (has_bytes() || paused_) progress();  // the reader is the slow one
  if (reactor.now() < since_ + limit()) {
    reactor.arm(*this, since_ + limit());
    return;
  }
  switch (phase_) {
    case Phase::connecting: refusal_ = Refusal::connect_limit; break;
    case Phase::sending:
    case Phase::waiting: refusal_ = Refusal::first_byte_limit; break;
    case Phase::streaming: refusal_ = Refusal::idle_limit; break;
  }
  stop();
  end(CURLE_OPERATION_TIMEDOUT);
}

// ---- errors

Error Transfer::refusal() const {
  switch (refusal_) {
    case Refusal::connect_limit: return connect_limit_passed(shown_, ask_.connect_time_max);
    case Refusal::first_byte_limit: return first_byte_limit_passed(shown_, ask_.first_byte_time_max, sent_, body_size_);
    case Refusal::idle_limit: return idle_limit_passed(shown_, ask_.idle_time_max);
    case Refusal::head_too_large:
      return {Errc::failed, Retry::unknown,
              shown_ + ": the reply's head is larger than " + std::to_string(kHeadBytesMax) + " bytes"};
    case Refusal::unread_too_large:
      return {Errc::failed, Retry::unknown,
              shown_ + ": " + std::to_string(kUnreadMax) + " bytes of the reply are unread: the reader is too slow"};
    case Refusal::sent_twice:
    case Refusal::none: break;
  }
  return {Errc::unavailable, Retry::unknown,
          shown_ + ": the connection broke before the reply: the request may have been executed"};
}

std::optional<Error> Transfer::error() const {
  if (refusal_ != Refusal::none) return refusal();
  if (!ended_ || code_ == CURLE_OK) return std::nullopt;
  if (code_ == CURLE_OPERATION_TIMEDOUT) return connect_limit_passed(shown_, ask_.connect_time_max);
  const std::string_view said = text_[0] != '\0' ? text_.data() : curl().curl_easy_strerror(code_);
  return to_error(code_, phase_ != Phase::connecting, shown_ + ": " + std::string(said));
}

}  // namespace stint::net
