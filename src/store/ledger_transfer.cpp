// Members of Ledger: transfer runs to and from another store.
#include "store/errors.hpp"
#include "store/ledger.hpp"
#include "store/record.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using std::chrono::milliseconds;

EventRow row_of(const Event& event, RunNumber run, WallTime at) {
  return {.run = run,
          .seq = event.seq,
          .fence = event.fence,
          .cause = event.cause,
          .state = event.state,
          .hold = event.hold,
          .node = event.node,
          .error = event.error,
          .data = event.data,
          .at = at};
}

}  // namespace

Result<std::vector<AgentEntry>> Ledger::agents() {
  STINT_TRY(const std::vector<AgentRow> rows, rows_.agents());
  std::vector<AgentEntry> entries;
  for (const AgentRow& row : rows) {
    STINT_TRY(const std::vector<LimitMember> uses, rows_.limits_of(row.set));
    AgentEntry& entry = entries.emplace_back(row.entry);
    entry.limits.clear();
    for (const LimitMember& use : uses) entry.limits.push_back({use.limit.name, use.weight});
    std::ranges::sort(entry.limits, {}, &LimitUse::limit);
  }
  return entries;
}

Result<> Ledger::load_messages(const std::vector<std::string>& messages, RunNumber run) {
  std::uint64_t end = 0;
  for (std::uint32_t at = 0; at < messages.size(); ++at) {
    end += messages[at].size();
    STINT_CHECK(rows_.put_message(run, {.at = at, .body = messages[at]}, end));
  }
  return {};
}

Result<bool> Ledger::load(const RunRecord& record) {
  STINT_TRY(const std::optional<RunRow> known, rows_.run(record.run.id));
  if (known) return false;
  STINT_CHECK(check_record(record));
  STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(record.run.agent));
  if (!agent) return fail(no_such_agent(record.run.agent));
  if (!record.run.key.empty()) {
    STINT_TRY(const std::optional<RunRow> twin, rows_.run_of_key(agent->number, record.run.key));
    if (twin) return fail(key_is_taken(record.run, twin->run.id));
  }
  RunRow row;
  row.run = record.run;
  row.run.input.clear();
  row.run.result.clear();
  row.run.expires_at.reset();
  row.agent = agent->number;
  row.run.created_at = clock_.kept(record.run.created_at);
  row.run.not_before = clock_.kept(record.run.not_before);
  row.run.started_at = clock_.kept(record.run.started_at);
  row.run.finished_at = clock_.kept(record.run.finished_at);
  row.rank = domain::to_unix_ms(clock_.kept(WallTime(milliseconds(record.rank))));
  row.budget = record.budget;
  row.budget_left = record.budget_left;
  row.parked_on = record.parked_on;
  if (!record.run.parent.empty()) {
    STINT_TRY(const std::optional<RunRow> parent, rows_.run(record.run.parent));
    if (parent) row.parent = parent->run.number;
  }
  bool behind = false;
  if (!record.run.session.empty()) {
    STINT_TRY(const std::optional<RunRow> head, rows_.head_of(record.run.session));
    behind = head.has_value();
  }
  row.run.state = RunState::queued;  // add() creates queued runs; the rest is written over it
  row.run.hold = Hold::none;
  row.run.seq = 1;
  STINT_TRY(row.run.number, rows_.add(row, record.run.input));
  Run& run = row.run;
  run.state = record.run.state;
  run.hold = record.run.hold;
  run.seq = record.run.seq;
  if (record.budget_until) row.budget_until = clock_.awake() + (*record.budget_until - clock_.shown(now()));
  STINT_CHECK(choose_clock(row));
  STINT_CHECK(rows_.put(row));
  if (!record.run.result.empty()) STINT_CHECK(rows_.put_result(run.number, record.run.result));
  STINT_CHECK(load_families(record.families, run.number));
  for (const Event& event : record.events)
    STINT_CHECK(rows_.add_event(row_of(event, run.number, clock_.kept(event.at))));
  if (record.output.bytes > 0) STINT_CHECK(rows_.put_output(run.number, record.output));
  STINT_CHECK(load_messages(record.conversation, run.number));
  const bool ready = run.state == RunState::queued && run.hold != Hold::session;
  if (behind && ready) {
    run.hold = Hold::session;
    STINT_CHECK(save(row, "loaded"));
  } else if (!behind) {
    STINT_CHECK(promote(run.session));
  }
  return true;
}

}  // namespace stint::store
