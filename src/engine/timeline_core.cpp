// Invariants
// 1. `cursor_` is the end of the last segment: add() is the only way to append, and it appends from there.
// 2. A fact is never earlier than the one before it: a store whose clock was set back shows stretches of length zero.
#include "engine/timeline_core.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace stint::engine {
namespace {

using domain::Hold;
using domain::RunState;
using domain::SpanKind;
using std::chrono::milliseconds;

milliseconds ms_of(Duration duration) { return std::chrono::floor<milliseconds>(std::max(duration, Duration::zero())); }

bool is_running(const TimelineFact& fact) { return fact.state == RunState::running; }

SpanKind kind_of(RunState state, Hold hold) {
  if (state == RunState::in_doubt) return SpanKind::person;
  switch (hold) {
    case Hold::session: return SpanKind::session;
    case Hold::delay: return SpanKind::delay;
    case Hold::backoff: return SpanKind::backoff;
    case Hold::quota: return SpanKind::quota;
    case Hold::person: return SpanKind::person;
    case Hold::none: break;
  }
  return SpanKind::queue;
}

class Builder {
 public:
  Builder(std::vector<TimelineFact> facts, WallTime now, std::vector<domain::LimitWait> waits)
      : facts_(std::move(facts)), now_(now), waits_now_(std::move(waits)) {}

  Timeline build() {
    if (facts_.empty()) return std::move(out_);
    order_facts();
    out_.begun = cursor_ = facts_.front().at;
    find_attempts();
    std::map<SpanKind, std::uint64_t> spans;
    for (const AttemptLane& lane : out_.attempts) {
      for (const AttemptLane::Part& span : lane.spans) ++spans[span.kind];
    }
    draw();
    add_up(spans);
    if (keep_longest_spans()) {
      out_.segments.clear();
      cursor_ = out_.begun;
      draw();
    }
    for (const Segment& each : out_.segments) {
      (is_wait(each.kind) ? out_.waiting : out_.working) += each.length;
      const bool parked = each.kind == SpanKind::quota || each.kind == SpanKind::person;
      if (!out_.attempts.empty() && each.at >= out_.attempts.front().begun && !parked) out_.charged += each.length;
    }
    return std::move(out_);
  }

 private:
  /// Drops what follows the end of the run: it may have been transferred to another store since.
  void order_facts() {
    WallTime last = facts_.front().at;
    for (TimelineFact& fact : facts_) fact.at = last = std::max(last, fact.at);
    const auto end = std::ranges::find_if(
        facts_, [](const TimelineFact& fact) { return fact.state && domain::is_finished(*fact.state); });
    if (end != facts_.end()) facts_.erase(std::next(end), facts_.end());
    for (const TimelineFact& fact : facts_) {
      if (fact.state) out_.state = *fact.state;
    }
    const TimelineFact& newest = facts_.back();
    out_.until = end != facts_.end() ? newest.at : std::max(now_, newest.at);
  }

  void find_attempts() {
    AttemptLane* lane = nullptr;
    std::uint32_t attempt = 0;
    for (const TimelineFact& fact : facts_) {
      if (fact.cause == "claimed") {
        lane = &out_.attempts.emplace_back();
        lane->attempt = ++attempt;
        lane->fence = fact.fence;
        lane->node = fact.node;
        lane->begun = fact.at;
        continue;
      }
      if (lane == nullptr || lane->ended) continue;
      if (fact.span) add_span(*lane, fact);
      if (fact.cause == "cancel_asked") lane->spans.push_back({SpanKind::ending, {}, fact.at, out_.until});
      if (!fact.state || is_running(fact)) continue;
      lane->ended = fact.at;
      lane->cause = fact.cause;
      lane->state = fact.state;
      lane->hold = fact.hold;
      lane->error = fact.error;
      lane->verdict = fact.verdict;
      const bool goes_on = fact.state == RunState::queued || fact.state == RunState::parked;
      if (lane->verdict && !goes_on) lane->verdict->after.reset();
      if (fact.cause == "park" || fact.cause == "hand_back" || fact.cause == "lost") --attempt;
      for (AttemptLane::Part& span : lane->spans) span.until = std::min(span.until, *lane->ended);
    }
  }

  static void add_span(AttemptLane& lane, const TimelineFact& fact) {
    const WallTime at = std::max(lane.begun, fact.at - ms_of(fact.span->length));
    lane.spans.push_back({fact.span->kind, fact.span->name, at, fact.at, fact.span->usage});
  }

  void add_up(std::map<SpanKind, std::uint64_t>& spans) {
    std::map<SpanKind, milliseconds> lengths;
    for (const Segment& each : out_.segments) lengths[each.kind] += each.length;
    for (const SpanKind kind : domain::kSpanKinds) {
      const Timeline::Sum sum{kind, lengths[kind], spans[kind]};
      if (sum.length > milliseconds::zero() || sum.spans > 0) out_.sums.push_back(sum);
    }
  }

