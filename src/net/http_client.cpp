#include "net/http_client.hpp"

#include "net/http_text.hpp"
#include "net/text.hpp"
#include "net/transfer.hpp"
#include "net/transfer_error.hpp"

#include <cstdlib>
#include <map>

namespace stint::net {

std::optional<std::string_view> ReplyHead::header(std::string_view name) const noexcept {
  for (const auto& [key, value] : headers) {
    if (equal_nocase(key, name)) return value;
  }
  return std::nullopt;
}

ReplyStream::ReplyStream(std::unique_ptr<Transfer> transfer) noexcept : transfer_(std::move(transfer)) {}
ReplyStream::ReplyStream(ReplyStream&&) noexcept = default;
ReplyStream& ReplyStream::operator=(ReplyStream&&) noexcept = default;
ReplyStream::~ReplyStream() = default;

const ReplyHead& ReplyStream::head() const noexcept { return transfer_->head(); }

Task<Result<std::string>> ReplyStream::next() {
  while (!transfer_->ended() && !transfer_->has_bytes()) co_await transfer_->arrival();
  if (transfer_->has_bytes()) co_return transfer_->take_bytes();
  if (const auto error = transfer_->error()) co_return fail(*error);
  co_return std::string();
}

Variables ClientOptions::process_variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): this program sets none
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

class HttpClient::Impl {
 public:
  Impl(Reactor& on, ClientOptions by) : reactor(on), options(std::move(by)), names(on, options.lookup) {}

  /// Loads libcurl with the first request.
  Result<> begin() {
    if (multi) return {};
    STINT_CHECK(load_libcurl());
    MultiOptions bounds;
    bounds.connections_per_host_max = options.connections_per_host_max;
    bounds.connections_max = options.connections_max;
    bounds.connections_kept_max = options.connections_kept_max;
    bounds.streams_per_connection_max = options.streams_per_connection_max;
    STINT_TRY(multi, CurlMulti::make(reactor, bounds));
    return {};
  }
  Route route_of(const Ask& ask) const {
    Route route;
    route.proxy = options.proxy ? *options.proxy : proxy_of(ask.url, options.variables);
    route.ca_file = options.ca_file;
    if (route.ca_file.empty()) route.ca_file = options.variables("SSL_CERT_FILE").value_or("");
    route.connect_time = ask.connect_time_max;
    route.http2 = options.http2;
    route.prior_knowledge = options.http2_prior_knowledge;
    return route;
  }
  Task<Result<>> resolve(const Ask& ask, Route& route);
  /// Waits for its turn to connect, which requests to servers of HTTP/1.1 and without TLS have at once.
  Task<Result<Permit>> turn(const Ask& ask, Route& route);
  Semaphore* line_of(const Ask& ask, const Route& route);

  Reactor& reactor;
  const ClientOptions options;
  NameLookup names;
  std::unique_ptr<CurlMulti> multi;
  static constexpr std::size_t kOriginsMax = 256;       // beyond them, nothing waits for its turn
  std::map<std::string, Semaphore, std::less<>> lines;  // by server and proxy: requests that connect
};

/// Resolves the name before libcurl would: in a way that a cancel needn't wait for, once for many requests.
Task<Result<>> HttpClient::Impl::resolve(const Ask& ask, Route& route) {
  const auto name = name_to_resolve(ask.url, route.proxy);
  if (!name) co_return {};
  const TimePoint began = reactor.now();
  const bool limited = ask.connect_time_max > Duration::zero();
  const Deadline deadline = limited ? Deadline::after(began, ask.connect_time_max) : Deadline();
  auto addresses = co_await with_deadline(deadline, names.find(name->host));
  if (!addresses && addresses.error() == Errc::timed_out) {
    co_return fail(lookup_limit_passed(shown_url(ask.url), name->host, ask.connect_time_max));
  }
  if (!addresses) {
    const Error& error = addresses.error();
    co_return fail(Error(error.code(), error.retry(), shown_url(ask.url) + ": " + std::string(error.what())));
  }
  route.pinned = "+" + name->host + ":" + std::to_string(name->port) + ":";  // +: libcurl may forget it again
  for (std::string_view separator; const std::string& address : *addresses) {
    route.pinned += std::string(separator) + (address.contains(':') ? "[" + address + "]" : address);
    separator = ",";
  }
  if (limited) route.connect_time = std::max<Duration>(deadline.when() - reactor.now(), std::chrono::milliseconds(1));
  co_return {};
}

