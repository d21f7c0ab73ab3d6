#include "store/postgres_connection.hpp"

#include "os/blocking_run.hpp"
#include "os/process.hpp"
#include "stint/combinators.hpp"
#include "store/postgres_store.hpp"
#include "store/postgres_world.hpp"

#include <boost/asio/write.hpp>

#include <array>
#include <sys/wait.h>
#include <unistd.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

class PostgresConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = PostgresServer::why_not(); !reason.empty()) GTEST_SKIP() << reason;
    world_ = std::make_unique<PostgresWorld>();
  }
  PostgresWorld& world() { return *world_; }
  Result<PostgresRows> ask(PostgresConnection& connection, std::string_view sql, const Parameters& parameters = {}) {
    return world_->run(connection.run(sql, parameters));
  }

 private:
  std::unique_ptr<PostgresWorld> world_;
};

TEST_F(PostgresConnectionTest, values_come_back_as_they_went) {
  const std::string bytes("\0\xFF'\\x", 5);
  Parameters parameters;
  parameters.text("ü'\"\\ {,}").number(-5).number(std::nullopt).flag(true).bytes(bytes);
  parameters.texts({"", "a,b", "\"\\", "NULL"}).numbers({1, std::nullopt});
  const auto rows = ask(world().admin(),
                        "SELECT $1::text, $2::bigint, $3::bigint, $4::boolean, $5, ($6::text[])[1], ($6::text[])[2], "
                        "($6::text[])[3], ($6::text[])[4], ($7::bigint[])[1], ($7::bigint[])[2]",
                        parameters);
  ASSERT_TRUE(rows) << rows.error().describe();
  EXPECT_EQ(rows->text(0, 0), "ü'\"\\ {,}");
  EXPECT_EQ(rows->number(0, 1), -5);
  EXPECT_TRUE(rows->is_null(0, 2));
  EXPECT_TRUE(rows->flag(0, 3));
  EXPECT_EQ(rows->bytes(0, 4), bytes);
  EXPECT_EQ(rows->text(0, 5) + "|" + rows->text(0, 6) + "|" + rows->text(0, 7) + "|" + rows->text(0, 8),
            "|a,b|\"\\|NULL");
  EXPECT_EQ(rows->maybe(0, 9), 1);
  EXPECT_EQ(rows->maybe(0, 10), std::nullopt);
}

TEST_F(PostgresConnectionTest, invalid_utf8_is_replaced_instead_of_refused) {
  const std::string mark = "\xEF\xBF\xBD";
  const auto mended = [&](std::string_view text) {
    return ask(world().admin(), "SELECT $1::text", Parameters().text(text)).value().text(0, 0);
  };
  EXPECT_EQ(mended("a\xFF"), "a" + mark);
  EXPECT_EQ(mended(std::string_view("a\0b", 3)), "a" + mark + "b");
  EXPECT_EQ(mended("\xC3"), mark) << "cut off";
  EXPECT_EQ(mended("\xED\xA0\x80"), mark + mark + mark) << "half of a surrogate pair";
  EXPECT_EQ(mended("\xC0\xAF"), mark + mark) << "overlong encoding";
  EXPECT_EQ(mended("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
}

TEST_F(PostgresConnectionTest, an_error_of_a_statement_leaves_the_connection_usable) {
  EXPECT_EQ(ask(world().admin(), "SELECT 1/0").error(), Errc::failed);
  EXPECT_EQ(ask(world().admin(), "SELECT 7").value().number(0, 0), 7);
}

TEST_F(PostgresConnectionTest, values_larger_than_all_buffers_are_sent_and_received) {
  const std::string much(20 << 20, 'x');
  const auto rows = ask(world().admin(), "SELECT $1, length($1)", Parameters().bytes(much));
  ASSERT_TRUE(rows) << rows.error().describe();
  EXPECT_EQ(rows->number(0, 1), std::ssize(much));
  EXPECT_EQ(rows->bytes(0, 0).size(), much.size());
}

TEST_F(PostgresConnectionTest, a_cancelled_statement_closes_the_connection) {
  const auto connection = world().connect();
  auto body = [&]() -> Task<Result<>> {
    const auto late = co_await with_deadline(Deadline::after(world().reactor().now(), 20ms),
                                             connection->run("SELECT pg_sleep(30)", {}));
    EXPECT_EQ(late.error(), Errc::timed_out);
    co_return Result<>();
  };
  EXPECT_TRUE(world().run(body()));
  EXPECT_FALSE(connection->is_usable());
  const auto after = ask(*connection, "SELECT 1");
  EXPECT_EQ(after.error(), Errc::unavailable);
  EXPECT_EQ(after.error().retry(), Retry::safe);
}

TEST_F(PostgresConnectionTest, a_lost_connection_reports_whether_the_statement_may_have_run) {
  const auto connection = world().connect();
  const std::int64_t pid = ask(*connection, "SELECT pg_backend_pid()").value().number(0, 0);
  auto body = [&]() -> Task<Result<>> {
    auto end_it = [&]() -> Task<Result<>> {
      co_await sleep_for(20ms);
      STINT_CO_CHECK(co_await world().admin().run("SELECT pg_terminate_backend($1)", Parameters().number(pid)));
      co_return Result<>();
    };
    auto ask_long = [&]() -> Task<Result<>> {
      const auto rows = co_await connection->run("SELECT pg_sleep(30)", {});
      EXPECT_EQ(rows.error(), Errc::unavailable);
      EXPECT_EQ(rows.error().retry(), Retry::unknown);
      co_return Result<>();
    };
    STINT_CO_CHECK(co_await all(ask_long(), end_it()));
    co_return Result<>();
  };
  EXPECT_TRUE(world().run(body()));
  EXPECT_EQ(ask(*connection, "SELECT 1").error().retry(), Retry::safe);
}

TEST_F(PostgresConnectionTest, a_client_replaces_a_connection_that_died_while_idle) {
  PostgresClient lane(world().reactor(), "test", world().url(), {});
  const auto pid = [&] { return world().run(lane.run("SELECT pg_backend_pid()", {})).value().number(0, 0); };
  const std::int64_t before = pid();
  world().sql("SELECT pg_terminate_backend($1, 5000)", Parameters().number(before));
  EXPECT_NE(pid(), before);
}

// ---- server of the tests -------------------------------------------------------------------------------------------

/// A server that accepts and does not answer, like a port of another program.
TEST(PostgresConnection, a_server_that_stays_silent_is_given_up) {
  if (const std::string reason = PostgresServer::why_not(); !reason.empty()) GTEST_SKIP() << reason;
  Reactor reactor;
  asio::ip::tcp::acceptor silent(reactor.io(), {asio::ip::address_v4::loopback(), 0});  // the kernel accepts
  const std::string url =
      "postgres://x@127.0.0.1:" + std::to_string(silent.local_endpoint().port()) + "/x?sslmode=disable";
  const auto before = reactor.now();
  const auto opened = os::blocking_run(reactor, PostgresConnection::open(reactor, url, 50ms));
  EXPECT_LT(reactor.now() - before, 10s) << "too late";
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), Errc::unavailable);
  EXPECT_NE(opened.error().what().find("no answer within"), std::string_view::npos) << opened.error().what();
}

