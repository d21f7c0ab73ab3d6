#include "pool/worker.hpp"

#include "pool/attempt_context.hpp"
#include "pool/back_off.hpp"
#include "pool/family.hpp"
#include "pool/recorder.hpp"
#include "pool/settlement.hpp"
#include "stint/combinators.hpp"

#include <algorithm>
#include <utility>

// The way of a run through a worker:
//
//   claim ─▶ recall ─▶ budget left? ─▶ permits ─▶ plan ─▶ resumable? ─▶ driver ─▶ outcome ─▶ verdict ─▶ store ─▶ events
//            attempt(), prepare()                                       work()               settle()
//
// Invariants
// 1. A run is in `carried_` from the claim until the store has answered what became of it.
// 2. Work is begun at most once for a claim, and only if no stop was requested before.
// 3. Permits are given back when the work is gone, never before.
// 4. Effects that may be unknown are marked so before the attempt is settled: a crash between the two finds the run in
//    doubt as well.
// 5. Thousands may wait for their work: what is needed only before or after it has no room in the frames that wait.

namespace stint::pool {
namespace {

using domain::RunState;
using domain::Settle;

constexpr std::uint32_t kAttemptsDefault = 3;

std::unique_ptr<domain::WorkReport> not_begun(OutcomeKind kind, std::string message) {
  auto report = std::make_unique<domain::WorkReport>();
  report->begun = false;
  report->outcome.kind = kind;
  report->outcome.message = std::move(message);
  return report;
}

std::unique_ptr<domain::WorkReport> not_begun(const Error& error) {
  auto report = not_begun(OutcomeKind::agent_error, error.describe());
  report->starved = error == Errc::exhausted && error.retry() == Retry::safe;
  return report;
}

/// The stop came before the work could begin.
std::unique_ptr<domain::WorkReport> stopped_before(const Carried& carried) {
  return not_begun(outcome_of(carried.stopped()), carried.stop_text());
}

}  // namespace

std::unique_ptr<Carried> Worker::take(store::NodeNumber owner, const store::Claim& claim) {
  return std::make_unique<Carried>(Carried::Parts{carried_, parts_.store, parts_.health}, owner, claim);
}

Task<Result<>> Worker::carry(std::unique_ptr<Assignment> assignment, JobContext& job) {
  Carried& carried = *assignment->carried;
  carried.worker = to_string(job.worker());
  parts_.changes.notify(carried.id, events::Changes::Kind::progress);
  const Report report = co_await attempt(*assignment, carried, job);
  release_permits(*assignment, carried, *report);
  co_return co_await settle(*assignment, carried, *report);
}

Task<Worker::Report> Worker::attempt(Assignment& assignment, Carried& carried, JobContext& job) {
  Order order;
  if (Report refusal = co_await prepare(assignment, carried, order)) co_return refusal;
  log_begin(carried);
  co_return co_await work(assignment, carried, std::move(order), job);
}

Task<Worker::Report> Worker::prepare(Assignment& assignment, Carried& carried, Order& order) {
  const store::Claim& claim = assignment.claim;
  const bool is_first = claim.fence <= 1 && claim.lost == 0;
  if (!is_first) {
    const Result<> recalled = co_await conversations_.recall(claim, assignment.on_crash, carried);
    if (!recalled) co_return not_begun(recalled.error());
  }
  Result<Order> made = order_of(assignment, carried);
  if (!made) co_return not_begun(made.error());
  if (!carried.budgets.empty()) {
    const std::string nothing_left = co_await why_nothing_is_left(parts_.store, carried);
    if (!nothing_left.empty()) co_return not_begun(OutcomeKind::over_budget, nothing_left);
  }
  order = std::move(*made);
  if (const Result<> entrusted = entrust_permits(assignment, carried, *order); !entrusted) {
    co_return not_begun(entrusted.error());
  }
  if (carried.is_stopped()) co_return stopped_before(carried);
  const Result<> planned = plan(*order);
  co_return planned ? nullptr : not_begun(planned.error());
}

Result<Worker::Order> Worker::order_of(Assignment& assignment, Carried& carried) const {
  auto order = std::make_unique<domain::WorkOrder>();
  STINT_TRY(order->input, parts_.run_codec.read_input(std::exchange(assignment.claim.input, {})));
  order->run = carried.id;
  order->fence = carried.fence;
  order->attempt = carried.attempt;
  order->agent = carried.agent;
  assignment.budget = order->input.budget.or_else(assignment.budget);
  order->budget = assignment.budget;
  carried.budgets = order->input.budgets_above;
  if (assignment.budget.tokens || assignment.budget.cost_micros) {
    carried.budgets.push_back({carried.id, assignment.budget});
  }
  order->after_loss = assignment.claim.lost > 0;
  if (carried.before) order->usage_before = carried.before->usage;
  if (carried.before && carried.before->resumes) {
    order->conversation = carried.before->conversation;
    order->may_be_unknown = carried.conversation_may_miss;
    order->interrupted = assignment.claim.lost > 0 ? "the process that carried it was lost" : "it was interrupted";
  }
  carried.usage = order->usage_before;
  carried.trace = order->input.trace;
  return order;
}

Result<> Worker::entrust_permits(Assignment& assignment, const Carried& carried, domain::WorkOrder& order) const {
  if (!assignment.permits) return {};
  const std::string& title = order.input.title;
  STINT_CHECK(assignment.permits->assign(order.mark(), title.empty() ? carried.agent : title));
  order.descriptors = assignment.permits->entrust();
  order.slot = assignment.permits->slot_of(domain::agent_limit(carried.agent));
  return {};
}

Result<> Worker::plan(domain::WorkOrder& order) const {
  if (parts_.planner == nullptr) return {};
  STINT_TRY(order.spec, parts_.planner->plan(order));
  return {};
}

/// Until its conversation is stored, no other node could continue it.
Task<Worker::Report> Worker::make_resumable(const Assignment& assignment, Carried& carried, domain::WorkOrder& order,
                                            Recorder& recorder) {
  carried.resumable = !order.conversation.empty();
  if (assignment.on_crash != domain::OnCrash::resume || carried.resumable) co_return nullptr;
  const Result<bool> ours =
      co_await conversations_.make_resumable(carried, parts_.driver.choose_conversation(order), order, recorder);
  if (!ours) co_return not_begun(ours.error());
  if (!*ours && !carried.is_stopped()) carried.stop(Carried::Stop::fenced, "another node has taken the run");
  co_return carried.is_stopped() ? stopped_before(carried) : nullptr;
}

Task<Worker::Report> Worker::work(Assignment& assignment, Carried& carried, Order order, JobContext& job) {
  Recorder recorder(parts_.store, parts_.health, parts_.run_codec, parts_.changes, carried.owner, assignment.claim,
                    [&carried] { return carried.is_fenced(); });
  if (!assignment.account.empty()) recorder.watch_for_answer();
  if (Report refusal = co_await make_resumable(assignment, carried, *order, recorder)) co_return refusal;
  const std::string continued = order->conversation;
  AttemptContext context({carried, recorder, parts_.call_limits, assignment.budget, job});
  auto work = begin(std::move(order), context);
  if (!work) co_return not_begun(work.error());
  recorder.on_full([&](bool full) { (*work)->hold(full); });
  auto report = co_await run_work(assignment, carried, **work, recorder, context.used());
  counts_.notes_left_out += recorder.notes_left_out();
  if (recorder.bytes_dropped() > 0) log_dropped(carried, recorder);
  if (!report) co_return carried.is_stopped() ? stopped_before(carried) : not_begun(report.error());
  std::string& last = (*report)->outcome.conversation;
  if (last.empty()) last = recorder.conversation().empty() ? continued : recorder.conversation();
  co_return std::move(*report);
}

/// Out of line: the order would need room in the frame that waits for the work.
Result<std::unique_ptr<domain::Work>> Worker::begin(Order order, domain::WorkContext& context) const {
  return parts_.driver.begin(std::move(*order), context);
}

/// The work, with all that watches over it.
Task<Result<Worker::Report>> Worker::run_work(const Assignment& assignment, Carried& carried, domain::Work& work,
                                              Recorder& recorder, Notification& used) {
  auto body = [&](Scope& scope) -> Task<Result<Report>> {
    Carried::Reachable reachable(carried, work, recorder);
    scope.spawn(recorder.run());
    if (!carried.budgets.empty()) scope.spawn(watch_family(parts_.store, carried_, carried, used));
    if (assignment.claim.left) scope.spawn(end_at(carried, scope.executor().now() + *assignment.claim.left));
    Result<Report> report = co_await work.run();
    reachable.work_has_ended();
    co_await recorder.flush();
    scope.cancel();
    co_return report;
  };
  co_return co_await with_scope(std::ref(body));
}

Task<> Worker::end_at(Carried& carried, TimePoint deadline) {
  co_await sleep_until(deadline);
  carried.stop(Carried::Stop::expired, "its time is used up");
}

/// Permits whose work could not be ended stay taken: the next request for them finds out whether it is gone.
void Worker::release_permits(Assignment& assignment, Carried& carried, const domain::WorkReport& report) {
  if (assignment.permits && !report.left) assignment.permits->release();
  assignment.permits.reset();
  carried.work_is_over();
}

domain::Verdict Worker::judge(const Assignment& assignment, const Carried& carried, const domain::WorkReport& report) {
  const Outcome& outcome = report.outcome;
  domain::VerdictFacts facts;
  facts.number = carried.attempt;
  facts.attempts_max = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(assignment.budget.attempts.value_or(kAttemptsDefault), 1, 1000));
  facts.tools_used = report.tools_used;
  facts.on_crash = assignment.on_crash;
  facts.wall_now = parts_.system.wall_now();
  if (carried.effects.has_open_call()) return domain::judge_open_call(outcome);
  const bool handed_back = carried.stopped() == Carried::Stop::handed_back;
  if (handed_back && !report.begun) return domain::Verdict{.settle = Settle::hand_back, .why = {}, .park_for = {}};
  if (report.starved || report.never_began) return domain::judge_starved(outcome);
  if (handed_back) return domain::judge_handed_back(outcome, facts);
  if (assignment.account.empty()) return domain::judge(outcome, facts);
  // In an outage, retries stay a fixed share of what the account is asked.
  RetryTokens& retries = retries_[assignment.account];
  if (outcome.kind == OutcomeKind::succeeded) retries.succeeded();
  std::optional<RetryTokens::Token> token;
  if (outcome.kind == OutcomeKind::api_error) token = retries.take();
  facts.retries_used_up = outcome.kind == OutcomeKind::api_error && !token;
  domain::Verdict verdict = domain::judge(outcome, facts);
  if (token && verdict.settle == Settle::retry && !verdict.in_doubt) token->spend();
  return verdict;
}

