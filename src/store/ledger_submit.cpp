// Members of Ledger: accept runs.
#include "domain/run_id.hpp"
#include "store/errors.hpp"
#include "store/ledger.hpp"
#include "store/moments.hpp"

#include <cmath>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::Stop;

}  // namespace

Result<> Ledger::check(const NewRun& fresh, const AgentRow& agent, std::optional<RunRow>& parent) {
  if (!domain::is_run_id(fresh.id)) return fail(Errc::invalid, "'" + fresh.id + "' is not a run id");
  if (std::abs(fresh.priority) > domain::kPriorityMax)
    return fail(Errc::invalid, "the priority must be between -1000 and 1000");
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
  STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(fresh.agent));
  if (!agent) return fail(no_such_agent(fresh.agent));
  STINT_TRY(std::optional<RunRow> known, rows_.run(fresh.id));
  if (!known && !fresh.key.empty()) {
    STINT_TRY(known, rows_.run_of_key(agent->number, fresh.key));
  }
  if (known) return Accepted{known->run.id, false};
  std::optional<RunRow> parent;
  STINT_CHECK(check(fresh, *agent, parent));
  const WallTime at = now();
  const WallTime due = later(at, fresh.delay);
  RunRow row;
  row.agent = agent->number;
  row.parent = parent ? parent->run.number : RunNumber{};
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
    row.budget_until = parent->budget_until;  // a running parent's budget does not use its agent's clock
  }
  run.created_at = at;
  if (fresh.delay > Duration::zero()) run.not_before = due;
  bool behind = false;
  if (!run.session.empty()) {
    STINT_TRY(const std::optional<RunRow> head, rows_.head_of(run.session));
    behind = head.has_value();
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
  STINT_TRY(const RunNumber number, rows_.add(row, std::move(fresh.input)));
  event.run = number;
  STINT_CHECK(rows_.add_event(std::move(event)));
  for (const std::string& head : fresh.draws_on) STINT_CHECK(join_family(head, number));
  return Accepted{std::move(fresh.id), true};
}

/// A finished ancestor holds nothing and waits for no descendant: the search ends there. One that is parked, in doubt
/// or queued again still holds its session, and may continue and wait.
Result<> Ledger::check_session(const std::string& session, const RunRow& parent) {
  if (session == parent.run.session) return fail(session_of_ancestor(session, parent.run.id));
  for (RunNumber above = parent.parent; above.value != 0;) {  // terminates: a parent is older than its child
    STINT_TRY(const std::optional<RunRow> row, rows_.run(above));
    if (!row || domain::is_finished(row->run.state)) break;
    if (session == row->run.session) return fail(session_of_ancestor(session, row->run.id));
    above = row->parent;
  }
  return {};
}

}  // namespace stint::store
