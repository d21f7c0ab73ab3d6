#include "http/shared_answer.hpp"

#include "stint/scope.hpp"
#include "stint/testing.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stint::http {
namespace {

using namespace std::chrono_literals;

/// A store whose value the test changes; each reading takes a while and returns what was there when it began.
class SharedAnswerTest : public testing::Test {
 protected:
  SharedAnswerTest()
      : answer_({.make = [this] { return read(); }, .elapsed = [this] { return sim_.now().time_since_epoch(); }}) {}

  Task<Result<std::string>> read() {
    ++readings_;
    const std::string seen = value_;
    co_await sleep_for(takes_);
    if (fails_) co_return fail(Errc::unavailable, "no store");
    co_return seen;
  }
  void ask(Scope& scope) { scope.spawn(keep(*this)); }
  static Task<> keep(SharedAnswerTest& test) {
    const auto answer = co_await test.answer_.get();
    test.answers_.push_back(answer ? **answer : "failed");
  }

  Simulator sim_;
  std::string value_ = "a";
  Duration takes_ = 5ms;
  bool fails_ = false;
  int readings_ = 0;
  SharedAnswer answer_;
  std::vector<std::string> answers_;
};

TEST_F(SharedAnswerTest, a_hundred_requests_cost_one_reading) {
  RootScope scope(sim_);
  for (int i = 0; i < 100; ++i) ask(scope);
  sim_.advance(5ms);
  EXPECT_EQ(answers_.size(), 100U);
  EXPECT_EQ(readings_, 1);
  ask(scope);
  sim_.settle();
  EXPECT_EQ(answers_.size(), 101U) << "it is fresh enough";
  EXPECT_EQ(readings_, 1);
}

TEST_F(SharedAnswerTest, is_read_again_when_it_is_old) {
  RootScope scope(sim_);
  ask(scope);
  sim_.advance(SharedAnswer::kFresh);
  value_ = "b";
  ask(scope);
  sim_.advance(5ms);
  EXPECT_EQ(answers_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(SharedAnswerTest, a_request_after_a_change_never_gets_what_was_read_before_it) {
  RootScope scope(sim_);
  ask(scope);
  sim_.advance(5ms);
  value_ = "b";
  answer_.changed();
  ask(scope);
  sim_.advance(1ms);
  EXPECT_EQ(answers_.size(), 1U) << "it waits: readings are apart";
  sim_.advance(SharedAnswer::kGapMin + 5ms);
  EXPECT_EQ(answers_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(SharedAnswerTest, a_change_during_a_reading_needs_another_one) {
  RootScope scope(sim_);
  ask(scope);
  sim_.advance(2ms);
  value_ = "b";
  answer_.changed();
  ask(scope);
  sim_.advance(SharedAnswer::kGapMin + 10ms);
  EXPECT_EQ(answers_, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(readings_, 2);
}

TEST_F(SharedAnswerTest, many_changes_do_not_make_many_readings) {
  RootScope scope(sim_);
  for (int i = 0; i < 200; ++i) {
    answer_.changed();
    ask(scope);
    sim_.advance(5ms);
  }
  sim_.advance(1s);
  EXPECT_EQ(answers_.size(), 200U);
  EXPECT_LE(readings_, 12) << "one per kGapMin";
}

TEST_F(SharedAnswerTest, a_slow_store_is_read_less_often) {
  RootScope scope(sim_);
  takes_ = 200ms;
  for (int i = 0; i < 100; ++i) {
    ask(scope);
    sim_.advance(100ms);
  }
  EXPECT_LE(readings_, 13) << "every 800 ms";
}

TEST_F(SharedAnswerTest, a_reading_that_takes_longer_than_an_answer_stays_fresh_is_an_answer) {
  RootScope scope(sim_);
  takes_ = SharedAnswer::kGapMax + 1s;
  ask(scope);
  sim_.advance(1s);
  ask(scope);
  sim_.advance(takes_);
  EXPECT_EQ(answers_.size(), 2U);
  EXPECT_EQ(readings_, 1);
}

TEST_F(SharedAnswerTest, a_failure_is_shared_and_soon_tried_again) {
  RootScope scope(sim_);
  fails_ = true;
  for (int i = 0; i < 10; ++i) ask(scope);
  sim_.advance(5ms);
  EXPECT_EQ(readings_, 1);
  EXPECT_EQ(answers_, std::vector<std::string>(10, "failed"));
  fails_ = false;
  sim_.advance(SharedAnswer::kFresh);
  ask(scope);
  sim_.advance(5ms);
  EXPECT_EQ(answers_.back(), "a");
}

TEST_F(SharedAnswerTest, if_the_request_that_reads_is_stopped_the_next_one_reads) {
  RootScope scope(sim_);
  {
    RootScope leaves(sim_);
    ask(leaves);
    sim_.advance(1ms);
    ask(scope);
    leaves.cancel();
    sim_.settle();
  }
  sim_.advance(10ms);
  EXPECT_EQ(answers_, std::vector<std::string>{"a"});
  EXPECT_EQ(readings_, 2);
}

}  // namespace
}  // namespace stint::http
