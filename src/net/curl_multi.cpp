#include "net/curl_multi.hpp"

#include "net/http_text.hpp"
#include "net/text.hpp"

#include <algorithm>
#include <sys/socket.h>

namespace stint::net {
namespace {

constexpr std::size_t kHeadBytesMax = 64 << 10;

/// Maps a failure to whether the request may be repeated. Before the request was sent nothing can have happened.
Error to_error(CURLcode code, std::string what) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return {Errc::invalid, Retry::never, std::move(what)};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT: return {Errc::unavailable, Retry::safe, std::move(what)};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE: return {Errc::denied, Retry::never, std::move(what)};
    // We set only one time limit in libcurl: the one for connecting.
    case CURLE_OPERATION_TIMEDOUT: return {Errc::timed_out, Retry::safe, std::move(what)};
    case CURLE_WRITE_ERROR: return {Errc::failed, Retry::unknown, std::move(what)};
    default: return {Errc::unavailable, Retry::unknown, std::move(what)};
  }
}

/// Opens sockets with close-on-exec, which libcurl does not set.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* to) {
  return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

}  // namespace

// ---- the multi handle
// ------------------------------------------------------------------------------------------------

struct CurlMulti::Watch {
  explicit Watch(CurlMulti& owner) : multi(owner), descriptor(owner.reactor_.io()) {}
  CurlMulti& multi;
  asio::posix::stream_descriptor descriptor;
  int wanted = 0;   // CURL_POLL_IN | CURL_POLL_OUT
  int waiting = 0;  // of these, pending waits
  bool gone = false;
};

CurlMulti::CurlMulti(Reactor& reactor) : reactor_(reactor), multi_(curl().curl_multi_init()) {
  const Libcurl& library = curl();
  library.curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlMulti::on_socket);
  library.curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  library.curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlMulti::on_timer);
  library.curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  library.curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kKeptConnectionsMax);
}

CurlMulti::~CurlMulti() {
  STINT_ASSERT(transfers_ == 0 && "a client must outlive its requests");
  curl().curl_multi_cleanup(multi_);
  for (const auto& watch : watches_) {
    watch->gone = true;
    watch->descriptor.release();
  }
  if (kick_ == nullptr) return;
  kick_->multi = nullptr;
  if (reactor_.closing()) delete kick_;  // its queue is discarded
}

bool CurlMulti::add(CURL* easy) noexcept {
  if (curl().curl_multi_add_handle(multi_, easy) != CURLM_OK) return false;
  ++transfers_;
  return true;
}

void CurlMulti::remove(CURL* easy) noexcept {
  --transfers_;
  curl().curl_multi_remove_handle(multi_, easy);
}

int CurlMulti::on_socket(CURL*, curl_socket_t socket, int what, void* self, void* watch) {
  return static_cast<CurlMulti*>(self)->watch(socket, what, static_cast<Watch*>(watch)) ? 0 : -1;
}

/// False: the socket can't be watched, and libcurl fails its requests.
bool CurlMulti::watch(curl_socket_t socket, int what, Watch* watch) {
  if (what == CURL_POLL_REMOVE) {
    if (watch == nullptr) return true;
    watch->gone = true;
    watch->descriptor.release();  // owned by libcurl, which closes it now
    std::erase_if(watches_, [watch](const auto& other) { return other.get() == watch; });
    return true;
  }
  std::shared_ptr<Watch> shared;
  if (watch == nullptr) {
    // shared_ptr: shared with the handlers of its waits, which Asio keeps a moment longer.
    shared = std::make_shared<Watch>(*this);
    boost::system::error_code error;
    shared->descriptor.assign(socket, error);
    if (error) return false;
    watches_.push_back(shared);
    curl().curl_multi_assign(multi_, socket, shared.get());
  } else {
    shared = *std::ranges::find_if(watches_, [watch](const auto& other) { return other.get() == watch; });
  }
  shared->wanted = what;
  wait(shared, CURL_POLL_IN);
  wait(shared, CURL_POLL_OUT);
  return true;
}

void CurlMulti::wait(const std::shared_ptr<Watch>& watch, int direction) {
  if ((watch->wanted & direction) == 0 || (watch->waiting & direction) != 0) return;
  watch->waiting |= direction;
  const auto kind = direction == CURL_POLL_IN ? asio::posix::stream_descriptor::wait_read
                                              : asio::posix::stream_descriptor::wait_write;
  watch->descriptor.async_wait(kind, [watch, direction](boost::system::error_code error) {
    watch->waiting &= ~direction;
    if (watch->gone || (watch->wanted & direction) == 0) return;
    const int events = direction == CURL_POLL_IN ? CURL_CSELECT_IN : CURL_CSELECT_OUT;
    const int handle = watch->descriptor.native_handle();
    watch->multi.act(handle, error ? CURL_CSELECT_ERR : events);
    if (!watch->gone && !error) wait(watch, direction);
  });
}

int CurlMulti::on_timer(CURLM*, long timeout, void* self) {
  auto& multi = *static_cast<CurlMulti*>(self);
  multi.reactor_.disarm(multi);
  if (timeout == 0) {
    if (multi.kick_ != nullptr) return 0;
    if (multi.reactor_.closing()) return 0;
    multi.kick_ = new Kick;
    multi.kick_->multi = &multi;
    multi.reactor_.post(*multi.kick_);
  } else if (timeout > 0) {
    multi.reactor_.arm(multi, multi.reactor_.now() + std::chrono::milliseconds(timeout));
  }
  return 0;
}

