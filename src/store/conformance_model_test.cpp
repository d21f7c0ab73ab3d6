// Every store behaves like the model: the same random steps on both, and after each step the same runs.
#include "store/audit.hpp"
#include "store/conformance.hpp"
#include "store/memory_store.hpp"

#include <array>
#include <cstdlib>
#include <random>
#include <set>

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using domain::Settle;

constexpr int kSteps = 250;
const std::string kShared = "gggggggggggg", kOtherShared = "hhhhhhhhhhhh";  // budgets that no run has

/// The comparable part: without times, which each store has of its own.
std::string describe(const store::Run& run) {
  std::string text = run.id + " " + std::string(to_string(run.state)) + " " + std::string(to_string(run.hold)) +
                     " stop " + std::string(to_string(run.stop));
  text += " attempt " + std::to_string(run.attempt) + " lost " + std::to_string(run.lost);
  text += " fence " + std::to_string(run.fence.value) + " seq " + std::to_string(run.seq);
  text += " used " + std::to_string(run.tokens) + " " + std::to_string(run.cost_micros);
  text += run.unsafe ? " unsafe" : "";
  return text + " error '" + run.error + "'";
}

std::string describe(const FamilyUse& sum) {
  return sum.head + " used " + std::to_string(sum.used.tokens) + " " + std::to_string(sum.used.cost_micros);
}

template <class T>
std::string outcome(const Result<T>& result) {
  return result ? "ok" : std::string(to_string(result.error().code()));
}

/// One of the two sides: a store and its answers so far.
class Side {
 public:
  Side(World& world, Store& store) : world_(world), store_(store) {}

  void prepare() {
    std::vector<AgentEntry> agents(3);
    for (std::size_t i = 0; i < agents.size(); ++i) {
      agents[i].name = "a" + std::to_string(i);
      agents[i].queued_max = 12;
      agents[i].attempts_max = 3;
    }
    agents[1].limits = {{"gpu", 1}, {"account", 1}};
    agents[2].limits = {{"gpu", 2}};
    EXPECT_TRUE(run(store_.define(agents)));
    EXPECT_TRUE(run(store_.resize("gpu", 3)));
    for (NodeNumber& node : nodes_) node = run(store_.enrol("w")).value();
  }
  template <class T>
  Result<T> run(Task<Result<T>> task) {
    return world_.run(std::move(task));
  }

