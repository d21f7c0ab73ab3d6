// Random histories: the segments follow each other from the first event to the end, and each millisecond belongs to the
// segment that a naive reading of the events names.
#include "engine/timeline_core.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace stint::engine {
namespace {

using namespace std::chrono_literals;
using domain::Hold;
using domain::RunState;
using domain::SpanKind;
using std::chrono::milliseconds;

constexpr int kHistories = 2000;
constexpr std::size_t kBusyHistories = 40;
constexpr std::array kHolds = {Hold::none, Hold::session, Hold::delay, Hold::backoff, Hold::quota, Hold::person};

class History {
 public:
  explicit History(std::uint64_t seed, bool busy = false) : random_(seed) {
    add("enqueued", RunState::queued);
    const int steps = 3 + below(12);
    for (int i = 0; i < steps && !ended(); ++i) step();
    if (busy && !ended()) add_busy_attempt();
    until_ = ended() ? facts_.back().at : facts_.back().at + milliseconds(below(40));
    if (below(2) == 0) waits_ = waits();
  }

  [[nodiscard]] const std::vector<TimelineFact>& facts() const { return facts_; }
  [[nodiscard]] Timeline timeline() const { return make_timeline(facts_, until_, waits_); }
  [[nodiscard]] WallTime until() const { return until_; }

  /// What the run did at that moment: kind and name, read from all facts anew.
  [[nodiscard]] std::pair<SpanKind, std::string> at(WallTime when) const {
    std::size_t stretch = 0;  // the fact that began the present state
    for (std::size_t i = 0; i < facts_.size() && facts_[i].at <= when; ++i) {
      if (facts_[i].cause != "span" && facts_[i].cause != "cancel_asked") stretch = i;
    }
    std::size_t next = stretch + 1;
    while (next < facts_.size() && facts_[next].state == facts_[stretch].state && facts_[next].cause != "claimed" &&
           facts_[next].hold == facts_[stretch].hold) {
      ++next;
    }
    const TimelineFact& since = facts_[stretch];
    const WallTime end = next < facts_.size() ? facts_[next].at : until_;
    if (since.state == RunState::running) return in_attempt(stretch, next, when);
    if (since.state == RunState::in_doubt || since.hold == Hold::person) return {SpanKind::person, {}};
    if (since.hold != Hold::none) return {*domain::parse_span_kind(to_string(since.hold)), {}};
    for (const domain::LimitWait& wait : next < facts_.size() ? facts_[next].waits : waits_) {
      const WallTime from = end - std::chrono::floor<milliseconds>(wait.ago);
      if (when >= from && when < from + std::chrono::floor<milliseconds>(wait.length)) {
        return {SpanKind::limit, wait.limit};
      }
    }
    return {SpanKind::queue, {}};
  }

 private:
  [[nodiscard]] std::pair<SpanKind, std::string> in_attempt(std::size_t claim, std::size_t next, WallTime when) const {
    std::pair<SpanKind, std::string> found{SpanKind::working, {}};
    std::optional<WallTime> latest;
    bool ending = false;
    for (std::size_t i = claim + 1; i < next; ++i) {
      const TimelineFact& fact = facts_[i];
      ending = ending || (fact.cause == "cancel_asked" && fact.at <= when);
      if (!fact.span) continue;
      const WallTime from = std::max(facts_[claim].at, fact.at - std::chrono::floor<milliseconds>(fact.span->length));
      if (fact.span->kind == SpanKind::ending) {
        ending = ending || from <= when;
      } else if (from <= when && when < fact.at && (!latest || from >= *latest)) {
        latest = from;
        found = {fact.span->kind, fact.span->name};
      }
    }
    return ending ? std::pair<SpanKind, std::string>{SpanKind::ending, {}} : found;
  }

  int below(int bound) { return std::uniform_int_distribution(0, bound - 1)(random_); }
  [[nodiscard]] bool ended() const { return domain::is_finished(*facts_.back().state); }

  TimelineFact& add(std::string cause, RunState state, Hold hold = Hold::none) {
    TimelineFact& fact = facts_.emplace_back();
    now_ += milliseconds(below(3) == 0 ? 0 : below(40));
    fact.at = now_;
    fact.cause = std::move(cause);
    fact.state = state;
    fact.hold = hold;
    return fact;
  }

  std::vector<domain::LimitWait> waits() {
    std::vector<domain::LimitWait> list;
    milliseconds ago(below(80));
    while (ago > 0ms && below(4) != 0) {
      const milliseconds length(1 + below(static_cast<int>(ago.count())));
      list.push_back({below(2) == 0 ? "gpu" : "model", ago, length});
      ago -= length + milliseconds(below(5));
    }
    return list;
  }

