// LocalFleet: submissions, idempotency keys, budgets of parents, retry.
#include "agent/agent_file.hpp"
#include "agent/arguments.hpp"
#include "agent/template.hpp"
#include "agent/text.hpp"
#include "domain/bounds.hpp"
#include "domain/budget_core.hpp"
#include "domain/budget_rule.hpp"
#include "domain/run_id.hpp"
#include "domain/trace.hpp"
#include "fleet/local_fleet.hpp"
#include "fleet/request_digest.hpp"
#include "fleet/submission_text.hpp"
#include "project/snapshot.hpp"

#include <algorithm>

namespace stint::fleet {
namespace {

using namespace std::chrono_literals;
using domain::RunState;

constexpr std::size_t kPromptTitleMax = 80;  // bytes of a title made from a prompt

Error key_is_used(const std::string& key, const std::string& run) {
  return {Errc::conflict, "idempotency key '" + agent::excerpt(key, domain::kShownNameBytesMax) +
                              "' was already used by run '" + run + "' with a different request. Use another key"};
}

/// Cuts between two characters.
std::string cut_to(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  constexpr std::string_view kMore = "…";
  std::size_t end = bytes_max - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)).append(kMore);
}

/// The title of a run from its prompt.
std::string first_line(std::string_view text) { return cut_to(text.substr(0, text.find('\n')), kPromptTitleMax); }

/// Fails if the driver that a submission names can't carry the agent.
Result<> check_driver(const std::string& driver, const domain::Agent& agent) {
  const domain::DriverDescriptor* const known = domain::find_driver(driver);
  if (known == nullptr) return fail(Errc::invalid, domain::why_no_driver(agent::excerpt(driver)));
  if (known->runs_command && agent.command.empty()) {
    return fail(Errc::invalid,
                "driver '" + driver + "' needs a command, and the file of agent '" + agent.name + "' has none");
  }
  return {};
}

/// Fails if the driver could only count the run's budget, not enforce it.
Result<> check_budget(const Submission& submission, const project::AgentSpec& spec, bool bounds_day) {
  if (spec.agent.driver == nullptr) return {};
  const domain::DriverDescriptor& driver = project::driver_of(spec.agent, submission.driver);
  const std::string& model = submission.model.empty() ? spec.agent.model : submission.model;
  const auto why = domain::why_not_held({.driver = driver,
                                         .budget = submission.budget.or_else(spec.budget),
                                         .has_price = price_of(spec.prices, model, driver.name).known(),
                                         .bounds_day = bounds_day});
  if (why) return fail(Errc::invalid, *why);
  return {};
}

bool draws_on_others(const Submission& submission) {
  return !submission.parent.empty() || !submission.budgets_above.empty() || !submission.one_budget.empty();
}

/// The kernel's bound for one word of a command line (MAX_ARG_STRLEN), without the terminating byte.
constexpr std::size_t kWordMax = 131'071;

/// Refuses a command that the kernel could not start, before the run is accepted.
Result<> check_command(const std::vector<std::string>& command, const domain::ArgumentValues& args) {
  const auto longest = std::ranges::max_element(command, {}, &std::string::size);
  if (longest == command.end() || longest->size() <= kWordMax) return {};
  std::string name;
  std::size_t size = 0;
  for (const auto& [each, values] : args) {
    std::size_t bytes = 0;
    for (const std::string& value : values) bytes += value.size();
    if (bytes <= size) continue;
    name = each;
    size = bytes;
  }
  return fail(Errc::invalid, "the argument '" + agent::excerpt(name) + "' makes a word of " +
                                 std::to_string(longest->size()) + " bytes in the command; the kernel allows " +
                                 std::to_string(kWordMax) + ". Pass the name of a file instead");
}

