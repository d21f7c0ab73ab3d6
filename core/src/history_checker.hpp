/// Checks what several threads observed of one FIFO semaphore (linearizability): is there an order of their operations,
/// each between its call and return, in which a sequential semaphore gives the same outcomes?
///
/// An acquire takes effect at two points: its arrival (it is granted at once if there are no waiters and its units are
/// free, else it joins the line), and the end of its wait. An end by a grant needs no search: the operation that frees
/// the head grants it at that point. What has to be searched is the order of arrivals, departures, tries, releases and
/// resizes. The search is Wing and Gong's with Lowe's cache of states that were already explored.
///
/// One deviation is allowed: the semaphore lets the last waiter run before it opens the fast path, so a try may be
/// refused until the call that emptied the line has returned.
///
/// For small histories: every overlapping operation roughly doubles the work; `kStatesMax` bounds it.
#pragma once

#include "stint/assert.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace stint::testing_support {

using Moment = std::int64_t;  // from one counter shared by all threads; unique
inline constexpr Moment kNever = std::numeric_limits<Moment>::max();

struct Operation {
  enum class Kind : std::uint8_t { acquire, try_acquire, release, set_capacity };
  enum class Outcome : std::uint8_t {
    done,       // release, set_capacity
    granted,    // acquire, try_acquire
    refused,    // try_acquire
    cancelled,  // acquire: holds nothing, though it may have been granted briefly
    timed_out,  // acquire: waited and was never granted
    invalid,    // acquire: exceeds the capacity
    waiting     // acquire: still in line when the recording ended
  };
  Kind kind;
  Outcome outcome;
  int thread = 0;
  std::int64_t units = 1;  // set_capacity: the new capacity
  Moment called = 0;
  Moment returned = kNever;
  Moment arrived_by = kNever;  // an acquire's arrival is known to have come before this
  Moment ends_from = 0;        // a cancel or timeout is known to have come after this
};
using History = std::vector<Operation>;

struct CheckResult {
  enum class Answer : std::uint8_t { legal, illegal, undecided };
  Answer answer;
  std::size_t states;  // number of states searched
  std::string why;     // if not legal: the history and the longest valid prefix
};

[[nodiscard]] inline std::string to_string(const Operation& operation) {
  static constexpr std::string_view kKinds[] = {"acquire", "try_acquire", "release", "set_capacity"};
  static constexpr std::string_view kOutcomes[] = {"done",      "granted", "refused", "cancelled",
                                                   "timed out", "invalid", "waiting"};
  std::ostringstream text;
  text << "thread " << operation.thread << ": " << kKinds[static_cast<int>(operation.kind)] << "(" << operation.units
       << ") " << kOutcomes[static_cast<int>(operation.outcome)] << ", called " << operation.called;
  if (operation.arrived_by != kNever) text << ", in line by " << operation.arrived_by;
  if (operation.ends_from != 0) text << ", gave up after " << operation.ends_from;
  if (operation.returned != kNever) text << ", returned " << operation.returned;
  return text.str();
}

/// A sequential semaphore, and which of the history's operations it has executed.
class SequentialSemaphore {
 public:
  using Kind = Operation::Kind;
  using Outcome = Operation::Outcome;

  SequentialSemaphore(const History& history, std::int64_t capacity)
      : history_(&history), free_(capacity), capacity_(capacity) {}

  bool arrived(std::size_t i) const noexcept { return has(arrived_, i); }
  bool over(std::size_t i) const noexcept { return has(over_, i); }
  /// The latest time for the operation's remaining steps.
  Moment due(std::size_t i) const noexcept {
    const Operation& operation = (*history_)[i];
    return arrived(i) ? operation.returned : std::min(operation.arrived_by, operation.returned);
  }

  /// These return false if no FIFO semaphore could do the step now with the recorded outcomes.
  bool do_at_once(std::size_t i) {
    const Operation& operation = (*history_)[i];
    over_ |= bit(i);
    if (operation.kind == Kind::try_acquire) return attempt(operation);
    const bool had_waiters = !line_.empty();
    if (operation.kind == Kind::release) {
      free_ += operation.units;
      return free_ <= capacity_ && settle() && note_if_emptied(had_waiters, operation);
    }
    return resize(operation.units) && note_if_emptied(had_waiters, operation);
  }
  bool arrive(std::size_t i) {
    arrived_ |= bit(i);
    if (impossible(i)) return fail(i);
    if ((*history_)[i].outcome == Outcome::waiting) over_ |= bit(i);
    line_.push_back(static_cast<char>(i));
    return settle();
  }
  /// A cancel or timeout. A cancelled acquire has no lasting effect, whatever its state was.
  bool depart(std::size_t i) {
    over_ |= bit(i);
    const bool had_waiters = !line_.empty();
    if (std::erase(line_, static_cast<char>(i)) == 0 && has(granted_, i)) free_ += (*history_)[i].units;
    return settle() && note_if_emptied(had_waiters, (*history_)[i]);
  }

  /// States with equal keys have the same remaining outcomes.
  [[nodiscard]] std::string key() const {
    std::string text = line_;
    for (const auto word :
         {arrived_, over_, granted_, static_cast<std::uint64_t>(free_), static_cast<std::uint64_t>(capacity_),
          static_cast<std::uint64_t>(fast_path_closed_until_)}) {
      text.append(reinterpret_cast<const char*>(&word), sizeof(word));
    }
    return text;
  }

