/// Hands what became of attempts to the store, all that has gathered at once: one answer of the store then serves many
/// runs. Asks again until there is an answer; gives up only when the lease is over, for then it would count for
/// nothing. One executor.
#pragma once

#include "pool/store_health.hpp"
#include "stint/bell.hpp"
#include "stint/queue.hpp"
#include "store/store.hpp"

#include <optional>
#include <vector>

namespace stint::pool {

class Settler {
 public:
  static constexpr std::size_t kBatchMax = 256;

  Settler(store::Store& store, StoreHealth& health) : store_(store), health_(health) {}

  /// The state that the run has now; none: others have taken it, and what was said counts for nothing.
  Task<std::optional<domain::RunState>> settle(store::WorkerNumber owner, store::Settlement settlement);
  /// Works for them, until it is stopped.
  Task<> run();
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  struct Entry {
    store::WorkerNumber owner;
    store::Settlement settlement;
    std::optional<domain::RunState> state;
    Bell done;
  };
  Task<> settle_batch(std::vector<Entry*> batch);

  store::Store& store_;
  StoreHealth& health_;
  std::vector<Entry*> waiting_;  // in the frames of who waits
  Bell arrived_;
};

}  // namespace stint::pool
