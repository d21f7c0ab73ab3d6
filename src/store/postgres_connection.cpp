// Invariants
// 1. While a statement is under way, its frame contains an UnderWay. If the frame is destroyed before the answer was
//    read completely, the connection is closed: a statement never reads the answer of another.
// 2. The reactor watches a copy of libpq's descriptor, renewed whenever libpq's may have changed.
#include "store/postgres_connection.hpp"

#include "os/fd.hpp"
#include "stint/combinators.hpp"
#include "store/postgres_library.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <charconv>
#include <libpq-fe.h>

namespace stint::store {
namespace {

constexpr Oid kBytea = 17;
constexpr std::int64_t kLastMs = 253'402'300'799'000;  // the end of year 9999, after which nothing is due

/// The length of the UTF-8 sequence at the front; 0: not valid. NUL is not valid: PostgreSQL text cannot contain it.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool outside = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  return overlong || outside ? 0 : length;
}

std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    out += length > 0 ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

/// A message of PostgreSQL without its trailing line break.
std::string sentence(const char* text) {
  std::string out = text == nullptr ? "" : text;
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  std::ranges::replace(out, '\n', ' ');
  return out;
}

/// Removes the SQLSTATE from a verbose message, `SEVERITY:  28P01: text`, and its last line, which names a place in
/// the server's source. The form is the same in every server language. Returns the SQLSTATE; empty: none.
std::string take_state(std::string& what) {
  constexpr std::size_t kLength = 5;
  std::string state;
  for (std::size_t at = what.find(":  "); at != std::string::npos; at = what.find(":  ", at + 1)) {
    const std::string_view code = std::string_view(what).substr(at + 3, kLength);
    const bool is_state =
        code.size() == kLength && what.compare(at + 3 + kLength, 2, ": ") == 0 &&
        std::ranges::all_of(code, [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); });
    if (!is_state) continue;
    state = code;
    what.erase(at + 2, kLength + 2);
    const std::size_t place = what.rfind('\n', what.find_last_not_of('\n'));
    if (place != std::string::npos && what.find(".c:", place) != std::string::npos) what.erase(place);
  }
  return state;
}

/// libpq has no function for the SQLSTATE of a refused connection, but includes it in verbose messages. An error that
/// a retry cannot fix is `denied`.
Error connect_error(PGconn* connection) {
  std::string text = pq().PQerrorMessage(connection);
  const std::string state = take_state(text);
  const std::string what = sentence(text.c_str()) + (state.empty() ? "" : " (" + state + ")");
  if (pq().PQconnectionNeedsPassword(connection) != 0 || state.starts_with("28") || state == "3D000" ||
      state == "42501") {
    return {Errc::denied, "PostgreSQL refused the login: " + what};
  }
  if (state == "53300") {
    return {Errc::unavailable, Retry::safe,
            "PostgreSQL has no free connection; raise max_connections or use a pooler: " + what};
  }
  return {Errc::unavailable, Retry::safe, "cannot reach PostgreSQL: " + what};
}

Task<> wait(asio::posix::stream_descriptor& socket, asio::posix::stream_descriptor::wait_type what) {
  (void)co_await socket.async_wait(what, use_task);  // the next libpq call reports an error
}