Task<Result<>> Worker::settle(const Assignment& assignment, Carried& carried, domain::WorkReport& report) {
  const OutcomeKind outcome = report.outcome.kind;
  domain::Verdict verdict = judge(assignment, carried, report);
  if (verdict.settle == Settle::expired && !carried.error_before.empty()) {
    verdict.why += "; the error before that: " + carried.error_before;
  }
  // So that the next attempt does not look for it again.
  if (report.never_began) (void)co_await conversations_.keep(carried, "");
  store::Settlement settlement = settlement_of({carried.run, carried.fence}, verdict, report.outcome.usage);
  if (report.begun) {  // else what earlier attempts left stands
    settlement.result = parts_.run_codec.write(memo_of(std::move(carried.before), verdict, report));
  }
  if (verdict.pauses_account) settlement.park_on = assignment.account;
  std::optional<RunState> state;
  if (co_await mark_effects(assignment, carried, report, verdict, settlement)) {
    const bool anew = report.begun && assignment.on_crash == domain::OnCrash::resume && !carried.resumable;
    state = co_await parts_.settler.settle(carried.owner, std::move(settlement),
                                           anew ? Settler::IfRefused::failed : Settler::IfRefused::lost);
  }
  log_end(carried, verdict, outcome, state);
  count(state);
  parts_.changes.notify(carried.id);
  if (!state || outcome == OutcomeKind::succeeded) co_return Result<>();
  co_return fail(outcome == OutcomeKind::cancelled ? Errc::cancelled : Errc::failed, verdict.why);
}

