// Invariants
// 1. Each change of a run raises its seq and leaves one event: save() does both, and nothing else writes a run, but
//    report(), which changes only what the run has used.
// 2. The oldest unfinished run of a session is its head, and no other is ready: promote() follows every end.
// 3. Every change by an owner is checked against worker, fence and state.
// 4. What is added to a run's use is added to each of its families in the same step: count_use() does both.
// 5. Times are the store's, but for deadlines; only what goes out is turned into wall time (ledger_time.cpp).
#include "store/ledger.hpp"

#include "domain/run_id.hpp"
#include "store/record.hpp"
#include "store/words.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::Settle;
using domain::Stop;
using std::chrono::milliseconds;

template <class Time>
Time later(Time time, Duration by) {
  return time + std::chrono::ceil<milliseconds>(by);
}

template <class Time>
std::optional<Time> sooner(std::optional<Time> a, std::type_identity_t<std::optional<Time>> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

bool is_open(RunState state) noexcept {
  return state == RunState::queued || state == RunState::running || state == RunState::parked;
}

/// Full jitter.
Duration backoff(const AgentEntry& agent, std::uint32_t attempt, std::uint64_t random) {
  const double most = std::min(static_cast<double>(agent.backoff_cap.count()),
                               std::ldexp(static_cast<double>(agent.backoff_base.count()),
                                          static_cast<int>(std::min<std::uint32_t>(attempt, 20))));
  return Duration(static_cast<Duration::rep>(most * (static_cast<double>(random >> 11U) * 0x1p-53)));
}

bool is_paused(const GateRow& gate, WallTime now) {
  return gate.paused && (!gate.paused_until || *gate.paused_until > now);
}

void extend_pause(GateRow& gate, std::optional<WallTime> until) {
  const bool for_good = gate.paused && !gate.paused_until;
  if (!for_good) gate.paused_until = gate.paused && until ? std::max(*gate.paused_until, *until) : until;
  gate.paused = true;
}

}  // namespace

// ---- rows ----------------------------------------------------------------------------------------------------------

Result<Loan<RunRow>> Ledger::must_find(const std::string& id) {
  STINT_TRY(Loan<RunRow> row, rows_.run(id));
  if (!row) return fail(no_such_run(id));
  return row;
}

Result<Loan<RunRow>> Ledger::find_owned(WorkerNumber worker, RunNumber run, std::int64_t fence) {
  STINT_TRY(Loan<RunRow> row, rows_.run(run));
  const bool ours = row && row->run.state == RunState::running && row->run.fence == fence && row->run.worker == worker;
  return ours ? std::move(row) : Loan<RunRow>();
}

Result<> Ledger::save(RunRow& row, std::string cause, std::optional<WorkerNumber> owner, std::string data) {
  Run& run = row.run;
  ++run.seq;
  STINT_CHECK(choose_clock(row));
  STINT_CHECK(rows_.put(row));
  EventRow event;
  event.run = run.number;
  event.seq = run.seq;
  event.fence = run.fence;
  event.cause = std::move(cause);
  event.state = run.state;
  event.hold = run.hold;
  event.worker = run.worker ? run.worker : owner;
  if (run.state != RunState::running) event.error = run.error;
  event.data = std::move(data);
  event.at = now();
  return rows_.add_event(std::move(event));
}

Result<> Ledger::promote(const std::string& session) {
  if (session.empty()) return {};
  STINT_TRY(const Loan<RunRow> head, rows_.head_of(session));
  if (!head || head->run.state != RunState::queued || head->run.hold != Hold::session) return {};
  const bool delayed = head->run.not_before && *head->run.not_before > now();
  head->run.hold = delayed ? Hold::delay : Hold::none;
  if (!delayed) head->run.not_before.reset();
  return save(*head, "promoted");
}

/// A delay, a back-off or a park is over.
Result<> Ledger::wake(RunRow& row, std::string cause) {
  row.run.state = RunState::queued;
  row.run.hold = Hold::none;
  row.run.not_before.reset();
  if (row.budget_left) row.budget_until = later(clock_.awake(), *row.budget_left);
  row.budget_left.reset();
  row.parked_on.clear();
  return save(row, std::move(cause));
}

