#include "families.hpp"

#include "actors.hpp"
#include "domain/run_id.hpp"
#include "fleet/local_fleet.hpp"
#include "store/series.hpp"
#include "world.hpp"

namespace stint::simulation {
namespace {

using namespace std::chrono_literals;
using domain::RunState;

constexpr std::size_t kFamilySessions = 6, kKeys = 3;
constexpr Duration kCalm = 5s;  // a call from before a disruption may still be in flight

}  // namespace

Families::Families(World& world) : world_(world) {}
Families::~Families() = default;

// ---- the codec -----------------------------------------------------------------------------------------------------

std::string Families::keep(const domain::RunInput& input) {
  inputs_.push_back(input);
  return "#" + std::to_string(inputs_.size());
}

domain::RunInput Families::kept(std::string_view text) const {
  if (!text.starts_with('#')) return {};
  domain::RunInput input = inputs_.at(std::stoul(std::string(text.substr(1))) - 1);
  if (world_.sabotage() == Sabotage::forgets_family) input.budgets_above.clear();
  return input;
}

// ---- usage ---------------------------------------------------------------------------------------------------------

bool Families::spends(const domain::WorkOrder& order) const {
  return order.budget.tokens || !order.input.budgets_above.empty();
}

std::int64_t Families::draw_use() { return 1 + static_cast<std::int64_t>(world_.random()() % kUseMax); }

std::map<std::string, std::int64_t> Families::budgets_of(const domain::WorkOrder& order) const {
  std::map<std::string, std::int64_t> found;
  for (std::string run = order.run; !run.empty();) {  // from the submissions, not from what the worker knows
    if (const auto budget = budgets_.find(run); budget != budgets_.end()) found[run] = budget->second.tokens;
    const auto member = members_.find(run);
    run = member == members_.end() ? std::string() : member->second.parent;
  }
  return found;
}

Task<> Families::hear_use(LiveWork& work, const Process& process, const domain::WorkOrder& order, std::int64_t tokens) {
  const std::map<std::string, std::int64_t> above = budgets_of(order);
  std::vector<std::string> heads;
  for (const auto& [head, most] : above) heads.push_back(head);
  const auto sums = co_await world_.store().used(std::move(heads));
  const TimePoint now = world_.sim().now();
  const Weather& weather = process.line.weather;
  const bool troubled_now =
      process.line.cut || process.line.starved || weather.refused > 0 || weather.unanswered > 0 || weather.slow > 0;
  for (const store::FamilyUse& sum : *sums) {
    Budget& budget = budgets_.at(sum.head);
    budget.used += tokens;
    const bool over = sum.used.tokens > budget.tokens;
    if (over && !budget.over) {
      budget.over = true;
      std::erase_if(budget.active, [&](const auto& each) { return now - each.second > kBetweenReports; });
    }
    if (!budget.over) budget.active[order.mark()] = now;
    const TimePoint first = over ? work.late_since.try_emplace(sum.head, now).first->second : now;
    const bool troubled =
        troubled_now || (process.troubled_at != TimePoint::min() && first < process.troubled_at + kCalm);
    if (troubled) budget.unheard += tokens;
    if (!over) continue;
    budget.late.insert(order.mark());
    if (!troubled && now > first + kBetweenReports) {
      world_.find_fault(order.run + " goes on after it has used up the budget of " + sum.head);
    }
  }
}

// ---- actions -------------------------------------------------------------------------------------------------------

void Families::act() {
  if (!fleet_) {
    run_codec_ = make_run_codec(world_);
    registry_ = world_.registry();
    for (auto& [name, spec] : registry_) {
      domain::ArgumentSpec& argument = spec.agent.args.emplace_back();
      argument.name = "x";
      argument.fallback = "0";
    }
    fleet_ = std::make_unique<fleet::LocalFleet>(
        fleet::LocalFleet::Parts{world_.sim(), world_.store(), *run_codec_, world_.system(),
                                 [this]() -> const project::AgentRegistry& { return registry_; }},
        fleet::LocalFleet::Options());
  }
  if (world_.chance(0.7)) return submit_member();
  if (world_.chance(0.7)) return submit_keyed();
  change_definition();
}

std::string Families::holder_above(std::string parent, const std::string& session) {
  while (!parent.empty()) {
    const auto run = world_.ask(world_.store().find(parent));
    if (!run || !*run || domain::is_finished((*run)->state)) return {};
    if ((*run)->session == session) return parent;
    parent = (*run)->parent;
  }
  return {};
}

void Families::submit_member() {
  engine::Submission submission;
  submission.id = domain::new_run_id(world_.system());
  submission.agent = world_.agents()[world_.random()() % world_.agents().size()].name;
  submission.budget.time = kTimeBudget;
  if (world_.chance(0.8)) submission.parent = world_.some_live_run();
  if (world_.chance(submission.parent.empty() ? 0.8 : 0.3)) submission.budget.tokens = 20 + world_.random()() % 200;
  if (submission.parent.empty() && world_.chance(0.4)) share_budget(submission);
  if (world_.chance(0.4)) submission.session = "family" + std::to_string(world_.random()() % kFamilySessions);
  if (world_.chance(0.3)) {  // that of a run above it
    for (auto above = members_.find(submission.parent); above != members_.end();
         above = members_.find(above->second.parent)) {
      if (!above->second.session.empty() && world_.chance(0.7)) submission.session = above->second.session;
    }
  }
  if (registry_.at(submission.agent).gone) return;
  const std::string holder =
      submission.session.empty() ? std::string() : holder_above(submission.parent, submission.session);
  const engine::Submission asked = submission;
  std::vector<engine::Submission> submissions;
  submissions.push_back(std::move(submission));
  const auto answers = world_.ask(fleet_->submit(std::move(submissions)));
  if (!answers || !answers->front()) return;
  if (!holder.empty()) {
    world_.find_fault(asked.id + " is accepted into session " + asked.session + ", which run " + holder +
                      " above it holds");
  }
  world_.add_run(asked.id, asked.agent, asked.session);
  members_[asked.id] = {.parent = asked.parent + asked.one_budget, .session = asked.session};
  if (!asked.one_budget.empty()) budgets_[asked.one_budget].tokens = kSharedTokens;
  // The budget that was accepted, which may be less than the requested one.
  const auto run = world_.ask(world_.store().find(asked.id));
  const std::optional<std::int64_t> tokens = kept((*run)->input).budget.tokens;
  if (tokens) budgets_[asked.id].tokens = *tokens;
}

/// The same one for some submissions, then another.
void Families::share_budget(engine::Submission& submission) {
  if (shared_.empty() || world_.chance(0.2)) shared_ = domain::new_run_id(world_.system());
  submission.one_budget = shared_;
  submission.budget.tokens = kSharedTokens;
}

void Families::submit_keyed() {
  engine::Submission submission;
  submission.agent = world_.agents()[world_.random()() % world_.agents().size()].name;
  submission.key = "key" + std::to_string(world_.random()() % kKeys);
  submission.budget.time = kTimeBudget;
  if (world_.chance(0.7)) submission.args["x"] = {std::to_string(world_.random()() % 2)};
  const auto known = keys_.find({submission.agent, submission.key});
  const engine::Submission asked = submission;
  std::vector<engine::Submission> submissions;
  submissions.push_back(std::move(submission));
  const auto answers = world_.ask(fleet_->submit(std::move(submissions)));
  if (!answers) return world_.find_fault("a submit fails: " + answers.error().describe());
  const Result<engine::Submitted>& answer = answers->front();
  if (known == keys_.end()) {
    if (!answer) return;  // its definition may not fit now
    keys_[{asked.agent, asked.key}] = {.id = answer->id, .args = asked.args};
    return world_.add_run(answer->id, asked.agent, "");
  }
  const Keyed& first = known->second;
  if (answer && (answer->created || answer->id != first.id)) {
    world_.find_fault(answer->id + " was created with the idempotency key of " + first.id);
  } else if (!answer && asked.args == first.args) {
    world_.find_fault(first.id + " is not found by its idempotency key: " + answer.error().describe());
  }
}

/// Changes one agent: its default, the name of its argument, or its file.
void Families::change_definition() {
  const std::string name = world_.agents()[world_.random()() % world_.agents().size()].name;
  project::AgentSpec& spec = registry_.at(name);
  switch (world_.random()() % 3) {
    case 0: spec.agent.args[0].fallback = std::to_string(world_.random()() % 3); return;
    case 1: spec.agent.args[0].name = spec.agent.args[0].name == "x" ? "y" : "x"; return;
    default: spec.gone = !spec.gone;
  }
}

// ---- the end -------------------------------------------------------------------------------------------------------

/// Nothing is forgotten here: what all runs used is what was used on all days.
void Families::check_days() {
  store::Filter all;
  all.most = 1'000'000;
  const auto runs = world_.ask(world_.store().list(all));
  const auto days = world_.ask(world_.store().spent(WallTime(), store::SpentBy::day));
  std::int64_t by_run = 0, by_day = 0;
  for (const store::Run& run : *runs) by_run += run.tokens;
  for (const store::Spent& day : *days) by_day += day.tokens;
  if (by_run != by_day) {
    world_.find_fault("the days have " + std::to_string(by_day) + " tokens, the runs " + std::to_string(by_run));
  }
}

void Families::check_end() {
  check_days();
  std::map<std::string, std::int64_t> seen;  // by head: the usage in the store of the runs that draw on it
  for (const auto& [id, member] : members_) {
    const auto run = world_.ask(world_.store().find(id));
    if (!run || !*run) return world_.find_fault(id + " is lost");
    for (std::string head = id; !head.empty();) {
      if (budgets_.contains(head)) seen[head] += (*run)->tokens;
      const auto above = members_.find(head);
      head = above == members_.end() ? std::string() : above->second.parent;
    }
  }
  for (const auto& [head, budget] : budgets_) {
    const auto sums = world_.ask(world_.store().used({head}));
    const std::int64_t said = sums->front().used.tokens;
    const auto attempts = static_cast<std::int64_t>(budget.active.size() + budget.late.size());
    if (said != seen[head]) {
      world_.find_fault(head + ": the sum of its family is " + std::to_string(said) + ", its runs used " +
                        std::to_string(seen[head]));
    }
    if (said > budget.used) world_.find_fault(head + ": more is counted than was used");
    if (budget.over && budget.used - budget.unheard > budget.tokens + attempts * kUseBetweenReports) {
      world_.find_fault(head + ": its family used " + std::to_string(budget.used) + " of " +
                        std::to_string(budget.tokens));
    }
  }
}

}  // namespace stint::simulation
