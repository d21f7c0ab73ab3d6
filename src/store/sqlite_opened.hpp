/// For tests of the SQLite store: an open store on a path, and child processes with their own.
#pragma once

#include "domain/run_id.hpp"
#include "os/blocking_run.hpp"
#include "store/sqlite_store.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>

namespace stint::store {

/// An independent store on a path, like that of another process.
class Opened {
 public:
  explicit Opened(const std::string& path, Duration patience = std::chrono::seconds(10))
      : store_(SqliteStore::blocking_open(path, system_, patience)) {}
  [[nodiscard]] bool ok() const { return store_.has_value(); }
  [[nodiscard]] const Error& error() const { return store_.error(); }
  SqliteStore& store() { return **store_; }
  template <class T>
  Result<T> run(Task<Result<T>> task) {
    return os::blocking_run(reactor_, std::move(task));
  }
  static std::string id_of(std::uint64_t number) {
    const domain::System numbers{.wall_now = {}, .random = [number] { return number; }};
    return domain::new_run_id(numbers);
  }
  static NewRun fresh(std::uint64_t number) {
    NewRun run;
    run.id = id_of(number);
    run.agent = "a";
    run.input = std::string(300, 'x');
    return run;
  }
  Result<Accepted> submit(std::uint64_t number) {
    auto answers = this->run(store().enqueue({fresh(number)}));
    if (!answers) return fail(answers.error());
    return answers->front();
  }
  Reactor& reactor() { return reactor_; }
  void define() {
    AgentEntry agent;
    agent.name = "a";
    agent.queued_max = 1'000'000;
    EXPECT_TRUE(run(store().define({agent})));
  }

 private:
  domain::System system_{.wall_now = [] { return WallTime(std::chrono::milliseconds(1'800'000'000'000)); },
                         .random = [] { return std::uint64_t{7}; }};
  Reactor reactor_;
  Result<std::unique_ptr<SqliteStore>> store_;
};

inline void run_sql(const std::string& path, std::string_view sql) {
  auto database = Database::open(path, Database::Access::write, std::chrono::seconds(1));
  ASSERT_TRUE(database) << database.error().describe();
  const Result<> done = database->run(sql);
  ASSERT_TRUE(done) << done.error().describe();
}

/// Runs the body in a forked process, which ends with the answer. No thread of this process may run at the fork.
template <class Body>
pid_t start(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  return pid;
}

}  // namespace stint::store