  std::string submit(NewRun fresh, std::optional<std::size_t> keeper) {
    if (keeper) fresh.kept_for = nodes_[*keeper];
    const auto answers = run(store_.enqueue({fresh}));
    if (!answers) return outcome(answers);
    const Result<Accepted>& answer = answers->front();
    return answer ? answer->id + (answer->created ? " new" : " known") : outcome(answer);
  }
  std::string claim(std::size_t node, const std::string& agent, std::uint32_t most, const std::string& only = {}) {
    const auto claims = run(store_.claim(nodes_[node], agent, most, only));
    std::string summary = outcome(claims);
    for (const Claim& claim : claims.value_or(std::vector<Claim>())) {
      summary += " " + claim.id + ":" + std::to_string(claim.fence.value) + ":" + std::to_string(claim.attempt);
      held_.emplace_back(node, claim);
    }
    return summary;
  }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] std::string held_id(std::size_t which) const { return held_[which].second.id; }
  std::string settle(std::size_t which, Settlement settlement, bool forget) {
    const auto [node, claim] = held_[which];
    settlement.attempt = claim.attempt_key();
    if (forget) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));  // otherwise it is settled twice
    const auto states = run(store_.settle(nodes_[node], {settlement}));
    if (!states) return outcome(states);
    return states->front() ? std::string(to_string(*states->front())) : "stale";
  }
  std::string mark(std::size_t which, bool unsafe) {
    const auto& [node, claim] = held_[which];
    const auto marked = run(store_.mark(nodes_[node], claim.attempt_key(), unsafe));
    return marked ? std::to_string(static_cast<int>(*marked)) : outcome(marked);
  }
  std::string provider_answered(std::size_t which) {
    const auto& [node, claim] = held_[which];
    const auto known = run(store_.provider_answered(nodes_[node], claim.attempt_key()));
    return known ? std::to_string(static_cast<int>(*known)) : outcome(known);
  }
  std::string report(std::size_t which, Use so_far) {
    const auto& [node, claim] = held_[which];
    const auto sums = run(store_.report(nodes_[node], claim.attempt_key(), so_far));
    if (!sums) return outcome(sums);
    if (!*sums) return "stale";
    std::set<std::string> summary;
    for (const FamilyUse& sum : **sums) summary.insert(describe(sum));
    std::string all;
    for (const std::string& one : summary) all += one + "; ";
    return all;
  }
  std::string cancel(const std::string& id) {
    const auto reached = run(store_.cancel(id));
    if (!reached) return outcome(reached);
    std::set<std::string> names;
    for (const auto& [name, state] : *reached) names.insert(name + std::string(to_string(state)));
    std::string summary;
    for (const std::string& name : names) summary += name + " ";
    return summary;
  }
  std::string tick() {
    for (const NodeNumber node : nodes_) EXPECT_TRUE(run(store_.beat(node))->alive);
    const auto ticked = run(store_.tick());
    return ticked ? std::to_string(ticked->woken) + " " + std::to_string(ticked->expired) : outcome(ticked);
  }
  std::vector<std::string> look() {
    Filter all;
    all.most = 10'000;
    std::vector<std::string> found;
    std::vector<std::string> heads{kShared, kOtherShared, std::string(kToday)};
    for (const store::Run& one : run(store_.list(all)).value()) {
      found.push_back(describe(one));
      heads.push_back(one.id);
    }
    for (const FamilyUse& sum : run(store_.used(heads)).value()) found.push_back(describe(sum));
    for (const Spent& one : run(store_.spent(WallTime())).value()) {
      found.push_back(one.day + " " + one.agent + " spent " + std::to_string(one.runs) + " " +
                      std::to_string(one.tokens) + " " + std::to_string(one.cost_micros));
    }
    for (const Ready& one : run(store_.ready()).value()) {
      found.push_back(one.agent + " has " + std::to_string(one.runs) + ", may start " +
                      (one.startable ? std::to_string(*one.startable) : "all") + ", " + std::to_string(one.rank_ms) +
                      (one.takes_turn ? ", takes a turn" : ""));
    }
    for (const LimitState& one : run(store_.limits()).value()) {
      found.push_back(one.name + " held " + std::to_string(one.units) + " by " + std::to_string(one.runs) + " of " +
                      std::to_string(one.capacity.value_or(0)) + " ramp " + std::to_string(one.ramp.value_or(0)) +
                      " awaited by " + std::to_string(one.waiting));
    }
    return found;
  }
  Store& store() { return store_; }

 private:
  World& world_;
  Store& store_;
  std::array<NodeNumber, 2> nodes_{};
  std::vector<std::pair<std::size_t, Claim>> held_;
};

/// Applies the same steps to both sides.
class Pair {
 public:
  Pair(World& world, Store& model, std::uint32_t seed)
      : world_(world), random_(seed), real_(world, world.store()), model_(world, model) {
    real_.prepare();
    model_.prepare();
  }

