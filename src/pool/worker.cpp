#include "pool/worker.hpp"

#include "domain/budget_core.hpp"
#include "pool/attempt_context.hpp"
#include "pool/family.hpp"
#include "pool/recorder.hpp"
#include "pool/settlement.hpp"
#include "pool/store_backoff.hpp"
#include "stint/combinators.hpp"

#include <algorithm>
#include <utility>

// The path of a run through a worker:
//
//   claim ─▶ recall ─▶ budget left? ─▶ permits ─▶ plan ─▶ resumable? ─▶ driver ─▶ outcome ─▶ verdict ─▶ store ─▶ events
//            attempt(), prepare()                                       work()               settle()
//
// Invariants
// 1. A run is in `carried_` from its claim until the store has answered its settlement.
// 2. A worker begins the work of a claim at most once, and only if no stop was requested before.
// 3. Permits are released when the work is gone, never before.
// 4. Effects that may be unknown are marked as unknown before the attempt is settled: after a crash between the two,
//    the run is in doubt as well.
// 5. Thousands of frames may wait for their work. What is needed only before or after the work is not kept in them.

namespace stint::pool {
namespace {

using domain::RunState;
using domain::Settle;

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

/// Sorted, each once.
std::vector<std::string> without(std::vector<std::string> names, const std::vector<std::string>& others) {
  std::ranges::sort(names);
  const auto rest = std::ranges::unique(names);
  names.erase(rest.begin(), rest.end());
  std::erase_if(names, [&](const std::string& each) { return std::ranges::find(others, each) != others.end(); });
  return names;
}

/// A stop was requested before the work began.
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
  const bool is_first = claim.fence.value <= 1 && claim.lost == 0;
  if (!is_first) {
    const Result<> recalled = co_await conversations_.recall(claim, assignment.on_crash, carried);
    if (!recalled) co_return not_begun(recalled.error());
  }
  Result<Order> made = order_of(assignment, carried);
  if (!made) co_return not_begun(made.error());
  order = std::move(*made);
  if (!carried.budgets.empty()) {
    const std::string spent = co_await tighten_to_shared(parts_.store, carried, order->left);
    if (!spent.empty()) co_return not_begun(OutcomeKind::over_budget, spent);
  }
  if (const Result<> assigned = assign_permits(assignment, carried, *order); !assigned) {
    co_return not_begun(assigned.error());
  }
  if (carried.is_stopped()) co_return stopped_before(carried);
  co_return co_await plan(carried, *order);
}

/// Makes the order for the driver from the claim and from what earlier attempts left.
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
  if (const auto shared = domain::shared_part(assignment.budget)) carried.budgets.push_back({carried.id, *shared});
  order->after_loss = assignment.claim.lost > 0;
  if (carried.before) order->usage_before = carried.before->usage;
  order->left = domain::left(order->budget, domain::use_of(order->usage_before));
  if (carried.before && carried.before->resumes) {
    order->conversation = carried.before->conversation;
    order->conversation_may_not_exist = carried.conversation_may_not_exist;
    order->interrupted = assignment.claim.lost > 0 ? "the process that carried it was lost" : "it was interrupted";
  }
  carried.usage = order->usage_before;
  carried.trace = order->input.trace;
  return order;
}

/// Records the attempt as the holder of its permits, and hands their descriptors to its processes.
Result<> Worker::assign_permits(Assignment& assignment, const Carried& carried, domain::WorkOrder& order) const {
  if (!assignment.permits) return {};
  const std::string& title = order.input.title;
  STINT_CHECK(assignment.permits->assign(order.mark(), title.empty() ? carried.agent : title));
  order.descriptors = assignment.permits->entrust();
  order.slot = assignment.permits->slot_of(domain::agent_limit(carried.agent));
  return {};
}

Task<Worker::Report> Worker::plan(const Carried& carried, domain::WorkOrder& order) const {
  if (parts_.planner == nullptr) co_return nullptr;
  Result<domain::AttemptSpec> spec = co_await parts_.planner->plan(order);
  if (carried.is_stopped()) co_return stopped_before(carried);
  if (!spec) co_return not_begun(spec.error());
  order.spec = std::move(*spec);
  co_return nullptr;
}

