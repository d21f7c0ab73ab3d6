#include "world.hpp"

#include "actors.hpp"
#include "domain/run_id.hpp"
#include "stint/combinators.hpp"
#include "store/audit.hpp"
#include "timeline_audit.hpp"

#include <algorithm>

namespace stint::simulation {
namespace {

using namespace std::chrono_literals;
using domain::OnCrash;
using domain::RunState;

constexpr std::size_t kHosts = 2, kSessions = 4;
constexpr int kActs = 60, kCalmRounds = 600;
constexpr Duration kWardenLease = 10s;  // a frozen process's work is ended by then
constexpr std::string_view kShared = "gpu";
constexpr Duration kHeavyWaitMax = 4min;  // of a heavy run among many light ones; the longest work takes 66 s

}  // namespace

std::string_view to_string(Sabotage sabotage) noexcept {
  switch (sabotage) {
    case Sabotage::none: return "none";
    case Sabotage::late_fence: return "late_fence";
    case Sabotage::early_release: return "early_release";
    case Sabotage::forgets_doubt: return "forgets_doubt";
    case Sabotage::forgets_resume: return "forgets_resume";
    case Sabotage::loses_claims: return "loses_claims";
    case Sabotage::forgets_turns: return "forgets_turns";
    case Sabotage::forgets_orphans: return "forgets_orphans";
    case Sabotage::forgets_family: return "forgets_family";
    case Sabotage::trusts_wall: return "trusts_wall";
    case Sabotage::blames_run: return "blames_run";
  }
  return "unknown";
}

World::World(std::uint64_t seed, Sabotage sabotage)
    : sabotage_(sabotage),
      random_(seed),
      sim_(seed),
      system_(clocks_.system([this] { return random_(); }, Duration::zero())),
      store_(system_, clocks_),
      scope_(std::make_unique<RootScope>(sim_)) {
  if (sabotage_ == Sabotage::trusts_wall) system_.elapsed = system_.awake = nullptr;
  make_agents();
}

World::~World() {
  scope_->cancel();
  for (const auto& process : processes_) process->scope->cancel();
  sim_.settle();
  works_.clear();
}

void World::make_agents() {
  const std::array kinds = {OnCrash::doubt, OnCrash::resume, OnCrash::rerun};
  const std::size_t count = 2 + random_() % 4;
  shared_cap_ = 2 + random_() % 3;
  for (std::size_t i = 0; i < count; ++i) {
    SimAgent agent;
    agent.name = "agent" + std::to_string(i);
    agent.on_crash = kinds[random_() % kinds.size()];
    if (chance(0.4)) agent.host_cap = 1 + random_() % 3;
    if (chance(0.4)) agent.cluster_cap = 1 + random_() % 3;
    if (chance(0.5)) agent.weight = chance(0.5) ? 1 : 2 + random_() % (shared_cap_ - 1);
    if (chance(0.7)) agent.account = "account:" + std::to_string(random_() % 2);
    agents_.push_back(agent);
    for (std::size_t host = 0; agent.host_cap && host < kHosts; ++host) {
      host_limits_[{host, agent.name}] = std::make_unique<Semaphore>(agent.name, *agent.host_cap);
    }
  }
}

const SimAgent& World::agent(std::string_view name) const { return *std::ranges::find(agents_, name, &SimAgent::name); }

Semaphore& World::host_limit(std::size_t host, const std::string& agent) { return *host_limits_.at({host, agent}); }

project::AgentRegistry World::registry() const {
  project::AgentRegistry registry;
  for (const SimAgent& agent : agents_) {
    project::AgentSpec spec;
    spec.agent.name = agent.name;
    spec.entry.name = agent.name;
    spec.entry.queued_max = 1000;
    spec.entry.attempts_max = 1000;  // the engine enforces the real bound
    spec.entry.lost_max = 1000;
    if (agent.cluster_cap) spec.entry.limits.push_back({domain::agent_limit(agent.name), 1});
    if (agent.weight) spec.entry.limits.push_back({std::string(kShared), *agent.weight});
    if (!agent.account.empty()) spec.entry.limits.push_back({agent.account, 1});
    spec.account = agent.account;
    spec.budget.attempts = 4;
    spec.on_crash = sabotage_ == Sabotage::forgets_doubt ? OnCrash::rerun : agent.on_crash;
    registry[agent.name] = std::move(spec);
  }
  return registry;
}

void World::find_fault(std::string what) {
  const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(sim_.now().time_since_epoch()).count();
  faults_.push_back("at " + std::to_string(at) + " ms: " + std::move(what));
}

// ---- work ----------------------------------------------------------------------------------------------------------

std::shared_ptr<LiveWork> World::begin_work(const domain::WorkOrder& order, Process& process,
                                            std::shared_ptr<Permit> permit) {
  RunStory& run = stories_[order.run];
  const SimAgent& kind = agent(order.agent);
  for (const auto& other : works_) {
    if (other->run == order.run) find_fault(order.run + " begins while its previous attempt is alive");
    if (!run.session.empty() && other->session == run.session) find_fault("two runs of " + run.session + " at once");
  }
  if (order.fence <= run.fence) find_fault(order.run + " begins twice for one claim");
  run.fence = order.fence;
  if (run.unclean && !run.person_says_again) {
    if (kind.on_crash == OnCrash::doubt) find_fault(order.run + " is repeated although its effects are unknown");
    const bool anew = order.conversation.empty();
    if (kind.on_crash == OnCrash::resume && anew)
      find_fault(order.run + " starts from the beginning although it had effects");
  }
  if (kind.on_crash == OnCrash::doubt) run.unclean = true;
  run.person_says_again = false;
  auto work = std::make_shared<LiveWork>();
  work->run = order.run;
  work->agent = order.agent;
  work->session = run.session;
  work->fence = order.fence;
  work->process = process.number;
  work->host = process.host;
  work->permit = std::move(permit);
  works_.push_back(work);
  if (kind.host_cap && count(order.agent, process.host) > *kind.host_cap) {
    std::string alive;
    for (const auto& each : works_) {
      if (each->agent == order.agent && each->host == process.host) {
        alive +=
            " " + each->run + ":" + std::to_string(each->fence.value) + " in process " + std::to_string(each->process);
      }
    }
    find_fault(order.agent + ": more runs at once on a host than its cap:" + alive);
  }
  if (kind.cluster_cap && count(order.agent, std::nullopt) > *kind.cluster_cap) {
    find_fault(order.agent + ": more runs at once than its cap");
  }
  if (units() > shared_cap_) find_fault("more units of the shared limit are used than its capacity");
  last_begun_[order.agent] = sim_.now();
  return work;
}

std::size_t World::count(const std::string& agent, std::optional<std::size_t> host) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      works_, [&](const auto& work) { return work->agent == agent && (!host || work->host == *host); }));
}

