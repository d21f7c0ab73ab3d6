#include "engine/local_fleet.hpp"

#include "agent/agent_file.hpp"
#include "agent/arguments.hpp"
#include "agent/template.hpp"
#include "domain/run_id.hpp"
#include "domain/trace.hpp"
#include "engine/rescue.hpp"
#include "pool/family.hpp"

#include <algorithm>
#include <array>

namespace stint::engine {
namespace {

using namespace std::chrono_literals;
using domain::RunState;

constexpr std::string_view kNoDaemon = "no daemon runs here. `stint serve` starts one";
constexpr Duration kComeAgain = 2s;
constexpr Duration kLookAgain = 500ms;  // what other processes do is not told to us
constexpr std::uint32_t kShownRunning = 200;
constexpr std::size_t kHoldersNamed = 3;
constexpr std::size_t kTitleMax = 80;  // bytes, of one that is made from a prompt

Error no_such_run(const std::string& id) {
  return {Errc::invalid, "there is no run '" + id + "'. `stint ls` lists them"};
}

Error sent_away(const std::string& run) {
  return Error(Errc::unavailable, Retry::safe,
               "this daemon leaves; the run '" + run + "' goes on elsewhere, or after the restart")
      .after(kComeAgain);
}

/// Of a prompt, as a title: what does not fit is cut off between two characters.
std::string first_line(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  if (text.size() <= kTitleMax) return std::string(text);
  std::size_t end = kTitleMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "…";
}

/// Whether the driver that a wish names can carry that agent.
Result<> check_driver(const std::string& driver, const domain::Agent& agent) {
  using domain::DriverKind;
  constexpr std::array kKnown = {DriverKind::claude, DriverKind::codex, DriverKind::gemini, DriverKind::command};
  const auto known = std::ranges::find(kKnown, driver, [](DriverKind kind) { return domain::to_string(kind); });
  if (known == kKnown.end()) {
    return fail(Errc::invalid, "there is no driver '" + driver + "': 'driver' is claude, codex, gemini or command");
  }
  if (*known == DriverKind::command && agent.command.empty()) {
    return fail(Errc::invalid, "'driver' is command, but the file of '" + agent.name + "' has no command");
  }
  return {};
}

/// What the kernel takes for one word of a command line (MAX_ARG_STRLEN), without the byte that ends it.
constexpr std::size_t kWordMax = 131'071;

/// A command that can't be started is better refused than accepted and failed.
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
  return fail(Errc::invalid, "the argument '" + name + "' makes a word of " + std::to_string(longest->size()) +
                                 " bytes in the command, which can have " + std::to_string(kWordMax) +
                                 ". Give it the name of a file");
}

/// Fails if a template can't be filled, or not so that it can be started.
Result<std::string> title_of(const domain::Agent& agent, const std::string& prompt,
                             const domain::ArgumentValues& args) {
  if (prompt.empty()) {
    STINT_TRY(const agent::RenderedAgent rendered, agent::render(agent, args));
    STINT_CHECK(check_command(rendered.command, args));
    return rendered.title.empty() ? agent.name : rendered.title;
  }
  domain::Agent filled = agent;
  filled.prompt.text = agent::Template::escape(prompt);
  STINT_TRY(const agent::RenderedAgent rendered, agent::render(filled, args));
  STINT_CHECK(check_command(rendered.command, args));
  return rendered.title.empty() ? first_line(prompt) : rendered.title;
}

}  // namespace

bool is_at_rest(const store::Run& run) noexcept {
  return domain::is_finished(run.state) || run.state == RunState::in_doubt ||
         (run.state == RunState::parked && run.hold == domain::Hold::person);
}

Task<Result<RunView>> Fleet::wait(std::string id) {
  std::uint64_t seen = co_await changed(id, 0, Duration::zero());
  while (true) {
    STINT_CO_TRY(std::optional<RunView> view, co_await find(id));
    if (!view) co_return fail(no_such_run(id));
    if (is_at_rest(view->run)) co_return std::move(*view);
    seen = co_await changed(view->run.id, seen, kLookAgain);
  }
}

