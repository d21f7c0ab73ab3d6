/// The suite that every store passes: fixture and world. A store takes part with a World of its own and
/// `INSTANTIATE_TEST_SUITE_P(Name, StoreTest, testing::Values(WorldMaker{"name", …}), world_name)` in its own test
/// file.
#pragma once

#include "domain/run_id.hpp"
#include "os/blocking_run.hpp"
#include "store/store.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace stint::store {

/// A store under test, and what surrounds it: its time, and the deaths of its workers' processes.
class World {
 public:
  World() = default;
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  virtual Store& store() = 0;
  [[nodiscard]] virtual WallTime now() = 0;
  /// The store's time goes on. Workers that do not beat meanwhile may die of it.
  virtual void advance(Duration by) = 0;
  /// The worker's process is gone, without a word, and for so long that the next tick() buries it. Time goes on as far
  /// as that takes.
  virtual void kill(WorkerNumber worker) = 0;

  /// Runs a task of the store to its end.
  template <class T>
  Result<T> run(Task<Result<T>> task) {
    return os::blocking_run(reactor_, std::move(task));
  }
  Reactor& reactor() { return reactor_; }

 private:
  Reactor reactor_;
};
struct WorldMaker {
  std::string name;
  std::function<std::unique_ptr<World>()> make;

  friend void PrintTo(const WorldMaker& maker, std::ostream* out) { *out << maker.name; }  // NOLINT: GoogleTest's name
};

class StoreTest : public testing::TestWithParam<WorldMaker> {
 protected:
  StoreTest() : world_(GetParam().make()) {}

  Store& store() { return world_->store(); }
  World& world() { return *world_; }
  /// The answer, which is no error.
  template <class T>
  T get(Task<Result<T>> task) {
    Result<T> result = world_->run(std::move(task));
    if (!result) ADD_FAILURE() << result.error().describe();
    if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T();
  }
  template <class T>
  Result<T> ask(Task<Result<T>> task) {
    return world_->run(std::move(task));
  }
  /// The code of the error that it must be.
  template <class T>
  std::optional<Errc> error_of(Task<Result<T>> task) {
    Result<T> result = world_->run(std::move(task));
    return result ? std::nullopt : std::optional(result.error().code());
  }

  void define(std::string name, const std::function<void(AgentEntry&)>& change = {});
  NewRun fresh(std::string agent);
  /// Submits one; its id.
  std::string submit(std::string agent, const std::function<void(NewRun&)>& change = {});
  Result<Accepted> try_submit(NewRun run);
  WorkerNumber enrol() { return get(store().enrol("test")); }
  std::vector<Claim> claim(WorkerNumber worker, std::string agent, std::uint32_t most = 1, std::string only = {}) {
    return get(store().claim(worker, std::move(agent), most, std::move(only)));
  }
  /// Exactly one.
  Claim claim_one(WorkerNumber worker, std::string agent);
  std::vector<std::string> claimed_ids(WorkerNumber worker, std::string agent, std::uint32_t most);
  std::optional<domain::RunState> settle(WorkerNumber worker, const Claim& claim, domain::Settle settle,
                                         const std::function<void(Settlement&)>& change = {});
  store::Run look(const std::string& id);  // GoogleTest has a Run of its own
  domain::RunState state(const std::string& id) { return look(id).state; }
  domain::Hold hold(const std::string& id) { return look(id).hold; }
  Ticked tick() { return get(store().tick()); }
  std::vector<std::string> causes(std::string id);
  std::vector<std::string> reasons(std::string id);
  /// One run of each kind that there is, all at rest.
  void live();

 private:
  std::unique_ptr<World> world_;
  std::uint64_t ids_ = 0;
};

inline std::string world_name(const testing::TestParamInfo<WorldMaker>& info) { return info.param.name; }

}  // namespace stint::store