/// Units of the shared limit that live work uses.
std::uint32_t World::units() const {
  std::uint32_t sum = 0;
  for (const auto& work : works_) sum += agent(work->agent).weight.value_or(0);
  return sum;
}

void World::end_work(const std::shared_ptr<LiveWork>& work) {
  work->permit.reset();
  std::erase(works_, work);
}

void World::draw_outcome(Outcome& outcome, bool talks) {
  const auto drawn = random_() % 100;
  outcome.kind = OutcomeKind::succeeded;
  outcome.text = some_text("done");
  if (calm_ || drawn < 65) return;
  outcome.text.clear();
  outcome.message = some_text("as the seed says");
  if (drawn < 72) {
    outcome.kind = OutcomeKind::agent_error;
  } else if (drawn < 78) {
    outcome.kind = OutcomeKind::crashed;
  } else if (drawn < 80) {
    outcome.kind = OutcomeKind::stalled;
  } else if (!talks) {
    outcome.kind = OutcomeKind::succeeded;
  } else if (drawn < 88) {
    outcome.kind = OutcomeKind::api_error;
    if (drawn < 85) outcome.http_status = 529;
  } else if (drawn < 96) {
    outcome.kind = OutcomeKind::rate_limited;
    outcome.retry_after = up_to(30s);
  } else {
    outcome.kind = OutcomeKind::not_logged_in;
  }
}