Task<Result<Ended>> Fleet::ended(Submitted run) {
  STINT_CO_TRY(RunView view, co_await wait(std::move(run.id)));
  co_return Ended{view.run.state, std::move(view.run.error), std::move(view.memo.text)};
}

// ---- submit --------------------------------------------------------------------------------------------------------

Result<> LocalFleet::may_submit() const {
  if (parts_.engine == nullptr || !parts_.engine->is_draining()) return {};
  return fail(Error(Errc::closed, Retry::safe, "this daemon is draining and takes no new runs").after(kComeAgain));
}

/// Takes out of the wish what it is made of.
Result<store::NewRun> LocalFleet::prepare(Submission&& wish, BudgetsAbove above) const {
  const Book& book = parts_.book();
  std::string name = wish.agent.empty() ? std::string(kPromptAgent) : std::move(wish.agent);
  const auto found = book.find(name);
  if (found == book.end() || found->second.gone) {
    return fail(Errc::invalid, "there is no agent '" + name + "'. `stint agents` lists them");
  }
  const AgentSpec& spec = found->second;
  if (spec.refused) return fail(*spec.refused);
  if (!wish.driver.empty()) STINT_CHECK(check_driver(wish.driver, spec.agent));
  domain::RunInput input;
  if (wish.words.empty()) {
    STINT_TRY(input.args, agent::check_arguments(spec.agent, std::move(wish.args)));
  } else {
    STINT_TRY(input.args, agent::bind_arguments(spec.agent, wish.words));
  }
  STINT_TRY(input.title, title_of(spec.agent, wish.prompt, input.args));
  input.prompt = std::move(wish.prompt);
  input.driver = std::move(wish.driver);
  input.model = std::move(wish.model);
  input.program = std::move(wish.program);
  input.directory = std::move(wish.directory);
  input.budget = wish.budget;
  input.budgets_above = std::move(above);
  input.retry_of = std::move(wish.retry_of);
  input.trace = wish.trace.empty() ? domain::new_trace_id(parts_.ambient) : std::move(wish.trace);
  store::NewRun run;
  run.id = wish.id.empty() ? domain::new_run_id(parts_.ambient) : std::move(wish.id);
  run.agent = std::move(name);
  run.session = std::move(wish.session);
  run.parent = std::move(wish.parent);
  run.key = std::move(wish.key);
  run.priority = wish.priority.value_or(spec.agent.priority);
  run.delay = wish.delay;
  if (wish.deadline) {
    run.deadline = parts_.ambient.wall_now() + std::chrono::ceil<std::chrono::milliseconds>(*wish.deadline);
  }
  if (wish.deadline_at) run.deadline = std::min(run.deadline.value_or(*wish.deadline_at), *wish.deadline_at);
  run.budget = wish.budget.time ? wish.budget.time : spec.budget.time;
  if (run.budget && *run.budget <= Duration::zero()) {
    return fail(Errc::invalid, "with a budget of no time nothing could begin");
  }
  run.on_crash = spec.on_crash;
  if (wish.kept && parts_.engine != nullptr) run.kept_for = parts_.engine->owner();
  run.input = parts_.scribe.write(input);
  return run;
}

/// What a run asks of others it pays from its own budget: they get no more than is left of it.
Task<Result<LocalFleet::BudgetsAbove>> LocalFleet::bound_by_parent(Submission& wish) {
  STINT_CO_TRY(const RunView parent, co_await must_find(wish.parent));
  if (wish.trace.empty()) wish.trace = parent.input.trace;
  if (const auto& end = parent.run.expires_at) wish.deadline_at = std::min(wish.deadline_at.value_or(*end), *end);
  BudgetsAbove above = parent.input.budgets_above;
  const auto spec = parts_.book().find(parent.run.agent);
  domain::BudgetSpec own = parent.input.budget;
  if (spec != parts_.book().end()) own = own.or_else(spec->second.budget);
  if (own.tokens || own.money_micros) {
    above.push_back({parent.run.id, {.tokens = own.tokens, .money_micros = own.money_micros}});
  }
  const pool::Worker* const here = parts_.engine == nullptr ? nullptr : &parts_.engine->worker();
  for (const auto& [run, budget] : above) {
    STINT_CO_TRY(const pool::FamilyUse used, co_await pool::used_by_family(parts_.store, here, run));
    if (budget.tokens) {
      const std::int64_t left = *budget.tokens - used.tokens;
      wish.budget.tokens = std::min(wish.budget.tokens.value_or(left), left);
    }
    if (budget.money_micros) {
      const std::int64_t left = *budget.money_micros - used.money_micros;
      wish.budget.money_micros = std::min(wish.budget.money_micros.value_or(left), left);
    }
  }
  const bool spent = wish.budget.tokens.value_or(1) <= 0 || wish.budget.money_micros.value_or(1) <= 0;
  if (spent) co_return fail(Errc::exhausted, "the budget of the run that asks for it is used up");
  co_return above;
}