  void step(int number) {
    std::string real_answer, model_answer, what;
    const auto both = [&](std::string name, const auto& act) {
      what = std::move(name);
      real_answer = act(real_);
      model_answer = act(model_);
    };
    switch (below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        submit(both);
        if (real_answer.ends_with(" new")) draws_on_[last_.id] = last_.draws_on;
        break;
      case 4:
      case 5:
      case 6: {
        const std::size_t node = below(2);
        const std::string agent = "a" + std::to_string(below(3));
        const auto most = static_cast<std::uint32_t>(1 + below(3));
        both("claim " + agent, [&](Side& side) { return side.claim(node, agent, most); });
        break;
      }
      case 7:
      case 8:
      case 9:
      case 10: settle(both); break;
      case 11: mark(both); break;
      case 12: person(both); break;
      case 13: {
        world_.advance(below(4) * 2s);
        if (below(3) == 0) world_.jump(below(2) == 0 ? Duration(24h) : Duration(-24h));
        both("tick", [](Side& side) { return side.tick(); });
        break;
      }
      case 14: limits(both); break;
      case 15:
      case 16: {
        const std::size_t node = below(2);
        both("claim " + last_.id, [&](Side& side) { return side.claim(node, last_.agent, 1, last_.id); });
        break;
      }
      case 17:
      case 18: report(both); break;
      default: {
        if (ids_.empty()) break;
        const std::string id = ids_[below(ids_.size())];
        both("cancel " + id, [&](Side& side) { return side.cancel(id); });
      }
    }
    ASSERT_EQ(real_answer, model_answer) << "step " << number << ", " << what;
    ASSERT_EQ(real_.look(), model_.look()) << "step " << number << ", " << what;
  }
  [[nodiscard]] const std::vector<std::string>& ids() const { return ids_; }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }

  NewRun fresh() {
    const domain::System drawn{.wall_now = {},
                               .random = [this] { return std::uint64_t{random_()} << 32U | random_(); }};
    NewRun run;
    run.id = !ids_.empty() && below(12) == 0 ? ids_[below(ids_.size())] : domain::new_run_id(drawn);
    run.agent = "a" + std::to_string(below(3));
    if (below(3) == 0) run.session = "s" + std::to_string(below(2));
    if (below(6) == 0) run.key = "k" + std::to_string(below(4));
    if (below(6) == 0 && !ids_.empty()) run.parent = ids_[below(ids_.size())];
    if (below(4) == 0 && real_.held() > 0) run.parent = real_.held_id(below(real_.held()));
    if (!run.parent.empty()) {  // a child draws on what its parent draws on, and usually on its parent
      run.draws_on = draws_on_[run.parent];
      if (below(3) > 0) run.draws_on.push_back(run.parent);
    } else if (below(4) == 0) {  // on a budget that no run has
      run.draws_on.push_back(below(2) == 0 ? kShared : kOtherShared);
    }
    run.priority = static_cast<int>(below(3)) - 1;
    if (below(6) == 0) run.delay = 5s;
    if (below(8) == 0) run.deadline = world_.now() + 9s;
    if (below(4) == 0) run.budget = 11s;
    run.on_crash = below(2) == 0 ? domain::OnCrash::rerun : domain::OnCrash::doubt;
    ids_.push_back(run.id);
    return run;
  }

  template <class Both>
  void submit(const Both& both) {
    last_ = fresh();
    const auto keeper = below(6) == 0 ? std::optional(below(2)) : std::nullopt;
    both("submit " + last_.id, [&](Side& side) { return side.submit(last_, keeper); });
  }

  template <class Both>
  void mark(const Both& both) {
    if (real_.held() == 0 || ids_.empty()) return;
    const std::size_t which = below(real_.held());
    if (below(3) == 0) return both("provider_answered", [&](Side& side) { return side.provider_answered(which); });
    const bool unsafe = below(3) > 0;
    both("mark", [&](Side& side) { return side.mark(which, unsafe); });
  }

  template <class Both>
  void report(const Both& both) {
    if (real_.held() == 0) return;
    const std::size_t which = below(real_.held());
    const Use so_far{.tokens = static_cast<std::int64_t>(below(1000)),
                     .cost_micros = static_cast<std::int64_t>(below(1000))};
    both("report", [&](Side& side) { return side.report(which, so_far); });
  }

  template <class Both>
  void settle(const Both& both) {
    if (real_.held() == 0) return;
    const std::size_t which = below(real_.held());
    constexpr std::array kHow = {Settle::succeeded, Settle::succeeded, Settle::failed,    Settle::retry,
                                 Settle::retry,     Settle::park,      Settle::hand_back, Settle::cancelled};
    Settlement settlement;
    settlement.settle = kHow[below(kHow.size())];
    settlement.tokens = static_cast<std::int64_t>(below(1000));
    settlement.cost_micros = static_cast<std::int64_t>(below(1000));
    if (below(2) == 0) settlement.error = "e" + std::to_string(below(9));
    if (below(2) == 0) settlement.retry_after = 5s;
    if (settlement.settle == Settle::park && below(2) == 0) settlement.park_for = 5s;
    if (settlement.settle == Settle::park && below(3) == 0) settlement.park_on = "account";
    const bool forget = below(8) > 0;
    both("settle as " + std::string(to_string(settlement.settle)),
         [&](Side& side) { return side.settle(which, settlement, forget); });
  }

  /// An action of a person on a run that is in doubt or waits for an answer.
  template <class Both>
  void person(const Both& both) {
    if (ids_.empty()) return;
    const std::string id = ids_[below(ids_.size())];
    const auto how = domain::kResolutions[below(domain::kResolutions.size())];
    if (below(2) == 0) {
      both("resolve " + id, [&](Side& side) {
        const auto state = side.run(side.store().resolve(id, how));
        return state ? std::string(to_string(*state)) : outcome(state);
      });
    } else {
      both("answer " + id, [&](Side& side) { return outcome(side.run(side.store().answer(id))); });
    }
  }

  template <class Both>
  void limits(const Both& both) {
    const std::uint32_t capacity = static_cast<std::uint32_t>(1 + below(4));
    switch (below(5)) {
      case 0: {
        std::map<std::string, std::uint32_t> configured;
        if (below(3) > 0) configured["gpu"] = capacity;
        if (below(3) == 0) configured["account"] = capacity;
        std::vector<std::string> agents;
        for (const char* const agent : {"a0", "a1", "a2"}) {
          if (below(4) > 0) agents.emplace_back(agent);
        }
        both("configure", [&](Side& side) { return outcome(side.run(side.store().configure(configured, agents))); });
        break;
      }
      case 1:
        both("resize", [&](Side& side) { return outcome(side.run(side.store().resize("gpu", capacity))); });
        break;
      case 2: {
        both("pause", [&](Side& side) { return outcome(side.run(side.store().pause("account", 3s))); });
        break;
      }
      default:
        both("resume", [&](Side& side) {
          const auto woken = side.run(side.store().resume("account"));
          return woken ? std::to_string(*woken) : outcome(woken);
        });
    }
  }

  World& world_;
  std::mt19937 random_;
  Side real_, model_;
  std::vector<std::string> ids_;
  std::map<std::string, std::vector<std::string>> draws_on_;  // of accepted runs
  NewRun last_;
};