std::string World::some_text(std::string usual) { return !calm_ && chance(0.04) ? std::string(kPoison) : usual; }

/// The owner has seen the end of its work: without effects the run is clean again.
void World::record_report(const std::string& run, const domain::WorkReport& report) {
  RunStory& story = stories_[run];
  const bool refused = report.outcome.kind == OutcomeKind::api_error ||
                       report.outcome.kind == OutcomeKind::rate_limited ||
                       report.outcome.kind == OutcomeKind::not_logged_in;
  if (refused && !report.tools_used) story.unclean = false;
}

/// Wardens end the work of a dead or frozen process.
Task<> World::end_orphans(Process& process, Duration after, std::uint64_t frozen_times) {
  const std::size_t number = process.number;
  const bool frozen = frozen_times != 0;
  co_await sleep_for(after);
  if (frozen && (!process.line.frozen || process.frozen_times != frozen_times || process.line.dead)) co_return;
  const std::vector<std::shared_ptr<LiveWork>> all = works_;
  for (const auto& work : all) {
    if (work->process != number) continue;
    if (frozen) {
      work->by_lease = true;
      work->end.notify();
    } else {
      end_work(work);
    }
  }
}

// ---- actions -------------------------------------------------------------------------------------------------------

void World::start_process() {
  processes_.push_back(std::make_unique<Process>(*this, processes_.size(), random_() % kHosts));
  Process& process = *processes_.back();
  if (!calm_ && chance(0.5)) draw_weather(process.line.weather);
  auto carry = [](Process& owner, World& world) -> Task<> {
    while (true) {
      const auto ended = co_await owner.engine->run();
      if (ended || owner.line.dead) co_return;
      if (ended.error() != Errc::unavailable) world.find_fault("an engine gave up: " + ended.error().describe());
      co_await sleep_for(1s);
    }
  };
  process.scope->spawn(carry(process, *this));
}

void World::draw_weather(Weather& weather) {
  weather.refused = chance(0.5) ? 0.2 : 0;
  weather.unanswered = chance(0.5) ? 0.2 : 0;
  weather.rejected = chance(0.5) ? 0.1 : 0;
  weather.garbled = chance(0.5) ? 0.1 : 0;
  weather.slow = chance(0.5) ? 0.2 : 0;
  if (chance(0.2)) {  // answers come late or can't be read: a run that was listed may be settled meanwhile
    weather.garbled = weather.unanswered = 0.3;
    weather.slow = 0.5;
    weather.slow_most = std::chrono::seconds(8);
  }
}

Process* World::some_process() {
  std::vector<Process*> alive;
  for (const auto& process : processes_) {
    if (!process->line.dead && !process->scope->idle()) alive.push_back(process.get());
  }
  return alive.empty() ? nullptr : alive[random_() % alive.size()];
}

void World::add_run(const std::string& id, const std::string& agent, const std::string& session) {
  stories_[id].agent = agent;
  stories_[id].session = session;
  stories_[id].budget = Families::kTimeBudget;
  stories_[id].has_deadline = true;  // or a token budget above it may end it
  runs_.push_back(id);
}

std::string World::some_live_run() { return works_.empty() ? std::string() : works_[random_() % works_.size()]->run; }

void World::submit() {
  if (chance(0.4)) return families_.act();
  std::vector<store::NewRun> fresh(1 + random_() % 4);
  for (store::NewRun& run : fresh) {
    const SimAgent& kind = agents_[random_() % agents_.size()];
    run.id = domain::new_run_id(system_);
    run.agent = kind.name;
    run.on_crash = sabotage_ == Sabotage::forgets_doubt ? OnCrash::rerun : kind.on_crash;
    run.input = "{}";
    run.budget = chance(0.5) ? Duration(20min) : 20s + up_to(5min);
    run.priority = static_cast<int>(random_() % 3) - 1;
    if (chance(0.3)) run.session = "session" + std::to_string(random_() % kSessions);
    if (chance(0.2)) run.delay = up_to(20s);
    if (chance(0.1)) run.deadline = system_.wall_now() + std::chrono::milliseconds(random_() % 60'000);
    if (chance(0.05)) run.deadline_in = up_to(2min);
    stories_[run.id].agent = run.agent;
    stories_[run.id].session = run.session;
    stories_[run.id].budget = *run.budget;
    stories_[run.id].has_deadline = run.deadline || run.deadline_in;
    if (chance(0.1) && !works_.empty()) draw_parent(run);
  }
  const std::vector<store::NewRun> asked = fresh;
  const auto accepted = ask(store_.enqueue(std::move(fresh)));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if ((*accepted)[i]) runs_.push_back(asked[i].id);
  }
}

