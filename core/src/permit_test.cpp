// Permits: moved, split, merged, forgotten, detached and adopted; and the list of holders.
#include "semaphore_test_support.hpp"

#include <algorithm>
#include <type_traits>

namespace stint {
namespace {

Permit take(Semaphore& semaphore, std::uint32_t units, std::string_view label = {}) {
  AcquireOptions options;
  options.units = units;
  options.label = label;
  auto permit = semaphore.try_acquire(options);
  EXPECT_TRUE(permit.has_value());
  return permit ? std::move(*permit) : Permit();
}

/// A semaphore of ten with its list of holders, as "label: units".
struct Held : testing::TestWithParam<bool> {
  static Semaphore::Options options(bool tracks) {
    Semaphore::Options options;
    options.track_holders = tracks;
    return options;
  }
  void expect_listed(Log wanted) {
    if (!GetParam()) return;
    Log listed;
    for (const auto& holder : semaphore.holders()) listed.push_back(holder.label + ": " + std::to_string(holder.units));
    std::ranges::sort(listed);
    std::ranges::sort(wanted);
    EXPECT_EQ(listed, wanted);
  }
  void TearDown() override {
    EXPECT_EQ(semaphore.available(), semaphore.capacity());
    expect_listed({});
  }
  Semaphore semaphore{"slots", 10, options(GetParam())};
  Semaphore other{"others", 10, options(GetParam())};
};
// Everything is the same whether holders are listed or not.
using PermitTest = Held;
INSTANTIATE_TEST_SUITE_P(Listed, PermitTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "yes" : "no"; });

TEST_P(PermitTest, only_moves) {
  static_assert(!std::is_copy_constructible_v<Permit> && !std::is_copy_assignable_v<Permit>);
  static_assert(std::is_nothrow_move_constructible_v<Permit> && std::is_nothrow_move_assignable_v<Permit>);
}
TEST_P(PermitTest, a_move_leaves_the_source_empty) {
  Permit from = take(semaphore, 3, "a");
  Permit to = std::move(from);
  EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(from.units(), 0u);
  EXPECT_EQ(from.semaphore(), nullptr);
  EXPECT_EQ(to.units(), 3u);
  EXPECT_EQ(to.semaphore(), &semaphore);
  EXPECT_EQ(semaphore.available(), 7);
  expect_listed({"a: 3"});
}
TEST_P(PermitTest, an_assignment_returns_the_units_held_before) {
  Permit permit = take(semaphore, 3, "a");
  permit = take(other, 2, "b");
  EXPECT_EQ(semaphore.available(), 10);
  EXPECT_EQ(other.available(), 8);
  permit = Permit();
  EXPECT_EQ(other.available(), 10);
}
TEST_P(PermitTest, self_assignment_keeps_the_units) {
  Permit permit = take(semaphore, 3, "a");
  Permit& itself = permit;
  permit = std::move(itself);
  EXPECT_EQ(permit.units(), 3u);
  EXPECT_EQ(semaphore.available(), 7);
  expect_listed({"a: 3"});
}
TEST_P(PermitTest, a_released_permit_is_empty_and_may_be_released_again) {
  Permit permit = take(semaphore, 3, "a");
  permit.release();
  EXPECT_FALSE(permit);
  permit.release();
  EXPECT_EQ(semaphore.available(), 10);
}

TEST_P(PermitTest, splits_into_two_that_are_returned_separately) {
  Permit whole = take(semaphore, 5, "a");
  Result<Permit> part = whole.split(2);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(whole.units(), 3u);
  EXPECT_EQ(part->units(), 2u);
  EXPECT_EQ(semaphore.available(), 5) << "a split is no release";
  expect_listed({"a: 3", "a: 2"});
  whole.release();
  EXPECT_EQ(semaphore.available(), 8);
  expect_listed({"a: 2"});
}
TEST_P(PermitTest, splitting_off_zero_units_gives_an_empty_permit) {
  Permit whole = take(semaphore, 5, "a");
  const Result<Permit> part = whole.split(0);
  ASSERT_TRUE(part.has_value());
  EXPECT_FALSE(*part);
  EXPECT_EQ(whole.units(), 5u);
  expect_listed({"a: 5"});
}
TEST_P(PermitTest, splitting_off_all_units_leaves_it_empty) {
  Permit whole = take(semaphore, 5, "a");
  const Result<Permit> part = whole.split(5);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->units(), 5u);
  EXPECT_FALSE(whole);
  expect_listed({"a: 5"});
}
TEST_P(PermitTest, can_not_split_off_more_than_it_holds) {
  Permit whole = take(semaphore, 5, "a");
  EXPECT_EQ(whole.split(6).error(), Errc::invalid);
  EXPECT_EQ(Permit().split(1).error(), Errc::invalid);
  EXPECT_EQ(whole.units(), 5u);
}

