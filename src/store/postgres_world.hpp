/// The environment of a PostgreSQL store under test: its own database on the server of this program, with a clock
/// that only the test moves.
#pragma once

#include "store/conformance.hpp"
#include "store/postgres_server.hpp"
#include "store/postgres_store.hpp"

namespace stint::store {

class PostgresWorld final : public World {
 public:
  PostgresWorld() : PostgresWorld(false) {}
  /// `pooled`: the store connects through a pooler in transaction mode with two server connections.
  explicit PostgresWorld(bool pooled);
  ~PostgresWorld() override;

  PostgresStore& store() override { return *store_; }
  void kill(NodeNumber) override;

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  /// The same database through the socket in this folder.
  [[nodiscard]] std::string url_through(const std::string& folder) const;
  /// The folder of the server's socket; empty: an existing server is used.
  [[nodiscard]] static std::string server_folder();
  /// Debian's path.
  static constexpr const char* kPooler = "/usr/sbin/pgbouncer";
  /// The options of the store: its own clock follows the database's, except in a jump.
  PostgresOptions options();
  /// Time passes only for the machine of the store.
  void sleep(Duration by) { asleep_ += by; }
  std::unique_ptr<PostgresConnection> connect() { return run(PostgresConnection::open(reactor(), url_)).value(); }
  /// Unwraps the answer, which must not be an error.
  PostgresRows sql(PostgresConnection& connection, std::string_view sql, const Parameters& parameters = {});
  PostgresRows sql(std::string_view text, const Parameters& parameters = {}) { return sql(*admin_, text, parameters); }
  void script(std::string_view text);
  PostgresConnection& admin() { return *admin_; }
  [[nodiscard]] bool is_local() const override { return false; }

 private:
  void apply_clocks() override;

  std::string database_, url_;
  Duration asleep_{};
  std::unique_ptr<PostgresStore> store_;
  std::unique_ptr<PostgresConnection> admin_;
};

}  // namespace stint::store