/// The time budget above a run is what its parent has left.
void World::draw_parent(store::NewRun& run) {
  run.parent = some_live_run();
  const auto parent = ask(store_.find(run.parent));
  RunStory& story = stories_[run.id];
  if (stories_[run.parent].has_deadline) {
    story.has_deadline = true;  // then the end of its parent's budget is not known
  } else if (const auto end = (*parent)->expires_at) {
    story.left_above = *end - clocks_.wall();
  }
}

/// A run without a session that is due now.
void World::submit_one(const SimAgent& kind) {
  store::NewRun run;
  run.id = domain::new_run_id(system_);
  run.agent = kind.name;
  run.on_crash = sabotage_ == Sabotage::forgets_doubt ? OnCrash::rerun : kind.on_crash;
  run.input = "{}";
  stories_[run.id].agent = run.agent;
  runs_.push_back(run.id);
  std::vector<store::NewRun> fresh;
  fresh.push_back(std::move(run));
  (void)ask(store_.enqueue(std::move(fresh)));
}

void World::crash(Process& process) {
  process.line.dead = true;
  process.scope->cancel();
  sim_.run_ready();
  if (!process.scope->idle()) return find_fault("a process outlives its crash");
  process.engine.reset();  // its memory is lost
  scope_->spawn(end_orphans(process, up_to(50ms), 0));
  if (processes_.size() < 12) start_process();
}

void World::freeze(Process& process) {
  process.line.frozen = true;
  process.troubled_at = sim_.now();
  scope_->spawn(end_orphans(process, kWardenLease, ++process.frozen_times));
  auto thaw = [](Process& frozen, Duration after) -> Task<> {
    co_await sleep_for(after);
    frozen.line.frozen = false;
    frozen.troubled_at = frozen.world.sim().now();
    frozen.line.changed.notify();
  };
  scope_->spawn(thaw(process, up_to(40s)));
}

/// Lets a process run out of descriptors for a while.
void World::starve(Process& process) {
  process.line.starved = true;
  process.troubled_at = sim_.now();
  auto feed = [](Process& starved, Duration after) -> Task<> {
    co_await sleep_for(after);
    starved.line.starved = false;
    starved.troubled_at = starved.world.sim().now();
  };
  scope_->spawn(feed(process, up_to(60s)));
}

/// Sets the wall clock, or lets the machine sleep.
void World::turn_clocks() {
  const Duration by = chance(0.5) ? Duration(24h) : 1min + up_to(1h);
  if (chance(0.3)) return clocks_.sleep(by);
  clocks_.jump(chance(0.5) ? by : -by);
}

void World::act() {
  if (chance(0.1)) reader_.look();
  Process* const process = some_process();
  if (chance(0.08)) return turn_clocks();
  const auto drawn = random_() % 100;
  if (process == nullptr) return start_process();
  if (chance(0.06)) return starve(*process);
  if (drawn < 40) return submit();
  if (drawn < 48 && !runs_.empty()) {
    const std::string run = runs_[random_() % runs_.size()];
    (void)ask(store_.cancel(run));
    if (chance(0.5)) process->engine->stop_here(run, pool::Carried::Stop::cancelled, "cancelled");
    return;
  }
  if (drawn < 55) return crash(*process);
  if (drawn < 62) return freeze(*process);
  if (drawn < 69) {
    process->line.cut = true;
    auto heal = [](Process& cut, Duration after) -> Task<> {
      co_await sleep_for(after);
      cut.line.cut = false;
      cut.troubled_at = cut.world.sim().now();
    };
    scope_->spawn(heal(*process, up_to(50s)));
    return;
  }
  if (drawn < 75) {
    process->engine->drain();
    if (chance(0.3)) process->engine->hurry();
    return processes_.size() < 12 ? start_process() : void();
  }
  if (drawn < 80) return (void)process->engine->resize(random_() % 8);
  if (drawn < 86) {
    process->troubled_at = sim_.now();
    return draw_weather(process->line.weather);
  }
  if (drawn < 92) return settle_doubts(0.5);
  if (drawn < 96) return (void)ask(store_.pause("account:0", 20s));
  (void)ask(store_.resume("account:" + std::to_string(random_() % 2)));
}