TEST_P(PermitTest, merges_with_a_permit_of_the_same_semaphore) {
  Permit one = take(semaphore, 2, "a"), two = take(semaphore, 3, "b");
  EXPECT_TRUE(one.merge(std::move(two)));
  EXPECT_EQ(one.units(), 5u);
  EXPECT_FALSE(two);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(semaphore.available(), 5);
  expect_listed({"a: 5"});
}
TEST_P(PermitTest, merges_with_an_empty_permit_either_way) {
  Permit permit = take(semaphore, 2, "a");
  EXPECT_TRUE(permit.merge(Permit()));
  EXPECT_EQ(permit.units(), 2u);
  Permit empty;
  EXPECT_TRUE(empty.merge(std::move(permit)));
  EXPECT_EQ(empty.units(), 2u);
  expect_listed({"a: 2"});
}
TEST_P(PermitTest, merging_with_itself_changes_nothing) {
  Permit permit = take(semaphore, 2, "a");
  Permit& itself = permit;
  EXPECT_TRUE(permit.merge(std::move(itself)));
  EXPECT_EQ(permit.units(), 2u);
  EXPECT_EQ(semaphore.available(), 8);
  expect_listed({"a: 2"});
}
TEST_P(PermitTest, permits_of_different_semaphores_are_not_merged) {
  Permit one = take(semaphore, 2, "a"), two = take(other, 3, "b");
  const auto refused = one.merge(std::move(two));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error(), Errc::invalid);
  EXPECT_NE(refused.error().what().find("others"), std::string_view::npos) << "names both";
  EXPECT_EQ(one.units(), 2u);
  EXPECT_EQ(two.units(), 3u);  // NOLINT(bugprone-use-after-move): that is what is tested
  expect_listed({"a: 2"});
}

TEST_P(PermitTest, releases_some_of_its_units) {
  Permit permit = take(semaphore, 5, "a");
  EXPECT_TRUE(permit.release(2));
  EXPECT_EQ(permit.units(), 3u);
  EXPECT_EQ(semaphore.available(), 7);
  expect_listed({"a: 3"});
  EXPECT_EQ(permit.release(4).error(), Errc::invalid);
  EXPECT_EQ(semaphore.available(), 7);
  EXPECT_TRUE(permit.release(3));
  EXPECT_FALSE(permit);
}

TEST_P(PermitTest, forgotten_units_shrink_the_capacity) {
  Permit permit = take(semaphore, 4, "a");
  permit.forget();
  EXPECT_FALSE(permit);
  EXPECT_EQ(semaphore.capacity(), 6u);
  EXPECT_EQ(semaphore.available(), 6);
  expect_listed({});
  permit.forget();
  EXPECT_EQ(semaphore.capacity(), 6u) << "once";
}
TEST_P(PermitTest, forgotten_units_repay_a_debt_first) {
  Permit big = take(semaphore, 8, "a"), small = take(semaphore, 2, "b");
  EXPECT_TRUE(semaphore.set_capacity(5));
  big.forget();
  EXPECT_EQ(semaphore.capacity(), 0u);
  EXPECT_EQ(semaphore.available(), -2);
  small.release();
  EXPECT_EQ(semaphore.available(), 0);
}

TEST_P(PermitTest, detached_units_stay_held_until_released_or_adopted) {
  Permit permit = take(semaphore, 4, "a");
  EXPECT_EQ(permit.detach(), 4u);
  EXPECT_FALSE(permit);
  EXPECT_EQ(semaphore.available(), 6);
  expect_listed({});
  EXPECT_TRUE(semaphore.release(1));
  Permit adopted = semaphore.adopt(3);
  EXPECT_EQ(semaphore.available(), 7);
  adopted.release();
}
TEST_P(PermitTest, nothing_is_detached_from_a_moved_or_released_permit) {
  Permit permit = take(semaphore, 4, "a");
  Permit moved = std::move(permit);
  EXPECT_EQ(permit.detach(), 0u);  // NOLINT(bugprone-use-after-move): that is what is tested
  moved.release();
  EXPECT_EQ(moved.detach(), 0u);
  EXPECT_EQ(Permit().detach(), 0u);
}
TEST_P(PermitTest, adopted_units_are_listed_and_may_be_merged_and_split) {
  Permit permit = take(semaphore, 4, "a");
  const std::uint32_t detached = permit.split(3)->detach();
  Permit adopted = semaphore.adopt(detached);
  expect_listed({"a: 1", ": 3"});
  EXPECT_TRUE(permit.merge(std::move(adopted)));
  expect_listed({"a: 4"});
  Result<Permit> part = permit.split(2);
  expect_listed({"a: 2", "a: 2"});
  EXPECT_FALSE(semaphore.adopt(0)) << "nothing is nothing";
}

