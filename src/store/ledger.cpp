// Invariants
// 1. Each change of a run raises its seq and writes one event: save() does both, and nothing else writes a run except
//    report(), which changes only the run's use.
// 2. The oldest unfinished run of a session is its head, and no other run of it is ready: promote() follows every
//    end.
// 3. Every change by an owner is checked against node, fence and state.
// 4. Use that is added to a run is added to each of its families and to the day in the same step, by count_use().
// 5. Times are the store's, except deadlines; only returned values are converted to wall time (ledger_time.cpp).
#include "store/ledger.hpp"

#include "domain/fleet_event.hpp"
#include "store/errors.hpp"
#include "store/moments.hpp"

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::Settle;
using domain::Stop;

bool is_open(RunState state) noexcept {
  return state == RunState::queued || state == RunState::running || state == RunState::parked;
}

}  // namespace

Result<RunRow> Ledger::must_find(const std::string& id) {
  STINT_TRY(std::optional<RunRow> row, rows_.run(id));
  if (!row) return fail(no_such_run(id));
  return std::move(*row);
}

Result<std::optional<RunRow>> Ledger::find_owned(NodeNumber node, AttemptKey attempt) {
  Result<std::optional<RunRow>> row = rows_.run(attempt.run);
  if (!row || !*row) return row;
  const Run& run = (*row)->run;
  const bool ours = run.state == RunState::running && run.fence == attempt.fence && run.node == node;
  if (!ours) row->reset();
  return row;
}

Result<> Ledger::save(RunRow& row, std::string cause, std::optional<NodeNumber> owner, std::string data) {
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
  event.node = run.node ? run.node : owner;
  if (run.state != RunState::running) event.error = run.error;
  event.data = std::move(data);
  event.at = run.finished_at.value_or(now());  // one moment: the time between the events is the time of the run
  return rows_.add_event(std::move(event));
}

Result<> Ledger::promote(const std::string& session) {
  if (session.empty()) return {};
  STINT_TRY(std::optional<RunRow> head, rows_.head_of(session));
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

/// Ends the run, or asks its owner to. The caller promotes sessions after it has ended all runs of the step.
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

/// A node that carries only its own run comes and goes with each `stint run`: the feed does not announce it.
Result<NodeNumber> Ledger::enrol(const std::string& label, NodeKind kind) {
  STINT_TRY(const NodeNumber number, rows_.add_node(label, kind, beat_time()));
  if (kind == NodeKind::any) STINT_CHECK(add_fleet_event(domain::kNodeJoined, domain::node_data(label), number));
  return number;
}

Result<> Ledger::add_fleet_event(std::string_view cause, std::string data, std::optional<NodeNumber> node) {
  EventRow event;
  event.cause = cause;
  event.data = std::move(data);
  event.node = node;
  event.at = now();
  return rows_.add_event(std::move(event));
}

Result<> Ledger::announce(NodeNumber node, std::string cause, std::string data) {
  return add_fleet_event(cause, std::move(data), node);
}

Result<Beat> Ledger::beat(NodeNumber node) {
  STINT_TRY(const std::optional<NodeRow> row, rows_.node(node));
  Beat beat;
  if (!row || row->state == NodeRow::State::dead) return beat;
  beat.alive = true;
  STINT_CHECK(rows_.renew(node, beat_time()));
  STINT_TRY(const std::vector<RunRow> runs, rows_.owned(node));
  for (const RunRow& owned : runs) {
    const Run& run = owned.run;
    if (run.stop != Stop::none) beat.stops.push_back({{run.number, run.fence}, run.stop});
  }
  return beat;
}

Result<> Ledger::drain(NodeNumber node) {
  STINT_TRY(const std::optional<NodeRow> row, rows_.node(node));
  if (!row || row->state != NodeRow::State::live) return {};
  NodeRow draining = *row;
  draining.state = NodeRow::State::draining;
  STINT_CHECK(rows_.put(draining));
  if (row->kind != NodeKind::any) return {};
  return add_fleet_event(domain::kPoolDraining, domain::drain_data("finishing"), node);
}

Result<> Ledger::leave(NodeNumber node) {
  STINT_TRY(const std::optional<NodeRow> row, rows_.node(node));
  if (!row || row->state == NodeRow::State::dead) return {};
  STINT_TRY(const std::vector<RunRow> runs, rows_.owned(node));
  if (!runs.empty()) return fail(Errc::conflict, "the node still owns runs");
  NodeRow dead = *row;
  dead.state = NodeRow::State::dead;
  STINT_CHECK(rows_.put(dead));
  if (row->kind != NodeKind::any) return {};
  return add_fleet_event(domain::kNodeLeft, domain::node_data(row->label), node);
}

Result<std::vector<std::pair<std::string, RunState>>> Ledger::cancel(const std::string& id) {
  STINT_TRY(const RunRow root, must_find(id));
  std::vector<RunNumber> tree = {root.run.number};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    STINT_TRY(const std::vector<RunNumber> children, rows_.children(tree[i]));
    tree.insert(tree.end(), children.begin(), children.end());
  }
  std::vector<std::pair<std::string, RunState>> reached;
  std::set<std::string> sessions;
  for (const RunNumber number : tree) {
    STINT_TRY(std::optional<RunRow> row, rows_.run(number));
    if (!row || !is_open(row->run.state) || row->run.stop != Stop::none) continue;
    STINT_CHECK(stop(*row, Stop::cancelled));
    reached.emplace_back(row->run.id, row->run.state);
    sessions.insert(row->run.session);
  }
  for (const std::string& session : sessions) STINT_CHECK(promote(session));
  return reached;
}