/// A person handles what waits for a person.
void World::settle_doubts(double share) {
  for (const RunState state : {RunState::in_doubt, RunState::parked}) {
    store::Filter filter;
    filter.states = {state};
    filter.most = 1000;
    const auto runs = ask(store_.list(filter));
    for (const store::Run& run : *runs) {
      if (!chance(share)) continue;
      if (state == RunState::parked) {
        (void)ask(store_.answer(run.id));
        continue;
      }
      const domain::Resolution how = domain::kResolutions[random_() % domain::kResolutions.size()];
      // Recorded before the store is called: the run may begin at once.
      const bool before = std::exchange(stories_[run.id].person_says_again, how == domain::Resolution::rerun);
      if (!ask(store_.resolve(run.id, how))) stories_[run.id].person_says_again = before;
    }
  }
}

/// Checks that no work is alive for a run that is over in the store.
void World::check_ends() {
  const std::vector<std::shared_ptr<LiveWork>> all = works_;
  for (const auto& work : all) {
    const auto run = ask(store_.find(work->run));
    const bool alive = std::ranges::find(works_, work) != works_.end();
    if (alive && *run && domain::is_finished((*run)->state)) {
      find_fault(work->run + " is " + std::string(to_string((*run)->state)) + ", and its work of fence " +
                 std::to_string(work->fence.value) + " is alive in process " + std::to_string(work->process) +
                 (work->end_requested ? ", end requested" : "") + (work->by_lease ? ", ended by its warden" : ""));
    }
  }
}

std::vector<std::string> World::live() {
  const std::size_t begin_with = 1 + random_() % 3;
  for (std::size_t i = 0; i < begin_with; ++i) start_process();
  sim_.advance(100ms);
  for (const SimAgent& agent : agents_) {
    if (agent.cluster_cap) (void)ask(store_.resize(domain::agent_limit(agent.name), *agent.cluster_cap));
  }
  (void)ask(store_.resize(std::string(kShared), shared_cap_));
  for (int i = 0; i < kActs && faults_.empty(); ++i) {
    act();
    sim_.advance(up_to(5s));
    check_ends();
  }
  if (faults_.empty()) crowd();
  if (faults_.empty()) finish();
  return faults_;
}

std::vector<std::string> World::events_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& id : runs_) {
    if (text.find(id) == std::string::npos) continue;
    lines.push_back(id + " of " + stories_[id].agent + " on_crash " +
                    std::string(domain::to_string(agent(stories_[id].agent).on_crash)));
    for (const store::Event& event : *ask(store_.events(id, 0, 1000))) {
      const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(clocks_.elapsed_at(event.at)).count();
      lines.push_back(
          "  " + std::to_string(at) + " ms  " + event.cause + "  fence " + std::to_string(event.fence.value) +
          (event.state ? "  " + std::string(to_string(*event.state)) : "") + "  " + event.error + event.data);
    }
  }
  return lines;
}

/// Ends all faults.
void World::calm_down() {
  if (std::exchange(calm_, true)) return;
  for (const auto& process : processes_) {
    process->line.weather = {};
    process->troubled_at = sim_.now();
    process->line.cut = process->line.frozen = process->line.starved = false;
    process->line.changed.notify();
    if (process->engine) (void)process->engine->resize(4);
  }
  start_process();
}

