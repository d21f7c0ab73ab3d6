#include "driver/driver_router.hpp"

#include "driver/registry.hpp"
#include "stint/asio.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stint::driver {
namespace {

/// Records the orders that it is given, and begins none.
class InProcessDriver final : public domain::Driver {
 public:
  Result<std::unique_ptr<domain::Work>> begin(domain::WorkOrder order, domain::WorkContext&) override {
    runs.push_back(order.run);
    return fail(Errc::unavailable, "not today");
  }
  [[nodiscard]] std::string choose_conversation(const domain::WorkOrder& order) override { return "of " + order.run; }

  std::vector<std::string> runs;
};

class SilentContext final : public domain::WorkContext {
 public:
  void publish(const domain::WorkUpdate&) override {}
  Task<Result<>> effects_unknown() override { co_return Result<>(); }
  Task<Result<>> effects_known() override { co_return Result<>(); }
  Task<Result<>> keep_message(std::uint32_t, std::string) override { co_return Result<>(); }
  Task<Result<std::vector<std::string>>> messages(std::uint32_t) override { co_return std::vector<std::string>(); }
  Task<Result<Permit>> acquire(std::string, std::uint32_t) override { co_return fail(Errc::invalid, "no limits"); }
};

class DriverRouterTest : public ::testing::Test {
 protected:
  [[nodiscard]] static domain::WorkOrder order_of(std::string_view driver) {
    domain::WorkOrder order;
    order.run = "run1";
    order.fence = domain::Fence{1};
    order.spec.driver = driver;
    order.spec.invocation.command = {"true"};
    return order;
  }

  Reactor reactor_;
  DriverRouter router_{reactor_, {}};
  SilentContext context_;
};

TEST_F(DriverRouterTest, every_process_driver_of_the_registry_can_begin_an_attempt) {
  for (const DriverEntry& entry : driver_entries()) {
    if (entry.make_dialect == nullptr) continue;
    EXPECT_TRUE(router_.begin(order_of(entry.name), context_)) << entry.name;
    EXPECT_EQ(router_.choose_conversation(order_of(entry.name)).empty(), entry.choose_conversation == nullptr);
  }
}

TEST_F(DriverRouterTest, a_driver_of_this_process_gets_the_orders_that_name_it_and_no_others) {
  InProcessDriver own;
  router_.add("llm", own);
  EXPECT_TRUE(router_.begin(order_of("command"), context_));
  EXPECT_TRUE(own.runs.empty());
  const auto begun = router_.begin(order_of("llm"), context_);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code(), Errc::unavailable) << "its own answer is passed on";
  EXPECT_EQ(own.runs, std::vector<std::string>{"run1"});
  EXPECT_EQ(router_.choose_conversation(order_of("llm")), "of run1");
}

TEST_F(DriverRouterTest, an_unknown_driver_is_refused_with_those_that_there_are) {
  for (const std::string name : {"aider", ""}) {
    const auto begun = router_.begin(order_of(name), context_);
    ASSERT_FALSE(begun) << name;
    EXPECT_EQ(begun.error().code(), Errc::invalid);
    EXPECT_EQ(begun.error().what(), domain::why_no_driver(name));
    EXPECT_EQ(router_.choose_conversation(order_of(name)), "");
  }
}

}  // namespace
}  // namespace stint::driver