/// An engine has told the store of its agents. Without one, those that the store knows stay as they are: somebody else
/// may carry their runs, by his own files.
Task<Result<>> LocalFleet::define_missing(const std::vector<store::NewRun>& runs) {
  STINT_CO_TRY(const std::vector<store::AgentEntry> known, co_await parts_.store.agents());
  std::vector<store::AgentEntry> missing;
  for (const store::NewRun& run : runs) {
    const bool there = std::ranges::find(known, run.agent, &store::AgentEntry::name) != known.end() ||
                       std::ranges::find(missing, run.agent, &store::AgentEntry::name) != missing.end();
    if (!there) missing.push_back(parts_.book().find(run.agent)->second.entry);
  }
  if (missing.empty()) co_return Result<>();
  co_return co_await parts_.store.define(std::move(missing));
}

Task<Result<std::vector<Result<Submitted>>>> LocalFleet::submit(std::vector<Submission> wishes) {
  STINT_CO_CHECK(may_submit());
  std::vector<Result<Submitted>> answers;
  std::vector<store::NewRun> runs;
  std::vector<std::size_t> places;
  std::vector<std::shared_ptr<events::Changes::Ending>> endings;
  answers.reserve(wishes.size());
  runs.reserve(wishes.size());
  for (Submission& wish : wishes) {
    Result<BudgetsAbove> above;
    if (!wish.parent.empty()) above = co_await bound_by_parent(wish);
    const bool has_key = !wish.key.empty();  // then it may have to be compared with what the key meant before
    Result<store::NewRun> run = !above    ? Result<store::NewRun>(fail(std::move(above).error()))
                                : has_key ? prepare(Submission(wish), std::move(*above))
                                          : prepare(std::move(wish), std::move(*above));
    if (run) {
      places.push_back(answers.size());
      const bool told_here = wish.awaited && parts_.engine != nullptr;  // from now on: it may end before we know its id
      endings.push_back(told_here ? std::make_shared<events::Changes::Ending>(parts_.engine->changes(), run->id)
                                  : nullptr);
      runs.push_back(std::move(*run));
      answers.emplace_back();
    } else {
      answers.push_back(fail(std::move(run).error()));
    }
  }
  if (runs.empty()) co_return answers;
  if (parts_.engine == nullptr) STINT_CO_CHECK(co_await define_missing(runs));
  auto accepted = co_await parts_.store.enqueue(runs);
  // Ids were made here, so that what was not answered can be asked again.
  if (!accepted && accepted.error().retry() == Retry::unknown)
    accepted = co_await parts_.store.enqueue(std::move(runs));
  if (parts_.engine != nullptr) parts_.engine->store_health().heard(pool::StoreHealth::Call::write, accepted);
  if (!accepted) co_return fail(std::move(accepted).error());
  for (std::size_t i = 0; i < places.size(); ++i) {
    Result<store::Accepted>& each = (*accepted)[i];
    if (each && !each->created && !wishes[places[i]].key.empty()) {
      const Result<> same = co_await must_be_same(each->id, wishes[places[i]]);
      if (!same) each = fail(same.error());
    }
    if (each) {
      tell(each->id, events::Changes::Kind::on_its_way);
      answers[places[i]] =
          Submitted{std::move(each->id), each->created, each->created ? std::move(endings[i]) : nullptr};
    } else if (each.error() == Errc::full) {
      answers[places[i]] = fail(std::move(each).error().after(kComeAgain));
    } else {
      answers[places[i]] = fail(std::move(each).error());
    }
  }
  co_return answers;
}