/// False: another node has the run, and goes by what the store knows. If unknown effects can't be marked, the run must
/// not go on by itself all the same.
Task<bool> Worker::mark_effects(const Assignment& assignment, Carried& carried, const domain::WorkReport& report,
                                const domain::Verdict& verdict, store::Settlement& settlement) {
  if (!verdict.in_doubt && !co_await keep_conversation(carried, report, report.outcome.conversation)) {
    co_return !carried.is_fenced();  // it stays marked: the run ends as it did, or is in doubt
  }
  if (carried.is_fenced()) co_return false;
  if (carried.effects.is_unknown() == verdict.in_doubt) co_return true;
  const Result<bool> marked = co_await carried.effects.set(verdict.in_doubt);
  if (marked) co_return *marked;
  if (verdict.in_doubt) {
    settlement.settle = assignment.on_crash == domain::OnCrash::doubt ? Settle::lost : Settle::failed;
    settlement.error += (settlement.error.empty() ? "" : "; ") + std::string("what it did is unknown, and the store ") +
                        "refused to mark it so: " + plain_words(marked.error());
  }
  co_return true;
}

/// An attempt with effects is marked as known only when its conversation is stored: a loss between the two would begin
/// the run anew. False: it can't be.
Task<bool> Worker::keep_conversation(Carried& carried, const domain::WorkReport& report,
                                     const std::string& conversation) {
  const bool needed = carried.effects.is_unknown() && report.begun && report.tools_used && !carried.resumable;
  if (!needed) co_return true;
  carried.resumable = !conversation.empty() && co_await conversations_.keep(carried, conversation);
  co_return carried.resumable;
}