/// Ends it, or asks its owner to. Sessions are promoted by the caller, when it has ended all that it ends in one step.
Result<> Ledger::stop(RunRow& row, Stop stop) {
  Run& run = row.run;
  const bool running = run.state == RunState::running;
  run.stop = stop;
  run.hold = Hold::none;
  run.not_before.reset();
  row.parked_on.clear();
  if (!running) {
    run.state = stop == Stop::expired ? RunState::expired : RunState::cancelled;
    run.finished_at = now();
  }
  return save(row, std::string(running ? "cancel_asked" : to_string(stop)));
}

// ---- agents and limits ---------------------------------------------------------------------------------------------

Result<> Ledger::define(const AgentEntry& entry) {
  STINT_TRY(const Loan<const AgentRow> known, rows_.agent(entry.name));
  AgentRow agent = known ? *known : AgentRow();
  Members members;
  for (const LimitUse& use : entry.limits) {
    if (use.weight == 0) return fail(Errc::invalid, entry.name + ": a weight is at least 1");
    STINT_TRY(const GateRow gate, rows_.gate(use.limit));
    members.emplace_back(gate.number, use.weight);
  }
  std::ranges::sort(members);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::ranges::adjacent_find(members, same) != members.end()) {
    return fail(Errc::invalid, entry.name + ": a limit is named twice; name it once, with a weight");
  }
  Members before;
  if (known) {
    STINT_TRY(before, rows_.members(agent.set));
  }
  if (!known || members != before) {
    STINT_TRY(agent.set, rows_.make_set(members));
  }
  agent.entry = entry;
  STINT_CHECK(rows_.put(agent));
  return note_pauses(agent);
}

Result<> Ledger::pause(const std::string& limit, std::optional<Duration> length) {
  return pause(limit, length, domain::is_probed(limit));
}

Result<> Ledger::pause(const std::string& limit, std::optional<Duration> length, bool probed) {
  STINT_TRY(GateRow gate, rows_.gate(limit));
  extend_pause(gate, length ? std::optional(later(now(), *length)) : std::nullopt);
  if (probed) gate.ramp = 1;
  STINT_CHECK(rows_.put(gate));
  return note_pauses(gate.number);
}

Result<std::uint64_t> Ledger::resume(const std::string& limit) {
  STINT_TRY(const std::vector<Loan<RunRow>> parked, rows_.parked_on(limit));
  for (const Loan<RunRow>& row : parked) STINT_CHECK(wake(*row, "resumed"));
  STINT_TRY(GateRow gate, rows_.gate(limit));
  gate.paused = false;
  gate.paused_until.reset();
  STINT_CHECK(rows_.put(gate));
  STINT_CHECK(note_pauses(gate.number));
  return parked.size();
}

Result<std::vector<LimitState>> Ledger::limits() {
  STINT_TRY(const std::vector<GateUse> uses, rows_.gates());
  std::vector<LimitState> found;
  for (const GateUse& use : uses) {
    LimitState state;
    state.name = use.gate.name;
    state.capacity = use.gate.capacity;
    state.units = use.units;
    state.runs = use.runs;
    state.paused = is_paused(use.gate, now());
    if (state.paused && use.gate.paused_until) {
      state.paused_until = clock_.shown(use.gate.paused_until);
      state.paused_for = *use.gate.paused_until - now();
    }
    state.ramp = use.gate.ramp;
    found.push_back(std::move(state));
  }
  return found;
}

// ---- workers -------------------------------------------------------------------------------------------------------

Result<WorkerNumber> Ledger::enrol(const std::string& label) { return rows_.add_worker(label, beat_time()); }

Result<Beat> Ledger::beat(WorkerNumber worker) {
  STINT_TRY(const Loan<const WorkerRow> row, rows_.worker(worker));
  Beat beat;
  if (!row || row->state == WorkerRow::State::dead) return beat;
  beat.alive = true;
  STINT_CHECK(rows_.renew(worker, beat_time()));
  STINT_TRY(const std::vector<Loan<RunRow>> runs, rows_.owned(worker));
  for (const Loan<RunRow>& owned : runs) {
    const Run& run = owned->run;
    if (run.stop != Stop::none) beat.stops.push_back({run.number, run.fence, run.stop});
  }
  return beat;
}

