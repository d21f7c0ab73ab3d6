#include "pool/effects_mark.hpp"

#include "pool/carried.hpp"
#include "pool/pool_world.hpp"
#include "stint/combinators.hpp"

namespace stint::pool {
namespace {

class EffectsMarkTest : public PoolWorld {
 protected:
  EffectsMarkTest() {
    submit("aaaaaaaaaaaa");
    claim_ = claim();
    carried_ = std::make_unique<Carried>(Carried::Parts{runs_, store_, health_}, node_, claim_);
  }
  ~EffectsMarkTest() override { stop(); }
  EffectsMark& mark() { return carried_->effects; }
  [[nodiscard]] bool stored() { return look(claim_.id).unsafe; }

  CarriedRuns runs_;
  store::Claim claim_;
  std::unique_ptr<Carried> carried_;
};

TEST_F(EffectsMarkTest, is_set_in_the_store_before_a_call_and_cleared_after_it) {
  EXPECT_TRUE(get(mark().begin_call()));
  EXPECT_TRUE(stored());
  EXPECT_TRUE(get(mark().end_call()));
  EXPECT_FALSE(stored());
}

TEST_F(EffectsMarkTest, calls_nest_and_cost_one_write) {
  EXPECT_TRUE(get(mark().begin_call()));
  EXPECT_TRUE(get(mark().begin_call()));
  EXPECT_TRUE(get(mark().end_call()));
  EXPECT_TRUE(stored());
  EXPECT_TRUE(get(mark().end_call()));
  EXPECT_FALSE(stored());
  EXPECT_EQ(store_.marks, (std::vector<bool>{true, false}));
}

TEST_F(EffectsMarkTest, a_stored_conversation_does_not_clear_the_mark_of_a_call) {
  EXPECT_TRUE(get(mark().begin_without_conversation()));
  EXPECT_TRUE(get(mark().begin_call()));
  EXPECT_TRUE(get(mark().conversation_kept()));
  EXPECT_TRUE(stored());
  EXPECT_TRUE(get(mark().end_call()));
  EXPECT_FALSE(stored());
}

TEST_F(EffectsMarkTest, a_call_that_begins_while_the_mark_is_being_cleared_sets_it_again) {
  EXPECT_TRUE(get(mark().begin_call()));
  store_.mark_takes = 1s;
  bool ended = false, begun = false;
  auto end = [&]() -> Task<> { ended = (co_await mark().end_call()).value_or(false); };
  auto begin = [&]() -> Task<> { begun = (co_await mark().begin_call()).value_or(false); };
  scope_.spawn(end());
  sim_.advance(500ms);  // the write that clears the mark is in flight
  scope_.spawn(begin());
  sim_.advance(400ms);
  EXPECT_FALSE(begun) << "the store does not have the mark yet";
  sim_.advance(2s);
  EXPECT_TRUE(ended && begun);
  EXPECT_TRUE(stored());
}

TEST_F(EffectsMarkTest, retries_while_the_store_is_unavailable) {
  store_.marks_failing = 3;
  EXPECT_TRUE(get(mark().begin_call()));
  EXPECT_TRUE(stored());
}

TEST_F(EffectsMarkTest, a_stopped_run_begins_no_call) {
  store_.marks_failing = 1'000'000;
  std::optional<Result<bool>> begun;
  auto begin = [&]() -> Task<> { begun.emplace(co_await mark().begin_call()); };
  scope_.spawn(begin());
  sim_.advance(10s);
  EXPECT_FALSE(begun);
  carried_->stop(Carried::Stop::cancelled, "by test");
  sim_.advance(10s);
  ASSERT_TRUE(begun && *begun);
  EXPECT_FALSE(**begun);
  store_.marks_failing = 0;
  EXPECT_FALSE(get(mark().begin_call()));
  EXPECT_FALSE(stored());
}

TEST_F(EffectsMarkTest, a_call_is_open_from_its_mark_to_its_end) {
  EXPECT_FALSE(mark().has_open_call());
  EXPECT_TRUE(get(mark().begin_call()));
  EXPECT_TRUE(mark().has_open_call());
  EXPECT_TRUE(get(mark().end_call()));
  EXPECT_FALSE(mark().has_open_call());
}

TEST_F(EffectsMarkTest, a_call_that_is_stopped_before_the_store_has_the_mark_is_not_open) {
  store_.mark_takes = 1s;
  auto begin = [&]() -> Task<> { (void)co_await with_timeout(500ms, mark().begin_call()); };
  scope_.spawn(begin());
  sim_.advance(5s);
  EXPECT_FALSE(mark().has_open_call());
}

TEST_F(EffectsMarkTest, fails_if_the_store_refuses_for_good) {
  store_.refuses_marks = true;
  EXPECT_FALSE(ask(mark().begin_call()));
}

TEST_F(EffectsMarkTest, returns_false_to_a_stale_owner) {
  store::Settlement settlement;
  settlement.attempt = claim_.attempt_key();
  settlement.settle = domain::Settle::succeeded;
  std::vector<store::Settlement> settlements;
  settlements.push_back(std::move(settlement));
  (void)get(store_.settle(node_, std::move(settlements)));
  EXPECT_FALSE(get(mark().begin_call()));
}

}  // namespace
}  // namespace stint::pool
