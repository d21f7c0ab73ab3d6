#include "store/sqlite_db.hpp"

#include "os/owner.hpp"
#include "store_sql_sqlite.hpp"

#include <algorithm>
#include <cerrno>
#include <sqlite3.h>

namespace stint::store {
namespace {

constexpr std::size_t kSqlShown = 60;

std::string first_words(std::string_view sql) {
  std::string text(sql.substr(0, kSqlShown));
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

void Database::CloseDatabase::operator()(sqlite3* database) const noexcept { sqlite3_close_v2(database); }
void Database::CloseStatement::operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }

Error Database::error(std::string_view doing) const {
  const int code = database_ ? sqlite3_extended_errcode(database_.get()) : SQLITE_NOMEM;
  // The statement helps a developer of Stint; a user whose disk is full does not need it.
  const std::string what = path_ + ": " + (database_ ? sqlite3_errmsg(database_.get()) : "out of memory");
  const std::string at = path_ + ": " + std::string(doing) + what.substr(path_.size());
  switch (database_ ? sqlite3_system_errno(database_.get()) : 0) {  // SQLite's messages hide these
    case EMFILE:
    case ENFILE:
      if ((code & 0xFF) != SQLITE_CANTOPEN) break;
      return {Errc::exhausted, Retry::safe, what + ": no file descriptor is left. Raise `ulimit -n`"};
    case ENOSPC:
    case EDQUOT:
      if ((code & 0xFF) != SQLITE_IOERR) break;
      return {Errc::exhausted, Retry::unknown, path_ + ": no space left: the disk is full. Free some space"};
    default: break;
  }
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Errc::unavailable, Retry::safe, what + ". Another program holds a lock on it; end that program, or wait"};
    case SQLITE_FULL:
      return {Errc::exhausted, Retry::safe, path_ + ": no space left: the disk is full. Free some space"};
    case SQLITE_NOMEM: return {Errc::exhausted, Retry::safe, what};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN: {
      const std::string owner = os::foreign_owner(path_);
      if (!owner.empty()) return {Errc::denied, what + ". It belongs to " + owner + ": use it as that user"};
      return {Errc::denied, what + ". Make the file and its directory writable for your user"};
    }
    case SQLITE_NOTADB:
      return {Errc::failed,
              path_ + " is not a Stint database. Move it away (Stint creates a new one), or restore a copy"};
    case SQLITE_CORRUPT:
      return {Errc::failed,
              what + ". The file is damaged: restore a copy, or move it away to start with an empty store"};
    case SQLITE_IOERR: return {Errc::failed, Retry::unknown, what};
    case SQLITE_CONSTRAINT: return {Errc::conflict, at};
    default: return {Errc::failed, at};
  }
}

Result<Database> Database::open(const std::string& path, Access access, Duration patience) {
  // Memory statistics are unused, and cost a lock at every malloc. Before the first connection.
  [[maybe_unused]] static const int uncounted = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  Database database(path);
  sqlite3* raw = nullptr;
  const int flags = access == Access::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database.database_.reset(raw);
  if (code != SQLITE_OK) return fail(database.error("cannot be opened"));
  // The write lock excludes other Stint processes; another program may still lock the database.
  sqlite3_busy_timeout(raw, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(patience).count()));
  sqlite3_extended_result_codes(raw, 1);
  STINT_CHECK(database.run(sqlite::query::settings));
  if (access == Access::write) STINT_CHECK(database.run(sqlite::query::settings_of_writer));
  return database;
}

Result<> Database::run(std::string_view sql) {
  if (sqlite3_exec(database_.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return fail(error(first_words(sql)));
}

bool Database::in_transaction() const noexcept { return sqlite3_get_autocommit(database_.get()) == 0; }

Result<sqlite3_stmt*> Database::prepare(std::string_view sql) {
  auto& cached = statements_[sql.data()];
  if (cached) return cached.get();
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  cached.reset(statement);
  if (code != SQLITE_OK) return fail(error(first_words(sql)));
  return statement;
}

Query::Query(Database& database, std::string_view sql) : database_(database), sql_(sql) {
  if (auto statement = database.prepare(sql)) {
    statement_ = *statement;
  } else {
    error_ = std::move(statement.error());
  }
}

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);  // at once: an open statement holds a snapshot
  sqlite3_clear_bindings(statement_);
}

void Query::check(int code) {
  if (code != SQLITE_OK) error_ = database_.error(first_words(sql_));
}

Query& Query::bind(int at, std::int64_t value) {
  if (!error_) check(sqlite3_bind_int64(statement_, at, value));
  return *this;
}

Query& Query::bind(int at, std::string_view text) {
  if (!error_) check(sqlite3_bind_text64(statement_, at, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Query& Query::bind_blob(int at, std::string_view bytes) {
  if (!error_) check(sqlite3_bind_blob64(statement_, at, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

Query& Query::bind_null(int at) {
  if (!error_) check(sqlite3_bind_null(statement_, at));
  return *this;
}

bool Query::next() {
  if (error_) return false;
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) error_ = database_.error(first_words(sql_));
  return code == SQLITE_ROW;
}

Result<> Query::end() {
  if (error_) return fail(*error_);
  return {};
}

std::int64_t Query::number(int column) const { return sqlite3_column_int64(statement_, column); }

std::string Query::text(int column) const {
  const void* const bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string()
                          : std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

bool Query::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

std::optional<std::int64_t> Query::maybe(int column) const {
  return is_null(column) ? std::nullopt : std::optional(number(column));
}

std::optional<WallTime> Query::time(int column) const {
  return is_null(column) ? std::nullopt : std::optional(WallTime(std::chrono::milliseconds(number(column))));
}

Result<std::int64_t> read_number(Database& database, std::string_view sql) {
  Query query(database, sql);
  std::int64_t answer = 0;
  if (query.next()) answer = query.number(0);
  STINT_CHECK(query.run());
  return answer;
}

}  // namespace stint::store
