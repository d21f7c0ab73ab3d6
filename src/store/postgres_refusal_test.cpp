// Servers that refuse the login, that are too old, too full or read-only: each error names the reason.
#include "os/fd.hpp"
#include "store/postgres_world.hpp"
#include "store_sql_postgres_test.hpp"

#include <cstring>
#include <fstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
namespace query = postgres_test::query;

class PostgresRefusal : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = PostgresServer::why_not(); !reason.empty()) GTEST_SKIP() << reason;
    if (PostgresWorld::server_folder().empty()) GTEST_SKIP() << "an existing server keeps its users";
    world_ = std::make_unique<PostgresWorld>();
  }
  void TearDown() override {
    if (world_) world_->script("DROP ROLE IF EXISTS guest");
  }
  PostgresWorld& world() { return *world_; }
  Error error_of_open(const std::string& more) {
    auto opened = world_->run(PostgresStore::open(world_->reactor(), world_->url() + " " + more));
    return opened ? Error(Errc::failed, "it was opened") : opened.error();
  }
  /// Sets the authentication method of the user `guest`.
  void demand_of_guest(const std::string& method) {
    const std::string path = PostgresWorld::server_folder() + "/data/pg_hba.conf";
    std::ofstream(path) << "local all guest " << method << "\nlocal all all trust\n";
    world_->sql("SELECT pg_reload_conf()");
  }
  /// A reload takes a moment.
  Error error_with(const std::string& more, std::string_view text) {
    Error error = error_of_open(more);
    for (int i = 0; i < 500 && !error.what().contains(text); ++i) error = error_of_open(more);
    return error;
  }

 private:
  std::unique_ptr<PostgresWorld> world_;
};

TEST_F(PostgresRefusal, a_wrong_or_missing_password_fails_at_once) {
  world().script("CREATE ROLE guest LOGIN PASSWORD 'right'");
  demand_of_guest("scram-sha-256");
  const Error wrong = error_with("user=guest password=wrong", "28P01");
  EXPECT_EQ(wrong, Errc::denied);
  EXPECT_TRUE(wrong.what().contains("28P01")) << wrong.describe();
  EXPECT_FALSE(wrong.what().contains("auth.c")) << wrong.describe();
  EXPECT_EQ(error_of_open("user=guest"), Errc::denied) << "no password was given";
  demand_of_guest("reject");
  const Error rejected = error_with("user=guest", "28000");
  EXPECT_EQ(rejected, Errc::denied);
  EXPECT_TRUE(rejected.what().contains("28000")) << rejected.describe();
  demand_of_guest("trust");
}

TEST_F(PostgresRefusal, a_user_who_may_not_create_tables_gets_the_next_step) {
  world().script("DROP SCHEMA stint_v1 CASCADE; DROP SCHEMA stint CASCADE; CREATE ROLE guest LOGIN");
  const Error error = error_of_open("user=guest");
  EXPECT_EQ(error, Errc::denied);
  EXPECT_TRUE(error.describe().contains("create schemas")) << error.describe();
}

TEST_F(PostgresRefusal, a_server_without_a_free_connection_is_unavailable_with_the_reason) {
  world().script("CREATE ROLE guest LOGIN CONNECTION LIMIT 0");
  const Error error = error_of_open("user=guest");
  EXPECT_EQ(error, Errc::unavailable);
  EXPECT_EQ(error.retry(), Retry::safe);
  EXPECT_TRUE(error.what().contains("no free connection")) << error.describe();
  EXPECT_TRUE(error.what().contains("53300")) << error.describe();
}

