#include "pool/settler.hpp"

#include "pool/store_backoff.hpp"

#include <algorithm>
#include <utility>

namespace stint::pool {
namespace {

using domain::Settle;

/// The settlement without its texts, such that nothing unsafe is repeated: a run that has ended stays ended. A run that
/// would go on is settled like a lost attempt, because the text with which its next attempt would continue is not
/// stored.
store::Settlement without_texts(const store::Settlement& asked, Settler::IfRefused if_refused, const Error& refusal) {
  store::Settlement plain;
  plain.attempt = asked.attempt;
  plain.tokens = asked.tokens;
  plain.cost_micros = asked.cost_micros;
  switch (asked.settle) {
    case Settle::succeeded:
      plain.settle = Settle::failed;
      plain.error = "the run succeeded, but the store refused its result: ";
      break;
    case Settle::failed:
    case Settle::cancelled:
    case Settle::expired:
      plain.settle = asked.settle;
      plain.error = "the run ended, but the store refused the reason: ";
      break;
    case Settle::retry:
    case Settle::park:
    case Settle::hand_back:
    case Settle::lost:
      plain.settle = if_refused == Settler::IfRefused::failed ? Settle::failed : Settle::lost;
      plain.error = "the store refused what the attempt left for the next one: ";
      break;
  }
  plain.error += printable_reason(refusal);
  return plain;
}

}  // namespace

Task<std::optional<domain::RunState>> Settler::settle(store::NodeNumber owner, store::Settlement settlement,
                                                      IfRefused if_refused) {
  struct Place {  // leaves the line when the frame goes
    std::vector<SharedEntry>& waiting;
    SharedEntry entry;
    ~Place() {
      entry->abandoned = true;
      std::erase(waiting, entry);
    }
  };
  Place place{waiting_, std::make_shared<Entry>(owner, std::move(settlement), if_refused)};
  waiting_.push_back(place.entry);
  arrived_.notify();
  co_await place.entry->done.wait(0);
  co_return place.entry->state;
}

Task<> Settler::run() {
  const Executor& executor = (co_await current_token()).executor();
  while (true) {
    const std::uint64_t seen = arrived_.count();
    const TimePoint now = executor.now();
    const auto is_due = [&](const SharedEntry& entry) { return entry->not_before <= now; };
    const auto first = std::ranges::find_if(waiting_, is_due);
    if (first == waiting_.end()) {
      const auto next =
          std::ranges::min_element(waiting_, {}, [](const SharedEntry& entry) { return entry->not_before; });
      if (next == waiting_.end()) {
        co_await arrived_.wait(seen);
      } else {
        (void)co_await arrived_.wait(seen, (*next)->not_before - now);
      }
      continue;
    }
    std::vector<SharedEntry> batch;
    std::vector<SharedEntry> rest;
    const store::NodeNumber owner = (*first)->owner;
    for (const SharedEntry& entry : waiting_) {
      const bool goes = entry->owner == owner && is_due(entry) && batch.size() < kBatchMax;
      (goes ? batch : rest).push_back(entry);
    }
    waiting_ = std::move(rest);
    co_await settle_batch(std::move(batch));
  }
}

/// A caller that is cancelled meanwhile does not stop the settlement: the store may have it already.
Task<> Settler::settle_batch(std::vector<SharedEntry> batch) {
  const store::NodeNumber owner = batch.front()->owner;
  StoreBackoff backoff;
  while (true) {
    std::vector<store::Settlement> settlements;
    settlements.reserve(batch.size());
    for (const SharedEntry& entry : batch) settlements.push_back(entry->settlement);
    auto states = co_await store_.settle(owner, std::move(settlements));
    // A refusal of one settlement's text is not a failure of the store. A refusal of a settlement without texts is.
    const bool is_final = !states && !StoreBackoff::may_retry(states.error());
    if (!is_final || batch.front()->refused) health_.record(StoreHealth::Call::write, states);
    if (states) {
      for (std::size_t i = 0; i < batch.size(); ++i) batch[i]->state = (*states)[i];
      break;
    }
    if (is_final && (fenced_.contains(owner) || health_.gave_up())) break;
    if (is_final && !StoreBackoff::awaits_heartbeat(states.error())) {
      if (batch.size() > 1) {
        // One refused settlement must not fail the others of its batch.
        for (const SharedEntry& entry : batch) co_await settle_batch({entry});
        co_return;
      }
      replace(*batch.front(), states.error());
      retry_later(batch.front(), (co_await current_token()).executor().now());
      co_return;
    }
    const bool again = co_await backoff.wait(health_);
    if (!again) break;
  }
  for (const SharedEntry& entry : batch) entry->done.notify();
}

void Settler::replace(Entry& entry, const Error& refusal) {
  if (std::exchange(entry.refused, true)) return;
  log_.write(domain::LogLevel::error, "settlement refused by the store",
             {domain::LogField::number("run_number", std::to_string(entry.settlement.attempt.run.value)),
              {"settle", std::string(to_string(entry.settlement.settle))},
              {"why", refusal.describe()}});
  const bool has_texts = !entry.settlement.error.empty() || !entry.settlement.result.empty();
  if (has_texts) entry.settlement = without_texts(entry.settlement, entry.if_refused, refusal);
}

void Settler::retry_later(SharedEntry entry, TimePoint now) {
  if (entry->abandoned) return;
  entry->not_before = now + health_.backoff(++entry->refusals);
  waiting_.push_back(std::move(entry));
}

}  // namespace stint::pool
