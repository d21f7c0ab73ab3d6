/// The port through which calls reach a provider. `http_transport.hpp` implements it with libcurl; tests script it in
/// virtual time.
#pragma once

#include "model/dialect.hpp"
#include "stint/error.hpp"
#include "stint/task.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace stint::model {

struct WireRequest {
  std::string url;
  Headers headers;  ///< with the credential: never logged
  std::string body;
  Duration connect_time_max = std::chrono::seconds(10);
};

/// An answer of which the head has arrived. Its destructor ends it: the socket or the stream is closed when it returns.
class Exchange {
 public:
  Exchange() = default;
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] virtual int status() const noexcept = 0;
  [[nodiscard]] virtual const Headers& headers() const noexcept = 0;
  /// The bytes received since the last call; empty at the end of the body.
  [[nodiscard]] virtual Task<Result<std::string>> next() = 0;
};

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Posts the request; returns with the head of the answer, whatever its status. A failure with Retry::safe: nothing
  /// was sent. If the chain is stopped, the connection is closed before the stop passes on.
  [[nodiscard]] virtual Task<Result<std::unique_ptr<Exchange>>> open(WireRequest request) = 0;
};

}  // namespace stint::model
