/// One connection to PostgreSQL, on the reactor: nothing here blocks. Failures are values; SQLSTATE is turned into them
/// once, here. A lost connection says whether the statement may have been carried out: Retry::safe, it never began;
/// Retry::unknown, nobody can tell.
///
/// One statement at a time. Who is stopped while one is under way leaves the connection closed. Nothing is kept in the
/// session between two statements but inside of a transaction, so that a pooler may stand between.
#pragma once

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

/// The parameters of one statement, by position. Text that is no UTF-8 gets U+FFFD where it is broken: PostgreSQL would
/// refuse the whole statement.
class Parameters {
 public:
  Parameters& text(std::string_view value);
  Parameters& number(std::int64_t value);
  Parameters& number(std::optional<std::int64_t> value);
  Parameters& flag(bool value);
  Parameters& time(std::optional<WallTime> value);
  Parameters& bytes(std::string value);
  Parameters& texts(const std::vector<std::string>& values);
  Parameters& numbers(const std::vector<std::optional<std::int64_t>>& values);
  /// A number that is asked for anew before each sending: refresh(). One for all.
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

/// What a statement answered.
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
  [[nodiscard]] bool flag(int row, int column) const noexcept;
  [[nodiscard]] std::optional<WallTime> time(int row, int column) const noexcept;
  [[nodiscard]] std::string bytes(int row, int column) const;

 private:
  struct Clear {
    void operator()(pg_result* result) const noexcept;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

/// What a SQLSTATE means for who asked; those that begin with ST are our own functions'.
[[nodiscard]] Error postgres_error(std::string_view state, std::string what);

class PostgresConnection {
 public:
  /// `url` is postgresql://… or the `key=value` form. Names of hosts are looked up without blocking.
  static Task<Result<std::unique_ptr<PostgresConnection>>> open(Reactor& reactor, std::string url,
                                                                Duration patience = kConnectMax);
  /// For the lookup of the name, the connection and the handshake. A server that accepts and stays silent is none.
  static constexpr Duration kConnectMax = std::chrono::seconds(10);

  /// One statement.
  Task<Result<PostgresRows>> run(std::string_view sql, const Parameters& parameters);
  /// One or more, without parameters and answers.
  Task<Result<>> run_script(std::string sql);

  /// Until a notification has come that was not heard of; after LISTEN. Who is stopped leaves it usable.
  Task<Result<>> hear();

  /// False: the other side has closed it, or a statement was stopped halfway.
  [[nodiscard]] bool is_usable();
  [[nodiscard]] int server_version() const noexcept;  ///< as libpq has it: 150018

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
  bool notified_ = false;                                 // since hear() said so last
  std::optional<asio::posix::stream_descriptor> socket_;  // a copy of libpq's: it closes its own when it likes
};

}  // namespace stint::store