/// A key stands for one wish: whoever asks for something else with it has made a mistake, and must hear of it.
Task<Result<>> LocalFleet::must_be_same(const std::string& id, Submission wish) {
  STINT_CO_TRY(const RunView known, co_await must_find(id));
  const std::string key = wish.key;
  STINT_CO_TRY(const store::NewRun asked, prepare(std::move(wish), {}));
  STINT_CO_TRY(const domain::RunInput input, parts_.scribe.read_input(asked.input));
  const bool same = input.args == known.input.args && input.prompt == known.input.prompt &&
                    input.driver == known.input.driver && input.model == known.input.model &&
                    asked.session == known.run.session;
  if (same) co_return Result<>();
  co_return fail(Errc::conflict, "the key '" + key + "' is that of '" + id + "', which was asked for otherwise");
}

Task<Result<Submitted>> LocalFleet::retry(std::string id) {
  STINT_CO_TRY(const RunView before, co_await must_find(std::move(id)));
  if (!domain::is_finished(before.run.state)) {
    co_return fail(Errc::conflict,
                   "'" + before.run.id + "' is " + std::string(to_string(before.run.state)) +
                       ": only what has ended can be run again" +
                       (before.run.state == RunState::in_doubt ? "; `stint resolve` settles a doubt" : ""));
  }
  Submission wish;
  wish.agent = before.run.agent == kPromptAgent ? std::string() : before.run.agent;
  wish.args = before.input.args;
  wish.prompt = before.input.prompt;
  wish.session = before.run.session;
  wish.budget = before.input.budget;
  wish.driver = before.input.driver;
  wish.model = before.input.model;
  wish.program = before.input.program;
  wish.directory = before.input.directory;
  wish.retry_of = before.run.id;
  std::vector<Submission> wishes;
  wishes.push_back(std::move(wish));
  STINT_CO_TRY(auto answers, co_await submit(std::move(wishes)));
  co_return std::move(answers.front());
}

// ---- looking -------------------------------------------------------------------------------------------------------

RunView LocalFleet::view(store::Run run) const {
  RunView view;
  if (!run.input.empty()) {
    if (auto input = parts_.scribe.read_input(run.input)) view.input = std::move(*input);
  }
  if (!run.result.empty()) {
    if (auto memo = parts_.scribe.read_memo(run.result)) view.memo = std::move(*memo);
  }
  if (parts_.engine != nullptr) {
    if (const pool::Carried* const carried = parts_.engine->worker().find(run.id)) {
      view.memo.usage = carried->usage;
      if (!carried->worker.empty()) view.carried_by = carried->worker;
    }
  }
  view.run = std::move(run);
  const bool never_began = view.run.state == RunState::expired && !view.run.started_at;
  if (never_began && view.run.error.empty()) view.run.error = "its deadline passed while it waited to begin";
  return view;
}

Task<Result<std::optional<RunView>>> LocalFleet::find(std::string id) {
  STINT_CO_TRY(std::optional<store::Run> run, co_await parts_.store.find(std::move(id)));
  if (!run) co_return std::nullopt;
  co_return view(std::move(*run));
}

bool LocalFleet::is_leaving(const std::string& run) const {
  return parts_.engine->phase() >= Phase::handing_back && parts_.engine->worker().find(run) == nullptr;
}

Task<Result<RunView>> LocalFleet::wait(std::string id) {
  if (parts_.engine == nullptr) co_return co_await Fleet::wait(std::move(id));
  events::Changes::Ending ending(parts_.engine->changes(), id);
  while (true) {
    STINT_CO_TRY(std::optional<store::Run> run, co_await parts_.store.find(id));
    if (!run) co_return fail(no_such_run(id));
    if (is_at_rest(*run)) co_return view(std::move(*run));
    if (is_leaving(run->id)) co_return fail(sent_away(run->id));
    co_await ending.next(kLookAgain);
  }
}