Result<RunState> Ledger::resolve(const std::string& id, domain::Resolution how) {
  STINT_TRY(RunRow row, must_find(id));
  Run& run = row.run;
  if (run.state != RunState::in_doubt) {
    return fail(Errc::conflict, "'" + id + "' is " + std::string(to_string(run.state)) + ", not in doubt");
  }
  run.state = domain::after_resolution(how);
  run.unsafe = false;
  row.budget_until.reset();
  if (run.state == RunState::succeeded) run.error.clear();
  if (how == domain::Resolution::rerun) {
    run.stop = Stop::none;
  } else {
    run.finished_at = now();
  }
  STINT_CHECK(save(row, "resolved_" + std::string(to_string(how))));
  if (run.finished_at) STINT_CHECK(promote(run.session));
  return run.state;
}

Result<> Ledger::answer(const std::string& id) {
  STINT_TRY(RunRow row, must_find(id));
  if (row.run.state != RunState::parked) {
    return fail(Errc::conflict, "'" + id + "' is " + std::string(to_string(row.run.state)) + ", not parked");
  }
  return wake(row, "answered");
}

Result<Ticked> Ledger::tick() {
  Ticked ticked;
  STINT_CHECK(note_ends_of_pauses());
  STINT_TRY(std::vector<RunRow> asleep, rows_.asleep(now(), kBatchMax));
  for (RunRow& row : asleep) STINT_CHECK(wake(row, "woken"));
  ticked.woken = asleep.size();
  STINT_TRY(std::vector<RunRow> expiring, this->expiring());
  std::set<std::string> sessions;
  for (RunRow& row : expiring) {
    STINT_CHECK(stop(row, Stop::expired));
    sessions.insert(row.run.session);
  }
  for (const std::string& session : sessions) STINT_CHECK(promote(session));
  ticked.expired = expiring.size();
  STINT_TRY(std::vector<NodeRow> nodes, rows_.nodes());
  for (NodeRow& node : nodes) {
    STINT_TRY(const bool lapsed, rows_.is_lapsed(node.number, beat_time()));
    if (!lapsed) continue;
    STINT_TRY(std::vector<RunRow> runs, rows_.owned(node.number));
    for (RunRow& row : runs) {
      Settlement lost;
      lost.settle = Settle::lost;
      STINT_CHECK(settle_row(row, std::move(lost)));
    }
    node.state = NodeRow::State::dead;
    STINT_CHECK(rows_.put(node));
    STINT_CHECK(add_fleet_event(domain::kNodeDead, domain::node_data(node.label, runs.size()), node.number));
    ticked.dead.push_back(node.number);
    ticked.lost += runs.size();
  }
  STINT_TRY(ticked.next, next_due());
  return ticked;
}

}  // namespace stint::store