/// No gaps, and only transitions of the table.
void check_events(World& world, const std::string& id) {
  const auto events = world.run(world.store().events(id, 0, 10'000));
  if (!events) return;  // it was refused
  std::optional<RunState> before;
  for (std::size_t i = 0; i < events->size(); ++i) {
    const Event& event = (*events)[i];
    ASSERT_EQ(event.seq, static_cast<std::int64_t>(i) + 1) << id;
    const RunState state = event.state.value();
    ASSERT_TRUE(before ? domain::is_transition(event.cause, *before, state) : event.cause == domain::kEnqueued)
        << id << ": " << event.cause << " to " << to_string(state);
    before = state;
  }
}

TEST_P(StoreTest, does_what_the_model_does) {
  const char* const wanted = std::getenv("STINT_SEEDS");  // more seeds, by hand
  const int seeds = wanted != nullptr ? std::atoi(wanted) : GetParam().name == "memory" ? 1 : 3;
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto fresh = GetParam().make();
    const domain::System system = fresh->clocks().system([] { return std::uint64_t{0}; });
    MemoryStore model(system);
    Pair pair(*fresh, model, static_cast<std::uint32_t>(seed));
    for (int step = 0; step < kSteps && !HasFatalFailure(); ++step) pair.step(step);
    for (const std::string& id : pair.ids()) {
      if (!HasFatalFailure()) check_events(*fresh, id);
    }
    const auto sound = fresh->run(audit(fresh->store()));
    ASSERT_TRUE(sound) << sound.error().describe();
    EXPECT_EQ(sound->findings, std::vector<std::string>());
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace stint::store
