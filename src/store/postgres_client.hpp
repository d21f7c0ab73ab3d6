/// A connection to PostgreSQL that is made anew when it is lost; statements take turns on it, first come, first served.
/// Each has a bounded time in all, for its turn, a connection and the answer: `patience`. Own thread only; must be at
/// rest when it is destroyed.
#pragma once

#include "stint/retry_core.hpp"
#include "stint/semaphore.hpp"
#include "stint/since_boot.hpp"
#include "store/postgres_connection.hpp"

#include <functional>

namespace stint::store {

struct PostgresOptions {
  Duration lease = std::chrono::seconds(15);     ///< of a node, from its last beat
  Duration patience = std::chrono::seconds(10);  ///< for one statement
  Duration migration = std::chrono::minutes(5);  ///< for all that open() does
  std::function<std::uint64_t()> random;  ///< for the back-off of a fleet that lost its server; none: the longest
  std::function<Duration()> since_boot = stint::since_boot;  ///< by which it knows that its own leases are over
  std::function<Duration()> elapsed = stint::since_boot;     ///< by which it knows that the database's clock has jumped
};

class PostgresClient {
 public:
  static constexpr BackoffRange kBackoff{.base = std::chrono::milliseconds(50), .cap = std::chrono::seconds(2)};
  static constexpr int kRepeatsMax = 3;

  /// When a statement may be repeated by itself.
  enum class Repeat : std::uint8_t {
    if_not_done,  ///< it was rolled back, or never began
    always,       ///< it only looks, or twice is as good as once
  };

  PostgresClient(Reactor& reactor, std::string name, std::string url, PostgresOptions options)
      : reactor_(reactor), url_(std::move(url)), options_(std::move(options)), turn_(std::move(name), 1) {}

  /// `sql` is a literal. `guard` is asked at the last moment before each sending, and may refuse.
  using Guard = std::function<Result<>()>;
  Task<Result<PostgresRows>> run(std::string_view sql, Parameters parameters, Repeat repeat = Repeat::if_not_done,
                                 Guard guard = {});

 private:
  Task<Result<PostgresRows>> attempt(std::string_view sql, Parameters& parameters, Repeat repeat, const Guard& guard,
                                     bool& begun);
  Task<Result<>> connect();

  Reactor& reactor_;
  const std::string url_;
  const PostgresOptions options_;
  Semaphore turn_;
  std::unique_ptr<PostgresConnection> connection_;
  std::optional<Error> last_error_;  // why there is no connection
};

}  // namespace stint::store
