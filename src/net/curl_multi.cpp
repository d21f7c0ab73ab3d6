#include "net/curl_multi.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>

namespace stint::net {

Result<std::unique_ptr<CurlMulti>> CurlMulti::make(Reactor& reactor, const MultiOptions& options) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) {
    return fail(
        Error(Errc::unavailable, Retry::safe, std::string("can't make HTTP requests: ") + std::strerror(errno)));
  }
  return std::unique_ptr<CurlMulti>(new CurlMulti(reactor, options, epoll));
}

CurlMulti::CurlMulti(Reactor& reactor, const MultiOptions& options, int epoll)
    : reactor_(reactor),
      multi_(curl().curl_multi_init()),
      epoll_(reactor.io(), epoll),
      self_(std::make_shared<CurlMulti*>(this)) {
  const auto set = [this](CURLMoption option, auto value) { curl().curl_multi_setopt(multi_, option, value); };
  set(CURLMOPT_SOCKETFUNCTION, &CurlMulti::on_socket);
  set(CURLMOPT_SOCKETDATA, this);
  set(CURLMOPT_TIMERFUNCTION, &CurlMulti::on_timer);
  set(CURLMOPT_TIMERDATA, this);
  set(CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
  set(CURLMOPT_MAXCONNECTS, options.connections_kept_max);
  set(CURLMOPT_MAX_HOST_CONNECTIONS, options.connections_per_host_max);
  set(CURLMOPT_MAX_TOTAL_CONNECTIONS, options.connections_max);
  set(CURLMOPT_MAX_CONCURRENT_STREAMS, options.streams_per_connection_max);
}

CurlMulti::~CurlMulti() {
  STINT_ASSERT(transfers_ == 0 && "a client must outlive its requests");
  curl().curl_multi_cleanup(multi_);
  *self_ = nullptr;
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

void CurlMulti::join(int port, CURL* easy) { streams_[port].push_back(easy); }

void CurlMulti::leave(int port, CURL* easy, bool flush) {
  const auto found = streams_.find(port);
  if (found == streams_.end()) return;
  std::erase(found->second, easy);
  if (found->second.empty()) {
    streams_.erase(found);
  } else if (flush && !reactor_.closing()) {
    if (unflushed_.empty() || unflushed_.back() != port) unflushed_.push_back(port);
    kick();
  }
}

/// Pausing a stream makes libcurl send all that its connection holds back. It is not paused otherwise.
void CurlMulti::flush(int port) noexcept {
  const auto found = streams_.find(port);
  if (found == streams_.end()) return;
  CURL* const stays = found->second.front();
  curl().curl_easy_pause(stays, CURLPAUSE_RECV);
  curl().curl_easy_pause(stays, CURLPAUSE_CONT);
}

int CurlMulti::on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
  return static_cast<CurlMulti*>(self)->watch(socket, what, known != nullptr) ? 0 : -1;
}

/// False: the socket can't be watched, and libcurl fails its requests.
bool CurlMulti::watch(curl_socket_t socket, int what, bool known) noexcept {
  const int set = epoll_.native_handle();
  if (what == CURL_POLL_REMOVE) {
    if (!known) return true;
    if (--sockets_ == 0 && waiting_) epoll_.cancel();
    (void)::epoll_ctl(set, EPOLL_CTL_DEL, socket, nullptr);  // fails if libcurl has closed it, which removes it too
    return true;
  }
  epoll_event event{};
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  event.data.fd = socket;
  if (::epoll_ctl(set, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event) != 0) return false;
  if (!known) {
    ++sockets_;
    curl().curl_multi_assign(multi_, socket, this);  // any value but null: from now on it is known
  }
  if (!waiting_) wait();
  return true;
}

/// Only while there are sockets: a wait would keep a foreign io_context running.
void CurlMulti::wait() {
  waiting_ = true;
  epoll_.async_wait(asio::posix::stream_descriptor::wait_read, [self = self_](boost::system::error_code error) {
    if (*self == nullptr) return;
    CurlMulti& multi = **self;
    multi.waiting_ = false;
    if (!error) multi.take_events();
    if (multi.sockets_ > 0 && !multi.waiting_) multi.wait();
  });
}

void CurlMulti::take_events() {
  std::array<epoll_event, kEventsPerWake> events;
  const int count = ::epoll_wait(epoll_.native_handle(), events.data(), kEventsPerWake, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint32_t seen = events[static_cast<std::size_t>(i)].events;
    int what = 0;
    if ((seen & EPOLLIN) != 0) what |= CURL_CSELECT_IN;
    if ((seen & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
    if ((seen & (EPOLLERR | EPOLLHUP)) != 0) what |= CURL_CSELECT_ERR;
    // If libcurl has closed it meanwhile and opened another of this number, that one is looked at for nothing.
    act(events[static_cast<std::size_t>(i)].data.fd, what);
  }
}

int CurlMulti::on_timer(CURLM*, long timeout, void* self) {
  auto& multi = *static_cast<CurlMulti*>(self);
  multi.reactor_.disarm(multi);
  if (timeout == 0) {
    multi.kick();
  } else if (timeout > 0) {
    multi.reactor_.arm(multi, multi.reactor_.now() + std::chrono::milliseconds(timeout));
  }
  return 0;
}

void CurlMulti::kick() noexcept {
  if (kick_ != nullptr || reactor_.closing()) return;
  kick_ = new Kick;
  kick_->multi = this;
  reactor_.post(*kick_);
}

void CurlMulti::kicked() noexcept {
  kick_ = nullptr;
  act(CURL_SOCKET_TIMEOUT, 0);
  for (const int port : std::exchange(unflushed_, {})) flush(port);
}

void CurlMulti::Kick::run() noexcept {
  const std::unique_ptr<Kick> self(this);
  if (multi != nullptr) multi->kicked();
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
    char* client = nullptr;
    curl().curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &client);
    reinterpret_cast<MultiClient*>(client)->end(message->data.result);
  }
}

}  // namespace stint::net