Result<> Ledger::drain(WorkerNumber worker) {
  STINT_TRY(const Loan<const WorkerRow> row, rows_.worker(worker));
  if (!row || row->state != WorkerRow::State::live) return {};
  WorkerRow draining = *row;
  draining.state = WorkerRow::State::draining;
  return rows_.put(draining);
}

Result<> Ledger::leave(WorkerNumber worker) {
  STINT_TRY(const Loan<const WorkerRow> row, rows_.worker(worker));
  if (!row || row->state == WorkerRow::State::dead) return {};
  STINT_TRY(const std::vector<Loan<RunRow>> runs, rows_.owned(worker));
  if (!runs.empty()) return fail(Errc::conflict, "the worker still owns runs");
  WorkerRow dead = *row;
  dead.state = WorkerRow::State::dead;
  return rows_.put(dead);
}

// ---- from outside --------------------------------------------------------------------------------------------------

Result<> Ledger::check(const NewRun& fresh, const AgentRow& agent, Loan<const RunRow>& parent) {
  if (!domain::is_run_id(fresh.id)) return fail(Errc::invalid, "'" + fresh.id + "' is no id of a run");
  if (std::abs(fresh.priority) > domain::kPriorityMax) return fail(Errc::invalid, "a priority is from -1000 to 1000");
  STINT_TRY(const bool full, rows_.has_queued(agent.number, agent.entry.queued_max));
  if (full) return fail(Error(Errc::full, Retry::safe, "the queue of '" + fresh.agent + "' is full"));
  if (fresh.parent.empty()) return {};
  STINT_TRY(parent, rows_.run(fresh.parent));
  if (!parent || parent->run.state != RunState::running || parent->run.stop != Stop::none) {
    return fail(Errc::conflict, "its parent '" + fresh.parent + "' does not run");
  }
  return fresh.session.empty() ? Result<>() : check_session(fresh.session, *parent);
}

Result<Accepted> Ledger::enqueue(NewRun&& fresh) {
  STINT_TRY(const Loan<const AgentRow> agent, rows_.agent(fresh.agent));
  if (!agent) return fail(no_such_agent(fresh.agent));
  STINT_TRY(Loan<const RunRow> known, rows_.run(fresh.id));
  if (!known && !fresh.key.empty()) {
    STINT_TRY(known, rows_.run_of_key(agent->number, fresh.key));
  }
  if (known) return Accepted{known->run.id, false};
  Loan<const RunRow> parent;
  STINT_CHECK(check(fresh, *agent, parent));
  const WallTime at = now();
  const WallTime due = later(at, fresh.delay);
  RunRow row;
  row.agent = agent->number;
  row.parent = parent ? parent->run.number : 0;
  row.budget = fresh.budget;
  row.kept_for = fresh.kept_for;
  row.rank = domain::rank_ms(domain::to_unix_ms(due), fresh.priority);
  Run& run = row.run;
  run.id = fresh.id;
  run.agent = std::move(fresh.agent);
  run.session = std::move(fresh.session);
  run.parent = std::move(fresh.parent);
  run.key = std::move(fresh.key);
  run.on_crash = fresh.on_crash;
  run.deadline = fresh.deadline;
  if (fresh.deadline_in) run.deadline = sooner(run.deadline, later(clock_.wall(), *fresh.deadline_in));
  if (parent) {
    if (parent->run.deadline) run.deadline = sooner(run.deadline, *parent->run.deadline);
    row.budget_until = parent->budget_until;  // of a running parent: not of its agent's clock
  }
  run.created_at = at;
  if (fresh.delay > Duration::zero()) run.not_before = due;
  bool behind = false;
  if (!run.session.empty()) {
    STINT_TRY(const Loan<const RunRow> head, rows_.head_of(run.session));
    behind = head != nullptr;
  }
  run.hold = behind ? Hold::session : run.not_before ? Hold::delay : Hold::none;
  STINT_CHECK(choose_clock(row));
  run.seq = 1;
  EventRow event;
  event.seq = 1;
  event.cause = domain::kEnqueued;
  event.state = run.state;
  event.hold = run.hold;
  event.at = at;
  STINT_TRY(const Loan<const RunRow> added, rows_.add(std::move(row), std::move(fresh.input)));
  event.run = added->run.number;
  STINT_CHECK(rows_.add_event(std::move(event)));
  for (const std::string& head : fresh.draws_on) STINT_CHECK(join_family(head, added->run.number));
  return Accepted{std::move(fresh.id), true};
}