Task<Result<Ended>> LocalFleet::ended(Submitted run) {
  if (!run.ending) co_return co_await Fleet::ended(std::move(run));
  while (true) {
    if (const auto answer = co_await run.ending->next(kLookAgain)) {
      co_return Ended{.state = RunState::succeeded, .error = {}, .answer = *answer};
    }
    STINT_CO_TRY(RunView now, co_await must_find(run.id));
    if (is_at_rest(now.run)) co_return Ended{now.run.state, std::move(now.run.error), std::move(now.memo.text)};
    if (is_leaving(run.id)) co_return fail(sent_away(run.id));
  }
}

Task<Result<RunView>> LocalFleet::must_find(std::string id) {
  STINT_CO_TRY(std::optional<RunView> found, co_await find(id));
  if (!found) co_return fail(no_such_run(id));
  co_return std::move(*found);
}

Task<Result<std::vector<RunView>>> LocalFleet::list(store::Filter filter) {
  filter.texts = true;  // titles, and what was used, are in them
  STINT_CO_TRY(std::vector<store::Run> runs, co_await parts_.store.list(std::move(filter)));
  std::vector<RunView> views;
  for (store::Run& run : runs) views.push_back(view(std::move(run)));
  co_return views;
}

Task<Result<std::vector<store::Event>>> LocalFleet::events(std::string id, std::int64_t after, std::uint32_t most) {
  return parts_.store.events(std::move(id), after, most);
}

Task<Result<store::FeedPage>> LocalFleet::feed(std::string cursor, std::uint32_t most) {
  return parts_.store.feed(std::move(cursor), most);
}

Task<Result<store::Output>> LocalFleet::output(std::string id) { return parts_.store.output(std::move(id)); }

Task<std::uint64_t> LocalFleet::changed(std::string id, std::uint64_t seen, Duration most) {
  if (parts_.engine == nullptr) {
    // Whoever carries what is waited for may have died: somebody has to notice.
    if (most > Duration::zero()) {
      co_await sleep_for(std::min(most, kLookAgain));
      const auto ticked = co_await parts_.store.tick();
      const bool lost = ticked && ticked->lost > 0;
      if (lost && parts_.survivors != nullptr) (void)co_await end_survivors(parts_.store, *parts_.survivors, nullptr);
    }
    co_return seen + 1;
  }
  events::Changes& changes = parts_.engine->changes();
  if (most > Duration::zero()) co_await changes.wait(std::move(id), seen, most);
  co_return changes.now();
}

Task<Result<WhyView>> LocalFleet::why(std::string id) {
  STINT_CO_TRY(const RunView found, co_await must_find(std::move(id)));
  WhyView why;
  why.run = found.run.id;
  why.state = found.run.state;
  STINT_CO_TRY(why.reasons, co_await parts_.store.why(found.run.id));
  STINT_CO_CHECK(co_await name_holders(why.reasons));
  for (store::Why& each : why.reasons) {
    // What the host lacked: there is no account whose name could be told.
    if (each.reason == "quota" && each.detail.empty()) each = {"held_up", found.run.error, each.until};
  }
  if (found.run.state != RunState::queued || parts_.engine == nullptr) co_return why;
  const auto spec = parts_.book().find(found.run.agent);
  if (spec == parts_.book().end()) {
    why.reasons.push_back({"agent", "this daemon has no file of the agent '" + found.run.agent + "'", std::nullopt});
  } else if (spec->second.refused) {
    why.reasons.push_back({"agent", spec->second.refused->describe(), std::nullopt});
  }
  const auto& waits = parts_.engine->waits();
  const auto waiting = waits.find(found.run.agent);
  if (waiting != waits.end()) why.reasons.push_back({"limit", waiting->second, std::nullopt});
  if (!parts_.engine->held_up().empty()) why.reasons.push_back({"held_up", parts_.engine->held_up(), std::nullopt});
  const PoolHealth pool = parts_.engine->health();
  if (pool.pool_size == 0) {
    why.reasons.push_back({"workers", "the pool has no workers", std::nullopt});
  } else if (pool.utilization >= 1) {
    why.reasons.push_back(
        {"workers", "all " + std::to_string(pool.pool_size) + " workers of this daemon are busy", std::nullopt});
  }
  co_return why;
}

