#include "model/http_transport.hpp"

#include <utility>

namespace stint::model {
namespace {

class HttpExchange final : public Exchange {
 public:
  explicit HttpExchange(net::ReplyStream stream) noexcept : stream_(std::move(stream)) {}
  [[nodiscard]] int status() const noexcept override { return stream_.head().status; }
  [[nodiscard]] const Headers& headers() const noexcept override { return stream_.head().headers; }
  [[nodiscard]] Task<Result<std::string>> next() override { return stream_.next(); }

 private:
  net::ReplyStream stream_;
};

}  // namespace

Task<Result<std::unique_ptr<Exchange>>> HttpTransport::open(WireRequest request) {
  net::Ask ask;
  ask.method = "POST";
  ask.url = std::move(request.url);
  ask.headers = std::move(request.headers);
  ask.body = std::move(request.body);
  ask.connect_time_max = request.connect_time_max;
  STINT_CO_TRY(net::ReplyStream stream, co_await client_.open(std::move(ask)));
  co_return std::make_unique<HttpExchange>(std::move(stream));
}

}  // namespace stint::model
