#include "store/sqlite_migrate.hpp"

#include "os/test_folder.hpp"
#include "store/sqlite_opened.hpp"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

using namespace std::chrono_literals;

TEST(SqliteFile, a_database_of_another_program_is_left_alone) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  run_sql(path, "CREATE TABLE theirs (x)");
  const Opened opened(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(), Errc::denied);
}

TEST(SqliteFile, a_foreign_trigger_or_view_is_refused) {
  for (const char* const planted :
       {"CREATE TRIGGER evil AFTER INSERT ON run_input BEGIN UPDATE run_input SET body = 'x'; END",
        "DROP TRIGGER run_came; CREATE TRIGGER run_came AFTER INSERT ON run BEGIN UPDATE run_input SET body = 'x'; END",
        "ALTER TABLE run_input RENAME TO theirs; CREATE VIEW run_input AS SELECT run_id, 'x' AS body FROM theirs",
        "CREATE TRIGGER evil AFTER INSERT ON run_input BEGIN UPDATE run_input SET body = 'x'; END; PRAGMA user_version "
        "= 999"}) {
    const os::TestFolder folder;
    const std::string path = folder / "x.db";
    ASSERT_TRUE(Opened(path).ok());
    ASSERT_TRUE(Opened(path).ok()) << "its own are accepted";
    run_sql(path, planted);
    const Opened opened(path);
    ASSERT_FALSE(opened.ok()) << planted;
    EXPECT_EQ(opened.error(), Errc::denied);
    EXPECT_NE(opened.error().describe().find("trigger"), std::string::npos);
  }
}

TEST(SqliteFile, a_newer_schema_is_refused_unless_marked_compatible) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  {
    ASSERT_TRUE(Opened(path).ok());
  }
  run_sql(path, "PRAGMA user_version = 999");
  EXPECT_TRUE(Opened(path).ok()) << "versions N and N - 1 share a schema";
  run_sql(path, "UPDATE meta SET value = 999 WHERE key = 'oldest_program'");
  const Opened refused(path);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().describe().find("newer Stint"), std::string::npos);
}

TEST(SqliteFile, a_file_of_the_previous_version_is_migrated_and_its_program_continues) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  Opened before(path);
  before.define();
  const std::string old = before.submit(1)->id;
  constexpr const char* kNext[] = {"CREATE TABLE extra (x INT) STRICT;", "ALTER TABLE run ADD COLUMN y INT;"};
  std::vector<Migration> migrations(sqlite_migrations().begin(), sqlite_migrations().end());
  migrations.emplace_back(kNext);
  const std::int64_t newest = newest_version(migrations);
  auto database = Database::open(path, Database::Access::write, 1s);
  const auto migrated = migrate_sqlite(*database, path, migrations);
  ASSERT_TRUE(migrated) << migrated.error().describe();
  EXPECT_EQ(migrated->found, newest - 1);
  EXPECT_EQ(migrated->now, newest);
  EXPECT_TRUE(database->run("INSERT INTO extra VALUES (1)"));
  EXPECT_EQ(migrate_sqlite(*database, path, migrations)->found, newest) << "once";
  EXPECT_TRUE(before.submit(2)) << "the program of the previous version continues";
  Opened after(path);
  ASSERT_TRUE(after.ok()) << after.error().describe();
  const NodeNumber node = after.run(after.store().enrol("w")).value();
  const std::vector<Claim> claims = after.run(after.store().claim(node, "a", 9)).value();
  ASSERT_EQ(claims.size(), 2U);
  EXPECT_EQ(claims[0].id, old);
}

TEST(SqliteFile, a_migration_that_fails_leaves_the_file_as_it_was) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  Opened(path).define();
  constexpr const char* kNext[] = {"CREATE TABLE extra (x INT) STRICT;", "CREATE TABLE extra (x INT) STRICT;"};
  std::vector<Migration> migrations(sqlite_migrations().begin(), sqlite_migrations().end());
  migrations.emplace_back(kNext);
  {
    auto database = Database::open(path, Database::Access::write, 1s);
    EXPECT_FALSE(migrate_sqlite(*database, path, migrations));
    EXPECT_FALSE(database->run("INSERT INTO extra VALUES (1)"));
  }
  EXPECT_EQ(Opened(path).store().schema().found, newest_version(sqlite_migrations()));
}

TEST(SqliteFile, a_file_of_an_unreleased_version_is_refused_with_the_next_step_and_unchanged) {
  const os::TestFolder folder;
  const std::string path = folder / "x.db";
  const std::string old = [&] {
    Opened opened(path);
    opened.define();
    return opened.submit(1)->id;
  }();
  run_sql(path, "PRAGMA user_version = 2");
  for (int i = 0; i < 2; ++i) {
    const Opened refused(path);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error(), Errc::denied);
    const std::string message = refused.error().describe();
    EXPECT_NE(message.find("unreleased version of Stint (schema 2)"), std::string::npos) << message;
    EXPECT_NE(message.find("stint store export"), std::string::npos) << message;
    EXPECT_NE(message.find("delete the file"), std::string::npos) << message;
  }
  run_sql(path, "PRAGMA user_version = " + std::to_string(newest_version(sqlite_migrations())));
  Opened again(path);
  EXPECT_TRUE(again.run(again.store().find(old)).value());
}

}  // namespace
}  // namespace stint::store
