// Tests of the history checker: hand-made histories that are known to be possible or impossible for a FIFO semaphore.
// Times are chosen by hand; only the overlap of intervals matters.
#include "history_checker.hpp"

#include <gtest/gtest.h>

namespace stint::testing_support {
namespace {

using Kind = Operation::Kind;
using Outcome = Operation::Outcome;
using Answer = CheckResult::Answer;

struct Interval {
  Moment called;
  Moment returned;
};

Operation acquire(int thread, std::int64_t units, Interval when, Outcome outcome = Outcome::granted) {
  return {.kind = Kind::acquire,
          .outcome = outcome,
          .thread = thread,
          .units = units,
          .called = when.called,
          .returned = when.returned};
}
Operation waits(int thread, std::int64_t units, Moment called) {
  return acquire(thread, units, {called, kNever}, Outcome::waiting);
}
Operation tries(int thread, std::int64_t units, Interval when, Outcome outcome) {
  return {.kind = Kind::try_acquire,
          .outcome = outcome,
          .thread = thread,
          .units = units,
          .called = when.called,
          .returned = when.returned};
}
Operation releases(int thread, std::int64_t units, Interval when) {
  return {.kind = Kind::release,
          .outcome = Outcome::done,
          .thread = thread,
          .units = units,
          .called = when.called,
          .returned = when.returned};
}
Operation resizes(int thread, std::int64_t capacity, Interval when) {
  return {.kind = Kind::set_capacity,
          .outcome = Outcome::done,
          .thread = thread,
          .units = capacity,
          .called = when.called,
          .returned = when.returned};
}
Operation in_line_by(Operation operation, Moment moment) {
  operation.arrived_by = moment;
  return operation;
}
Operation gave_up_after(Operation operation, Moment moment) {
  operation.ends_from = moment;
  return operation;
}

void expect(Answer answer, std::int64_t capacity, const History& history) {
  const CheckResult result = check(history, capacity);
  EXPECT_EQ(result.answer, answer) << result.why;
}
void expect_legal(std::int64_t capacity, const History& history) { expect(Answer::legal, capacity, history); }
void expect_illegal(std::int64_t capacity, const History& history) { expect(Answer::illegal, capacity, history); }

TEST(HistoryChecker, an_empty_history_is_legal) { expect_legal(1, {}); }

TEST(HistoryChecker, a_sequential_history_is_legal) {
  expect_legal(1, {acquire(1, 1, {1, 2}), releases(1, 1, {3, 4}), acquire(2, 1, {5, 6}), releases(2, 1, {7, 8})});
}

TEST(HistoryChecker, holding_more_than_the_capacity_is_illegal) {
  expect_illegal(1, {acquire(1, 1, {1, 2}), acquire(2, 1, {3, 4}), releases(1, 1, {5, 6})});
  expect_illegal(3, {acquire(1, 2, {1, 4}), acquire(2, 2, {2, 3}), releases(1, 2, {5, 6})});
}

TEST(HistoryChecker, a_grant_that_overlaps_the_release_is_legal) {
  expect_legal(1, {acquire(1, 1, {1, 2}), acquire(2, 1, {3, 10}), releases(1, 1, {9, 12})});
}

TEST(HistoryChecker, a_grant_that_returned_before_the_release_was_called_is_illegal) {
  expect_illegal(1, {acquire(1, 1, {1, 2}), acquire(2, 1, {3, 8}), releases(1, 1, {9, 12})});
}

// ---- Order ---------------------------------------------------------------------------------------------------------

TEST(HistoryChecker, overlapping_acquires_may_be_granted_in_either_order) {
  expect_legal(1, {acquire(1, 1, {1, 2}), acquire(2, 1, {3, 20}), acquire(3, 1, {4, 12}), releases(1, 1, {10, 11}),
                   releases(3, 1, {13, 14})});
}

TEST(HistoryChecker, a_later_acquire_must_not_overtake_a_waiter) {
  const Operation first = in_line_by(acquire(2, 1, {3, 20}), 5);
  const Operation late = acquire(3, 1, {6, 12});
  const Operation end_of_first_hold = releases(1, 1, {10, 11});
  expect_illegal(1, {acquire(1, 1, {1, 2}), first, late, end_of_first_hold, releases(3, 1, {13, 14})});
  expect_legal(1, {acquire(1, 1, {1, 2}), first, acquire(3, 1, {4, 12}), end_of_first_hold, releases(3, 1, {13, 14})});
}

TEST(HistoryChecker, a_small_request_must_not_overtake_a_large_one_though_it_fits) {
  const Operation large = in_line_by(acquire(2, 2, {3, 20}), 4);
  expect_illegal(
      2, {acquire(1, 1, {1, 2}), large, acquire(3, 1, {5, 6}), releases(3, 1, {7, 8}), releases(1, 1, {9, 10})});
  expect_legal(
      2, {acquire(1, 1, {1, 2}), large, acquire(3, 1, {5, 30}), releases(1, 1, {9, 10}), releases(2, 2, {21, 22})});
}

TEST(HistoryChecker, one_release_may_grant_several) {
  expect_legal(2, {acquire(1, 2, {1, 2}), acquire(2, 1, {3, 12}), acquire(3, 1, {4, 11}), releases(1, 2, {9, 10})});
}

TEST(HistoryChecker, an_acquire_that_still_waits_at_the_end_must_not_fit) {
  expect_legal(1, {acquire(1, 1, {1, 2}), waits(2, 1, 3)});
  expect_illegal(1, {acquire(1, 1, {1, 2}), waits(2, 1, 3), releases(1, 1, {4, 5})});
}

// ---- try_acquire ---------------------------------------------------------------------------------------------------

TEST(HistoryChecker, a_try_succeeds_if_units_are_free_and_there_are_no_waiters) {
  expect_legal(1, {tries(1, 1, {1, 2}, Outcome::granted), tries(2, 1, {3, 4}, Outcome::refused)});
  expect_illegal(1, {tries(1, 1, {1, 2}, Outcome::refused)});
  expect_illegal(1, {tries(1, 1, {1, 2}, Outcome::granted), tries(2, 1, {3, 4}, Outcome::granted)});
}

TEST(HistoryChecker, a_try_must_not_barge) {
  const History before = {acquire(1, 1, {1, 2}), in_line_by(acquire(2, 2, {3, 20}), 4)};
  History barging = before, refused = before;
  barging.insert(barging.end(),
                 {tries(3, 1, {5, 6}, Outcome::granted), releases(3, 1, {7, 8}), releases(1, 1, {9, 10})});
  refused.insert(refused.end(), {tries(3, 1, {5, 6}, Outcome::refused), releases(1, 1, {9, 10})});
  expect_illegal(2, barging);
  expect_legal(2, refused);
}

TEST(HistoryChecker, a_try_may_be_refused_by_a_transient_state) {
  expect_legal(1, {acquire(1, 1, {1, 3}), releases(1, 1, {4, 5}), tries(2, 1, {2, 6}, Outcome::refused)});
  expect_illegal(1, {acquire(1, 1, {1, 3}), releases(1, 1, {4, 5}), tries(2, 1, {6, 7}, Outcome::refused)});
}

TEST(HistoryChecker, a_try_may_be_refused_until_the_call_that_emptied_the_line_has_returned) {
  const auto refused_after = [](Interval release) {
    return History{acquire(1, 2, {1, 2}), in_line_by(acquire(2, 1, {3, 12}), 4), releases(1, 2, release),
                   tries(3, 1, {13, 14}, Outcome::refused)};
  };
  expect_legal(2, refused_after({9, 15}));
  expect_illegal(2, refused_after({9, 11}));
}

TEST(HistoryChecker, a_lost_unit_is_detected_by_the_next_try) {
  expect_illegal(2, {acquire(1, 1, {1, 2}), acquire(2, 1, {3, 4}), releases(1, 1, {5, 7}), releases(2, 1, {6, 8}),
                     tries(1, 2, {9, 10}, Outcome::refused)});
}

TEST(HistoryChecker, a_unit_returned_twice_is_detected) {
  expect_illegal(1, {acquire(1, 1, {1, 2}), releases(1, 1, {3, 4}), releases(1, 1, {5, 6})});
}

// ---- Cancel and timeout --------------------------------------------------------------------------------------------

TEST(HistoryChecker, a_cancelled_acquire_holds_nothing) {
  const Operation cancelled = acquire(2, 1, {3, 6}, Outcome::cancelled);
  expect_legal(1, {acquire(1, 1, {1, 2}), cancelled, releases(1, 1, {7, 8}), tries(3, 1, {9, 10}, Outcome::granted)});
  expect_illegal(1, {acquire(1, 1, {1, 2}), cancelled, releases(1, 1, {7, 8}), tries(3, 1, {9, 10}, Outcome::refused)});
}

TEST(HistoryChecker, a_grant_after_its_cancel_is_illegal) {
  // The unit went to the cancelled waiter, so the one behind it still waits.
  expect_illegal(1, {acquire(1, 1, {1, 2}), in_line_by(acquire(2, 1, {3, 8}, Outcome::cancelled), 4), waits(3, 1, 5),
                     releases(1, 1, {9, 10})});
}

TEST(HistoryChecker, a_cancelled_acquire_may_have_held_its_units_briefly) {
  expect_legal(1, {acquire(1, 1, {1, 10}, Outcome::cancelled), tries(2, 1, {3, 4}, Outcome::refused)});
  expect_illegal(1, {acquire(1, 1, {5, 10}, Outcome::cancelled), tries(2, 1, {3, 4}, Outcome::refused)});
  const Operation granted_before_its_cancel = in_line_by(acquire(1, 1, {1, 10}, Outcome::cancelled), 2);
  expect_legal(1, {granted_before_its_cancel, tries(2, 1, {11, 12}, Outcome::granted)});
  expect_illegal(1, {granted_before_its_cancel, tries(2, 1, {11, 12}, Outcome::refused)});
}

TEST(HistoryChecker, a_cancelled_head_unblocks_the_waiters_behind_it) {
  const Operation large = in_line_by(acquire(2, 2, {3, 10}, Outcome::cancelled), 4);
  expect_legal(2, {acquire(1, 1, {1, 2}), large, acquire(3, 1, {5, 12})});
  expect_illegal(2, {acquire(1, 1, {1, 2}), large, waits(3, 1, 5)});
}

TEST(HistoryChecker, a_head_that_is_not_cancelled_yet_blocks_the_waiters_behind_it) {
  const Operation large = gave_up_after(in_line_by(acquire(2, 2, {3, 20}, Outcome::cancelled), 4), 10);
  expect_illegal(2, {acquire(1, 1, {1, 2}), large, acquire(3, 1, {5, 9})});
  expect_legal(2, {acquire(1, 1, {1, 2}), large, acquire(3, 1, {5, 12})});
}

TEST(HistoryChecker, a_timeout_means_never_granted) {
  expect_legal(1, {acquire(1, 1, {1, 2}), acquire(2, 1, {3, 6}, Outcome::timed_out), releases(1, 1, {5, 8})});
  expect_illegal(1, {acquire(2, 1, {3, 6}, Outcome::timed_out)});
  expect_illegal(1, {acquire(1, 1, {1, 2}), releases(1, 1, {4, 5}), acquire(2, 1, {6, 7}, Outcome::timed_out)});
}

// ---- Resize --------------------------------------------------------------------------------------------------------

TEST(HistoryChecker, nothing_is_granted_into_a_debt) {
  const History shrunk = {acquire(1, 1, {1, 2}), acquire(2, 1, {3, 4}), resizes(3, 1, {5, 6}), releases(1, 1, {7, 8})};
  History refused = shrunk, granted = shrunk;
  refused.push_back(tries(4, 1, {9, 10}, Outcome::refused));
  granted.push_back(tries(4, 1, {9, 10}, Outcome::granted));
  expect_legal(2, refused);
  expect_illegal(2, granted);
}

TEST(HistoryChecker, growth_after_shrinking_repays_the_debt_first) {
  const History regrown = {acquire(1, 2, {1, 2}), resizes(2, 1, {3, 4}), resizes(2, 3, {5, 6})};
  History one = regrown, two = regrown;
  one.push_back(tries(3, 1, {7, 8}, Outcome::granted));
  two.push_back(tries(3, 2, {7, 8}, Outcome::granted));
  expect_legal(2, one);
  expect_illegal(2, two);
}

TEST(HistoryChecker, an_impossible_request_is_invalid) {
  expect_legal(2, {acquire(1, 3, {1, 2}, Outcome::invalid)});
  expect_illegal(2, {acquire(1, 2, {1, 2}, Outcome::invalid)});
  expect_legal(2, {acquire(1, 1, {1, 2}), acquire(2, 2, {3, 8}, Outcome::invalid), resizes(1, 1, {5, 6})});
  expect_illegal(2, {acquire(1, 1, {1, 2}), waits(2, 2, 3), resizes(1, 1, {5, 6})});
}

TEST(HistoryChecker, capacity_zero_pauses) {
  expect_legal(1, {resizes(1, 0, {1, 2}), in_line_by(acquire(2, 1, {3, 8}), 4), resizes(1, 1, {5, 6})});
  expect_illegal(1, {resizes(1, 0, {1, 2}), acquire(2, 1, {3, 4}), resizes(1, 1, {5, 6})});
}

// ---- The search ----------------------------------------------------------------------------------------------------

TEST(HistoryChecker, four_threads_of_six_operations_that_all_overlap_are_within_its_bound) {
  History history;
  Moment moment = 0;
  for (int round = 0; round < 3; ++round) {
    for (int thread = 0; thread < 4; ++thread) {
      const Moment base = moment + thread;
      history.push_back(acquire(thread, 1 + thread % 2, {base, base + 20}));
      history.push_back(releases(thread, 1 + thread % 2, {base + 24, base + 44}));
    }
    moment += 48;
  }
  EXPECT_EQ(check(history, 6).answer, Answer::legal);
  history.push_back(tries(0, 6, {moment + 1, moment + 2}, Outcome::refused));
  const CheckResult result = check(history, 6);
  EXPECT_EQ(result.answer, Answer::illegal);
  EXPECT_LT(result.states, HistoryChecker::kStatesMax / 20);
}

TEST(HistoryChecker, an_illegal_history_is_explained) {
  const CheckResult result = check({acquire(1, 1, {1, 2}), tries(2, 1, {3, 4}, Outcome::granted)}, 1);
  EXPECT_NE(result.why.find("thread 2: try_acquire(1) granted, called 3, returned 4"), std::string::npos) << result.why;
  EXPECT_NE(result.why.find("arrives: thread 1: acquire(1) granted"), std::string::npos) << result.why;
}

}  // namespace
}  // namespace stint::testing_support
