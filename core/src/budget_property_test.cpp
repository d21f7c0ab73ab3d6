// A tree of budgets against a naive model that recomputes everything from a list of operations.
#include "stint/budget.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace stint {
namespace {

/// Tokens only. Every figure is recomputed from the lists of budgets and reservations, following the documentation.
class BudgetModel {
 public:
  struct Node {
    int parent = -1;
    std::int64_t bound = Allowance::kUnlimited;
    std::int64_t used = 0;  // reserved through this budget
    bool settled = false;
  };
  struct Claim {
    int node = 0;
    std::int64_t amount = 0;
    bool open = true;
  };
  std::vector<Node> nodes;
  std::vector<Claim> claims;

  bool refuses(int node) const {
    for (; node >= 0; node = nodes[node].parent) {
      if (nodes[node].settled) return true;
    }
    return false;
  }
  /// Everything taken from `pool`: used and reserved here and by descendants that share it, and split-off children,
  /// which count with their bound or what they have taken, whichever is more.
  std::int64_t taken(int pool) const {
    std::int64_t sum = own(pool);
    for (int child = 0; child < static_cast<int>(nodes.size()); ++child) {
      if (nodes[child].parent != pool) continue;
      const bool carved = nodes[child].bound != Allowance::kUnlimited && !nodes[child].settled;
      sum += carved ? std::max(nodes[child].bound, taken(child)) : taken(child);
    }
    return sum;
  }
  std::int64_t left(int node) const {
    while (nodes[node].parent >= 0 && (nodes[node].settled || nodes[node].bound == Allowance::kUnlimited)) {
      node = nodes[node].parent;
    }
    if (nodes[node].bound == Allowance::kUnlimited) return Allowance::kUnlimited;
    return std::max(std::int64_t{0}, nodes[node].bound - taken(node));
  }
  std::int64_t spent(int node) const {
    std::int64_t sum = nodes[node].used;
    for (int child = 0; child < static_cast<int>(nodes.size()); ++child) {
      if (nodes[child].parent == node) sum += spent(child);
    }
    return sum;
  }

 private:
  std::int64_t own(int node) const {
    std::int64_t sum = nodes[node].used;
    for (const Claim& claim : claims) sum += claim.open && claim.node == node ? claim.amount : 0;
    return sum;
  }
};

class BothBudgets {
 public:
  explicit BothBudgets(std::int64_t bound) {
    budgets_.emplace_back(Allowance{.tokens = bound});
    model_.nodes.push_back({.bound = bound});
  }
  void split(int node, std::int64_t bound) {
    const bool possible = !model_.refuses(node) && (bound == Allowance::kUnlimited || bound <= model_.left(node));
    auto child = budgets_[node].split({.tokens = bound});
    RC_ASSERT(child.has_value() == possible);
    if (!child) return;
    budgets_.push_back(std::move(*child));
    model_.nodes.push_back({.parent = node, .bound = bound});
  }
  void reserve(int node, std::int64_t amount) {
    const bool possible = !model_.refuses(node) && amount <= model_.left(node);
    auto claim = budgets_[node].reserve({.tokens = amount});
    RC_ASSERT(claim.has_value() == possible);
    if (!claim) return;
    claims_.push_back(std::move(*claim));
    model_.claims.push_back({.node = node, .amount = amount});
  }
  void settle_claim(int index, std::int64_t actual) {
    if (claims_.empty()) return;
    const std::size_t i = static_cast<std::size_t>(index) % claims_.size();
    if (model_.claims[i].open) model_.nodes[model_.claims[i].node].used += actual;
    model_.claims[i].open = false;
    claims_[i].settle({.tokens = actual});
  }
  void settle(int node) {
    budgets_[node].settle();
    model_.nodes[node].settled = true;
  }
  int pick(int number) const { return number % static_cast<int>(budgets_.size()); }

  void compare() const {
    for (int node = 0; node < static_cast<int>(budgets_.size()); ++node) {
      RC_ASSERT(budgets_[node].remaining(TimePoint()).tokens == model_.left(node));
      RC_ASSERT(budgets_[node].spent().tokens == model_.spent(node));
    }
  }

 private:
  std::vector<Budget> budgets_;
  std::vector<Reservation> claims_;
  BudgetModel model_;
};

RC_GTEST_PROP(BudgetProperty, a_tree_agrees_with_a_naive_model, ()) {
  const auto amount = rc::gen::inRange<std::int64_t>(0, 120);
  const auto bound = rc::gen::oneOf(rc::gen::just(Allowance::kUnlimited), rc::gen::inRange<std::int64_t>(0, 200));
  BothBudgets both(*bound);
  const int steps = *rc::gen::inRange(0, 60);
  for (int step = 0; step < steps; ++step) {
    const int node = both.pick(*rc::gen::inRange(0, 1000));
    switch (*rc::gen::weightedElement<int>({{3, 0}, {6, 1}, {3, 2}, {2, 3}})) {
      case 0: both.split(node, *bound); break;
      case 1: both.reserve(node, *amount); break;
      case 2: both.settle_claim(*rc::gen::inRange(0, 1000), *amount); break;
      default: both.settle(node); break;
    }
    both.compare();
  }
}

/// Time left, computed by summing the running intervals.
RC_GTEST_PROP(BudgetProperty, the_clock_counts_running_time_only, ()) {
  const auto stretch = rc::gen::inRange<std::int64_t>(0, 50);
  Budget parent(Allowance{.time = Duration(*rc::gen::inRange<std::int64_t>(0, 1000))});
  Budget child = *parent.split({.time = Duration(*rc::gen::inRange<std::int64_t>(0, 1000))});
  Duration parent_left = parent.remaining(TimePoint()).time;
  Duration child_left = child.remaining(TimePoint()).time;
  child_left = std::max(child_left, Duration());
  Duration own_left = child_left;
  bool parent_paused = false, child_paused = false, parent_started = false, child_started = false;
  TimePoint now{Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000))};
  const int steps = *rc::gen::inRange(0, 40);
  for (int step = 0; step < steps; ++step) {
    const Duration passes(*stretch);
    now += passes;
    if (parent_started && !parent_paused) parent_left = std::max(parent_left - passes, Duration());
    if (child_started && !parent_paused && !child_paused) own_left = std::max(own_left - passes, Duration());
    switch (*rc::gen::inRange(0, 6)) {
      case 0: parent.pause(now), parent_paused = true; break;
      case 1: parent.resume(now), parent_paused = false; break;
      case 2: child.pause(now), child_paused = true; break;
      case 3: child.resume(now), child_paused = false; break;
      case 4: parent.start(now), parent_started = true; break;
      default: child.start(now), parent_started = child_started = true; break;
    }
    RC_ASSERT(parent.remaining(now).time == parent_left);
    RC_ASSERT(child.remaining(now).time == std::min(own_left, parent_left));
    RC_ASSERT(child.deadline(now) == Deadline(now + std::min(own_left, parent_left)));
  }
}

}  // namespace
}  // namespace stint
