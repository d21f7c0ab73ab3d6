#include "store/postgres_world.hpp"

#include "store_sql_postgres_test.hpp"

#include <unistd.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
namespace query = postgres_test::query;

/// The server of this program, and a database with the tables made, from which others are copied.
class Cluster {
 public:
  static Cluster& blocking_get() {
    static Cluster cluster;
    return cluster;
  }
  std::string make_database() {
    const std::string name = prefix_ + std::to_string(++count_);
    EXPECT_TRUE(run("CREATE DATABASE " + name + " TEMPLATE " + template_name()));
    return name;
  }
  void drop_database(const std::string& name) {
    if (!server_->is_ours()) EXPECT_TRUE(run("DROP DATABASE " + name + " WITH (FORCE)"));
  }
  std::string url(const std::string& database) { return server_->url(database); }

 private:
  Cluster() : server_(PostgresServer::blocking_start(false).value()) {
    EXPECT_TRUE(run("CREATE DATABASE " + template_name()));
    Reactor reactor;
    RootScope scope(reactor);
    auto make = [this, &reactor]() -> Task<Result<>> {
      STINT_CO_CHECK(co_await PostgresStore::open(reactor, url(template_name())));
      STINT_CO_TRY(auto connection, co_await PostgresConnection::open(reactor, url(template_name())));
      co_return co_await connection->run_script(std::string(query::stand_still));
    };
    scope.spawn(make());
    reactor.run(scope);
    if (scope.error()) ADD_FAILURE() << scope.error()->describe();
  }
  ~Cluster() { drop_database(template_name()); }
  std::string template_name() const { return prefix_ + "template"; }

  /// Waits for a server that is just starting.
  Result<> run(const std::string& sql) {
    Reactor reactor;
    RootScope scope(reactor);
    PostgresLane lane(reactor, "test", url("postgres"), {});
    auto body = [&]() -> Task<Result<>> {
      STINT_CO_CHECK(co_await lane.run(sql, {}));
      co_return Result<>();
    };
    scope.spawn(body());
    reactor.run(scope);
    if (scope.error()) return fail(*scope.error());
    return {};
  }

  const std::string prefix_ = "stint_test_" + std::to_string(::getpid()) + "_";
  std::unique_ptr<PostgresServer> server_;
  int count_ = 0;
};

}  // namespace

PostgresWorld::PostgresWorld()
    : database_(Cluster::blocking_get().make_database()), url_(Cluster::blocking_get().url(database_)) {
  store_ = run(PostgresStore::open(reactor(), url_)).value();
  admin_ = connect();
  advance(0s);
}

PostgresWorld::~PostgresWorld() {
  store_.reset();
  admin_.reset();
  Cluster::blocking_get().drop_database(database_);
}

void PostgresWorld::advance(Duration by) {
  now_ += std::chrono::ceil<std::chrono::milliseconds>(by);
  sql(query::set_clock, Parameters().number(now_.count()));
}

void PostgresWorld::kill(WorkerNumber) { advance(PostgresOptions().lease + 1s); }

PostgresRows PostgresWorld::sql(PostgresConnection& connection, std::string_view text, const Parameters& parameters) {
  auto rows = run(connection.run(text, parameters));
  if (!rows) ADD_FAILURE() << rows.error().describe();
  return rows ? std::move(*rows) : PostgresRows();
}

void PostgresWorld::script(std::string_view text) {
  const auto done = run(admin_->run_script(std::string(text)));
  if (!done) ADD_FAILURE() << done.error().describe();
}

}  // namespace stint::store
