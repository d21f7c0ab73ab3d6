#include "pool/settler.hpp"

#include "pool/persist.hpp"

#include <algorithm>

namespace stint::pool {

Task<std::optional<domain::RunState>> Settler::settle(store::WorkerNumber owner, store::Settlement settlement) {
  struct Place {  // leaves the line when the frame goes
    std::vector<Entry*>& waiting;
    Entry entry;
    ~Place() { std::erase(waiting, &entry); }
  };
  Place place{waiting_, {owner, std::move(settlement), std::nullopt, {}}};
  waiting_.push_back(&place.entry);
  arrived_.ring();
  co_await place.entry.done.hear(0);
  co_return place.entry.state;
}

Task<> Settler::run() {
  while (true) {
    const std::uint64_t seen = arrived_.rings();
    if (waiting_.empty()) {
      co_await arrived_.hear(seen);
      continue;
    }
    std::vector<Entry*> batch;
    std::vector<Entry*> rest;
    const store::WorkerNumber owner = waiting_.front()->owner;
    for (Entry* const entry : waiting_) {
      (entry->owner == owner && batch.size() < kBatchMax ? batch : rest).push_back(entry);
    }
    waiting_ = std::move(rest);
    co_await settle_batch(std::move(batch));
  }
}

/// Who waits can't go away meanwhile: an attempt is never stopped from here on but with everything.
Task<> Settler::settle_batch(std::vector<Entry*> batch) {
  const store::WorkerNumber owner = batch.front()->owner;
  Patience patience;
  while (true) {
    std::vector<store::Settlement> settlements;
    settlements.reserve(batch.size());
    for (const Entry* const entry : batch) settlements.push_back(entry->settlement);
    auto states = co_await store_.settle(owner, std::move(settlements));
    health_.heard(StoreHealth::Call::write, states);
    if (states) {
      for (std::size_t i = 0; i < batch.size(); ++i) batch[i]->state = (*states)[i];
    } else if (patience.may_ask_again(states.error())) {
      co_await patience.wait();
      continue;
    } else if (batch.size() > 1) {
      // One that the store refuses must not take the others with it.
      for (Entry* const entry : batch) co_await settle_batch({entry});
      co_return;
    }
    for (Entry* const entry : batch) entry->done.ring();
    co_return;
  }
}

}  // namespace stint::pool