/// Another node can continue the run only from a conversation that the store has: see ConversationRecord.
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
  if (carried.fence.value > 1) {
    co_await recorder.continue_output();
    if (carried.is_stopped()) co_return stopped_before(carried);
  }
  if (Report refusal = co_await make_resumable(assignment, carried, *order, recorder)) co_return refusal;
  const std::string continued = order->conversation;
  AttemptContext context({carried, recorder, parts_.call_limits, assignment.budget, job, conversations_});
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

/// Out of line, to keep the order out of the coroutine frame that waits for the work.
Result<std::unique_ptr<domain::Work>> Worker::begin(Order order, domain::WorkContext& context) const {
  return parts_.driver.begin(std::move(*order), context);
}

/// Runs the work beside the tasks that record its output, watch its budgets and enforce its deadline.
Task<Result<Worker::Report>> Worker::run_work(const Assignment& assignment, Carried& carried, domain::Work& work,
                                              Recorder& recorder, Notification& used) {
  auto body = [&](Scope& scope) -> Task<Result<Report>> {
    Carried::Reachable reachable(carried, work, recorder);
    scope.spawn(recorder.run());
    const bool reports = !carried.budgets.empty() || assignment.reports_use;
    if (reports) scope.spawn(watch_family(parts_.store, carried_, carried, used));
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
  carried.stop(Carried::Stop::expired, "the run's time is used up");
}

/// Permits of work that could not be ended stay held: the next request for them checks whether the work is gone.
void Worker::release_permits(Assignment& assignment, Carried& carried, const domain::WorkReport& report) {
  std::vector<std::string> held = assignment.permits ? assignment.permits->limits() : std::vector<std::string>();
  (report.left ? carried.permits_held : carried.permits_returned) = std::move(held);
  // Those of the store are free when it has the settlement.
  carried.permits_returned.insert(carried.permits_returned.end(), assignment.limits.begin(), assignment.limits.end());
  if (assignment.permits && !report.left) assignment.permits->release();
  assignment.permits.reset();
  carried.work_is_over();
}

/// Decides how the attempt is settled: domain/verdict.hpp, with the retries that its account has left.
domain::Verdict Worker::judge(const Assignment& assignment, const Carried& carried, const domain::WorkReport& report) {
  const Outcome& outcome = report.outcome;
  domain::VerdictFacts facts;
  facts.number = carried.attempt;
  facts.attempts_max = domain::attempts_of(assignment.budget);
  facts.tools_used = report.tools_used;
  facts.on_crash = assignment.on_crash;
  facts.wall_now = parts_.system.wall_now();
  if (carried.effects.has_open_call()) return domain::judge_open_call(outcome);
  const bool handed_back = carried.stopped() == Carried::Stop::handed_back;
  if (handed_back && !report.begun)
    return domain::Verdict{
        .settle = Settle::hand_back, .rule = domain::VerdictRule::handed_back, .why = {}, .park_for = {}};
  if (report.starved || report.conversation_missing) return domain::judge_starved(outcome);
  if (handed_back) return domain::judge_handed_back(outcome, facts);
  if (assignment.account.empty()) return domain::judge(outcome, facts);
  // In an outage, retries stay a fixed share of the requests to the account.
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
    verdict.why += "; previous error: " + carried.error_before;
  }
  // The conversation does not exist: the next attempt must not try to continue it.
  if (report.conversation_missing) (void)co_await conversations_.keep(carried, "");
  store::Settlement settlement = settlement_of(carried.attempt_key(), verdict, report.outcome.usage);
  if (report.begun) {  // otherwise the memo of earlier attempts stays
    domain::RunMemo memo = memo_of(std::move(carried.before), verdict, report);
    memo.permits_returned = without(carried.permits_returned, carried.permits_held);
    memo.permits_held = carried.permits_held;
    settlement.result = parts_.run_codec.write(memo);
  }
  if (verdict.settle == Settle::retry) {
    const Duration wait = backoff(assignment.backoff, carried.attempt, parts_.system.random());
    settlement.retry_after = std::max(settlement.retry_after, wait);
  }
  if (verdict.pauses_account) settlement.park_on = assignment.account;
  if (verdict.rule != domain::VerdictRule::none) {
    const auto record = record_of(verdict, settlement, carried.attempt, domain::attempts_of(assignment.budget));
    settlement.data = parts_.run_codec.write_verdict(record);
  }
  std::optional<RunState> state;
  if (co_await mark_effects(assignment, carried, report, verdict, settlement)) {
    const bool restarts = report.begun && assignment.on_crash == domain::OnCrash::resume && !carried.resumable;
    state = co_await parts_.settler.settle(carried.owner, std::move(settlement),
                                           restarts ? Settler::IfRefused::failed : Settler::IfRefused::lost);
  }
  log_end(carried, verdict, outcome, state);
  count(state);
  parts_.changes.notify(carried.id);
  if (!state || outcome == OutcomeKind::succeeded) co_return Result<>();
  co_return fail(outcome == OutcomeKind::cancelled ? Errc::cancelled : Errc::failed, verdict.why);
}

