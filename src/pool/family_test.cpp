#include "pool/family.hpp"

#include "pool/pool_world.hpp"

namespace stint::pool {
namespace {

constexpr const char* kHead = "aaaaaaaaaaaa";
constexpr const char* kChild = "bbbbbbbbbbbb";

class FamilyTest : public PoolWorld {
 protected:
  ~FamilyTest() override { stop(); }
  Carried* take(std::vector<domain::RunInput::BudgetAbove> budgets) {
    taken_.push_back(std::make_unique<Carried>(Carried::Parts{runs_, store_, health_}, node_, claim()));
    taken_.back()->budgets = std::move(budgets);
    return taken_.back().get();
  }
  void use(Carried& carried, std::int64_t tokens) {
    carried.usage.out = tokens;
    used_.notify();
  }
  static domain::BudgetSpec tokens(std::int64_t most) { return {.tokens = most}; }

  CarriedRuns runs_;
  std::vector<std::unique_ptr<Carried>> taken_;
  Notification used_;
};

TEST_F(FamilyTest, own_usage_above_the_budget_ends_the_attempt) {
  submit(kHead);
  Carried* const carried = take({});
  carried->usage.out = 100;
  end_if_exceeded(*carried, tokens(100));
  EXPECT_FALSE(carried->is_stopped());
  carried->usage.out = 101;
  end_if_exceeded(*carried, tokens(100));
  EXPECT_EQ(carried->stopped(), Carried::Stop::expired);
  EXPECT_EQ(carried->stop_text(), "the token budget is used up");
}

TEST_F(FamilyTest, usage_of_a_child_ends_all_that_draw_on_the_budget_of_its_parent) {
  submit(kHead);
  Carried* const parent = take({{kHead, tokens(100)}});
  submit(kChild, domain::OnCrash::rerun, "0", {kHead});
  Carried* const child = take({{kHead, tokens(100)}});
  scope_.spawn(watch_family(store_, runs_, *child, used_));
  sim_.advance(1s);
  use(*child, 100);
  sim_.advance(2s);
  EXPECT_FALSE(child->is_stopped());
  use(*child, 101);
  sim_.advance(2s);
  EXPECT_EQ(child->stopped(), Carried::Stop::expired);
  EXPECT_EQ(parent->stopped(), Carried::Stop::expired);
  EXPECT_NE(parent->stop_text().find("with the runs below it"), std::string::npos);
  EXPECT_NE(child->stop_text().find(kHead), std::string::npos);
}

TEST_F(FamilyTest, many_reports_of_usage_are_one_write_a_second) {
  submit(kHead);
  Carried* const carried = take({{kHead, tokens(1'000'000)}});
  scope_.spawn(watch_family(store_, runs_, *carried, used_));
  for (int i = 1; i <= 100; ++i) {
    use(*carried, i);
    sim_.advance(10ms);
  }
  sim_.advance(2s);
  EXPECT_EQ(get(store_.used({kHead})).front().used.tokens, 100) << "the last one is there";
}

TEST_F(FamilyTest, nothing_begins_on_a_budget_that_other_runs_have_used_up) {
  submit(kHead);
  Carried* const parent = take({});
  submit(kChild, domain::OnCrash::rerun, "0", {kHead});
  Carried* const child = take({{kHead, tokens(100)}});
  domain::BudgetSpec left;
  const auto why = [&] {
    std::string answer = "?";
    left = {.tokens = 60, .cost_micros = 7};
    auto body = [&]() -> Task<> { answer = co_await tighten_to_shared(store_, *child, left); };
    scope_.spawn(body());
    sim_.advance(1s);
    return answer;
  };
  (void)get(store_.report(node_, parent->attempt_key(), {.tokens = 30, .cost_micros = 0}));
  EXPECT_EQ(why(), "");
  EXPECT_EQ(left, (domain::BudgetSpec{.tokens = 60, .cost_micros = 7})) << "its own is tighter";
  (void)get(store_.report(node_, parent->attempt_key(), {.tokens = 99, .cost_micros = 0}));
  EXPECT_EQ(why(), "");
  EXPECT_EQ(left, (domain::BudgetSpec{.tokens = 1, .cost_micros = 7})) << "that of its parent is";
  (void)get(store_.report(node_, parent->attempt_key(), {.tokens = 100, .cost_micros = 0}));
  EXPECT_NE(why().find(kHead), std::string::npos);
}

}  // namespace
}  // namespace stint::pool