/// Fails if a template can't be filled, or the resulting command could not be started.
Result<std::string> title_of(const domain::Agent& agent, const std::string& prompt,
                             const domain::ArgumentValues& args) {
  if (prompt.empty()) {
    STINT_TRY(const agent::RenderedAgent rendered, agent::render(agent, args));
    STINT_CHECK(check_command(rendered.command, args));
    return rendered.title.empty() ? agent.name : cut_to(rendered.title, domain::kTitleBytesMax);
  }
  domain::Agent filled = agent;
  filled.prompt.text = agent::Template::escape(prompt);
  STINT_TRY(const agent::RenderedAgent rendered, agent::render(filled, args));
  STINT_CHECK(check_command(rendered.command, args));
  return rendered.title.empty() ? first_line(prompt) : cut_to(rendered.title, domain::kTitleBytesMax);
}

}  // namespace

Result<> LocalFleet::may_submit() const {
  if (parts_.engine == nullptr || !parts_.engine->is_draining()) return {};
  return fail(Error(Errc::closed, Retry::safe, "this daemon is draining and takes no new runs").after(kComeAgain));
}

/// Moves texts out of the submission.
Result<store::NewRun> LocalFleet::prepare(Submission&& submission, BudgetsAbove above) const {
  const project::AgentRegistry& registry = parts_.registry();
  domain::RunInput input;
  if (!submission.key.empty()) input.asked = request_digest(submission);
  if (submission.agent == domain::kPromptAgent) {
    return fail(Errc::invalid, "agent name '" + submission.agent +
                                   "' is reserved for runs of a prompt: leave out the agent and use -p");
  }
  std::string name = submission.agent.empty() ? std::string(domain::kPromptAgent) : std::move(submission.agent);
  const auto found = registry.find(name);
  if (found == registry.end() || found->second.gone) {
    return fail(Errc::invalid, "there is no agent '" + agent::excerpt(name, domain::kShownNameBytesMax) +
                                   "'. `stint agents` lists them");
  }
  const project::AgentSpec& spec = found->second;
  if (spec.refused) return fail(*spec.refused);
  if (!submission.driver.empty()) STINT_CHECK(check_driver(submission.driver, spec.agent));
  if (const auto driver = spec.refused_drivers.find(submission.driver); driver != spec.refused_drivers.end()) {
    return fail(driver->second);
  }
  STINT_CHECK(check_budget(submission, spec, cost_per_day().has_value()));
  if (submission.words.empty()) {
    STINT_TRY(input.args, agent::check_arguments(spec.agent, std::move(submission.args)));
  } else {
    STINT_TRY(input.args, agent::bind_arguments(spec.agent, submission.words));
  }
  STINT_TRY(input.title, title_of(spec.agent, submission.prompt, input.args));
  input.prompt = std::move(submission.prompt);
  input.driver = std::move(submission.driver);
  input.model = std::move(submission.model);
  input.program = std::move(submission.program);
  input.directory = std::move(submission.directory);
  input.budget = submission.budget;
  input.priority = submission.priority;
  store::NewRun run;
  for (const auto& each : above) run.draws_on.push_back(each.run);
  input.budgets_above = std::move(above);
  input.retry_of = std::move(submission.retry_of);
  input.trace = submission.trace.empty() ? domain::new_trace_id(parts_.system) : std::move(submission.trace);
  run.id = submission.id.empty() ? domain::new_run_id(parts_.system) : std::move(submission.id);
  run.agent = name_in_store(spec, input.driver, input.model);
  run.session = std::move(submission.session);
  run.parent = std::move(submission.parent);
  run.key = std::move(submission.key);
  run.priority = submission.priority.value_or(spec.agent.priority);
  run.delay = submission.delay;
  run.deadline = submission.deadline_at;
  run.deadline_in = submission.deadline;
  run.budget = submission.budget.time ? submission.budget.time : spec.budget.time;
  if (run.budget && *run.budget <= Duration::zero()) {
    return fail(Errc::invalid, "the time budget must be greater than zero");
  }
  run.on_crash = spec.on_crash;
  if (submission.kept && parts_.engine != nullptr) run.kept_for = parts_.engine->owner();
  run.input = parts_.run_codec.write(input);
  return run;
}

