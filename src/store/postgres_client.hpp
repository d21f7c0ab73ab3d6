/// A connection to PostgreSQL that reconnects when it is lost. Statements take turns on it in FIFO order. `patience`
/// bounds the total time of a statement: its turn, the connection and the answer. Own thread only; no statement may
/// be under way when it is destroyed.
#pragma once

#include "stint/retry_core.hpp"
#include "stint/semaphore.hpp"
#include "stint/since_boot.hpp"
#include "store/postgres_connection.hpp"

#include <functional>

namespace stint::store {

struct PostgresOptions {
  Duration lease = std::chrono::seconds(15);     ///< of a node, from its last heartbeat
  Duration patience = std::chrono::seconds(10);  ///< for one statement
  Duration migration = std::chrono::minutes(5);  ///< for all that open() does
  std::function<std::uint64_t()>
      random;  ///< jitter for the back-off of a fleet that lost its server; none: the longest wait
  std::function<Duration()> since_boot = stint::since_boot;  ///< measures the ends of this node's own leases
  std::function<Duration()> elapsed = stint::since_boot;     ///< detects jumps of the database's clock
};

class PostgresClient {
 public:
  static constexpr BackoffRange kBackoff{.base = std::chrono::milliseconds(50), .cap = std::chrono::seconds(2)};
  static constexpr int kRepeatsMax = 3;

  /// When the client repeats a statement by itself.
  enum class Repeat : std::uint8_t {
    if_not_done,  ///< it was rolled back, or never began
    always,       ///< it only reads, or is idempotent
  };

  PostgresClient(Reactor& reactor, std::string name, std::string url, PostgresOptions options)
      : reactor_(reactor), url_(std::move(url)), options_(std::move(options)), turn_(std::move(name), 1) {}

  /// `sql` is a literal. `guard` is called directly before each sending, and may refuse.
  using Guard = std::function<Result<>()>;
  Task<Result<PostgresRows>> run(std::string_view sql, Parameters parameters, Repeat repeat = Repeat::if_not_done,
                                 Guard guard = {});
  struct Statement {
    std::string_view sql;
    Parameters parameters;
  };
  /// Several statements that only read, all at the same moment: in one transaction, between `begin` and `end`.
  Task<Result<std::vector<PostgresRows>>> read_together(std::string_view begin, std::vector<Statement> statements,
                                                        std::string_view end);

 private:
  class Transaction;
  Task<Result<std::vector<PostgresRows>>> attempt(std::string_view begin, std::vector<Statement>& statements,
                                                  std::string_view end);
  Task<Result<std::vector<PostgresRows>>> read_once(std::string_view begin, std::vector<Statement>& statements,
                                                    std::string_view end);
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
