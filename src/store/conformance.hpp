/// The conformance suite of all stores: fixture and world. A store takes part with its own World and
/// `INSTANTIATE_TEST_SUITE_P(Name, StoreTest, testing::Values(WorldMaker{"name", …}), world_name)` in its own test
/// file, and the same with ClockTest.
#pragma once

#include "domain/run_id.hpp"
#include "os/blocking_run.hpp"
#include "store/snapshot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>

namespace stint::store {

/// Clocks that the test moves. Any thread may read them.
class TestClocks {
 public:
  [[nodiscard]] WallTime wall() const { return WallTime(std::chrono::milliseconds(wall_ms_)); }
  [[nodiscard]] Duration elapsed() const { return std::chrono::milliseconds(elapsed_ms_); }
  [[nodiscard]] Duration awake() const { return std::chrono::milliseconds(awake_ms_); }
  void advance(Duration by) {
    awake_ms_ += whole(by);
    suspend(by);
  }
  /// Time passes while the machine sleeps.
  void suspend(Duration by) {
    elapsed_ms_ += whole(by);
    jump(by);
  }
  /// Sets the wall clock; no time passes.
  void jump(Duration by) { wall_ms_ += whole(by); }
  [[nodiscard]] domain::System system(std::function<std::uint64_t()> random) {
    return {.wall_now = [this] { return wall(); },
            .random = std::move(random),
            .elapsed = [this] { return elapsed(); },
            .awake = [this] { return awake(); },
            .boot = "test"};
  }

 private:
  [[nodiscard]] static std::int64_t whole(Duration by) {
    return std::chrono::ceil<std::chrono::milliseconds>(by).count();
  }

  std::atomic<std::int64_t> wall_ms_ = 1'800'000'000'000, elapsed_ms_ = 5'000'000, awake_ms_ = 3'000'000;
};

/// A store under test with its environment: its time, and the deaths of its nodes' processes.
class World {
 public:
  World() = default;
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  virtual Store& store() = 0;
  [[nodiscard]] WallTime now() const { return clocks_.wall(); }
  /// Time passes. Nodes that send no heartbeat meanwhile may die.
  void advance(Duration by) {
    clocks_.advance(by);
    apply_clocks();
  }
  /// Sets the wall clock of the store: the database's, if it has one.
  void jump(Duration by) {
    clocks_.jump(by);
    apply_clocks();
  }
  TestClocks& clocks() { return clocks_; }
  /// Whether the store is on the machine that sleeps.
  [[nodiscard]] virtual bool is_local() const { return true; }
  /// Kills the node's process without notice and advances time until the next tick() declares it dead.
  virtual void kill(NodeNumber node) = 0;

  /// Runs a task of the store to its end.
  template <class T>
  Result<T> run(Task<Result<T>> task) {
    return os::blocking_run(reactor_, std::move(task));
  }
  Reactor& reactor() { return reactor_; }

 protected:
  /// Called after the clocks were moved.
  virtual void apply_clocks() {}

 private:
  TestClocks clocks_;
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
  /// Unwraps the answer, which must not be an error.
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
  /// The code of the error that is expected.
  template <class T>
  std::optional<Errc> error_of(Task<Result<T>> task) {
    Result<T> result = world_->run(std::move(task));
    return result ? std::nullopt : std::optional(result.error().code());
  }

  void define(std::string name, const std::function<void(AgentEntry&)>& change = {});
  NewRun fresh(std::string agent);
  /// Submits a run and returns its id.
  std::string submit(std::string agent, const std::function<void(NewRun&)>& change = {});
  Result<Accepted> try_submit(NewRun run);
  NodeNumber enrol() { return get(store().enrol("test")); }
  std::vector<Claim> claim(NodeNumber node, std::string agent, std::uint32_t most = 1, std::string only = {}) {
    return get(store().claim(node, std::move(agent), most, std::move(only)));
  }
  /// Claims exactly one run.
  Claim claim_one(NodeNumber node, std::string agent);
  /// Claims the run with this id, of agent `a`.
  Claim claim_named(NodeNumber node, std::string id);
  /// Submits a run of agent `a` below another; it draws on the budgets of these.
  std::string submit_below(std::string parent, std::vector<std::string> draws_on);
  /// The use of the family of a run.
  Use used(std::string head);
  std::optional<std::vector<FamilyUse>> report(NodeNumber node, const Claim& of, std::int64_t tokens,
                                               std::int64_t cost_micros = 0);
  std::vector<std::string> claimed_ids(NodeNumber node, std::string agent, std::uint32_t most);
  std::optional<domain::RunState> settle(NodeNumber node, const Claim& claim, domain::Settle settle,
                                         const std::function<void(Settlement&)>& change = {});
  store::Run look(const std::string& id);  // GoogleTest has a Run of its own
  domain::RunState state(const std::string& id) { return look(id).state; }
  domain::Hold hold(const std::string& id) { return look(id).hold; }
  Ticked tick() { return get(store().tick()); }
  std::vector<std::string> causes(std::string id);
  std::vector<std::string> reasons(std::string id);
  /// The ids of a list, which match() must find, too.
  std::vector<std::string> listed(const Filter& filter);
  std::vector<std::string> matched(Filter filter);  ///< all pages
  std::vector<std::string> searched(std::string_view text);
  /// Submits a run of agent `a` with this title, as JSON writes it.
  std::string titled(std::string_view json_title);
  /// Brings the store to one run of every kind, none of them running.
  void make_run_of_every_kind();

 protected:
  /// Starts over with a new world.
  void renew() {
    world_.reset();
    world_ = GetParam().make();
  }

 private:
  std::unique_ptr<World> world_;
  std::uint64_t ids_ = 0;
};

/// The tests of the suite that move the clocks.
class ClockTest : public StoreTest {
 protected:
  /// Defines an agent `a` with two limits, and enrols a node.
  void prepare();
  /// Runs the body in a new world for each direction in which a clock may jump.
  template <class Body>
  void with_jumps(Body body) {
    for (const Duration by : {Duration(std::chrono::hours(24)), Duration(std::chrono::hours(-24))}) {
      SCOPED_TRACE(by > Duration::zero() ? "a day ahead" : "a day back");
      renew();
      prepare();
      body(by);
    }
  }
  void advance(Duration by);
  /// Jumps, then sends a heartbeat: a lease may follow the database's clock, and then nothing is claimed before it.
  void jump(Duration by);
  bool is_claimable(const std::string& id) { return !claim(node_, "a", 1, id).empty(); }
  /// A run that has begun, used four of the ten seconds of its budget, and was handed back.
  std::string begun();

  NodeNumber node_{};
};

/// The tests of the suite about snapshots and the feed after them.
class SnapshotTest : public StoreTest {
 protected:
  Snapshot snapshot() { return get(store().snapshot(kLimitListMax, 0)); }
  /// All events after the cursor, in small pages.
  std::vector<Event> after(const std::string& cursor);
  /// The cause and the data of each event of the fleet after the cursor.
  std::vector<std::string> fleet_news(const std::string& cursor);
  /// Counted one run at a time.
  std::map<domain::RunState, std::uint64_t> naive_counts();
};

inline std::function<void(Settlement&)> using_up(std::int64_t tokens, std::int64_t cost_micros = 0) {
  return [=](Settlement& end) {
    end.tokens = tokens;
    end.cost_micros = cost_micros;
  };
}

inline std::string world_name(const testing::TestParamInfo<WorldMaker>& info) { return info.param.name; }

}  // namespace stint::store