/// A server that completes the handshake and answers no statement: it is frozen, or its disk is.
class MuteServer {
 public:
  explicit MuteServer(Reactor& reactor)
      : acceptor_(reactor.io(), {asio::ip::address_v4::loopback(), 0}), peer_(reactor.io()) {
    acceptor_.async_accept(peer_, [this](boost::system::error_code error) {
      if (error) return;
      peer_.async_read_some(asio::buffer(startup_), [this](boost::system::error_code, std::size_t) { greet(); });
    });
  }
  [[nodiscard]] std::string url() const {
    return "postgres://x@127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + "/x?sslmode=disable";
  }

 private:
  void greet() {
    using namespace std::string_literals;
    const std::string status = "server_version\0"s + "16.0\0"s;
    const auto length = static_cast<char>(4 + status.size());
    greeting_ = "R\0\0\0\x08\0\0\0\0"s + "S\0\0\0"s + length + status + "Z\0\0\0\x05I"s;
    boost::system::error_code ignored;
    asio::write(peer_, asio::buffer(greeting_), ignored);
  }
  asio::ip::tcp::acceptor acceptor_;
  asio::ip::tcp::socket peer_;
  std::array<char, 4096> startup_{};
  std::string greeting_;
};

TEST(PostgresConnection, a_server_that_falls_silent_after_the_handshake_is_given_up) {
  if (const std::string reason = PostgresServer::why_not(); !reason.empty()) GTEST_SKIP() << reason;
  Reactor reactor;
  const MuteServer server(reactor);
  PostgresOptions options;
  options.patience = 50ms;
  options.migration = 20s;
  const auto before = reactor.now();
  const auto opened = os::blocking_run(reactor, PostgresStore::open(reactor, server.url(), options));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), Errc::unavailable) << opened.error().describe();
  EXPECT_NE(opened.error().what().find("did not answer within"), std::string_view::npos) << opened.error().what();
  EXPECT_LT(reactor.now() - before, 10s) << "a migration may take longer, a query may not";
}

TEST(PostgresServer, ends_with_a_program_that_crashes) {
  if (const std::string reason = PostgresServer::why_not(); !reason.empty()) GTEST_SKIP() << reason;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t program = ::fork();
  ASSERT_GE(program, 0);
  if (program == 0) {
    const auto server = PostgresServer::blocking_start(false).value();
    if (!server->is_ours()) ::_exit(0);
    const std::string folder = server->folder();
    while (!std::filesystem::exists(folder + "/.s.PGSQL.5432")) ::sched_yield();
    const pid_t pid = server->pid();
    (void)!::write(ends[1], &pid, sizeof pid);
    (void)!::write(ends[1], folder.data(), folder.size());
    ::raise(SIGKILL);
  }
  ::close(ends[1]);
  pid_t pid = 0;
  std::string folder(4096, '\0');
  const bool told = ::read(ends[0], &pid, sizeof pid) == sizeof pid;
  folder.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], folder.data(), folder.size()), 0)));
  ::close(ends[0]);
  ::waitpid(program, nullptr, 0);
  if (!told) GTEST_SKIP() << "an existing server is used";
  const auto gone = [pid] {
    const auto process = os::read_process(pid);
    return !process || process->is_zombie();
  };
  for (int i = 0; i < 100'000 && !gone(); ++i) ::sched_yield();
  EXPECT_TRUE(gone());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stint::store
