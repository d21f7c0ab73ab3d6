#include "store/postgres_world.hpp"

#include "os/process.hpp"
#include "store_sql_postgres_test.hpp"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
namespace query = postgres_test::query;

constexpr int kPoolerPort = 6432;  // part of the socket's name, not a TCP port

/// The server of this program, and a template database with the tables.
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
  const PostgresServer& server() { return *server_; }
  /// Started on first use. Resets the session after each transaction, so that code which relies on session state
  /// fails at once and not only when two clients meet.
  const std::string& blocking_pooler() {
    if (pooler_ != 0) return server_->folder();
    const std::string path = server_->folder() + "/pooler.ini";
    std::ofstream(path) << "[databases]\n* = host=" << server_->folder() << " user=postgres\n[pgbouncer]\n"
                        << "pool_mode = transaction\ndefault_pool_size = 2\nserver_idle_timeout = "
                           "1\nserver_reset_query_always = 1\nauth_type = any\n"
                        << "listen_addr =\nlisten_port = " << kPoolerPort << "\nunix_socket_dir = " << server_->folder()
                        << "\n";
    pooler_ = server_->spawn(PostgresWorld::kPooler, {path}).value();
    return server_->folder();
  }

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
    if (const Result<> made = reactor.run(scope); !made) ADD_FAILURE() << made.error().describe();
  }
  ~Cluster() {
    if (pooler_ != 0) blocking_end_pooler();
    drop_database(template_name());
  }
  void blocking_end_pooler() const {
    ::kill(pooler_, SIGKILL);
    ::waitpid(pooler_, nullptr, 0);
  }
  std::string template_name() const { return prefix_ + "template"; }

  /// Waits for a server that is starting.
  Result<> run(const std::string& sql) {
    Reactor reactor;
    RootScope scope(reactor);
    PostgresClient lane(reactor, "test", url("postgres"), {});
    auto body = [&]() -> Task<Result<>> {
      STINT_CO_CHECK(co_await lane.run(sql, {}));
      co_return Result<>();
    };
    scope.spawn(body());
    return reactor.run(scope);
  }

  const std::string prefix_ = "stint_test_" + std::to_string(::getpid()) + "_";
  std::unique_ptr<PostgresServer> server_;
  int count_ = 0;
  pid_t pooler_ = 0;
};

/// Retries while a pooler is starting.
Task<Result<std::unique_ptr<PostgresStore>>> open_when_up(Reactor& reactor, std::string url, PostgresOptions options) {
  while (true) {
    auto opened = co_await PostgresStore::open(reactor, url, options);
    if (opened || opened.error() != Errc::unavailable) co_return std::move(opened);
    co_await sleep_for(5ms);
  }
}

}  // namespace

PostgresWorld::PostgresWorld(bool pooled)
    : database_(Cluster::blocking_get().make_database()), url_(Cluster::blocking_get().url(database_)) {
  std::string url = url_;
  if (pooled) url = url_through(Cluster::blocking_get().blocking_pooler()) + " port=" + std::to_string(kPoolerPort);
  admin_ = connect();
  apply_clocks();
  store_ = run(open_when_up(reactor(), url, options())).value();
}

PostgresWorld::~PostgresWorld() {
  store_.reset();
  admin_.reset();
  Cluster::blocking_get().drop_database(database_);
}

void PostgresWorld::apply_clocks() { sql(query::set_clock, Parameters().number(domain::to_unix_ms(now()))); }

PostgresOptions PostgresWorld::options() {
  PostgresOptions options;
  options.since_boot = [this] { return clocks().elapsed() + asleep_; };
  options.elapsed = options.since_boot;
  return options;
}

std::string PostgresWorld::server_folder() { return Cluster::blocking_get().server().folder(); }

std::string PostgresWorld::url_through(const std::string& folder) const {
  return "host=" + folder + " user=postgres dbname=" + database_;
}

void PostgresWorld::kill(NodeNumber node) { sql(query::end_lease, Parameters().number(node)); }

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
