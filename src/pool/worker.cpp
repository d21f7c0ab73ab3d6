#include "pool/worker.hpp"

#include "pool/family.hpp"
#include "pool/persist.hpp"
#include "pool/recorder.hpp"
#include "stint/combinators.hpp"

#include <algorithm>
#include <limits>
#include <utility>

// Invariants
// 1. A run is in `carried_` from the claim until the store has answered what became of it.
// 2. Work is begun at most once for a claim, and only if nobody has asked it to stop before.
// 3. Permits are given back when the work is gone, never before.
// 4. Effects that may be unknown are said to be so before the attempt is settled: a crash between the two finds the
//    run in doubt as well.
// 5. Thousands may wait for their work: what is needed only before or after it has no room in the frames that wait.

namespace stint::pool {
namespace {

using domain::RunState;
using domain::Settle;

constexpr std::uint32_t kAttemptsDefault = 3;
constexpr std::uint32_t kNotesPage = 500;
constexpr Duration kFamilyLook = std::chrono::seconds(1);

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

/// Whether the store has it now: from then on a loss of this process does no harm. Not while `gives_up` says so.
Task<bool> keep_note(store::Store& store, StoreHealth& health, const Carried& carried, std::string cause,
                     std::string data, bool (*gives_up)(const Carried&)) {
  Patience patience;
  while (!gives_up(carried)) {
    const auto kept = co_await store.note(carried.owner, carried.run, carried.fence, cause, data);
    if (kept) co_return *kept;
    if (!Patience::may_ask_again(kept.error()) && !Patience::is_before_a_beat(kept.error())) break;
    const bool stays = co_await patience.wait(health);
    if (!stays) break;
  }
  co_return false;
}

bool is_fenced(const Carried& carried) { return carried.stopped() == Carried::Stop::fenced; }
bool is_stopped(const Carried& carried) { return carried.stopped() != Carried::Stop::none; }

OutcomeKind outcome_of(Carried::Stop stop) {
  return stop == Carried::Stop::expired ? OutcomeKind::over_budget : OutcomeKind::cancelled;
}

}  // namespace

Carried::Carried(Worker& worker, store::WorkerNumber by, const store::Claim& claim)
    : id(claim.id),
      agent(claim.agent),
      owner(by),
      run(claim.run),
      fence(claim.fence),
      attempt(claim.attempt),
      worker_(worker) {
  const bool fresh = worker_.carried_.emplace(Worker::Key(id, fence), this).second;
  STINT_ASSERT(fresh && "an attempt is carried once");
  worker_.moved_.ring();
}

Carried::~Carried() {
  worker_.carried_.erase({id, fence});
  worker_.moved_.ring();
}

void Carried::stop(Stop why, std::string text) {
  const bool first = stop_ == Stop::none;
  if (first || why == Stop::fenced) {
    stop_ = why;
    stop_text_ = text;
  }
  if (recorder_ != nullptr) recorder_->hurry();
  if (work_ == nullptr) return;
  work_->end(outcome_of(why), text);
  if (first && why == Stop::fenced) work_->end(outcome_of(why), std::move(text));  // there is no time to be polite
}

Carried* Worker::find(std::string_view id) const {
  const auto after = carried_.upper_bound({id, std::numeric_limits<std::int64_t>::max()});
  if (after == carried_.begin()) return nullptr;
  Carried* const last = std::prev(after)->second;
  return last->id == id ? last : nullptr;
}

std::unique_ptr<Carried> Worker::take(store::WorkerNumber owner, const store::Claim& claim) {
  return std::make_unique<Carried>(*this, owner, claim);
}

Task<Result<>> Worker::carry(std::unique_ptr<Assignment> assignment, JobContext& job) {
  Carried& carried = *assignment->carried;
  carried.worker = to_string(job.worker());
  parts_.changes.tell(carried.id, events::Changes::Kind::on_its_way);
  const Report report = co_await attempt(*assignment, carried, job);
  // Permits whose work could not be ended stay taken: the next to ask for them finds out whether it is gone.
  if (assignment->permits && !report->left) assignment->permits->release();
  assignment->permits.reset();
  carried.work_over_ = true;
  moved_.ring();
  co_return co_await settle(*assignment, carried, *report);
}

/// What earlier attempts left: a conversation that was under way when its worker died is in the notes only.
Task<Result<>> Worker::recall(const Assignment& assignment, Carried& carried) {
  const store::Claim& claim = assignment.claim;
  carried.before_ = std::make_unique<domain::RunMemo>();
  domain::RunMemo& memo = *carried.before_;
  STINT_CO_TRY(const auto run, co_await parts_.store.find(claim.id));
  if (run) carried.error_before_ = run->error;
  if (run && !run->result.empty()) {
    STINT_CO_TRY(memo, parts_.scribe.read_memo(run->result));
  }
  const bool may_resume = memo.resumes || claim.lost > 0;
  if (!may_resume || assignment.on_crash == domain::OnCrash::rerun) co_return Result<>();
  std::int64_t after = 0;
  while (true) {
    STINT_CO_TRY(const auto page, co_await parts_.store.events(claim.id, after, kNotesPage));
    for (const store::Event& event : page) {
      if (event.cause == kNoteConversation || event.cause == kNoteChosen) {
        memo.conversation = parts_.scribe.read_note(event.data);
        carried.unconfirmed_ = event.cause == kNoteChosen;
      }
      after = event.seq;
    }
    if (page.size() < kNotesPage) break;
  }
  memo.resumes = !memo.conversation.empty();
  co_return Result<>();
}

/// Apart, and not a part of any frame: the run waits for long, and needs it no more.
Result<std::unique_ptr<domain::WorkOrder>> Worker::order_of(Assignment& assignment, Carried& carried) const {
  auto order = std::make_unique<domain::WorkOrder>();
  STINT_TRY(order->input, parts_.scribe.read_input(std::exchange(assignment.claim.input, {})));
  order->run = carried.id;
  order->fence = carried.fence;
  order->attempt = carried.attempt;
  order->agent = carried.agent;
  assignment.budget = order->input.budget.or_else(assignment.budget);
  order->budget = assignment.budget;
  carried.budgets_ = order->input.budgets_above;
  if (assignment.budget.tokens || assignment.budget.money_micros) {
    carried.budgets_.push_back({carried.id, assignment.budget});
  }
  order->after_loss = assignment.claim.lost > 0;
  if (carried.before_) order->usage_before = carried.before_->usage;
  if (carried.before_ && carried.before_->resumes) {
    order->conversation = carried.before_->conversation;
    order->may_be_unknown = carried.unconfirmed_;
    order->interrupted = assignment.claim.lost > 0 ? "the process that carried it was lost" : "it was interrupted";
  }
  carried.usage = order->usage_before;
  carried.trace_ = order->input.trace;
  return order;
}

Task<Worker::Report> Worker::attempt(Assignment& assignment, Carried& carried, JobContext& job) {
  Patience patience;
  const bool is_first = assignment.claim.fence <= 1 && assignment.claim.lost == 0;
  while (!is_first) {
    const Result<> recalled = co_await recall(assignment, carried);
    if (recalled) break;
    if (!Patience::may_ask_again(recalled.error()) || carried.stopped() != Carried::Stop::none) {
      co_return not_begun(recalled.error());
    }
    if (!co_await patience.wait(parts_.health)) co_return not_begun(recalled.error());
  }
  Result<std::unique_ptr<domain::WorkOrder>> order = order_of(assignment, carried);
  if (!order) co_return not_begun(order.error());
  if (!carried.budgets_.empty()) {
    const std::string nothing_left = co_await why_nothing_is_left(carried);
    if (!nothing_left.empty()) co_return not_begun(OutcomeKind::over_budget, nothing_left);
  }
  log_begin(carried);
  co_return co_await work(assignment, carried, std::move(*order), job);
}

/// Others may have used up what it was to draw on while it waited. What can't be told now is watched while it works.
Task<std::string> Worker::why_nothing_is_left(const Carried& carried) {
  std::vector<std::string> heads;
  for (const auto& above : carried.budgets_) {
    const bool untouched = above.run == carried.id && carried.fence <= 1;  // nothing of its own can have begun
    if (!untouched) heads.push_back(above.run);
  }
  if (heads.empty()) co_return "";
  const auto sums = co_await parts_.store.used(std::move(heads));
  if (!sums) co_return "";
  for (const auto& above : carried.budgets_) {
    const auto sum = std::ranges::find(*sums, above.run, &store::FamilyUse::head);
    if (sum != sums->end() && leaves_nothing(sum->used, above.budget)) {
      co_return "nothing is left of the budget of '" + above.run + "', with all that is below it";
    }
  }
  co_return "";
}

/// Apart for the same reason: the order would have room in the frame of who calls the driver.
Result<std::unique_ptr<domain::Work>> Worker::begin(std::unique_ptr<domain::WorkOrder> order,
                                                    domain::Work::Listener listener) const {
  return parts_.driver.begin(std::move(*order), std::move(listener));
}

/// The stop came before the work could begin.
Worker::Report Worker::stopped_before(const Carried& carried) {
  return not_begun(outcome_of(carried.stopped()), carried.stop_text_);
}

/// The driver's part, with all that watches over it.
Task<Worker::Report> Worker::work(Assignment& assignment, Carried& carried, std::unique_ptr<domain::WorkOrder> order,
                                  JobContext& job) {
  if (assignment.permits) {
    const auto assigned =
        assignment.permits->assign(order->mark(), order->input.title.empty() ? carried.agent : order->input.title);
    if (!assigned) co_return not_begun(assigned.error());
    order->descriptors = assignment.permits->entrust();
    order->slot = assignment.permits->slot_of(domain::agent_limit(carried.agent));
  }
  Recorder recorder(parts_.store, parts_.health, parts_.scribe, parts_.changes, carried.owner, assignment.claim,
                    [&carried] { return carried.stopped() == Carried::Stop::fenced; });
  if (!assignment.account.empty()) recorder.watch_for_answer();
  const auto used = carried.budgets_.empty() ? nullptr : std::make_unique<Bell>();
  auto listener = [&](const domain::WorkNews& news) {
    job.beat();
    recorder.hear(news);
    if (news.kind != domain::WorkNews::Kind::usage) return;
    carried.usage = carried.before_ ? carried.before_->usage : Usage();
    carried.usage += news.usage;
    watch_budget(carried, carried.usage, assignment.budget);
    if (used) used->ring();
  };
  const std::string conversation = order->conversation;
  carried.resumable_ = !conversation.empty();
  if (carried.stopped() != Carried::Stop::none) co_return stopped_before(carried);
  // Until its conversation is kept somewhere, nobody could take it up again.
  if (assignment.on_crash == domain::OnCrash::resume && conversation.empty()) {
    const Result<bool> ours = co_await make_resumable(carried, *order, recorder);
    if (!ours) co_return not_begun(ours.error());
    if (!*ours && !is_stopped(carried)) carried.stop(Carried::Stop::fenced, "others have taken it");
    if (!*ours || is_stopped(carried)) co_return stopped_before(carried);
  }
  auto work = begin(std::move(order), listener);
  if (!work) co_return not_begun(work.error());
  recorder.on_full([&](bool full) { (*work)->hold(full); });
  auto body = [&](Scope& scope) -> Task<Result<Report>> {
    struct Reachable {
      Carried& carried;
      ~Reachable() {
        carried.work_ = nullptr;
        carried.recorder_ = nullptr;
      }
    };
    carried.work_ = work->get();
    carried.recorder_ = &recorder;
    const Reachable reachable{carried};
    // Somebody may have asked while nobody could be reached.
    if (carried.stopped() != Carried::Stop::none) (*work)->end(outcome_of(carried.stopped()), carried.stop_text_);
    scope.spawn(recorder.run());
    if (used) scope.spawn(watch_family(carried, *used));
    if (assignment.claim.left) scope.spawn(end_at(carried, scope.executor().now() + *assignment.claim.left));
    Result<Report> report = co_await (*work)->run();
    carried.work_ = nullptr;
    co_await recorder.flush();
    scope.cancel();
    co_return report;
  };
  auto report = co_await with_scope(std::ref(body));
  counts_.notes_left_out += recorder.notes_left_out();
  if (recorder.bytes_dropped() > 0) log_dropped(carried, recorder);
  if (!report) {
    co_return carried.stopped() == Carried::Stop::none ? not_begun(report.error()) : stopped_before(carried);
  }
  std::string& last = (*report)->outcome.conversation;
  if (last.empty()) last = recorder.conversation().empty() ? conversation : recorder.conversation();
  co_return std::move(*report);
}

/// Where the id of its conversation can be chosen, the store has it before anything starts; else effects are called
/// unknown until the agent has told it. False: others have the run.
Task<Result<bool>> Worker::make_resumable(Carried& carried, domain::WorkOrder& order, Recorder& recorder) {
  std::string chosen = parts_.driver.choose_conversation(order);
  if (!chosen.empty()) {
    std::string data = parts_.scribe.write_note(chosen);
    carried.resumable_ =
        co_await keep_note(parts_.store, parts_.health, carried, std::string(kNoteChosen), std::move(data), is_stopped);
    if (carried.resumable_) order.new_conversation = std::move(chosen);
    if (carried.resumable_ || is_stopped(carried)) co_return true;
  }
  const Result<bool> ours = co_await mark(carried, true, TimePoint::max());
  if (!ours || !*ours) co_return ours;
  auto kept = [this, &carried]() -> Task<> {
    carried.resumable_ = true;
    (void)co_await mark(carried, false, parts_.health.now() + Recorder::kRefusedMax);
  };
  recorder.on_conversation_kept(kept);
  co_return true;
}

/// False: others have it, or it could not be said in time. Fails if the store refuses it for good. `until`: then, or
/// when the run is told to stop, it is not said any more; none: as long as the process does not leave.
Task<Result<bool>> Worker::mark(Carried& carried, bool unsafe, std::optional<TimePoint> until) {
  using Stop = Carried::Stop;
  if (carried.unsafe_ == unsafe) co_return true;
  Patience patience;
  const auto may_wait = [&] {
    if (!until) return carried.stopped() != Stop::fenced;
    return carried.stopped() == Stop::none && parts_.health.now() < *until;
  };
  do {
    const auto marked = co_await parts_.store.mark(carried.owner, carried.run, carried.fence, unsafe);
    if (marked) {
      if (*marked) carried.unsafe_ = unsafe;
      co_return *marked;
    }
    if (marked.error().retry() != Retry::safe) carried.unsafe_ = true;  // it may be
    const bool again = Patience::may_ask_again(marked.error());
    if (!again && !Patience::is_before_a_beat(marked.error())) co_return marked;
    if (again) parts_.health.heard(StoreHealth::Call::write, marked);
    const bool stays = co_await patience.wait(parts_.health);
    if (!stays) break;
  } while (may_wait());
  co_return false;
}

/// False: others have the run. If what is unknown can't be said, the run must not go on by itself all the same.
Task<bool> Worker::mark_before_settling(Carried& carried, const Assignment& assignment, const domain::Verdict& verdict,
                                        store::Settlement& settlement) {
  if (carried.stopped() == Carried::Stop::fenced) co_return false;
  if (carried.unsafe_ == verdict.in_doubt) co_return true;
  const Result<bool> marked = co_await mark(carried, verdict.in_doubt, std::nullopt);
  if (marked) co_return *marked;
  if (verdict.in_doubt) {
    settlement.settle = assignment.on_crash == domain::OnCrash::doubt ? Settle::lost : Settle::failed;
    settlement.error += (settlement.error.empty() ? "" : "; ") + std::string("what it did is unknown, and the store ") +
                        "refused to mark it so: " + plain_words(marked.error());
  }
  co_return true;
}

Task<> Worker::end_at(Carried& carried, TimePoint deadline) {
  co_await sleep_until(deadline);
  carried.stop(Carried::Stop::expired, "its time is used up");
}

void Worker::watch_budget(Carried& carried, const Usage& usage, const domain::BudgetSpec& budget) {
  const std::string what = used_up({.tokens = usage.tokens(), .money_micros = usage.money_micros}, budget);
  if (!what.empty() && carried.stopped() == Carried::Stop::none) {
    carried.stop(Carried::Stop::expired, "the budget's " + what);
  }
}

/// What is below a run draws on its budget as well, wherever it is carried: each attempt reports its use to the store,
/// which adds it up, and hears what all have used. At most one report each kFamilyLook, and one after the last use.
Task<> Worker::watch_family(Carried& carried, Bell& used) {
  bool heard = true;  // what was used last is reported
  for (std::uint64_t seen = used.rings();; co_await sleep_for(kFamilyLook)) {
    if (heard) co_await used.hear(seen);
    seen = used.rings();
    const Usage before = carried.before_ ? carried.before_->usage : Usage();
    const auto sums = co_await parts_.store.report(carried.owner, carried.run, carried.fence,
                                                   {.tokens = carried.usage.tokens() - before.tokens(),
                                                    .money_micros = carried.usage.money_micros - before.money_micros});
    heard = sums.has_value();
    if (!heard || !*sums) continue;  // asked again, or stale
    for (const auto& above : carried.budgets_) {
      const auto sum = std::ranges::find(**sums, above.run, &store::FamilyUse::head);
      if (sum == (*sums)->end()) continue;
      const std::string what = used_up(sum->used, above.budget);
      if (!what.empty()) end_family(above.run, what);
    }
  }
}

void Worker::end_family(const std::string& head, const std::string& what) {
  for (const auto& [key, carried] : carried_) {
    const bool draws =
        std::ranges::find(carried->budgets_, head, &domain::RunInput::BudgetAbove::run) != carried->budgets_.end();
    if (!draws || carried->stopped() != Carried::Stop::none) continue;
    carried->stop(Carried::Stop::expired,
                  carried->id == head ? "the budget's " + what + ", with the runs below it"
                                      : "the budget's " + what + ", which '" + head + "' shares with what is below it");
  }
}

domain::Verdict Worker::judge(const Assignment& assignment, const Carried& carried, const domain::WorkReport& report) {
  const Outcome& outcome = report.outcome;
  domain::VerdictFacts facts;
  facts.number = carried.attempt;
  facts.attempts_max = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(assignment.budget.attempts.value_or(kAttemptsDefault), 1, 1000));
  facts.tools_used = report.tools_used;
  facts.on_crash = assignment.on_crash;
  facts.wall_now = parts_.ambient.wall_now();
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
  Outcome& outcome = report.outcome;
  domain::Verdict verdict = judge(assignment, carried, report);
  if (verdict.settle == Settle::expired && !carried.error_before_.empty()) {
    verdict.why += "; the error before that: " + carried.error_before_;
  }
  if (report.never_began) {  // so that the next attempt does not look for it again
    (void)co_await keep_note(parts_.store, parts_.health, carried, std::string(kNoteConversation),
                             parts_.scribe.write_note(""), is_fenced);
  }

