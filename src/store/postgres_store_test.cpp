#include "store/postgres_store.hpp"

#include "store/conformance.hpp"
#include "store/postgres_server.hpp"

#include <unistd.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

/// Where the time of the store stands still until the test moves it.
constexpr const char* kStandStill = R"(
  CREATE SCHEMA stint_test;
  CREATE TABLE stint_test.clock (now timestamptz NOT NULL);
  INSERT INTO stint_test.clock VALUES (stint_v1.from_ms(0));
  CREATE OR REPLACE FUNCTION stint_v1.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT now FROM stint_test.clock';
)";

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
      co_return co_await connection->run_script(kStandStill);
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

class PostgresWorld final : public World {
 public:
  PostgresWorld() : database_(Cluster::blocking_get().make_database()) {
    const std::string url = Cluster::blocking_get().url(database_);
    store_ = run(PostgresStore::open(reactor(), url)).value();
    admin_ = run(PostgresConnection::open(reactor(), url)).value();
    advance(0s);
  }
  ~PostgresWorld() override {
    store_.reset();
    admin_.reset();
    Cluster::blocking_get().drop_database(database_);
  }

  Store& store() override { return *store_; }
  WallTime now() override { return WallTime(now_); }
  void advance(Duration by) override {
    now_ += std::chrono::ceil<std::chrono::milliseconds>(by);
    Parameters parameters;
    parameters.number(now_.count());
    EXPECT_TRUE(run(admin_->run("UPDATE stint_test.clock SET now = stint_v1.from_ms($1)", parameters)));
  }
  void kill(WorkerNumber) override { advance(PostgresOptions().lease + 1s); }
  PostgresConnection& admin() { return *admin_; }

 private:
  std::string database_;
  std::chrono::milliseconds now_{1'800'000'000'000};
  std::unique_ptr<PostgresStore> store_;
  std::unique_ptr<PostgresConnection> admin_;
};

std::vector<WorldMaker> makers() {
  if (!PostgresServer::why_not().empty()) return {};
  return {WorldMaker{"postgres", [] { return std::make_unique<PostgresWorld>(); }}};
}

INSTANTIATE_TEST_SUITE_P(Postgres, StoreTest, testing::ValuesIn(makers()), world_name);

TEST(PostgresServer, is_there_for_the_tests_of_its_store) {
  if (const std::string reason = PostgresServer::why_not(); !reason.empty()) {
    GTEST_SKIP() << "the store in PostgreSQL is not tested: " << reason;
  }
}

}  // namespace
}  // namespace stint::store
