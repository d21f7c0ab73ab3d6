#include "store/postgres_client.hpp"

#include "stint/combinators.hpp"

namespace stint::store {

/// Retries until connected; the caller sets the deadline. Fails at once on an error that a retry cannot fix.
Task<Result<>> PostgresClient::connect() {
  connection_.reset();
  for (std::uint32_t failures = 1;; ++failures) {
    auto fresh = co_await PostgresConnection::open(reactor_, url_);
    if (fresh) {
      connection_ = std::move(*fresh);
      last_error_.reset();
      co_return Result<>();
    }
    last_error_ = fresh.error();
    if (fresh.error() != Errc::unavailable) co_return fail(std::move(fresh.error()));
    const std::uint64_t random = options_.random ? options_.random() : ~std::uint64_t{0};
    co_await sleep_for(backoff(kBackoff, failures, random));
  }
}

Task<Result<PostgresRows>> PostgresClient::attempt(std::string_view sql, Parameters& parameters, Repeat repeat,
                                                   const Guard& guard, bool& begun) {
  STINT_CO_TRY(const Permit turn, co_await turn_.acquire());
  for (int repeats = 0;; ++repeats) {
    if (!connection_ || !connection_->is_usable()) STINT_CO_CHECK(co_await connect());
    if (guard) STINT_CO_CHECK(guard());
    begun = true;
    parameters.refresh();
    auto rows = co_await connection_->run(sql, parameters);
    if (rows || rows.error() != Errc::unavailable || repeats >= kRepeatsMax) co_return std::move(rows);
    if (rows.error().retry() != Retry::safe && repeat != Repeat::always) co_return std::move(rows);
    begun = false;
  }
}

/// Closes the connection if the transaction does not come to its end: no later statement may run inside it.
class PostgresClient::Transaction {
 public:
  explicit Transaction(PostgresClient& client) noexcept : client_(client) {}
  ~Transaction() {
    if (!ended_) client_.connection_.reset();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void end() noexcept { ended_ = true; }

 private:
  PostgresClient& client_;
  bool ended_ = false;
};

Task<Result<std::vector<PostgresRows>>> PostgresClient::read_once(std::string_view begin,
                                                                  std::vector<Statement>& statements,
                                                                  std::string_view end) {
  Transaction transaction(*this);
  STINT_CO_CHECK(co_await connection_->run(begin, Parameters()));
  std::vector<PostgresRows> answers;
  for (Statement& statement : statements) {
    statement.parameters.refresh();
    STINT_CO_TRY(answers.emplace_back(), co_await connection_->run(statement.sql, statement.parameters));
  }
  STINT_CO_CHECK(co_await connection_->run(end, Parameters()));
  transaction.end();
  co_return answers;
}

Task<Result<std::vector<PostgresRows>>> PostgresClient::attempt(std::string_view begin,
                                                                std::vector<Statement>& statements,
                                                                std::string_view end) {
  STINT_CO_TRY(const Permit turn, co_await turn_.acquire());
  for (int repeats = 0;; ++repeats) {
    if (!connection_ || !connection_->is_usable()) STINT_CO_CHECK(co_await connect());
    auto answers = co_await read_once(begin, statements, end);
    if (answers || answers.error() != Errc::unavailable || repeats >= kRepeatsMax) co_return std::move(answers);
  }
}

Task<Result<std::vector<PostgresRows>>> PostgresClient::read_together(std::string_view begin,
                                                                      std::vector<Statement> statements,
                                                                      std::string_view end) {
  auto answers =
      co_await with_deadline(Deadline::after(reactor_.now(), options_.patience), attempt(begin, statements, end));
  if (answers || answers.error() != Errc::timed_out) co_return std::move(answers);
  Error late(Errc::unavailable, Retry::safe, "PostgreSQL did not answer in time");
  if (last_error_) late = std::move(late).because(*last_error_);
  co_return fail(std::move(late));
}

Task<Result<PostgresRows>> PostgresClient::run(std::string_view sql, Parameters parameters, Repeat repeat,
                                               Guard guard) {
  bool begun = false;
  auto rows = co_await with_deadline(Deadline::after(reactor_.now(), options_.patience),
                                     attempt(sql, parameters, repeat, guard, begun));
  if (rows || rows.error() != Errc::timed_out) co_return std::move(rows);
  Error late(Errc::unavailable, begun && repeat != Repeat::always ? Retry::unknown : Retry::safe,
             begun ? "PostgreSQL did not answer in time" : "no connection to PostgreSQL was made in time");
  if (last_error_ && !begun) late = std::move(late).because(*last_error_);
  co_return fail(std::move(late));
}

}  // namespace stint::store