Result<std::vector<std::pair<std::string, RunState>>> Ledger::cancel(const std::string& id) {
  STINT_TRY(const Loan<const RunRow> root, must_find(id));
  std::vector<RunNumber> tree = {root->run.number};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    STINT_TRY(const std::vector<RunNumber> children, rows_.children(tree[i]));
    tree.insert(tree.end(), children.begin(), children.end());
  }
  std::vector<std::pair<std::string, RunState>> reached;
  std::set<std::string> sessions;
  for (const RunNumber number : tree) {
    STINT_TRY(const Loan<RunRow> row, rows_.run(number));
    if (!row || !is_open(row->run.state) || row->run.stop != Stop::none) continue;
    STINT_CHECK(stop(*row, Stop::cancelled));
    reached.emplace_back(row->run.id, row->run.state);
    sessions.insert(row->run.session);
  }
  for (const std::string& session : sessions) STINT_CHECK(promote(session));
  return reached;
}

Result<RunState> Ledger::resolve(const std::string& id, domain::Resolution how) {
  STINT_TRY(const Loan<RunRow> row, must_find(id));
  Run& run = row->run;
  if (run.state != RunState::in_doubt) {
    return fail(Errc::conflict, "'" + id + "' is " + std::string(to_string(run.state)) + ", not in doubt");
  }
  run.state = domain::after_resolution(how);
  run.unsafe = false;
  row->budget_until.reset();
  if (run.state == RunState::succeeded) run.error.clear();
  if (how == domain::Resolution::rerun) {
    run.stop = Stop::none;
  } else {
    run.finished_at = now();
  }
  STINT_CHECK(save(*row, "resolved_" + std::string(to_string(how))));
  if (run.finished_at) STINT_CHECK(promote(run.session));
  return run.state;
}

Result<> Ledger::answer(const std::string& id) {
  STINT_TRY(const Loan<RunRow> row, must_find(id));
  if (row->run.state != RunState::parked) {
    return fail(Errc::conflict, "'" + id + "' is " + std::string(to_string(row->run.state)) + ", not parked");
  }
  return wake(*row, "resumed");
}

// ---- from the owner ------------------------------------------------------------------------------------------------

Result<domain::Gate> Ledger::view(const GateUse& use, AgentNumber agent, const std::set<GateNumber>& held_above) {
  domain::Gate gate;
  gate.paused = is_paused(use.gate, now());
  if (held_above.contains(use.gate.number)) return gate;
  gate.capacity = use.gate.capacity;
  gate.weight = use.weight;
  gate.shared = use.shared;
  gate.ramp = use.gate.ramp;
  gate.units = use.units;
  gate.runs = use.runs;
  gate.turn_of = use.gate.turn_of;
  gate.turn_lapsed = use.gate.turn_until <= now();
  gate.last_turn_of = use.gate.last_turn_of;
  if (!gate.turn_of || gate.turn_lapsed || *gate.turn_of == agent) return gate;
  STINT_TRY(const bool needed, rows_.has_ready(*gate.turn_of));
  gate.turn_lapsed = !needed;
  return gate;
}

/// How many runs of the agent may start now. Takes and gives back turns.
Result<std::int64_t> Ledger::permits(const AgentRow& agent, std::uint32_t most,
                                     const std::set<GateNumber>& held_above) {
  STINT_TRY(std::vector<GateUse> uses, rows_.gates_of(agent.set));
  std::vector<domain::Gate> gates;
  for (const GateUse& use : uses) {
    STINT_TRY(const domain::Gate gate, view(use, agent.number, held_above));
    gates.push_back(gate);
  }
  const domain::GateAnswer answer = domain::ask_gates(agent.number, gates);
  for (const std::size_t i : answer.take_turn) {
    uses[i].gate.turn_of = agent.number;
    uses[i].gate.turn_until = later(now(), domain::kTurn);
    STINT_CHECK(rows_.put(uses[i].gate));
  }
  for (const std::size_t i : answer.clear_turn) {
    const bool mine = uses[i].gate.turn_of == agent.number;
    uses[i].gate.last_turn_of = mine ? std::optional(agent.number) : std::nullopt;
    uses[i].gate.turn_of.reset();
    STINT_CHECK(rows_.put(uses[i].gate));
  }
  return std::min<std::int64_t>(most, answer.free.value_or(most));
}

