#include "net/http_client.hpp"

#include "net/curl_multi.hpp"
#include "net/http_text.hpp"
#include "net/text.hpp"

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

class HttpClient::Impl {
 public:
  explicit Impl(Reactor& on) : reactor(on) {}
  Reactor& reactor;
  std::unique_ptr<CurlMulti> multi;  // made with the first request: only then is libcurl loaded
};

HttpClient::HttpClient(Reactor& reactor) : impl_(std::make_unique<Impl>(reactor)) {}
HttpClient::~HttpClient() = default;

Task<Result<ReplyStream>> HttpClient::open(Ask ask) {
  STINT_CO_CHECK(load_libcurl());
  if (!impl_->multi) impl_->multi = std::make_unique<CurlMulti>(impl_->reactor);
  STINT_CO_TRY(std::unique_ptr<Transfer> transfer, Transfer::start(*impl_->multi, std::move(ask)));
  while (!transfer->ended() && !transfer->head_done()) co_await transfer->arrival();
  if (const auto error = transfer->error(); error && !transfer->head_done()) co_return fail(*error);
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
