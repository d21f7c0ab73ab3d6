/// What surrounds a store in PostgreSQL under test: a database of its own on the server of this program, in which time
/// stands still until the test moves it.
#pragma once

#include "store/conformance.hpp"
#include "store/postgres_server.hpp"
#include "store/postgres_store.hpp"

namespace stint::store {

class PostgresWorld final : public World {
 public:
  PostgresWorld() : PostgresWorld(false) {}
  /// `pooled`: the store's connections go through a pooler in transaction mode, which has two for all of them.
  explicit PostgresWorld(bool pooled);
  ~PostgresWorld() override;

  PostgresStore& store() override { return *store_; }
  void kill(NodeNumber) override;

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  /// The same database by another way: through the socket in this folder.
  [[nodiscard]] std::string url_through(const std::string& folder) const;
  /// The folder of the server's socket; empty: it is not ours.
  [[nodiscard]] static std::string server_folder();
  /// Where Debian has it.
  static constexpr const char* kPooler = "/usr/sbin/pgbouncer";
  /// As the store has them: its own clock goes with the database's, except in a jump.
  PostgresOptions options();
  /// Time passes for the machine of the store alone.
  void sleep(Duration by) { asleep_ += by; }
  std::unique_ptr<PostgresConnection> connect() { return run(PostgresConnection::open(reactor(), url_)).value(); }
  /// The answer, which is no error.
  PostgresRows sql(PostgresConnection& connection, std::string_view sql, const Parameters& parameters = {});
  PostgresRows sql(std::string_view text, const Parameters& parameters = {}) { return sql(*admin_, text, parameters); }
  void script(std::string_view text);
  PostgresConnection& admin() { return *admin_; }
  [[nodiscard]] bool is_local() const override { return false; }

 private:
  void tell_time() override;

  std::string database_, url_;
  Duration asleep_{};
  std::unique_ptr<PostgresStore> store_;
  std::unique_ptr<PostgresConnection> admin_;
};

}  // namespace stint::store
