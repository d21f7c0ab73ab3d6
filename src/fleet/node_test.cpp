// Node and OneRun on a store in memory: how they are assembled, and runs that start no process.
#include "fleet/node.hpp"

#include "agent/test_folder.hpp"
#include "agent/trust.hpp"
#include "fleet/one_run.hpp"
#include "fleet/read_project.hpp"
#include "limit/host_limits.hpp"
#include "limit/snapshot_limits.hpp"
#include "os/blocking_run.hpp"
#include "stint/combinators.hpp"
#include "store/memory_store.hpp"

#include <gtest/gtest.h>

namespace stint::fleet {
namespace {

using namespace std::chrono_literals;

class NodeTest : public testing::Test {
 protected:
  NodeTest() {
    folder_.write("repo/.git/HEAD", "x");
    folder_.write("repo/stint.toml", "[limits]\ngpu = 1\ncalls = {capacity = 3, reach = \"process\"}\n");
    folder_.write("repo/.stint/agents/train.md",
                  "---\ndescription: d\ncommand: [\"false\"]\nlimits: [gpu]\n---\nTrain.\n");
    const agent::Project project = agent::blocking_find_project(folder_ / "repo").value();
    EXPECT_TRUE(agent::blocking_trust(agent::user_places(location_.variables).value().state, project));
    snapshot_ = blocking_read_project(location_, false).value();
  }
  template <class T>
  T get(Task<Result<T>> task) {
    Result<T> answer = os::blocking_run(reactor_, std::move(task));
    EXPECT_TRUE(answer) << answer.error().describe();
    return std::move(*answer);
  }
  engine::Submission submission(std::string agent) {
    engine::Submission submission;
    submission.agent = std::move(agent);
    return submission;
  }

  const agent::TestFolder folder_;
  const project::Location location_{folder_ / "repo", {{"HOME", (folder_ / "home").string()}}};
  Reactor reactor_;
  std::uint64_t random_ = 4;
  domain::System system_{.wall_now = [] { return WallTime(1'700'000'000'000ms); },
                         .random = [this] { return ++random_; }};
  store::MemoryStore store_{system_};
  std::shared_ptr<const project::Snapshot> snapshot_;
};

TEST_F(NodeTest, counts_calls_by_the_process_limits_of_the_settings) {
  Node node({.reactor = reactor_, .system = system_, .store = store_, .snapshot = [this] { return snapshot_; }}, {});
  const auto limit = node.engine().call_limits().find("calls");
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->capacity, 3U);
  EXPECT_FALSE(node.engine().call_limits().find("gpu")) << "a host limit";
}

TEST_F(NodeTest, a_refused_one_run_leaves_neither_run_nor_node) {
  OneRun one({reactor_, system_, store_, snapshot_}, {});
  bool followed = false;
  const Result<> done =
      os::blocking_run(reactor_, one.carry(submission("missing"), [&](Fleet&, std::string) -> Task<Result<>> {
        followed = true;
        co_return Result<>();
      }));
  EXPECT_FALSE(done);
  EXPECT_FALSE(followed);
  EXPECT_TRUE(get(store_.list({})).empty());
  EXPECT_TRUE(get(store_.nodes()).empty());
}

TEST_F(NodeTest, one_run_has_a_wait_reason_and_can_be_cancelled_before_it_begins) {
  limit::HostLimits limits(reactor_, system_);
  limit::Claimant other;
  other.run = "other:1";
  other.label = "other";
  const auto holder =
      os::blocking_run(reactor_, limits.acquire(limit::requests_of(*snapshot_, "train").value(), other));
  ASSERT_TRUE(holder) << holder.error().describe();
  OneRun one({reactor_, system_, store_, snapshot_}, {});
  std::optional<domain::WaitReason> reason;
  std::string run;
  auto follow = [&](Fleet& fleet, std::string id) -> Task<Result<>> {
    run = id;
    for (std::uint64_t seen = 0; !(reason = one.waits_for());) seen = co_await fleet.changed(id, seen, 1h);
    EXPECT_TRUE(one.is_work_over()) << "no work was started";
    STINT_CO_TRY(const Receipt receipt, co_await fleet.cancel(std::move(id)));
    EXPECT_EQ(receipt.run.run.state, domain::RunState::cancelled);
    co_return Result<>();
  };
  const Result<> done = os::blocking_run(reactor_, one.carry(submission("train"), std::ref(follow)));
  EXPECT_TRUE(done) << done.error().describe();
  EXPECT_EQ(reason->cause, domain::WaitCause::limit);
  EXPECT_EQ(reason->limit, "gpu");
  ASSERT_EQ(reason->holders.size(), 1U);
  EXPECT_EQ(reason->holders[0].label, "other");
  EXPECT_EQ(get(store_.find(run))->state, domain::RunState::cancelled);
  EXPECT_TRUE(get(store_.nodes()).empty()) << "the node has left";
}

}  // namespace
}  // namespace stint::fleet