void Worker::count(std::optional<RunState> state) {
  if (state) {
    ++counts_.settled[*state];
  } else {
    ++(parts_.health.gave_up() ? counts_.unrecorded : counts_.stale);
  }
}

void Worker::log_dropped(const Carried& carried, const Recorder& recorder) const {
  parts_.log.say(domain::LogLevel::warning, "output dropped: the store took nothing for too long",
                 {{"run", carried.id},
                  domain::LogField::number("attempt", std::to_string(carried.attempt)),
                  domain::LogField::number("bytes", std::to_string(recorder.bytes_dropped())),
                  domain::LogField::number("notes", std::to_string(recorder.notes_left_out()))});
}

void Worker::log_begin(const Carried& carried) const {
  if (!parts_.log.hears(domain::LogLevel::info)) return;
  parts_.log.say(domain::LogLevel::info, "run begun",
                 {{"run", carried.id},
                  domain::LogField::number("attempt", std::to_string(carried.attempt)),
                  {"agent", carried.agent},
                  {"worker", carried.worker},
                  {"trace", carried.trace}});
}

/// No state: another node has the run, or it could not be recorded.
void Worker::log_end(const Carried& carried, const domain::Verdict& verdict, OutcomeKind outcome,
                     std::optional<RunState> state) const {
  const bool well = state && *state != RunState::failed && *state != RunState::in_doubt;
  const domain::LogLevel level = well ? domain::LogLevel::info : domain::LogLevel::warning;
  if (!parts_.log.hears(level)) return;
  parts_.log.say(level, "attempt ended",
                 {{"run", carried.id},
                  domain::LogField::number("attempt", std::to_string(carried.attempt)),
                  {"agent", carried.agent},
                  {"state", std::string(state                     ? to_string(*state)
                                        : parts_.health.gave_up() ? "not recorded"
                                                                  : "taken by others")},
                  {"outcome", std::string(to_string(outcome))},
                  {"why", outcome == OutcomeKind::succeeded ? std::string() : verdict.why},
                  {"trace", carried.trace}});
}

}  // namespace stint::pool