/// Returns all budgets but its own that the run draws on, and limits it to what is left of the tightest of them.
Task<Result<LocalFleet::BudgetsAbove>> LocalFleet::bound_by_others(Submission& submission) {
  BudgetsAbove above;
  if (!submission.parent.empty()) {
    STINT_CO_TRY(const RunView parent, co_await must_find(submission.parent));
    submission.parent = parent.run.id;  // the full id; the caller may have sent a prefix
    if (submission.trace.empty()) submission.trace = parent.input.trace;
    above = budgets_of(parent);
  }
  for (const auto& each : submission.budgets_above) {
    const bool known = std::ranges::find(above, each.run, &domain::RunInput::BudgetAbove::run) != above.end();
    if (!known) above.push_back(each);
  }
  if (!submission.one_budget.empty()) {
    STINT_CO_TRY(auto shared, co_await shared_budget(submission));
    above.push_back(std::move(shared));
  }
  STINT_CO_CHECK(co_await bound_by(submission, above));
  co_return above;
}

/// A caller names a budget of its own. The id of a run is refused: the caller could use up what others were given.
Task<Result<domain::RunInput::BudgetAbove>> LocalFleet::shared_budget(const Submission& submission) {
  const std::string& id = submission.one_budget;
  const auto shared = domain::shared_part(submission.budget);
  if (!domain::is_run_id(id)) {
    co_return fail(Errc::invalid, "'one_budget' is 12 of the characters a-z and 2-7, drawn at random");
  }
  if (!shared) co_return fail(Errc::invalid, "'one_budget' needs tokens or cost in 'budget': that is what is shared");
  STINT_CO_TRY(const auto run, co_await parts_.store.find(id));
  if (run) co_return fail(Errc::invalid, "'one_budget' is the id of a run: draw another");
  co_return domain::RunInput::BudgetAbove{id, *shared};
}

/// The budgets on which children of the run draw.
LocalFleet::BudgetsAbove LocalFleet::budgets_of(const RunView& parent) const {
  BudgetsAbove above = parent.input.budgets_above;
  const auto spec = parts_.registry().find(parent.run.agent);
  domain::BudgetSpec own = parent.input.budget;
  if (spec != parts_.registry().end()) own = own.or_else(spec->second.budget);
  if (const auto shared = domain::shared_part(own)) above.push_back({parent.run.id, *shared});
  return above;
}

Task<Result<>> LocalFleet::bound_by(Submission& submission, const BudgetsAbove& above) {
  if (above.empty()) co_return Result<>();
  std::vector<std::string> heads;
  for (const auto& each : above) heads.push_back(each.run);
  STINT_CO_TRY(const std::vector<store::FamilyUse> sums, co_await parts_.store.used(std::move(heads)));
  for (std::size_t i = 0; i < above.size(); ++i) {
    if (const auto resource = domain::used_up(above[i].budget, sums[i].used)) {
      co_return fail(Errc::exhausted, "nothing is left of the " + std::string(to_string(*resource)) +
                                          " in the budget of '" + above[i].run + "', on which this run would draw");
    }
    submission.budget = domain::tighter(submission.budget, domain::left(above[i].budget, sums[i].used));
  }
  const auto own = domain::shared_part(submission.budget);
  if (own && domain::used_up(*own)) co_return fail(Errc::exhausted, "the budget is 0: the run could not use anything");
  co_return Result<>();
}

/// Defines agents that the store does not know. With an engine there is nothing to do: it has defined its agents.
/// Without one, existing entries stay as they are: a daemon may carry their runs, by its own files.
Task<Result<>> LocalFleet::define_missing(const std::vector<store::NewRun>& runs) {
  STINT_CO_TRY(const std::vector<store::AgentEntry> known, co_await parts_.store.agents());
  std::vector<store::AgentEntry> missing;
  for (const store::NewRun& run : runs) {
    const bool there = std::ranges::find(known, run.agent, &store::AgentEntry::name) != known.end() ||
                       std::ranges::find(missing, run.agent, &store::AgentEntry::name) != missing.end();
    if (!there) missing.push_back(*find_entry(parts_.registry(), run.agent));
  }
  if (missing.empty()) co_return Result<>();
  co_return co_await parts_.store.define(std::move(missing));
}