/// Whether the answer of the last statement was read completely.
bool is_at_rest(const PGconn* connection) {
  return pq().PQstatus(connection) == CONNECTION_OK && pq().PQtransactionStatus(connection) != PQTRANS_ACTIVE;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// The keywords of a connection and their values.
struct Settings {
  std::vector<std::pair<std::string, std::string>> values;

  std::string get(std::string_view key) const {
    const auto found = std::ranges::find(values, key, [](const auto& pair) { return std::string_view(pair.first); });
    return found == values.end() ? std::string() : found->second;
  }
  void set(const std::string& key, std::string value) {
    const auto found = std::ranges::find(values, key, &std::pair<std::string, std::string>::first);
    if (found == values.end()) {
      values.emplace_back(key, std::move(value));
    } else {
      found->second = std::move(value);
    }
  }
  void set_default(const std::string& key, std::string value) {
    if (get(key).empty()) set(key, std::move(value));
  }
};

void take_values(PQconninfoOption* options, Settings& settings, bool only_where) {
  for (PQconninfoOption* option = options; option != nullptr && option->keyword != nullptr; ++option) {
    const std::string key = option->keyword;
    if (option->val == nullptr || (only_where && key != "host" && key != "hostaddr" && key != "port")) continue;
    settings.set_default(key, option->val);
  }
  pq().PQconninfoFree(options);
}

Result<Settings> parse_settings(const std::string& url) {
  char* message = nullptr;
  PQconninfoOption* const options = pq().PQconninfoParse(url.c_str(), &message);
  if (options == nullptr) {
    const std::string what = sentence(message);
    pq().PQfreemem(message);
    return fail(Errc::invalid, "not a valid PostgreSQL URL: " + what);
  }
  Settings settings;
  take_values(options, settings, false);
  take_values(pq().PQconndefaults(), settings, true);  // PGHOST and similar variables
  settings.set_default("fallback_application_name", "stint");
  settings.set_default("tcp_user_timeout", "10000");  // detects a vanished server within a lease
  settings.set_default("keepalives_idle", "10");
  settings.set_default("keepalives_interval", "3");
  settings.set_default("keepalives_count", "3");
  settings.set("client_encoding", "UTF8");
  return settings;
}

/// libpq would resolve names itself and block: it gets addresses besides the names.
Task<Result<>> look_up(Reactor& reactor, Settings& settings) {
  const std::string host_list = settings.get("host");
  if (host_list.empty() || !settings.get("hostaddr").empty()) co_return Result<>();
  const std::vector<std::string> hosts = split(host_list), given_ports = split(settings.get("port"));
  std::string names, addresses, ports;
  bool any = false;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string& port = given_ports[given_ports.size() == hosts.size() ? i : 0];
    std::vector<std::string> found;
    if (!hosts[i].empty() && hosts[i].front() != '/' && hosts[i].front() != '@') {
      asio::ip::tcp::resolver resolver(reactor.io());
      const auto [error, results] = co_await resolver.async_resolve(hosts[i], "", use_task);
      if (error) {
        co_return fail(Error(Errc::unavailable, Retry::safe,
                             "cannot resolve the PostgreSQL host '" + hosts[i] + "': " + error.message()));
      }
      for (const auto& entry : results) found.push_back(entry.endpoint().address().to_string());
      std::ranges::sort(found);
      found.erase(std::ranges::unique(found).begin(), found.end());
      any = true;
    }
    if (found.empty()) found.emplace_back();
    for (const std::string& address : found) {
      const char* const comma = names.empty() && addresses.empty() && ports.empty() ? "" : ",";
      names += comma + hosts[i];
      addresses += comma + address;
      ports += comma + port;
    }
  }
  if (!any) co_return Result<>();
  settings.set("host", names);
  settings.set("hostaddr", addresses);
  settings.set("port", ports);
  co_return Result<>();
}

}  // namespace

/// The transaction was rolled back, except perhaps if the connection itself failed (08, 57).
Error postgres_error(std::string_view state, std::string what) {
  if (state == "ST400") return {Errc::invalid, std::move(what)};
  if (state == "ST401") return {Errc::closed, std::move(what)};
  if (state == "ST409") return {Errc::conflict, std::move(what)};
  if (state == "ST503") return {Errc::full, Retry::safe, std::move(what)};
  what = "PostgreSQL: " + what + " (" + std::string(state) + ")";
  if (state == "25006") what = "the database is read-only or a standby: connect to the primary. " + what;
  if (state == "53100") what = "the disk of the database is full; nothing was written. " + what;
  const std::string_view family = state.substr(0, 2);
  if (state == "55P03") return {Errc::conflict, Retry::safe, std::move(what)};  // lock timeout
  if (family == "40" || family == "53" || state == "57014" || state == "25006") {
    return {Errc::unavailable, Retry::safe, std::move(what)};  // deadlock, no room, statement timeout, standby
  }
  if (family == "08" || family == "57") return {Errc::unavailable, Retry::unknown, std::move(what)};
  if (family == "28" || state == "42501") return {Errc::denied, std::move(what)};
  return {Errc::failed, std::move(what)};
}

