// The host permits of runs, from a snapshot, with lock files in a folder of the test.
#include "limit/host_permits.hpp"

#include "limit/homes.hpp"
#include "limit/listing.hpp"
#include "os/blocking_run.hpp"
#include "os/test_folder.hpp"
#include "stint/combinators.hpp"
#include "stint/notification.hpp"
#include "stint/scope.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace stint::limit {
namespace {

using namespace std::chrono_literals;
using Held = Result<std::unique_ptr<domain::HeldPermits>>;

class HostPermitsTest : public testing::Test {
 protected:
  HostPermitsTest() {
    auto snapshot = std::make_shared<project::Snapshot>();
    snapshot->limit_directories.limits = folder_.path() + "/limits";
    snapshot->limit_directories.agents = folder_.path() + "/agents";
    snapshot->host_limits["train"] = {{"agent:train", 1, 1}, {"gpu", 2, 2}};
    snapshot_ = std::move(snapshot);
  }
  void run(Task<> task) { os::blocking_run(reactor_, std::move(task)); }
  Listing look(const std::string& name) { return list(Homes(snapshot_->limit_directories).find(name, 1).value()); }
  Task<Held> acquire(std::string agent = "train") {
    return permits_.acquire(std::move(agent), [this](const domain::WaitReason* reason) {
      reasons_.push_back(reason == nullptr ? std::nullopt : std::optional(*reason));
      reported_.notify();
    });
  }

  os::TestFolder folder_;
  Reactor reactor_;
  domain::System system_{.wall_now = [] { return WallTime(); }, .random = [this] { return ++random_; }};
  std::uint64_t random_ = 4;
  std::shared_ptr<const project::Snapshot> snapshot_;
  HostPermits permits_{reactor_, system_, [this] { return snapshot_; }};
  std::vector<std::optional<domain::WaitReason>> reasons_;
  Notification reported_;
};

TEST_F(HostPermitsTest, only_agents_with_limits_of_this_host_need_permits) {
  EXPECT_TRUE(permits_.needed("train"));
  EXPECT_TRUE(permits_.needed("train@openai")) << "with any account";
  EXPECT_FALSE(permits_.needed("plain"));
  auto body = [&]() -> Task<> {
    const Held none = co_await acquire("plain");
    EXPECT_FALSE(none);
  };
  run(body());
}

TEST_F(HostPermitsTest, grants_all_limits_together_and_names_the_attempt_that_holds_them) {
  auto body = [&]() -> Task<> {
    Held held = co_await acquire();
    EXPECT_TRUE(held);
    EXPECT_TRUE(reasons_.empty()) << "it did not wait";
    EXPECT_EQ(look("agent:train").holders.size(), 1U);
    EXPECT_EQ(look("gpu").holders.size(), 2U) << "its weight";
    EXPECT_TRUE((*held)->assign("abc:3", "Train 7"));
    EXPECT_EQ(look("gpu").holders.front().record->run, "abc:3");
    EXPECT_EQ(look("gpu").holders.front().record->label, "Train 7");
    EXPECT_EQ((*held)->slot_of("agent:train"), 0U);
    EXPECT_FALSE((*held)->slot_of("other"));
    (*held)->release();
    EXPECT_TRUE(look("gpu").holders.empty());
    EXPECT_TRUE(look("agent:train").holders.empty());
  };
  run(body());
}

TEST_F(HostPermitsTest, a_wait_has_a_reason_until_it_is_over) {
  auto body = [&]() -> Task<> {
    Held first = co_await acquire();
    EXPECT_TRUE(first && (*first)->assign("abc:1", "first"));
    auto let_go = [&]() -> Task<> {
      while (reasons_.empty()) co_await reported_.wait(reported_.count());
      (*first)->release();
    };
    auto wait = [&]() -> Task<Held> { return acquire(); };
    auto both = co_await all(let_go(), wait());
    EXPECT_TRUE(both);
    EXPECT_EQ(look("gpu").holders.size(), 2U);
  };
  run(body());
  ASSERT_GE(reasons_.size(), 2U);
  ASSERT_TRUE(reasons_.front());
  const domain::WaitReason& reason = *reasons_.front();
  EXPECT_EQ(reason.cause, domain::WaitCause::limit);
  EXPECT_EQ(reason.limit, "agent:train");
  EXPECT_EQ(reason.capacity, 1U);
  EXPECT_EQ(reason.held, 1);
  EXPECT_EQ(reason.ahead, 0U);
  ASSERT_EQ(reason.holders.size(), 1U);
  EXPECT_EQ(reason.holders[0].run, "abc");
  EXPECT_EQ(reason.holders[0].label, "first");
  EXPECT_EQ(reason.holders[0].pid, ::getpid());
  EXPECT_FALSE(reasons_.back()) << "it is over";
}

TEST_F(HostPermitsTest, a_stopped_wait_leaves_the_line_and_holds_nothing) {
  auto body = [&]() -> Task<> {
    Held first = co_await acquire();
    EXPECT_TRUE(first);
    const Held late = co_await with_timeout(50ms, acquire());
    EXPECT_FALSE(late);
    EXPECT_TRUE(look("agent:train").waiters.empty());
    EXPECT_FALSE(reasons_.back()) << "it is over";
    (*first)->release();
    EXPECT_TRUE(look("gpu").holders.empty());
  };
  run(body());
}

TEST_F(HostPermitsTest, permits_without_a_process_are_released_with_their_handle) {
  auto body = [&]() -> Task<> {
    {
      const Held held = co_await acquire();
      EXPECT_TRUE(held);
    }
    EXPECT_TRUE(look("gpu").holders.empty());
  };
  run(body());
}

}  // namespace
}  // namespace stint::limit