/// Defines variants when they are first used. The engine defines only agents: else the accounts of unused variants
/// would be listed.
Task<Result<>> LocalFleet::define_variants(const std::vector<store::NewRun>& runs) {
  std::vector<store::AgentEntry> entries;
  for (const store::NewRun& run : runs) {
    const store::AgentEntry* const variant =
        project::agent_of(run.agent) == run.agent ? nullptr : find_entry(parts_.registry(), run.agent);
    if (variant == nullptr) continue;
    const auto known = lanes_defined_.find(run.agent);
    if (known == lanes_defined_.end() || known->second != *variant) entries.push_back(*variant);
  }
  if (entries.empty()) co_return Result<>();
  STINT_CO_CHECK(co_await parts_.store.define(entries));
  for (store::AgentEntry& each : entries) {  // only after the await: another submit may run meanwhile
    std::string name = each.name;
    lanes_defined_.insert_or_assign(std::move(name), std::move(each));
  }
  co_return Result<>();
}

/// The store knew the key: another submission with it may have come between the look for it and now.
Task<Result<>> LocalFleet::check_same_key(const Submission& submission, const std::string& id) {
  STINT_CO_TRY(const RunView twin, co_await must_find(id));
  if (!is_same(twin, submission)) co_return fail(key_is_used(submission.key, id));
  co_return Result<>();
}

/// What the store said of one submission, as its caller hears it.
Result<Submitted> LocalFleet::conclude(Result<store::Accepted> accepted) {
  if (accepted) {
    tell(accepted->id, events::Changes::Kind::progress);
    return Submitted{std::move(accepted->id), accepted->created};
  }
  if (accepted.error() == Errc::full) return fail(std::move(accepted).error().after(kComeAgain));
  return fail(std::move(accepted).error());
}

Task<Result<std::vector<Result<Submitted>>>> LocalFleet::submit(std::vector<Submission> submissions) {
  STINT_CO_CHECK(may_submit());
  std::vector<Result<Submitted>> answers;
  std::vector<store::NewRun> runs;
  std::vector<std::size_t> places;
  answers.reserve(submissions.size());
  runs.reserve(submissions.size());
  for (Submission& submission : submissions) {
    if (Result<> checked = check_text(submission); !checked) {
      answers.push_back(fail(std::move(checked).error()));
      continue;
    }
    if (submission.parent_waits && !submission.parent.empty()) {
      if (Result<> checked = co_await check_parent_waits(submission); !checked) {
        answers.push_back(fail(std::move(checked).error()));
        continue;
      }
    }
    Result<BudgetsAbove> above;
    if (draws_on_others(submission)) above = co_await bound_by_others(submission);
    const bool has_key = !submission.key.empty();  // then it may have to be compared with an earlier submission
    Result<store::NewRun> run = !above    ? Result<store::NewRun>(fail(std::move(above).error()))
                                : has_key ? prepare(Submission(submission), std::move(*above))
                                          : prepare(std::move(submission), std::move(*above));
    // The key may name an existing run whose agent file has changed or is gone since, or a run of another variant.
    if (has_key) {
      Result<std::optional<std::string>> known = co_await find_by_key(submission);
      if (!known || *known) {
        answers.push_back(known ? Result<Submitted>(Submitted{.id = std::move(**known), .created = false})
                                : fail(std::move(known).error()));
        continue;
      }
    }
    if (run) {
      places.push_back(answers.size());
      runs.push_back(std::move(*run));
      answers.emplace_back();
    } else {
      answers.push_back(fail(std::move(run).error()));
    }
  }
  if (runs.empty()) co_return answers;
  STINT_CO_CHECK(parts_.engine == nullptr ? co_await define_missing(runs) : co_await define_variants(runs));
  auto accepted = co_await parts_.store.enqueue(runs);
  // Ids are generated here, so that a submission without an answer can be repeated safely.
  if (!accepted && accepted.error().retry() == Retry::unknown)
    accepted = co_await parts_.store.enqueue(std::move(runs));
  if (parts_.engine != nullptr) parts_.engine->store_health().record(pool::StoreHealth::Call::write, accepted);
  if (!accepted) co_return fail(std::move(accepted).error());
  for (std::size_t i = 0; i < places.size(); ++i) {
    Result<store::Accepted>& each = (*accepted)[i];
    const Submission& submission = submissions[places[i]];
    if (each && !each->created && !submission.key.empty()) {
      if (Result<> same = co_await check_same_key(submission, each->id); !same) each = fail(std::move(same).error());
    }
    answers[places[i]] = conclude(std::move(each));
  }
  co_return answers;
}