// ---- parameters and rows -------------------------------------------------------------------------------------------

Parameters& Parameters::text(std::string_view value) { return add(clean(value)); }
Parameters& Parameters::number(std::int64_t value) { return add(std::to_string(value)); }
Parameters& Parameters::flag(bool value) { return add(value ? "t" : "f"); }

Parameters& Parameters::number(std::optional<std::int64_t> value) {
  if (value) return number(*value);
  values_.push_back({{}, true, false});
  return *this;
}

Parameters& Parameters::time(std::optional<WallTime> value) {
  if (!value) return number(std::nullopt);
  return number(std::clamp<std::int64_t>(value->time_since_epoch().count(), 0, kLastMs));
}

Parameters& Parameters::late(std::function<std::optional<std::int64_t>()> value) {
  late_ = std::move(value);
  late_at_ = values_.size();
  return number(std::nullopt);
}

void Parameters::refresh() {
  if (!late_) return;
  const std::optional<std::int64_t> value = late_();
  values_[late_at_] = {value ? std::to_string(*value) : std::string(), !value, false};
}

Parameters& Parameters::bytes(std::string value) {
  values_.push_back({std::move(value), false, true});
  return *this;
}

Parameters& Parameters::texts(const std::vector<std::string>& values) {
  std::string list = "{";
  for (const std::string& value : values) {
    list += list.size() > 1 ? ",\"" : "\"";
    for (const char c : clean(value)) {
      if (c == '"' || c == '\\') list += '\\';
      list += c;
    }
    list += '"';
  }
  return add(list + "}");
}

Parameters& Parameters::numbers(const std::vector<std::optional<std::int64_t>>& values) {
  std::string list = "{";
  for (const auto& value : values) {
    if (list.size() > 1) list += ',';
    list += value ? std::to_string(*value) : "NULL";
  }
  return add(list + "}");
}

void PostgresRows::Clear::operator()(pg_result* result) const noexcept { pq().PQclear(result); }
int PostgresRows::size() const noexcept { return result_ == nullptr ? 0 : pq().PQntuples(result_.get()); }

bool PostgresRows::is_null(int row, int column) const noexcept {
  return pq().PQgetisnull(result_.get(), row, column) != 0;
}

std::string PostgresRows::text(int row, int column) const {
  return {pq().PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(pq().PQgetlength(result_.get(), row, column))};
}

std::int64_t PostgresRows::number(int row, int column) const noexcept {
  const char* const begin = pq().PQgetvalue(result_.get(), row, column);
  std::int64_t value = 0;
  std::from_chars(begin, begin + pq().PQgetlength(result_.get(), row, column), value);
  return value;
}

std::optional<std::int64_t> PostgresRows::maybe(int row, int column) const noexcept {
  return is_null(row, column) ? std::nullopt : std::optional(number(row, column));
}

bool PostgresRows::flag(int row, int column) const noexcept {
  return *pq().PQgetvalue(result_.get(), row, column) == 't';
}

std::optional<WallTime> PostgresRows::time(int row, int column) const noexcept {
  const auto ms = maybe(row, column);
  return ms ? std::optional(WallTime(std::chrono::milliseconds(*ms))) : std::nullopt;
}

std::string PostgresRows::bytes(int row, int column) const {
  std::string out;
  if (is_null(row, column)) return out;
  std::size_t length = 0;
  unsigned char* const raw = pq().PQunescapeBytea(
      reinterpret_cast<const unsigned char*>(pq().PQgetvalue(result_.get(), row, column)), &length);
  if (raw == nullptr) return out;
  out.assign(reinterpret_cast<const char*>(raw), length);
  pq().PQfreemem(raw);
  return out;
}

// ---- connection ----------------------------------------------------------------------------------------------------