  domain::RunMemo memo;
  if (carried.before_) memo = std::move(*carried.before_);
  memo.usage += outcome.usage;
  memo.text = std::move(outcome.text);
  memo.conversation = outcome.conversation;
  memo.resumes = verdict.resumes;
  memo.denials = std::move(outcome.denials);
  memo.last = outcome.kind;
  memo.processes_ended = report.processes_ended;
  memo.streams_closed = report.streams_closed;
  memo.ending = report.ending;

  store::Settlement settlement;
  settlement.run = carried.run;
  settlement.fence = carried.fence;
  settlement.settle = verdict.settle;
  settlement.error = verdict.why;
  if (report.begun) settlement.result = parts_.scribe.write(memo);  // else what earlier attempts left stands
  settlement.tokens = outcome.usage.tokens();
  settlement.money_micros = outcome.usage.money_micros;
  settlement.retry_after = verdict.retry_after;
  if (verdict.pauses_account) settlement.park_on = assignment.account;
  settlement.park_for = verdict.park_for;
  // Called safe before its conversation is kept, a loss between the two would begin it anew. If it can't be kept, the
  // run stays unsafe: it ends as it did, or is in doubt.
  bool may_mark = true;
  if (carried.unsafe_ && !verdict.in_doubt && report.begun && report.tools_used && !carried.resumable_) {
    if (!memo.conversation.empty()) {
      std::string data = parts_.scribe.write_note(memo.conversation);
      may_mark = co_await keep_note(parts_.store, parts_.health, carried, std::string(kNoteConversation),
                                    std::move(data), is_fenced);
    } else {
      may_mark = false;
    }
    carried.resumable_ = may_mark;
  }
  const bool ours = may_mark ? co_await mark_before_settling(carried, assignment, verdict, settlement)
                             : carried.stopped() != Carried::Stop::fenced;
  if (!ours) {  // others will find it, and go by what the store knows
    log_end(carried, verdict, outcome.kind, std::nullopt);
    ++(parts_.health.gave_up() ? counts_.unrecorded : counts_.stale);
    parts_.changes.tell(carried.id);
    co_return Result<>();
  }
  const bool anew = report.begun && assignment.on_crash == domain::OnCrash::resume && !carried.resumable_;
  const std::optional<RunState> state = co_await parts_.settler.settle(
      carried.owner, std::move(settlement), anew ? Settler::IfRefused::failed : Settler::IfRefused::lost);
  log_end(carried, verdict, outcome.kind, state);
  if (state == RunState::succeeded) {
    parts_.changes.tell_success(carried.id, memo.text);
  } else {
    parts_.changes.tell(carried.id);
  }
  if (!state) {
    ++(parts_.health.gave_up() ? counts_.unrecorded : counts_.stale);
    co_return Result<>();
  }
  ++counts_.settled[*state];
  if (outcome.kind == OutcomeKind::succeeded) co_return Result<>();
  co_return fail(outcome.kind == OutcomeKind::cancelled ? Errc::cancelled : Errc::failed, verdict.why);
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
                  {"trace", carried.trace_}});
}

/// No state: others have it.
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
                  {"trace", carried.trace_}});
}

}  // namespace stint::pool
