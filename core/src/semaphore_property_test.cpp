// Random operations on a semaphore against a naive model: weights, priorities, bypass, deadlines, resize, close,
// permits that split, merge and are forgotten. The model keeps one list in order of arrival and recounts the rest.
#include "semaphore_test_support.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

namespace stint {
namespace {

struct Rules {
  std::int64_t capacity = 0;
  std::uint32_t bypass_max = 0, passed_over_max = 0;
};
struct Request {
  int id = 0;
  std::uint32_t units = 1;
  int priority = 0;
  TimePoint deadline = TimePoint::max();
  std::uint32_t overtaken = 0;  // by waiters that bypassed it while it was the head
};

class SemaphoreModel {
 public:
  explicit SemaphoreModel(const Rules& given) : rules(given), capacity(given.capacity) {}

  std::vector<Request*> of_priority(int priority) {
    std::vector<Request*> found;
    for (auto& request : line) {
      if (request.priority == priority) found.push_back(&request);
    }
    return found;
  }
  /// The first waiter of the highest priority, or of the one passed over most often if that is too often.
  Request* head() {
    Request *highest = nullptr, *oldest = nullptr;
    std::uint32_t most = 0;
    for (int priority = Semaphore::kPriorityMax; priority >= Semaphore::kPriorityMin; --priority) {
      const auto all = of_priority(priority);
      if (all.empty()) continue;
      if (highest == nullptr) highest = all.front();
      if (passed_over[priority] <= most) continue;
      most = passed_over[priority];
      oldest = all.front();
    }
    return most >= rules.passed_over_max ? oldest : highest;
  }
  Request* next() {
    Request* const first = head();
    const std::int64_t free = capacity - held;
    if (first == nullptr || closed) return nullptr;
    if (first->units <= free) return first;
    if (first->overtaken >= rules.bypass_max || free <= 0) return nullptr;
    for (int priority = Semaphore::kPriorityMax; priority >= Semaphore::kPriorityMin; --priority) {
      for (Request* request : of_priority(priority)) {
        if (request->units <= free) return request;
      }
    }
    return nullptr;
  }
  void settle() {
    while (Request* const request = next()) {
      if (request != head()) ++head()->overtaken;
      for (int lower = request->priority - 1; lower >= Semaphore::kPriorityMin; --lower) {
        if (!of_priority(lower).empty()) ++passed_over[lower];
      }
      if (request == of_priority(request->priority).front()) passed_over[request->priority] = 0;
      held += request->units;
      granted.push_back(request->id);
      remove(request->id);
    }
  }
  void remove(int id) {
    const auto gone = std::ranges::find(line, id, &Request::id);
    const int priority = gone->priority;
    line.erase(gone);
    if (of_priority(priority).empty()) passed_over[priority] = 0;
  }
  bool impossible(std::uint32_t units) const { return units == 0 || (capacity != 0 && units > capacity); }

  const Rules rules;
  std::int64_t capacity, held = 0;
  bool closed = false;
  std::vector<Request> line;  // in order of arrival
  std::map<int, std::uint32_t> passed_over;
  std::vector<int> granted;
};

/// The model and the semaphore, side by side.
class BothSemaphores {
 public:
  BothSemaphores(const Rules& rules, bool lists_holders, std::uint64_t seed)
      : model(rules), tracks(lists_holders), sim(seed) {
    Semaphore::Options options;
    options.bypass_max = rules.bypass_max;
    options.passed_over_max = rules.passed_over_max;
    options.track_holders = tracks;
    semaphore.emplace("slots", rules.capacity, options);
    RC_LOG() << "capacity " << rules.capacity << ", bypass_max " << rules.bypass_max << ", passed_over_max "
             << rules.passed_over_max << "\n";
  }
  ~BothSemaphores() {
    for (auto& [id, scope] : scopes) scope->cancel();
    permits.clear();
    (void)semaphore->release(detached);
    sim.settle();
  }