Result<std::vector<Ready>> Ledger::ready(std::uint32_t most) {
  STINT_TRY(const std::vector<Loan<const AgentRow>> agents,
            rows_.agents());                                 // before the gates: so all of theirs are there
  STINT_TRY(const std::vector<GateUse> all, rows_.gates());  // counted once, however many agents use them
  std::map<GateNumber, GateUse> gates;
  for (const GateUse& use : all) gates.emplace(use.gate.number, use);
  std::vector<Ready> found;
  for (const Loan<const AgentRow>& row : agents) {
    const AgentRow& agent = *row;
    STINT_TRY(const Queue queue, rows_.queue(agent.number, most));
    if (queue.runs == 0) continue;
    STINT_TRY(const auto members, rows_.members(agent.set));
    std::vector<domain::Gate> seen;
    for (const auto& [number, weight] : members) {
      GateUse use = gates.at(number);
      use.weight = weight;
      STINT_TRY(const domain::Gate gate, view(use, agent.number, {}));
      seen.push_back(gate);
    }
    Ready ready;
    ready.agent = agent.entry.name;
    ready.runs = static_cast<std::uint32_t>(queue.runs);
    ready.rank_ms = queue.rank;
    const auto [free, take_turn, clear_turn] = domain::ask_gates(agent.number, seen);
    ready.takes_turn = !take_turn.empty();
    if (free) ready.startable = static_cast<std::uint32_t>(std::clamp<std::int64_t>(*free, 0, queue.runs));
    found.push_back(std::move(ready));
  }
  std::ranges::sort(found, {},
                    [](const Ready& ready) { return std::pair(ready.rank_ms, std::string_view(ready.agent)); });
  return found;
}

Result<> Ledger::add_claim(const RunRow& row, std::vector<Claim>& claims) {
  Claim& claim = claims.emplace_back();
  const Run& run = row.run;
  claim.run = run.number;
  claim.id = run.id;
  claim.agent = run.agent;
  claim.session = run.session;
  claim.fence = run.fence;
  claim.attempt = run.attempt;
  claim.lost = run.lost;
  claim.on_crash = run.on_crash;
  claim.unsafe = run.unsafe;
  STINT_TRY(claim.left, time_left(row));
  if (claim.left) {
    claim.left = std::max(*claim.left, Duration::zero());
    claim.expires_at = later(clock_.shown(now()), *claim.left);
  }
  STINT_TRY(claim.input, rows_.input(row.run.number));
  return {};
}

Result<bool> Ledger::is_kept(const RunRow& row, WorkerNumber from) {
  if (!row.kept_for || *row.kept_for == from) return false;
  STINT_TRY(const Loan<const WorkerRow> keeper, rows_.worker(*row.kept_for));
  return keeper && keeper->state != WorkerRow::State::dead;
}

Result<std::set<GateNumber>> Ledger::held_above(const RunRow& row) {
  std::set<GateNumber> gates;
  for (RunNumber above = row.parent; above != 0;) {  // ends: a parent was there before its child
    STINT_TRY(const Loan<const RunRow> holder, rows_.run(above));
    if (!holder || holder->run.state != RunState::running) break;
    STINT_TRY(const Members members, rows_.members(holder->set));
    for (const auto& [gate, weight] : members) gates.insert(gate);
    above = holder->parent;
  }
  return gates;
}

Result<SetNumber> Ledger::set_without(SetNumber set, const std::set<GateNumber>& gates) {
  if (gates.empty()) return set;
  STINT_TRY(Members members, rows_.members(set));
  if (std::erase_if(members, [&](const auto& member) { return gates.contains(member.first); }) == 0) return set;
  if (members.empty()) return 0;
  STINT_TRY(const std::vector<SetNumber> known, rows_.sets_with(members.front().first));
  for (const SetNumber candidate : known) {
    STINT_TRY(const Members its, rows_.members(candidate));
    if (its == members) return candidate;
  }
  return rows_.make_set(members);
}

