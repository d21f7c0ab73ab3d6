#include "pool/settlement.hpp"

#include <utility>

namespace stint::pool {

store::Settlement settlement_of(store::AttemptKey attempt, const domain::Verdict& verdict, const Usage& usage) {
  store::Settlement settlement;
  settlement.attempt = attempt;
  settlement.settle = verdict.settle;
  settlement.error = verdict.why;
  settlement.tokens = usage.tokens();
  settlement.cost_micros = usage.cost_micros;
  settlement.retry_after = verdict.retry_after;
  settlement.park_for = verdict.park_for;
  return settlement;
}

domain::VerdictRecord record_of(const domain::Verdict& verdict, const store::Settlement& settlement,
                                std::uint32_t attempt, std::uint32_t attempts_max) {
  domain::VerdictRecord record;
  record.rule = verdict.rule;
  record.attempt = attempt;
  record.attempts_max = attempts_max;
  record.limit = settlement.park_on;
  record.resumes = verdict.resumes;
  if (verdict.in_doubt) return record;
  if (settlement.settle == domain::Settle::retry) record.after = settlement.retry_after;
  if (settlement.settle == domain::Settle::park) record.after = settlement.park_for;
  return record;
}

domain::RunMemo memo_of(std::unique_ptr<domain::RunMemo> before, const domain::Verdict& verdict,
                        domain::WorkReport& report) {
  Outcome& outcome = report.outcome;
  domain::RunMemo memo;
  if (before) memo = std::move(*before);
  memo.usage += outcome.usage;
  memo.text = std::move(outcome.text);
  memo.conversation = outcome.conversation;
  memo.resumes = verdict.resumes;
  memo.denials = std::move(outcome.denials);
  memo.last = outcome.kind;
  memo.processes_ended = report.processes_ended;
  memo.streams_closed = report.streams_closed;
  memo.ending = report.ending;
  return memo;
}

}  // namespace stint::pool