/// The run that already has the submission's key, if any. Refuses a key that was used with a different submission. The
/// agent's file and its arguments may have changed since.
Task<Result<std::optional<std::string>>> LocalFleet::find_by_key(const Submission& submission) {
  const std::string agent = submission.agent_by_default ? std::string()
                            : submission.agent.empty()  ? std::string(domain::kPromptAgent)
                                                        : submission.agent;
  // Searches all agents, since the run may be in any variant of this one: the index begins with the key.
  STINT_CO_TRY(std::vector<store::Run> runs, co_await parts_.store.with_key({}, submission.key));
  if (!agent.empty()) std::erase_if(runs, [&](const store::Run& run) { return project::agent_of(run.agent) != agent; });
  std::string other;  // the run of a different submission
  for (store::Run& run : runs) {
    const RunView known = view(std::move(run));
    if (is_same(known, submission)) co_return known.run.id;
    // One submission may name the agent, another with the same key rely on the default agent.
    if (known.run.agent == submission.agent || !submission.agent_by_default) other = known.run.id;
  }
  if (!other.empty()) co_return fail(key_is_used(submission.key, other));
  co_return std::nullopt;
}

/// Whether the digests are equal, or the resolved arguments are: one submission may name values that another passes in
/// order.
bool LocalFleet::is_same(const RunView& known, const Submission& submission) const {
  if (!known.input.asked.empty() && known.input.asked == request_digest(submission)) return true;
  if (known.run.agent != (submission.agent.empty() ? domain::kPromptAgent : std::string_view(submission.agent)))
    return false;
  const Result<store::NewRun> run = prepare(Submission(submission), {});
  if (!run) return false;
  const Result<domain::RunInput> input = parts_.run_codec.read_input(run->input);
  return input && input->args == known.input.args && input->prompt == known.input.prompt &&
         input->driver == known.input.driver && input->model == known.input.model && run->session == known.run.session;
}

/// The retry of a run draws on the same budgets; it is a child again while the run's parent runs.
Task<Result<>> LocalFleet::place_below(const RunView& before, Submission& submission) {
  submission.budgets_above = before.input.budgets_above;
  if (before.run.parent.empty()) co_return Result<>();
  STINT_CO_TRY(const auto parent, co_await find(before.run.parent));
  if (parent && parent->run.state == RunState::running) submission.parent = parent->run.id;
  co_return Result<>();
}

Task<Result<Submitted>> LocalFleet::retry(std::string id) { return retry_as(std::move(id), {}); }

/// The new run gets the id `as`; empty: a random one.
Task<Result<Submitted>> LocalFleet::retry_as(std::string id, std::string as) {
  STINT_CO_TRY(const RunView before, co_await must_find(std::move(id)));
  if (!domain::is_finished(before.run.state)) {
    co_return fail(Errc::conflict, "'" + before.run.id + "' is " + std::string(to_string(before.run.state)) +
                                       ": only an ended run can be retried" +
                                       (before.run.state == RunState::in_doubt ? "; `stint resolve` settles it" : ""));
  }
  Submission submission;
  submission.id = std::move(as);
  submission.agent = before.run.agent == domain::kPromptAgent ? std::string() : before.run.agent;
  submission.args = before.input.args;
  submission.prompt = before.input.prompt;
  submission.session = before.run.session;
  submission.budget = before.input.budget;
  submission.priority = before.input.priority;
  submission.driver = before.input.driver;
  submission.model = before.input.model;
  submission.program = before.input.program;
  submission.directory = before.input.directory;
  submission.retry_of = before.run.id;
  STINT_CO_CHECK(co_await place_below(before, submission));
  std::vector<Submission> submissions;
  submissions.push_back(std::move(submission));
  STINT_CO_TRY(auto answers, co_await submit(std::move(submissions)));
  co_return std::move(answers.front());
}

}  // namespace stint::fleet
