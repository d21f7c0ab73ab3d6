/// SQLite with errors as values and cached prepared statements. One thread at a time. Never across fork(2).
#pragma once

#include "domain/numbers.hpp"
#include "stint/error.hpp"
#include "stint/retry_after.hpp"
#include "stint/time.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace stint::store {

class Database {
 public:
  enum class Access : std::uint8_t { write, read };
  /// Creates the file if it may write and there is none. The error names the file and the next step.
  static Result<Database> open(const std::string& path, Access access, Duration patience);

  /// Runs one or more statements without an answer.
  [[nodiscard]] Result<> run(std::string_view sql);
  /// Whether a transaction is open.
  [[nodiscard]] bool in_transaction() const noexcept;

 private:
  friend class Query;
  struct CloseDatabase {
    void operator()(sqlite3* database) const noexcept;
  };
  struct CloseStatement {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  explicit Database(std::string path) : path_(std::move(path)) {}
  /// The error of the last call.
  [[nodiscard]] Error error(std::string_view doing) const;
  Result<sqlite3_stmt*> prepare(std::string_view sql);

  std::string path_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  std::map<const char*, std::unique_ptr<sqlite3_stmt, CloseStatement>, std::less<>>
      statements_;  // keyed by address: statements are literals
};

/// One use of a statement, which must be a literal. Binds by position, from 1; reads by column, from 0.
///
///     Query query(database, kFind);
///     query.bind(1, id);
///     while (query.next()) …
///     STINT_CHECK(query.end());
class Query {
 public:
  Query(Database& database, std::string_view sql);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& bind(int at, std::int64_t value);
  Query& bind(int at, std::string_view text);
  Query& bind_blob(int at, std::string_view bytes);
  Query& bind_null(int at);
  Query& bind(int at, std::optional<std::int64_t> value) { return value ? bind(at, *value) : bind_null(at); }
  template <class Tag>
  Query& bind(int at, domain::Number<Tag> number) {
    return bind(at, number.value);
  }
  template <class Tag>
  Query& bind(int at, std::optional<domain::Number<Tag>> number) {
    return bind(at, domain::value_of(number));
  }
  Query& bind(int at, WallTime time) { return bind(at, std::int64_t{time.time_since_epoch().count()}); }
  Query& bind(int at, std::optional<WallTime> time) { return time ? bind(at, *time) : bind_null(at); }
  /// Binds NULL if the text is empty.
  Query& bind_some(int at, std::string_view text) { return text.empty() ? bind_null(at) : bind(at, text); }

  /// True while there is a row.
  bool next();
  /// Whether the statement succeeded: call it after the last row, or instead of reading any.
  [[nodiscard]] Result<> end();
  /// Runs a statement whose rows are ignored.
  [[nodiscard]] Result<> run() {
    while (next()) {
    }
    return end();
  }

  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] std::string text(int column) const;  ///< NULL is empty; a blob unchanged
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::optional<std::int64_t> maybe(int column) const;
  template <class Kind>
  [[nodiscard]] std::optional<Kind> maybe(int column) const {
    return domain::number_of<Kind>(maybe(column));
  }
  [[nodiscard]] std::optional<WallTime> time(int column) const;

 private:
  void check(int code);

  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  std::string_view sql_;
  std::optional<Error> error_;
};

/// The first column of the first row; 0: no row.
[[nodiscard]] Result<std::int64_t> read_number(Database& database, std::string_view sql);

}  // namespace stint::store
