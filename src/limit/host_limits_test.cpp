// Waits for host limits on the reactor.
#include "limit/host_limits.hpp"

#include "limit/listing.hpp"
#include "os/blocking_run.hpp"
#include "os/test_folder.hpp"
#include "stint/combinators.hpp"
#include "stint/scope.hpp"

#include <gtest/gtest.h>

namespace stint::limit {
namespace {

using namespace std::chrono_literals;

class HostLimitsTest : public testing::TestWithParam<bool> {
 protected:
  HostLimitsTest() : limits_(reactor_, system_, GetParam()) {}

  HostRequest request(std::string name, std::uint32_t capacity = 1, std::uint32_t weight = 1) {
    HostRequest request;
    request.limit.name = std::move(name);
    request.limit.directory = folder_.path();
    request.limit.capacity = capacity;
    request.weight = weight;
    return request;
  }
  static Claimant who(std::string run) {
    Claimant claimant;
    claimant.run = run + ":1";
    claimant.label = std::move(run);
    return claimant;
  }
  /// Runs one task to completion.
  void run(Task<> task) { os::blocking_run(reactor_, std::move(task)); }
  Listing look(const std::string& name) { return list(request(name).limit); }

  os::TestFolder folder_;
  Reactor reactor_;
  domain::System system_{.wall_now = [] { return WallTime(); }, .random = [] { return std::uint64_t{4}; }};
  HostLimits limits_;
};
INSTANTIATE_TEST_SUITE_P(, HostLimitsTest, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "inotify" : "poll"; });

TEST_P(HostLimitsTest, a_release_grants_the_next_waiter) {
  auto body = [&]() -> Task<> {
    auto first = co_await limits_.acquire({request("x")}, who("a"));
    EXPECT_TRUE(first);
    EXPECT_EQ(look("x").holders.size(), 1U);
    auto let_go = [&]() -> Task<> {
      co_await sleep_for(5ms);
      EXPECT_EQ(look("x").waiters.size(), 1U);
      first->release();
    };
    auto wait = [&]() -> Task<Result<HostPermit>> { return limits_.acquire({request("x")}, who("b")); };
    auto both = co_await all(let_go(), wait());
    EXPECT_TRUE(both);
    EXPECT_EQ(look("x").holders.front().record->label, "b");
  };
  run(body());
  EXPECT_TRUE(look("x").holders.empty()) << "a permit that no warden has is released by its destructor";
  EXPECT_TRUE(look("x").waiters.empty());
}

TEST_P(HostLimitsTest, a_cancelled_wait_leaves_the_line_and_holds_nothing) {
  auto body = [&]() -> Task<> {
    auto first = co_await limits_.acquire({request("b")}, who("a"));
    auto wait = [&](Scope& scope) -> Task<> {
      auto waiter = [&]() -> Task<> {
        (void)co_await limits_.acquire({request("b"), request("a")}, who("w"));
        ADD_FAILURE() << "it was granted";
      };
      scope.spawn(waiter());
      co_await sleep_for(5ms);
      EXPECT_EQ(look("a").holders.size(), 1U) << "it holds the first of its limits";
      EXPECT_EQ(look("b").waiters.size(), 1U);
      scope.cancel();
    };
    (void)co_await with_scope(std::ref(wait));
    EXPECT_TRUE(look("a").holders.empty());
    EXPECT_TRUE(look("b").waiters.empty());
    EXPECT_EQ(look("b").holders.size(), 1U);
  };
  run(body());
}

TEST_P(HostLimitsTest, a_deadline_means_not_started) {
  auto body = [&]() -> Task<> {
    auto first = co_await limits_.acquire({request("x")}, who("a"));
    HostLimits::Options options;
    options.deadline = Deadline::after(reactor_.now(), 20ms);
    domain::WaitReason refusal;
    options.on_refusal = [&refusal](domain::WaitReason why) { refusal = std::move(why); };
    auto late = co_await limits_.acquire({request("x")}, who("b"), options);
    EXPECT_FALSE(late);
    EXPECT_EQ(late.error().code(), Errc::timed_out);
    EXPECT_EQ(refusal.cause, domain::WaitCause::limit);
    EXPECT_EQ(refusal.limit, "x");
    EXPECT_EQ(refusal.capacity, 1U);
    EXPECT_EQ(refusal.held, 1);
    EXPECT_EQ(refusal.ahead, 0U);
    EXPECT_EQ(refusal.holders.size(), 1U);
    EXPECT_EQ(refusal.holders.front().label, "a");
    EXPECT_EQ(refusal.holders.front().pid, ::getpid());
    options.deadline = Deadline(reactor_.now() - 1s);
    EXPECT_EQ((co_await limits_.acquire({request("x")}, who("b"), options)).error().code(), Errc::timed_out);
    options.deadline = Deadline();
    options.may_wait = false;
    refusal = {};
    EXPECT_EQ((co_await limits_.acquire({request("x")}, who("b"), options)).error().code(), Errc::full);
    EXPECT_EQ(refusal.limit, "x");
    EXPECT_TRUE(look("x").waiters.empty());
  };
  run(body());
}

TEST_P(HostLimitsTest, the_listener_gets_the_reason_and_the_end_of_a_wait) {
  auto body = [&]() -> Task<> {
    auto first = co_await limits_.acquire({request("x")}, who("a"));
    std::vector<std::string> reports;
    HostLimits::Options options;
    options.deadline = Deadline::after(reactor_.now(), 20ms);
    options.listener = [&](const domain::WaitReason* why) {
      reports.push_back(why != nullptr ? why->limit + " of " + why->holders.front().label : "over");
    };
    (void)co_await limits_.acquire({request("x")}, who("b"), options);
    EXPECT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports.front(), "x of a");
    EXPECT_EQ(reports.back(), "over");
    reports.clear();
    (void)co_await limits_.acquire({request("free")}, who("b"), options);
    EXPECT_TRUE(reports.empty()) << "no call without a wait";
  };
  run(body());
}