/// Makes the mark in the store agree with the verdict. False: another node owns the run, do not settle. If the store
/// refuses the mark of unknown effects, the settlement changes so that the run still does not go on by itself.
Task<bool> Worker::mark_effects(const Assignment& assignment, Carried& carried, const domain::WorkReport& report,
                                const domain::Verdict& verdict, store::Settlement& settlement) {
  if (!verdict.in_doubt && !co_await keep_conversation(carried, report, report.outcome.conversation)) {
    co_return !carried.is_fenced();  // the mark stays: the run ends, or goes in doubt instead of going on
  }
  if (carried.is_fenced()) co_return false;
  if (carried.effects.is_unknown() == verdict.in_doubt) co_return true;
  const Result<bool> marked = co_await carried.effects.set(verdict.in_doubt);
  if (marked) co_return *marked;
  if (verdict.in_doubt) {
    settlement.settle = assignment.on_crash == domain::OnCrash::doubt ? Settle::lost : Settle::failed;
    settlement.error += (settlement.error.empty() ? "" : "; ") +
                        std::string("its effects are unknown, and the store ") +
                        "refused to record that: " + printable_reason(marked.error());
  }
  co_return true;
}

/// The mark of an attempt with effects is cleared only when its conversation is stored: a crash of this node between
/// the two would start the run from the beginning. False: the conversation could not be stored.
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
  parts_.log.write(domain::LogLevel::warning, "output dropped: the store accepted no writes for too long",
                   {{"run", carried.id},
                    domain::LogField::number("attempt", std::to_string(carried.attempt)),
                    domain::LogField::number("bytes", std::to_string(recorder.bytes_dropped())),
                    domain::LogField::number("notes", std::to_string(recorder.notes_left_out()))});
}

void Worker::log_begin(const Carried& carried) const {
  if (!parts_.log.is_enabled(domain::LogLevel::info)) return;
  parts_.log.write(domain::LogLevel::info, "run begun",
                   {{"run", carried.id},
                    domain::LogField::number("attempt", std::to_string(carried.attempt)),
                    {"agent", carried.agent},
                    {"worker", carried.worker},
                    {"trace", carried.trace}});
}

/// No state: another node owns the run, or the settlement could not be recorded.
void Worker::log_end(const Carried& carried, const domain::Verdict& verdict, OutcomeKind outcome,
                     std::optional<RunState> state) const {
  const bool well = state && *state != RunState::failed && *state != RunState::in_doubt;
  const domain::LogLevel level = well ? domain::LogLevel::info : domain::LogLevel::warning;
  if (!parts_.log.is_enabled(level)) return;
  parts_.log.write(level, "attempt ended",
                   {{"run", carried.id},
                    domain::LogField::number("attempt", std::to_string(carried.attempt)),
                    {"agent", carried.agent},
                    {"state", std::string(state                     ? to_string(*state)
                                          : parts_.health.gave_up() ? "not recorded"
                                                                    : "taken by another node")},
                    {"outcome", std::string(to_string(outcome))},
                    {"why", outcome == OutcomeKind::succeeded ? std::string() : verdict.why},
                    {"trace", carried.trace}});
}

}  // namespace stint::pool