/// Of limits that the store counts: who holds them, by the limits that their agents have now.
Task<Result<LocalFleet::Holders>> LocalFleet::holders() {
  Holders holders;
  store::Filter filter;
  filter.states = {RunState::running};
  filter.most = kShownRunning;
  STINT_CO_TRY(std::vector<store::Run> running, co_await parts_.store.list(std::move(filter)));
  if (running.empty()) co_return holders;
  STINT_CO_TRY(const std::vector<store::AgentEntry> agents, co_await parts_.store.agents());
  std::ranges::reverse(running);  // who came first stands first
  for (const store::Run& run : running) {
    const auto agent = std::ranges::find(agents, run.agent, &store::AgentEntry::name);
    if (agent == agents.end()) continue;
    const auto since = run.started_at.value_or(run.created_at);
    const auto seconds = std::chrono::floor<std::chrono::seconds>(parts_.ambient.wall_now() - since).count();
    const std::string who =
        run.id + " of " + run.agent + ", for " + std::to_string(std::max<std::int64_t>(0, seconds)) + " s";
    for (const store::LimitUse& use : agent->limits) holders[use.limit].push_back(who);
  }
  co_return holders;
}

Task<Result<>> LocalFleet::name_holders(std::vector<store::Why>& reasons) {
  if (std::ranges::find(reasons, "limit", &store::Why::reason) == reasons.end()) co_return Result<>();
  STINT_CO_TRY(Holders all, co_await holders());
  for (store::Why& each : reasons) {
    if (each.reason != "limit") continue;
    const std::vector<std::string>& names = all[each.detail.substr(0, each.detail.rfind(": "))];
    for (std::size_t i = 0; i < std::min(names.size(), kHoldersNamed); ++i) {
      each.detail += (i == 0 ? ", by " : "; ") + names[i];
    }
    if (names.size() > kHoldersNamed) each.detail += " and " + std::to_string(names.size() - kHoldersNamed) + " more";
  }
  co_return Result<>();
}

// ---- changing ------------------------------------------------------------------------------------------------------

void LocalFleet::tell(std::string_view id, events::Changes::Kind kind) {
  if (parts_.engine == nullptr) return;
  parts_.engine->changes().tell(id, kind);
  parts_.engine->nudge();
}

/// The run, when nobody carries it any more and nothing of it is alive here.
Task<Result<RunView>> LocalFleet::gone(std::string id) {
  std::uint64_t seen = co_await changed(id, 0, Duration::zero());
  while (true) {
    STINT_CO_TRY(RunView now, co_await must_find(id));
    if (now.run.state != RunState::running) {
      if (now.run.lost > 0 && parts_.survivors != nullptr) {
        std::vector<domain::Survivors::Attempt> attempts{{now.run.id, now.run.fence}};
        (void)co_await parts_.survivors->end(std::move(attempts));
      }
      co_return now;
    }
    if (parts_.engine != nullptr && is_leaving(id)) co_return fail(sent_away(id));
    seen = co_await changed(id, seen, kLookAgain);
  }
}

Task<Result<Receipt>> LocalFleet::cancel(std::string id) {
  const TimePoint began = parts_.executor.now();
  STINT_CO_TRY(const RunView found, co_await must_find(std::move(id)));
  Receipt receipt;
  STINT_CO_TRY(const auto reached, co_await parts_.store.cancel(found.run.id));
  for (const auto& [each, state] : reached) {
    if (each != found.run.id) receipt.reached.push_back(each);
    if (parts_.engine != nullptr) parts_.engine->stop_here(each, pool::Carried::Stop::cancelled, "cancelled");
    tell(each);
  }
  std::vector<std::string> all = receipt.reached;
  all.push_back(found.run.id);
  for (const std::string& each : all) {
    STINT_CO_TRY(RunView now, co_await gone(each));
    if (each == found.run.id) receipt.run = std::move(now);
  }
  if (found.run.state == RunState::in_doubt) {
    co_return fail(Errc::conflict,
                   "'" + found.run.id + "' is in doubt: nothing of it is left to end. `stint resolve` settles it");
  }
  receipt.time = parts_.executor.now() - began;
  co_return receipt;
}