 private:
  static std::uint64_t bit(std::size_t i) noexcept { return std::uint64_t{1} << i; }
  static bool has(std::uint64_t set, std::size_t i) noexcept { return (set & bit(i)) != 0; }
  bool impossible(std::size_t i) const noexcept {
    const std::int64_t units = (*history_)[i].units;
    return units == 0 || (capacity_ != 0 && units > capacity_);
  }
  bool fail(std::size_t i) noexcept {
    const Outcome outcome = (*history_)[i].outcome;
    if (outcome == Outcome::invalid) over_ |= bit(i);
    return outcome == Outcome::invalid || outcome == Outcome::cancelled;
  }
  bool attempt(const Operation& operation) noexcept {
    const bool may_take = line_.empty() && operation.units <= free_;
    if (operation.outcome == Outcome::refused) return !may_take || operation.called < fast_path_closed_until_;
    free_ -= operation.units;
    return may_take;
  }
  bool note_if_emptied(bool had_waiters, const Operation& by) noexcept {
    if (had_waiters && line_.empty()) fast_path_closed_until_ = std::max(fast_path_closed_until_, by.returned);
    return true;
  }
  bool settle() {
    while (!line_.empty()) {
      const auto head = static_cast<std::size_t>(line_.front());
      const Operation& operation = (*history_)[head];
      if (operation.units > free_) return true;
      if (operation.outcome != Outcome::granted && operation.outcome != Outcome::cancelled) return false;
      if (operation.outcome == Outcome::granted) over_ |= bit(head);
      granted_ |= bit(head);
      free_ -= operation.units;
      line_.erase(0, 1);
    }
    return true;
  }
  bool resize(std::int64_t capacity) {
    free_ += capacity - capacity_;
    capacity_ = capacity;
    for (std::size_t place = 0; place < line_.size();) {
      const auto i = static_cast<std::size_t>(line_[place]);
      if (!impossible(i)) {
        ++place;
      } else if (fail(i)) {
        line_.erase(place, 1);
      } else {
        return false;
      }
    }
    return settle();
  }

  const History* history_;
  std::int64_t free_;
  std::int64_t capacity_;
  std::uint64_t arrived_ = 0, over_ = 0, granted_ = 0;  // sets of operations
  std::string line_;                                    // operations in order of arrival
  Moment fast_path_closed_until_ = 0;                   // when the last call that emptied the line returned
};

class HistoryChecker {
 public:
  static constexpr std::size_t kOperationsMax = 64;  // bits of a set
  static constexpr std::size_t kStatesMax = 2'000'000;

  HistoryChecker(const History& history, std::int64_t capacity) : history_(history), start_(history, capacity) {
    STINT_ASSERT(history.size() <= kOperationsMax);
  }
  [[nodiscard]] CheckResult check() {
    const bool found = search(start_);
    if (found) return {CheckResult::Answer::legal, seen_.size(), {}};
    const bool given_up = seen_.size() >= kStatesMax;
    return {given_up ? CheckResult::Answer::undecided : CheckResult::Answer::illegal, seen_.size(), explain()};
  }

 private:
  using Kind = Operation::Kind;
  using Outcome = Operation::Outcome;

  bool search(const SequentialSemaphore& state) {
    if (path_.size() > longest_.size()) longest_ = path_;
    Moment first_due = kNever;
    bool all_over = true;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (state.over(i)) continue;
      all_over = false;
      first_due = std::min(first_due, state.due(i));
    }
    if (all_over) return true;
    if (seen_.size() >= kStatesMax || !seen_.insert(state.key()).second) return false;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      // An operation called after another's latest end can't come before it.
      if (!state.over(i) && history_[i].called < first_due && advance(state, i, first_due)) return true;
    }
    return false;
  }

  /// Tries every next step of operation `i`.
  bool advance(const SequentialSemaphore& state, std::size_t i, Moment first_due) {
    const Operation& operation = history_[i];
    if (operation.kind != Kind::acquire) return step(state, i, "", &SequentialSemaphore::do_at_once);
    const bool departs = operation.outcome == Outcome::cancelled || operation.outcome == Outcome::timed_out;
    if (state.arrived(i)) {
      return departs && operation.ends_from < first_due && step(state, i, "gives up: ", &SequentialSemaphore::depart);
    }
    // An acquire cancelled before it reached the semaphore counts as arrived and left.
    return step(state, i, "arrives: ", &SequentialSemaphore::arrive);
  }

  bool step(const SequentialSemaphore& state, std::size_t i, std::string_view what,
            bool (SequentialSemaphore::*act)(std::size_t)) {
    SequentialSemaphore next = state;
    if (!(next.*act)(i)) return false;
    path_.push_back({i, what});
    const bool found = search(next);
    path_.pop_back();
    return found;
  }

  [[nodiscard]] std::string explain() const {
    std::vector<Operation> sorted = history_;
    std::ranges::sort(sorted, {}, &Operation::called);
    std::string text = "no order of these operations is valid for a FIFO semaphore:\n";
    for (const Operation& operation : sorted) text += "  " + to_string(operation) + "\n";
    text += "the longest valid prefix:\n";
    for (const auto& [i, what] : longest_) {
      text.append("  ").append(what).append(to_string(history_[i])).append("\n");
    }
    return text;
  }

  struct Step {
    std::size_t operation;
    std::string_view what;
  };
  const History& history_;
  const SequentialSemaphore start_;
  std::unordered_set<std::string> seen_;
  std::vector<Step> path_, longest_;
};

[[nodiscard]] inline CheckResult check(const History& history, std::int64_t capacity) {
  return HistoryChecker(history, capacity).check();
}

}  // namespace stint::testing_support
