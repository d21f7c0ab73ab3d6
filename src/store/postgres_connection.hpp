/// One connection to PostgreSQL, on the reactor: no call blocks. Failures are values; this class is the only place
/// that translates SQLSTATE. The error of a lost connection tells whether the statement may have taken effect:
/// Retry::safe, it never began; Retry::unknown, it may have.
///
/// One statement at a time. Cancelling a statement closes the connection. The session keeps no state between two
/// statements except inside a transaction, so a pooler may stand in between.
#pragma once

#include "domain/numbers.hpp"
#include "stint/asio.hpp"
#include "stint/error.hpp"
#include "stint/retry_after.hpp"
#include "stint/task.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct pg_conn;
struct pg_result;

namespace stint::store {

/// The parameters of one statement, by position. Invalid UTF-8 is replaced by U+FFFD: PostgreSQL would refuse the
/// whole statement.
class Parameters {
 public:
  Parameters& text(std::string_view value);
  Parameters& number(std::int64_t value);
  Parameters& number(std::optional<std::int64_t> value);
  template <class Tag>
  Parameters& number(domain::Number<Tag> value) {
    return number(value.value);
  }
  template <class Tag>
  Parameters& number(std::optional<domain::Number<Tag>> value) {
    return number(domain::value_of(value));
  }
  Parameters& flag(bool value);
  Parameters& time(std::optional<WallTime> value);
  Parameters& bytes(std::string value);
  Parameters& texts(const std::vector<std::string>& values);
  Parameters& numbers(const std::vector<std::optional<std::int64_t>>& values);
  /// A number that refresh() evaluates again before each sending. At most one per statement.
  Parameters& late(std::function<std::optional<std::int64_t>()> value);
  void refresh();

 private:
  friend class PostgresConnection;
  struct Value {
    std::string text;
    bool is_null = false;
    bool is_bytes = false;
  };
  Parameters& add(std::string text) {
    values_.push_back({std::move(text), false, false});
    return *this;
  }
  std::vector<Value> values_;
  std::function<std::optional<std::int64_t>()> late_;
  std::size_t late_at_ = 0;
};

/// The answer of a statement.
class PostgresRows {
 public:
  PostgresRows() noexcept = default;
  explicit PostgresRows(pg_result* result) : result_(result) {}

  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] bool is_null(int row, int column) const noexcept;
  [[nodiscard]] std::string text(int row, int column) const;  ///< NULL is empty
  [[nodiscard]] std::int64_t number(int row, int column) const noexcept;
  [[nodiscard]] std::optional<std::int64_t> maybe(int row, int column) const noexcept;
  template <class Kind>
  [[nodiscard]] std::optional<Kind> maybe(int row, int column) const noexcept {
    return domain::number_of<Kind>(maybe(row, column));
  }
  [[nodiscard]] bool flag(int row, int column) const noexcept;
  [[nodiscard]] std::optional<WallTime> time(int row, int column) const noexcept;
  [[nodiscard]] std::string bytes(int row, int column) const;

 private:
  struct Clear {
    void operator()(pg_result* result) const noexcept;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

/// Translates a SQLSTATE; those that begin with ST come from Stint's own functions.
[[nodiscard]] Error postgres_error(std::string_view state, std::string what);

class PostgresConnection {
 public:
  /// `url` is postgresql://… or the `key=value` form. Host names are resolved without blocking.
  static Task<Result<std::unique_ptr<PostgresConnection>>> open(Reactor& reactor, std::string url,
                                                                Duration patience = kConnectMax);
  /// For name lookup, connection and handshake together. A server that accepts but does not answer counts as
  /// unreachable.
  static constexpr Duration kConnectMax = std::chrono::seconds(10);

  /// Runs one statement.
  Task<Result<PostgresRows>> run(std::string_view sql, const Parameters& parameters);
  /// Runs one or more statements without parameters and answers.
  Task<Result<>> run_script(std::string sql);

  /// Waits for a notification that was not reported yet; after LISTEN. Cancellation leaves the connection usable.
  Task<Result<>> wait_for_notification();

  /// False: the server has closed it, or a statement was cancelled halfway.
  [[nodiscard]] bool is_usable();
  [[nodiscard]] int server_version() const noexcept;  ///< in libpq's format: 150018

 private:
  static Task<Result<std::unique_ptr<PostgresConnection>>> open_now(Reactor& reactor, std::string url);
  class UnderWay;
  struct Finish {
    void operator()(pg_conn* connection) const noexcept;
  };
  explicit PostgresConnection(Reactor& reactor) : reactor_(reactor) {}
  Result<> watch_socket();
  void take_notifications() noexcept;
  Task<Result<>> handshake();
  Task<Result<>> flush();
  Task<Result<PostgresRows>> receive();
  [[nodiscard]] Error lost(Retry retry) const;
  void close() noexcept;

  Reactor& reactor_;
  std::unique_ptr<pg_conn, Finish> connection_;
  bool notified_ = false;  // since wait_for_notification() last reported it
  std::optional<asio::posix::stream_descriptor>
      socket_;  // a copy of libpq's descriptor, which libpq may close at any time
};

}  // namespace stint::store