  /// Ties go to the earlier span. False: all of them are kept.
  bool keep_longest_spans() {
    std::vector<milliseconds> lengths;
    for (const AttemptLane& lane : out_.attempts) {
      for (const auto& span : lane.spans) lengths.push_back(span.until - span.at);
    }
    if (lengths.size() <= Timeline::kSpansMax) return false;
    const auto last = lengths.begin() + Timeline::kSpansMax - 1;
    std::ranges::nth_element(lengths, last, std::greater());
    const milliseconds least = *last;
    auto room = static_cast<std::ptrdiff_t>(Timeline::kSpansMax) -
                std::count_if(lengths.begin(), last, [&](milliseconds each) { return each > least; });
    for (AttemptLane& lane : out_.attempts) {
      out_.spans_left_out += std::erase_if(lane.spans, [&](const AttemptLane::Part& span) {
        const milliseconds length = span.until - span.at;
        if (span.kind == SpanKind::ending) return false;
        return length < least || (length == least && room-- <= 0);
      });
    }
    return out_.spans_left_out > 0;
  }

  void draw() {
    auto lane = out_.attempts.begin();
    const TimelineFact* since = nullptr;  // began the present stretch
    for (const TimelineFact& fact : facts_) {
      if (!fact.state) continue;
      const bool same = since != nullptr && fact.state == since->state && fact.hold == since->hold;
      if (same && fact.cause != "claimed") continue;
      if (since != nullptr) {
        if (is_running(*since))
          draw_attempt(lane, fact.at);
        else
          draw_wait(*since, fact.at, fact.waits);
      }
      since = &fact;
    }
    if (since == nullptr || domain::is_finished(*since->state)) return;
    if (is_running(*since))
      draw_attempt(lane, out_.until);
    else
      draw_wait(*since, out_.until, waits_now_);
  }

  void draw_wait(const TimelineFact& since, WallTime until, const std::vector<domain::LimitWait>& waits) {
    const SpanKind kind = kind_of(*since.state, since.hold);
    if (kind == SpanKind::queue) {
      for (const domain::LimitWait& wait : waits) {
        const WallTime from = until - ms_of(wait.ago);
        add(SpanKind::queue, {}, std::min(from, until), 0);
        add(SpanKind::limit, wait.limit, std::min(from + ms_of(wait.length), until), 0);
      }
    }
    add(kind, {}, until, 0);
  }

  void draw_attempt(std::vector<AttemptLane>::iterator& lane, WallTime until) {
    if (lane == out_.attempts.end()) return add(SpanKind::working, {}, until, 0);  // its claim was not read
    const std::uint32_t attempt = lane->attempt;
    using Key = std::tuple<WallTime, std::size_t>;  // the last one decides
    std::vector<std::pair<WallTime, Key>> begins, ends;
    WallTime ending = until;
    for (std::size_t i = 0; i < lane->spans.size(); ++i) {
      const AttemptLane::Part& span = lane->spans[i];
      if (span.kind == SpanKind::ending) ending = std::min(ending, span.at);
      begins.emplace_back(span.at, Key{span.at, i});
      ends.emplace_back(span.until, Key{span.at, i});
    }
    std::ranges::sort(begins);
    std::ranges::sort(ends);
    std::set<Key> open;
    std::size_t begun = 0, ended = 0;
    while (begun < begins.size() || ended < ends.size()) {
      const bool begin = begun < begins.size() && begins[begun].first <= ends[ended].first;
      const WallTime at = std::min(begin ? begins[begun].first : ends[ended].first, ending);
      if (open.empty()) {
        add(SpanKind::working, {}, at, attempt);
      } else {
        const AttemptLane::Part& span = lane->spans[std::get<1>(*open.rbegin())];
        add(span.kind, span.name, at, attempt);
      }
      if (begin)
        open.insert(begins[begun++].second);
      else
        open.erase(ends[ended++].second);
    }
    add(SpanKind::working, {}, ending, attempt);
    add(SpanKind::ending, {}, until, attempt);
    ++lane;
  }

  void add(SpanKind kind, std::string name, WallTime until, std::uint32_t attempt) {
    if (until <= cursor_) return;
    const milliseconds length = until - cursor_;
    const bool more = !out_.segments.empty() && out_.segments.back().kind == kind &&
                      out_.segments.back().name == name && out_.segments.back().attempt == attempt;
    if (more) {
      out_.segments.back().length += length;
    } else {
      out_.segments.push_back({kind, std::move(name), cursor_, length, attempt});
    }
    cursor_ = until;
  }

  std::vector<TimelineFact> facts_;
  const WallTime now_;
  const std::vector<domain::LimitWait> waits_now_;
  WallTime cursor_{};
  Timeline out_;
};

}  // namespace

bool is_wait(SpanKind kind) noexcept {
  switch (kind) {
    case SpanKind::model_call:
    case SpanKind::tool:
    case SpanKind::ending:
    case SpanKind::working: return false;
    case SpanKind::queue:
    case SpanKind::limit:
    case SpanKind::session:
    case SpanKind::delay:
    case SpanKind::backoff:
    case SpanKind::quota:
    case SpanKind::person: break;
  }
  return true;
}

Timeline make_timeline(std::vector<TimelineFact> facts, WallTime now, std::vector<domain::LimitWait> waits) {
  return Builder(std::move(facts), now, std::move(waits)).build();
}

}  // namespace stint::engine