TEST_F(PostgresRefusal, a_read_only_database_is_opened_and_refuses_changes) {
  const auto admin = world().connect();
  world().sql(*admin, "SELECT set_config('x.y', '', false)");
  const std::string name = world().sql("SELECT current_database()").text(0, 0);
  world().script("ALTER DATABASE " + name + " SET default_transaction_read_only = on");
  const auto store = world().run(PostgresStore::open(world().reactor(), world().url(), world().options()));
  ASSERT_TRUE(store) << store.error().describe();
  EXPECT_TRUE(world().run((*store)->list({})));
  const auto refused = world().run((*store)->define({AgentEntry()}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::unavailable);
  EXPECT_EQ(refused.error().retry(), Retry::safe);
  EXPECT_TRUE(refused.error().what().contains("read-only")) << refused.error().describe();
}

TEST_F(PostgresRefusal, a_full_disk_is_named_and_nothing_is_written) {
  AgentEntry agent;
  agent.name = "a";
  ASSERT_TRUE(world().run(world().store().define({agent})));
  world().script(query::full_disk);
  NewRun run;
  run.id = "aaaaaaaaaaaa";
  run.agent = "a";
  const auto refused = world().run(world().store().enqueue({run}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::unavailable);
  EXPECT_EQ(refused.error().retry(), Retry::safe);
  EXPECT_TRUE(refused.error().what().contains("disk of the database is full")) << refused.error().describe();
  EXPECT_EQ(world().run(world().store().list({}))->size(), 0U);
}

// ---- servers that cannot be installed ------------------------------------------------------------------------------

/// Sends one message to each client after reading its greeting.
class Stub {
 public:
  explicit Stub(std::string words)
      : words_(std::move(words)), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (folder_ / ".s.PGSQL.5432").c_str(), sizeof address.sun_path - 1);
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.get(), 1) != 0) {
      std::abort();
    }
    thread_ = std::thread([this] {
      const os::Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      char greeting[1024];
      (void)!::read(client.get(), greeting, sizeof greeting);
      (void)!::write(client.get(), words_.data(), words_.size());
      while (::read(client.get(), greeting, sizeof greeting) > 0) {
      }
    });
  }
  ~Stub() { thread_.join(); }
  Error error_of_open() {
    Reactor reactor;
    RootScope scope(reactor);
    std::optional<Error> error;
    auto body = [&]() -> Task<> {
      auto opened = co_await PostgresStore::open(reactor, "host=" + folder_.path() + " user=x dbname=x");
      error = opened ? Error(Errc::failed, "it was opened") : opened.error();
    };
    scope.spawn(body());
    EXPECT_TRUE(reactor.run(scope));
    return *error;
  }
  static std::string message(char letter, const std::string& body) {
    const auto length = static_cast<std::uint32_t>(body.size() + 4);
    std::string out(1, letter);
    for (const unsigned shift : {24U, 16U, 8U, 0U}) out += static_cast<char>(length >> shift & 0xFFU);
    return out + body;
  }

 private:
  const std::string words_;
  os::TestFolder folder_;
  os::Fd listener_;
  std::thread thread_;
};

using namespace std::string_literals;

TEST(PostgresStub, a_server_that_is_too_old_is_named_with_what_is_needed) {
  Stub stub(Stub::message('R', "\0\0\0\0"s) + Stub::message('S', "server_version\00012.9\0"s) +
            Stub::message('S', "client_encoding\0UTF8\0"s) + Stub::message('K', "\0\0\0\1\0\0\0\2"s) +
            Stub::message('Z', "I"));
  const Error error = stub.error_of_open();
  EXPECT_EQ(error, Errc::denied);
  EXPECT_TRUE(error.what().contains("PostgreSQL 12") && error.what().contains("13 or newer")) << error.describe();
}

TEST(PostgresStub, a_refusal_is_parsed_in_any_server_language) {
  Stub stub(Stub::message(
      'E',
      "SFATAL\0VFATAL\0C28P01\0MPasswort-Authentifizierung f\xC3\xBCr Benutzer \xC2\xBBx\xC2\xAB fehlgeschlagen\0"
      "Fauth.c\0L335\0Rauth_failed\0\0"s));
  const Error error = stub.error_of_open();
  EXPECT_EQ(error, Errc::denied);
  EXPECT_TRUE(error.what().contains("fehlgeschlagen (28P01)")) << error.describe();
}

TEST(PostgresStub, a_server_that_is_not_postgresql_is_unavailable) {
  Stub stub("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(stub.error_of_open(), Errc::unavailable);
}

}  // namespace
}  // namespace stint::store