Task<Result<RunState>> LocalFleet::resolve(std::string id, domain::Resolution how) {
  STINT_CO_TRY(const RunView found, co_await must_find(std::move(id)));
  STINT_CO_TRY(const RunState state, co_await parts_.store.resolve(found.run.id, how));
  tell(found.run.id);
  co_return state;
}

Task<Result<>> LocalFleet::answer(std::string id) {
  STINT_CO_TRY(const RunView found, co_await must_find(std::move(id)));
  STINT_CO_CHECK(co_await parts_.store.answer(found.run.id));
  tell(found.run.id);
  co_return Result<>();
}

/// One that the store can pause: a name that was mistyped must not make a new one.
Task<Result<store::LimitState>> LocalFleet::must_know(const std::string& limit) {
  STINT_CO_TRY(const auto known, co_await parts_.store.limits());
  const auto found = std::ranges::find(known, limit, &store::LimitState::name);
  if (found != known.end()) co_return *found;
  co_return fail(Errc::invalid, "there is no limit '" + limit + "' in the store. `stint limits` lists them");
}

Task<Result<>> LocalFleet::pause(std::string limit, std::optional<Duration> length) {
  std::optional<WallTime> until;
  if (length) until = parts_.ambient.wall_now() + std::chrono::ceil<std::chrono::milliseconds>(*length);
  if (!limit.empty()) {
    STINT_CO_CHECK(co_await must_know(limit));
    co_return co_await parts_.store.pause(std::move(limit), until);
  }
  for (const auto& [name, spec] : parts_.book()) {
    STINT_CO_CHECK(co_await parts_.store.pause(domain::agent_limit(name), until));
  }
  co_return Result<>();
}

Task<Result<std::uint64_t>> LocalFleet::resume(std::string limit) {
  std::uint64_t woken = 0;
  if (!limit.empty()) {
    STINT_CO_CHECK(co_await must_know(limit));
    STINT_CO_TRY(woken, co_await parts_.store.resume(std::move(limit)));
  } else {
    STINT_CO_TRY(const auto limits, co_await parts_.store.limits());
    for (const store::LimitState& each : limits) {
      if (!each.paused) continue;
      STINT_CO_TRY(const std::uint64_t more, co_await parts_.store.resume(each.name));
      woken += more;
    }
  }
  tell("");
  co_return woken;
}

// ---- the fleet -----------------------------------------------------------------------------------------------------

Task<Result<std::vector<AgentView>>> LocalFleet::agents() {
  std::vector<AgentView> views;
  for (const auto& [name, spec] : parts_.book()) {
    if (spec.gone) continue;
    AgentView view;
    view.name = name;
    view.description = spec.agent.description;
    view.driver = spec.agent.driver ? std::string(domain::to_string(*spec.agent.driver)) : std::string();
    view.usage = agent::usage(spec.agent);
    if (spec.refused) view.refused = spec.refused->describe();
    view.max_concurrency = spec.agent.max_concurrency;
    for (const domain::LimitRequest& limit : spec.agent.limits) view.limits.push_back({limit.name, limit.weight});
    views.push_back(std::move(view));
  }
  co_return views;
}

Task<Result<std::vector<LimitView>>> LocalFleet::limits() {
  std::vector<LimitView> views;
  if (options_.host_limits) views = options_.host_limits();
  STINT_CO_TRY(const auto counted, co_await parts_.store.limits());
  Holders counted_by;
  if (std::ranges::any_of(counted, [](const store::LimitState& state) { return state.capacity.has_value(); })) {
    STINT_CO_TRY(counted_by, co_await holders());
  }
  for (const store::LimitState& state : counted) {
    const auto known = std::ranges::find(views, state.name, &LimitView::name);
    const bool is_new = known == views.end();
    LimitView& view = is_new ? views.emplace_back() : *known;
    if (is_new) {
      view.name = state.name;
      view.home = options_.cluster ? "cluster" : "host";
      view.capacity = state.capacity;
      view.held = state.units;
      if (state.capacity) view.holders = counted_by[state.name];
    }
    view.paused = state.paused;
    view.paused_until = state.paused_until;
  }
  std::ranges::sort(views, {}, &LimitView::name);
  co_return views;
}