class PostgresConnection::UnderWay {
 public:
  explicit UnderWay(PostgresConnection& connection) noexcept : connection_(connection) {}
  ~UnderWay() {
    if (!ended_) connection_.close();
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  void end() noexcept { ended_ = true; }

 private:
  PostgresConnection& connection_;
  bool ended_ = false;
};

void PostgresConnection::Finish::operator()(pg_conn* connection) const noexcept { pq().PQfinish(connection); }

void PostgresConnection::close() noexcept {
  socket_.reset();
  connection_.reset();
}

int PostgresConnection::server_version() const noexcept { return pq().PQserverVersion(connection_.get()); }

Error PostgresConnection::lost(Retry retry) const {
  const std::string why = connection_ ? sentence(pq().PQerrorMessage(connection_.get())) : std::string("it is closed");
  return {Errc::unavailable, retry, "the connection to PostgreSQL is lost: " + why};
}

Result<> PostgresConnection::watch_socket() {
  socket_.reset();
  os::Fd copy = os::duplicate(pq().PQsocket(connection_.get()));
  if (!copy)
    return fail(Error(Errc::unavailable, Retry::safe,
                      "no file descriptor is left for a connection to PostgreSQL. Raise `ulimit -n`"));
  socket_.emplace(reactor_.io(), copy.release());
  return {};
}

Task<Result<>> PostgresConnection::handshake() {
  PostgresPollingStatusType state = PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK) {
    if (state == PGRES_POLLING_FAILED) co_return fail(connect_error(connection_.get()));
    STINT_CO_CHECK(watch_socket());
    co_await wait(*socket_, state == PGRES_POLLING_READING ? asio::posix::stream_descriptor::wait_read
                                                           : asio::posix::stream_descriptor::wait_write);
    state = pq().PQconnectPoll(connection_.get());
  }
  if (pq().PQsetnonblocking(connection_.get(), 1) != 0) co_return fail(lost(Retry::safe));
  co_return watch_socket();
}

Task<Result<std::unique_ptr<PostgresConnection>>> PostgresConnection::open(Reactor& reactor, std::string url,
                                                                           Duration patience) {
  auto opened = co_await with_deadline(Deadline::after(reactor.now(), patience), open_now(reactor, std::move(url)));
  if (opened || opened.error() != Errc::timed_out) co_return std::move(opened);
  co_return fail(Error(Errc::unavailable, Retry::safe,
                       "cannot reach PostgreSQL: no answer within " +
                           std::to_string(std::chrono::ceil<std::chrono::seconds>(patience).count()) +
                           " s. Check host and port of the store URL, and that the server runs"));
}

Task<Result<std::unique_ptr<PostgresConnection>>> PostgresConnection::open_now(Reactor& reactor, std::string url) {
  STINT_CO_CHECK(load_libpq());
  STINT_CO_TRY(Settings settings, parse_settings(url));
  STINT_CO_CHECK(co_await look_up(reactor, settings));
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : settings.values) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  std::unique_ptr<PostgresConnection> fresh(new PostgresConnection(reactor));
  fresh->connection_.reset(pq().PQconnectStartParams(keys.data(), values.data(), 0));
  if (!fresh->connection_) co_return fail(Errc::full, "no memory is left for a connection to PostgreSQL");
  pq().PQsetErrorVerbosity(fresh->connection_.get(), PQERRORS_VERBOSE);  // see connect_error()
  pq().PQsetNoticeProcessor(fresh->connection_.get(), [](void*, const char*) {}, nullptr);
  if (pq().PQstatus(fresh->connection_.get()) == CONNECTION_BAD)
    co_return fail(connect_error(fresh->connection_.get()));
  STINT_CO_CHECK(co_await fresh->handshake());
  co_return std::move(fresh);
}

/// Reads unsolicited messages first: a server that closes the connection announces it.
bool PostgresConnection::is_usable() {
  if (!connection_) return false;
  if (pq().PQconsumeInput(connection_.get()) == 0 || pq().PQstatus(connection_.get()) != CONNECTION_OK ||
      pq().PQtransactionStatus(connection_.get()) == PQTRANS_UNKNOWN) {
    close();
    return false;
  }
  take_notifications();  // behind a pooler, notifications for other clients may arrive here
  return true;
}

