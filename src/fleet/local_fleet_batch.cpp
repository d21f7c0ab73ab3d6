// LocalFleet: batches. Invariants:
// 1. The set of a batch is fixed when it begins: ids of runs, in the store.
// 2. A step is recorded after its runs were acted on. A node that dies between leaves a step to be done again.
// 3. So each action can be repeated: a cancelled run stays cancelled, and a retry has an id that follows from batch and
//    run, which the store accepts once.
#include "agent/text.hpp"
#include "domain/bounds.hpp"
#include "domain/run_id.hpp"
#include "engine/rescue.hpp"
#include "fleet/local_fleet.hpp"
#include "fleet/request_digest.hpp"
#include "pool/store_backoff.hpp"
#include "stint/scope.hpp"
#include "wire/batch.hpp"

#include <algorithm>

namespace stint::fleet {
namespace {

using namespace std::chrono_literals;
using domain::RunState;
using store::BatchAction;

constexpr std::size_t kAtOnce = 16;  // a cancel takes as long as its processes take to end
constexpr Duration kBatchLookAgain =
    500ms;                              // for the progress of a batch, and after a full queue or a store that fails
constexpr Duration kLookForDead = 10s;  // for batches of nodes that died
constexpr Duration kBeatEvery = 1s;     // of a command that carries a batch itself
constexpr std::size_t kErrorMax = 500;  // bytes kept of the error of one run

Error key_is_used_by_batch(const std::string& key, const std::string& batch) {
  return {Errc::conflict, "idempotency key '" + agent::excerpt(key, domain::kShownNameBytesMax) +
                              "' was already used by batch '" + batch + "' with a different request. Use another key"};
}

}  // namespace

Task<Result<store::Batch>> Fleet::follow_batch(std::string id, std::function<void(const store::Batch&)> progress) {
  while (true) {
    STINT_CO_TRY(std::optional<store::Batch> now, co_await batch(id));
    if (!now) co_return fail(Errc::invalid, "there is no batch '" + agent::excerpt(id) + "'");
    if (progress) progress(*now);
    if (now->ended_at) co_return std::move(*now);
    co_await sleep_for(kBatchLookAgain);
  }
}

// ---- asking --------------------------------------------------------------------------------------------------------

/// The ids of all runs that match, oldest first: a retry keeps their order. `invalid`: too many.
Task<Result<std::vector<std::string>>> LocalFleet::matching(store::Filter filter) {
  std::vector<std::string> ids;
  filter.most = store::kExamineMax;
  while (true) {
    STINT_CO_TRY(store::Matches page, co_await parts_.store.match(filter));
    for (auto& match : page.runs) ids.push_back(std::move(match.id));
    if (ids.size() > store::kBatchRunsMax) {
      co_return fail(Errc::invalid, "more than " + std::to_string(store::kBatchRunsMax) +
                                        " runs match, which is the most of one batch: narrow the filter");
    }
    if (!page.next) break;
    filter.before = *page.next;
  }
  std::ranges::reverse(ids);
  co_return ids;
}

/// The batch that this idempotency key began. Nothing: the key is new.
Task<Result<std::optional<BatchAnswer>>> LocalFleet::known_batch(const BatchRequest& request, std::string id,
                                                                 std::string filter) {
  STINT_CO_TRY(std::optional<store::Batch> known, co_await parts_.store.batch(id));
  if (!known) co_return std::nullopt;
  if (known->action != request.action || known->filter != filter || known->matched != *request.expect) {
    co_return fail(key_is_used_by_batch(request.key, known->id));
  }
  const std::uint64_t matched = known->matched;
  co_return BatchAnswer{.matched = matched, .batch = std::move(known), .created = false};
}

Task<Result<BatchAnswer>> LocalFleet::begin_batch(BatchRequest request) {
  STINT_CO_TRY(store::Filter filter, engine::filter_of(request));
  store::NewBatch fresh;
  fresh.action = request.action;
  fresh.filter = wire::to_json(filter);
  fresh.key = request.key;
  fresh.id = request.key.empty() ? domain::new_run_id(parts_.system) : derived_id("batch", request.key);
  if (!request.key.empty() && !request.dry_run) {
    STINT_CO_TRY(std::optional<BatchAnswer> known, co_await known_batch(request, fresh.id, fresh.filter));
    if (known) co_return std::move(*known);
  }
  if (!filter.parent.empty()) {
    STINT_CO_TRY(const RunView parent, co_await must_find(filter.parent));
    filter.parent = parent.run.id;
  }
  STINT_CO_CHECK(co_await add_variants(filter));
  STINT_CO_TRY(fresh.runs, co_await matching(std::move(filter)));
  BatchAnswer answer;
  answer.matched = fresh.runs.size();
  if (request.dry_run || answer.matched != *request.expect) co_return answer;
  std::string id = fresh.id;
  STINT_CO_TRY(const store::Accepted accepted, co_await parts_.store.begin_batch(std::move(fresh)));
  STINT_CO_TRY(answer.batch, co_await parts_.store.batch(accepted.id));
  answer.created = accepted.created;
  tell("");
  batch_asked_.notify();
  co_return answer;
}

Task<Result<std::optional<store::Batch>>> LocalFleet::batch(std::string id) {
  return parts_.store.batch(std::move(id));
}

Task<Result<std::vector<store::Batch>>> LocalFleet::batches(store::BatchNumber before, std::uint32_t most) {
  return parts_.store.batches(before, most);
}

Task<Result<std::optional<store::Batch>>> LocalFleet::stop_batch(std::string id) {
  STINT_CO_TRY(std::optional<store::Batch> batch, co_await parts_.store.stop_batch(std::move(id)));
  tell("");
  batch_asked_.notify();
  co_return std::move(batch);
}

// ---- carrying ------------------------------------------------------------------------------------------------------

bool LocalFleet::may_carry() const {
  return parts_.engine == nullptr || (parts_.engine->phase() == Phase::serving && parts_.engine->owner());
}

/// A failure that will pass is no outcome: the run is acted on later. Without a daemon a full queue stays full.
LocalFleet::BatchOutcome LocalFleet::outcome_of(const Error& error) const {
  const bool passes = error == Errc::full
                          ? parts_.engine != nullptr
                          : error == Errc::closed || error == Errc::unavailable || error.retry() != Retry::never;
  if (passes) return {.acted = Acted::later, .error = {}};
  return {.acted = Acted::failed, .error = agent::excerpt(error.describe(), kErrorMax)};
}

Task<LocalFleet::BatchOutcome> LocalFleet::act_on(const store::BatchClaim& claim, std::string run) {
  if (claim.action == BatchAction::retry) {
    const std::string as = derived_id(claim.id, run);
    const auto known = co_await parts_.store.find(as);
    if (!known) co_return outcome_of(known.error());
    if (*known) co_return BatchOutcome{.acted = Acted::done, .error = {}};  // before this node took the batch over
    const auto submitted = co_await retry_as(std::move(run), as);
    co_return submitted ? BatchOutcome{.acted = Acted::done, .error = {}} : outcome_of(submitted.error());
  }
  const auto receipt = co_await cancel(std::move(run));
  if (!receipt) co_return outcome_of(receipt.error());
  const store::Run& now = receipt->run.run;
  if (now.state == RunState::cancelled) co_return BatchOutcome{.acted = Acted::done, .error = {}};
  if (domain::is_finished(now.state)) co_return BatchOutcome{.acted = Acted::skipped, .error = {}};  // ended by itself
  co_return BatchOutcome{.acted = Acted::failed, .error = "the run is " + std::string(to_string(now.state))};
}

/// Acts on the runs of the claim, several at once, until one must wait. Returns what came of the first ones.
Task<store::BatchStep> LocalFleet::act_on_all(const store::BatchClaim& claim) {
  std::vector<BatchOutcome> outcomes(claim.runs.size());
  std::size_t next = 0;
  bool waits = false;
  auto worker = [&]() -> Task<> {
    while (next < claim.runs.size() && !waits && may_carry()) {
      const std::size_t at = next++;
      outcomes[at] = co_await act_on(claim, claim.runs[at]);
      waits |= outcomes[at].acted == Acted::later;
    }
  };
  auto body = [&](Scope& scope) -> Task<> {
    for (std::size_t i = 0; i < std::min(kAtOnce, claim.runs.size()); ++i) scope.spawn(worker());
    co_return;
  };
  (void)co_await with_scope(std::ref(body));
  store::BatchStep step;
  for (std::size_t at = 0; at < outcomes.size() && outcomes[at].acted != Acted::later; ++at) {
    if (outcomes[at].acted == Acted::done) ++step.done;
    if (outcomes[at].acted == Acted::skipped) ++step.skipped;
    if (outcomes[at].acted == Acted::failed) step.failed.push_back({claim.runs[at], std::move(outcomes[at].error)});
  }
  co_return step;
}

/// Until the batch ends, another node has it, or this node may no longer carry it.
Task<> LocalFleet::carry(store::BatchClaim claim) {
  while (may_carry()) {
    store::BatchStep step = co_await act_on_all(claim);
    const bool waits = step.runs() < claim.runs.size();
    batch_counts_.done += step.done;
    batch_counts_.skipped += step.skipped;
    batch_counts_.failed += step.failed.size();
    auto next = co_await parts_.store.advance_batch(claim, step);
    while (!next && pool::StoreBackoff::may_retry(next.error()) && may_carry()) {
      co_await sleep_for(kBatchLookAgain);
      next = co_await parts_.store.advance_batch(claim, step);
    }
    if (!next) co_return;  // claimed again later
    tell("");
    if (!*next) co_return;
    claim = std::move(**next);
    if (waits) co_await sleep_for(kBatchLookAgain);
  }
  (void)co_await parts_.store.release_batch(std::move(claim));
}

Task<> LocalFleet::carry_batches(domain::Log& log) {
  while (true) {
    const std::uint64_t seen = batch_asked_.count();
    if (may_carry()) {
      auto claim = co_await parts_.store.claim_batch(*parts_.engine->owner());
      if (claim && *claim) {
        const std::string id = (*claim)->id;
        log.write(domain::LogLevel::info, (*claim)->at == 0 ? "batch begins" : "batch goes on",
                  {{"batch", id},
                   {"action", std::string(to_string((*claim)->action))},
                   domain::LogField::number("at", std::to_string((*claim)->at))});
        co_await carry(std::move(**claim));
        const auto ended = co_await parts_.store.batch(id);
        if (ended && *ended && (*ended)->ended_at) {
          log.write(domain::LogLevel::info, "batch ended",
                    {{"batch", id},
                     {"state", std::string(to_string((*ended)->state))},
                     domain::LogField::number("matched", std::to_string((*ended)->matched)),
                     domain::LogField::number("failed", std::to_string((*ended)->failed))});
          continue;
        }
        co_await sleep_for(kBatchLookAgain);
        continue;
      }
    }
    // Together with the other looks of a second, so that an idle daemon wakes no more often. A daemon that begins is
    // not serving yet, and may find batches of the one before it.
    const Duration into_second = parts_.executor.now().time_since_epoch() % std::chrono::seconds(1);
    (void)co_await batch_asked_.wait(seen, may_carry() ? kLookForDead - into_second : kBatchLookAgain);
  }
}

/// Heartbeats of a node that only carries batches.
Task<> LocalFleet::keep_alive(store::NodeNumber node) {
  while (true) {
    (void)co_await parts_.store.beat(node);
    co_await sleep_for(kBeatEvery);
  }
}

/// Carries batches as this node until the batch `id` has ended, or another node carries it.
Task<> LocalFleet::carry_here(store::NodeNumber node, std::string id) {
  while (true) {
    auto claim = co_await parts_.store.claim_batch(node);
    if (!claim || !*claim) co_return;
    const bool own = (*claim)->id == id;
    co_await carry(std::move(**claim));
    if (own) co_return;
  }
}

Task<Result<store::Batch>> LocalFleet::follow_batch(std::string id, std::function<void(const store::Batch&)> progress) {
  if (parts_.engine != nullptr) co_return co_await Fleet::follow_batch(std::move(id), std::move(progress));
  STINT_CO_TRY(const store::NodeNumber node, co_await parts_.store.enrol("batch " + id, store::NodeKind::one_run));
  auto body = [&](Scope& scope) -> Task<Result<store::Batch>> {
    scope.spawn(keep_alive(node));
    scope.spawn(carry_here(node, id));
    auto ended = co_await Fleet::follow_batch(id, progress);
    scope.cancel();
    co_return ended;
  };
  auto ended = co_await with_scope(std::ref(body));
  (void)co_await parts_.store.leave(node);
  co_return ended;
}

}  // namespace stint::fleet