  void enter(std::uint32_t count, int priority, TimePoint deadline) {
    const int id = static_cast<int>(labels.size());
    labels.push_back(std::to_string(id));
    RC_LOG() << id << " enters for " << count << ", priority " << priority
             << (deadline == TimePoint::max() ? "\n" : ", timed\n");
    if (!model.closed && !model.impossible(count)) {
      model.line.push_back({id, count, priority, deadline, 0});
      model.settle();
    }
    auto& scope = scopes[id] = std::make_unique<RootScope>(sim);
    scope->spawn(wait(id, count, priority, deadline));
    sim.run_ready();
  }
  /// A waiter with an undelivered grant returns it when cancelled.
  void cancel(int id) {
    RC_LOG() << id << " is cancelled\n";
    scopes.at(id)->cancel();
    if (std::ranges::find(model.line, id, &Request::id) != model.line.end()) {
      model.remove(id);
      model.settle();
    }
    if (unseen(id)) {
      std::erase(model.granted, id);
      model.held -= units.at(id);
      model.settle();
    }
    sim.run_ready();
  }
  void give_back(int id, std::uint32_t count) {
    RC_LOG() << id << " gives back " << count << "\n";
    Permit& permit = permits.at(id);
    const auto result = permit.release(count);
    RC_ASSERT(result.has_value() == (count <= units.at(id)));
    if (!result) return;
    units.at(id) -= count;
    model.held -= count;
    model.settle();
    if (!permit) permits.erase(id);
  }
  /// From the run loop, as a coroutine does: a granted waiter is then queued directly.
  void give_back_inside(int id, std::uint32_t count) {
    struct Act final : Runnable {
      Act(BothSemaphores& all, int whose, std::uint32_t many) : both(all), id(whose), count(many) {}
      void run() override { both.give_back(id, count); }
      BothSemaphores& both;
      int id;
      std::uint32_t count;
    } act(*this, id, count);
    sim.post(act);
    sim.run_ready();
  }
  void detach(int id, std::uint32_t count) {
    RC_LOG() << id << " detaches " << count << "\n";
    auto part = permits.at(id).split(count);
    if (!part) return;
    RC_ASSERT(part->detach() == count);
    units.at(id) -= count;
    detached += count;
    if (!permits.at(id)) permits.erase(id);
  }
  /// Only detached units are released by number.
  void release(std::uint32_t count) {
    RC_LOG() << count << " are given back by number, " << detached << " are detached\n";
    RC_ASSERT(semaphore->release(count).has_value() == (count <= detached));
    if (count > detached) return;
    detached -= count;
    model.held -= count;
    model.settle();
  }
  void adopt(int id) {
    RC_LOG() << id << " adopts " << detached << "\n";
    const std::uint32_t count = std::exchange(detached, 0);
    RC_ASSERT(permits.at(id).merge(semaphore->adopt(count)).has_value());
    units.at(id) += count;
  }
  void forget(int id) {
    const std::int64_t gone = permits.at(id).units();
    RC_LOG() << id << " forgets " << gone << "\n";
    permits.at(id).forget();
    permits.erase(id);
    model.held -= gone;
    resize_model(std::max<std::int64_t>(0, model.capacity - gone));
  }
  void split_and_merge(int from, int to, std::uint32_t count) {
    RC_LOG() << from << " gives " << count << " to " << to << "\n";
    auto part = permits.at(from).split(count);
    RC_ASSERT(part.has_value() == (count <= units.at(from)));
    if (!part) return;
    units.at(from) -= count;
    if (!permits.at(from)) permits.erase(from);
    Permit& into = permits[to];
    RC_ASSERT(into.merge(std::move(*part)).has_value());
    units[to] += count;
    if (!into) permits.erase(to);
  }
  void resize(std::int64_t to) {
    RC_LOG() << "capacity " << to << "\n";
    RC_ASSERT(semaphore->set_capacity(to).has_value());
    resize_model(to);
  }
  void close() {
    RC_LOG() << "close\n";
    semaphore->close();
    model.closed = true;
    model.line.clear();
    model.passed_over.clear();
  }
  void advance(Duration duration) {
    RC_LOG() << duration / 1s << " s pass\n";
    const TimePoint until = sim.now() + duration;
    while (true) {
      const auto due = std::ranges::min_element(model.line, {}, &Request::deadline);
      if (due == model.line.end() || due->deadline > until) break;
      model.remove(due->id);
      model.settle();
    }
    sim.advance(duration);
  }
  void compare() {
    RC_ASSERT(semaphore->available() == model.capacity - model.held);
    RC_ASSERT(semaphore->capacity() == model.capacity);
    std::vector<std::string> waiting, wanted;
    for (const auto& waiter : semaphore->waiters()) waiting.push_back(waiter.label);
    for (int priority = Semaphore::kPriorityMax; priority >= Semaphore::kPriorityMin; --priority) {
      for (const Request* request : model.of_priority(priority)) wanted.push_back(labels[request->id]);
    }
    RC_ASSERT(waiting == wanted);
    for (const int id : seen) RC_ASSERT(std::ranges::find(model.granted, id) != model.granted.end());
    compare_holders();
  }
  std::vector<int> holding() const {
    std::vector<int> ids;
    for (const auto& [id, permit] : permits) ids.push_back(id);
    return ids;
  }
  bool unseen(int id) const {
    return std::ranges::find(model.granted, id) != model.granted.end() && std::ranges::find(seen, id) == seen.end();
  }

