/// What surrounds a store in PostgreSQL under test: a database of its own on the server of this program, in which time
/// stands still until the test moves it.
#pragma once

#include "store/conformance.hpp"
#include "store/postgres_server.hpp"
#include "store/postgres_store.hpp"

namespace stint::store {

class PostgresWorld final : public World {
 public:
  PostgresWorld();
  ~PostgresWorld() override;

  PostgresStore& store() override { return *store_; }
  WallTime now() override { return WallTime(now_); }
  void advance(Duration by) override;
  void kill(WorkerNumber) override;

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  std::unique_ptr<PostgresConnection> connect() { return run(PostgresConnection::open(reactor(), url_)).value(); }
  /// The answer, which is no error.
  PostgresRows sql(PostgresConnection& connection, std::string_view sql, const Parameters& parameters = {});
  PostgresRows sql(std::string_view text, const Parameters& parameters = {}) { return sql(*admin_, text, parameters); }
  void script(std::string_view text);
  PostgresConnection& admin() { return *admin_; }

 private:
  std::string database_, url_;
  std::chrono::milliseconds now_{1'800'000'000'000};
  std::unique_ptr<PostgresStore> store_;
  std::unique_ptr<PostgresConnection> admin_;
};

}  // namespace stint::store