void PostgresConnection::take_notifications() noexcept {
  while (PGnotify* const notification = pq().PQnotifies(connection_.get())) {
    pq().PQfreemem(notification);
    notified_ = true;
  }
}

Task<Result<>> PostgresConnection::wait_for_notification() {
  while (true) {
    if (!connection_ || pq().PQconsumeInput(connection_.get()) == 0) co_return fail(lost(Retry::safe));
    take_notifications();
    if (std::exchange(notified_, false)) co_return Result<>();
    co_await wait(*socket_, asio::posix::stream_descriptor::wait_read);
  }
}

/// Also reads while it waits to write: otherwise two full buffers would wait for each other.
Task<Result<>> PostgresConnection::flush() {
  using Socket = asio::posix::stream_descriptor;
  while (true) {
    const int left = pq().PQflush(connection_.get());
    if (left == 0) co_return Result<>();
    if (left < 0) co_return fail(lost(Retry::unknown));
    const auto ready = co_await race(wait(*socket_, Socket::wait_write), wait(*socket_, Socket::wait_read));
    if (ready.index() == 1 && pq().PQconsumeInput(connection_.get()) == 0) co_return fail(lost(Retry::unknown));
  }
}

Task<Result<PostgresRows>> PostgresConnection::receive() {
  PostgresRows rows;
  std::optional<Error> error;
  while (true) {
    while (pq().PQisBusy(connection_.get()) != 0) {
      co_await wait(*socket_, asio::posix::stream_descriptor::wait_read);
      if (pq().PQconsumeInput(connection_.get()) == 0) co_return fail(lost(Retry::unknown));
    }
    PGresult* const raw = pq().PQgetResult(connection_.get());
    if (raw == nullptr) break;
    PostgresRows part(raw);
    const ExecStatusType status = pq().PQresultStatus(raw);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      rows = std::move(part);
    } else if (!error) {
      const char* const state = pq().PQresultErrorField(raw, PG_DIAG_SQLSTATE);
      if (state == nullptr) co_return fail(lost(Retry::unknown));
      error = postgres_error(state, sentence(pq().PQresultErrorField(raw, PG_DIAG_MESSAGE_PRIMARY)));
    }
  }
  if (pq().PQstatus(connection_.get()) != CONNECTION_OK && !error) co_return fail(lost(Retry::unknown));
  if (error) co_return fail(std::move(*error));
  co_return std::move(rows);
}

/// A statement is complete with the Sync after it: the server does not run one that libpq sent only partly.
Task<Result<PostgresRows>> PostgresConnection::run(std::string_view sql, const Parameters& parameters) {
  if (!is_usable()) co_return fail(lost(Retry::safe));
  UnderWay under_way(*this);
  std::vector<const char*> values;
  std::vector<int> lengths, formats;
  std::vector<Oid> types;
  for (const Parameters::Value& value : parameters.values_) {
    values.push_back(value.is_null ? nullptr : value.text.c_str());
    lengths.push_back(static_cast<int>(value.text.size()));
    formats.push_back(value.is_bytes ? 1 : 0);
    types.push_back(value.is_bytes ? kBytea : 0);
  }
  if (pq().PQsendQueryParams(connection_.get(), std::string(sql).c_str(), static_cast<int>(values.size()), types.data(),
                             values.data(), lengths.data(), formats.data(), 0) == 0) {
    co_return fail(lost(Retry::safe));
  }
  STINT_CO_CHECK(co_await flush());
  auto rows = co_await receive();
  if (is_at_rest(connection_.get())) under_way.end();
  co_return std::move(rows);
}

Task<Result<>> PostgresConnection::run_script(std::string sql) {
  if (!is_usable()) co_return fail(lost(Retry::safe));
  UnderWay under_way(*this);
  if (pq().PQsendQuery(connection_.get(), sql.c_str()) == 0) co_return fail(lost(Retry::safe));
  STINT_CO_CHECK(co_await flush());
  const auto rows = co_await receive();
  if (is_at_rest(connection_.get())) under_way.end();
  if (!rows) co_return fail(rows.error());
  co_return Result<>();
}

}  // namespace stint::store