Result<std::vector<Loan<RunRow>>> Ledger::first_ones(WorkerNumber worker, const AgentRow& agent, std::uint32_t most) {
  std::vector<Loan<RunRow>> rows;
  STINT_TRY(const bool any, rows_.has_ready(agent.number, worker));  // who has nothing takes no turn
  if (!any) return rows;
  STINT_TRY(const std::int64_t room, permits(agent, most, {}));
  if (room < 1) return rows;
  STINT_TRY(rows,
            rows_.ready(agent.number, worker, {clock_.wall(), agents_clock(agent)}, static_cast<std::size_t>(room)));
  for (const Loan<RunRow>& row : rows) row->set = agent.set;
  return rows;
}

Result<std::vector<Loan<RunRow>>> Ledger::named_one(WorkerNumber worker, const AgentRow& agent, const std::string& id) {
  std::vector<Loan<RunRow>> rows;
  STINT_TRY(Loan<RunRow> row, rows_.run(id));
  const bool ready =
      row && row->agent == agent.number && row->run.state == RunState::queued && row->run.hold == Hold::none;
  if (!ready) return rows;
  STINT_TRY(const std::optional<Duration> left, time_left(*row));
  if (left && *left <= Duration::zero()) return rows;
  STINT_TRY(const bool kept, is_kept(*row, worker));
  if (kept) return rows;
  STINT_TRY(const std::set<GateNumber> above, held_above(*row));
  STINT_TRY(const std::int64_t room, permits(agent, 1, above));
  if (room < 1) return rows;
  STINT_TRY(row->set, set_without(agent.set, above));
  rows.push_back(std::move(row));
  return rows;
}

Result<std::vector<Claim>> Ledger::claim(WorkerNumber worker, const std::string& agent, std::uint32_t most,
                                         const std::string& only) {
  STINT_TRY(const Loan<const WorkerRow> by, rows_.worker(worker));
  bool lapsed = !by || by->state == WorkerRow::State::dead;
  if (!lapsed) {
    STINT_TRY(lapsed, rows_.is_lapsed(worker, beat_time()));
  }
  if (lapsed) return fail(Errc::closed, "the lease of this worker is over");
  std::vector<Claim> claims;
  if (by->state != WorkerRow::State::live || most == 0) return claims;
  STINT_TRY(const Loan<const AgentRow> of, rows_.agent(agent));
  if (!of) return claims;
  STINT_TRY(const std::vector<Loan<RunRow>> next,
            only.empty() ? first_ones(worker, *of, most) : named_one(worker, *of, only));
  claims.reserve(next.size());
  for (const Loan<RunRow>& loan : next) {
    RunRow& row = *loan;
    Run& run = row.run;
    run.state = RunState::running;
    run.worker = worker;
    ++run.fence;
    ++run.attempt;
    const bool first = !run.started_at;  // then its parent's budget may bound it, but its own begins now
    run.started_at = now();
    row.reported = {};
    STINT_CHECK(choose_clock(row));
    if (row.budget && (first || !row.budget_until)) {
      row.budget_until = sooner(row.budget_until, later(clock_.awake(), *row.budget));
    }
    STINT_CHECK(save(row, "claimed"));
    STINT_CHECK(add_claim(row, claims));
  }
  return claims;
}

Result<std::vector<Claim>> Ledger::owned(WorkerNumber worker) {
  STINT_TRY(const std::vector<Loan<RunRow>> rows, rows_.owned(worker));
  std::vector<Claim> claims;
  for (const Loan<RunRow>& row : rows) STINT_CHECK(add_claim(*row, claims));
  return claims;
}

Result<> Ledger::widen(SetNumber set) {
  STINT_TRY(std::vector<GateRow> gates, rows_.ramping(set));
  for (GateRow& gate : gates) {
    gate.ramp = domain::wider_ramp(*gate.ramp, gate.capacity);
    STINT_CHECK(rows_.put(gate));
  }
  return {};
}

