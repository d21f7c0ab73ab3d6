// Members of Ledger: record what the owner of a run reports, and its settlement.
#include "domain/budget_core.hpp"
#include "store/errors.hpp"
#include "store/ledger.hpp"
#include "store/moments.hpp"

#include <algorithm>

namespace stint::store {
namespace {

using domain::Hold;
using domain::RunState;
using domain::Settle;

}  // namespace

Result<> Ledger::widen(SetNumber set) {
  STINT_TRY(std::vector<LimitRow> limits, rows_.ramping(set));
  for (LimitRow& limit : limits) {
    limit.ramp = domain::wider_ramp(*limit.ramp, limit.capacity);
    STINT_CHECK(rows_.put(limit));
  }
  return {};
}

Result<RunState> Ledger::settle_row(RunRow& row, Settlement&& settlement) {
  const Settle settle = settlement.settle;
  STINT_TRY(const std::optional<AgentRow> agent, rows_.agent(row.agent));
  if (!agent) return fail(Errc::failed, "the agent of run '" + row.run.id + "' does not exist in the store");
  Run& run = row.run;
  const WallTime at = now();
  const bool park = settle == Settle::park;
  const std::optional<WallTime> park_until =
      settlement.park_for ? std::optional(later(at, *settlement.park_for)) : std::nullopt;
  WallTime again = at;
  if (settle == Settle::retry) {
    again = later(at, settlement.retry_after);
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
  facts.expires_first = domain::used_up({.time = left}, {.time = again - at}).has_value();
  facts.deadline_first =
      park && settlement.park_for && run.deadline && *run.deadline <= later(clock_.wall(), *settlement.park_for);
  const RunState next = domain::after_settle(facts);
  const bool retry = next == RunState::queued && settle == Settle::retry, parked = next == RunState::parked;
  const auto owner = std::exchange(run.node, std::nullopt);
  run.state = next;
  if (!settlement.error.empty() || next == RunState::succeeded) {  // a failure before the success stays in the events
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
  STINT_CHECK(save(row, std::string(to_string(settle)), owner, std::move(settlement.data)));
  if (!settlement.result.empty()) STINT_CHECK(rows_.put_result(run.number, std::move(settlement.result)));
  if (run.finished_at) STINT_CHECK(promote(run.session));
  if (park && !settlement.park_on.empty()) STINT_CHECK(pause(settlement.park_on, settlement.park_for, true));
  if (settle == Settle::succeeded) STINT_CHECK(widen(row.set));
  return next;
}

Result<std::optional<RunState>> Ledger::settle(NodeNumber node, Settlement&& settlement) {
  Result<std::optional<RunRow>> found = find_owned(node, settlement.attempt);
  if (!found) return fail(std::move(found).error());
  if (!*found) return std::nullopt;
  RunRow& row = **found;
  STINT_CHECK(count_use(row, {.tokens = settlement.tokens, .cost_micros = settlement.cost_micros}, 1));
  row.reported = {};
  return settle_row(row, std::move(settlement));
}

Result<bool> Ledger::mark(NodeNumber node, AttemptKey attempt, bool unsafe) {
  STINT_TRY(std::optional<RunRow> row, find_owned(node, attempt));
  if (!row) return false;
  if (row->run.unsafe == unsafe) return true;
  row->run.unsafe = unsafe;
  STINT_CHECK(save(*row, unsafe ? "unsafe" : "safe"));
  return true;
}

Result<bool> Ledger::note(NodeNumber node, AttemptKey attempt, std::string cause, std::string data) {
  STINT_TRY(std::optional<RunRow> row, find_owned(node, attempt));
  if (!row) return false;
  STINT_CHECK(save(*row, std::move(cause), {}, std::move(data)));
  return true;
}

Result<bool> Ledger::append_output(NodeNumber node, AttemptKey attempt, std::string_view text) {
  STINT_TRY(std::optional<RunRow> row, find_owned(node, attempt));
  if (!row) return false;
  STINT_CHECK(rows_.add_output(attempt.run, text));
  return true;
}

Result<bool> Ledger::put_message(NodeNumber node, AttemptKey attempt, const Message& message) {
  STINT_TRY(std::optional<RunRow> row, find_owned(node, attempt));
  if (!row) return false;
  std::uint64_t before = 0;
  if (message.at > 0) {
    STINT_TRY(const std::optional<std::uint64_t> end, rows_.message_end(attempt.run, message.at - 1));
    if (!end) return fail(message_missing(message.at));
    before = *end;
  }
  const std::uint64_t end = before + message.body.size();
  if (end > kConversationMax || message.at >= kMessagesMax) return fail(conversation_too_long());
  STINT_CHECK(rows_.put_message(attempt.run, message, end));
  return true;
}

Result<bool> Ledger::provider_answered(NodeNumber node, AttemptKey attempt) {
  STINT_TRY(std::optional<RunRow> row, find_owned(node, attempt));
  if (!row) return false;
  STINT_CHECK(widen(row->set));
  return true;
}

}  // namespace stint::store