TEST_P(PermitTest, outlives_the_coroutine_and_the_scope_that_acquired_it) {
  Permit kept;
  {
    Simulator sim;
    RootScope scope(sim);
    const auto acquire = [&]() -> Task<> {
      if (auto permit = co_await semaphore.acquire(2)) kept = std::move(*permit);
    };
    scope.spawn(acquire());
    sim.settle();
  }
  EXPECT_EQ(kept.units(), 2u);
  EXPECT_EQ(semaphore.available(), 8);
}
TEST_P(PermitTest, one_holder_may_acquire_twice_and_both_are_listed) {
  const Permit one = take(semaphore, 2, "run 7"), two = take(semaphore, 3, "run 7");
  expect_listed({"run 7: 2", "run 7: 3"});
}
TEST_P(PermitTest, the_label_names_the_holder) {
  Permit permit;
  {
    std::string label = "run 7 of " + std::string(100, 'x');
    permit = take(semaphore, 1, label);
    std::ranges::fill(label, '?');
  }
  expect_listed({"run 7 of " + std::string(100, 'x') + ": 1"});
}

TEST(PermitHolders, each_holder_has_the_time_of_its_grant) {
  Simulator sim;
  Semaphore::Options options;
  options.track_holders = true;
  options.clock = &sim;
  Semaphore semaphore("slots", 10, options);
  sim.advance(10s);
  Permit first = take(semaphore, 4, "first");
  sim.advance(10s);
  const Permit second = take(semaphore, 1, "second");
  const Result<Permit> part = first.split(1);
  const auto holders = semaphore.holders();
  ASSERT_EQ(holders.size(), 3u);
  for (const auto& holder : holders) {
    EXPECT_EQ(holder.since, TimePoint(holder.label == "second" ? 20s : 10s)) << "a part is as old as the whole";
  }
}
TEST(PermitHolders, entries_of_the_list_are_reused) {
  Semaphore::Options options;
  options.track_holders = true;
  Semaphore semaphore("slots", 3, options);
  for (int i = 0; i < 1000; ++i) {
    const Permit a = take(semaphore, 1, "a"), b = take(semaphore, 2, "b");
    EXPECT_EQ(semaphore.holders().size(), 2u);
  }
  EXPECT_TRUE(semaphore.holders().empty());
}
TEST(PermitHolders, no_barging_and_no_overdraft_while_holders_are_tracked) {
  Semaphore::Options options;
  options.track_holders = true;
  Line line(2, 0, options);
  line.enter("a");
  EXPECT_FALSE(line.semaphore.try_acquire(2));
  line.enter("two", 2);
  EXPECT_FALSE(line.semaphore.try_acquire(1));
  line.give_back("a");
  line.run();
  EXPECT_EQ(line.log, (Log{"a", "two"}));
  EXPECT_EQ(line.semaphore.holders().size(), 1u);
}
TEST(PermitHolders, an_undelivered_grant_leaves_the_list_complete) {
  Semaphore::Options options;
  options.track_holders = true;
  Line line(1, 0, options);
  for (const char* name : {"a", "b", "c"}) line.enter(name);
  line.give_back("a");
  line.cancel("b");  // granted, but not resumed
  line.run();
  line.give_back("c");
  const Permit next = take(line.semaphore, 1, "next");
  ASSERT_EQ(line.semaphore.holders().size(), 1u);
  EXPECT_EQ(line.semaphore.holders()[0].label, "next");
}
TEST(PermitHolders, holders_are_listed_only_if_tracked) {
  Semaphore semaphore("slots", 1);
  const Permit permit = take(semaphore, 1, "a");
  EXPECT_TRUE(semaphore.holders().empty());
}

}  // namespace
}  // namespace stint