/// Null: it need not wait.
Semaphore* HttpClient::Impl::line_of(const Ask& ask, const Route& route) {
  if (!route.http2 || !starts_with_nocase(ask.url, "https:")) return nullptr;
  const auto server = host_port_of(ask.url, 443);
  if (!server) return nullptr;
  const std::string key = server->host + ":" + std::to_string(server->port) + " " + route.proxy;
  if (lines.size() >= kOriginsMax && !lines.contains(key)) return nullptr;
  return &lines.try_emplace(key, "connections to " + server->host, kConnectingMax).first->second;
}

Task<Result<Permit>> HttpClient::Impl::turn(const Ask& ask, Route& route) {
  Semaphore* const line = line_of(ask, route);
  if (line == nullptr) co_return Permit();
  const TimePoint began = reactor.now();
  const bool limited = route.connect_time > Duration::zero();
  const Deadline deadline = limited ? Deadline::after(began, route.connect_time) : Deadline();
  const auto wait = [](Semaphore& at) -> Task<Result<Permit>> { co_return co_await at.acquire(); };
  auto permit = co_await with_deadline(deadline, wait(*line));
  if (!permit) co_return fail(connect_limit_passed(shown_url(ask.url), ask.connect_time_max));
  if (limited) route.connect_time = std::max<Duration>(deadline.when() - reactor.now(), std::chrono::milliseconds(1));
  co_return permit;
}

HttpClient::HttpClient(Reactor& reactor, ClientOptions options)
    : impl_(std::make_unique<Impl>(reactor, std::move(options))) {}
HttpClient::~HttpClient() = default;

Task<Result<ReplyStream>> HttpClient::open(Ask ask) {
  STINT_CO_CHECK(impl_->begin());
  Route route = impl_->route_of(ask);
  STINT_CO_CHECK(co_await impl_->resolve(ask, route));
  STINT_CO_TRY(Permit turn, co_await impl_->turn(ask, route));
  Semaphore* const line = impl_->line_of(ask, route);
  STINT_CO_TRY(std::unique_ptr<Transfer> transfer,
               Transfer::start(*impl_->multi, std::move(ask), route, std::move(turn)));
  while (!transfer->ended() && !transfer->head_done()) co_await transfer->arrival();
  if (const auto error = transfer->error(); error && !transfer->head_done()) co_return fail(*error);
  // A server of HTTP/1.1 has no connections to share: from now on nothing waits for them.
  if (line != nullptr && !transfer->is_http2()) (void)line->set_capacity(Semaphore::kCapacityMax);
  co_return ReplyStream(std::move(transfer));
}

Task<Result<Reply>> HttpClient::ask(Ask ask) {
  const std::size_t most = ask.reply_bytes_max;
  const std::string shown = shown_url(ask.url);
  STINT_CO_TRY(ReplyStream stream, co_await open(std::move(ask)));
  Reply reply;
  while (true) {
    STINT_CO_TRY(const std::string bytes, co_await stream.next());
    if (bytes.empty()) break;
    if (reply.body.size() + bytes.size() > most) {
      co_return fail(Errc::failed, shown + ": the reply is longer than " + std::to_string(most) + " bytes");
    }
    reply.body += bytes;
  }
  static_cast<ReplyHead&>(reply) = stream.head();
  co_return reply;
}

}  // namespace stint::net