  SemaphoreModel model;
  const bool tracks;
  std::deque<std::string> labels;
  std::map<int, std::uint32_t> units;
  std::uint32_t detached = 0;
  std::vector<int> seen;  // whose grant has been delivered
  std::optional<Semaphore> semaphore;
  std::map<int, Permit> permits;
  Simulator sim;
  std::map<int, std::unique_ptr<RootScope>> scopes;

 private:
  Task<> wait(int id, std::uint32_t count, int priority, TimePoint deadline) {
    AcquireOptions options;
    options.units = count;
    options.priority = priority;
    options.label = labels[id];
    units[id] = count;
    auto permit = co_await semaphore->acquire(options, Deadline(deadline));
    if (!permit) co_return;
    seen.push_back(id);
    permits[id] = std::move(*permit);
  }
  void resize_model(std::int64_t to) {
    model.capacity = to;
    std::vector<int> gone;
    for (const auto& request : model.line) {
      if (model.impossible(request.units)) gone.push_back(request.id);
    }
    for (const int id : gone) model.remove(id);
    model.settle();
  }
  void compare_holders() {
    std::vector<std::uint32_t> listed, wanted;
    for (const auto& holder : semaphore->holders()) listed.push_back(holder.units);
    for (const auto& [id, permit] : permits) {
      if (tracks) wanted.push_back(permit.units());
    }
    std::ranges::sort(listed);
    std::ranges::sort(wanted);
    RC_ASSERT(listed == wanted);
  }
};

/// RapidCheck's own hundred cases are few for so many operations. RC_PARAMS="seed=…" repeats them.
template <class Property>
void check_cases(int count, Property property) {
  auto params = rc::detail::configuration().testParams;
  params.maxSuccess = count;
  const auto result = rc::detail::checkTestable(std::move(property), rc::detail::TestMetadata(), params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << message.str() << "\nseed=" << params.seed;
}

Rules any_rules() {
  Rules rules;
  rules.capacity = *rc::gen::inRange<std::int64_t>(0, 8);
  rules.bypass_max = *rc::gen::inRange<std::uint32_t>(0, 4);
  rules.passed_over_max = *rc::gen::inRange<std::uint32_t>(1, 5);
  return rules;
}

int pick(const std::vector<int>& ids) { return ids[*rc::gen::inRange<std::size_t>(0, ids.size())]; }

void step_of_everything(BothSemaphores& both, int& deadlines) {
  const auto count = static_cast<std::uint32_t>(*rc::gen::inRange(0, 5));
  const auto holding = both.holding();
  switch (*rc::gen::weightedElement<int>(
      {{12, 0}, {8, 1}, {3, 2}, {2, 3}, {1, 4}, {2, 5}, {2, 6}, {3, 7}, {1, 8}, {2, 9}, {2, 10}, {1, 11}})) {
    case 0: {
      // Deadlines are all different, so that the model need not know the order within a tick.
      const bool timed = *rc::gen::inRange(0, 4) == 0;
      const TimePoint deadline =
          timed ? both.sim.now() + *rc::gen::inRange(1, 10) * 1s + ++deadlines * Executor::kTick : TimePoint::max();
      return both.enter(count, *rc::gen::inRange(-2, 3), deadline);
    }
    case 1:
      if (holding.empty()) return;
      return *rc::gen::arbitrary<bool>() ? both.give_back_inside(pick(holding), count)
                                         : both.give_back(pick(holding), count);
    case 2:
      if (both.scopes.empty()) return;
      return both.cancel(*rc::gen::inRange(0, static_cast<int>(both.scopes.size())));
    case 3: return both.resize(*rc::gen::inRange(0, 10));
    case 4: return holding.empty() ? void() : both.forget(pick(holding));
    case 5: return holding.empty() ? void() : both.split_and_merge(pick(holding), pick(holding), count);
    case 6: return both.advance(*rc::gen::inRange(1, 3) * 1s);
    case 7: return both.sim.run_ready();
    case 9: return holding.empty() ? void() : both.detach(pick(holding), count);
    case 10: return both.release(count);
    case 11: return holding.empty() ? void() : both.adopt(pick(holding));
    default: return *rc::gen::inRange(0, 5) != 0 ? void() : both.close();
  }
}
TEST(SemaphoreProperty, agrees_with_a_naive_model) {
  check_cases(rounds(10'000), [] {
    BothSemaphores both(any_rules(), *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<std::uint64_t>());
    int deadlines = 0;
    for (int steps = *rc::gen::inRange(0, 80); steps > 0; --steps) {
      step_of_everything(both, deadlines);
      both.compare();
    }
  });
}

TEST(SemaphoreProperty, the_kth_waiter_is_granted_after_at_most_k_releases) {
  check_cases(rounds(2000), [] {
    Rules rules;
    rules.capacity = *rc::gen::inRange<std::int64_t>(1, 5);
    BothSemaphores both(rules, false, *rc::gen::arbitrary<std::uint64_t>());
    std::map<int, std::size_t> due;  // by which release
    std::size_t releases = 0;
    for (int steps = *rc::gen::inRange(0, 60); steps > 0; --steps) {
      const auto holding = both.holding();
      const int what = *rc::gen::inRange(0, 5);
      if (what == 0 && !both.scopes.empty()) {
        const int leaves = *rc::gen::inRange(0, static_cast<int>(both.scopes.size()));
        both.cancel(leaves);
        due.erase(leaves);
      } else if (what < 3 && !holding.empty()) {
        both.give_back(pick(holding), 1);
        ++releases;
      } else {
        due[static_cast<int>(both.labels.size())] = releases + both.semaphore->waiting() + 1;
        both.enter(1, 0, TimePoint::max());
      }
      both.sim.run_ready();
      std::erase_if(
          due, [&both](const auto& entry) { return std::ranges::find(both.seen, entry.first) != both.seen.end(); });
      for (const auto& [id, release] : due) RC_ASSERT(release > releases);
    }
  });
}

/// An endless stream of other requests, of every size and priority.
TEST(SemaphoreProperty, the_first_of_each_priority_is_overtaken_boundedly_often) {
  check_cases(rounds(2000), [] {
    Rules rules = any_rules();
    rules.capacity = *rc::gen::inRange<std::int64_t>(2, 6);
    BothSemaphores both(rules, false, 0);
    const auto any_units = [&rules] {
      return static_cast<std::uint32_t>(*rc::gen::inRange<std::int64_t>(1, rules.capacity + 1));
    };
    for (int i = 0; i < 3; ++i) both.enter(any_units(), *rc::gen::inRange(-1, 2), TimePoint::max());
    const int starving = static_cast<int>(both.labels.size());
    const int priority = *rc::gen::inRange(-1, 2);
    both.enter(static_cast<std::uint32_t>(rules.capacity), priority, TimePoint::max());
    std::size_t before = both.model.granted.size();
    for (int steps = 0; steps < 1000 && !both.permits.contains(starving); ++steps) {
      const auto first = both.model.of_priority(priority);
      if (!first.empty() && first.front()->id != starving) before = both.model.granted.size();
      // Per round of aging each priority goes once, and each head is bypassed `bypass_max` times.
      const std::size_t most = (rules.passed_over_max + 2 * 3) * (rules.bypass_max + 1);
      RC_ASSERT(both.seen.size() <= before + most + static_cast<std::size_t>(rules.capacity));
      if (both.semaphore->waiting() < 5) {
        both.enter(any_units(), *rc::gen::inRange(-1, 2), TimePoint::max());
      } else {
        const int id = pick(both.holding());
        both.give_back(id, both.units.at(id));
        both.sim.run_ready();
      }
      both.compare();
    }
    RC_ASSERT(both.permits.contains(starving));
  });
}

}  // namespace
}  // namespace stint