void CurlMulti::Kick::run() noexcept {
  const std::unique_ptr<Kick> self(this);
  if (multi == nullptr) return;
  multi->kick_ = nullptr;
  multi->act(CURL_SOCKET_TIMEOUT, 0);
}

void CurlMulti::Kick::dropped() noexcept {
  const std::unique_ptr<Kick> self(this);
  if (multi != nullptr) multi->kick_ = nullptr;
}

void CurlMulti::act(curl_socket_t socket, int events) noexcept {
  int running = 0;
  curl().curl_multi_socket_action(multi_, socket, events, &running);
  int left = 0;
  while (const CURLMsg* message = curl().curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    char* transfer = nullptr;
    curl().curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    reinterpret_cast<Transfer*>(transfer)->end(message->data.result);
  }
}

// ---- one request
// -----------------------------------------------------------------------------------------------------

Transfer::Transfer(CurlMulti& multi, Ask ask) : multi_(multi), ask_(std::move(ask)), easy_(curl().curl_easy_init()) {}

Transfer::~Transfer() {
  STINT_ASSERT(waiter_ == nullptr || multi_.reactor().closing());
  if (added_) multi_.remove(easy_);  // closes a socket whose reply is incomplete
  curl().curl_easy_cleanup(easy_);
  curl().curl_slist_free_all(headers_);
}

Result<std::unique_ptr<Transfer>> Transfer::start(CurlMulti& multi, Ask ask) {
  std::unique_ptr<Transfer> transfer(new Transfer(multi, std::move(ask)));
  STINT_CHECK(transfer->prepare());
  if (!multi.add(transfer->easy_)) return fail(Errc::failed, "libcurl did not accept the request");
  transfer->added_ = true;
  return transfer;
}

bool Transfer::set_headers() {
  bool has_type = false;
  for (const auto& [name, value] : ask_.headers) {
    if (name.empty() || !is_header_text(name) || !is_header_text(value)) return false;
    has_type = has_type || equal_nocase(name, "content-type");
    // libcurl writes a header without a value if it ends in a semicolon; with a colon it would remove the header.
    const std::string line = value.empty() ? name + ";" : name + ": " + value;
    headers_ = curl().curl_slist_append(headers_, line.c_str());
  }
  if (!has_type) headers_ = curl().curl_slist_append(headers_, "Content-Type:");
  headers_ =
      curl().curl_slist_append(headers_, "Expect:");  // else libcurl waits a second for servers that don't support it
  set(CURLOPT_HTTPHEADER, headers_);
  return true;
}

Result<> Transfer::prepare() {
  if (!is_header_text(ask_.url) || !is_header_text(ask_.method) || !set_headers()) {
    return fail(Errc::invalid, shown_url(ask_.url) + ": the URL, method or a header contains a line break");
  }
  set(CURLOPT_URL, ask_.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  set(CURLOPT_ERRORBUFFER, text_.data());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // else a cancel waits for name resolution: 6 s were measured
  set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(ask_.connect_time_max).count()));
  set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(CURLOPT_WRITEDATA, this);
  if (is_loopback_url(ask_.url)) set(CURLOPT_PROXY, "");
  if (ask_.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (!ask_.body.empty() || ask_.method != "GET") {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, ask_.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(ask_.body.size()));
    set(CURLOPT_CUSTOMREQUEST, ask_.method.c_str());
  }
  return {};
}

std::size_t Transfer::on_header(const char* bytes, std::size_t, std::size_t count, void* self) {
  const bool taken = static_cast<Transfer*>(self)->take_header({bytes, count});
  return taken ? count : 0;
}

bool Transfer::take_header(std::string_view line) {
  head_bytes_ += line.size();
  if (head_bytes_ > kHeadBytesMax) return false;
  if (const auto status = parse_status_line(line)) {
    head_.status = *status;
    head_.headers.clear();
  } else if (auto header = parse_header(line)) {
    if (!head_done_) head_.headers.push_back(std::move(*header));  // later lines are trailers
  } else if (line == "\r\n" && head_.status >= 200) {
    head_done_ = true;
    wake();
  }
  return true;
}

std::size_t Transfer::on_body(const char* bytes, std::size_t, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.bytes_.size() >= ReplyStream::kBufferedMax) {
    transfer.paused_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  transfer.bytes_.append(bytes, count);
  transfer.wake();
  return count;
}

std::string Transfer::take_bytes() {
  std::string taken = std::exchange(bytes_, {});
  if (std::exchange(paused_, false)) curl().curl_easy_pause(easy_, CURLPAUSE_CONT);
  return taken;
}

void Transfer::end(CURLcode code) noexcept {
  ended_ = true;
  code_ = code;
  wake();
}

void Transfer::wake() noexcept {
  if (Arrival* const waiter = std::exchange(waiter_, nullptr)) waiter->complete();
}

std::optional<Error> Transfer::error() const {
  if (!ended_ || code_ == CURLE_OK) return std::nullopt;
  const std::string_view said = text_[0] != '\0' ? text_.data() : curl().curl_easy_strerror(code_);
  if (code_ == CURLE_WRITE_ERROR) return Error(Errc::failed, shown_url(ask_.url) + ": the reply's head is too large");
  return to_error(code_, shown_url(ask_.url) + ": " + std::string(said));
}

}  // namespace stint::net
