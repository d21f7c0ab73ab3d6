/// Judges what several threads saw of one FIFO semaphore: is there an order of their operations, each within the
/// moments of its call and return, in which a semaphore that does one thing at a time gives the same outcomes?
///
/// An acquire takes effect in two points: it arrives (and is granted at once if nobody waits and its units are free, or
/// else stands in line), and its wait ends. The end by a grant needs no search: whatever frees the head grants it there
/// and then. What has to be searched is the order of arrivals, departures, tries, releases and resizes. The search is
/// Wing and Gong's with Lowe's memory of the states that it has already left in vain.
///
/// One thing is not held against the semaphore: it lets the last in line run before it opens the fast path, so a try
/// may be refused until the call that emptied the line has returned.
///
/// For small histories: every operation that overlaps another doubles the work, about; `kStatesMax` is the end of it.
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

using Moment = std::int64_t;  // from one counter for all threads, no value twice
inline constexpr Moment kNever = std::numeric_limits<Moment>::max();

struct Operation {
  enum class Kind : std::uint8_t { acquire, try_acquire, release, set_capacity };
  enum class Outcome : std::uint8_t {
    done,       // release, set_capacity
    granted,    // acquire, try_acquire
    refused,    // try_acquire
    cancelled,  // acquire: leaves nothing behind, though it may have been granted for a moment
    timed_out,  // acquire: waited and was never granted
    invalid,    // acquire: could never be had
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

struct Verdict {
  enum class Answer : std::uint8_t { legal, illegal, undecided };
  Answer answer;
  std::size_t states;  // how many were searched
  std::string why;     // not legal: the history and how far an order could be found
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

/// The semaphore that does one thing at a time, and which of the history's operations it has done.
class SequentialSemaphore {
 public:
  using Kind = Operation::Kind;
  using Outcome = Operation::Outcome;

  SequentialSemaphore(const History& history, std::int64_t capacity)
      : history_(&history), free_(capacity), capacity_(capacity) {}

  bool arrived(std::size_t i) const noexcept { return has(arrived_, i); }
  bool over(std::size_t i) const noexcept { return has(over_, i); }
  /// The last moment for what the operation still has to do.
  Moment due(std::size_t i) const noexcept {
    const Operation& operation = (*history_)[i];
    return arrived(i) ? operation.returned : std::min(operation.arrived_by, operation.returned);
  }

  /// These give false if no FIFO semaphore could have done it now and had the recorded outcomes.
  bool do_at_once(std::size_t i) {
    const Operation& operation = (*history_)[i];
    over_ |= bit(i);
    if (operation.kind == Kind::try_acquire) return attempt(operation);
    const bool somebody_waited = !line_.empty();
    if (operation.kind == Kind::release) {
      free_ += operation.units;
      return free_ <= capacity_ && settle() && note_if_emptied(somebody_waited, operation);
    }
    return resize(operation.units) && note_if_emptied(somebody_waited, operation);
  }
  bool arrive(std::size_t i) {
    arrived_ |= bit(i);
    if (impossible(i)) return fail(i);
    if ((*history_)[i].outcome == Outcome::waiting) over_ |= bit(i);
    line_.push_back(static_cast<char>(i));
    return settle();
  }
  /// A cancel or timeout. Of a cancelled acquire nothing is left, however far it had come.
  bool depart(std::size_t i) {
    over_ |= bit(i);
    const bool somebody_waited = !line_.empty();
    if (std::erase(line_, static_cast<char>(i)) == 0 && has(granted_, i)) free_ += (*history_)[i].units;
    return settle() && note_if_emptied(somebody_waited, (*history_)[i]);
  }

  /// Equal keys: what is still to be done has the same ends.
  [[nodiscard]] std::string key() const {
    std::string text = line_;
    for (const auto word : {arrived_, over_, granted_, static_cast<std::uint64_t>(free_),
                            static_cast<std::uint64_t>(capacity_), static_cast<std::uint64_t>(shut_until_)}) {
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
    if (operation.outcome == Outcome::refused) return !may_take || operation.called < shut_until_;
    free_ -= operation.units;
    return may_take;
  }
  bool note_if_emptied(bool somebody_waited, const Operation& by) noexcept {
    if (somebody_waited && line_.empty()) shut_until_ = std::max(shut_until_, by.returned);
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
  std::string line_;                                    // operations, first come first
  Moment shut_until_ = 0;                               // when the last call that emptied the line returned
};

class HistoryChecker {
 public:
  static constexpr std::size_t kOperationsMax = 64;  // bits of a set
  static constexpr std::size_t kStatesMax = 2'000'000;

  HistoryChecker(const History& history, std::int64_t capacity) : history_(history), start_(history, capacity) {
    STINT_ASSERT(history.size() <= kOperationsMax);
  }
  [[nodiscard]] Verdict judge() {
    const bool found = search(start_);
    if (found) return {Verdict::Answer::legal, seen_.size(), {}};
    const bool given_up = seen_.size() >= kStatesMax;
    return {given_up ? Verdict::Answer::undecided : Verdict::Answer::illegal, seen_.size(), explain()};
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
      // What begins after another has to be over can't come before it.
      if (!state.over(i) && history_[i].called < first_due && advance(state, i, first_due)) return true;
    }
    return false;
  }

  /// Tries whatever operation `i` may do next.
  bool advance(const SequentialSemaphore& state, std::size_t i, Moment first_due) {
    const Operation& operation = history_[i];
    if (operation.kind != Kind::acquire) return step(state, i, "", &SequentialSemaphore::do_at_once);
    const bool departs = operation.outcome == Outcome::cancelled || operation.outcome == Outcome::timed_out;
    if (state.arrived(i)) {
      return departs && operation.ends_from < first_due && step(state, i, "gives up: ", &SequentialSemaphore::depart);
    }
    // One that was cancelled before it looked at the semaphore may as well have come and gone.
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
    std::string text = "no order of these operations is that of a FIFO semaphore:\n";
    for (const Operation& operation : sorted) text += "  " + to_string(operation) + "\n";
    text += "the longest beginning that is:\n";
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

[[nodiscard]] inline Verdict judge(const History& history, std::int64_t capacity) {
  return HistoryChecker(history, capacity).judge();
}

}  // namespace stint::testing_support