Task<Result<>> LocalFleet::resize_limit(std::string name, std::uint32_t capacity) {
  if (options_.resize_host_limit) {
    STINT_CO_TRY(const bool done, options_.resize_host_limit(name, capacity));
    if (done) co_return Result<>();
  }
  STINT_CO_TRY(const store::LimitState limit, co_await must_know(name));
  if (!limit.capacity) {
    co_return fail(Errc::invalid, "'" + name +
                                      "' has no size that could be changed: `max_concurrency` of its agent, or " +
                                      "[limits] in stint.toml, gives it one");
  }
  STINT_CO_CHECK(co_await parts_.store.resize(std::move(name), capacity));
  tell("");
  co_return Result<>();
}

Task<Result<FleetStatus>> LocalFleet::status() {
  FleetStatus status;
  status.version = options_.version;
  status.store = options_.store;
  status.queue_capacity = options_.queue_max;
  status.money_micros_per_day = options_.money_micros_per_day;
  if (parts_.engine != nullptr) {
    status.phase = parts_.engine->phase();
    STINT_CO_TRY(status.pool, co_await health());
    status.held_up = parts_.engine->held_up();
    status.notes_left_out = parts_.engine->worker().counts().notes_left_out;
    status.settlements_stale = parts_.engine->worker().counts().stale;
  }
  STINT_CO_TRY(status.stats, co_await parts_.store.stats());
  STINT_CO_TRY(status.limits, co_await limits());
  STINT_CO_TRY(const store::Spent today, co_await spent_today());
  status.money_micros_today = today.money_micros;
  status.tokens_today = today.tokens;
  store::Filter filter;
  filter.states = {RunState::running};
  filter.most = kShownRunning;
  STINT_CO_TRY(status.running, co_await list(std::move(filter)));
  co_return status;
}

Task<Result<store::Spent>> LocalFleet::spent_today() {
  const WallTime today = std::chrono::floor<std::chrono::days>(parts_.ambient.wall_now());
  STINT_CO_TRY(const std::vector<store::Spent> all, co_await parts_.store.spent(today));
  store::Spent sum;
  for (const store::Spent& each : all) {
    sum.day = std::max(sum.day, each.day);
    sum.runs += each.runs;
    sum.tokens += each.tokens;
    sum.money_micros += each.money_micros;
  }
  co_return sum;
}

Phase LocalFleet::phase() const { return parts_.engine == nullptr ? Phase::stopped : parts_.engine->phase(); }

std::string LocalFleet::why_unready() const {
  return parts_.engine == nullptr ? std::string(kNoDaemon) : parts_.engine->why_unready();
}

/// The queue is the store's, and so are its numbers.
Task<Result<PoolHealth>> LocalFleet::health() {
  if (parts_.engine == nullptr) co_return fail(Errc::unavailable, std::string(kNoDaemon));
  PoolHealth health = parts_.engine->health();
  std::uint64_t queued = 0;
  STINT_CO_TRY(const auto ready, co_await parts_.store.ready());
  for (const store::Ready& each : ready) queued += each.runs;
  health.queue_size = queued;
  health.queue_capacity = options_.queue_max;
  health.draining = parts_.engine->is_draining();
  co_return health;
}

Task<Result<PoolHealth>> LocalFleet::scale(Scale scale) {
  if (parts_.engine == nullptr) co_return fail(Errc::unavailable, std::string(kNoDaemon));
  STINT_CO_CHECK(parts_.engine->scale(scale.workers, scale.min, scale.max));
  co_return co_await health();
}

Task<Result<>> LocalFleet::drain(Drain drain) {
  if (parts_.engine == nullptr) co_return fail(Errc::unavailable, std::string(kNoDaemon));
  if (drain.hurry) {
    parts_.engine->hurry();
  } else {
    parts_.engine->drain(drain.timeout);
  }
  co_return Result<>();
}

}  // namespace stint::engine
