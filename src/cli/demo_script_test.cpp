#include "cli/demo_script.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stint::cli {
namespace {

DemoOptions with_capacity(std::uint32_t capacity) {
  DemoOptions options;
  options.capacity = capacity;
  return options;
}

TEST(DemoScript, is_in_order_of_time_and_ends_with_the_close) {
  for (std::uint32_t capacity = 1; capacity <= 32; ++capacity) {
    const auto acts = script(with_capacity(capacity));
    EXPECT_TRUE(std::ranges::is_sorted(acts, {}, &Act::at));
    EXPECT_EQ(acts.back().kind, ActKind::close);
    EXPECT_TRUE(std::ranges::all_of(acts, [](const Act& act) { return !act.caption.empty(); }));
  }
}

TEST(DemoScript, a_garage_with_one_space_has_no_large_guests) {
  const auto acts = script(with_capacity(1));
  EXPECT_TRUE(std::ranges::none_of(
      acts, [](const Act& act) { return act.kind == ActKind::large || act.kind == ActKind::whole; }));
}

TEST(DemoScript, shrinks_below_what_is_inside_and_grows_back) {
  const auto acts = script(with_capacity(8));
  std::vector<std::uint32_t> sizes;
  for (const Act& act : acts) {
    if (act.kind == ActKind::resize) sizes.push_back(act.number);
  }
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{4, 8}));
}

TEST(DemoScript, the_same_seed_gives_the_same_visits_and_another_one_others) {
  Habits one(1, 3), same(1, 3), other(2, 3);
  bool differs = false;
  for (int round = 0; round < 10; ++round) {
    const Visit visit = one.next();
    const Visit again = same.next();
    EXPECT_EQ(visit.drive, again.drive);
    EXPECT_EQ(visit.stay, again.stay);
    EXPECT_EQ(visit.patience, again.patience);
    differs = differs || other.next().stay != visit.stay;
  }
  EXPECT_TRUE(differs);
}

TEST(DemoScript, guests_have_unique_names) {  // the garage uses them as keys
  std::multiset<std::string> names;
  for (std::uint32_t worker = 0; worker < 200; ++worker) names.insert(worker_name(worker));
  for (const Act& act : script(with_capacity(4))) {
    if (!act.who.empty()) names.insert(act.who);
  }
  for (const std::string& name : names) EXPECT_EQ(names.count(name), 1u) << name;
}

}  // namespace
}  // namespace stint::cli