Result<RunState> Ledger::settle_row(RunRow& row, Settlement&& settlement) {
  const Settle settle = settlement.settle;
  STINT_TRY(const Loan<const AgentRow> agent, rows_.agent(row.agent));
  if (!agent) return fail(Errc::failed, "the agent of run '" + row.run.id + "' is not there");
  Run& run = row.run;
  const WallTime at = now();
  const bool park = settle == Settle::park;
  const std::optional<WallTime> park_until =
      settlement.park_for ? std::optional(later(at, *settlement.park_for)) : std::nullopt;
  WallTime again = at;
  if (settle == Settle::retry) {
    again = later(at, std::max(settlement.retry_after, backoff(agent->entry, run.attempt, ambient_.random())));
  }
  domain::SettleFacts facts;
  facts.settle = settle;
  facts.stop = run.stop;
  facts.unsafe = run.unsafe;
  facts.on_crash = run.on_crash;
  facts.attempt = run.attempt;
  facts.attempts_max = agent->entry.attempts_max;
  facts.lost = run.lost;
  facts.lost_max = agent->entry.lost_max;
  STINT_TRY(const std::optional<Duration> left, time_left(row));
  facts.expires_first = left && *left <= again - at;
  facts.deadline_first =
      park && settlement.park_for && run.deadline && *run.deadline <= later(clock_.wall(), *settlement.park_for);
  const RunState next = domain::after_settle(facts);
  const bool retry = next == RunState::queued && settle == Settle::retry, parked = next == RunState::parked;
  const auto owner = std::exchange(run.worker, std::nullopt);
  run.state = next;
  if (!settlement.error.empty() || next == RunState::succeeded) {  // what failed before it succeeded is in its events
    run.error = std::move(settlement.error);
  } else if (settle == Settle::lost) {
    if (std::string why = domain::error_of_loss(next, run.lost + 1); !why.empty()) run.error = std::move(why);
  }
  run.hold = retry ? Hold::backoff : !parked ? Hold::none : park_until ? Hold::quota : Hold::person;
  run.not_before = retry ? std::optional(again) : parked ? park_until : std::nullopt;
  if (park || settle == Settle::hand_back || settle == Settle::lost) --run.attempt;
  if (settle == Settle::lost) ++run.lost;
  row.parked_on = parked ? settlement.park_on : std::string();
  if (parked && row.budget_until) row.budget_left = *row.budget_until - clock_.awake();
  if (parked) row.budget_until.reset();
  run.unsafe = next == RunState::in_doubt && run.unsafe;
  if (domain::is_finished(next)) run.finished_at = at;
  STINT_CHECK(save(row, std::string(to_string(settle)), owner));
  if (!settlement.result.empty()) STINT_CHECK(rows_.put_result(run.number, std::move(settlement.result)));
  if (run.finished_at) STINT_CHECK(promote(run.session));
  if (park && !settlement.park_on.empty()) STINT_CHECK(pause(settlement.park_on, settlement.park_for, true));
  if (settle == Settle::succeeded) STINT_CHECK(widen(row.set));
  return next;
}

Result<std::optional<RunState>> Ledger::settle(WorkerNumber worker, Settlement&& settlement) {
  STINT_TRY(const Loan<RunRow> row, find_owned(worker, settlement.run, settlement.fence));
  if (!row) return std::nullopt;
  const Use used{.tokens = settlement.tokens, .money_micros = settlement.money_micros};
  STINT_CHECK(count_use(*row, used));
  row->reported = {};
  STINT_CHECK(rows_.add_spent(row->agent, clock_.wall(), used));
  STINT_TRY(const RunState state, settle_row(*row, std::move(settlement)));
  return state;
}

Result<bool> Ledger::mark(WorkerNumber worker, RunNumber run, std::int64_t fence, bool unsafe) {
  STINT_TRY(const Loan<RunRow> row, find_owned(worker, run, fence));
  if (!row) return false;
  if (row->run.unsafe == unsafe) return true;
  row->run.unsafe = unsafe;
  STINT_CHECK(save(*row, unsafe ? "unsafe" : "safe"));
  return true;
}

Result<bool> Ledger::note(WorkerNumber worker, RunNumber run, std::int64_t fence, std::string cause, std::string data) {
  STINT_TRY(const Loan<RunRow> row, find_owned(worker, run, fence));
  if (!row) return false;
  STINT_CHECK(save(*row, std::move(cause), {}, std::move(data)));
  return true;
}

Result<bool> Ledger::append_output(WorkerNumber worker, RunNumber run, std::int64_t fence, std::string_view text) {
  STINT_TRY(const Loan<const RunRow> row, find_owned(worker, run, fence));
  if (!row) return false;
  STINT_CHECK(rows_.add_output(run, text));
  return true;
}