TEST_P(HostLimitsTest, a_limit_listed_twice_is_refused) {
  auto body = [&]() -> Task<> {
    for (const auto& [a, b] : {std::pair("x", "x"), std::pair("a:b", "a.b")}) {
      auto twice = co_await limits_.acquire({request(a), request("m"), request(b)}, who("a"));
      EXPECT_FALSE(twice);
      if (!twice) EXPECT_EQ(twice.error().code(), Errc::invalid);
    }
    EXPECT_TRUE(look("m").holders.empty());
  };
  run(body());
}

TEST_P(HostLimitsTest, weights_add_up_to_the_capacity) {
  auto body = [&]() -> Task<> {
    HostLimits::Options now;
    now.may_wait = false;
    auto two = co_await limits_.acquire({request("x", 3, 2)}, who("a"), now);
    EXPECT_TRUE(two);
    EXPECT_FALSE(co_await limits_.acquire({request("x", 3, 2)}, who("b"), now));
    auto one = co_await limits_.acquire({request("x", 3, 1)}, who("c"), now);
    EXPECT_TRUE(one);
    EXPECT_EQ((co_await limits_.acquire({request("x", 3, 4)}, who("d"), now)).error().code(), Errc::invalid);
    two->release();
    EXPECT_TRUE(co_await limits_.acquire({request("x", 3, 2)}, who("b"), now));
  };
  run(body());
}

TEST_P(HostLimitsTest, a_run_does_not_wait_for_a_limit_it_holds) {
  auto body = [&]() -> Task<> {
    auto outer = co_await limits_.acquire({request("x")}, who("outer"));
    Claimant inner = who("inner");
    inner.marks = {"outer:1"};
    auto nested = co_await limits_.acquire({request("x")}, inner);
    EXPECT_TRUE(nested);
    EXPECT_TRUE(nested && nested->empty());
  };
  run(body());
}

TEST_P(HostLimitsTest, a_slot_that_is_a_link_is_refused) {
  folder_.write("precious", "precious");
  std::filesystem::create_symlink(folder_ / "precious", folder_ / "x.0.lock");
  auto body = [&]() -> Task<> {
    auto refused = co_await limits_.acquire({request("x")}, who("a"));
    EXPECT_FALSE(refused);
    EXPECT_EQ(look("x").waiters.size(), 0U);
  };
  run(body());
  EXPECT_EQ(folder_.read("precious"), "precious");
}

}  // namespace
}  // namespace stint::limit
