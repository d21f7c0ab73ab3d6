/// `Transport` over libcurl (`net/http_client.hpp`). Used on the reactor's thread only.
#pragma once

#include "model/transport.hpp"
#include "net/http_client.hpp"

#include <memory>

namespace stint::model {

class HttpTransport final : public Transport {
 public:
  /// The client must outlive it and its exchanges.
  explicit HttpTransport(net::HttpClient& client) noexcept : client_(client) {}
  [[nodiscard]] Task<Result<std::unique_ptr<Exchange>>> open(WireRequest request) override;

 private:
  net::HttpClient& client_;
};

}  // namespace stint::model