Result<bool> Ledger::answered(WorkerNumber worker, RunNumber run, std::int64_t fence) {
  STINT_TRY(const Loan<const RunRow> row, find_owned(worker, run, fence));
  if (!row) return false;
  STINT_CHECK(widen(row->set));
  return true;
}

// ---- what is due ---------------------------------------------------------------------------------------------------

Result<Ticked> Ledger::tick() {
  Ticked ticked;
  STINT_CHECK(note_ends_of_pauses());
  STINT_TRY(const std::vector<Loan<RunRow>> asleep, rows_.asleep(now(), kBatchMax));
  for (const Loan<RunRow>& row : asleep) STINT_CHECK(wake(*row, "woken"));
  ticked.woken = asleep.size();
  STINT_TRY(const std::vector<Loan<RunRow>> expiring, this->expiring());
  std::set<std::string> sessions;
  for (const Loan<RunRow>& row : expiring) {
    STINT_CHECK(stop(*row, Stop::expired));
    sessions.insert(row->run.session);
  }
  for (const std::string& session : sessions) STINT_CHECK(promote(session));
  ticked.expired = expiring.size();
  STINT_TRY(std::vector<WorkerRow> workers, rows_.workers());
  for (WorkerRow& worker : workers) {
    STINT_TRY(const bool lapsed, rows_.is_lapsed(worker.number, beat_time()));
    if (!lapsed) continue;
    STINT_TRY(const std::vector<Loan<RunRow>> runs, rows_.owned(worker.number));
    for (const Loan<RunRow>& row : runs) {
      Settlement lost;
      lost.settle = Settle::lost;
      STINT_CHECK(settle_row(*row, std::move(lost)));
    }
    worker.state = WorkerRow::State::dead;
    STINT_CHECK(rows_.put(worker));
    ticked.buried.push_back(worker.number);
    ticked.lost += runs.size();
  }
  STINT_TRY(ticked.next, next_due());
  return ticked;
}

Result<std::vector<Why>> Ledger::why(const std::string& id, std::optional<std::int64_t> place) {
  STINT_TRY(const Loan<const RunRow> loan, must_find(id));
  std::vector<Why> reasons;
  const RunRow& row = *loan;
  const Run& run = row.run;
  if (run.state != RunState::queued && run.state != RunState::parked) return reasons;
  if (run.hold != Hold::none) {
    Why why{std::string(to_string(run.hold)), row.parked_on, clock_.shown(run.not_before)};
    if (run.hold == Hold::session) {
      STINT_TRY(const Loan<const RunRow> head, rows_.head_of(run.session));
      if (head) why.detail = "behind " + head->run.id + " (" + std::string(to_string(head->run.state)) + ")";
    }
    reasons.push_back(std::move(why));
    return reasons;
  }
  STINT_TRY(const Loan<const AgentRow> agent, rows_.agent(row.agent));
  STINT_TRY(const std::vector<GateUse> uses, rows_.gates_of(agent ? agent->set : 0));
  std::set<GateNumber> above;  // only a run that is claimed by its name does not wait for these
  if (row.kept_for) {
    STINT_TRY(above, held_above(row));
  }
  for (const GateUse& use : uses) {
    STINT_TRY(const domain::Gate gate, view(use, row.agent, above));
    const std::string held = use.gate.name + ": " + std::to_string(use.units) + " of " +
                             (gate.capacity ? std::to_string(*gate.capacity) : std::string("any")) + " held";
    if (gate.paused) {
      reasons.push_back({"paused", use.gate.name, clock_.shown(use.gate.paused_until)});
    } else if (gate.turn_of && *gate.turn_of != row.agent && !gate.turn_lapsed) {
      reasons.push_back({"turn", held, clock_.shown(use.gate.turn_until)});
    } else if (gate.ramp && gate.runs >= std::int64_t{*gate.ramp}) {
      reasons.push_back({"probe", use.gate.name + ": " + std::to_string(*gate.ramp) + " at a time", std::nullopt});
    } else if (gate.capacity && std::int64_t{*gate.capacity} - gate.units < std::int64_t{gate.weight}) {
      reasons.push_back({"limit", held, std::nullopt});
    }
  }
  if (place) reasons.push_back({"place", std::to_string(*place), std::nullopt});
  return reasons;
}

}  // namespace stint::store