/// Keeps the shared limit busy with light runs: heavy ones must still get their turn.
void World::crowd() {
  std::vector<const SimAgent*> heavy, light;
  for (const SimAgent& agent : agents_) {
    if (agent.weight) (*agent.weight > 1 ? heavy : light).push_back(&agent);
  }
  if (heavy.empty() || light.empty()) return;
  calm_down();
  const TimePoint began = sim_.now();
  for (const SimAgent* const agent : heavy) submit_one(*agent);
  const auto waits = [&](const SimAgent* agent) { return last_begun_[agent->name] < began; };
  for (int second = 0; sim_.now() - began < kHeavyWaitMax && std::ranges::any_of(heavy, waits); ++second) {
    for (const SimAgent* const agent : light) {
      store::Filter filter;
      filter.agent = agent->name;
      filter.states = {RunState::queued};
      filter.most = shared_cap_;
      for (std::size_t queued = ask(store_.list(filter))->size(); queued < shared_cap_; ++queued) submit_one(*agent);
    }
    sim_.advance(1s);
    if (second % 10 != 0) continue;
    check_ends();
    settle_doubts(1);
    for (const char* const account : {"account:0", "account:1"}) (void)ask(store_.resume(account));
  }
  for (const SimAgent* const agent : heavy) {
    if (waits(agent)) find_fault(agent->name + " starves: light runs are always served before it");
  }
}

/// Waits until every run has ended.
void World::finish() {
  calm_down();
  std::vector<store::Run> open;
  for (int round = 0; round < kCalmRounds && faults_.empty(); ++round) {
    sim_.advance(10s);
    check_ends();
    settle_doubts(1);
    for (const char* const account : {"account:0", "account:1"}) (void)ask(store_.resume(account));
    store::Filter filter;
    filter.most = 10'000;
    open = *ask(store_.list(filter));
    std::erase_if(open, [](const store::Run& run) { return domain::is_finished(run.state); });
    if (open.empty()) break;
  }
  for (const store::Run& run : open) {
    std::string reasons;
    for (const store::Why& why : *ask(store_.why(run.id)))
      reasons += " " + std::string(to_string(why.cause)) + " (" + why.limit + ")";
    find_fault(run.id + " of " + run.agent + " never ends: " + std::string(to_string(run.state)) + reasons);
  }
  check_end();
}

void World::check_budgets() {
  for (const std::string& id : runs_) {
    const RunStory& story = stories_[id];
    if (story.budget == Duration::zero()) continue;  // it has none
    const BudgetFacts facts{id, agent(story.agent).account, story.budget, story.has_deadline, story.left_above};
    const std::string wrong = audit_budget(facts, *ask(store_.events(id, 0, 10'000)), store_, clocks_);
    if (!wrong.empty()) find_fault(wrong);
  }
}

void World::check_end() {
  for (const auto& process : processes_) {
    if (process->engine) process->engine->drain();
  }
  sim_.advance(2min);
  for (const auto& process : processes_) {
    if (!process->scope->idle()) find_fault("process " + std::to_string(process->number) + " does not end");
  }
  if (!works_.empty()) find_fault("work is left: " + works_.front()->run);
  for (const auto& [key, limit] : host_limits_) {
    if (limit->available() != limit->capacity()) find_fault(key.second + ": a permit was not released");
  }
  for (const std::string& id : runs_) {
    const auto run = ask(store_.find(id));
    if (!*run) {
      find_fault(id + " is lost");
      continue;
    }
    if ((*run)->finished_at) {
      const auto run_codec = make_run_codec(*this);
      const std::string wrong = audit_timeline(**run, *ask(store_.events(id, 0, 10'000)), *run_codec);
      if (!wrong.empty()) find_fault(wrong);
    }
    if ((*run)->state == RunState::failed && (*run)->error.contains(kStarvedText)) {
      find_fault(id + " failed because a process was out of descriptors");
    }
  }
  families_.check_end();
  check_budgets();
  const auto audit = ask(store::audit(store_));
  for (const std::string& finding : audit->findings) find_fault(finding);
}

}  // namespace stint::simulation
