#include "engine/rescue.hpp"

#include <utility>
#include <vector>

namespace stint::engine {

Task<std::uint32_t> end_survivors(store::Store& store, domain::Survivors& survivors, const pool::Worker* here) {
  std::vector<domain::Survivors::Attempt> over;
  for (const domain::Survivors::Attempt& attempt : survivors.alive()) {
    if (here != nullptr && here->carried().contains({attempt.run, attempt.fence})) continue;
    const auto run = co_await store.find(attempt.run);
    if (!run || !*run || (*run)->id != attempt.run) continue;
    // The look at the processes came first: what the store calls running now may have been claimed since.
    const bool is_over =
        attempt.fence < (*run)->fence || (attempt.fence == (*run)->fence && (*run)->state != domain::RunState::running);
    if (is_over) over.push_back(attempt);
  }
  if (over.empty()) co_return 0;
  co_return co_await survivors.end(std::move(over));
}

}  // namespace stint::engine
