#include "pool/settler.hpp"

#include "pool/store_backoff.hpp"

#include <algorithm>
#include <utility>

namespace stint::pool {
namespace {

using domain::Settle;

/// Without its texts, and so that nothing is repeated that may not be: what has ended stays ended; what would have gone
/// on goes the way of a lost attempt, since the text by which the next one would have continued is not kept.
store::Settlement without_texts(const store::Settlement& asked, Settler::IfRefused if_refused, const Error& refusal) {
  store::Settlement plain;
  plain.run = asked.run;
  plain.fence = asked.fence;
  plain.tokens = asked.tokens;
  plain.cost_micros = asked.cost_micros;
  switch (asked.settle) {
    case Settle::succeeded:
      plain.settle = Settle::failed;
      plain.error = "it succeeded, but the store refused its result: ";
      break;
    case Settle::failed:
    case Settle::cancelled:
    case Settle::expired:
      plain.settle = asked.settle;
      plain.error = "it ended, but the store refused the reason: ";
      break;
    case Settle::retry:
    case Settle::park:
    case Settle::hand_back:
    case Settle::lost:
      plain.settle = if_refused == Settler::IfRefused::failed ? Settle::failed : Settle::lost;
      plain.error = "the store refused what the attempt left for the next one: ";
      break;
  }
  plain.error += plain_words(refusal);
  return plain;
}

}  // namespace

Task<std::optional<domain::RunState>> Settler::settle(store::NodeNumber owner, store::Settlement settlement,
                                                      IfRefused if_refused) {
  struct Place {  // leaves the line when the frame goes
    std::vector<Entry*>& waiting;
    Entry entry;
    ~Place() { std::erase(waiting, &entry); }
  };
  Place place{waiting_, {owner, std::move(settlement), if_refused, std::nullopt, {}, false, {}, {}}};
  waiting_.push_back(&place.entry);
  arrived_.notify();
  co_await place.entry.done.wait(0);
  co_return place.entry.state;
}

Task<> Settler::run() {
  const Executor& executor = (co_await current_token()).executor();
  while (true) {
    const std::uint64_t seen = arrived_.count();
    const TimePoint now = executor.now();
    const auto is_due = [&](const Entry* entry) { return entry->not_before <= now; };
    const auto first = std::ranges::find_if(waiting_, is_due);
    if (first == waiting_.end()) {
      const auto next = std::ranges::min_element(waiting_, {}, &Entry::not_before);
      if (next == waiting_.end()) {
        co_await arrived_.wait(seen);
      } else {
        (void)co_await arrived_.wait(seen, (*next)->not_before - now);
      }
      continue;
    }
    std::vector<Entry*> batch;
    std::vector<Entry*> rest;
    const store::NodeNumber owner = (*first)->owner;
    for (Entry* const entry : waiting_) {
      const bool goes = entry->owner == owner && is_due(entry) && batch.size() < kBatchMax;
      (goes ? batch : rest).push_back(entry);
    }
    waiting_ = std::move(rest);
    co_await settle_batch(std::move(batch));
  }
}

/// Who waits can't go away meanwhile: an attempt is never stopped from here on but with everything.
Task<> Settler::settle_batch(std::vector<Entry*> batch) {
  const store::NodeNumber owner = batch.front()->owner;
  StoreBackoff backoff;
  while (true) {
    std::vector<store::Settlement> settlements;
    settlements.reserve(batch.size());
    for (const Entry* const entry : batch) settlements.push_back(entry->settlement);
    auto states = co_await store_.settle(owner, std::move(settlements));
    // A single text that can't be kept says nothing about the store; that it refuses also what has none does.
    const bool is_final = !states && !StoreBackoff::may_ask_again(states.error());
    if (!is_final || batch.front()->refused) health_.heard(StoreHealth::Call::write, states);
    if (states) {
      for (std::size_t i = 0; i < batch.size(); ++i) batch[i]->state = (*states)[i];
      break;
    }
    if (is_final && (fenced_.contains(owner) || health_.gave_up())) break;
    if (is_final && !StoreBackoff::is_before_a_beat(states.error())) {
      if (batch.size() > 1) {
        // One that the store refuses must not take the others with it.
        for (Entry* const entry : batch) co_await settle_batch({entry});
        co_return;
      }
      replace(*batch.front(), states.error());
      ask_later(*batch.front(), (co_await current_token()).executor().now());
      co_return;
    }
    const bool again = co_await backoff.wait(health_);
    if (!again) break;
  }
  for (Entry* const entry : batch) entry->done.notify();
}

void Settler::replace(Entry& entry, const Error& refusal) {
  if (std::exchange(entry.refused, true)) return;
  log_.say(domain::LogLevel::error, "settlement refused by the store",
           {domain::LogField::number("run_number", std::to_string(entry.settlement.run)),
            {"settle", std::string(to_string(entry.settlement.settle))},
            {"why", refusal.describe()}});
  const bool has_texts = !entry.settlement.error.empty() || !entry.settlement.result.empty();
  if (has_texts) entry.settlement = without_texts(entry.settlement, entry.if_refused, refusal);
}

void Settler::ask_later(Entry& entry, TimePoint now) {
  entry.not_before = now + health_.backoff(++entry.refusals);
  waiting_.push_back(&entry);
}

}  // namespace stint::pool