  void step() {
    const RunState state = *facts_.back().state;
    if (state != RunState::running) {
      const int choice = below(8);
      if (choice == 0) {
        add("cancelled", RunState::cancelled);
      } else if (choice <= 2 && state == RunState::queued) {
        add("promoted", RunState::queued, kHolds[static_cast<std::size_t>(below(4))]);
      } else {
        if (facts_.back().hold != Hold::none || state != RunState::queued) add("woken", RunState::queued);
        std::vector<domain::LimitWait> waited = waits();
        add("claimed", RunState::running).waits = std::move(waited);
      }
      return;
    }
    for (int i = below(6); i > 0; --i) {
      const SpanKind kind = below(8) == 0 ? SpanKind::ending : below(2) == 0 ? SpanKind::tool : SpanKind::model_call;
      const std::string name = kind == SpanKind::ending ? "" : "n" + std::to_string(below(3));
      add("span", RunState::running).span = {
          .kind = kind, .name = name, .length = milliseconds(below(60)), .usage = {}};
    }
    if (below(4) == 0) add("cancel_asked", RunState::running);
    switch (below(5)) {
      case 0: add("succeeded", RunState::succeeded); break;
      case 1: add("retry", RunState::queued, Hold::backoff); break;
      case 2: add("park", RunState::parked, below(2) == 0 ? Hold::quota : Hold::person); break;
      case 3: add("hand_back", RunState::queued); break;
      default: add("lost", RunState::in_doubt); break;
    }
  }

  /// More spans than a timeline keeps.
  void add_busy_attempt() {
    if (facts_.back().state != RunState::running) add("claimed", RunState::running);
    for (std::size_t i = Timeline::kSpansMax + static_cast<std::size_t>(below(300)); i > 0; --i) {
      const SpanKind kind = below(3) == 0 ? SpanKind::model_call : SpanKind::tool;
      add("span", RunState::running).span = {.kind = kind, .name = {}, .length = milliseconds(below(60)), .usage = {}};
    }
    add("succeeded", RunState::succeeded);
  }

  std::mt19937_64 random_;
  std::vector<TimelineFact> facts_;
  std::vector<domain::LimitWait> waits_;
  WallTime now_{1'000'000s}, until_{};
};

TEST(TimelineProperty, each_millisecond_belongs_to_the_segment_that_a_naive_reading_names) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const History history(seed);
    const Timeline timeline = history.timeline();
    WallTime cursor = history.facts().front().at;
    for (const Segment& each : timeline.segments) {
      ASSERT_EQ(each.at, cursor) << "neither gap nor overlap";
      ASSERT_GT(each.length, 0ms);
      for (WallTime when = each.at; when < each.at + each.length; when += 1ms) {
        const auto [kind, name] = history.at(when);
        ASSERT_EQ(to_string(each.kind), to_string(kind)) << (when - history.facts().front().at).count() << " ms";
        ASSERT_EQ(each.name, name);
      }
      cursor += each.length;
    }
    ASSERT_EQ(cursor, history.until());
    ASSERT_EQ(timeline.waiting + timeline.working, history.until() - history.facts().front().at);
  }
}

/// Whatever is left out of segments and attempts: the sums come from all spans.
TEST(TimelineProperty, sums_are_those_of_a_naive_reading_however_many_spans_there_are) {
  std::size_t cut = 0;
  for (std::uint64_t seed = 0; seed < kBusyHistories; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const History history(seed, true);
    const Timeline timeline = history.timeline();
    if (timeline.spans_left_out > 0) ++cut;
    std::map<SpanKind, std::pair<milliseconds, std::uint64_t>> naive;
    for (WallTime when = history.facts().front().at; when < history.until(); when += 1ms) {
      naive[history.at(when).first].first += 1ms;
    }
    for (const TimelineFact& fact : history.facts()) {
      if (fact.span) ++naive[fact.span->kind].second;
      if (fact.cause == "cancel_asked") ++naive[SpanKind::ending].second;
    }
    milliseconds all{};
    for (const Timeline::Sum& sum : timeline.sums) {
      const std::pair<milliseconds, std::uint64_t> expected = std::exchange(naive[sum.kind], {});
      ASSERT_EQ(sum.length, expected.first) << to_string(sum.kind);
      ASSERT_EQ(sum.spans, expected.second) << to_string(sum.kind);
      all += sum.length;
    }
    for (const auto& [kind, left] : naive) ASSERT_EQ(left.first + milliseconds(left.second), 0ms) << to_string(kind);
    ASSERT_EQ(all, timeline.waiting + timeline.working);
  }
  EXPECT_GT(cut, kBusyHistories / 4) << "of most of them, something is left out";
}

}  // namespace
}  // namespace stint::engine
