#include "engine/rescue.hpp"

#include <utility>

namespace stint::engine {

using Trace = domain::Survivors::Trace;

Task<std::vector<domain::Survivors::Leftover>> lost_among(store::Store& store,
                                                          std::vector<domain::Survivors::Leftover> found,
                                                          const pool::Worker* here) {
  std::vector<domain::Survivors::Leftover> over;
  for (domain::Survivors::Leftover& attempt : found) {
    if (here != nullptr && here->carried().contains({attempt.run, attempt.fence})) continue;
    const auto run = co_await store.find(attempt.run);
    if (!run || !*run || (*run)->id != attempt.run) continue;
    // The processes were scanned before this read: a run that is running now may have been claimed since.
    const bool is_over =
        attempt.fence < (*run)->fence || (attempt.fence == (*run)->fence && (*run)->state != domain::RunState::running);
    if (is_over || attempt.trace == Trace::orphaned) over.push_back(std::move(attempt));
  }
  co_return over;
}

Task<> kill_survivors(store::Store& store, domain::Survivors& survivors) {
  auto found = co_await survivors.find();
  if (!found) co_return;  // the next command looks again
  auto over = co_await lost_among(store, *std::move(found), nullptr);
  std::erase_if(over, [](const domain::Survivors::Leftover& each) { return each.trace == Trace::kept; });
  co_await survivors.kill(std::move(over));
}

}  // namespace stint::engine
